//! What is refused, and how it is told.

use std::sync::Arc;

use atelier_proto::value::{MediaRef, Value};
use rstest::rstest;
use serde_json::{Value as Json, json};

use crate::nodes::{
    catalog,
    media_testing::{call, context, grey, inputs, node},
    registry,
};

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
    let media: &[(&str, &Value)] = if name.contains(".draw.") {
        &[]
    } else {
        &[("image", &image)]
    };
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
        let Some(first) = first.filter(|_| !name.ends_with(".BatchToList") && !name.ends_with(".Painter"))
        else {
            continue;
        };
        seen += 1;
        let error = node(name, json!({}), &[]).await.expect_err(name);
        assert!(
            error
                .message
                .starts_with(&format!("the input `{}` is empty", first.name)),
            "{name}: {error}"
        );
        let broken = Value::media(MediaRef {
            kind: "image".to_owned(),
            data: Some(b"\x89PNG\r\n\x1a\nbroken".to_vec().into()),
            ..MediaRef::default()
        });
        let error = node(name, json!({}), &[(&first.name, &broken)])
            .await
            .expect_err(name);
        assert!(
            error
                .message
                .starts_with(&format!("the input `{}` is no picture", first.name)),
            "{name}: {error}"
        );
    }
    assert!(seen > 60, "{seen}");
}

/// A small file that says it is huge is refused before it is unpacked.
#[tokio::test]
async fn a_bomb_is_refused_by_its_size() {
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x75\x30\0\0\x75\x30\x08\x06\0\0\0".to_vec();
    png.extend([0x54, 0x4b, 0x56, 0xd5]);
    png.extend(b"\0\0\0\0IDAT\x35\xaf\x06\x1e");
    let bomb = Value::media(MediaRef {
        kind: "image".to_owned(),
        data: Some(png.into()),
        ..MediaRef::default()
    });
    let error = node("lib.image.filter.Invert", json!({}), &[("image", &bomb)])
        .await
        .expect_err("a fault");
    assert!(
        error.message.contains("30000x30000") || error.message.contains("is no picture"),
        "{error}"
    );
}

#[tokio::test]
async fn a_cancelled_node_ends() {
    let ctx = context("lib.image.filter.GaussianBlur", Arc::default());
    let image = grey(64, &[7; 64 * 64]);
    ctx.cancel.cancel();
    let error = call(&ctx, inputs(json!({}), &[("image", &image)]))
        .await
        .expect_err("cancelled");
    assert_eq!(error.kind, crate::node::NodeErrorKind::Cancelled);
}

#[test]
fn every_type_is_registered() {
    let registry = registry();
    for (name, _) in super::types() {
        assert!(
            registry
                .meta(name)
                .is_some_and(|meta| meta.description.ends_with('.')),
            "{name}"
        );
    }
}
