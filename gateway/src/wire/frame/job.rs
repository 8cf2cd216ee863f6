//! `job_update`: the state of a run (wire specification 3.3).

use atelier_proto::kernel::v1::{Issue, JobStatus, JobUpdate};
use atelier_proto::time::seconds;
use atelier_proto::value::{Map, Value};

use super::{Class, Frame, Stamp, supervision};
use crate::wire::{value, words};

pub(super) fn update(stamp: &Stamp<'_>, update: JobUpdate) -> Frame {
    let JobUpdate {
        status,
        error,
        error_code,
        result,
        duration,
        queue_position,
        message,
        issues,
        interventions,
    } = update;
    let mut body = stamp.body("job_update");
    body.put("status", words::job_status(status));
    let position = queue_position.filter(|_| status == i32::from(JobStatus::Queued));
    if let Some(position) = position {
        body.put("queue_position", position);
    }
    let waiting = position.map(|position| format!("Queued (#{position})"));
    body.optional("message", message.as_deref().or(waiting.as_deref()));
    let terminal = words::is_terminal(status);
    if terminal {
        body.nullable("error", error.as_deref());
    } else {
        body.optional("error", error.as_deref());
    }
    body.optional("error_code", error_code.as_deref());
    if let Some(duration) = &duration {
        body.put("duration", seconds(duration));
    }
    if !issues.is_empty() {
        body.put(
            "validation_issues",
            Value::list(issues.iter().map(issue).collect()),
        );
    }
    if !interventions.is_empty() {
        let listed = interventions.iter().map(supervision::intervention);
        body.put("interventions", Value::list(listed.collect()));
    }
    if status == i32::from(JobStatus::Completed) {
        body.put(
            "result",
            outputs(value::map_for(result, stamp.user_id).unwrap_or_default()),
        );
    }
    Frame {
        terminal,
        ..stamp.frame("job_update", Class::Keep, body)
    }
}

/// The result of a run: its values below `outputs`, also when they came without it.
fn outputs(result: Map) -> Value {
    let wrapped = result.len() == 1
        && result
            .get("outputs")
            .is_some_and(|inner| inner.as_map().is_some());
    if wrapped {
        result.into()
    } else {
        Map::from_iter([("outputs".to_owned(), result.into())]).into()
    }
}

fn issue(issue: &Issue) -> Value {
    let Issue {
        code,
        node_id,
        node_type,
        property,
        message,
    } = issue;
    let mut out = Map::new();
    out.insert("node_id".to_owned(), node_id.as_str().into());
    if !node_type.is_empty() {
        out.insert("node_type".to_owned(), node_type.as_str().into());
    }
    out.insert("property".to_owned(), property.as_str().into());
    out.insert("message".to_owned(), message.as_str().into());
    if !code.is_empty() {
        out.insert("code".to_owned(), code.as_str().into());
    }
    out.into()
}
