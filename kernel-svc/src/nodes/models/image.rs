//! Text to image.
//!
//! Width and height come from the aspect ratio and the resolution: the longer side has 1024 pixels at 1K, 2048 at 2K and
//! 4096 at 4K, the shorter one follows from the ratio, rounded to a multiple of 8. So 1K gives
//!
//! | ratio | size | ratio | size |
//! |---|---|---|---|
//! | 21:9 | 1024×440 | 9:16 | 576×1024 |
//! | 16:9 | 1024×576 | 2:3 | 680×1024 |
//! | 3:2 | 1024×680 | 5:7 | 728×1024 |
//! | 7:5 | 1024×728 | 3:4 | 768×1024 |
//! | 4:3 | 1024×768 | 4:5 | 816×1024 |
//! | 5:4 | 1024×816 | 1:1 | 1024×1024 |
//!
//! Properties `width` and `height` win over both.

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

/// What is not passed on as it is.
const OWN: &[&str] = &[
    "model",
    "prompt",
    "negative_prompt",
    "aspect_ratio",
    "resolution",
    "width",
    "height",
    "seed",
];

/// All types of this part.
pub(super) fn types() -> Types {
    vec![("nodetool.image.TextToImage", factory(TextToImage))]
}

#[derive(Clone, Copy)]
struct TextToImage;
#[async_trait]
impl Executor for TextToImage {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let mut request = call(ctx, Args(&inputs), "text_to_image", params(Args(&inputs))?)?;
        request.persist = true;
        let made = ctx.generate(request, &mut OnlyProgress(ctx)).await?;
        Ok(one("output", made.output))
    }
}

fn params(args: Args<'_>) -> Result<Map, NodeError> {
    let prompt = args.text("prompt");
    if prompt.trim().is_empty() {
        return Err(missing("prompt", "there is nothing to draw"));
    }
    let mut params = one("prompt", prompt);
    let negative = args.text("negative_prompt");
    if !negative.is_empty() {
        params.insert("negative_prompt".to_owned(), negative.into());
    }
    let (width, height) = (side(args, "width")?, side(args, "height")?);
    let ratio = args.text_or("aspect_ratio", "1:1");
    let sides = match (width, height) {
        (Some(width), Some(height)) => (width, height),
        (Some(width), None) => (width, scaled(width, flipped(parts(&ratio)?))),
        (None, Some(height)) => (scaled(height, parts(&ratio)?), height),
        (None, None) => {
            let resolution = args.text_or("resolution", "1K");
            params.insert("aspect_ratio".to_owned(), ratio.as_str().into());
            params.insert("resolution".to_owned(), resolution.as_str().into());
            size(&ratio, &resolution)?
        }
    };
    params.insert("width".to_owned(), Value::Int(sides.0));
    params.insert("height".to_owned(), Value::Int(sides.1));
    // Negative seeds ask for a random one.
    if !args.text("seed").is_empty() {
        let seed = args.int("seed", -1)?;
        if seed >= 0 {
            params.insert("seed".to_owned(), Value::Int(seed));
        }
    }
    params.extend(extras(args, OWN));
    Ok(params)
}
/// A stated side; 0 is none.
fn side(args: Args<'_>, name: &str) -> Result<Option<i64>, NodeError> {
    let pixels = args.int(name, 0)?;
    if pixels < 0 {
        return Err(
            NodeError::new(format!("the input `{name}` must be positive, got {pixels}")).code("input.value"),
        );
    }
    Ok((pixels > 0).then_some(pixels))
}
fn unknown(name: &str, given: &str, known: &str) -> NodeError {
    NodeError::new(format!("the input `{name}` must be {known}, got {given:?}")).code("input.value")
}
fn parts(ratio: &str) -> Result<(i64, i64), NodeError> {
    let read = ratio.split_once(':').and_then(|(width, height)| {
        Some((
            width.trim().parse::<i64>().ok()?,
            height.trim().parse::<i64>().ok()?,
        ))
    });
    let usable = read.filter(|(width, height)| (1..=100).contains(width) && (1..=100).contains(height));
    usable.ok_or_else(|| unknown("aspect_ratio", ratio, "a ratio like 16:9"))
}
fn flipped((width, height): (i64, i64)) -> (i64, i64) {
    (height, width)
}
/// Another side from a ratio, as a multiple of 8 and at least that.
fn scaled(side: i64, (part, whole): (i64, i64)) -> i64 {
    let exact = side.saturating_mul(part);
    let step = whole.saturating_mul(8);
    (exact.saturating_add(step / 2) / step).max(1) * 8
}
/// Width and height of a ratio at a resolution.
fn size(ratio: &str, resolution: &str) -> Result<(i64, i64), NodeError> {
    let (width, height) = parts(ratio)?;
    let long = match resolution.trim().to_ascii_uppercase().as_str() {
        "1K" => 1024,
        "2K" => 2048,
        "4K" => 4096,
        _ => return Err(unknown("resolution", resolution, "1K, 2K or 4K")),
    };
    Ok(if width >= height {
        (long, scaled(long, (height, width)))
    } else {
        (scaled(long, (width, height)), long)
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::nodes::testing::{Node, Script};

    #[rstest]
    #[case("21:9", (1024, 440))]
    #[case("16:9", (1024, 576))]
    #[case("3:2", (1024, 680))]
    #[case("7:5", (1024, 728))]
    #[case("4:3", (1024, 768))]
    #[case("5:4", (1024, 816))]
    #[case("1:1", (1024, 1024))]
    #[case("9:16", (576, 1024))]
    #[case("2:3", (680, 1024))]
    #[case("5:7", (728, 1024))]
    #[case("3:4", (768, 1024))]
    #[case("4:5", (816, 1024))]
    fn sizes_are_those_of_the_table(#[case] ratio: &str, #[case] expected: (i64, i64)) {
        assert_eq!(size(ratio, "1K").expect("a size"), expected);
        let (width, height) = size(ratio, "4k").expect("a size");
        assert!(width % 8 == 0 && height % 8 == 0 && width.max(height) == 4096);
    }

    #[tokio::test]
    async fn a_picture_is_asked_for_and_kept() {
        let mut node = Node::scripted("nodetool.image.TextToImage", Script::image("asset://a1"));
        let inputs = json!({"model": {"provider": "sketch", "id": "sketch-image"}, "prompt": "moor", "negative_prompt": "",
            "aspect_ratio": "16:9", "resolution": "1K", "seed": 3, "num_images": 2, "_control_context": {}, "x": null});
        let out = node.process(inputs).await.expect("a picture");
        assert_eq!(out["output"]["uri"], "asset://a1");
        let call = node.call();
        assert_eq!(
            (call.provider.as_str(), call.model.as_str()),
            ("sketch", "sketch-image")
        );
        assert_eq!(call.capability, "text_to_image");
        assert!(call.persist);
        let expected = json!({"prompt": "moor", "aspect_ratio": "16:9", "resolution": "1K", "width": 1024, "height": 576,
            "seed": 3, "num_images": 2});
        assert_eq!(node.params(), expected);
        assert_eq!(node.notes(), ["progress 1/2"]);
    }

    #[rstest]
    #[case(json!({"width": 1280, "height": 720, "aspect_ratio": "1:1"}), 1280, 720)]
    #[case(json!({"width": 640, "aspect_ratio": "16:9"}), 640, 360)]
    #[case(json!({"height": 640, "aspect_ratio": "9:16"}), 360, 640)]
    fn stated_sides_win(#[case] inputs: serde_json::Value, #[case] width: i64, #[case] height: i64) {
        let mut inputs = atelier_proto::value::map_from_json(inputs).expect("a map");
        inputs.insert("prompt".to_owned(), "moor".into());
        inputs.insert("seed".to_owned(), Value::Int(-1));
        let params = params(Args(&inputs)).expect("parameters");
        assert_eq!(
            (params["width"].as_i64(), params["height"].as_i64()),
            (Some(width), Some(height))
        );
        assert!(!params.contains_key("resolution") && !params.contains_key("seed"));
    }

    #[rstest]
    #[case(json!({"prompt": " "}), "`prompt` is empty")]
    #[case(json!({"prompt": "x", "aspect_ratio": "wide"}), "`aspect_ratio`")]
    #[case(json!({"prompt": "x", "resolution": "8K"}), "`resolution`")]
    #[case(json!({"prompt": "x", "width": -1}), "`width`")]
    #[case(json!({"prompt": "x", "seed": "abc"}), "`seed`")]
    #[tokio::test]
    async fn nothing_is_paid_for_faulty_inputs(#[case] inputs: serde_json::Value, #[case] part: &str) {
        let mut node = Node::scripted("nodetool.image.TextToImage", Script::image("asset://a1"));
        let error = node.process(inputs).await.expect_err("a fault");
        assert!(error.message.contains(part), "{}", error.message);
        assert_eq!(node.calls(), 0);
    }

    #[tokio::test]
    async fn a_default_that_nobody_chose_leaves_the_model_to_the_seam() {
        let mut node = Node::scripted("nodetool.image.TextToImage", Script::image("asset://a1"));
        let mut inputs = node.defaults();
        inputs["prompt"] = json!("moor");
        node.process(inputs.clone()).await.expect("a picture");
        assert_eq!(
            (node.call().provider.as_str(), node.call().model.as_str()),
            ("", "")
        );
        let mut node = Node::scripted("nodetool.image.TextToImage", Script::image("asset://a1"));
        node.properties(json!({"model": inputs["model"]}));
        node.process(inputs).await.expect("a picture");
        assert_eq!(node.call().provider, "huggingface_fal_ai");
    }
}
