//! Failing stores, crashes and races.

use std::sync::atomic::Ordering;

use serde_json::json;
use tonic::Code;

use crate::world::{Artifact, PNG, Place, image, reason, worlds};

#[tokio::test]
async fn g_148_repeating_from_the_fifth_artifact_saves_nothing() {
    for mut world in worlds().await {
        let artifact = |n: u8| Artifact::of(json!({"out": image(n)})).at(n.into());
        let mut first = Vec::new();
        for n in 0..6 {
            first.push(world.commit(&artifact(n)).await);
        }
        world.restart().await;
        for n in 4..6_u8 {
            let again = world.commit(&artifact(n)).await;
            assert_eq!(again.assets, first[usize::from(n)].assets, "{}", world.name);
            assert_eq!(again.slots(), [("out", i64::from(n), 0)]);
        }
        assert_eq!(world.all().await.len(), 6);
    }
}

#[tokio::test]
async fn g_151_a_store_that_fails_once_is_made_up_for_by_the_repetition() {
    for world in worlds().await {
        let artifact = Artifact::of(json!({"out": image(1)}));
        world.watch.fail_put(1);
        let failed = world.try_commit(&artifact).await.err().unwrap();
        assert_eq!(
            (failed.code(), reason(&failed).as_str()),
            (Code::Unavailable, "STORE_UNAVAILABLE")
        );
        assert!(world.all().await.is_empty(), "{}", world.name);
        let committed = world.commit(&artifact).await;
        assert_eq!(world.commit(&artifact).await.assets, committed.assets);
        assert_eq!(world.all().await, committed.assets);
        assert_eq!(world.objects().await.len(), 1);
    }
}

#[tokio::test]
async fn g_152_a_crash_before_the_third_of_three_assets_leaves_exactly_three() {
    for late in [false, true] {
        for mut world in worlds().await {
            let artifact = Artifact::of(json!({"out": [image(1), image(2), image(3)]}));
            world.watch.fail_late.store(late, Ordering::SeqCst);
            world.watch.fail_put(3);
            assert!(world.try_commit(&artifact).await.is_err(), "{}", world.name);
            assert!(world.all().await.is_empty(), "all rows of an artifact or none");
            world.restart().await;
            let committed = world.commit(&artifact).await;
            assert_eq!(committed.slots(), [("out", 0, 0), ("out", 0, 1), ("out", 0, 2)]);
            assert_eq!(world.all().await.len(), 3);
            assert_eq!(world.objects().await.len(), 3);
        }
    }
}

#[tokio::test]
async fn many_identical_commits_at_once_save_once() {
    for world in worlds().await {
        let seam = world.upload("seam", &[PNG, &[9]].concat()).await;
        let named = json!({"type": "image", "uri": seam.uri});
        let artifact =
            Artifact::of(json!({"out": [image(1), named, image(2), named], "t": "text"})).text("t");
        let commits = (0..8).map(|_| world.commit(&artifact));
        let committed = futures_util::future::join_all(commits).await;
        for one in &committed {
            assert_eq!(one.assets, committed[0].assets, "{}", world.name);
            assert_eq!(one.outputs, committed[0].outputs);
        }
        assert_eq!(committed[0].assets.len(), 5);
        assert_eq!(committed[0].ids()[1], seam.asset_id);
        assert_eq!(world.all().await.len(), 5);
    }
}

#[tokio::test]
async fn one_asset_in_many_slots_at_once_is_given_one_and_copied_for_the_rest() {
    for world in worlds().await {
        let asset = world.upload("seam", PNG).await;
        let artifact = |index| Artifact::of(json!({"out": {"type": "image", "uri": asset.uri}})).at(index);
        let artifacts: Vec<_> = (0..8).map(artifact).collect();
        let committed = futures_util::future::join_all(artifacts.iter().map(|one| world.commit(one))).await;
        let mut ids: Vec<_> = committed.iter().flat_map(|one| one.ids()).collect();
        assert_eq!(
            ids.iter().filter(|id| **id == asset.asset_id).count(),
            1,
            "{}",
            world.name
        );
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 8);
        assert_eq!(world.objects().await.len(), 1);
    }
}

#[tokio::test]
async fn what_a_crash_left_without_a_name_is_removed_at_the_start() {
    for mut world in worlds().await {
        let asset = world.upload("kept", PNG).await;
        match &world.place {
            Place::Folder => {
                std::fs::write(world.folder().join("tmp/0190"), b"half").unwrap();
                std::fs::write(world.folder().join("tmp/0190#1"), b"half").unwrap();
            }
            Place::Store(_, store) => {
                use object_store::ObjectStoreExt;
                store
                    .put(&"tmp/0190".into(), b"half".as_slice().into())
                    .await
                    .unwrap();
            }
        }
        assert!(world.objects().await.len() > 1);
        world.restart().await;
        assert_eq!(world.objects().await.len(), 1, "{}", world.name);
        assert_eq!(world.bytes(&asset.asset_id).await, PNG);
    }
}

#[tokio::test]
async fn a_blob_that_is_gone_is_told() {
    for world in worlds().await {
        let asset = world.upload("kept", PNG).await;
        if let Some(path) = &asset.file_path {
            std::fs::remove_file(path).unwrap();
            let failed = world
                .download_as("1", &asset.asset_id, None, None)
                .await
                .unwrap_err();
            assert_eq!(reason(&failed), "STORE_UNAVAILABLE", "{}", world.name);
        }
    }
}
