//! What workers say about their invocations.

use atelier_proto::{
    kernel::v1::{
        FrameReceipt, InvocationCancel, InvocationFrame, MediaPart, connect_response::Message as Said,
    },
    value::MediaRef,
};

use super::Call;
use crate::workers::{
    FRAME_WINDOW,
    frame::Frame,
    hub::{Hub, State, WorkerKey},
};

/// Fetches of one invocation that may wait.
const MAX_FETCHES: usize = 8;
/// Receipts for inputs of one invocation that were not looked at yet.
const MAX_RECEIPTS: usize = 4_096;

impl Hub {
    /// A frame came over a worker's stream. The answer, if there is one; the error ends the stream.
    pub fn frame(&self, key: &WorkerKey, frame: InvocationFrame) -> Result<Option<Said>, String> {
        let InvocationFrame {
            invocation_id,
            ordinal,
            body,
        } = frame;
        let mut state = self.lock();
        let Some(call) = state.call_of(key, &invocation_id) else {
            return Ok(Some(forgotten(invocation_id)));
        };
        if ordinal < call.arrived {
            let receipt = FrameReceipt {
                invocation_id,
                next_frame: call.accepted,
                closed: false,
            };
            return Ok((ordinal < call.accepted).then_some(Said::FrameReceipt(receipt)));
        }
        if ordinal > call.arrived {
            return Err(format!(
                "frame: ordinal {ordinal} came where {} was due",
                call.arrived
            ));
        }
        if call.arrived - call.accepted >= FRAME_WINDOW {
            return Err(format!(
                "frame: more than {FRAME_WINDOW} frames are not accepted yet"
            ));
        }
        if call.ended {
            return Err("frame: one came after the last one".to_owned());
        }
        call.arrived += 1;
        call.fruitless = 0;
        let frame = match Frame::read(body) {
            Ok(frame) => frame,
            Err(wrong) => {
                call.protocol(&format!("something that is no value: {wrong}"));
                return Ok(None);
            }
        };
        call.ended = frame.is_last();
        let frame = if !frame.is_yield() {
            frame
        } else if call.repeats > 0 {
            call.repeats -= 1;
            frame.repeated()
        } else {
            call.yields += 1;
            frame
        };
        call.frames.push_back((call.attempt, frame));
        call.changed.notify_one();
        Ok(None)
    }
    /// A node has read inputs. An error ends the stream.
    pub fn read(&self, key: &WorkerKey, invocation_id: &str, numbers: &[i64]) -> Result<(), String> {
        let mut state = self.lock();
        let Some(call) = state.call_of(key, invocation_id) else {
            return Ok(());
        };
        if call.read.len() + numbers.len() > MAX_RECEIPTS {
            return Err(format!(
                "input_receipt: more than {MAX_RECEIPTS} numbers at a time"
            ));
        }
        call.read.extend_from_slice(numbers);
        call.changed.notify_one();
        Ok(())
    }
    /// A worker asks for bytes.
    pub fn fetch(
        &self,
        key: &WorkerKey,
        invocation_id: String,
        fetch_id: i64,
        media: MediaRef,
    ) -> Option<Said> {
        let mut state = self.lock();
        let Some(call) = state.call_of(key, &invocation_id) else {
            return Some(forgotten(invocation_id));
        };
        if call.fetches.len() >= MAX_FETCHES {
            return Some(Said::MediaPart(MediaPart {
                invocation_id,
                fetch_id,
                last: true,
                error: Some(format!("at most {MAX_FETCHES} fetches may be open at a time")),
                ..MediaPart::default()
            }));
        }
        if call.fetches.iter().all(|(other, _)| *other != fetch_id) {
            call.fetches.push_back((fetch_id, media));
            call.changed.notify_one();
        }
        None
    }
}
impl State {
    fn call_of(&mut self, key: &WorkerKey, invocation_id: &str) -> Option<&mut Call> {
        let number = self.calls.by_id.get(invocation_id)?;
        let call = self.calls.all.get_mut(number)?;
        (call.worker.as_ref() == Some(key)).then_some(call)
    }
}
fn forgotten(invocation_id: String) -> Said {
    Said::Cancel(InvocationCancel {
        invocation_id,
        forgotten: true,
    })
}
