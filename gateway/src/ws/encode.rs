//! Frames on their way out: msgpack or JSON, by the mode of the connection when they are queued (wire specification 1.3).

use atelier_proto::value::{BytesForm, Map, Value, to_json, to_msgpack};
use axum::extract::ws::Message;

/// How frames go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    /// msgpack; bytes are bytes.
    #[default]
    Binary,
    /// JSON; bytes are arrays of integers.
    Text,
}

/// The message of a frame.
pub(crate) fn encode(mode: Mode, frame: Map) -> Message {
    let frame = Value::map(frame);
    match mode {
        Mode::Text => Message::Text(to_json(&frame, BytesForm::Integers).to_string().into()),
        Mode::Binary => {
            let mut bytes = Vec::with_capacity(256);
            if let Err(error) = rmpv::encode::write_value(&mut bytes, &to_msgpack(&frame)) {
                tracing::error!(%error, "a frame could not be packed");
            }
            Message::Binary(bytes.into())
        }
    }
}

/// How many bytes a message carries.
pub(crate) fn weight(message: &Message) -> usize {
    match message {
        Message::Text(text) => text.len(),
        Message::Binary(bytes) | Message::Ping(bytes) | Message::Pong(bytes) => bytes.len(),
        Message::Close(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w_011_bytes_are_bytes_or_integers() {
        let frame = || Map::from_iter([("b".to_owned(), Value::Bytes(vec![1, 255].into()))]);
        assert_eq!(
            encode(Mode::Text, frame()),
            Message::Text(r#"{"b":[1,255]}"#.into())
        );
        let expected: &[u8] = &[0x81, 0xa1, b'b', 0xc4, 2, 1, 255];
        assert_eq!(
            encode(Mode::Binary, frame()),
            Message::Binary(expected.to_vec().into())
        );
    }

    #[test]
    fn r_006_integers_take_their_shortest_form() {
        let frame = Map::from_iter([
            ("n".to_owned(), Value::Int(7)),
            ("f".to_owned(), Value::Float(0.5)),
        ]);
        let Message::Binary(bytes) = encode(Mode::Binary, frame) else {
            panic!("not binary")
        };
        assert_eq!(bytes[..4], [0x82, 0xa1, b'n', 7]);
        assert_eq!(bytes[4..7], [0xa1, b'f', 0xcb]);
    }
}
