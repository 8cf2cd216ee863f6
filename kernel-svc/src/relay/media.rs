//! Bytes that were saved once are named by their asset wherever they show up again in the run.

use std::collections::HashMap;

use atelier_proto::{
    common::v1::{ListValue, MapValue, MediaRef, Value, value::Kind},
    kernel::v1::job_event::Event as Frame,
};

/// Digest of inline media.
type Digest = [u8; 32];

/// Media of the run that are stored, by the digest of their bytes.
#[derive(Debug, Default)]
pub(super) struct KnownMedia(HashMap<Digest, MediaRef>);

/// A stored reference and the digest of the bytes that it stands for.
pub(super) type Learned = (Digest, MediaRef);

/// Digest of bytes.
pub(super) fn digest(bytes: &[u8]) -> Digest {
    *blake3::hash(bytes).as_bytes()
}
impl KnownMedia {
    /// Remembers what was saved.
    pub(super) fn learn(&mut self, learned: Vec<Learned>) {
        self.0.extend(learned);
    }
    /// Puts references in the place of bytes, at any depth.
    pub(super) fn apply(&self, frame: &mut Frame) {
        if self.0.is_empty() {
            return;
        }
        match frame {
            Frame::NodeUpdate(update) => self.map(update.result.as_mut()),
            Frame::GenerationComplete(artifact) => self.map(artifact.outputs.as_mut()),
            Frame::JobUpdate(update) => self.map(update.result.as_mut()),
            Frame::OutputUpdate(update) => self.value(update.value.as_mut()),
            Frame::EdgeUpdate(_)
            | Frame::NodeProgress(_)
            | Frame::LogUpdate(_)
            | Frame::Prediction(_)
            | Frame::Chunk(_)
            | Frame::SupervisorEscalation(_)
            | Frame::SupervisorDecision(_)
            | Frame::Gap(_) => {}
        }
    }
    /// The same in a list of values.
    pub(super) fn apply_to(&self, list: &mut ListValue) {
        if !self.0.is_empty() {
            list.values.iter_mut().for_each(|value| self.value(Some(value)));
        }
    }
    fn map(&self, map: Option<&mut MapValue>) {
        for entry in map.into_iter().flat_map(|map| &mut map.entries) {
            self.value(entry.value.as_mut());
        }
    }
    fn value(&self, value: Option<&mut Value>) {
        match value.and_then(|value| value.kind.as_mut()) {
            Some(Kind::ListValue(list)) => list.values.iter_mut().for_each(|value| self.value(Some(value))),
            Some(Kind::MapValue(map)) => self.map(Some(map)),
            Some(Kind::MediaValue(media)) => {
                if let Some(stored) = media.data.as_ref().and_then(|data| self.0.get(&digest(data))) {
                    media.uri.clone_from(&stored.uri);
                    media.asset_id.clone_from(&stored.asset_id);
                    media.mime_type.clone_from(&stored.mime_type);
                    media.data = None;
                }
            }
            _ => {}
        }
    }
}
/// Pairs of inline media before a save and the references after it, walking both in the same order.
pub(super) fn pairs(before: &MapValue, after: &MapValue) -> Vec<Learned> {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    walk_map(before, &mut old);
    walk_map(after, &mut new);
    old.into_iter()
        .zip(new)
        .filter_map(|(old, new)| {
            let data = old.data.as_ref()?;
            new.asset_id.is_some().then(|| {
                (
                    digest(data),
                    MediaRef {
                        data: None,
                        ..new.clone()
                    },
                )
            })
        })
        .collect()
}
fn walk_map<'a>(map: &'a MapValue, out: &mut Vec<&'a MediaRef>) {
    for value in map.entries.iter().filter_map(|entry| entry.value.as_ref()) {
        walk(value, out);
    }
}
fn walk<'a>(value: &'a Value, out: &mut Vec<&'a MediaRef>) {
    match &value.kind {
        Some(Kind::ListValue(list)) => list.values.iter().for_each(|value| walk(value, out)),
        Some(Kind::MapValue(map)) => walk_map(map, out),
        Some(Kind::MediaValue(media)) => out.push(media),
        _ => {}
    }
}
