//! Known pixels in, known pixels out.

use std::sync::Arc;

use atelier_proto::{
    kernel::v1::JobStatus,
    value::{Map, MediaRef, Value},
};
use rstest::rstest;
use serde_json::{Value as Json, json};

use crate::nodes::{
    catalog,
    media_testing::{Local, call, context, graph, grey, inputs, node, picture, pixels, reds, run_file},
    registry,
};

const CLEAR: [u8; 4] = [0, 0, 0, 0];

async fn made(node_type: &str, params: Json, media: &[(&str, &Value)]) -> Value {
    let out = node(node_type, params, media).await.unwrap_or_else(|error| panic!("{node_type}: {error}"));
    out.get("output").cloned().unwrap_or_else(|| panic!("{node_type}: no output"))
}

/// One pixel through the types that change colours; alpha stays as it was.
#[rstest]
#[case("color.BrightnessContrast", json!({"brightness": 0.2}), [100, 50, 200, 128], [151, 101, 251, 128])]
#[case("color.BrightnessContrast", json!({"contrast": 2}), [100, 50, 200, 128], [73, 0, 255, 128])]
#[case("color.BrightnessContrast", json!({"factor": 1.5}), [100, 50, 200, 128], [150, 75, 255, 128])]
#[case("color.Exposure", json!({"stops": -1}), [100, 50, 200, 128], [50, 25, 100, 128])]
#[case("color.HSB", json!({"hue": 120}), [255, 0, 0, 255], [0, 255, 0, 255])]
#[case("color.HSB", json!({"saturation": 0}), [200, 100, 0, 255], [200, 200, 200, 255])]
#[case("color.HSB", json!({"brightness": 0.5}), [200, 100, 0, 255], [100, 50, 0, 255])]
#[case("color.HSB", json!({"factor": 0}), [200, 100, 0, 255], [200, 200, 200, 255])]
#[case("color.HSB", json!({}), [17, 34, 51, 68], [17, 34, 51, 68])]
#[case("color.Invert", json!({}), [0, 100, 255, 7], [255, 155, 0, 7])]
#[case("color.Invert", json!({"amount": 0}), [0, 100, 255, 7], [0, 100, 255, 7])]
#[case("color.Posterize", json!({"levels": 2}), [127, 128, 255, 255], [0, 255, 255, 255])]
#[case("color.ChannelSplit", json!({"mode": 3}), [1, 2, 3, 4], [4, 4, 4, 255])]
#[case("color.Grade", json!({}), [10, 100, 250, 255], [10, 100, 250, 255])]
#[case("color_grading.CDL", json!({"slope_r": 2, "offset_g": 0.2, "power_b": 2}), [50, 50, 128, 255], [100, 101, 64, 255])]
#[case("color_grading.ColorBalance", json!({"temperature": 1}), [100, 100, 100, 255], [151, 100, 49, 255])]
#[case("color_grading.Curves", json!({"black_point": 0.5}), [64, 128, 255, 255], [0, 1, 255, 255])]
#[case("color_grading.Exposure", json!({"exposure": 1}), [50, 60, 200, 255], [100, 120, 255, 255])]
#[case("color_grading.HSLAdjust", json!({"color_range": "greens", "saturation": -1}), [255, 0, 0, 255], [255, 0, 0, 255])]
#[case("color_grading.HSLAdjust", json!({"color_range": "reds", "saturation": -1}), [255, 0, 0, 255], [54, 54, 54, 255])]
#[case("color_grading.LiftGammaGain", json!({"lift_master": 0.5, "gain_g": 0.5}), [0, 0, 255, 255], [128, 64, 255, 255])]
#[case("color_grading.SaturationVibrance", json!({"saturation": -1}), [255, 0, 0, 255], [54, 54, 54, 255])]
#[case("color_grading.SplitToning", json!({"shadow_saturation": 0, "highlight_saturation": 0}), [9, 8, 7, 6], [9, 8, 7, 6])]
#[case("color_grading.FilmLook", json!({"intensity": 0}), [9, 80, 170, 60], [9, 80, 170, 60])]
#[case("color_grading.FilmLook", json!({"preset": "noir"}), [128, 128, 128, 255], [128, 128, 128, 255])]
#[case("filter.ConvertToGrayscale", json!({}), [255, 0, 0, 9], [76, 76, 76, 9])]
#[case("filter.Invert", json!({}), [0, 100, 255, 7], [255, 155, 0, 7])]
#[case("filter.Posterize", json!({"bits": 1}), [127, 128, 255, 255], [0, 128, 128, 255])]
#[case("filter.Solarize", json!({"threshold": 100}), [99, 100, 255, 255], [99, 155, 0, 255])]
#[case("filter.Threshold", json!({"softness": 0}), [200, 200, 200, 9], [255, 255, 255, 9])]
#[case("filter.GaussianBlur", json!({}), [200, 100, 50, 25], [200, 100, 50, 25])]
#[case("filter.UnsharpMask", json!({}), [200, 100, 50, 255], [200, 100, 50, 255])]
#[case("filter.FindEdges", json!({}), [200, 100, 50, 255], [0, 0, 0, 255])]
#[case("filter.Contour", json!({}), [200, 100, 50, 255], [255, 255, 255, 255])]
#[case("filter.Emboss", json!({}), [200, 100, 50, 255], [128, 128, 128, 255])]
#[case("filter.Smooth", json!({}), [200, 100, 50, 255], [200, 100, 50, 255])]
#[case("filter.Canny", json!({}), [200, 100, 50, 255], [0, 0, 0, 255])]
#[case("filter.Pixelate", json!({}), [200, 100, 50, 255], [200, 100, 50, 255])]
#[case("enhance.AutoContrast", json!({}), [200, 100, 50, 255], [200, 100, 50, 255])]
#[case("enhance.Equalize", json!({}), [200, 100, 50, 255], [200, 100, 50, 255])]
#[case("enhance.Detail", json!({}), [200, 100, 50, 255], [200, 100, 50, 255])]
#[case("enhance.EdgeEnhance", json!({}), [200, 100, 50, 255], [200, 100, 50, 255])]
#[case("enhance.RankFilter", json!({}), [200, 100, 50, 255], [200, 100, 50, 255])]
#[case("effects.ColorOverlay", json!({"color": "#0000ff", "amount": 1}), [200, 100, 50, 40], [0, 0, 255, 40])]
#[case("effects.Glow", json!({"intensity": 0}), [200, 100, 50, 255], [200, 100, 50, 255])]
#[case("effects.Outline", json!({}), [200, 100, 50, 255], [200, 100, 50, 255])]
#[case("effects.DropShadow", json!({}), [200, 100, 50, 255], [200, 100, 50, 255])]
#[case("channel.Shuffle", json!({"r_from": 2, "b_from": 0}), [1, 2, 3, 4], [3, 2, 1, 4])]
#[case("mask.FromImage", json!({"mode": 2, "invert": 1}), [55, 2, 3, 255], [200, 200, 200, 255])]
#[case("mask.Invert", json!({}), [55, 55, 55, 255], [200, 200, 200, 255])]
#[case("keyer.ChromaKey", json!({}), [0, 255, 0, 255], [0, 128, 0, 0])]
#[case("keyer.ChromaKey", json!({}), [255, 0, 0, 255], [255, 0, 0, 255])]
#[case("keyer.LumaKey", json!({"low": 0.5}), [10, 10, 10, 255], [10, 10, 10, 0])]
#[case("keyer.LumaKey", json!({}), [0, 0, 0, 255], [0, 0, 0, 255])]
#[case("warp.Spherize", json!({}), [1, 2, 3, 255], [1, 2, 3, 255])]
#[case("warp.Tile", json!({}), [1, 2, 3, 255], [1, 2, 3, 255])]
#[case("warp.PolarRemap", json!({}), [1, 2, 3, 255], [1, 2, 3, 255])]
#[case("warp.CornerPin", json!({}), [1, 2, 3, 255], [1, 2, 3, 255])]
#[tokio::test]
async fn one_pixel(#[case] name: &str, #[case] params: Json, #[case] before: [u8; 4], #[case] after: [u8; 4]) {
    let out = made(&format!("lib.image.{name}"), params, &[("image", &picture(1, &[before]))]).await;
    assert_eq!(pixels(&out), (1, vec![after]), "{name}");
}

/// Rows of grey.
#[rstest]
#[case("lib.image.enhance.AutoContrast", json!({}), vec![50, 100, 150], vec![0, 128, 255])]
#[case("lib.image.enhance.Equalize", json!({}), vec![10, 20, 30], vec![0, 128, 255])]
#[case("lib.image.enhance.RankFilter", json!({"size": 3, "rank": 0}), vec![50, 10, 150, 200], vec![10, 10, 10, 150])]
#[case("lib.image.enhance.RankFilter", json!({"size": 3, "rank": 8}), vec![50, 10, 150, 200], vec![50, 150, 200, 200])]
#[case("lib.image.filter.FindEdges", json!({}), vec![0, 0, 50, 50], vec![0, 0, 150, 0])]
#[case("lib.image.filter.Pixelate", json!({"cell_size": 2}), vec![0, 100, 50, 60, 7], vec![50, 50, 55, 55, 7])]
#[case("lib.image.filter.Expand", json!({"border": 1, "fill": 9}), vec![5], vec![9, 9, 9, 9, 5, 9, 9, 9, 9])]
#[case("lib.image.warp.Offset", json!({"dx": 0.25, "wrap": 1}), vec![1, 2, 3, 4], vec![4, 1, 2, 3])]
#[case("lib.image.warp.Offset", json!({"dx": 0.25}), vec![1, 2, 3, 4], vec![1, 1, 2, 3])]
#[case("lib.image.warp.Offset", json!({"dx": 0.5, "wrap": 2}), vec![1, 2, 3, 4], vec![2, 1, 1, 2])]
#[case("lib.image.warp.Affine", json!({"tx": 1}), vec![1, 2, 3, 4], vec![0, 1, 2, 3])]
#[case("lib.image.warp.CornerPin", json!({"h02": 0.25}), vec![1, 2, 3, 4], vec![0, 1, 2, 3])]
#[case("lib.image.warp.Pad", json!({"left": 0.5, "color": "#090909"}), vec![1, 2], vec![9, 1, 2])]
#[case("nodetool.image.Crop", json!({"left": 1, "right": 3}), vec![1, 2, 3, 4], vec![2, 3])]
#[case("nodetool.image.Crop", json!({"left": 3, "right": 9999, "bottom": 9999}), vec![1, 2, 3, 4], vec![4])]
#[case("nodetool.image.Resize", json!({"width": 2, "height": 1}), vec![10, 10, 10, 10], vec![10, 10])]
#[case("nodetool.image.Resize", json!({"width": 0, "height": 0}), vec![1, 2, 3], vec![1, 2, 3])]
#[case("nodetool.image.Resize", json!({"width": 4, "height": 0}), vec![7, 7], vec![7, 7, 7, 7, 7, 7, 7, 7])]
#[case("nodetool.image.Scale", json!({"scale": 2}), vec![5], vec![5, 5, 5, 5])]
#[case("nodetool.image.Scale", json!({"scale": 0.001}), vec![5, 5, 5], vec![5])]
#[case("nodetool.image.Fit", json!({"width": 1, "height": 1}), vec![1, 9, 1], vec![9])]
#[case("nodetool.image.RotateAndFlip", json!({"flip_horizontal": true}), vec![1, 2, 3], vec![3, 2, 1])]
#[case("nodetool.image.RotateAndFlip", json!({"angle": 180}), vec![1, 2, 3], vec![3, 2, 1])]
#[case("nodetool.image.RotateAndFlip", json!({"angle": -270}), vec![1, 2, 3], vec![1, 2, 3])]
#[case("nodetool.image.RotateAndFlip", json!({"angle": 360}), vec![1, 2, 3], vec![1, 2, 3])]
#[case("nodetool.image.CanvasResize", json!({"left": 1}), vec![1, 2], vec![0, 1, 2])]
#[case("nodetool.image.CanvasResize", json!({"mode": "fixed", "width": 1, "height": 1}), vec![1, 2, 3], vec![2])]
#[case("nodetool.image.CanvasResize", json!({"padding_unit": "percent", "right": 50}), vec![1, 2], vec![1, 2, 0])]
#[case("nodetool.image.Blur", json!({"blur_type": "motion", "size": 1}), vec![0, 90, 0], vec![30, 30, 30])]
#[case("nodetool.image.Blur", json!({"size": 0}), vec![0, 90, 0], vec![0, 90, 0])]
#[case("nodetool.image.Levels", json!({"r_black": 100, "r_white": 200}), vec![50, 150, 250], vec![0, 128, 255])]
#[case("nodetool.image.Channels", json!({}), vec![50, 150], vec![50, 150])]
#[tokio::test]
async fn rows(#[case] name: &str, #[case] params: Json, #[case] before: Vec<u8>, #[case] after: Vec<u8>) {
    let width = u32::try_from(before.len()).unwrap();
    let out = made(name, params, &[("image", &grey(width, &before))]).await;
    assert_eq!(reds(&out), after, "{name}");
}

#[rstest]
#[case("Background", json!({"color": "#ff000080"}), vec![[255, 0, 0, 128]; 4])]
#[case("Checkerboard", json!({"cell_size": 1, "color_a": "#000", "color_b": "white"}),
    vec![[0, 0, 0, 255], [255; 4], [255; 4], [0, 0, 0, 255]])]
#[case("LinearGradient", json!({"color_a": "#000000", "color_b": "#ffffff"}),
    vec![[64, 64, 64, 255], [191, 191, 191, 255], [64, 64, 64, 255], [191, 191, 191, 255]])]
#[case("LinearGradient", json!({"color_a": "#000000", "color_b": "#ffffff", "angle": 180}),
    vec![[191, 191, 191, 255], [64, 64, 64, 255], [191, 191, 191, 255], [64, 64, 64, 255]])]
#[case("RadialGradient", json!({"color_inner": "#000000", "color_outer": "#ffffff", "radius": 0}), vec![[255; 4]; 4])]
#[case("DiamondGradient", json!({"color_inner": "#000000", "color_outer": "#ffffff"}), vec![[255; 4]; 4])]
#[case("AngularGradient", json!({"color_a": "#000000", "color_b": "#ffffff"}),
    vec![[159, 159, 159, 255], [223, 223, 223, 255], [96, 96, 96, 255], [32, 32, 32, 255]])]
#[case("GaussianNoise", json!({"mean": 0.5, "stddev": 0}), vec![[128, 128, 128, 255]; 4])]
#[tokio::test]
async fn pictures_are_drawn(#[case] name: &str, #[case] mut params: Json, #[case] expected: Vec<[u8; 4]>) {
    params["width"] = json!(2);
    params["height"] = json!(2);
    let name = format!("lib.image.draw.{name}");
    let out = made(&name, params.clone(), &[]).await;
    assert_eq!(pixels(&out), (2, expected), "{name}");
    assert_eq!(made(&name, params, &[]).await, out, "the same each time");
}

#[tokio::test]
async fn pictures_are_laid_over_each_other() {
    let (red, half) = ([255, 0, 0, 255], [0, 0, 255, 128]);
    let (below, above) = (picture(2, &[red, red]), picture(1, &[half]));
    let out = made("nodetool.image.Paste", json!({"left": 1, "top": 0}), &[("image", &below), ("paste", &above)]).await;
    assert_eq!(pixels(&out).1, [red, [127, 0, 128, 255]]);
    let out = made("nodetool.image.Compositor", json!({}), &[("a", &below), ("b", &above)]).await;
    assert_eq!(pixels(&out).1, [[127, 0, 128, 255], red]);
    let layers = json!({"layers": [{"input": "b", "x": 1, "blend_mode": "multiply"}]});
    let out = made("nodetool.image.Compositor", layers, &[("b", &above), ("a", &below)]).await;
    assert_eq!(pixels(&out).1, [red, [127, 0, 0, 255]]);
    let (white, black) = (grey(2, &[255, 255]), grey(2, &[0, 0]));
    let mask = grey(2, &[255, 0]);
    let out = made("lib.image.Mask", json!({}), &[("image1", &white), ("image2", &black), ("mask", &mask)]).await;
    assert_eq!(reds(&out), [255, 0]);
    let out = made("lib.image.mask.Apply", json!({}), &[("image", &white), ("mask", &mask)]).await;
    assert_eq!(pixels(&out).1, [[255; 4], [255, 255, 255, 0]]);
    let out = made("lib.image.channel.Merge", json!({"alpha_channel": 4}), &[("image", &white), ("alpha", &mask)]).await;
    assert_eq!(pixels(&out).1, [[255; 4], [255, 255, 255, 0]]);
    let out = made("lib.image.effects.Add", json!({}), &[("image", &grey(2, &[10, 250])), ("over", &grey(2, &[20, 20]))]).await;
    assert_eq!(reds(&out), [30, 255]);
    let (image, map) = (grey(2, &[1, 9]), grey(2, &[128, 128]));
    let out = made("lib.image.warp.Displace", json!({}), &[("image", &image), ("displacement", &map)]).await;
    assert_eq!(reds(&out), [1, 9]);
}

/// A mask of another size is stretched; where it is black nothing changes.
#[tokio::test]
async fn changes_stay_within_their_mask() {
    let (image, mask) = (grey(4, &[10, 10, 10, 10]), grey(4, &[255, 0, 128, 255]));
    let out = made("lib.image.color.Invert", json!({}), &[("image", &image), ("mask", &mask)]).await;
    assert_eq!(reds(&out), [245, 10, 128, 245]);
    let out = made("lib.image.color.Invert", json!({}), &[("image", &image), ("mask", &grey(1, &[0]))]).await;
    assert_eq!(reds(&out), [10; 4]);
}

/// Hidden colours do not shine into what is seen.
#[tokio::test]
async fn see_through_pixels_have_no_colour() {
    let image = picture(2, &[[255, 0, 0, 0], [0, 0, 255, 255]]);
    let out = made("nodetool.image.Resize", json!({"width": 1, "height": 1}), &[("image", &image)]).await;
    let [red, _, blue, alpha] = pixels(&out).1[0];
    assert_eq!((red, blue), (0, 255), "{alpha}");
    let out = made("lib.image.filter.GaussianBlur", json!({"sigma": 1}), &[("image", &image)]).await;
    assert!(pixels(&out).1.iter().all(|[red, _, blue, _]| (*red, *blue) == (0, 255)));
    let clear = made("lib.image.filter.GaussianBlur", json!({}), &[("image", &picture(1, &[CLEAR]))]).await;
    assert_eq!(pixels(&clear).1, [CLEAR]);
}

#[tokio::test]
async fn text_is_written() {
    let white = grey(40, &[255; 40 * 20]);
    let params = json!({"text": "Hi", "size": 16, "color": "#000000"});
    let out = made("lib.image.draw.RenderText", params.clone(), &[("image", &white)]).await;
    let dark = |value: &Value, columns: std::ops::Range<usize>| {
        reds(value).chunks(40).flat_map(|row| row[columns.clone()].to_vec()).filter(|value| *value < 100).count()
    };
    assert!(dark(&out, 0..20) > 20, "letters");
    assert_eq!(dark(&out, 24..40), 0, "nothing beside them");
    let mut right = params;
    right["align"] = json!("right");
    right["x"] = json!(40);
    let out = made("lib.image.draw.RenderText", right, &[("image", &white)]).await;
    assert_eq!(dark(&out, 0..20), 0);
    assert!(dark(&out, 20..40) > 20);
}

#[tokio::test]
async fn a_picture_tells_of_itself() {
    let out = node("nodetool.image.GetMetadata", json!({}), &[("image", &grey(3, &[1, 2, 3]))]).await.expect("facts");
    let facts = atelier_proto::value::to_json(&out.into(), atelier_proto::value::BytesForm::Tagged);
    assert_eq!(facts, json!({"format": "PNG", "mode": "RGB", "width": 3, "height": 1, "channels": 3}));
}

#[rstest]
#[case("lib.image.color.Invert", json!({"amount": 5}), "the input `amount` must be between 0 and 1, got 5")]
#[case("lib.image.color.Invert", json!({"amount": "much"}), "the input `amount` expects float, got str")]
#[case("lib.image.draw.Background", json!({"width": 0}), "the input `width` must be at least 1, got 0")]
#[case("lib.image.draw.Background", json!({"width": -1}), "the input `width` must be at least 1, got -1")]
#[case("lib.image.draw.Background", json!({"width": 30000, "height": 30000}),
    "the input `width` gives a picture of 30000x30000; at most 67108864 pixels and 32768 on a side can be worked on")]
#[case("lib.image.draw.Background", json!({"color": "reddish"}),
    "the input `color` must be a colour like #ff8800, got \"reddish\"")]
#[case("nodetool.image.Scale", json!({"scale": 100000}),
    "the input `scale` gives a picture of 200000x100000; at most 67108864 pixels and 32768 on a side can be worked on")]
#[case("nodetool.image.Scale", json!({"scale": 0}), "the input `scale` must be above 0, got 0")]
#[case("nodetool.image.Crop", json!({"left": 5}), "the input `right` leaves nothing of the picture of 2x1")]
#[case("lib.image.warp.Affine", json!({"m00": 0}),
    "the input `m00` and the other numbers of the matrix leave nothing of the picture")]
#[case("lib.image.enhance.RankFilter", json!({"size": 3, "rank": 9}),
    "the input `rank` must be below 9, the pixels around each one, got 9")]
#[case("lib.image.filter.Canny", json!({"low_threshold": 9, "high_threshold": 3}),
    "the input `low_threshold` must not be above the input `high_threshold`")]
#[case("lib.image.color_grading.FilmLook", json!({"preset": "x"}), "the input `preset` must be one of: teal_orange, \
    blockbuster, noir, vintage, cold_blue, warm_sunset, matrix, bleach_bypass, cross_process, faded_film; got \"x\"")]
#[tokio::test]
async fn what_does_not_fit_is_refused(#[case] name: &str, #[case] params: Json, #[case] expected: &str) {
    let image = grey(2, &[1, 2]);
    let media: &[(&str, &Value)] = if name.contains(".draw.") { &[] } else { &[("image", &image)] };
    let error = node(name, params, media).await.expect_err("a fault");
    assert_eq!(error.message, expected);
}

/// Every type that takes a picture says which input is empty, and which one is no picture.
#[tokio::test]
async fn broken_and_missing_pictures_are_named() {
    let types = super::types();
    let mut seen = 0;
    for (name, _) in types {
        let meta = catalog::meta(name).expect("a line");
        let first = meta.inputs.iter().find(|input| input.ty == "image");
        let Some(first) = first.filter(|_| !name.ends_with(".BatchToList") && !name.ends_with(".Painter")) else {
            continue;
        };
        seen += 1;
        let error = node(name, json!({}), &[]).await.expect_err(name);
        assert!(error.message.starts_with(&format!("the input `{}` is empty", first.name)), "{name}: {error}");
        let broken = Value::media(MediaRef {
            kind: "image".to_owned(),
            data: Some(b"\x89PNG\r\n\x1a\nbroken".to_vec().into()),
            ..MediaRef::default()
        });
        let error = node(name, json!({}), &[(&first.name, &broken)]).await.expect_err(name);
        assert!(error.message.starts_with(&format!("the input `{}` is no picture", first.name)), "{name}: {error}");
    }
    assert!(seen > 60, "{seen}");
}

/// A small file that says it is huge is refused before it is unpacked.
#[tokio::test]
async fn a_bomb_is_refused_by_its_size() {
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x75\x30\0\0\x75\x30\x08\x06\0\0\0".to_vec();
    png.extend([0x54, 0x4b, 0x56, 0xd5]);
    png.extend(b"\0\0\0\0IDAT\x35\xaf\x06\x1e");
    let bomb = Value::media(MediaRef { kind: "image".to_owned(), data: Some(png.into()), ..MediaRef::default() });
    let error = node("lib.image.filter.Invert", json!({}), &[("image", &bomb)]).await.expect_err("a fault");
    assert!(error.message.contains("30000x30000") || error.message.contains("is no picture"), "{error}");
}

#[tokio::test]
async fn a_cancelled_node_ends() {
    let ctx = context("lib.image.filter.GaussianBlur", Arc::default());
    let image = grey(64, &[7; 64 * 64]);
    ctx.cancel.cancel();
    let error = call(&ctx, inputs(json!({}), &[("image", &image)])).await.expect_err("cancelled");
    assert_eq!(error.kind, crate::node::NodeErrorKind::Cancelled);
}

/// A folder, a chain on each picture, and all of them again.
#[tokio::test]
async fn a_folder_is_worked_through() {
    let folder = tempfile::tempdir().expect("a folder");
    let photos = folder.path().join("photos");
    std::fs::create_dir(&photos).expect("a folder");
    for (name, values) in [("b.png", [0, 100]), ("a.png", [50, 100])] {
        let data = grey(2, &values).as_media().and_then(|media| media.data.clone()).expect("bytes");
        std::fs::write(photos.join(name), data).expect("a file");
    }
    std::fs::write(photos.join("notes.txt"), "no picture").expect("a file");
    let services = Arc::new(Local { workspace: Some(folder.path().to_owned()), ..Local::default() });
    let nodes = json!([
        ["folder", "nodetool.image.LoadImageFolder", {"folder": "./photos"}],
        ["stretch", "lib.image.enhance.AutoContrast", {}],
        ["all", "nodetool.control.Collect", {}],
        ["paths", "nodetool.control.Collect", {}],
        ["out", "nodetool.output.Output", {"name": "pictures"}],
        ["names", "nodetool.output.Output", {"name": "names"}],
    ]);
    let edges = ["folder.image -> stretch.image", "stretch.output -> all.input_item", "all.output -> out.value",
        "folder.path -> paths.input_item", "paths.output -> names.value"];
    let (result, artifacts) = graph(nodes, &edges, Map::new(), services).await;
    assert_eq!(result.status, JobStatus::Completed, "{:?}", result.error);
    assert_eq!(artifacts.iter().filter(|(id, _)| id == "stretch").count(), 2);
    let pictures = result.outputs["pictures"].as_list().expect("a list").to_vec();
    assert_eq!(pictures.iter().map(reds).collect::<Vec<_>>(), [[0, 255], [0, 255]]);
    assert_eq!(result.outputs["names"], Value::list(vec!["photos/a.png".into(), "photos/b.png".into()]));
}

#[rstest]
#[case("../secret.png")]
#[case("/etc/hostname")]
#[case("photos/../../secret.png")]
#[case("link/secret.png")]
#[tokio::test]
async fn files_beyond_the_workspace_are_out_of_reach(#[case] path: &str) {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().join("workspace");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(outer.path().join("secret.png"), "secret").expect("a file");
    std::os::unix::fs::symlink(outer.path(), folder.join("link")).expect("a link");
    let services = Arc::new(Local { workspace: Some(folder.clone()), ..Local::default() });
    let ctx = context("nodetool.image.LoadImageFile", Arc::clone(&services));
    let error = call(&ctx, inputs(json!({"path": path}), &[])).await.expect_err("a fault");
    assert_eq!(error.message, "the input `path` must be a path within the workspace folder");
    let image = grey(1, &[1]);
    let write = context("nodetool.image.SaveImageFile", services);
    let away = std::path::Path::new(path).parent().expect("a folder").to_string_lossy().into_owned();
    let params = json!({"folder": away, "filename": "x.png"});
    let error = call(&write, inputs(params, &[("image", &image)])).await.expect_err("a fault");
    assert_eq!(error.message, "the input `folder` must be a path within the workspace folder");
    assert_eq!(std::fs::read_dir(outer.path()).expect("entries").count(), 2, "nothing was written");
}

#[tokio::test]
async fn pictures_are_saved_and_loaded_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let services = Arc::new(Local { workspace: Some(folder.path().to_owned()), ..Local::default() });
    let image = grey(2, &[10, 200]);
    let save = context("nodetool.image.SaveImageFile", Arc::clone(&services));
    for expected in ["out/a.bmp", "out/a_1.bmp"] {
        let params = json!({"folder": "out", "filename": "a.bmp"});
        call(&save, inputs(params, &[("image", &image)])).await.expect("saved");
        assert!(folder.path().join(expected).is_file(), "{expected}");
    }
    let load = context("nodetool.image.LoadImageFile", Arc::clone(&services));
    let out = call(&load, inputs(json!({"path": "out/a_1.bmp"}), &[])).await.expect("a picture");
    assert_eq!(out["output"].get("mime_type"), Some("image/bmp".into()));
    let grey = node("lib.image.filter.Invert", json!({}), &[("image", &out["output"])]).await.expect("a picture");
    assert_eq!(reds(&grey["output"]), [245, 55]);
    let error = call(&save, inputs(json!({"filename": "a.exe"}), &[("image", &image)])).await.expect_err("a fault");
    assert_eq!(error.message, "the input `filename` must end with .png, .jpg, .webp, .gif or .bmp, got .exe");
    let asset = context("nodetool.image.SaveImage", Arc::clone(&services));
    let out = call(&asset, inputs(json!({"name": "%Y.png"}), &[("image", &image)])).await.expect("stored");
    assert_eq!(out["output"].get("asset_id"), Some("a1".into()));
    let saved = services.saved.lock().expect("assets");
    assert_eq!((saved[0].content_type.as_str(), saved[0].name.len()), ("image/png", "2026.png".len()));
}

/// The field's file for photos, up to the node that asks a provider.
#[tokio::test]
async fn the_photo_enhancement_file_runs_on_real_bytes() {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/spec");
    let specs = std::env::var("ATELIER_SPECS").unwrap_or_else(|_| beside.to_owned());
    let Ok(text) = std::fs::read_to_string(format!("{specs}/../workflows/Photo Enhancement Suite.json")) else {
        return;
    };
    let mut file: Json = serde_json::from_str(&text).expect("JSON");
    if let Some(nodes) = file["graph"]["nodes"].as_array_mut() {
        nodes.retain(|node| node["type"] != json!("nodetool.image.ImageToImage"));
    }
    if let Some(edges) = file["graph"]["edges"].as_array_mut() {
        edges.retain(|edge| edge["source"] != json!("3") && edge["target"] != json!("3"));
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("photos")).expect("a folder");
    for name in ["a.png", "b.png"] {
        let data = grey(4, &[40, 60, 80, 100]).as_media().and_then(|media| media.data.clone()).expect("bytes");
        std::fs::write(folder.path().join("photos").join(name), data).expect("a file");
    }
    let services = Arc::new(Local { workspace: Some(folder.path().to_owned()), ..Local::default() });
    let (result, artifacts) = run_file(&file, Map::new(), services).await;
    assert_eq!(result.status, JobStatus::Completed, "{:?}", result.error);
    let of = |id: &str| artifacts.iter().filter(|(node, _)| node == id).map(|(_, out)| reds(&out["output"])).collect::<Vec<_>>();
    assert_eq!(of("8"), vec![vec![0, 85, 170, 255]; 2]);
    // The connected factor of 1.05.
    assert_eq!(of("7"), vec![vec![0, 89, 179, 255]; 2]);
    assert_eq!(of("4").len(), 2);
}

#[test]
fn every_type_is_registered() {
    let registry = registry();
    for (name, _) in super::types() {
        assert!(registry.meta(name).is_some_and(|meta| meta.description.ends_with('.')), "{name}");
    }
}
