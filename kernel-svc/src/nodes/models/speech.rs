//! Text to speech.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};

use super::{call, extras};
use crate::{
    node::{Context, Executor, NodeError, OnlyProgress},
    nodes::{
        args::{Args, missing, one},
        code::{Types, factory},
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![("nodetool.audio.TextToSpeech", factory(TextToSpeech))]
}

#[derive(Clone, Copy)]
struct TextToSpeech;
#[async_trait]
impl Executor for TextToSpeech {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let mut request = call(ctx, Args(&inputs), "text_to_speech", params(Args(&inputs))?)?;
        // A voice that belongs to a model that is not asked says nothing.
        if request.provider.is_empty() && Args(&inputs).text("voice").is_empty() {
            request.params.shift_remove("voice");
        }
        request.persist = true;
        let made = ctx.generate(request, &mut OnlyProgress(ctx)).await?;
        Ok(one("audio", made.output))
    }
}
fn params(args: Args<'_>) -> Result<Map, NodeError> {
    let text = args.text("text");
    if text.trim().is_empty() {
        return Err(missing("text", "there is nothing to say"));
    }
    let speed = args.number("speed", 1.0)?;
    if !(0.25..=4.0).contains(&speed) {
        let text = format!("the input `speed` must be between 0.25 and 4, got {speed}");
        return Err(NodeError::new(text).code("input.value"));
    }
    let mut params = one("text", text);
    params.insert("speed".to_owned(), Value::Float(speed));
    let selected = args
        .value("model")
        .get("selected_voice")
        .and_then(|voice| voice.as_str().map(ToOwned::to_owned));
    let voice = Some(args.text("voice"))
        .filter(|voice| !voice.is_empty())
        .or(selected)
        .unwrap_or_default();
    if !voice.is_empty() {
        params.insert("voice".to_owned(), voice.into());
    }
    params.extend(extras(args, &["model", "text", "speed", "voice"]));
    Ok(params)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use crate::nodes::testing::{Node, Script};

    #[rstest]
    #[case(json!({"text": "hi", "model": {"provider": "sketch", "id": "m", "selected_voice": "ada"}, "speed": 2}),
        json!({"text": "hi", "speed": 2.0, "voice": "ada"}))]
    #[case(json!({"text": "hi", "model": {"provider": "sketch", "selected_voice": "ada"}, "voice": "bea", "pitch": 1}),
        json!({"text": "hi", "speed": 1.0, "voice": "bea", "pitch": 1}))]
    #[case(json!({"text": "hi", "model": {"selected_voice": "ada"}}), json!({"text": "hi", "speed": 1.0}))]
    #[tokio::test]
    async fn a_text_is_spoken(#[case] inputs: serde_json::Value, #[case] params: serde_json::Value) {
        let mut node = Node::scripted("nodetool.audio.TextToSpeech", Script::image("asset://a1"));
        let out = node.process(inputs).await.expect("a recording");
        assert_eq!(out["audio"]["uri"], "asset://a1");
        assert_eq!(
            (node.call().capability.as_str(), node.call().persist),
            ("text_to_speech", true)
        );
        assert_eq!(node.params(), params);
    }

    #[rstest]
    #[case(json!({"text": ""}), "`text` is empty")]
    #[case(json!({"text": "hi", "speed": 9}), "`speed`")]
    #[tokio::test]
    async fn nothing_is_paid_for_faulty_inputs(#[case] inputs: serde_json::Value, #[case] part: &str) {
        let mut node = Node::scripted("nodetool.audio.TextToSpeech", Script::image("asset://a1"));
        let error = node.process(inputs).await.expect_err("a fault");
        assert!(error.message.contains(part), "{}", error.message);
        assert_eq!(node.calls(), 0);
    }
}
