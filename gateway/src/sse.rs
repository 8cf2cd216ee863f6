//! A run's events as server-sent events, or all at once as JSON. The frames are those of the socket.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use prost::Message;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json_, json};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::{Path, Query};
use crate::metrics::{Counted, WATCHERS};
use crate::problem::{ErrorBody, Problem};
use crate::watch::{Cursor, Item, watch};
use crate::wire::{frame, words};

/// Pause between comments that keep the connection open.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Events of one list at most, and their bytes between services; the rest is asked for with `after_seq`.
const MAX_LISTED: usize = 10_000;
const MAX_LISTED_BYTES: usize = 8 * 1024 * 1024;

/// Where to begin.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// Only events with a higher number. A browser that reconnects says it in `Last-Event-ID`; the higher one counts.
    after_seq: Option<i64>,
}

/// Events of a run, all at once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventList {
    /// The frames, in order.
    #[schema(value_type = Vec<EventFrame>)]
    events: Vec<Json_>,
    /// Number of the newest event of the run. When the list ends before it, the rest follows after the last one's number.
    last_seq: i64,
    /// Whether the run is over.
    finished: bool,
}

/// One event of a run, the same on the socket, in server-sent events and on the command line. Further keys depend on
/// the type.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventFrame {
    /// `job_update`, `node_update`, `generation_complete`, `output_update`, `edge_update`, `node_progress`,
    /// `log_update`, `prediction`, `chunk`, `supervisor_escalation` or `supervisor_decision`; readers ignore others.
    #[schema(example = "node_update")]
    r#type: String,
    /// The run.
    job_id: String,
    /// The workflow that was named when it was started.
    #[schema(required)]
    workflow_id: Option<String>,
    /// The number in the run, from 1.
    job_seq: Option<i64>,
}

/// The events of a run.
///
/// Server-sent events: `id` is the number, `event` the type, `data` the frame; the stream ends after the last one. With
/// `Accept: application/json` the events so far, without waiting: as many as fit into one answer.
#[utoipa::path(
    get, path = "/jobs/{id}/events", operation_id = "watchJob", tag = "jobs",
    params(
        ("id" = String, Path, description = "The run"),
        EventsQuery,
        ("last-event-id" = Option<i64>, Header, description = "Only events with a higher number"),
    ),
    responses(
        (status = 200, description = "The events", content(
            (String = "text/event-stream"),
            (EventList = "application/json"),
        )),
        (status = 400, description = "A parameter is wrong", body = ErrorBody),
        (status = 404, description = "No such run", body = ErrorBody),
    )
)]
pub(crate) async fn events(
    State(app): State<App>,
    Who(caller): Who,
    Path(job_id): Path<String>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Error> {
    let after_seq = after(&query, &headers)?;
    let as_json = wants_json(&headers);
    let user_id = caller.user_id.clone();
    let cursor = Cursor {
        job_id,
        after_seq,
        replay_only: as_json,
    };
    let mut items = Box::pin(watch(app.clone(), caller, cursor));
    // The first item says whether there is such a run; until then an error can still be an HTTP answer.
    let started = match items.next().await {
        Some(Ok(Item::Started(started))) => started,
        Some(Ok(Item::Event(_))) | None => Default::default(),
        Some(Err(error)) => return Err(error),
    };
    if as_json {
        let (mut events, mut last_seq) = (Vec::new(), started.last_seq);
        let mut finished = words::is_terminal(started.status);
        let mut bytes = 0;
        while events.len() < MAX_LISTED
            && bytes < MAX_LISTED_BYTES
            && let Some(item) = items.next().await
        {
            if let Item::Event(event) = item? {
                bytes += event.encoded_len();
                last_seq = last_seq.max(event.seq);
                finished |= frame::ends(&event);
                events.extend(frame::frame(*event, &user_id).iter().map(frame::Frame::json));
            }
        }
        return Ok(Json(EventList {
            events,
            last_seq,
            finished,
        })
        .into_response());
    }
    let stop = app.tasks.token().cancelled_owned();
    let events = told(items, user_id).take_until(stop);
    let keepalive = KeepAlive::new().interval(KEEPALIVE).text("keepalive");
    let mut response = Sse::new(events).keep_alive(keepalive).into_response();
    response.headers_mut().insert(
        header::CACHE_CONTROL,
        header::HeaderValue::from_static("no-cache, no-transform"),
    );
    Ok(response)
}

fn after(query: &EventsQuery, headers: &HeaderMap) -> Result<i64, Error> {
    let wrong = |field| Error::field(field, "must be a number from 0");
    let last = match headers.get("last-event-id") {
        None => 0,
        Some(last) => last
            .to_str()
            .ok()
            .and_then(|last| last.trim().parse().ok())
            .ok_or_else(|| wrong("last-event-id"))?,
    };
    let after = query.after_seq.unwrap_or(0);
    if after < 0 {
        return Err(wrong("after_seq"));
    }
    Ok(after.max(last))
}

fn wants_json(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .unwrap_or_default();
    accept.contains("application/json") && !accept.contains("text/event-stream")
}

fn told(
    items: impl Stream<Item = Result<Item, Error>> + Send + 'static,
    user_id: String,
) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let counted = Counted::new(WATCHERS);
    items.flat_map(move |item| {
        let _watching = &counted;
        let events = match item {
            Ok(Item::Started(_)) => Vec::new(),
            Ok(Item::Event(event)) => frame::frame(*event, &user_id).iter().map(event_of).collect(),
            Err(error) => vec![error_event(error)],
        };
        futures_util::stream::iter(events.into_iter().map(Ok))
    })
}

fn event_of(frame: &frame::Frame) -> Event {
    let event = Event::default().event(frame.kind).data(frame.json().to_string());
    match frame.seq {
        Some(seq) => event.id(seq.to_string()),
        None => event,
    }
}

/// The stream broke off for good; the reader may come back with the number it has.
fn error_event(error: Error) -> Event {
    let problem = Problem::from(error);
    let text = problem.message.clone();
    let data = json!({"type": "error", "message": text, "error": text, "code": problem.code, "reason": problem.reason});
    Event::default().event("error").data(data.to_string())
}
