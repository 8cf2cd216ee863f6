//! Uploads.

use std::sync::atomic::Ordering;
use std::time::Duration;

use atelier_common::testkit::until;
use atelier_proto::asset::v1::upload_asset_request::Part;
use atelier_proto::asset::v1::{UploadAssetRequest, UploadHeader};
use atelier_proto::value::{Map, Value};
use futures_util::StreamExt;
use serde_json::json;
use tonic::Code;

use crate::world::{MAX_ASSET_BYTES, PNG, Place, metadata, piece, reason, worlds};

fn header() -> UploadHeader {
    UploadHeader::default()
}

#[tokio::test]
async fn an_upload_becomes_an_asset_with_everything_that_was_said() {
    for world in worlds().await {
        let said = Map::from_iter([
            ("prompt".to_owned(), Value::from("a cat")),
            ("n".to_owned(), Value::Int(i64::MAX)),
        ]);
        let header = UploadHeader {
            name: Some("кот 猫/🐈.jpeg".to_owned()),
            content_type: Some("image/jpeg".to_owned()),
            idempotency_key: None,
            job_id: Some("j".to_owned()),
            node_id: Some("n".to_owned()),
            workflow_id: Some("w".to_owned()),
            generation_ids: vec!["g1".to_owned(), "g2".to_owned(), "g1".to_owned()],
            metadata: Some((&said).into()),
        };
        let uploaded = world.upload_as("1", header, PNG).await.unwrap();
        assert!(uploaded.created, "{}", world.name);
        let asset = uploaded.asset.unwrap();
        assert_eq!(asset.name, "кот 猫🐈.png", "the bytes say what it is");
        assert_eq!(asset.content_type, "image/png");
        assert_eq!(asset.size_bytes, i64::try_from(PNG.len()).unwrap());
        assert_eq!(asset.digest, blake3::hash(PNG).to_hex().as_str());
        assert_eq!(asset.uri, format!("asset://{}.png", asset.asset_id));
        assert_eq!(asset.generation_ids, ["g1", "g2"]);
        assert_eq!(asset.slot, None);
        assert_eq!(metadata(&asset), json!({"prompt": "a cat", "n": i64::MAX}));
        let made_by = [
            asset.job_id.as_deref(),
            asset.node_id.as_deref(),
            asset.workflow_id.as_deref(),
        ];
        assert_eq!(made_by, [Some("j"), Some("n"), Some("w")]);
        assert_eq!(world.get(&asset.asset_id).await, asset);
        assert_eq!(world.bytes(&asset.asset_id).await, PNG);
        let object = format!("{}/{}.png", asset.digest.get(..2).unwrap(), asset.digest);
        assert_eq!(world.objects().await, std::slice::from_ref(&object));
        match &world.place {
            Place::Folder => {
                let path = std::path::PathBuf::from(asset.file_path.unwrap());
                assert!(path.is_absolute() && path.ends_with(object));
                assert_eq!(std::fs::read(path).unwrap(), PNG);
            }
            Place::Store(..) => assert_eq!(asset.file_path, None),
        }
    }
}

#[tokio::test]
async fn equal_bytes_are_stored_once() {
    for world in worlds().await {
        let (one, two) = (world.upload("one", PNG).await, world.upload("two", PNG).await);
        assert_ne!(one.asset_id, two.asset_id);
        assert_eq!(one.digest, two.digest);
        assert_eq!(world.objects().await.len(), 1, "{}", world.name);
        assert_eq!(world.watch.puts(), 1);
    }
}

#[tokio::test]
async fn a_key_answers_with_the_first_asset_of_that_user() {
    for world in worlds().await {
        let header = UploadHeader {
            idempotency_key: Some("k".to_owned()),
            ..header()
        };
        let first = world.upload_as("1", header.clone(), PNG).await.unwrap();
        let again = world
            .upload_as("1", header.clone(), &vec![7; 300_000])
            .await
            .unwrap();
        assert!(first.created && !again.created);
        assert_eq!(first.asset, again.asset, "{}", world.name);
        let other = world.upload_as("2", header, PNG).await.unwrap();
        assert!(other.created);
        assert_ne!(other.asset.unwrap().asset_id, first.asset.unwrap().asset_id);
        assert_eq!(world.all().await.len(), 1);
    }
}

#[tokio::test]
async fn a_key_used_by_many_at_once_makes_one_asset() {
    for world in worlds().await {
        let header = UploadHeader {
            idempotency_key: Some("k".to_owned()),
            ..header()
        };
        let uploads = (0..8).map(|_| world.upload_as("1", header.clone(), PNG));
        let uploaded: Vec<_> = futures_util::future::join_all(uploads)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        assert_eq!(
            uploaded.iter().filter(|one| one.created).count(),
            1,
            "{}",
            world.name
        );
        let first = uploaded.first().unwrap().asset.clone();
        assert!(uploaded.iter().all(|one| one.asset == first));
        assert_eq!(world.all().await.len(), 1);
    }
}

#[tokio::test]
async fn thirty_mebibytes_pass_in_small_pieces() {
    for world in worlds().await {
        const CHUNKS: u32 = 480;
        let chunk = |n: u32| n.to_le_bytes().repeat(atelier_proto::CHUNK_BYTES / 4);
        let pieces = futures_util::stream::iter(0..CHUNKS).map(move |n| piece(chunk(n)));
        let first = UploadAssetRequest {
            part: Some(Part::Header(header())),
        };
        let request = world.by("1", futures_util::stream::iter([first]).chain(pieces));
        let uploaded = world
            .client
            .clone()
            .upload_asset(request)
            .await
            .unwrap()
            .into_inner();
        let asset = uploaded.asset.unwrap();
        assert_eq!(asset.size_bytes, 30 * 1024 * 1024);
        let mut hasher = blake3::Hasher::new();
        for n in 0..CHUNKS {
            hasher.update(&chunk(n));
        }
        assert_eq!(asset.digest, hasher.finalize().to_hex().as_str());
        assert!(
            world.watch.largest.load(Ordering::SeqCst) <= 8 * 1024 * 1024,
            "never more than a part in memory"
        );
        assert_eq!(world.watch.parts.load(Ordering::SeqCst), 4);
        assert_eq!(world.objects().await.len(), 1, "{}", world.name);
        assert_eq!(
            blake3::hash(&world.bytes(&asset.asset_id).await),
            hasher.finalize()
        );
        let (_, tail) = world
            .download_as("1", &asset.asset_id, Some(-70_000), None)
            .await
            .unwrap();
        assert_eq!(
            tail,
            [chunk(CHUNKS - 2), chunk(CHUNKS - 1)]
                .concat()
                .split_off(2 * 65_536 - 70_000)
        );
    }
}

#[tokio::test]
async fn too_large_leaves_nothing() {
    for world in worlds().await {
        let pieces =
            futures_util::stream::iter(0..=MAX_ASSET_BYTES / 1_048_576).map(|_| piece(vec![1; 1_048_576]));
        let first = UploadAssetRequest {
            part: Some(Part::Header(header())),
        };
        let request = world.by("1", futures_util::stream::iter([first]).chain(pieces));
        let refused = world.client.clone().upload_asset(request).await.unwrap_err();
        assert_eq!(reason(&refused), "ASSET_TOO_LARGE", "{}", world.name);
        until(async || world.objects().await.is_empty())
            .within(Duration::from_secs(5))
            .await;
        assert!(world.all().await.is_empty());
    }
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_nothing() {
    for world in worlds().await {
        let first = UploadAssetRequest {
            part: Some(Part::Header(header())),
        };
        let begun = futures_util::stream::iter(
            std::iter::once(first).chain((0..20).map(|n| piece(vec![n; 1_048_576]))),
        );
        let request = world.by("1", begun.chain(futures_util::stream::pending()));
        let mut client = world.client.clone();
        {
            let call = client.upload_asset(request);
            let two_parts =
                until(async || world.watch.parts.load(Ordering::SeqCst) >= 2).within(Duration::from_secs(20));
            tokio::select! {
                _ = call => panic!("it cannot end"),
                () = two_parts => {}
            }
        }
        until(async || world.objects().await.is_empty())
            .within(Duration::from_secs(5))
            .await;
        assert!(world.all().await.is_empty(), "{}", world.name);
    }
}

#[tokio::test]
async fn a_broken_stream_leaves_nothing() {
    for world in worlds().await {
        let request = world.by("1", futures_util::stream::iter([piece(PNG.to_vec())]));
        let refused = world.client.clone().upload_asset(request).await.unwrap_err();
        assert_eq!(
            (refused.code(), reason(&refused).as_str()),
            (Code::InvalidArgument, "INVALID_FIELD")
        );
        let twice = UploadAssetRequest {
            part: Some(Part::Header(header())),
        };
        let request = world.by(
            "1",
            futures_util::stream::iter([twice.clone(), piece(PNG.to_vec()), twice]),
        );
        let refused = world.client.clone().upload_asset(request).await.unwrap_err();
        assert_eq!(reason(&refused), "INVALID_FIELD");
        let bad = UploadHeader {
            job_id: Some("a\0b".to_owned()),
            ..header()
        };
        assert_eq!(
            reason(&world.upload_as("1", bad, PNG).await.unwrap_err()),
            "INVALID_FIELD"
        );
        assert!(
            world.objects().await.is_empty() && world.all().await.is_empty(),
            "{}",
            world.name
        );
    }
}

#[tokio::test]
async fn an_upload_without_a_name_gets_one() {
    for world in worlds().await {
        let png = world.upload_as("1", header(), PNG).await.unwrap().asset.unwrap();
        assert!(
            png.name.starts_with("image_") && png.name.ends_with(".png"),
            "{}",
            png.name
        );
        let stated = UploadHeader {
            content_type: Some("text/html".to_owned()),
            ..header()
        };
        let text = world
            .upload_as("1", stated, b"no page")
            .await
            .unwrap()
            .asset
            .unwrap();
        assert_eq!(text.content_type, "text/plain", "a stated page is not believed");
        assert!(
            text.name.starts_with("text_") && text.name.ends_with(".txt"),
            "{}",
            text.name
        );
        let empty = world.upload_as("1", header(), b"").await.unwrap().asset.unwrap();
        assert_eq!(
            (empty.size_bytes, empty.content_type.as_str()),
            (0, "application/octet-stream")
        );
        assert_eq!(world.bytes(&empty.asset_id).await, b"");
        let long = world.upload(&"ä".repeat(300), PNG).await;
        assert!(
            long.name.len() <= 200 && long.name.ends_with("ä.png"),
            "{}",
            world.name
        );
    }
}

#[tokio::test]
async fn without_a_caller_nothing_is_answered() {
    for world in worlds().await {
        let nobody = tonic::Request::new(atelier_proto::asset::v1::GetAssetRequest::default());
        let refused = world.client.clone().get_asset(nobody).await.unwrap_err();
        assert_eq!(
            (refused.code(), reason(&refused).as_str()),
            (Code::Unauthenticated, "UNAUTHENTICATED")
        );
    }
}
