//! A language model with a system text, a history and a prompt, and with tools: the nodes that the agent controls, and
//! built-in ones.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};

use super::{conversation, media, message, outputs::Added, part, rounds, toolbox::Toolbox, warn};
use crate::{
    node::{Context, NodeError},
    nodes::{
        args::{Args, map, missing, one, text_of},
        catalog,
        code::{Generator, Sink, Streamed, Types, factory},
        text::template::{fault, render},
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![("nodetool.agents.Agent", factory(Streamed(Agent)))]
}

#[derive(Clone, Copy)]
pub(super) struct Agent;
#[async_trait]
impl Generator for Agent {
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, ctx: &Context) -> Result<(), NodeError> {
        let args = Args(&inputs);
        let messages = messages(args, ctx)?;
        let params = one("max_tokens", args.int("max_tokens", 8192)?.max(1));
        if args.text("prompt").trim().is_empty() {
            warn(ctx, "the input `prompt` is empty").await;
        }
        if !args.text("thread_id").trim().is_empty() {
            warn(
                ctx,
                "threads are not kept here: earlier messages come from the input `history` only",
            )
            .await;
        }
        let agent = rounds::Agent {
            ctx,
            args,
            toolbox: Toolbox::of(args, ctx).await,
            fields: Added::of(ctx),
            rounds: args.int("max_turns", 100)?,
            params,
        };
        let (text, mut last) = agent.run(messages, frames).await?;
        last.insert("text".to_owned(), text.into());
        frames.frame(last).await
    }
}

/// System text, history, prompt with media. Inputs that the user added fill the placeholders of system text and prompt.
fn messages(args: Args<'_>, ctx: &Context) -> Result<Vec<Value>, NodeError> {
    let own: Vec<&str> = catalog::meta(&ctx.node_type)
        .map(|meta| meta.inputs.iter().map(|input| input.name.as_str()).collect())
        .unwrap_or_default();
    let variables: Map = args
        .others(&own)
        .filter(|(name, _)| *name != "messages")
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let filled = |name: &str| {
        let text = args.text(name);
        if variables.is_empty() {
            Ok(text)
        } else {
            render(&text, &variables).map_err(|error| fault(name, &error))
        }
    };
    let (system, prompt) = (filled("system")?, filled("prompt")?);
    let media: Vec<Value> = [media(args, "image"), media(args, "audio")].concat();
    // Older files call the history `messages`.
    let history = [args.list("messages"), args.list("history")].concat();
    let history = history.into_iter().filter_map(|message| earlier(&message));
    let asked: Vec<Value> = history.chain([message("user", prompt.trim(), &media)]).collect();
    let asked = conversation(asked)
        .as_list()
        .map(<[Value]>::to_vec)
        .unwrap_or_default();
    // A system text that the workflow states is enough to go on; the type's own is not.
    let stated = ctx.properties.contains_key("system") && !system.trim().is_empty();
    if asked.is_empty() && !stated {
        return Err(missing("prompt", "there is nothing to ask"));
    }
    let all = conversation(std::iter::once(message("system", system.trim(), &[])).chain(asked));
    Ok(all.as_list().map(<[Value]>::to_vec).unwrap_or_default())
}
/// A message of the history: its role and its content.
fn earlier(message: &Value) -> Option<Value> {
    let role = message
        .get("role")
        .map(|role| text_of(&role))
        .filter(|role| !role.is_empty())?;
    let content = match message.get("content")? {
        Value::List(parts) => Value::list(parts.iter().map(part).collect()),
        other => other,
    };
    Some(map([("role", role.into()), ("content", content)]).into())
}
#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use crate::nodes::testing::{Node, Script};

    const TYPE: &str = "nodetool.agents.Agent";

    fn chunk(content: &str, done: bool) -> serde_json::Value {
        json!({"chunk": {"type": "chunk", "content_type": "text", "content": content, "done": done}})
    }

    #[tokio::test]
    async fn an_answer_is_streamed_thought_about_and_given_whole() {
        let mut node = Node::scripted(TYPE, Script::text(&["~hm", "Hel", "lo"]));
        let inputs = json!({"system": "be kind", "prompt": "greet", "max_tokens": 50,
            "model": {"provider": "sketch", "id": "sketch-text"}});
        let frames = node.frames(inputs).await.expect("frames");
        let thinking = json!({"thinking": {"type": "chunk", "content_type": "text", "content": "hm", "done": false,
            "thinking": true}});
        let expected = [
            thinking,
            chunk("Hel", false),
            chunk("lo", false),
            chunk("", true),
            json!({"text": "Hello"}),
        ];
        assert_eq!(frames, expected);
        let messages =
            json!([{"role": "system", "content": "be kind"}, {"role": "user", "content": "greet"}]);
        assert_eq!(node.params(), json!({"messages": messages, "max_tokens": 50}));
        assert_eq!(
            (node.call().provider.as_str(), node.call().model.as_str()),
            ("sketch", "sketch-text")
        );
    }

    #[tokio::test]
    async fn an_answer_that_was_not_streamed_is_one_chunk() {
        let mut node = Node::scripted(TYPE, Script::whole("Hello"));
        let frames = node.frames(json!({"prompt": "greet"})).await.expect("frames");
        assert_eq!(frames, [chunk("Hello", true), json!({"text": "Hello"})]);
    }

    #[tokio::test]
    async fn outputs_that_were_added_are_asked_for_and_given() {
        let mut node = Node::scripted(
            TYPE,
            Script::text(&["```json\n{\"title\": \"Moor\", ", "\"tags\": [\"a\"]}\n```"]),
        );
        node.outputs(&[
            ("text", "str"),
            ("chunk", "chunk"),
            ("title", "str"),
            ("tags", "list[str]"),
            ("__control__", "any"),
        ]);
        let frames = node.frames(json!({"prompt": "x"})).await.expect("frames");
        let text = "```json\n{\"title\": \"Moor\", \"tags\": [\"a\"]}\n```";
        assert_eq!(
            frames.last(),
            Some(&json!({"title": "Moor", "tags": ["a"], "text": text}))
        );
        let format = &node.params()["response_format"];
        assert_eq!(format["type"], "json_schema");
        let expected = json!({"type": "object", "required": ["title", "tags"], "additionalProperties": false,
            "properties": {"title": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}}});
        assert_eq!(format["json_schema"]["schema"], expected);
    }

    #[tokio::test]
    async fn media_history_and_added_inputs_go_into_the_conversation() {
        let mut node = Node::scripted(TYPE, Script::whole("ok"));
        let inputs = json!({
            "prompt": "look at {{ place }}", "place": "Skye", "audio": {"type": "audio", "uri": ""},
            "image": [{"type": "image", "uri": "asset://a1"}, {"type": "image", "uri": ""}],
            "history": [
                {"role": "user", "content": [
                    {"type": "text", "text": "hi"}, {"type": "image_url", "image": {"type": "image", "uri": "asset://a0"}},
                ]},
                {"role": "assistant", "content": "yes?"},
                {"content": "x"},
            ],
        });
        node.frames(inputs).await.expect("frames");
        let messages = &node.params()["messages"];
        assert_eq!(messages[0]["content"][0], json!({"type": "text", "text": "hi"}));
        assert_eq!(messages[0]["content"][1]["uri"], "asset://a0");
        assert_eq!(messages[1], json!({"role": "assistant", "content": "yes?"}));
        let parts = &messages[2]["content"];
        assert_eq!(parts[0], json!({"type": "text", "text": "look at Skye"}));
        assert_eq!(
            (&parts[1]["type"], &parts[1]["uri"]),
            (&json!("image"), &json!("asset://a1"))
        );
        assert_eq!(parts.as_array().map(Vec::len), Some(2));
    }

    #[tokio::test]
    async fn tools_are_warned_of_once() {
        let mut node = Node::scripted(TYPE, Script::whole("ok"));
        let tools = json!([{"type": "tool_name", "name": "google_search"}, "browser"]);
        node.frames(json!({"prompt": "x", "tools": tools}))
            .await
            .expect("frames");
        assert_eq!(
            node.notes(),
            ["tools are not available, the model answers without them: google_search, browser"]
        );
    }

    fn calling(name: &str, arguments: &str) -> serde_json::Value {
        let function = json!({"name": name, "arguments": arguments});
        json!({"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": function}]})
    }

    #[tokio::test]
    async fn a_built_in_tool_is_called_and_its_result_goes_back() {
        let script = [
            Script::value(calling("calculator", "{\"expression\": \"6*7\"}")),
            Script::text(&["It is ", "42."]),
        ];
        let mut node = Node::scripts(TYPE, script);
        let frames = node
            .frames(json!({"prompt": "6 times 7?", "tools": ["calculator"]}))
            .await
            .expect("frames");
        let expected = [
            chunk("It is ", false),
            chunk("42.", false),
            chunk("", true),
            json!({"text": "It is 42."}),
        ];
        assert_eq!(frames, expected);
        let params = node.all_params();
        assert_eq!(params[0]["tools"][0]["function"]["name"], "calculator");
        let result = json!({"role": "tool", "tool_call_id": "c1", "name": "calculator", "content": "42"});
        assert_eq!(
            params[1]["messages"].as_array().expect("messages")[1..],
            [calling("calculator", "{\"expression\": \"6*7\"}"), result]
        );
        assert_eq!(node.notes(), ["calls the tool calculator"]);
    }

    #[tokio::test]
    async fn a_controlled_node_is_a_tool() {
        let script = [
            Script::value(calling("search", "{\"keyword\": \"boats\"}")),
            Script::whole("done"),
        ];
        let mut node = Node::scripts(TYPE, script);
        node.controls(&[("s1", Ok(json!({"text": "three boats"})))]);
        let schema = json!({"keyword": {"type": "string", "description": ""}});
        let context = json!({"s1": {"node_id": "s1", "node_type": "x.Search", "node_title": "Search",
            "control_actions": {"run": {"properties": schema}}}});
        node.frames(json!({"prompt": "find boats", "_control_context": context}))
            .await
            .expect("frames");
        assert_eq!(
            node.controlled(),
            [("s1".to_owned(), json!({"keyword": "boats"}))]
        );
        let params = node.all_params();
        let tool = &params[0]["tools"][0]["function"];
        assert_eq!(
            (&tool["name"], &tool["parameters"]["properties"]),
            (&json!("search"), &schema)
        );
        assert_eq!(params[1]["messages"][2]["content"], "{\"text\":\"three boats\"}");
    }

    /// What goes wrong with a tool is told to the model; a model that never answers is made to.
    #[tokio::test]
    async fn tools_that_fail_and_agents_that_go_on_come_to_an_end() {
        let again = || Script::value(calling("calculator", "{\"expression\": \"1/0\"}"));
        let mut node = Node::scripts(
            TYPE,
            [
                again(),
                Script::value(calling("nothing", "[")),
                Script::whole("sorry"),
            ],
        );
        let inputs = json!({"prompt": "x", "tools": ["calculator"], "max_turns": 3});
        let frames = node.frames(inputs).await.expect("frames");
        assert_eq!(frames.last(), Some(&json!({"text": "sorry"})));
        let params = node.all_params();
        assert_eq!(
            params[1]["messages"][2]["content"],
            "Error: the result is no number"
        );
        assert_eq!(
            params[2]["messages"][4]["content"],
            "Error: there is no tool nothing"
        );
        assert_eq!(params[2]["tool_choice"], "none");
    }

    #[tokio::test]
    async fn an_answer_without_its_fields_is_asked_for_once_more() {
        let mut node = Node::scripts(
            TYPE,
            [
                Script::whole("{\"title\": 5"),
                Script::whole("{\"title\": \"a\", \"n\": 2}"),
            ],
        );
        node.outputs(&[("text", "str"), ("title", "str"), ("n", "int")]);
        let frames = node.frames(json!({"prompt": "x"})).await.expect("frames");
        assert_eq!(
            frames.last(),
            Some(&json!({"title": "a", "n": 2, "text": "{\"title\": \"a\", \"n\": 2}"}))
        );
        assert_eq!(node.calls(), 2);
        let mut node = Node::scripts(TYPE, [Script::whole("no"), Script::whole("still no")]);
        node.outputs(&[("text", "str"), ("title", "str"), ("n", "int")]);
        let error = node.frames(json!({"prompt": "x"})).await.expect_err("a fault");
        assert_eq!((error.code.as_deref(), node.calls()), (Some("model.answer"), 2));
    }

    #[rstest]
    #[case(json!({"prompt": "  "}), "`prompt` is empty")]
    #[case(json!({"prompt": "{{ a", "a": 1}), "the template in `prompt`")]
    #[case(json!({"prompt": "x", "model": 7}), "`model`")]
    #[tokio::test]
    async fn nothing_is_paid_for_faulty_inputs(#[case] inputs: serde_json::Value, #[case] part: &str) {
        let mut node = Node::scripted(TYPE, Script::whole("ok"));
        let error = node.frames(inputs).await.expect_err("a fault");
        assert!(error.message.contains(part), "{}", error.message);
        assert_eq!(node.calls(), 0);
    }
}
