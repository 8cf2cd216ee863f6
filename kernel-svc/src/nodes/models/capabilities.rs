//! Types that ask a provider for one capability with their inputs as its parameters.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};

use super::{call, figures::element, media, stated};
use crate::{
    node::{Context, Executor, NodeError, OnlyProgress},
    nodes::{
        args::{Args, missing, one},
        code::{Types, factory},
    },
};

/// A type and its capability.
#[derive(Debug, Clone, Copy)]
struct Asks {
    node_type: &'static str,
    capability: &'static str,
    /// Media that must be given, and what is missing without.
    media: &'static [&'static str],
    /// Whether there must be a prompt.
    prompt: bool,
    output: Form,
}
/// What the node makes of the result.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// Media, saved as an asset, on `output`.
    Media,
    /// Text, on `text`.
    Text,
    /// The root element of a drawing, on `output`.
    Drawing,
}

const ALL: &[Asks] = &[
    asks(
        "nodetool.image.ImageToImage",
        "image_to_image",
        &["image"],
        false,
        Form::Media,
    ),
    asks(
        "nodetool.image.Relight",
        "relight_image",
        &["image"],
        false,
        Form::Media,
    ),
    asks(
        "nodetool.image.RemoveBackground",
        "remove_background",
        &["image"],
        false,
        Form::Media,
    ),
    asks(
        "nodetool.image.Upscale",
        "upscale_image",
        &["image"],
        false,
        Form::Media,
    ),
    asks(
        "nodetool.image.Vectorize",
        "vectorize_image",
        &["image"],
        false,
        Form::Drawing,
    ),
    asks(
        "nodetool.video.TextToVideo",
        "text_to_video",
        &[],
        true,
        Form::Media,
    ),
    asks(
        "nodetool.video.ImageToVideo",
        "image_to_video",
        &["image"],
        false,
        Form::Media,
    ),
    asks(
        "nodetool.video.VideoToVideo",
        "video_to_video",
        &["video"],
        false,
        Form::Media,
    ),
    asks(
        "nodetool.video.LipSync",
        "lip_sync",
        &["video", "audio"],
        false,
        Form::Media,
    ),
    asks("nodetool.model3d.TextTo3D", "text_to_3d", &[], true, Form::Media),
    asks(
        "nodetool.model3d.ImageTo3D",
        "image_to_3d",
        &["image"],
        false,
        Form::Media,
    ),
    asks(
        "nodetool.text.AutomaticSpeechRecognition",
        "automatic_speech_recognition",
        &["audio"],
        false,
        Form::Text,
    ),
];
const fn asks(
    node_type: &'static str,
    capability: &'static str,
    media: &'static [&'static str],
    prompt: bool,
    output: Form,
) -> Asks {
    Asks {
        node_type,
        capability,
        media,
        prompt,
        output,
    }
}

/// What a type of this part does, for where its line in the catalog does not say it.
pub(super) fn about(node_type: &str) -> Option<&'static str> {
    Some(match node_type {
        "nodetool.image.ImageToImage" => "Makes a picture of another one, by a prompt.",
        "nodetool.image.Relight" => "Lights a picture anew, by a prompt.",
        "nodetool.image.RemoveBackground" => "Cuts out what a picture shows.",
        "nodetool.image.Upscale" => "Enlarges a picture.",
        "nodetool.image.Vectorize" => "Makes a vector drawing of a picture.",
        "nodetool.video.TextToVideo" => "Makes a film by a prompt.",
        "nodetool.video.ImageToVideo" => "Makes a film of a picture.",
        "nodetool.video.VideoToVideo" => "Makes a film of another one, by a prompt.",
        "nodetool.video.LipSync" => "Moves the lips of a film with a recording.",
        "nodetool.model3d.TextTo3D" => "Makes a 3D model by a prompt.",
        "nodetool.model3d.ImageTo3D" => "Makes a 3D model of a picture.",
        "nodetool.text.AutomaticSpeechRecognition" => "Writes down what is said in a recording.",
        "nodetool.text.Embedding" => "Turns a text into a vector of numbers.",
        _ => return None,
    })
}

/// All types of this part.
pub(super) fn types() -> Types {
    let mut types: Types = ALL.iter().map(|asks| (asks.node_type, factory(*asks))).collect();
    types.push(("nodetool.text.Embedding", factory(Embedding)));
    types
}

#[async_trait]
impl Executor for Asks {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let args = Args(&inputs);
        if self.prompt && args.text("prompt").trim().is_empty() {
            return Err(missing("prompt", "there is nothing to make"));
        }
        for name in self.media {
            if media(args, name).is_empty() {
                return Err(missing(name, "there is nothing to work on"));
            }
        }
        let mut request = call(
            ctx,
            args,
            self.capability,
            stated(args, &["model", "timeout_seconds"]),
        )?;
        request.persist = !matches!(self.output, Form::Text);
        let made = ctx.generate(request, &mut OnlyProgress(ctx)).await?.output;
        Ok(match self.output {
            Form::Media => one("output", made),
            Form::Text => one("text", made),
            Form::Drawing => one("output", drawing(made, ctx).await?),
        })
    }
}

/// A drawing as an element that other nodes can work on.
async fn drawing(made: Value, ctx: &Context) -> Result<Value, NodeError> {
    let Some(file) = made.as_media() else {
        return Ok(made);
    };
    let bytes = ctx.services.media_bytes(ctx, file).await?;
    let text = String::from_utf8_lossy(&bytes);
    element(&text).ok_or_else(|| NodeError::new("the result is no SVG drawing").code("model.answer"))
}

/// Most pieces of a text that are embedded at once.
const MAX_PIECES: usize = 1_024;

/// The vector of a text; of a longer one the mean of its pieces' vectors.
#[derive(Clone, Copy)]
struct Embedding;
#[async_trait]
impl Executor for Embedding {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let args = Args(&inputs);
        let text = args.text("input");
        if text.trim().is_empty() {
            return Err(missing("input", "there is nothing to embed"));
        }
        let size = usize::try_from(args.int("chunk_size", 4096)?.max(1)).unwrap_or(usize::MAX);
        let pieces = pieces(&text, size);
        let mut params = stated(args, &["model", "input", "chunk_size"]);
        let several = pieces.len() > 1;
        let input = if several {
            Value::list(pieces.into_iter().map(Value::from).collect())
        } else {
            text.into()
        };
        params.insert("input".to_owned(), input);
        let request = call(ctx, args, "embedding", params)?;
        let made = ctx.generate(request, &mut OnlyProgress(ctx)).await?.output;
        Ok(one("output", if several { mean(&made) } else { made }))
    }
}
fn pieces(text: &str, size: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    // Of a text with too many pieces each becomes larger.
    let size = size.max(letters.len().div_ceil(MAX_PIECES));
    letters.chunks(size).map(|piece| piece.iter().collect()).collect()
}
/// The mean of vectors, of length one.
fn mean(vectors: &Value) -> Value {
    let mut sum: Vec<f64> = Vec::new();
    for vector in vectors.as_list().unwrap_or_default() {
        let numbers = vector.as_list().unwrap_or_default();
        sum.resize(sum.len().max(numbers.len()), 0.0);
        for (total, number) in sum.iter_mut().zip(numbers) {
            *total += number.as_f64().unwrap_or_default();
        }
    }
    let length = sum.iter().map(|part| part * part).sum::<f64>().sqrt();
    let length = if length > 0.0 { length } else { 1.0 };
    Value::list(sum.into_iter().map(|part| Value::Float(part / length)).collect())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use crate::nodes::testing::{Node, Script};

    fn ref_to(kind: &str) -> Json {
        json!({"type": kind, "uri": "asset://a1", "asset_id": null, "data": null})
    }

    #[rstest]
    #[case("nodetool.image.ImageToImage", json!({"image": [ref_to("image")], "prompt": "at night", "seed": -1, "steps": 2}),
        "image_to_image", json!({"image": [ref_to("image")], "prompt": "at night", "steps": 2}))]
    #[case("nodetool.image.Upscale", json!({"image": ref_to("image"), "scale": 2, "prompt": ""}), "upscale_image",
        json!({"image": ref_to("image"), "scale": 2}))]
    #[case("nodetool.video.TextToVideo", json!({"prompt": "moor", "duration": 4, "timeout_seconds": 9}), "text_to_video",
        json!({"prompt": "moor", "duration": 4}))]
    #[case("nodetool.video.LipSync", json!({"video": ref_to("video"), "audio": ref_to("audio")}), "lip_sync",
        json!({"video": ref_to("video"), "audio": ref_to("audio")}))]
    #[case("nodetool.model3d.TextTo3D", json!({"prompt": "ruby"}), "text_to_3d", json!({"prompt": "ruby"}))]
    #[tokio::test]
    async fn media_are_made(
        #[case] ty: &str,
        #[case] mut inputs: Json,
        #[case] capability: &str,
        #[case] params: Json,
    ) {
        let mut node = Node::scripted(ty, Script::image("asset://a2"));
        inputs["model"] = json!({"provider": "sketch", "id": "m"});
        let out = node.process(inputs).await.expect("a result");
        assert_eq!(out["output"]["uri"], "asset://a2");
        let call = node.call();
        assert_eq!(
            (call.capability.as_str(), call.model.as_str(), call.persist),
            (capability, "m", true)
        );
        assert_eq!(node.params(), params);
    }

    #[tokio::test]
    async fn sound_becomes_text_and_texts_become_vectors() {
        let mut node = Node::scripted("nodetool.text.AutomaticSpeechRecognition", Script::whole("hello"));
        let out = node
            .process(json!({"audio": ref_to("audio")}))
            .await
            .expect("text");
        assert_eq!((out, node.call().persist), (json!({"text": "hello"}), false));
        let mut node = Node::scripted(
            "nodetool.text.Embedding",
            Script::value(json!([[1.0, 0.0], [0.0, 1.0]])),
        );
        let out = node
            .process(json!({"input": "abcd", "chunk_size": 2}))
            .await
            .expect("a vector");
        let [one, other] = [0, 1].map(|at| out["output"][at].as_f64().expect("a number"));
        assert!((one - other).abs() < 1e-12 && (one * one + other * other - 1.0).abs() < 1e-12);
        assert_eq!(node.params(), json!({"input": ["ab", "cd"]}));
    }

    #[rstest]
    #[case("nodetool.image.ImageToImage", json!({"image": []}), "`image` is empty")]
    #[case("nodetool.video.TextToVideo", json!({"prompt": " "}), "`prompt` is empty")]
    #[case("nodetool.video.LipSync", json!({"video": ref_to("video")}), "`audio` is empty")]
    #[case("nodetool.text.Embedding", json!({"input": ""}), "`input` is empty")]
    #[tokio::test]
    async fn nothing_is_paid_for_nothing(#[case] ty: &str, #[case] inputs: Json, #[case] part: &str) {
        let mut node = Node::scripted(ty, Script::whole("x"));
        let error = node.process(inputs).await.expect_err("a fault");
        assert!(error.message.contains(part), "{}", error.message);
        assert_eq!(node.calls(), 0);
    }
}
