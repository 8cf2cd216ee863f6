//! Types that call a provider's model, each by one call through the seam.
//!
//! What lives here: how a model, a conversation and the streamed answer are read and written. What does not: providers,
//! prices and the ledger, which are behind [`Context::generate`].

mod agent;
mod builtin;
mod capabilities;
mod figures;
mod image;
mod list;
mod outputs;
mod rounds;
mod speech;
mod structured;
mod sum;
mod summarizer;
mod table;
mod thread;
mod toolbox;

use async_trait::async_trait;
use atelier_proto::{
    kernel::v1::Severity,
    value::{Map, Value},
};

use super::{
    args::{Args, map, one, wrong},
    catalog,
    code::{Sink, Types},
};
use crate::{
    event::Note,
    node::{Context, GenerationCall, NodeError, Piece, Pieces},
};

pub(super) use outputs::Added;

/// All types of this family.
pub(super) fn types() -> Types {
    let mut types = agent::types();
    types.extend(capabilities::types());
    types.extend(figures::types());
    types.extend(structured::types());
    types.extend(table::types());
    types.extend(thread::types());
    types.extend(image::types());
    types.extend(list::types());
    types.extend(speech::types());
    types.extend(summarizer::types());
    types
}

/// What a type does, for where its line in the catalog does not say it.
pub(super) fn about(node_type: &str) -> Option<&'static str> {
    capabilities::about(node_type)
}

/// The code of a type that yields frames, for tests.
#[cfg(test)]
pub(super) fn generator(node_type: &str) -> Option<Box<dyn super::code::Generator>> {
    match node_type {
        "nodetool.agents.Agent" => Some(Box::new(agent::Agent)),
        "nodetool.agents.Summarizer" => Some(Box::new(summarizer::Summarizer)),
        "nodetool.generators.ListGenerator" => Some(Box::new(list::ListGenerator)),
        "nodetool.generators.DataGenerator" => Some(Box::new(table::DataGenerator)),
        _ => None,
    }
}

/// A line of the node's log that somebody should read.
async fn warn(ctx: &Context, content: &str) {
    let (content, severity) = (content.to_owned(), Severity::Warning);
    ctx.note(Note::Log { content, severity }).await;
}
/// A call of a capability at the model that the input `model` names. An unnamed one leaves the choice to the seam; so does
/// the default of the type that nobody chose.
fn call(ctx: &Context, args: Args<'_>, capability: &str, params: Map) -> Result<GenerationCall, NodeError> {
    let chosen = args.value("model");
    let default = catalog::meta(&ctx.node_type)
        .and_then(|meta| meta.inputs.iter().find(|input| input.name == "model"))
        .and_then(|input| input.default.as_ref());
    let nobodys = Some(&chosen) == default && !ctx.properties.contains_key("model");
    let (provider, model) = if nobodys {
        Default::default()
    } else {
        model(&chosen)?
    };
    Ok(GenerationCall {
        provider,
        model,
        capability: capability.to_owned(),
        params,
        persist: false,
    })
}
/// Provider and model of `{provider, id}` or of `provider/id`; both empty when nothing is named.
fn model(chosen: &Value) -> Result<(String, String), NodeError> {
    let (provider, id) = match chosen {
        Value::Null => return Ok(Default::default()),
        Value::Map(map) => (Args(map).text("provider"), Args(map).text("id")),
        Value::Str(text) => text.split_once('/').map_or_else(
            || (text.to_string(), String::new()),
            |(provider, id)| (provider.to_owned(), id.to_owned()),
        ),
        other => return Err(wrong("model", "a model", other)),
    };
    Ok(if matches!(provider.trim(), "" | "empty") {
        Default::default()
    } else {
        (provider, id)
    })
}

/// One message of a conversation. Media go with the text as references.
pub(super) fn message(role: &str, text: &str, media: &[Value]) -> Value {
    let content = if media.is_empty() {
        text.into()
    } else {
        let text = (!text.is_empty()).then(|| map([("type", "text".into()), ("text", text.into())]).into());
        Value::list(text.into_iter().chain(media.iter().cloned()).collect())
    };
    map([("role", role.into()), ("content", content)]).into()
}
/// A part of a message as providers take it: media stand for themselves, also where a chat wraps them.
fn part(part: &Value) -> Value {
    let inner = ["image", "audio"].iter().find_map(|kind| part.get(kind));
    inner
        .filter(|inner| inner.as_media().is_some())
        .unwrap_or_else(|| part.clone())
}
/// References of an input, single or in a list, that lead to something.
fn media(args: Args<'_>, name: &str) -> Vec<Value> {
    media_in(&args.value(name))
}
/// References in a value, single or in a list, that lead to something.
pub(super) fn media_in(value: &Value) -> Vec<Value> {
    let leads = |value: &&Value| {
        value
            .as_media()
            .is_some_and(|media| !media.uri.is_empty() || media.asset_id.is_some() || media.data.is_some())
    };
    let several = value.as_list().unwrap_or(std::slice::from_ref(value));
    several.iter().filter(leads).cloned().collect()
}
/// Several messages without those that say nothing.
fn conversation(messages: impl IntoIterator<Item = Value>) -> Value {
    let says = |message: &Value| match message.get("content") {
        Some(Value::Str(text)) => !text.is_empty(),
        Some(Value::List(parts)) => !parts.is_empty(),
        _ => false,
    };
    Value::list(messages.into_iter().filter(says).collect())
}

/// Sends the pieces of an answer as chunks, and keeps its text.
struct Answer<'a> {
    frames: &'a mut dyn Sink,
    text: String,
    ended: bool,
    thinks: bool,
    /// Whether more may follow: the last piece is not called so.
    open: bool,
}
impl<'a> Answer<'a> {
    /// `thinks`: whether the node has an output for a model's thinking.
    fn new(frames: &'a mut dyn Sink, thinks: bool) -> Self {
        Self {
            frames,
            text: String::new(),
            ended: false,
            thinks,
            open: false,
        }
    }
    /// An answer that may turn out to be a call of tools, after which another one follows.
    fn open(frames: &'a mut dyn Sink) -> Self {
        Self {
            open: true,
            ..Self::new(frames, true)
        }
    }
    /// Ends the chunks, and gives the whole text: what was streamed, else the result of the call.
    async fn end(mut self, output: &Value) -> Result<String, NodeError> {
        let whole = output.as_str().unwrap_or_default();
        let rest = if self.text.is_empty() { whole } else { "" };
        if self.open || !self.ended || !rest.is_empty() {
            self.frames.frame(one("chunk", chunk(rest, true, false))).await?;
        }
        self.text.push_str(rest);
        Ok(self.text)
    }
}
#[async_trait]
impl Pieces for Answer<'_> {
    async fn piece(&mut self, piece: Piece) -> Result<(), NodeError> {
        match piece {
            Piece::Text {
                text,
                done,
                thinking: true,
            } if self.thinks => self.frames.frame(one("thinking", chunk(&text, done, true))).await,
            Piece::Text {
                text,
                done,
                thinking: false,
            } if !self.ended && (done || !text.is_empty()) => {
                self.text.push_str(&text);
                self.ended = done;
                if self.open && text.is_empty() {
                    return Ok(());
                }
                let last = done && !self.open;
                self.frames.frame(one("chunk", chunk(&text, last, false))).await
            }
            Piece::Text { .. } | Piece::Audio { .. } | Piece::Progress { .. } => Ok(()),
        }
    }
}
/// A piece of text on a handle.
fn chunk(content: &str, done: bool, thinking: bool) -> Value {
    let mut chunk = map([
        ("type", "chunk".into()),
        ("content_type", "text".into()),
        ("content", content.into()),
        ("done", done.into()),
    ]);
    if thinking {
        chunk.insert("thinking".to_owned(), true.into());
    }
    chunk.into()
}

/// All inputs that say something, but some. References that lead nowhere, empty texts and lists and negative seeds say
/// nothing.
pub(super) fn stated(args: Args<'_>, but: &[&str]) -> Map {
    let says = |name: &str, value: &Value| match value {
        Value::Null => false,
        Value::Str(text) => !text.is_empty(),
        Value::Media(_) => !media_in(value).is_empty(),
        Value::List(items) => !items.is_empty(),
        Value::Int(number) => !(name == "seed" && *number < 0),
        Value::Bool(_) | Value::Float(_) | Value::Bytes(_) | Value::Map(_) => true,
    };
    let inputs = args
        .0
        .iter()
        .filter(|(name, value)| !but.contains(&name.as_str()) && !name.starts_with('_') && says(name, value));
    inputs
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
/// Parameters that the node passes on as they are: everything its type does not declare, without nulls.
fn extras(args: Args<'_>, own: &[&str]) -> Map {
    let others = args.others(own).filter(|(_, value)| !value.is_null());
    others
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use atelier_proto::value::from_json;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({}), "", "")]
    #[case(json!(null), "", "")]
    #[case(json!({"type": "image_model", "provider": "empty", "id": "x"}), "", "")]
    #[case(json!({"provider": "", "id": "x"}), "", "")]
    #[case(json!({"provider": "sketch", "id": "sketch-image"}), "sketch", "sketch-image")]
    #[case(json!({"provider": "sketch"}), "sketch", "")]
    #[case(json!("sketch/sketch-image"), "sketch", "sketch-image")]
    #[case(json!("openai/org/model"), "openai", "org/model")]
    fn models_are_read(#[case] chosen: serde_json::Value, #[case] provider: &str, #[case] id: &str) {
        assert_eq!(
            model(&from_json(chosen)).expect("a model"),
            (provider.to_owned(), id.to_owned())
        );
    }

    #[test]
    fn a_model_of_another_type_is_a_fault() {
        assert_eq!(
            model(&Value::Int(5)).expect_err("a fault").message,
            "the input `model` expects a model, got int"
        );
    }
}
