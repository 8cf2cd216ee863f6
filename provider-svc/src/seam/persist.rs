//! Storing the outputs of a call, before its row is closed (generations specification 3.2, K11).

use std::time::Duration;

use atelier_common::identity::Caller;
use atelier_proto::asset::v1::{Asset, UploadHeader};
use atelier_proto::common::v1::MapValue;
use atelier_proto::value::{Map, MediaRef, Value};
use bytes::Bytes;
use tonic::Code;

use crate::provider::{Finished, Media, Output};
use crate::seam::assets::{Assets, reference};
use crate::seam::plan::Plan;
use crate::seam::registry::Stop;

/// What became of the outputs.
#[derive(Debug, Default)]
pub struct Persisted {
    /// Assets that were stored, in order.
    pub assets: Vec<Asset>,
    /// The outputs as the caller gets them.
    pub outputs: Vec<Value>,
    /// Why an output could not be stored; its bytes are inline then.
    pub error: Option<String>,
}
impl Persisted {
    /// Ids of the assets.
    #[must_use]
    pub fn asset_ids(&self) -> Vec<String> {
        self.assets.iter().map(|asset| asset.asset_id.clone()).collect()
    }

    /// The one output, or the list of them.
    #[must_use]
    pub fn output(&self) -> Value {
        match self.outputs.as_slice() {
            [] => Value::Null,
            [one] => one.clone(),
            many => Value::list(many.to_vec()),
        }
    }
}

/// Stores every output, in order, unless the request says not to. Ends early when the call is to stop: what was not
/// stored by then is not stored.
pub async fn persist(
    assets: &Assets,
    plan: &Plan,
    finished: Finished,
    pauses: &[Duration],
    stop: &Stop,
) -> Persisted {
    let mut persisted = Persisted::default();
    let many = finished.outputs.len() > 1;
    for (index, output) in finished.outputs.into_iter().enumerate() {
        if stop.cause().is_some() {
            break;
        }
        if !plan.persist {
            persisted.outputs.push(inline(output));
            continue;
        }
        let (bytes, mime) = match &output {
            Output::Value(value) => {
                persisted.outputs.push(value.clone());
                continue;
            }
            Output::Media(media) => (media.bytes.clone(), media.mime.clone()),
            Output::Text(text) => (Bytes::from(text.clone()), "text/plain".to_owned()),
        };
        let header = header(plan, &output, &mime, index, many);
        match upload(assets, &plan.caller, header, bytes, pauses, stop).await {
            Ok(asset) => {
                persisted.outputs.push(stored(output, &asset));
                persisted.assets.push(asset);
            }
            Err(wrong) => {
                persisted.error.get_or_insert(wrong);
                persisted.outputs.push(inline(output));
            }
        }
    }
    persisted
}

async fn upload(
    assets: &Assets,
    caller: &Caller,
    header: UploadHeader,
    bytes: Bytes,
    pauses: &[Duration],
    stop: &Stop,
) -> Result<Asset, String> {
    let mut pauses = pauses.iter();
    loop {
        let status = match assets.upload(caller, header.clone(), bytes.clone()).await {
            Ok(asset) => return Ok(asset),
            Err(status) => status,
        };
        let final_answer = matches!(
            status.code(),
            Code::InvalidArgument | Code::OutOfRange | Code::PermissionDenied | Code::NotFound
        );
        tracing::warn!(code = ?status.code(), "an output could not be stored");
        let Some(pause) = pauses.next().filter(|_| !final_answer) else {
            return Err(status.message().to_owned());
        };
        if stop
            .token()
            .run_until_cancelled(tokio::time::sleep(*pause))
            .await
            .is_none()
        {
            return Err("the call was stopped before its output was stored".to_owned());
        }
    }
}

fn header(plan: &Plan, output: &Output, mime: &str, index: usize, many: bool) -> UploadHeader {
    let id = plan.id.to_string();
    let origin = &plan.origin;
    UploadHeader {
        name: Some(name(plan, extension(mime), many.then_some(index + 1))),
        content_type: Some(mime.to_owned()),
        idempotency_key: Some(format!("generation:{id}:{index}")),
        job_id: origin.job_id.clone(),
        node_id: origin.node_id.clone(),
        workflow_id: origin.workflow_id.clone(),
        generation_ids: vec![id],
        metadata: Some(metadata(plan, output, index)),
    }
}

fn metadata(plan: &Plan, output: &Output, index: usize) -> MapValue {
    let mut facts = Map::from([
        ("generation_id".to_owned(), Value::from(plan.id.to_string())),
        ("output_key".to_owned(), "output".into()),
        (
            "output_index".to_owned(),
            Value::Int(i64::try_from(index).unwrap_or(0)),
        ),
        ("provider".to_owned(), plan.provider.id().into()),
        ("model".to_owned(), plan.model.as_str().into()),
        ("capability".to_owned(), plan.capability.as_str().into()),
    ]);
    if let Some(prompt) = plan.redacted.get("prompt").or_else(|| plan.redacted.get("text")) {
        facts.insert("prompt".to_owned(), prompt.clone());
    }
    facts.insert("params".to_owned(), Value::map(plan.redacted.clone()));
    for (key, id) in [
        ("job_id", &plan.origin.job_id),
        ("node_id", &plan.origin.node_id),
        ("workflow_id", &plan.origin.workflow_id),
    ] {
        if let Some(id) = id {
            facts.insert(key.to_owned(), id.as_str().into());
        }
    }
    if let Output::Media(Media { extra, .. }) = output {
        for (key, fact) in extra {
            facts.entry(key.clone()).or_insert_with(|| fact.clone());
        }
    }
    (&facts).into()
}

/// `<capability>-<id8>.<ext>` or the name that was asked for, with `-1`, `-2`, … before the extension when there are
/// several. The eight letters are the last of the id: its first ones are the time, and calls come in bursts.
fn name(plan: &Plan, extension: &str, number: Option<usize>) -> String {
    let id = plan.id.to_string();
    let short = id.get(id.len().saturating_sub(8)..).unwrap_or(&id);
    let base = plan
        .name
        .clone()
        .unwrap_or_else(|| format!("{}-{short}", plan.capability.as_str()));
    let known = format!(".{extension}");
    let (stem, ending) = match base.rsplit_once('.') {
        Some((stem, own)) if !stem.is_empty() && own.len() <= 5 && !own.contains(' ') => {
            (stem.to_owned(), format!(".{own}"))
        }
        Some(_) | None => (base, known),
    };
    number.map_or_else(
        || format!("{stem}{ending}"),
        |number| format!("{stem}-{number}{ending}"),
    )
}

fn extension(mime: &str) -> &'static str {
    match mime.split(';').next().unwrap_or_default().trim() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/webp" => "webp",
        "image/gif" => "gif",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/ogg" | "audio/opus" => "ogg",
        "audio/flac" => "flac",
        "audio/aac" => "aac",
        "video/mp4" => "mp4",
        "video/webm" => "webm",
        "video/x-msvideo" => "avi",
        "model/gltf-binary" => "glb",
        "text/plain" => "txt",
        "application/json" => "json",
        _ => "bin",
    }
}

fn stored(output: Output, asset: &Asset) -> Value {
    match output {
        Output::Value(value) => value,
        Output::Text(text) => text.into(),
        Output::Media(media) => {
            let by_asset = reference(asset);
            Value::media(MediaRef {
                kind: media.kind.to_owned(),
                extra: media.extra,
                ..by_asset
            })
        }
    }
}

fn inline(output: Output) -> Value {
    match output {
        Output::Value(value) => value,
        Output::Text(text) => text.into(),
        Output::Media(media) => Value::media(MediaRef {
            kind: media.kind.to_owned(),
            uri: String::new(),
            asset_id: None,
            data: Some(media.bytes),
            mime_type: Some(media.mime),
            extra: media.extra,
        }),
    }
}
