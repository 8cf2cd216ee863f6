//! One call to a provider, asked for directly: in the background, or followed to its end.

use std::convert::Infallible;
use std::time::Duration;

use atelier_proto::common::v1::{Origin, Surface};
use atelier_proto::provider::v1::run_generation_response::Event as Told;
use atelier_proto::provider::v1::{Persist, RunGenerationRequest, RunGenerationResponse};
use atelier_proto::value::{BytesForm, Value, map_from_json, to_json};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use serde::Deserialize;
use serde_json::{Map as JsonMap, Value as Json_, json};
use tonic::{Status, Streaming};
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::JsonBody;
use crate::problem::{ErrorBody, Problem};
use crate::wire::resource::{Asset, Generation};

/// Pause between comments that keep the connection open.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// What to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GenerationBody {
    /// `text_to_image`, `text_to_speech`, `generate_message`, …; `GET /models` says who can do what.
    #[schema(example = "text_to_image")]
    capability: String,
    /// The provider. Default: one that can.
    #[serde(default)]
    provider: String,
    /// The model. Default: the provider's first for the capability.
    #[serde(default)]
    model: String,
    /// Parameters of the capability. Media are references, with a `uri` that may be a `data:` address.
    #[serde(default)]
    #[schema(value_type = Object, example = json!({"prompt": "a paper boat"}))]
    params: JsonMap<String, Json_>,
    /// Answer as soon as the row is open; the call goes on.
    #[serde(default)]
    background: bool,
    /// Unique per user: a repeat joins the first call and is not paid for twice.
    idempotency_key: Option<String>,
    /// Name of the asset.
    name: Option<String>,
    /// `cli` for the command line. Default: a call over an API.
    surface: Option<String>,
    /// The project that it is booked on.
    project_id: Option<String>,
}

/// Makes something with a model of a provider, and keeps account of it.
///
/// With `background` the answer is the row of the ledger. Else the call is followed by server-sent events: `prediction`
/// with the row when it is opened and when it is settled, `progress`, `chunk` with a piece of a stream, `result` with the
/// `output` and its `assets`, and `error`. Whoever goes away does not end the call.
#[utoipa::path(
    post, path = "/generations", operation_id = "runGeneration", tag = "generations", request_body = GenerationBody,
    responses(
        (status = 200, description = "What happens, as events", content((String = "text/event-stream"))),
        (status = 202, description = "The row; the call goes on", body = Generation),
        (status = 400, description = "A field is wrong, or the body is no JSON", body = ErrorBody),
        (status = 429, description = "A budget is used up, or the provider has no room", body = ErrorBody),
        (status = 503, description = "A service cannot be reached", body = ErrorBody),
    )
)]
pub(crate) async fn run(
    State(app): State<App>,
    Who(caller): Who,
    JsonBody(body): JsonBody,
) -> Result<Response, Error> {
    let body: GenerationBody =
        serde_json::from_value(body).map_err(|wrong| Error::field("body", wrong.to_string()))?;
    let background = body.background;
    let request = request(body)?;
    let user_id = caller.user_id.clone();
    let mut models = app.clients.models();
    let mut told = app
        .clients
        .answer(models.run_generation(app.clients.request(&caller, request)))
        .await?;
    // The first message says whether there is a row; until then an error can still be an HTTP answer.
    let first = told.message().await?;
    if background {
        return match first.and_then(|message| message.event) {
            Some(Told::Prediction(opened)) => {
                let row: Generation = opened.generation.unwrap_or_default().into();
                Ok((StatusCode::ACCEPTED, Json(row)).into_response())
            }
            Some(Told::Progress(_) | Told::Chunk(_) | Told::Result(_)) | None => Err(Error::Unanswered),
        };
    }
    let stop = app.tasks.token().cancelled_owned();
    let events = events(first, told, user_id).take_until(stop);
    let keepalive = KeepAlive::new().interval(KEEPALIVE).text("keepalive");
    let mut response = Sse::new(events).keep_alive(keepalive).into_response();
    response.headers_mut().insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    Ok(response)
}

fn request(body: GenerationBody) -> Result<RunGenerationRequest, Error> {
    let GenerationBody {
        capability,
        provider,
        model,
        params,
        background,
        idempotency_key,
        name,
        surface,
        project_id,
    } = body;
    let surface = match surface.as_deref() {
        None => Surface::Rpc,
        Some("cli") => Surface::Cli,
        Some(_) => return Err(Error::field("surface", "must be cli, or left out")),
    };
    let params = map_from_json(Json_::Object(params)).unwrap_or_default();
    Ok(RunGenerationRequest {
        provider,
        model,
        capability,
        params: Some((&params).into()),
        origin: Some(Origin {
            surface: surface.into(),
            project_id,
            ..Origin::default()
        }),
        generation_id: None,
        idempotency_key,
        persist: Some(Persist { name }),
        background,
        cancel_on_disconnect: false,
        deadline: None,
    })
}

fn events(
    first: Option<RunGenerationResponse>,
    told: Streaming<RunGenerationResponse>,
    user_id: String,
) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let first = stream::iter(first.map(Ok::<_, Status>));
    first.chain(told).filter_map(move |message| {
        let event = match message {
            Ok(message) => message.event.map(|told| event(told, &user_id)),
            Err(status) => Some(failure(status)),
        };
        std::future::ready(event.map(Ok))
    })
}

fn event(told: Told, user_id: &str) -> Event {
    let (kind, data) = match told {
        Told::Prediction(prediction) => {
            let row: Generation = prediction.generation.unwrap_or_default().into();
            (
                "prediction",
                json!({"type": "prediction", "generation": row, "joined": prediction.joined}),
            )
        }
        Told::Progress(progress) => (
            "progress",
            json!({"type": "progress", "progress": progress.progress, "total": progress.total}),
        ),
        Told::Chunk(chunk) => {
            let bytes =
                (!chunk.data.is_empty()).then(|| to_json(&Value::Bytes(chunk.data), BytesForm::Tagged));
            (
                "chunk",
                json!({
                    "type": "chunk", "content_type": chunk.content_type, "text": chunk.text, "data": bytes,
                    "done": chunk.done, "thinking": chunk.thinking,
                }),
            )
        }
        Told::Result(result) => {
            let output = result.output.and_then(|output| Value::try_from(output).ok());
            let output = output.map(|output| to_json(&output, BytesForm::Tagged));
            let assets: Vec<Asset> = result
                .assets
                .into_iter()
                .map(|asset| Asset::new(asset, user_id))
                .collect();
            (
                "result",
                json!({
                    "type": "result", "output": output, "assets": assets, "persist_error": result.persist_error,
                }),
            )
        }
    };
    Event::default().event(kind).data(data.to_string())
}

/// The call failed; the row is in the `prediction` before it.
fn failure(status: Status) -> Event {
    let problem = Problem::from(status);
    let data = json!({
        "type": "error", "message": problem.message, "code": problem.code, "reason": problem.reason,
    });
    Event::default().event("error").data(data.to_string())
}
