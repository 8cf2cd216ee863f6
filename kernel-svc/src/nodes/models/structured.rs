//! One question whose answer has a form: fields that the user added, one of several categories, a schema in text.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};

use super::{conversation, media, message, outputs::Added, rounds::Agent, toolbox::Toolbox};
use crate::{
    node::{Context, Executor, NodeError},
    nodes::{
        args::{Args, map, missing, one, text_of},
        code::{Types, factory},
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.agents.AgentStep", factory(Step)),
        ("nodetool.agents.Classifier", factory(Classifier)),
        ("nodetool.agents.Extractor", factory(Extractor)),
        (
            "nodetool.generators.StructuredOutputGenerator",
            factory(Generator),
        ),
    ]
}

/// Asks once, and once more when the answer has not the fields.
pub(super) async fn ask(
    ctx: &Context,
    args: Args<'_>,
    messages: &Value,
    fields: Added,
    params: Map,
) -> Result<(String, Map), NodeError> {
    let agent = Agent {
        ctx,
        args,
        toolbox: Toolbox::default(),
        fields,
        rounds: 1,
        params,
    };
    let messages = messages.as_list().map(<[Value]>::to_vec).unwrap_or_default();
    // The pieces of the answer are nobody's.
    agent.run(messages, &mut Vec::new()).await
}
fn limit(args: Args<'_>, default: i64) -> Result<Map, NodeError> {
    Ok(one("max_tokens", args.int("max_tokens", default)?.max(1)))
}
/// The outputs that were added to the node; there must be some.
fn added(ctx: &Context) -> Result<Added, NodeError> {
    let added = Added::of(ctx);
    if added.is_empty() {
        let text = format!(
            "node {} has no outputs: add one for each field that it is to give",
            ctx.node_id
        );
        return Err(NodeError::new(text).code("node.no_outputs"));
    }
    Ok(added)
}
fn all_media(args: Args<'_>) -> Vec<Value> {
    [media(args, "image"), media(args, "audio")].concat()
}

/// Makes up the fields.
#[derive(Clone, Copy)]
struct Generator;
#[async_trait]
impl Executor for Generator {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let args = Args(&inputs);
        let (fields, media) = (added(ctx)?, all_media(args));
        let (instructions, context) = (args.text("instructions"), args.text("context"));
        if instructions.trim().is_empty() && context.trim().is_empty() && media.is_empty() {
            return Err(missing("instructions", "there is nothing to go by"));
        }
        let mut asked = instructions;
        if !context.trim().is_empty() {
            asked.push_str(&format!("\n\nContext:\n{context}"));
        }
        let messages = conversation([
            message("system", args.text("system_prompt").trim(), &[]),
            message("user", asked.trim(), &media),
        ]);
        let (_, values) = ask(ctx, args, &messages, fields, limit(args, 4096)?).await?;
        Ok(values)
    }
}

/// Finds the fields in a text.
#[derive(Clone, Copy)]
struct Extractor;
#[async_trait]
impl Executor for Extractor {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let args = Args(&inputs);
        let (fields, media, text) = (added(ctx)?, all_media(args), args.text("text"));
        if text.trim().is_empty() && media.is_empty() {
            return Err(missing("text", "there is nothing to extract from"));
        }
        let messages = conversation([
            message("system", args.text("system_prompt").trim(), &[]),
            message(
                "user",
                &format!("Extract the fields from this text:\n\n{text}"),
                &media,
            ),
        ]);
        let (_, values) = ask(ctx, args, &messages, fields, limit(args, 1024)?).await?;
        Ok(values)
    }
}

/// Chooses one of several categories.
#[derive(Clone, Copy)]
struct Classifier;
#[async_trait]
impl Executor for Classifier {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let args = Args(&inputs);
        let categories: Vec<String> = args.list("categories").iter().map(text_of).collect();
        let categories: Vec<String> = categories
            .into_iter()
            .filter(|name| !name.trim().is_empty())
            .collect();
        if categories.is_empty() {
            return Err(missing("categories", "there is nothing to choose from"));
        }
        let (media, text) = (all_media(args), args.text("text"));
        if text.trim().is_empty() && media.is_empty() {
            return Err(missing("text", "there is nothing to classify"));
        }
        let asked = format!("Categories: {}\n\nText:\n{text}", categories.join(", "));
        let messages = conversation([
            message("system", args.text("system_prompt").trim(), &[]),
            message("user", &asked, &media),
        ]);
        let fields = Added::one_of("category", &categories);
        let (_, values) = ask(ctx, args, &messages, fields, limit(args, 256)?).await?;
        let said = Args(&values).text("category").trim().to_lowercase();
        let equal = categories.iter().find(|name| name.trim().to_lowercase() == said);
        let within = || {
            categories
                .iter()
                .find(|name| !said.is_empty() && said.contains(&name.trim().to_lowercase()))
        };
        let chosen = equal.or_else(within).ok_or_else(|| {
            NodeError::new(format!(
                "the model chose none of the categories {}",
                categories.join(", ")
            ))
            .code("model.answer")
        })?;
        Ok(one("output", chosen.as_str()))
    }
}

/// One step of a plan, with built-in tools, and a schema for its answer when one is given.
#[derive(Clone, Copy)]
struct Step;
#[async_trait]
impl Executor for Step {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let args = Args(&inputs);
        let (mut asked, schema) = (args.text("instructions"), args.text("output_schema"));
        if asked.trim().is_empty() {
            return Err(missing("instructions", "there is nothing to do"));
        }
        let input = args.text("input");
        if !input.is_empty() {
            asked.push_str(&format!("\n\nInput:\n{input}"));
        }
        let mut params = Map::new();
        if !schema.trim().is_empty() {
            let schema: serde_json::Value = serde_json::from_str(&schema).map_err(|error| {
                NodeError::new(format!("the input `output_schema` is no JSON: {error}")).code("input.value")
            })?;
            let named = map([
                ("name", "answer".into()),
                ("schema", atelier_proto::value::from_json(schema)),
            ]);
            let format = map([("type", "json_schema".into()), ("json_schema", named.into())]);
            params.insert("response_format".to_owned(), format.into());
        }
        let agent = Agent {
            ctx,
            args,
            toolbox: Toolbox::of(args, ctx).await,
            fields: Added::fields(&[]),
            rounds: 16,
            params,
        };
        let messages = vec![message("user", asked.trim(), &[])];
        let (text, _) = agent.run(messages, &mut Vec::new()).await?;
        Ok(one("output", text))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use crate::nodes::testing::{Node, Script};

    #[rstest]
    #[case("nodetool.generators.StructuredOutputGenerator", json!({"instructions": "a boat", "context": "at sea"}),
        "a boat\n\nContext:\nat sea")]
    #[case("nodetool.agents.Extractor", json!({"text": "Ann, 5"}), "Extract the fields from this text:\n\nAnn, 5")]
    #[tokio::test]
    async fn fields_that_were_added_are_given(
        #[case] ty: &str,
        #[case] inputs: serde_json::Value,
        #[case] asked: &str,
    ) {
        let mut node = Node::scripted(ty, Script::text(&["{\"name\": \"Ann\", ", "\"age\": 5}"]));
        node.outputs(&[("name", "str"), ("age", "int")]);
        let out = node.process(inputs.clone()).await.expect("outputs");
        assert_eq!(out, json!({"name": "Ann", "age": 5}));
        let params = node.params();
        assert_eq!(params["messages"][0]["content"], asked);
        assert_eq!(
            params["response_format"]["json_schema"]["schema"]["required"],
            json!(["name", "age"])
        );
        let error = Node::new(ty).process(inputs).await.expect_err("no outputs");
        assert_eq!(error.code.as_deref(), Some("node.no_outputs"));
    }

    #[rstest]
    #[case("{\"category\": \"Work\"}", Some("work"))]
    #[case("It is clearly family.", Some("family"))]
    #[case("{\"category\": \"pets\"}", None)]
    #[tokio::test]
    async fn one_of_the_categories_is_chosen(#[case] answer: &str, #[case] expected: Option<&str>) {
        let mut node = Node::scripted("nodetool.agents.Classifier", Script::whole(answer));
        let out = node
            .process(json!({"text": "Dear boss", "categories": ["work", "family"]}))
            .await;
        assert_eq!(out.ok(), expected.map(|name| json!({"output": name})));
        let schema = &node.all_params()[0]["response_format"]["json_schema"]["schema"];
        assert_eq!(
            schema["properties"]["category"]["enum"],
            json!(["work", "family"])
        );
    }

    #[tokio::test]
    async fn a_step_takes_a_schema_and_tools() {
        let mut node = Node::scripted("nodetool.agents.AgentStep", Script::whole("{\"a\": 1}"));
        let inputs = json!({"instructions": "do", "input": {"x": 1}, "output_schema": "{\"type\": \"object\"}", "tools": ["clock"]});
        assert_eq!(
            node.process(inputs).await.expect("text"),
            json!({"output": "{\"a\": 1}"})
        );
        let params = node.params();
        assert_eq!(
            params["response_format"]["json_schema"]["schema"],
            json!({"type": "object"})
        );
        assert_eq!(params["tools"][0]["function"]["name"], "clock");
        let error = node
            .process(json!({"instructions": "do", "output_schema": "{"}))
            .await
            .expect_err("a fault");
        assert!(error.message.contains("`output_schema`"), "{}", error.message);
    }
}
