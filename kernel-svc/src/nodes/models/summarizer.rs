//! One call that summarizes a text.

use async_trait::async_trait;
use atelier_proto::value::Map;

use super::{Answer, call, conversation, media, message};
use crate::{
    node::{Context, NodeError},
    nodes::{
        args::{Args, missing, one},
        code::{Generator, Sink, Streamed, Types, factory},
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![("nodetool.agents.Summarizer", factory(Streamed(Summarizer)))]
}

#[derive(Clone, Copy)]
pub(super) struct Summarizer;
#[async_trait]
impl Generator for Summarizer {
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, ctx: &Context) -> Result<(), NodeError> {
        let args = Args(&inputs);
        let (text, sentences) = (args.text("text"), args.int("max_sentences", 3)?.max(1));
        let media: Vec<_> = [media(args, "image"), media(args, "audio")].concat();
        if text.trim().is_empty() && media.is_empty() {
            return Err(missing("text", "there is nothing to summarize"));
        }
        let noun = if sentences == 1 { "sentence" } else { "sentences" };
        let asked = format!("Summarize this in at most {sentences} {noun}:\n\n{text}");
        let messages = conversation([
            message("system", args.text("system_prompt").trim(), &[]),
            message("user", &asked, &media),
        ]);
        let mut params = one("messages", messages);
        if inputs.contains_key("max_tokens") {
            params.insert(
                "max_tokens".to_owned(),
                args.int("max_tokens", 1024)?.max(1).into(),
            );
        }
        let mut answer = Answer::new(&mut *frames, false);
        let made = ctx
            .generate(call(ctx, args, "generate_message", params)?, &mut answer)
            .await?;
        let text = answer.end(&made.output).await?;
        frames.frame(one("text", text)).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::nodes::testing::{Node, Script};

    #[tokio::test]
    async fn a_summary_is_streamed_and_given_whole() {
        let mut node = Node::scripted("nodetool.agents.Summarizer", Script::text(&["Short", "."]));
        let frames = node
            .frames(json!({"text": "long", "max_sentences": 1, "system_prompt": " be brief "}))
            .await;
        let frames = frames.expect("frames");
        let chunk = |content: &str, done: bool| json!({"chunk": {"type": "chunk", "content_type": "text", "content": content, "done": done}});
        assert_eq!(
            frames,
            [
                chunk("Short", false),
                chunk(".", false),
                chunk("", true),
                json!({"text": "Short."})
            ]
        );
        let messages = json!([{"role": "system", "content": "be brief"},
            {"role": "user", "content": "Summarize this in at most 1 sentence:\n\nlong"}]);
        assert_eq!(node.params(), json!({"messages": messages}));
    }

    #[tokio::test]
    async fn nothing_is_paid_for_nothing() {
        let mut node = Node::scripted("nodetool.agents.Summarizer", Script::text(&["x"]));
        let error = node
            .frames(json!({"text": "", "image": {"type": "image", "uri": ""}}))
            .await
            .expect_err("a fault");
        assert!(error.message.contains("`text` is empty"), "{}", error.message);
        assert_eq!(node.calls(), 0);
    }
}
