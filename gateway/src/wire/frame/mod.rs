//! Events of a run as the flat objects of the wire (wire specification 3): `type`, `job_id`, `workflow_id`, `job_seq`,
//! then the fields of the type. One file per family.

mod job;
mod node;
mod prediction;
mod supervision;

use atelier_proto::kernel::v1::{JobEvent, job_event::Event};
use atelier_proto::value::{BytesForm, Map, Value, to_json};

use super::words;

/// How a frame may be treated when its reader is slow. In the order in which kinds are given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// A piece of audio to play.
    Audio,
    /// How far a node is.
    Progress,
    /// Traffic on an edge.
    Edge,
    /// Everything else is never given up silently.
    Keep,
}

/// One frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    /// The type.
    pub(crate) kind: &'static str,
    /// The number in the run; absent on refusals.
    pub(crate) seq: Option<i64>,
    /// What a full queue may do to it.
    pub(crate) class: Class,
    /// Whether the run is over with this.
    pub(crate) terminal: bool,
    /// All of its keys.
    pub(crate) body: Map,
}

impl Frame {
    /// The JSON of the frame, bytes as arrays of integers.
    pub(crate) fn json(&self) -> serde_json::Value {
        to_json(&Value::map(self.body.clone()), BytesForm::Integers)
    }
}

/// What every frame of a run carries.
pub(crate) struct Stamp<'a> {
    /// The run.
    pub(crate) job_id: &'a str,
    /// The workflow that was named when it was started.
    pub(crate) workflow_id: Option<&'a str>,
    /// The number in the run.
    pub(crate) seq: Option<i64>,
    /// Whose run it is.
    pub(crate) user_id: &'a str,
}

impl Stamp<'_> {
    /// A body with the stamps.
    fn body(&self, kind: &'static str) -> Body {
        let mut body = Body(Map::new());
        body.put("type", kind);
        body.put("job_id", self.job_id);
        body.put("workflow_id", self.workflow_id.map_or(Value::Null, Into::into));
        if let Some(seq) = self.seq {
            body.put("job_seq", seq);
        }
        body
    }

    fn frame(&self, kind: &'static str, class: Class, body: Body) -> Frame {
        Frame {
            kind,
            seq: self.seq,
            class,
            terminal: false,
            body: body.0,
        }
    }
}

/// A frame in the making.
pub(crate) struct Body(Map);

impl Body {
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    /// Puts a text that may be null and is always there; empty counts as null.
    fn nullable(&mut self, key: &str, text: Option<&str>) {
        self.put(
            key,
            text.filter(|text| !text.is_empty())
                .map_or(Value::Null, Into::into),
        );
    }

    /// Puts a text only when there is one.
    fn optional(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.put(key, text);
        }
    }
}

/// The frame of an event; none for a gap.
pub(crate) fn frame(event: JobEvent, user_id: &str) -> Option<Frame> {
    let JobEvent {
        seq,
        job_id,
        workflow_id,
        published_at: _,
        event,
    } = event;
    let stamp = Stamp {
        job_id: &job_id,
        workflow_id: workflow_id.as_deref(),
        seq: Some(seq),
        user_id,
    };
    Some(match event? {
        Event::JobUpdate(update) => job::update(&stamp, update),
        Event::NodeUpdate(update) => node::update(&stamp, update),
        Event::GenerationComplete(complete) => node::complete(&stamp, complete),
        Event::OutputUpdate(update) => node::output(&stamp, update),
        Event::EdgeUpdate(update) => node::edge(&stamp, update),
        Event::NodeProgress(progress) => node::progress(&stamp, progress),
        Event::LogUpdate(line) => node::log(&stamp, &line),
        Event::Chunk(chunk) => node::chunk(&stamp, &chunk),
        Event::Prediction(prediction) => prediction::prediction(&stamp, prediction),
        Event::SupervisorEscalation(asked) => supervision::escalation(&stamp, asked),
        Event::SupervisorDecision(decided) => supervision::decision(&stamp, decided),
        // The numbers that are missing say it.
        Event::Gap(_) => return None,
    })
}

/// A `job_update` that is no event of the run: an early refusal, or the state of a run whose events are gone.
pub(crate) fn job_update(
    job_id: &str,
    workflow_id: Option<&str>,
    status: &'static str,
    error: Option<(&str, Option<&str>)>,
) -> Map {
    let mut body = Stamp {
        job_id,
        workflow_id,
        seq: None,
        user_id: "",
    }
    .body("job_update");
    body.put("status", status);
    if let Some((text, code)) = error {
        body.put("error", text);
        body.optional("error_code", code);
    }
    body.0
}

/// Whether an event ends the run.
pub(crate) fn ends(event: &JobEvent) -> bool {
    matches!(&event.event, Some(Event::JobUpdate(update)) if words::is_terminal(update.status))
}

#[cfg(test)]
mod tests;
