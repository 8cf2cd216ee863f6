//! Finds the media of an artifact, and puts references in their place (generations specification 13.5). Pure.
//!
//! The walk goes depth first: handles in their order, lists and maps in theirs. Every reference counts, also one that is
//! left as it is, so that the position of a medium does not depend on what could be saved.

use std::sync::Arc;

use atelier_proto::value::{self, BytesForm, MEDIA_KINDS, Map, MediaRef, Value};

use crate::error::Error;

/// Most media in one artifact.
const MAX_LEAVES: usize = 1_000;

/// One medium of an artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    /// The output handle.
    pub handle: String,
    /// Position below the handle.
    pub element: i32,
    /// The reference.
    pub media: MediaRef,
}

/// All media, in order.
///
/// # Errors
/// `Invalid` when there are too many.
pub fn collect(outputs: &Map) -> Result<Vec<Leaf>, Error> {
    let mut leaves = Vec::new();
    replace(outputs, |handle, element, media| {
        if leaves.len() <= MAX_LEAVES {
            leaves.push(Leaf {
                handle: handle.to_owned(),
                element,
                media: media.clone(),
            });
        }
        None
    });
    if leaves.len() > MAX_LEAVES {
        return Err(Error::invalid("outputs", "has more than 1000 media"));
    }
    Ok(leaves)
}

/// The outputs with what `with` says in the place of each medium; `None` leaves it as it is.
pub fn replace(outputs: &Map, mut with: impl FnMut(&str, i32, &MediaRef) -> Option<MediaRef>) -> Map {
    let mut replaced = outputs.clone();
    for (handle, value) in &mut replaced {
        let mut element = 0;
        let mut next = |media: &MediaRef| {
            let new = with(handle, element, media);
            element += 1;
            new
        };
        if let Some(new) = replace_in(value, &mut next) {
            *value = new;
        }
    }
    replaced
}

/// The value with its media replaced; `None` when nothing of it changes.
fn replace_in(value: &Value, next: &mut dyn FnMut(&MediaRef) -> Option<MediaRef>) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) | Value::Bytes(_) => {
            None
        }
        Value::Media(media) => next(media).map(Value::media),
        Value::List(values) => {
            let mut new = None;
            for (at, value) in values.iter().enumerate() {
                if let Some(replaced) = replace_in(value, next)
                    && let Some(place) = new.get_or_insert_with(|| Vec::clone(values)).get_mut(at)
                {
                    *place = replaced;
                }
            }
            new.map(|values| Value::List(Arc::new(values)))
        }
        Value::Map(map) => {
            if let Some(media) = as_reference(map) {
                return next(&media).map(Value::media);
            }
            let mut new = None;
            for (key, value) in map.iter() {
                if let Some(replaced) = replace_in(value, next) {
                    new.get_or_insert_with(|| Map::clone(map))
                        .insert(key.clone(), replaced);
                }
            }
            new.map(|map| Value::Map(Arc::new(map)))
        }
    }
}

/// A reference that was written as a plain map.
fn as_reference(map: &Map) -> Option<MediaRef> {
    let kind = map.get("type")?.as_str()?;
    let has_content = ["uri", "data", "asset_id"]
        .iter()
        .any(|key| map.contains_key(*key));
    if !MEDIA_KINDS.contains(&kind) || !has_content {
        return None;
    }
    value::from_json(value::to_json(&Value::map(map.clone()), BytesForm::Tagged))
        .as_media()
        .cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outputs(json: serde_json::Value) -> Map {
        value::map_from_json(json).unwrap()
    }

    fn places(json: serde_json::Value) -> Vec<(String, i32, String)> {
        collect(&outputs(json))
            .unwrap()
            .into_iter()
            .map(|leaf| (leaf.handle, leaf.element, leaf.media.uri))
            .collect()
    }

    #[test]
    fn the_walk_goes_depth_first_and_counts_per_handle() {
        let image = |uri: &str| json!({"type": "image", "uri": uri});
        let found = places(json!({
            "scenes": [{"a": image("1")}, [image("2"), null, image("3")]],
            "meta": {"cover": image("4"), "n": 3},
            "text": "none",
        }));
        let expected = [
            ("scenes", 0, "1"),
            ("scenes", 1, "2"),
            ("scenes", 2, "3"),
            ("meta", 0, "4"),
        ];
        let expected: Vec<_> = expected
            .iter()
            .map(|(h, e, u)| ((*h).to_owned(), *e, (*u).to_owned()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn replacing_touches_nothing_else() {
        let before =
            outputs(json!({"a": [1, {"b": {"type": "audio", "uri": "x", "duration": 2}}, "t"], "c": {}}));
        assert_eq!(replace(&before, |_, _, _| None), before);
        let after = replace(&before, |_, _, media| {
            Some(MediaRef {
                uri: "y".into(),
                ..media.clone()
            })
        });
        let expected =
            outputs(json!({"a": [1, {"b": {"type": "audio", "uri": "y", "duration": 2}}, "t"], "c": {}}));
        assert_eq!(after, expected);
    }

    #[test]
    fn a_reference_written_as_a_map_counts() {
        let map = Map::from_iter([
            ("type".to_owned(), Value::from("image")),
            ("data".to_owned(), Value::Bytes("png".into())),
        ]);
        let leaves = collect(&Map::from_iter([("out".to_owned(), Value::map(map))])).unwrap();
        assert_eq!(
            leaves.first().unwrap().media.data.as_deref(),
            Some(b"png".as_slice())
        );
    }

    #[test]
    fn too_many_media_are_refused() {
        let many = json!({"out": vec![json!({"type": "image", "uri": "x"}); MAX_LEAVES + 1]});
        assert!(collect(&outputs(many)).is_err());
    }
}
