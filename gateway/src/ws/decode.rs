//! Frames on their way in: binary is msgpack, text is JSON, whatever the mode of the connection.

use atelier_proto::value::{Map, Value, from_json, from_msgpack};
use bytes::Bytes;
use serde_json::Value as Json;

/// Deepest nesting of a msgpack frame; JSON has its own limit.
const MAX_DEPTH: usize = 128;
/// The byte that no msgpack begins with; the library reads it as nil.
const NEVER_USED: u8 = 0xc1;

/// What came in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Inbound {
    /// The frame, when it is an object.
    pub(crate) frame: Option<Map>,
    /// The graph of a JSON frame as it was written: values know more kinds than graphs do.
    pub(crate) graph: Option<Json>,
}

/// Reads a text frame.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn text(text: &str) -> Result<Inbound, String> {
    let mut json: Json =
        serde_json::from_str(text).map_err(|error| format!("The frame is not JSON: {error}"))?;
    let graph = json
        .get_mut("data")
        .and_then(|data| data.get_mut("graph"))
        .filter(|graph| graph.is_object());
    let graph = graph.map(Json::take);
    let frame = match json {
        Json::Object(object) => Some(
            object
                .into_iter()
                .map(|(key, value)| (key, from_json(value)))
                .collect(),
        ),
        _ => None,
    };
    Ok(Inbound { frame, graph })
}

/// Reads a binary frame.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn binary(bytes: &Bytes) -> Result<Inbound, String> {
    let mut rest: &[u8] = bytes;
    if rest.first() == Some(&NEVER_USED) {
        return Err("The frame is not msgpack: it begins with a byte that is never used".to_owned());
    }
    let pack = rmpv::decode::read_value_with_max_depth(&mut rest, MAX_DEPTH)
        .map_err(|error| format!("The frame is not msgpack: {error}"))?;
    if !rest.is_empty() {
        return Err(format!("The frame has {} bytes after its end", rest.len()));
    }
    let value = from_msgpack(pack).map_err(|error| format!("The frame cannot be read: {error}"))?;
    Ok(Inbound {
        frame: object(&value),
        graph: None,
    })
}

/// The fields of an object, also of one that looks like a reference to media.
pub(crate) fn object(value: &Value) -> Option<Map> {
    match value {
        Value::Map(map) => Some(map.as_ref().clone()),
        Value::Media(media) => {
            let mut map = Map::new();
            for key in ["type", "uri", "asset_id", "data", "mime_type"] {
                if let Some(field) = value.get(key) {
                    map.insert(key.to_owned(), field);
                }
            }
            map.extend(
                media
                    .extra
                    .iter()
                    .map(|(key, field)| (key.clone(), field.clone())),
            );
            Some(map)
        }
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Str(_)
        | Value::Bytes(_)
        | Value::List(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn w_005_and_006_garbage_is_told_and_survived() {
        assert!(binary(&Bytes::from_static(&[0xc1])).is_err());
        assert!(binary(&Bytes::from_static(&[])).is_err());
        assert!(binary(&Bytes::from_static(&[0x80, 0x00])).is_err());
        assert!(text("{not json").is_err());
        // A list that claims four thousand million entries, a map with keys that are numbers.
        assert!(binary(&Bytes::from_static(&[0xdd, 0xff, 0xff, 0xff, 0xff])).is_err());
        assert!(binary(&Bytes::from_static(&[0x81, 0x01, 0x02])).is_err());
        assert!(binary(&vec![0x91; 100_000].into()).is_err());
        assert!(text(&"[".repeat(100_000)).is_err());
        assert_eq!(text("[1]").expect("json").frame, None);
    }

    #[test]
    fn a_graph_of_a_text_frame_stays_as_it_was_written() {
        let inbound =
            text(r#"{"command":"run_job","data":{"graph":{"nodes":[{"type":"image","uri":"x"}]}}}"#);
        let graph = inbound.expect("frame").graph.expect("graph");
        assert_eq!(graph.to_string(), r#"{"nodes":[{"type":"image","uri":"x"}]}"#);
    }

    proptest! {
        #[test]
        fn nothing_that_comes_in_makes_it_panic(bytes: Vec<u8>, string: String) {
            let _ = binary(&bytes.into());
            let _ = text(&string);
        }
    }
}
