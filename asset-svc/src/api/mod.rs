//! The gRPC service: messages in, a call of the domain, messages out.

mod convert;
mod download;
mod upload;

use std::sync::Arc;
use std::time::Instant;

use atelier_common::identity::{self, Caller};
use atelier_common::tasks::Tasks;
use atelier_proto::asset::v1::asset_service_server::AssetService;
use atelier_proto::asset::v1::{
    CommitGenerationRequest, CommitGenerationResponse, DownloadAssetRequest, DownloadAssetResponse,
    GetAssetRequest, GetAssetResponse, ListAssetsRequest, ListAssetsResponse, UploadAssetRequest,
    UploadAssetResponse,
};
use futures_util::stream::BoxStream;
use tonic::{Request, Response, Status, Streaming};

use crate::assets::list::Page;
use crate::commit::{Artifact, Committed, Committer};
use crate::error::Error;
use crate::metrics::{COMMIT_DURATION, COMMITS, UPLOADS};

/// What the service works with.
#[derive(Clone)]
pub struct Parts {
    /// Rows, bytes, time, and how artifacts are committed.
    pub committer: Committer,
    /// Where work goes that must not end with its caller.
    pub tasks: Tasks,
    /// Largest asset that is taken.
    pub max_asset_bytes: u64,
}

/// The service. Clones are the same.
#[derive(Clone)]
pub struct Api(Arc<Parts>);

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    /// A service of these parts.
    #[must_use]
    pub fn new(parts: Arc<Parts>) -> Self {
        Self(parts)
    }

    /// Rows, bytes and time.
    #[must_use]
    pub fn committer(&self) -> &Committer {
        &self.0.committer
    }

    async fn commit(&self, caller: Caller, artifact: Artifact) -> Result<Committed, Error> {
        // Outlives the call: what the kernel has logged is saved even when its connection breaks.
        let parts = self.0.clone();
        let work = async move { parts.committer.commit(&caller, &artifact).await };
        self.0.tasks.spawn("commit", work).await?
    }
}

fn caller<T>(request: &Request<T>) -> Result<Caller, Error> {
    identity::caller(request).map_err(|_| Error::NoCaller)
}

#[tonic::async_trait]
impl AssetService for Api {
    async fn upload_asset(
        &self,
        request: Request<Streaming<UploadAssetRequest>>,
    ) -> Result<Response<UploadAssetResponse>, Status> {
        let caller = caller(&request)?;
        let uploaded = upload::receive(&self.0, caller, request.into_inner()).await;
        let outcome = match &uploaded {
            Ok((_, true)) => "created",
            Ok((_, false)) => "repeated",
            Err(_) => "failed",
        };
        metrics::counter!(UPLOADS, "outcome" => outcome).increment(1);
        let (row, created) = uploaded?;
        let asset = convert::asset(&row, &self.committer().blobs)?;
        Ok(Response::new(UploadAssetResponse {
            asset: Some(asset),
            created,
        }))
    }

    async fn commit_generation(
        &self,
        request: Request<CommitGenerationRequest>,
    ) -> Result<Response<CommitGenerationResponse>, Status> {
        let caller = caller(&request)?;
        let artifact = convert::artifact(request.into_inner())?;
        let start = Instant::now();
        let committed = self.commit(caller, artifact).await;
        let outcome = if committed.is_ok() { "ok" } else { "failed" };
        metrics::counter!(COMMITS, "outcome" => outcome).increment(1);
        metrics::histogram!(COMMIT_DURATION).record(start.elapsed());
        let Committed { outputs, assets } = committed?;
        let assets = convert::all(&assets, &self.committer().blobs)?;
        Ok(Response::new(CommitGenerationResponse {
            outputs: Some((&outputs).into()),
            assets,
        }))
    }

    async fn get_asset(
        &self,
        request: Request<GetAssetRequest>,
    ) -> Result<Response<GetAssetResponse>, Status> {
        let caller = caller(&request)?;
        let GetAssetRequest { asset_id } = request.into_inner();
        let row = self.committer().rows.get(&caller, &asset_id).await?;
        let asset = convert::asset(&row, &self.committer().blobs)?;
        Ok(Response::new(GetAssetResponse { asset: Some(asset) }))
    }

    async fn list_assets(
        &self,
        request: Request<ListAssetsRequest>,
    ) -> Result<Response<ListAssetsResponse>, Status> {
        let caller = caller(&request)?;
        let (filter, size, token) = convert::listing(request.into_inner());
        let Page { rows, next } = self.committer().rows.list(&caller, &filter, size, &token).await?;
        let assets = convert::all(&rows, &self.committer().blobs)?;
        Ok(Response::new(ListAssetsResponse {
            assets,
            next_page_token: next.unwrap_or_default(),
        }))
    }

    type DownloadAssetStream = BoxStream<'static, Result<DownloadAssetResponse, Status>>;

    async fn download_asset(
        &self,
        request: Request<DownloadAssetRequest>,
    ) -> Result<Response<Self::DownloadAssetStream>, Status> {
        let caller = caller(&request)?;
        let stream = download::send(self.committer(), &caller, request.into_inner()).await?;
        Ok(Response::new(stream))
    }
}
