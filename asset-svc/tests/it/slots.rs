//! Assets that are there already and get their slot.

use atelier_proto::asset::v1::{Asset, UploadHeader};
use atelier_proto::value::{Map, Value};
use serde_json::json;

use crate::world::{Artifact, PNG, World, image, metadata, worlds};

/// An asset that the seam has saved for a generation.
async fn saved(world: &World, n: u8, generation: &str) -> Asset {
    let known = Map::from_iter([("provider".to_owned(), Value::from("sketch"))]);
    let header = UploadHeader {
        job_id: Some("job-1".to_owned()),
        node_id: Some("node-0001-x".to_owned()),
        generation_ids: vec![generation.to_owned()],
        metadata: Some((&known).into()),
        ..UploadHeader::default()
    };
    world
        .upload_as("1", header, &[PNG, &[n]].concat())
        .await
        .unwrap()
        .asset
        .unwrap()
}

#[tokio::test]
async fn g_156_what_the_seam_has_saved_gets_its_slot_and_is_not_saved_again() {
    for world in worlds().await {
        let (one, two) = (saved(&world, 1, "g1").await, saved(&world, 2, "g1").await);
        let outputs = json!({"out": [
            {"type": "image", "uri": one.uri, "asset_id": one.asset_id},
            {"type": "image", "uri": two.uri},
        ]});
        let committed = world
            .commit(&Artifact::of(outputs).generations(&["g1", "g2"]))
            .await;
        assert_eq!(
            committed.ids(),
            [one.asset_id.as_str(), two.asset_id.as_str()],
            "{}",
            world.name
        );
        assert_eq!(committed.slots(), [("out", 0, 0), ("out", 0, 1)]);
        let known = metadata(&committed.assets[0]);
        assert_eq!(
            (&known["provider"], &known["generation_index"]),
            (&json!("sketch"), &json!(0))
        );
        assert_eq!(committed.outputs["out"][1]["asset_id"], two.asset_id);
        assert_eq!(world.all().await.len(), 2);
        assert_eq!(world.watch.puts(), 2);
        assert_eq!(
            world.get(&one.asset_id).await,
            committed.assets[0],
            "what was answered is what is kept"
        );
    }
}

#[tokio::test]
async fn g_157_one_image_of_two_generations_has_both() {
    for world in worlds().await {
        let committed = world
            .commit(&Artifact::of(json!({"out": image(1)})).generations(&["g1", "g2"]))
            .await;
        assert_eq!(committed.assets[0].generation_ids, ["g1", "g2"], "{}", world.name);
        let seam = saved(&world, 2, "g3").await;
        let outputs = json!({"out": {"type": "image", "uri": seam.uri}});
        let committed = world
            .commit(&Artifact::of(outputs).at(1).generations(&["g3", "g4"]))
            .await;
        assert_eq!(committed.assets[0].generation_ids, ["g3", "g4"]);
        assert_eq!(
            metadata(&committed.assets[0])["generation_ids"],
            json!(["g3", "g4"])
        );
    }
}

#[tokio::test]
async fn g_158_as_many_images_as_generations_are_linked_in_order() {
    for world in worlds().await {
        let artifact = Artifact::of(json!({"out": [image(1), image(2)]})).generations(&["g1", "g2"]);
        let committed = world.commit(&artifact).await;
        let links: Vec<_> = committed
            .assets
            .iter()
            .map(|asset| asset.generation_ids.clone())
            .collect();
        assert_eq!(links, [["g1"], ["g2"]], "{}", world.name);
        // The seam knows better than the order.
        let (two, one) = (saved(&world, 4, "g2").await, saved(&world, 3, "g1").await);
        let outputs = json!({"out": [{"type": "image", "uri": two.uri}, {"type": "image", "uri": one.uri}]});
        let committed = world
            .commit(&Artifact::of(outputs).at(1).generations(&["g1", "g2"]))
            .await;
        let links: Vec<_> = committed
            .assets
            .iter()
            .map(|asset| asset.generation_ids.clone())
            .collect();
        assert_eq!(links, [["g2"], ["g1"]]);
    }
}

#[tokio::test]
async fn an_asset_in_two_slots_becomes_two_assets_of_one_blob() {
    for world in worlds().await {
        let asset = saved(&world, 1, "g1").await;
        let reference = json!({"type": "image", "uri": asset.uri, "asset_id": asset.asset_id});
        let twice = Artifact::of(json!({"out": [reference, reference]}));
        let committed = world.commit(&twice).await;
        assert_eq!(committed.ids()[0], asset.asset_id, "{}", world.name);
        assert_ne!(committed.ids()[1], asset.asset_id);
        let next = world.commit(&Artifact::of(json!({"out": reference})).at(1)).await;
        assert!(!committed.ids().contains(&next.ids()[0]));
        assert!(
            next.assets
                .iter()
                .chain(&committed.assets)
                .all(|one| one.digest == asset.digest)
        );
        assert_eq!(
            world.commit(&twice).await.assets,
            committed.assets,
            "repeated, it is the same"
        );
        assert_eq!(world.all().await.len(), 3);
        assert_eq!(world.objects().await.len(), 1);
    }
}

#[tokio::test]
async fn an_asset_of_another_run_keeps_its_place() {
    for world in worlds().await {
        let first = world.commit(&Artifact::of(json!({"out": image(1)}))).await;
        let passed_on = Artifact {
            job_id: "job-2".to_owned(),
            ..Artifact::of(first.outputs.clone())
        };
        let second = world.commit(&passed_on).await;
        assert_ne!(first.ids(), second.ids());
        assert_eq!(world.get(first.ids()[0]).await, first.assets[0], "{}", world.name);
        assert_eq!(second.assets[0].job_id.as_deref(), Some("job-2"));
        assert_eq!(second.outputs["out"]["asset_id"], second.ids()[0]);
    }
}

#[tokio::test]
async fn g_134_a_foreign_asset_in_an_artifact_is_left_as_it_is() {
    for world in worlds().await {
        let asset = saved(&world, 1, "g1").await;
        let reference = json!({"type": "image", "uri": asset.uri, "asset_id": asset.asset_id, "data": null});
        let committed = world
            .commit(
                &Artifact::of(json!({"out": reference}))
                    .by("2")
                    .generations(&["g9"]),
            )
            .await;
        assert!(committed.assets.is_empty(), "{}", world.name);
        assert_eq!(committed.outputs, json!({"out": reference}));
        let mine = Artifact::of(json!({"out": {"type": "image", "asset_id": asset.asset_id, "data": PNG}}));
        let saved = world.commit(&mine.by("2")).await;
        assert_ne!(
            saved.ids(),
            [asset.asset_id.as_str()],
            "with bytes of its own it becomes an asset of the caller"
        );
        assert_eq!(
            world.get(&asset.asset_id).await,
            asset,
            "and the other one stays as it was"
        );
    }
}
