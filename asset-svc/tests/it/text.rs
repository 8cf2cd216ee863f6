//! Texts and JSON of artifacts.

use serde_json::json;

use crate::world::{Artifact, image, metadata, worlds};

#[tokio::test]
async fn g_161_a_long_text_is_whole_in_the_asset_and_cut_in_the_metadata() {
    for world in worlds().await {
        let text = format!("x{}", "ä".repeat(150_000));
        let committed = world
            .commit(&Artifact::of(json!({"out": text})).text("out"))
            .await;
        let asset = &committed.assets[0];
        assert_eq!(
            (asset.name.as_str(), asset.content_type.as_str()),
            ("text_node-000.txt", "text/plain")
        );
        assert_eq!(asset.size_bytes, 300_001);
        assert_eq!(
            world.bytes(&asset.asset_id).await,
            text.as_bytes(),
            "{}",
            world.name
        );
        let kept = metadata(asset)["text"].as_str().unwrap().to_owned();
        assert_eq!(kept.len(), 199_999);
        assert!(text.starts_with(&kept));
        assert_eq!(committed.outputs, json!({"out": text}));
        assert_eq!(
            world
                .commit(&Artifact::of(json!({"out": text})).text("out"))
                .await
                .assets,
            committed.assets
        );
    }
}

#[tokio::test]
async fn g_162_outputs_without_media_and_text_become_json() {
    for world in worlds().await {
        let artifact = Artifact::of(json!({"items": [1, 2], "none": null}))
            .text("*")
            .generations(&["g1"]);
        let committed = world.commit(&artifact).await;
        let asset = &committed.assets[0];
        assert_eq!(asset.content_type, "application/json");
        assert_eq!(asset.name, "json_node-000.json");
        assert_eq!(
            metadata(asset)["json"],
            json!({"items": [1, 2]}),
            "{}",
            world.name
        );
        assert_eq!(asset.generation_ids, ["g1"]);
        assert_eq!(world.bytes(&asset.asset_id).await, br#"{"items":[1,2]}"#);
        assert_eq!(committed.outputs, json!({"items": [1, 2], "none": null}));
        assert_eq!(world.commit(&artifact).await.assets, committed.assets);
    }
}

#[tokio::test]
async fn texts_are_saved_only_where_it_was_asked_for() {
    for world in worlds().await {
        for (outputs, handle) in [
            (json!({"out": "hello"}), ""),
            (json!({"out": ""}), "out"),
            (json!({"out": {"a": 1}}), "out"),
            (json!({"out": "hello"}), "other"),
            (json!({}), "*"),
        ] {
            let committed = world.commit(&Artifact::of(outputs.clone()).text(handle)).await;
            assert!(committed.assets.is_empty(), "{outputs} {handle} {}", world.name);
            assert_eq!(committed.outputs, outputs);
        }
        let media = world
            .commit(&Artifact::of(json!({"out": image(1), "n": 1})).text("*"))
            .await;
        assert_eq!(media.assets.len(), 1, "media make no JSON");
    }
}

#[tokio::test]
async fn a_text_that_looks_like_a_page_is_still_text() {
    for world in worlds().await {
        let page = "<script>alert(1)</script>";
        let committed = world
            .commit(&Artifact::of(json!({"out": page})).text("out"))
            .await;
        assert_eq!(committed.assets[0].content_type, "text/plain", "{}", world.name);
    }
}
