//! The services that the kernel calls, with planned behaviour.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use atelier_common::db::Db;
use atelier_kernel::entity::artifacts;
use atelier_proto::{
    asset::v1::{
        CommitGenerationRequest, CommitGenerationResponse, DownloadAssetRequest, DownloadAssetResponse,
        GetAssetRequest, GetAssetResponse, ListAssetsRequest, ListAssetsResponse, UploadAssetRequest,
        UploadAssetResponse, asset_service_server::AssetService,
    },
    common::v1::{MapValue, Value, value::Kind},
    provider::v1::{
        CancelGenerationRequest, CancelGenerationResponse, GenerationResult, ListModelsRequest,
        ListModelsResponse, Prediction, RunGenerationRequest, RunGenerationResponse,
        provider_service_server::ProviderService, run_generation_response::Event,
    },
    tracker::v1::Generation,
};
use futures_util::Stream;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use tokio::sync::watch;
use tonic::{Request, Response, Status, Streaming};

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Saves media of artifacts: bytes become `asset-<node>-<index>-<element>`.
#[derive(Clone)]
pub struct Assets(Arc<AssetState>);
struct AssetState {
    db: Option<Db>,
    saved: Mutex<Vec<CommitGenerationRequest>>,
    /// Published flags of the artifact's row at the moment of the save; `None` without a row.
    rows: Mutex<Vec<Option<bool>>>,
    calls: AtomicU32,
    failures: AtomicU32,
    open: watch::Sender<bool>,
}
impl Assets {
    pub fn new() -> Self {
        Self::with(None)
    }
    /// Looks at the database whenever something is saved.
    pub fn over(db: Db) -> Self {
        Self::with(Some(db))
    }
    fn with(db: Option<Db>) -> Self {
        Self(Arc::new(AssetState {
            db,
            saved: Mutex::default(),
            rows: Mutex::default(),
            calls: AtomicU32::new(0),
            failures: AtomicU32::new(0),
            open: watch::Sender::new(true),
        }))
    }
    /// Answers so many times with UNAVAILABLE.
    pub fn fail(&self, times: u32) {
        self.0.failures.store(times, Ordering::SeqCst);
    }
    /// Lets saves wait, or go on.
    pub fn open(&self, open: bool) {
        self.0.open.send_replace(open);
    }
    pub fn calls(&self) -> u32 {
        self.0.calls.load(Ordering::SeqCst)
    }
    /// Nodes and indexes of what was saved, sorted: saves of one run go on side by side.
    pub fn saved(&self) -> Vec<(String, i64)> {
        let saved = self.0.saved.lock().unwrap();
        let mut slots: Vec<_> = saved
            .iter()
            .map(|request| (request.node_id.clone(), request.index))
            .collect();
        slots.sort();
        slots
    }
    pub fn rows_at_save(&self) -> Vec<Option<bool>> {
        self.0.rows.lock().unwrap().clone()
    }
}
#[tonic::async_trait]
impl AssetService for Assets {
    type DownloadAssetStream = Answers<DownloadAssetResponse>;

    async fn commit_generation(
        &self,
        request: Request<CommitGenerationRequest>,
    ) -> Result<Response<CommitGenerationResponse>, Status> {
        let request = request.into_inner();
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        if let Some(db) = &self.0.db {
            let row = artifacts::Entity::find()
                .filter(artifacts::Column::NodeId.eq(&request.node_id))
                .filter(artifacts::Column::Idx.eq(request.index))
                .one(db.read())
                .await
                .unwrap();
            self.0.rows.lock().unwrap().push(row.map(|row| row.published));
        }
        let _ = self.0.open.subscribe().wait_for(|open| *open).await;
        let less = |left: u32| left.checked_sub(1);
        if self
            .0
            .failures
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
            .is_ok()
        {
            return Err(Status::unavailable("the store is away"));
        }
        let mut outputs = request.outputs.clone().unwrap_or_default();
        let mut element = 0;
        refer_map(
            &mut outputs,
            &format!("asset-{}-{}", request.node_id, request.index),
            &mut element,
        );
        self.0.saved.lock().unwrap().push(request);
        Ok(Response::new(CommitGenerationResponse {
            outputs: Some(outputs),
            assets: Vec::new(),
        }))
    }
    async fn upload_asset(
        &self,
        _: Request<Streaming<UploadAssetRequest>>,
    ) -> Result<Response<UploadAssetResponse>, Status> {
        Err(Status::unimplemented("fake"))
    }
    async fn get_asset(&self, _: Request<GetAssetRequest>) -> Result<Response<GetAssetResponse>, Status> {
        Err(Status::unimplemented("fake"))
    }
    async fn list_assets(
        &self,
        _: Request<ListAssetsRequest>,
    ) -> Result<Response<ListAssetsResponse>, Status> {
        Err(Status::unimplemented("fake"))
    }
    async fn download_asset(
        &self,
        _: Request<DownloadAssetRequest>,
    ) -> Result<Response<Self::DownloadAssetStream>, Status> {
        Err(Status::unimplemented("fake"))
    }
}
fn refer_map(map: &mut MapValue, name: &str, element: &mut u32) {
    map.entries
        .iter_mut()
        .filter_map(|entry| entry.value.as_mut())
        .for_each(|value| refer(value, name, element));
}
fn refer(value: &mut Value, name: &str, element: &mut u32) {
    match value.kind.as_mut() {
        Some(Kind::ListValue(list)) => list
            .values
            .iter_mut()
            .for_each(|value| refer(value, name, element)),
        Some(Kind::MapValue(map)) => refer_map(map, name, element),
        Some(Kind::MediaValue(media)) => {
            let id = format!("{name}-{element}");
            media.uri = format!("asset://{id}.png");
            media.asset_id = Some(id);
            media.data = None;
            *element += 1;
        }
        _ => {}
    }
}

/// Gives the same answer to every call, as soon as it is let to.
#[derive(Clone)]
pub struct Provider(Arc<ProviderState>);
struct ProviderState {
    output: Value,
    open: watch::Sender<bool>,
    cancelled: watch::Sender<bool>,
    /// Runs whose calls were cancelled as a whole.
    cancelled_jobs: Mutex<Vec<String>>,
    calls: AtomicU32,
}
impl Provider {
    /// A provider with one answer to everything.
    pub fn new(output: Value, open: bool) -> Self {
        let (open, cancelled) = (watch::Sender::new(open), watch::Sender::new(false));
        Self(Arc::new(ProviderState {
            output,
            open,
            cancelled,
            cancelled_jobs: Mutex::default(),
            calls: AtomicU32::new(0),
        }))
    }
    pub fn open(&self) {
        self.0.open.send_replace(true);
    }
    pub fn calls(&self) -> u32 {
        self.0.calls.load(Ordering::SeqCst)
    }
    pub fn cancelled_jobs(&self) -> Vec<String> {
        self.0.cancelled_jobs.lock().unwrap().clone()
    }
}
#[tonic::async_trait]
impl ProviderService for Provider {
    type RunGenerationStream = Answers<RunGenerationResponse>;

    async fn reconcile_generation(
        &self,
        _: Request<atelier_proto::provider::v1::ReconcileGenerationRequest>,
    ) -> Result<Response<atelier_proto::provider::v1::ReconcileGenerationResponse>, Status> {
        Err(Status::unimplemented("no bills here"))
    }

    async fn run_generation(
        &self,
        request: Request<RunGenerationRequest>,
    ) -> Result<Response<Self::RunGenerationStream>, Status> {
        let provider = request.into_inner().provider;
        let number = self.0.calls.fetch_add(1, Ordering::SeqCst);
        let state = Arc::clone(&self.0);
        let answers = async_stream::try_stream! {
            let generation = Generation { generation_id: format!("g-{number}"), provider, ..Generation::default() };
            let opened = Prediction { generation: Some(generation), joined: false };
            yield RunGenerationResponse { event: Some(Event::Prediction(opened)) };
            let (mut open, mut cancelled) = (state.open.subscribe(), state.cancelled.subscribe());
            let done = tokio::select! {
                _ = open.wait_for(|open| *open) => true,
                _ = cancelled.wait_for(|cancelled| *cancelled) => false,
            };
            if !done {
                Err(Status::cancelled("cancelled"))?;
            }
            let result = GenerationResult { output: Some(state.output.clone()), ..GenerationResult::default() };
            yield RunGenerationResponse { event: Some(Event::Result(result)) };
        };
        Ok(Response::new(Box::pin(answers)))
    }
    async fn cancel_generation(
        &self,
        request: Request<CancelGenerationRequest>,
    ) -> Result<Response<CancelGenerationResponse>, Status> {
        let job = request.into_inner().job_id;
        self.0.cancelled_jobs.lock().unwrap().extend(job);
        self.0.cancelled.send_replace(true);
        Ok(Response::new(CancelGenerationResponse {
            cancelled: true,
            ..CancelGenerationResponse::default()
        }))
    }
    async fn list_models(
        &self,
        _: Request<ListModelsRequest>,
    ) -> Result<Response<ListModelsResponse>, Status> {
        Ok(Response::new(ListModelsResponse::default()))
    }
}
