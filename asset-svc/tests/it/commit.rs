//! Committed artifacts: what is saved, and what stands in its place.

use serde_json::json;

use crate::world::{Artifact, PNG, image, metadata, reason, worlds};

#[tokio::test]
async fn g_146_six_results_make_six_assets_with_their_indexes() {
    for world in worlds().await {
        for index in 0..6_u8 {
            let artifact = Artifact {
                properties: json!({"prompt": "a cat"}),
                ..Artifact::of(json!({"out": image(index)}))
            };
            let committed = world.commit(&artifact.at(index.into())).await;
            let asset = &committed.assets[0];
            let known = metadata(asset);
            assert_eq!(known["generation_index"], index, "{}", world.name);
            assert_eq!(known["output_name"], "out");
            assert_eq!(known["node_type"], "test.Node");
            assert_eq!(known["prompt"], "a cat");
            assert_eq!(known["params"], json!({"prompt": "a cat"}));
            assert_eq!(asset.name, "image_node-000.png");
            assert_eq!(
                (asset.job_id.as_deref(), asset.workflow_id.as_deref()),
                (Some("job-1"), Some("flow-1"))
            );
            let reference = json!({
                "type": "image", "uri": asset.uri, "asset_id": asset.asset_id, "data": null, "mime_type": "image/png",
            });
            assert_eq!(committed.outputs, json!({"out": reference}));
            assert_eq!(world.bytes(&asset.asset_id).await, [PNG, &[index]].concat());
        }
        assert_eq!(world.all().await.len(), 6);
    }
}

#[tokio::test]
async fn g_147_repeating_all_six_saves_nothing() {
    for mut world in worlds().await {
        let artifacts: Vec<_> = (0..6_u8)
            .map(|n| Artifact::of(json!({"out": image(n)})).at(n.into()))
            .collect();
        let mut first = Vec::new();
        for artifact in &artifacts {
            first.push(world.commit(artifact).await);
        }
        let before = world.all().await;
        world.restart().await;
        for (artifact, first) in artifacts.iter().zip(&first) {
            let again = world.commit(artifact).await;
            assert_eq!(
                (&again.assets, &again.outputs),
                (&first.assets, &first.outputs),
                "{}",
                world.name
            );
            // What was answered may be committed, too.
            let answered = Artifact::of(first.outputs.clone()).at(artifact.index);
            assert_eq!(world.commit(&answered).await.assets, first.assets);
            // Other bytes in a filled slot change nothing.
            let other = Artifact::of(json!({"out": image(99)})).at(artifact.index);
            assert_eq!(world.commit(&other).await.assets, first.assets);
        }
        assert_eq!(world.all().await, before);
    }
}

#[tokio::test]
async fn g_149_three_images_and_a_text_in_one_artifact() {
    for world in worlds().await {
        let outputs = json!({"images": [image(1), image(2), image(3)], "caption": "three cats"});
        let committed = world.commit(&Artifact::of(outputs).at(4).text("caption")).await;
        assert_eq!(
            committed.slots(),
            [
                ("images", 4, 0),
                ("images", 4, 1),
                ("images", 4, 2),
                ("caption", 4, 0)
            ],
            "{}",
            world.name
        );
        let kinds: Vec<_> = committed
            .assets
            .iter()
            .map(|asset| asset.content_type.as_str())
            .collect();
        assert_eq!(kinds, ["image/png", "image/png", "image/png", "text/plain"]);
        let names: Vec<_> = committed
            .assets
            .iter()
            .map(|asset| metadata(asset)["output_name"].clone())
            .collect();
        assert_eq!(names, ["images", "images", "images", "caption"]);
        assert_eq!(
            committed.outputs["caption"], "three cats",
            "text stays where it is"
        );
        assert_eq!(world.bytes(committed.ids()[3]).await, b"three cats");
    }
}

#[tokio::test]
async fn g_150_nested_media_are_found_in_order() {
    for world in worlds().await {
        let outputs = json!({
            "scenes": [{"n": 1, "img": image(1)}, {"img": image(2), "t": "x"}],
            "meta": {"cover": image(3), "size": [1024, 768]},
        });
        let committed = world.commit(&Artifact::of(outputs)).await;
        assert_eq!(
            committed.slots(),
            [("scenes", 0, 0), ("scenes", 0, 1), ("meta", 0, 0)],
            "{}",
            world.name
        );
        let ids = committed.ids();
        assert_eq!(committed.outputs["scenes"][1]["img"]["asset_id"], ids[1]);
        assert_eq!(committed.outputs["scenes"][1]["t"], "x");
        assert_eq!(committed.outputs["meta"]["cover"]["asset_id"], ids[2]);
        assert_eq!(committed.outputs["meta"]["size"], json!([1024, 768]));
        assert_eq!(world.bytes(ids[1]).await, [PNG, &[2]].concat());
    }
}

#[tokio::test]
async fn g_159_g_160_files_and_addresses_are_left_alone() {
    for world in worlds().await {
        let outputs = json!({
            "file": {"type": "image", "uri": "file:///etc/hostname", "asset_id": null, "data": null},
            "web": {"type": "image", "uri": "http://169.254.169.254/latest", "asset_id": null, "data": null},
            "odd": {"type": "image", "uri": "data:image/png;base64,%%%", "asset_id": null, "data": null},
            "empty": {"type": "image", "uri": "", "asset_id": null, "data": null},
        });
        let committed = world.commit(&Artifact::of(outputs.clone()).text("*")).await;
        assert_eq!(committed.outputs, outputs, "{}", world.name);
        assert!(
            committed.assets.is_empty() && world.all().await.is_empty() && world.objects().await.is_empty()
        );
    }
}

#[tokio::test]
async fn data_addresses_are_saved_beside_what_is_left_alone() {
    for world in worlds().await {
        let outputs = json!({"out": [
            {"type": "image", "uri": "https://example.org/x.png"},
            {"type": "image", "uri": "data:image/svg+xml,%3Csvg%20xmlns%3D%22a%22%2F%3E", "width": 4},
        ]});
        let committed = world.commit(&Artifact::of(outputs)).await;
        assert_eq!(
            committed.slots(),
            [("out", 0, 1)],
            "the position does not depend on what was saved"
        );
        let asset = &committed.assets[0];
        assert_eq!(
            (asset.content_type.as_str(), asset.name.as_str()),
            ("image/svg+xml", "image_node-000.svg")
        );
        assert_eq!(world.bytes(&asset.asset_id).await, b"<svg xmlns=\"a\"/>");
        assert_eq!(
            committed.outputs["out"][0]["uri"], "https://example.org/x.png",
            "{}",
            world.name
        );
        assert_eq!(committed.outputs["out"][1]["uri"], asset.uri.as_str());
        assert_eq!(committed.outputs["out"][1]["width"], 4, "other keys stay");
    }
}

#[tokio::test]
async fn g_163_a_model_is_saved_as_glb() {
    for world in worlds().await {
        let glb = b"glTF\x02\0\0\0\x0c\0\0\0".as_slice();
        let outputs = json!({
            "real": {"type": "model_3d", "data": glb, "format": "glb"},
            "odd": {"type": "model_3d", "data": [0, 1, 2, 3]},
        });
        let committed = world.commit(&Artifact::of(outputs)).await;
        for asset in &committed.assets {
            assert_eq!(asset.content_type, "model/gltf-binary", "{}", world.name);
            assert!(
                asset.name.ends_with(".glb") && asset.uri.ends_with(".glb"),
                "{}",
                asset.name
            );
        }
        assert_eq!(committed.assets.len(), 2);
        assert_eq!(committed.outputs["real"]["format"], "glb");
    }
}

#[tokio::test]
async fn w_114_raw_pixels_become_a_png() {
    for world in worlds().await {
        let pixels: Vec<u8> = (0..16).collect();
        let raw =
            json!({"type": "image", "data": pixels, "mimeType": "image/x-raw-rgba", "width": 2, "height": 2});
        let committed = world.commit(&Artifact::of(json!({"out": raw}))).await;
        assert_eq!(committed.assets[0].content_type, "image/png", "{}", world.name);
        assert!(world.bytes(committed.ids()[0]).await.starts_with(b"\x89PNG"));
        assert_eq!(committed.outputs["out"].get("mimeType"), None);
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_is_refused() {
    for world in worlds().await {
        let good = Artifact::of(json!({"out": image(1)}));
        let bad = [
            Artifact {
                job_id: String::new(),
                ..good.clone()
            },
            Artifact {
                node_id: "a\0".to_owned(),
                ..good.clone()
            },
            Artifact::of(json!({"a\u{0}b": image(1)})),
            good.clone().generations(&[""]),
            good.at(-1),
        ];
        for bad in bad {
            assert_eq!(
                reason(&world.try_commit(&bad).await.err().unwrap()),
                "INVALID_FIELD",
                "{}",
                world.name
            );
        }
        assert!(world.all().await.is_empty() && world.objects().await.is_empty());
    }
}
