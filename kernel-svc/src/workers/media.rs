//! Media of an invocation: inline bytes stay here and go to the worker as references that it may fetch; bytes that the
//! worker makes arrive in parts and take the place of the references to them.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use atelier_proto::value::{Map, MediaRef, Value};
use bytes::{Bytes, BytesMut};

use super::MAX_UPLOAD;
use crate::node::NodeError;

/// Inline media up to this size go with the message, in bytes.
const SMALL: usize = 4 * 1024;
/// Inline media that one invocation keeps for fetching, in bytes; of a longer stream the oldest are let go.
const MAX_INLINE: usize = 128 * 1024 * 1024;
/// Uploads of one invocation that no frame has used yet.
const MAX_UPLOADS: usize = 256;
/// Deepest nesting of values; deeper ones were refused before they came here.
const MAX_DEPTH: usize = 80;
const INLINE: &str = "inline:";
const UPLOAD: &str = "upload:";

/// Media of one invocation.
#[derive(Default)]
pub(super) struct Media {
    inline: VecDeque<(u64, Bytes)>,
    inline_bytes: usize,
    next: u64,
    uploads: HashMap<i64, BytesMut>,
    upload_bytes: usize,
}
impl Media {
    /// Values as they go to the worker.
    pub fn refer_all(&mut self, values: &Map) -> Map {
        let refer = |(name, value): (&String, &Value)| (name.clone(), self.refer(value));
        values.iter().map(refer).collect()
    }
    /// A value as it goes to the worker.
    pub fn refer(&mut self, value: &Value) -> Value {
        walk(value, 0, &mut |media| {
            let data = media.data.as_ref().filter(|data| data.len() > SMALL)?;
            let uri = format!("{INLINE}{}", self.keep(data.clone()));
            Some(MediaRef {
                uri,
                data: None,
                ..media.clone()
            })
        })
    }
    fn keep(&mut self, data: Bytes) -> u64 {
        self.inline_bytes += data.len();
        self.next += 1;
        self.inline.push_back((self.next, data));
        while self.inline_bytes > MAX_INLINE && self.inline.len() > 1 {
            if let Some((_, gone)) = self.inline.pop_front() {
                self.inline_bytes -= gone.len();
            }
        }
        self.next
    }
    /// Bytes that went as a reference: `None` for other references.
    pub fn inline(&self, media: &MediaRef) -> Option<Result<Bytes, NodeError>> {
        let number: Option<u64> = media.uri.strip_prefix(INLINE)?.parse().ok();
        let found = self.inline.iter().find(|(own, _)| Some(*own) == number);
        let gone = || NodeError::new(format!("the bytes of {} are not kept any more", media.uri));
        Some(found.map(|(_, data)| data.clone()).ok_or_else(gone))
    }
    /// Takes a part of an upload.
    pub fn part(&mut self, upload: i64, data: &Bytes) -> Result<(), NodeError> {
        let known = self.uploads.contains_key(&upload);
        if self.upload_bytes + data.len() > MAX_UPLOAD || (!known && self.uploads.len() >= MAX_UPLOADS) {
            let text = format!("a node may give out at most {MAX_UPLOAD} bytes of media at a time");
            return Err(NodeError::new(text).code("worker.too_large"));
        }
        self.upload_bytes += data.len();
        self.uploads.entry(upload).or_default().extend_from_slice(data);
        Ok(())
    }
    /// Another attempt starts: uploads of the earlier one are void.
    pub fn restart(&mut self) {
        self.uploads.clear();
        self.upload_bytes = 0;
    }
    /// Values of the worker with bytes in the place of references to uploads and to inline media.
    pub fn resolve_all(&mut self, values: &Map) -> Result<Map, NodeError> {
        let (mut wrong, mut used) = (None, HashMap::new());
        let resolved = values
            .iter()
            .map(|(name, value)| {
                (
                    name.clone(),
                    walk(value, 0, &mut |media| self.resolve(media, &mut used, &mut wrong)),
                )
            })
            .collect();
        wrong.map_or(Ok(resolved), Err)
    }
    fn resolve(
        &mut self,
        media: &MediaRef,
        used: &mut HashMap<i64, Bytes>,
        wrong: &mut Option<NodeError>,
    ) -> Option<MediaRef> {
        let data = if let Some(number) = media.uri.strip_prefix(UPLOAD) {
            let number = number.parse().ok();
            if let Some(known) = number.and_then(|number| used.get(&number)) {
                Ok(known.clone())
            } else {
                let taken = number.and_then(|number| Some((number, self.uploads.remove(&number)?)));
                let unknown = || {
                    NodeError::new(format!(
                        "{} was not sent before the frame that names it",
                        media.uri
                    ))
                };
                taken.ok_or_else(unknown).map(|(number, data)| {
                    self.upload_bytes -= data.len();
                    let data = data.freeze();
                    used.insert(number, data.clone());
                    data
                })
            }
        } else {
            self.inline(media)?
        };
        match data {
            Ok(data) => Some(MediaRef {
                uri: String::new(),
                data: Some(data),
                ..media.clone()
            }),
            Err(error) => {
                *wrong = Some(error.code("worker.protocol"));
                None
            }
        }
    }
}
/// A value with other media: `None` keeps a reference. Maps and lists without media are shared, not copied.
fn walk(value: &Value, depth: usize, change: &mut dyn FnMut(&MediaRef) -> Option<MediaRef>) -> Value {
    if depth > MAX_DEPTH {
        return value.clone();
    }
    match value {
        Value::Media(media) => change(media).map_or_else(|| Value::Media(Arc::clone(media)), Value::media),
        Value::List(values) if values.iter().any(may_hold) => Value::list(
            values
                .iter()
                .map(|value| walk(value, depth + 1, change))
                .collect(),
        ),
        Value::Map(map) if map.values().any(may_hold) => {
            let entry = |(name, value): (&String, &Value)| (name.clone(), walk(value, depth + 1, change));
            Value::map(map.iter().map(entry).collect())
        }
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Str(_)
        | Value::Bytes(_)
        | Value::List(_)
        | Value::Map(_) => value.clone(),
    }
}
fn may_hold(value: &Value) -> bool {
    matches!(value, Value::Media(_) | Value::List(_) | Value::Map(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(data: usize) -> Value {
        Value::media(MediaRef {
            kind: "image".to_owned(),
            data: Some(vec![7; data].into()),
            ..MediaRef::default()
        })
    }
    #[test]
    fn large_inline_media_go_as_references_and_come_back_as_bytes() {
        let mut media = Media::default();
        let values: Map = [("a".to_owned(), Value::list(vec![image(SMALL + 1), image(3)]))].into();
        let sent = media.refer_all(&values);
        let refs = sent["a"].as_list().unwrap();
        assert_eq!(refs[0].as_media().unwrap().uri, "inline:1");
        assert!(refs[1].as_media().unwrap().data.is_some());
        assert_eq!(media.resolve_all(&sent).unwrap(), values);
    }
    #[test]
    fn uploads_are_bounded_used_once_and_must_be_there() {
        let mut media = Media::default();
        media.part(1, &Bytes::from_static(b"ab")).unwrap();
        media.part(1, &Bytes::from_static(b"cd")).unwrap();
        let refer = |uri: &str| {
            let uri = uri.to_owned();
            Value::media(MediaRef {
                uri,
                ..MediaRef::default()
            })
        };
        let values: Map = [
            ("x".to_owned(), refer("upload:1")),
            ("y".to_owned(), refer("upload:1")),
        ]
        .into();
        let resolved = media.resolve_all(&values).unwrap();
        assert_eq!(
            resolved["y"].as_media().unwrap().data.as_deref(),
            Some(&b"abcd"[..])
        );
        assert!(
            media
                .resolve_all(&values)
                .unwrap_err()
                .message
                .contains("upload:1")
        );
        assert_eq!(media.upload_bytes, 0);
        assert!(media.part(2, &vec![0; MAX_UPLOAD + 1].into()).is_err());
    }
}
