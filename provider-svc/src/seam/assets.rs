//! The asset store as the seam uses it: store an output, find it again.

use std::time::Duration;

use atelier_common::channel::{MAX_MESSAGE_BYTES, Transport};
use atelier_common::identity::{Caller, Signer};
use atelier_proto::CHUNK_BYTES;
use atelier_proto::asset::v1::asset_service_client::AssetServiceClient;
use atelier_proto::asset::v1::{
    Asset, DownloadAssetRequest, GetAssetRequest, UploadAssetRequest, UploadHeader, download_asset_response,
    upload_asset_request,
};
use atelier_proto::value::MediaRef;
use bytes::{Bytes, BytesMut};
use tonic::{Request, Status};

/// The client of the asset store.
#[derive(Clone)]
pub struct Assets {
    transport: Transport,
    signer: Signer,
    timeout: Duration,
}

impl Assets {
    /// A client over a transport.
    #[must_use]
    pub fn new(transport: Transport, signer: Signer, timeout: Duration) -> Self {
        Self {
            transport,
            signer,
            timeout,
        }
    }

    fn client(&self) -> AssetServiceClient<Transport> {
        AssetServiceClient::new(self.transport.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Stores bytes. Safe to repeat when the header has an idempotency key.
    ///
    /// # Errors
    /// What the store says, and DEADLINE_EXCEEDED when it does not answer.
    pub async fn upload(&self, caller: &Caller, header: UploadHeader, bytes: Bytes) -> Result<Asset, Status> {
        let pieces = (0..bytes.len().div_ceil(CHUNK_BYTES)).map(move |index| {
            let from = index * CHUNK_BYTES;
            upload_asset_request::Part::Chunk(bytes.slice(from..bytes.len().min(from + CHUNK_BYTES)))
        });
        let parts = std::iter::once(upload_asset_request::Part::Header(header)).chain(pieces);
        let stream = tokio_stream::iter(parts.map(|part| UploadAssetRequest { part: Some(part) }));
        let request = self.signer.attach(Request::new(stream), caller);
        let mut client = self.client();
        let answer = tokio::time::timeout(self.timeout, Box::pin(client.upload_asset(request))).await;
        let answer =
            answer.map_err(|_| Status::deadline_exceeded("the asset store did not answer in time"))??;
        answer
            .into_inner()
            .asset
            .ok_or_else(|| Status::internal("the asset store answered without an asset"))
    }

    /// Reads what is known of an asset.
    ///
    /// # Errors
    /// What the store says.
    pub async fn get(&self, caller: &Caller, asset_id: &str) -> Result<Asset, Status> {
        let mut request = self.signer.request(
            GetAssetRequest {
                asset_id: asset_id.to_owned(),
            },
            caller,
        );
        request.set_timeout(self.timeout);
        let answer = Box::pin(self.client().get_asset(request)).await?.into_inner();
        answer
            .asset
            .ok_or_else(|| Status::internal("the asset store answered without an asset"))
    }

    /// Reads the bytes of an asset, at most `limit` of them.
    ///
    /// # Errors
    /// What the store says; OUT_OF_RANGE when it is larger.
    pub async fn download(&self, caller: &Caller, asset_id: &str, limit: usize) -> Result<Bytes, Status> {
        let message = DownloadAssetRequest {
            asset_id: asset_id.to_owned(),
            offset: None,
            length: None,
        };
        let mut request = self.signer.request(message, caller);
        request.set_timeout(self.timeout);
        let mut stream = Box::pin(self.client().download_asset(request))
            .await?
            .into_inner();
        let mut bytes = BytesMut::new();
        while let Some(message) = stream.message().await? {
            if let Some(download_asset_response::Part::Chunk(chunk)) = message.part {
                if bytes.len() + chunk.len() > limit {
                    return Err(Status::out_of_range("the asset is too large for this"));
                }
                bytes.extend_from_slice(&chunk);
            }
        }
        Ok(bytes.freeze())
    }
}

/// The reference that stands for an asset.
#[must_use]
pub fn reference(asset: &Asset) -> MediaRef {
    let kind = match asset.content_type.split('/').next() {
        Some(kind @ ("image" | "audio" | "video")) => kind,
        Some("model") => "model_3d",
        Some("text") => "text",
        Some(_) | None => "document",
    };
    MediaRef {
        kind: kind.to_owned(),
        uri: asset.uri.clone(),
        asset_id: Some(asset.asset_id.clone()),
        data: None,
        mime_type: Some(asset.content_type.clone()),
        ..MediaRef::default()
    }
}
