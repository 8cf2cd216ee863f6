//! The same over a socket, where a client that goes away is a reset and not a dropped future.

use std::time::Duration;

use atelier_asset::{Assets, Settings};
use atelier_common::channel;
use atelier_common::component::{Component, Deps, serve_grpc};
use atelier_common::identity::{Caller, Signer};
use atelier_common::testkit::until;
use atelier_proto::CHUNK_BYTES;
use atelier_proto::asset::v1::asset_service_client::AssetServiceClient;
use atelier_proto::asset::v1::upload_asset_request::Part;
use atelier_proto::asset::v1::{DownloadAssetRequest, UploadAssetRequest, UploadHeader};
use futures_util::StreamExt;
use tokio::net::TcpListener;

use crate::world::piece;

#[tokio::test(flavor = "multi_thread")]
async fn uploads_and_downloads_over_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let deps = Deps::new(folder.path(), Signer::random());
    let assets = Assets::build(Settings::default(), &deps).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap());
    let serving = deps.clone();
    let routes = assets.routes();
    deps.tasks.spawn("serve", async move {
        serve_grpc(routes, &[Assets::descriptor()], listener, &serving)
            .await
            .unwrap();
    });
    let client = AssetServiceClient::new(channel::remote(&uri).unwrap());
    let caller = Caller::local();
    let header = UploadHeader {
        idempotency_key: Some("k".to_owned()),
        ..UploadHeader::default()
    };
    let first = UploadAssetRequest {
        part: Some(Part::Header(header)),
    };
    let pieces = |count: u8| futures_util::stream::iter(0..count).map(|n| piece(vec![n; CHUNK_BYTES]));
    let whole = || futures_util::stream::iter([first.clone()]).chain(pieces(48));

    let uploaded = client
        .clone()
        .upload_asset(deps.signer.request(whole(), &caller))
        .await
        .unwrap()
        .into_inner();
    let again = client
        .clone()
        .upload_asset(deps.signer.request(whole(), &caller))
        .await
        .unwrap()
        .into_inner();
    assert!(uploaded.created && !again.created);
    assert_eq!(uploaded.asset, again.asset);
    let asset = uploaded.asset.unwrap();

    let request = DownloadAssetRequest {
        asset_id: asset.asset_id,
        offset: None,
        length: None,
    };
    let parts = client
        .clone()
        .download_asset(deps.signer.request(request, &caller))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(parts.count().await, 49, "a header and pieces of the full size");

    // Gone in the middle of the third part.
    let blobs = folder.path().join("blobs");
    let staged = || std::fs::read_dir(blobs.join("tmp")).unwrap().count();
    let other = UploadAssetRequest {
        part: Some(Part::Header(UploadHeader::default())),
    };
    let begun = futures_util::stream::iter([other])
        .chain(pieces(255))
        .chain(pieces(100));
    let begun = begun.chain(futures_util::stream::pending());
    let mut leaving = client.clone();
    {
        let call = leaving.upload_asset(deps.signer.request(begun, &caller));
        let seen = until(async || staged() == 1).within(Duration::from_secs(20));
        tokio::select! {
            _ = call => panic!("it cannot end"),
            () = seen => {}
        }
    }
    until(async || staged() == 0)
        .within(Duration::from_secs(10))
        .await;
    let folders = std::fs::read_dir(&blobs)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().is_dir())
        .count();
    assert_eq!(
        folders, 2,
        "the one blob and the empty folder for what has no name"
    );
    deps.tasks.stop();
    assert!(deps.tasks.drain(Duration::from_secs(30)).await);
}
