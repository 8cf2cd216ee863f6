//! A run's events: appended in segments, read by cursor; committed artifacts with their index.
//!
//! What lives here: the tables behind it and the live tail that readers wait on. What does not: which events there are and
//! how they are numbered (`relay/`), and the run's row (`jobs/`), except for what must change together with the log.

mod append;
mod known;
mod live;
mod past;
mod read;
mod recall;
mod recent;
mod stretch;

pub use append::{AT_ONCE, Append, ArtifactRow, Checkpoint, FramesRow, JobPatch, Segment, apply};
pub use known::{Known, mark};
pub use live::{Live, LiveJobs, Newest};
pub use past::{Past, walk};
pub use read::{Reader, count_after, unpublished};
pub use recall::{Load, Recall};

use atelier_proto::kernel::v1::JobEvent;
use prost::Message;

use crate::error::Error;

/// Ends the key of an invocation under which its result is kept, not its frames. No key of an invocation ends so.
const RESULT: char = '=';

/// The key under which the result of an invocation is kept whose event is not in the log.
#[must_use]
pub fn result_key(invocation: &str) -> String {
    format!("{invocation}{RESULT}")
}

/// Encodes events one after the other, each with its length before it.
#[must_use]
pub fn encode<'a>(events: impl IntoIterator<Item = &'a JobEvent>) -> Vec<u8> {
    let mut payload = Vec::new();
    for event in events {
        payload.extend_from_slice(&event.encode_length_delimited_to_vec());
    }
    payload
}
/// Reads what [`encode`] wrote.
///
/// # Errors
/// The payload is damaged.
pub fn decode(payload: Vec<u8>) -> Result<Vec<JobEvent>, Error> {
    let mut payload = bytes::Bytes::from(payload);
    let mut events = Vec::new();
    while !payload.is_empty() {
        events.push(JobEvent::decode_length_delimited(&mut payload).map_err(|_| Error::DamagedLog)?);
    }
    Ok(events)
}
