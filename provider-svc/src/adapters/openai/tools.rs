//! Calls of tools in an answer, put together from their pieces.

use atelier_proto::value::{Value, from_json};
use serde_json::{Value as Json, json};

use super::wire::ToolCall;

/// Most calls of one answer.
const MAX_CALLS: usize = 128;
/// Most bytes of the arguments of all calls of one answer.
const MAX_ARGUMENTS: usize = 4 * 1024 * 1024;

/// The calls of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    bytes: usize,
}
#[derive(Debug, Default)]
struct Call {
    index: usize,
    id: String,
    name: String,
    arguments: String,
}

/// An answer calls too much.
#[derive(Debug)]
pub(super) struct TooMany;

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes a call or a piece of one. A piece without an index belongs to the call that it names, else it begins one.
    pub(super) fn take(&mut self, piece: ToolCall) -> Result<(), TooMany> {
        let ToolCall { index, id, function } = piece;
        let id = id.filter(|id| !id.is_empty());
        let index = index.unwrap_or_else(|| {
            let known = self
                .calls
                .iter()
                .find(|call| id.as_deref() == Some(call.id.as_str()));
            known.map_or(self.calls.len(), |call| call.index)
        });
        let place = self.calls.iter().position(|call| call.index == index);
        if place.is_none() {
            if self.calls.len() >= MAX_CALLS {
                return Err(TooMany);
            }
            self.calls.push(Call {
                index,
                ..Call::default()
            });
        }
        let last = self.calls.len().saturating_sub(1);
        let Some(call) = self.calls.get_mut(place.unwrap_or(last)) else {
            return Ok(());
        };
        if let Some(id) = id {
            call.id = id;
        }
        let Some(function) = function else { return Ok(()) };
        call.name.push_str(&function.name.unwrap_or_default());
        let arguments = match function.arguments {
            None | Some(Json::Null) => String::new(),
            Some(Json::String(text)) => text,
            Some(object) => object.to_string(),
        };
        self.bytes += arguments.len();
        if self.bytes > MAX_ARGUMENTS {
            return Err(TooMany);
        }
        call.arguments.push_str(&arguments);
        Ok(())
    }

    /// The message that calls the tools, as it goes back into the conversation.
    pub(super) fn message(self, text: String) -> Value {
        let calls = self.calls.into_iter().map(|call| {
            let id = if call.id.is_empty() {
                format!("call_{}", call.index)
            } else {
                call.id
            };
            json!({"id": id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
        });
        from_json(json!({"role": "assistant", "content": text, "tool_calls": calls.collect::<Vec<_>>()}))
    }
}

#[cfg(test)]
mod tests {
    use atelier_proto::value::{BytesForm, to_json};

    use super::*;

    fn message(pieces: &[Json]) -> Json {
        let mut calls = Calls::default();
        for piece in pieces {
            calls
                .take(serde_json::from_value(piece.clone()).expect("a piece"))
                .expect("room");
        }
        to_json(&calls.message(String::new()), BytesForm::Tagged)["tool_calls"].clone()
    }

    #[test]
    fn pieces_of_two_calls_are_put_together() {
        let calls = message(&[
            json!({"index": 0, "id": "a", "function": {"name": "add", "arguments": ""}}),
            json!({"index": 1, "id": "b", "function": {"name": "now", "arguments": "{"}}),
            json!({"index": 0, "function": {"arguments": "{\"x\":"}}),
            json!({"index": 0, "function": {"arguments": "1}"}}),
            json!({"index": 1, "function": {"arguments": "}"}}),
        ]);
        let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        assert_eq!(
            calls,
            json!([call("a", "add", "{\"x\":1}"), call("b", "now", "{}")])
        );
    }

    #[test]
    fn whole_calls_without_index_or_id_are_kept_apart() {
        let calls = message(&[
            json!({"function": {"name": "add", "arguments": {"x": 1}}}),
            json!({"function": {"name": "now"}}),
        ]);
        assert_eq!(
            (&calls[0]["id"], &calls[1]["id"]),
            (&json!("call_0"), &json!("call_1"))
        );
        assert_eq!(calls[0]["function"]["arguments"], "{\"x\":1}");
    }

    #[test]
    fn an_answer_cannot_call_without_end() {
        let mut calls = Calls::default();
        let piece = |index: usize| serde_json::from_value(json!({"index": index})).expect("a piece");
        (0..MAX_CALLS).for_each(|index| calls.take(piece(index)).expect("room"));
        assert!(calls.take(piece(MAX_CALLS)).is_err());
    }
}
