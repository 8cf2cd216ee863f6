//! From bare events to the messages of the contract.

use std::time::Duration;

use atelier_proto::{
    kernel::v1::{
        Chunk, Disposition, EdgeUpdate, ErrorDetail, GenerationComplete, Issue, JobStatus, JobUpdate,
        LogUpdate, NodeProgress, NodeStatus, NodeUpdate, OutputUpdate, Prediction, Severity,
        job_event::Event as Frame,
    },
    time,
    value::{Map, Value},
};

use super::supervision;
use crate::{
    event::{Event, NodeLabel, Note},
    run::Suspension,
};

/// Longest text of an error that goes out, in characters.
const MAX_ERROR_CHARS: usize = 4_000;

/// Reason of a run whose graph or parameters are wrong.
pub(super) const INVALID_INPUT: &str = "INVALID_INPUT";

/// A frame, and what the log keeps of it.
pub(super) struct Converted {
    pub(super) frame: Frame,
    pub(super) kept: Kept,
}
/// What the log keeps of a frame.
pub(super) enum Kept {
    /// All of it.
    All,
    /// This instead: without what is only to be looked at once.
    Instead(Box<Frame>),
    /// Nothing.
    Nothing,
}
fn kept(frame: Frame) -> Converted {
    Converted {
        frame,
        kept: Kept::All,
    }
}

/// The frames of an event; a warning of a node also becomes a line of its log.
pub(super) fn frames(event: Event, index: Option<i64>, elapsed: Duration) -> Vec<Converted> {
    match event {
        Event::Queued { position } => vec![kept(Frame::JobUpdate(queued(position)))],
        Event::Job {
            status,
            error,
            error_code,
            outputs,
            issues,
            suspensions,
        } => {
            let ended = !matches!(
                status,
                JobStatus::Running | JobStatus::Queued | JobStatus::Unspecified
            );
            vec![kept(Frame::JobUpdate(JobUpdate {
                status: status.into(),
                error: error.as_deref().map(clean_error),
                error_code: if issues.is_empty() {
                    error_code
                } else {
                    Some(INVALID_INPUT.to_owned())
                },
                result: outputs
                    .map(|outputs| Map::from_iter([("outputs".to_owned(), Value::map(outputs))]))
                    .or_else(|| suspended(&suspensions))
                    .map(|result| (&result).into()),
                duration: ended.then(|| time::proto_duration(elapsed)),
                queue_position: None,
                message: None,
                issues,
                interventions: Vec::new(),
            }))]
        }
        Event::Node {
            node,
            status,
            result,
            error,
            detail,
            properties,
        } => {
            let mut out = Vec::new();
            let error = error
                .as_deref()
                .map(clean_error)
                .filter(|error| !error.is_empty());
            if status == NodeStatus::Warning
                && let Some(text) = &error
            {
                out.push(kept(Frame::LogUpdate(log_line(
                    &node,
                    text.clone(),
                    Severity::Warning,
                ))));
            }
            out.push(kept(Frame::NodeUpdate(NodeUpdate {
                node_id: node.id.to_string(),
                node_name: node.name.as_ref().unwrap_or(&node.node_type).to_string(),
                node_type: node.node_type.to_string(),
                status: status.into(),
                result: result.as_ref().map(Into::into),
                error,
                error_detail: detail.and_then(|detail| {
                    detail.code.clone().map(|code| ErrorDetail {
                        code,
                        provider: detail.provider.clone(),
                        secret_key: detail.secret_key.clone(),
                        generation_id: detail.generation_id.clone(),
                        runtime_package: detail.runtime_package.clone(),
                    })
                }),
                properties: Some(properties.as_ref().into()),
            })));
            out
        }
        Event::Artifact {
            node,
            invocation: _,
            outputs,
            properties,
            generation_ids,
        } => {
            vec![kept(Frame::GenerationComplete(GenerationComplete {
                node_id: node.id.to_string(),
                node_name: node.name.as_ref().unwrap_or(&node.node_type).to_string(),
                node_type: node.node_type.to_string(),
                index: index.unwrap_or(0),
                outputs: Some(outputs.as_ref().into()),
                properties: properties.as_ref().map(Into::into),
                generation_ids,
            }))]
        }
        Event::Output {
            node,
            output_name,
            value,
            output_type,
            disposition,
            done,
        } => {
            let kept = if is_audio_chunk(&value) {
                Kept::Nothing
            } else {
                Kept::All
            };
            let frame = Frame::OutputUpdate(OutputUpdate {
                node_id: node.id.to_string(),
                node_name: node.name.as_ref().unwrap_or(&node.id).to_string(),
                output_name: output_name.to_string(),
                value: Some((&value).into()),
                output_type: output_type.to_string(),
                disposition: disposition.into(),
                done,
            });
            vec![Converted { frame, kept }]
        }
        Event::Edge {
            edge_id,
            status,
            counter,
        } => {
            vec![kept(Frame::EdgeUpdate(EdgeUpdate {
                edge_id: edge_id.to_string(),
                status: status.into(),
                counter,
            }))]
        }
        Event::Supervision {
            node,
            escalation,
            decision,
        } => vec![kept(supervision::frame(&node, &escalation, decision))],
        Event::Note { node, note } => vec![note_frame(&node, note)],
        // Kept for a later process only.
        Event::Frames { .. } => Vec::new(),
    }
}
/// What a suspended run says it waits for: the first node of all, and every one of them when there are more.
fn suspended(suspensions: &[Suspension]) -> Option<Map> {
    let mut result = Map::from_iter([("suspend".to_owned(), Value::map(suspension(suspensions.first()?)))]);
    if suspensions.len() > 1 {
        let all = suspensions.iter().map(|found| Value::map(suspension(found)));
        result.insert("suspensions".to_owned(), Value::list(all.collect()));
    }
    Some(result)
}
/// What a run waits for, as its row keeps it: the first node as subscribers see it, the `others` beside it, and with each of
/// them its invocation.
pub(super) fn kept_suspensions(suspensions: &[Suspension]) -> Option<Map> {
    let whole = |found: &Suspension| {
        let mut map = suspension(found);
        map.insert("invocation".to_owned(), Value::from(&*found.invocation));
        map
    };
    let (first, others) = suspensions.split_first()?;
    let mut kept = whole(first);
    if !others.is_empty() {
        let others = others.iter().map(|found| Value::map(whole(found)));
        kept.insert("others".to_owned(), Value::list(others.collect()));
    }
    Some(kept)
}
/// What a run waits for, as subscribers see it.
fn suspension(suspension: &Suspension) -> Map {
    let Suspension {
        node_id,
        invocation: _,
        reason,
        state,
        metadata,
    } = suspension;
    [
        ("node_id".to_owned(), Value::from(&**node_id)),
        ("reason".to_owned(), Value::from(reason.as_str())),
        ("state".to_owned(), Value::map(state.clone())),
        ("metadata".to_owned(), Value::map(metadata.clone())),
    ]
    .into_iter()
    .collect()
}
fn note_frame(node: &NodeLabel, note: Note) -> Converted {
    match note {
        Note::Progress {
            progress,
            total,
            preview,
        } => {
            let plain = NodeProgress {
                node_id: node.id.to_string(),
                progress,
                total,
                preview: None,
            };
            match preview {
                None => kept(Frame::NodeProgress(plain)),
                Some(preview) => {
                    let shown = NodeProgress {
                        preview: Some((&preview).into()),
                        ..plain.clone()
                    };
                    let kept = Kept::Instead(Box::new(Frame::NodeProgress(plain)));
                    Converted {
                        frame: Frame::NodeProgress(shown),
                        kept,
                    }
                }
            }
        }
        Note::Log { content, severity } => {
            kept(Frame::LogUpdate(log_line(node, clean_error(&content), severity)))
        }
        Note::Prediction(generation) => kept(Frame::Prediction(Prediction {
            node_id: node.id.to_string(),
            node_type: node.node_type.to_string(),
            generation: Some(*generation),
        })),
        Note::Chunk {
            content,
            done,
            thinking,
        } => kept(Frame::Chunk(Chunk {
            node_id: node.id.to_string(),
            content_type: "text".to_owned(),
            content,
            done,
            thinking,
        })),
    }
}
fn log_line(node: &NodeLabel, content: String, severity: Severity) -> LogUpdate {
    LogUpdate {
        node_id: node.id.to_string(),
        node_name: node.name.as_ref().unwrap_or(&node.id).to_string(),
        content,
        severity: severity.into(),
    }
}
fn queued(position: u32) -> JobUpdate {
    JobUpdate {
        status: JobStatus::Queued.into(),
        queue_position: i32::try_from(position).ok(),
        message: Some(format!("Queued (#{position})")),
        ..JobUpdate::default()
    }
}
fn is_audio_chunk(value: &Value) -> bool {
    let Some(chunk) = value.as_map() else { return false };
    let is = |key: &str, text: &str| chunk.get(key).and_then(Value::as_str) == Some(text);
    is("type", "chunk") && is("content_type", "audio")
}
/// One display value per result of a run that showed none, typed by a guess.
pub(super) fn guessed_outputs(outputs: &Map) -> Vec<OutputUpdate> {
    let values = outputs.iter().flat_map(|(name, values)| {
        values
            .as_list()
            .unwrap_or_default()
            .iter()
            .map(move |value| (name, value))
    });
    values
        .map(|(name, value)| OutputUpdate {
            node_id: name.clone(),
            node_name: name.clone(),
            output_name: "output".to_owned(),
            value: Some(value.into()),
            output_type: guessed_type(value).to_owned(),
            disposition: Disposition::Replace.into(),
            done: false,
        })
        .collect()
}
fn guessed_type(value: &Value) -> &str {
    match value {
        Value::Null | Value::Bytes(_) => "any",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Float(_) => "float",
        Value::Str(_) => "str",
        Value::List(_) => "list",
        Value::Map(_) => "dict",
        Value::Media(media) => &media.kind,
    }
}
/// The issues of a graph as JSON, for the run's row.
pub(super) fn issues_json(issues: &[Issue]) -> String {
    let issues = issues.iter().map(|issue| {
        let Issue {
            code,
            node_id,
            node_type,
            property,
            message,
        } = issue;
        serde_json::json!({"code": code, "node_id": node_id, "node_type": node_type, "property": property,
            "message": message})
    });
    serde_json::Value::Array(issues.collect()).to_string()
}
/// An error as it may go out: bounded, without embedded media, and without what PostgreSQL has no text for.
pub(super) fn clean_error(text: &str) -> String {
    let text = text.replace('\0', "\u{fffd}");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("data:") {
        let (before, media) = rest.split_at(at);
        out.push_str(before);
        let end = media
            .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ')' | '>'))
            .unwrap_or(media.len());
        let (uri, after) = media.split_at(end);
        if uri.contains("base64,") {
            out.push_str("data:…")
        } else {
            out.push_str(uri)
        }
        rest = after;
    }
    out.push_str(rest);
    match out.char_indices().nth(MAX_ERROR_CHARS) {
        Some((end, _)) => out.get(..end).unwrap_or_default().to_owned(),
        None => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w_076_errors_are_bounded_and_carry_no_media() {
        let text = format!(
            "bad image data:image/png;base64,{} in prompt",
            "A".repeat(100_000)
        );
        let clean = clean_error(&text);
        assert_eq!(clean, "bad image data:… in prompt");
        assert_eq!(clean_error(&"x".repeat(100_000)).chars().count(), MAX_ERROR_CHARS);
        assert_eq!(clean_error("the data: is odd"), "the data: is odd");
    }
    #[test]
    fn w_080_results_without_a_display_are_guessed() {
        let outputs: Map = [("seven".to_owned(), Value::list(vec![Value::Int(7)]))]
            .into_iter()
            .collect();
        let guessed = guessed_outputs(&outputs);
        assert_eq!(guessed.len(), 1);
        assert_eq!(
            (guessed[0].output_name.as_str(), guessed[0].output_type.as_str()),
            ("output", "int")
        );
    }
}
