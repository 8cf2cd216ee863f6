//! Types that call one model of a provider: its inputs by name are the parameters, the result is its first output.

use std::sync::Arc;

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};

use super::{
    super::{
        args::{Args, json_of, map, missing, one},
        models::{Added, media_in, message, stated},
    },
    capability::{Given, capability},
    provider_of,
};
use crate::node::{Context, Executor, GenerationCall, InputMeta, NodeError, NodeMeta, Offers, OnlyProgress};

/// Inputs whose text says what to make, the most usual name first.
const PROMPTS: &[&str] = &[
    "prompt",
    "text",
    "inputs",
    "input",
    "query",
    "question",
    "lyrics",
    "texts",
    "sentences",
    "query_texts",
    "prompts",
    "document",
    "description",
    "title",
    "style",
];
const SYSTEMS: &[&str] = &["system_prompt", "system", "system_instruction"];

/// Calls the model.
pub(super) struct Call(pub Arc<NodeMeta>);
#[async_trait]
impl Executor for Call {
    fn offers(&self) -> Offers {
        Offers::default()
    }
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let meta = self.0.as_ref();
        let args = Args(&inputs);
        let capability = capability(meta, given(&inputs));
        let fields = Added::declared(meta);
        let params = match capability {
            "generate_message" => question(meta, args, &fields)?,
            "embedding" => embedding(meta, args)?,
            _ => making(meta, args, capability)?,
        };
        let call = GenerationCall {
            provider: provider_of(&meta.node_type).to_owned(),
            model: model(meta, args),
            capability: capability.to_owned(),
            params,
            persist: !matches!(
                capability,
                "generate_message" | "embedding" | "automatic_speech_recognition"
            ),
        };
        let made = ctx.generate(call, &mut OnlyProgress(ctx)).await?;
        let Some(first) = meta.outputs.first() else {
            return Ok(Map::new());
        };
        match made.output {
            Value::Str(text) if capability == "generate_message" && fields.is_some() => {
                fields.map_or_else(|| Ok(Map::new()), |fields| fields.read(&text))
            }
            list @ Value::List(_) if capability == "embedding" && first.ty == "str" => {
                Ok(one(&first.name, json_of(&list).to_string()))
            }
            output => Ok(one(&first.name, output)),
        }
    }
}

/// The model that an input names, else the last part of the type.
fn model(meta: &NodeMeta, args: Args<'_>) -> String {
    let stated = match args.value("model") {
        Value::Str(text) => text.trim().to_owned(),
        object => object
            .get("id")
            .and_then(|id| id.as_str().map(ToOwned::to_owned))
            .unwrap_or_default(),
    };
    if stated.is_empty() {
        meta.node_type.rsplit('.').next().unwrap_or_default().to_owned()
    } else {
        stated
    }
}

fn given(inputs: &Map) -> Given {
    let mut given = Given::default();
    for (name, value) in inputs {
        for media in media_in(value) {
            match media.as_media().map(|media| media.kind.as_str()) {
                Some("image") if name.contains("mask") => given.mask = true,
                Some("image") => given.image = true,
                Some("audio") => given.audio = true,
                Some("video") => given.video = true,
                _ => {}
            }
        }
    }
    given
}

/// The first input that holds a text to go by: a usual name, else any other text that the type declares as free.
fn prompt(meta: &NodeMeta, args: Args<'_>) -> String {
    let text = |name: &str| match args.value(name) {
        Value::List(texts) => texts
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join("\n"),
        Value::Str(text) => text.to_string(),
        _ => String::new(),
    };
    let usual = PROMPTS.iter().map(|name| text(name));
    let free = meta
        .inputs
        .iter()
        .filter(|input| is_words(input))
        .filter(|input| !SYSTEMS.contains(&input.name.as_str()) && !input.name.contains("negative"))
        .map(|input| text(&input.name));
    usual
        .chain(free)
        .find(|text| !text.trim().is_empty())
        .unwrap_or_default()
}
/// The first list that says something: the texts of its items, or all of it.
fn lines(args: Args<'_>) -> Option<String> {
    let list = args
        .0
        .values()
        .find(|value| value.as_list().is_some_and(|items| !items.is_empty()))?;
    let texts = list.as_list().unwrap_or_default().iter();
    let texts: Vec<String> = texts
        .filter_map(|item| Some(item.get("text")?.as_str()?.to_owned()))
        .collect();
    Some(if texts.is_empty() {
        json_of(list).to_string()
    } else {
        texts.join("\n")
    })
}
/// Whether words of a user go into an input.
fn is_words(input: &InputMeta) -> bool {
    let free = input.ty == "str" || (input.ty.starts_with("list") && !input.ty.contains("image"));
    free && input.values.is_empty() && input.name != "model"
}
/// The input that a prompt would come from, for errors.
fn prompt_name(meta: &NodeMeta) -> &str {
    let has = |name: &&&str| meta.inputs.iter().any(|input| input.name == ***name);
    PROMPTS.iter().find(has).copied().unwrap_or("prompt")
}

fn making(meta: &NodeMeta, args: Args<'_>, capability: &str) -> Result<Map, NodeError> {
    let mut params = stated(args, &["model"]);
    let prompt = prompt(meta, args);
    let from_text = capability.starts_with("text_to_");
    let prompt = if prompt.is_empty() && from_text {
        lines(args).unwrap_or_default()
    } else {
        prompt
    };
    // A model that takes no words at all is asked by its name.
    let wordless = !meta.inputs.iter().any(is_words);
    let prompt = if prompt.is_empty() && from_text && wordless {
        meta.title.clone()
    } else {
        prompt
    };
    if from_text && prompt.trim().is_empty() {
        return Err(missing(prompt_name(meta), "there is nothing to go by"));
    }
    let key = if capability == "text_to_speech" {
        "text"
    } else {
        "prompt"
    };
    if !prompt.is_empty() && !params.contains_key(key) {
        params.insert(key.to_owned(), prompt.into());
    }
    for name in ["voice_id", "voice_name"] {
        if let Some(voice) = params
            .get(name)
            .filter(|_| !params.contains_key("voice"))
            .cloned()
        {
            params.insert("voice".to_owned(), voice);
        }
    }
    if !from_text && !given_any(given(args.0)) {
        let name = meta.inputs.iter().find(|input| {
            input.ty.contains("audio") || input.ty.contains("image") || input.ty.contains("video")
        });
        let name = name.map_or("input", |input| input.name.as_str());
        return Err(missing(name, "there is nothing to work on"));
    }
    Ok(params)
}
fn given_any(given: Given) -> bool {
    given.image || given.audio || given.video
}

fn embedding(meta: &NodeMeta, args: Args<'_>) -> Result<Map, NodeError> {
    let text = prompt(meta, args);
    let text = match (text.trim().is_empty(), given_any(given(args.0))) {
        (false, _) => text,
        // A picture without words: its address stands for it.
        (true, true) => {
            let media = args.0.values().flat_map(media_in).next().unwrap_or_default();
            json_of(&media).to_string()
        }
        (true, false) => return Err(missing(prompt_name(meta), "there is nothing to embed")),
    };
    let mut params = stated(args, &["model"]);
    params.insert("input".to_owned(), text.into());
    Ok(params)
}

/// A conversation, and the form of the answer where several outputs are to be had.
fn question(meta: &NodeMeta, args: Args<'_>, fields: &Option<Added>) -> Result<Map, NodeError> {
    let prompt = prompt(meta, args);
    let media: Vec<Value> = args.0.values().flat_map(media_in).collect();
    if prompt.trim().is_empty() && media.is_empty() && args.list("messages").is_empty() {
        return Err(missing(prompt_name(meta), "there is nothing to ask"));
    }
    let system = SYSTEMS
        .iter()
        .map(|name| args.text(name))
        .find(|text| !text.trim().is_empty());
    let task = match meta.outputs.first() {
        // The task of a model that is not a chat is in its name.
        _ if meta.inputs.iter().any(|input| input.name == "prompt") => String::new(),
        Some(_) => format!("{}: ", meta.title),
        None => String::new(),
    };
    let asked = message("user", format!("{task}{prompt}").trim(), &media);
    let system = system.map(|system| message("system", system.trim(), &[]));
    let history = args.list("messages");
    let messages: Vec<Value> = system.into_iter().chain(history).chain([asked]).collect();
    let mut params: Map = stated(args, &["model"])
        .into_iter()
        .filter(|(_, value)| media_in(value).is_empty())
        .collect();
    for name in SYSTEMS.iter().chain(PROMPTS) {
        params.shift_remove(*name);
    }
    params.extend(map([("messages", Value::list(messages))]));
    if let Some(fields) = fields {
        params.insert("response_format".to_owned(), fields.response_format());
    }
    Ok(params)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use crate::{
        node::Runner,
        nodes::{
            catalog, registry,
            testing::{Node, Script},
        },
    };

    fn picture() -> Json {
        json!({"type": "image", "uri": "asset://a1", "asset_id": null, "data": null})
    }

    #[rstest]
    #[case("replicate.image.generate.Flux_Kontext_Pro", json!({"prompt": "moor", "seed": -1}), "text_to_image", "Flux_Kontext_Pro",
        json!({"prompt": "moor"}))]
    #[case("replicate.image.generate.Flux_Kontext_Pro", json!({"prompt": "moor", "input_image": picture()}), "image_to_image",
        "Flux_Kontext_Pro", json!({"prompt": "moor", "input_image": picture()}))]
    #[case("replicate.image.generate.Proteus_V_03", json!({"image": picture(), "mask": picture()}), "inpainting", "Proteus_V_03",
        json!({"image": picture(), "mask": picture()}))]
    #[case("kie.image.GoogleNanoBanana", json!({"prompt": "x", "image_size": "1:1"}), "text_to_image", "GoogleNanoBanana",
        json!({"prompt": "x", "image_size": "1:1"}))]
    #[case("gemini.video.TextToVideo", json!({"prompt": "x", "model": "veo-3"}), "text_to_video", "veo-3", json!({"prompt": "x"}))]
    #[case("openai.audio.TextToSpeech", json!({"input": "hi", "model": "tts-1", "voice": "ada"}), "text_to_speech", "tts-1",
        json!({"input": "hi", "voice": "ada", "text": "hi"}))]
    #[case("mistral.embeddings.Embedding", json!({"input": "hi"}), "embedding", "Embedding", json!({"input": "hi"}))]
    #[case("xai.text.ChatComplete", json!({"prompt": "hi", "system_prompt": "short", "model": "grok-4"}), "generate_message", "grok-4",
        json!({"messages": [{"role": "system", "content": "short"}, {"role": "user", "content": "hi"}]}))]
    #[case("replicate.image.3d.Trellis", json!({"images": [picture()]}), "image_to_3d", "Trellis", json!({"images": [picture()]}))]
    #[tokio::test]
    async fn calls_follow_from_the_catalog(
        #[case] node_type: &str,
        #[case] inputs: Json,
        #[case] capability: &str,
        #[case] model: &str,
        #[case] params: Json,
    ) {
        let mut node = Node::scripted(node_type, Script::whole("made"));
        let out = node.process(inputs).await.expect("a result");
        assert_eq!(out.as_object().expect("outputs").len(), 1);
        let call = node.call();
        let provider = node_type.split('.').next().expect("a provider");
        assert_eq!(
            (
                call.provider.as_str(),
                call.model.as_str(),
                call.capability.as_str()
            ),
            (provider, model, capability)
        );
        assert_eq!(node.params(), params);
    }

    #[tokio::test]
    async fn several_outputs_are_asked_for_as_fields() {
        let script = Script::whole("{\"output\": \"joy\", \"scores\": [1]}");
        let mut node = Node::scripted("huggingface.TextClassification", script);
        let out = node
            .process(json!({"inputs": "what a day"}))
            .await
            .expect("outputs");
        assert_eq!(out, json!({"output": "joy", "scores": [1]}));
        let params = node.params();
        assert_eq!(
            params["messages"][0]["content"],
            "Text Classification: what a day"
        );
        assert_eq!(
            params["response_format"]["json_schema"]["schema"]["required"],
            json!(["output", "scores"])
        );
    }

    #[rstest]
    #[case("kie.image.GoogleNanoBanana", json!({}), "`prompt` is empty")]
    #[case("openai.audio.Transcribe", json!({"audio": {"type": "audio", "uri": ""}}), "`audio` is empty")]
    #[case("huggingface.Translation", json!({}), "`inputs` is empty")]
    #[tokio::test]
    async fn nothing_is_paid_for_nothing(#[case] node_type: &str, #[case] inputs: Json, #[case] part: &str) {
        let mut node = Node::scripted(node_type, Script::whole("made"));
        let error = node.process(inputs).await.expect_err("a fault");
        assert!(error.message.contains(part), "{}", error.message);
        assert_eq!(node.calls(), 0);
    }

    /// Every type of a provider makes one call of a capability when its inputs are given.
    #[tokio::test]
    async fn every_type_of_a_provider_makes_one_call() {
        let registry = registry();
        let mut seen = std::collections::BTreeMap::<String, usize>::new();
        for meta in registry.all().filter(|meta| meta.runner == Runner::Provider) {
            let mut node = Node::scripted(&meta.node_type, Script::whole("{}"));
            let mut inputs = node.defaults();
            let declared = catalog::meta(&meta.node_type).expect("a line").inputs.iter();
            for input in declared {
                let inner = input
                    .ty
                    .trim_start_matches("list[")
                    .trim_end_matches(']')
                    .to_owned();
                let value = match inner.as_str() {
                    "str" if input.values.is_empty() && input.name != "model" => json!("words"),
                    "image" | "audio" | "video" => json!({"type": inner, "uri": "asset://a1"}),
                    _ => continue,
                };
                inputs[&input.name] = if input.ty.starts_with("list[") {
                    json!([value])
                } else {
                    value
                };
            }
            let outcome = node.process(inputs).await;
            assert!(outcome.is_ok(), "{}: {:?}", meta.node_type, outcome.err());
            assert_eq!(node.calls(), 1, "{}", meta.node_type);
            *seen.entry(node.call().capability).or_default() += 1;
        }
        assert!(seen.values().sum::<usize>() > 500 && seen.len() > 8, "{seen:?}");
    }
}
