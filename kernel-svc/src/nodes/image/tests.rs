//! Known pixels in, known pixels out.

use atelier_proto::value::Value;
use rstest::rstest;
use serde_json::{Value as Json, json};

use crate::nodes::media_testing::{grey, node, picture, pixels, reds};

const CLEAR: [u8; 4] = [0, 0, 0, 0];

async fn made(node_type: &str, params: Json, media: &[(&str, &Value)]) -> Value {
    let out = node(node_type, params, media)
        .await
        .unwrap_or_else(|error| panic!("{node_type}: {error}"));
    out.get("output")
        .cloned()
        .unwrap_or_else(|| panic!("{node_type}: no output"))
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
async fn one_pixel(
    #[case] name: &str,
    #[case] params: Json,
    #[case] before: [u8; 4],
    #[case] after: [u8; 4],
) {
    let out = made(
        &format!("lib.image.{name}"),
        params,
        &[("image", &picture(1, &[before]))],
    )
    .await;
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
    let out = made(
        "nodetool.image.Paste",
        json!({"left": 1, "top": 0}),
        &[("image", &below), ("paste", &above)],
    )
    .await;
    assert_eq!(pixels(&out).1, [red, [127, 0, 128, 255]]);
    let out = made(
        "nodetool.image.Compositor",
        json!({}),
        &[("a", &below), ("b", &above)],
    )
    .await;
    assert_eq!(pixels(&out).1, [[127, 0, 128, 255], red]);
    let layers = json!({"layers": [{"input": "b", "x": 1, "blend_mode": "multiply"}]});
    let out = made(
        "nodetool.image.Compositor",
        layers,
        &[("b", &above), ("a", &below)],
    )
    .await;
    assert_eq!(pixels(&out).1, [red, [127, 0, 0, 255]]);
    let (white, black) = (grey(2, &[255, 255]), grey(2, &[0, 0]));
    let mask = grey(2, &[255, 0]);
    let out = made(
        "lib.image.Mask",
        json!({}),
        &[("image1", &white), ("image2", &black), ("mask", &mask)],
    )
    .await;
    assert_eq!(reds(&out), [255, 0]);
    let out = made(
        "lib.image.mask.Apply",
        json!({}),
        &[("image", &white), ("mask", &mask)],
    )
    .await;
    assert_eq!(pixels(&out).1, [[255; 4], [255, 255, 255, 0]]);
    let out = made(
        "lib.image.channel.Merge",
        json!({"alpha_channel": 4}),
        &[("image", &white), ("alpha", &mask)],
    )
    .await;
    assert_eq!(pixels(&out).1, [[255; 4], [255, 255, 255, 0]]);
    let out = made(
        "lib.image.effects.Add",
        json!({}),
        &[("image", &grey(2, &[10, 250])), ("over", &grey(2, &[20, 20]))],
    )
    .await;
    assert_eq!(reds(&out), [30, 255]);
    let (image, map) = (grey(2, &[1, 9]), grey(2, &[128, 128]));
    let out = made(
        "lib.image.warp.Displace",
        json!({}),
        &[("image", &image), ("displacement", &map)],
    )
    .await;
    assert_eq!(reds(&out), [1, 9]);
}

/// A mask of another size is stretched; where it is black nothing changes.
#[tokio::test]
async fn changes_stay_within_their_mask() {
    let (image, mask) = (grey(4, &[10, 10, 10, 10]), grey(4, &[255, 0, 128, 255]));
    let out = made(
        "lib.image.color.Invert",
        json!({}),
        &[("image", &image), ("mask", &mask)],
    )
    .await;
    assert_eq!(reds(&out), [245, 10, 128, 245]);
    let out = made(
        "lib.image.color.Invert",
        json!({}),
        &[("image", &image), ("mask", &grey(1, &[0]))],
    )
    .await;
    assert_eq!(reds(&out), [10; 4]);
}

/// Hidden colours do not shine into what is seen.
#[tokio::test]
async fn see_through_pixels_have_no_colour() {
    let image = picture(2, &[[255, 0, 0, 0], [0, 0, 255, 255]]);
    let out = made(
        "nodetool.image.Resize",
        json!({"width": 1, "height": 1}),
        &[("image", &image)],
    )
    .await;
    let [red, _, blue, alpha] = pixels(&out).1[0];
    assert_eq!((red, blue), (0, 255), "{alpha}");
    let out = made(
        "lib.image.filter.GaussianBlur",
        json!({"sigma": 1}),
        &[("image", &image)],
    )
    .await;
    assert!(
        pixels(&out)
            .1
            .iter()
            .all(|[red, _, blue, _]| (*red, *blue) == (0, 255))
    );
    let clear = made(
        "lib.image.filter.GaussianBlur",
        json!({}),
        &[("image", &picture(1, &[CLEAR]))],
    )
    .await;
    assert_eq!(pixels(&clear).1, [CLEAR]);
}

#[tokio::test]
async fn text_is_written() {
    let white = grey(40, &[255; 40 * 20]);
    let params = json!({"text": "Hi", "size": 16, "color": "#000000"});
    let out = made("lib.image.draw.RenderText", params.clone(), &[("image", &white)]).await;
    let dark = |value: &Value, columns: std::ops::Range<usize>| {
        reds(value)
            .chunks(40)
            .flat_map(|row| row[columns.clone()].to_vec())
            .filter(|value| *value < 100)
            .count()
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
    let out = node(
        "nodetool.image.GetMetadata",
        json!({}),
        &[("image", &grey(3, &[1, 2, 3]))],
    )
    .await
    .expect("facts");
    let facts = atelier_proto::value::to_json(&out.into(), atelier_proto::value::BytesForm::Tagged);
    assert_eq!(
        facts,
        json!({"format": "PNG", "mode": "RGB", "width": 3, "height": 1, "channels": 3})
    );
}
