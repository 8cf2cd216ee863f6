//! Frames about a node: its life, its artifacts, what to show, its edges, its log (wire specification 3.4).

use atelier_proto::kernel::v1::{
    Chunk, EdgeUpdate, ErrorDetail, GenerationComplete, LogUpdate, NodeProgress, NodeStatus, NodeUpdate,
    OutputUpdate,
};
use atelier_proto::value::{Map, MediaRef, Value};

use super::{Class, Frame, Stamp};
use crate::wire::{value, words};

/// A node's life. The text of a warning is no error here: clients take any error of a node for the end of the run. The
/// kernel tells it as a line of the log just before.
pub(super) fn update(stamp: &Stamp<'_>, update: NodeUpdate) -> Frame {
    let NodeUpdate {
        node_id,
        node_name,
        node_type,
        status,
        result,
        error,
        error_detail,
        properties,
    } = update;
    let state = NodeStatus::try_from(status).unwrap_or_default();
    let mut body = stamp.body("node_update");
    body.put("node_id", node_id);
    body.put("node_name", node_name);
    body.put("node_type", node_type);
    body.put("status", words::node_status(status));
    body.put(
        "result",
        value::map_for(result, stamp.user_id).map_or(Value::Null, Into::into),
    );
    body.nullable("error", error.as_deref().filter(|_| state != NodeStatus::Warning));
    if let Some(detail) = error_detail {
        body.put("error_detail", detail_of(&detail));
    }
    if let Some(properties) = value::map_for(properties, stamp.user_id) {
        body.put("properties", properties);
    }
    if matches!(state, NodeStatus::Completed | NodeStatus::Error) {
        body.put("provider_cost", Value::Null);
    }
    stamp.frame("node_update", Class::Keep, body)
}

fn detail_of(detail: &ErrorDetail) -> Value {
    let ErrorDetail {
        code,
        provider,
        secret_key,
        generation_id,
        runtime_package,
    } = detail;
    let mut out = Map::from_iter([("code".to_owned(), code.as_str().into())]);
    for (key, text) in [
        ("provider", provider),
        ("secret_key", secret_key),
        ("generation_id", generation_id),
        ("runtime_package", runtime_package),
    ] {
        if let Some(text) = text {
            out.insert(key.to_owned(), text.as_str().into());
        }
    }
    out.into()
}

pub(super) fn complete(stamp: &Stamp<'_>, complete: GenerationComplete) -> Frame {
    let GenerationComplete {
        node_id,
        node_name,
        node_type,
        index,
        outputs,
        properties,
        generation_ids,
    } = complete;
    let mut body = stamp.body("generation_complete");
    body.put("node_id", node_id);
    body.put("node_name", node_name);
    body.put("node_type", node_type);
    body.put("index", index);
    body.put(
        "outputs",
        value::map_for(outputs, stamp.user_id).unwrap_or_default(),
    );
    if let Some(properties) = value::map_for(properties, stamp.user_id) {
        body.put("properties", properties);
    }
    if !generation_ids.is_empty() {
        body.put(
            "generation_ids",
            Value::list(generation_ids.into_iter().map(Into::into).collect()),
        );
    }
    stamp.frame("generation_complete", Class::Keep, body)
}

pub(super) fn output(stamp: &Stamp<'_>, update: OutputUpdate) -> Frame {
    let OutputUpdate {
        node_id,
        node_name,
        output_name,
        value: shown,
        output_type,
        disposition,
        done,
    } = update;
    let shown = value::value_for(shown, stamp.user_id);
    let class = if is_audio_chunk(&shown) {
        Class::Audio
    } else {
        Class::Keep
    };
    let mut body = stamp.body("output_update");
    body.put("node_id", node_id);
    body.put("node_name", node_name);
    body.put("output_name", output_name);
    body.put("value", shown);
    body.put("output_type", output_type);
    body.put("metadata", Map::new());
    body.optional("disposition", words::disposition(disposition));
    if done {
        body.put("done", true);
    }
    stamp.frame("output_update", class, body)
}

fn is_audio_chunk(shown: &Value) -> bool {
    let is = |key: &str, text: &str| shown.as_map().and_then(|map| map.get(key)?.as_str()) == Some(text);
    is("type", "chunk") && is("content_type", "audio")
}

pub(super) fn edge(stamp: &Stamp<'_>, update: EdgeUpdate) -> Frame {
    let EdgeUpdate {
        edge_id,
        status,
        counter,
    } = update;
    let mut body = stamp.body("edge_update");
    // Old readers insist on a text here.
    body.put("workflow_id", stamp.workflow_id.unwrap_or_default());
    body.put("edge_id", edge_id);
    body.put("status", words::edge_status(status));
    if let Some(counter) = counter {
        body.put("counter", counter);
    }
    stamp.frame("edge_update", Class::Edge, body)
}

pub(super) fn progress(stamp: &Stamp<'_>, progress: NodeProgress) -> Frame {
    let NodeProgress {
        node_id,
        progress,
        total,
        preview,
    } = progress;
    let mut body = stamp.body("node_progress");
    body.put("node_id", node_id);
    body.put("progress", progress);
    body.put("total", total);
    if let Some(Ok(preview)) = preview.map(MediaRef::try_from) {
        body.put("preview", value::public(&preview.into(), stamp.user_id));
    }
    stamp.frame("node_progress", Class::Progress, body)
}

pub(super) fn log(stamp: &Stamp<'_>, line: &LogUpdate) -> Frame {
    let LogUpdate {
        node_id,
        node_name,
        content,
        severity,
    } = line;
    let mut body = stamp.body("log_update");
    body.put("node_id", node_id.as_str());
    body.put("node_name", node_name.as_str());
    body.put("content", content.as_str());
    body.put("severity", words::severity(*severity));
    stamp.frame("log_update", Class::Keep, body)
}

pub(super) fn chunk(stamp: &Stamp<'_>, chunk: &Chunk) -> Frame {
    let Chunk {
        node_id,
        content_type,
        content,
        done,
        thinking,
    } = chunk;
    let mut body = stamp.body("chunk");
    body.optional("node_id", Some(node_id));
    body.put("content_type", content_type.as_str());
    body.put("content", content.as_str());
    body.put("done", *done);
    if *thinking {
        body.put("thinking", true);
    }
    stamp.frame("chunk", Class::Keep, body)
}
