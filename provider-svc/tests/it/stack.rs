//! The three services in one process, on a folder of their own.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use atelier_asset::Assets;
use atelier_common::channel::Transport;
use atelier_common::component::{self, Component, Deps};
use atelier_common::identity::{Caller, Signer};
use atelier_common::tasks::Tasks;
use atelier_proto::asset::v1::Asset;
use atelier_proto::asset::v1::asset_service_client::AssetServiceClient;
use atelier_proto::asset::v1::{GetAssetRequest, ListAssetsRequest};
use atelier_proto::common::v1::Money;
use atelier_proto::provider::v1::provider_service_client::ProviderServiceClient;
use atelier_proto::provider::v1::run_generation_response::Event;
use atelier_proto::provider::v1::{
    CancelGenerationRequest, CancelGenerationResponse, Chunk, GenerationResult, Persist, Progress,
    ReconcileGenerationRequest, ReconcileGenerationResponse, RunGenerationRequest, RunGenerationResponse,
};
use atelier_proto::tracker::v1::generation_service_client::GenerationServiceClient;
use atelier_proto::tracker::v1::{
    Generation, GenerationStatus, GetGenerationRequest, ListGenerationsRequest,
};
use atelier_proto::value::{Map, Value, map_from_json};
use atelier_provider::Providers;
use atelier_provider::adapters::sketch::Counters;
use atelier_provider::provider::Provider;
use atelier_provider::seam::Seam;
use atelier_provider::settings::Settings;
use atelier_tracker::Tracker;
use atelier_tracker::time::LedgerTime;
use tempfile::TempDir;
use tonic::{Status, Streaming};

use crate::acme::{Acme, CATALOG};
use crate::tap::Tap;

/// Everything a test needs.
pub struct Stack {
    pub acme: Arc<Acme>,
    pub oneshot: Arc<Acme>,
    pub sketch: Arc<Counters>,
    pub seam: Seam,
    pub ledger: Tap,
    pub store: Tap,
    pub folder: TempDir,
    pub tasks: Tasks,
    /// The ledger's clock.
    pub time: LedgerTime,
    settings: Settings,
    of_provider: Tasks,
    tracker: Transport,
    assets: Transport,
    provider: Transport,
    signer: Signer,
}

/// Another provider-svc on the same ledger and store.
pub struct Other {
    pub acme: Arc<Acme>,
    pub seam: Seam,
    pub ledger: Tap,
    pub tasks: Tasks,
    _folder: TempDir,
}
impl Drop for Other {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

/// What a call told.
#[derive(Debug, Default)]
pub struct Told {
    pub predictions: Vec<Generation>,
    pub joined: Vec<bool>,
    pub progress: Vec<Progress>,
    pub chunks: Vec<Chunk>,
    pub result: Option<GenerationResult>,
    pub error: Option<Status>,
}
impl Told {
    pub fn id(&self) -> String {
        self.predictions[0].generation_id.clone()
    }
    pub fn last(&self) -> &Generation {
        self.predictions.last().unwrap()
    }
    pub fn output(&self) -> Value {
        self.result
            .as_ref()
            .unwrap()
            .output
            .clone()
            .unwrap()
            .try_into()
            .unwrap()
    }
    pub fn text(&self) -> String {
        self.chunks.iter().map(|chunk| chunk.text.as_str()).collect()
    }
    pub fn reason(&self) -> String {
        atelier_proto::reason::reason_of(self.error.as_ref().unwrap())
    }
    pub fn take(&mut self, event: Event) {
        match event {
            Event::Prediction(prediction) => {
                self.predictions.push(prediction.generation.unwrap());
                self.joined.push(prediction.joined);
            }
            Event::Progress(progress) => self.progress.push(progress),
            Event::Chunk(chunk) => self.chunks.push(chunk),
            Event::Result(result) => self.result = Some(result),
        }
    }
}

pub fn u1() -> Caller {
    Caller::new("u1", ["*"])
}
pub fn u2() -> Caller {
    Caller::new("u2", ["*"])
}
pub fn params(json: serde_json::Value) -> Map {
    map_from_json(json).unwrap()
}
pub fn request(provider: &str, capability: &str, json: serde_json::Value) -> RunGenerationRequest {
    RunGenerationRequest {
        provider: provider.to_owned(),
        capability: capability.to_owned(),
        params: Some((&params(json)).into()),
        persist: Some(Persist::default()),
        ..RunGenerationRequest::default()
    }
}
/// A picture by acme, stored.
pub fn picture() -> RunGenerationRequest {
    request(
        "acme",
        "text_to_image",
        serde_json::json!({"prompt": "a paper boat"}),
    )
}
pub fn cost(generation: &Generation) -> Option<&str> {
    generation
        .cost
        .as_ref()
        .map(|Money { amount, .. }| amount.as_str())
}
pub fn status(generation: &Generation) -> GenerationStatus {
    GenerationStatus::try_from(generation.status).unwrap()
}

impl Stack {
    pub async fn start() -> Self {
        Self::with(Settings::default()).await
    }

    pub async fn with(settings: Settings) -> Self {
        Self::on(settings, tempfile::tempdir().unwrap()).await
    }

    pub async fn on(mut settings: Settings, folder: TempDir) -> Self {
        let catalog = folder.path().join("prices.toml");
        std::fs::write(&catalog, CATALOG).unwrap();
        settings.catalog = Some(catalog);
        settings.save_pauses_ms = vec![1, 1];
        settings.rpc_timeout = Duration::from_secs(10);
        let mut deps = deps(folder.path());
        let tracker = Tracker::build(atelier_tracker::Settings::default(), &deps)
            .await
            .unwrap();
        let (time, ledger_of_all) = (
            tracker.time(),
            atelier_common::channel::local(tracker.routes(), &deps.signer),
        );
        let tasks = deps.tasks.clone();
        let of_tracker = deps.tasks.clone();
        deps.tasks
            .spawn("tracker", async move { tracker.run(&of_tracker).await });
        let assets = component::start::<Assets>(atelier_asset::Settings::default(), &deps)
            .await
            .unwrap();
        let (ledger, store) = (Tap::default(), Tap::default());
        deps.peers.insert("tracker", ledger.on(ledger_of_all.clone()));
        deps.peers.insert("asset", store.on(assets.transport.clone()));
        let (acme, oneshot) = (Acme::pollable(), Acme::oneshot());
        let own: Vec<Arc<dyn Provider>> = vec![acme.clone(), oneshot.clone()];
        settings.bill_spread = Duration::ZERO;
        let kept = settings.clone();
        let of_provider = deps.tasks.child("provider");
        deps.tasks = of_provider.clone();
        let providers = Providers::build_with(settings, &deps, own).await.unwrap();
        let (sketch, seam) = (providers.sketch_counters(), providers.seam());
        let provider = atelier_common::channel::local(providers.routes(), &deps.signer);
        let running = of_provider.clone();
        of_provider.spawn("provider", async move { providers.run(&running).await });
        let stack = Self {
            acme,
            oneshot,
            sketch,
            seam,
            ledger,
            store,
            folder,
            tasks,
            of_provider,
            tracker: ledger_of_all,
            time,
            settings: kept,
            assets: assets.transport,
            provider,
            signer: deps.signer.clone(),
        };
        let tap = stack.ledger.clone();
        atelier_common::testkit::until(async || tap.count("Follow") > 0)
            .within(Duration::from_secs(10))
            .await;
        stack
    }

    /// Starts another provider-svc, and waits until it follows.
    pub async fn other(&self) -> Other {
        let folder = tempfile::tempdir().unwrap();
        let mut deps = Deps::new(folder.path(), self.signer.clone());
        let ledger = Tap::default();
        deps.peers.insert("tracker", ledger.on(self.tracker.clone()));
        deps.peers.insert("asset", self.assets.clone());
        let acme = Acme::pollable();
        let own: Vec<Arc<dyn Provider>> = vec![acme.clone(), Acme::oneshot()];
        let providers = Providers::build_with(self.settings.clone(), &deps, own)
            .await
            .unwrap();
        let (seam, tasks) = (providers.seam(), deps.tasks.clone());
        let running = tasks.clone();
        deps.tasks
            .spawn("provider", async move { providers.run(&running).await });
        let tap = ledger.clone();
        atelier_common::testkit::until(async || tap.count("Follow") > 0)
            .within(Duration::from_secs(10))
            .await;
        Other {
            acme,
            seam,
            ledger,
            tasks,
            _folder: folder,
        }
    }

    /// Stops provider-svc in good order, and waits until it has.
    pub async fn stop_provider(&self) {
        self.of_provider.stop();
        assert!(self.of_provider.drain(Duration::from_secs(10)).await);
    }

    /// Moves the ledger's clock on, and has the drivers heard again: a new stream is a look at what is due.
    pub fn later(&self, by: Duration) {
        self.time.advance(by);
        self.ledger.break_streams();
    }

    /// Looks for the bill of a row, because a user asks.
    pub async fn reconcile(&self, caller: &Caller, id: &str) -> Result<ReconcileGenerationResponse, Status> {
        let request = ReconcileGenerationRequest {
            generation_id: id.to_owned(),
        };
        let request = self.signer.request(request, caller);
        let answer = self.client().reconcile_generation(request).await?;
        Ok(answer.into_inner())
    }

    /// Waits until the bill of a row is in a state.
    pub async fn bill_in(&self, id: &str, wanted: &str) -> Generation {
        let look = async || {
            Some(self.row(id).await).filter(|row| row.reconciliation.as_ref().unwrap().state == wanted)
        };
        atelier_common::testkit::until(look)
            .within(Duration::from_secs(10))
            .await
    }

    pub fn client(&self) -> ProviderServiceClient<Transport> {
        ProviderServiceClient::new(self.provider.clone())
            .max_decoding_message_size(atelier_proto::MAX_MESSAGE_BYTES)
    }

    /// Starts a call and leaves its stream open.
    pub async fn open(
        &self,
        caller: &Caller,
        request: RunGenerationRequest,
    ) -> Result<Streaming<RunGenerationResponse>, Status> {
        let request = self.signer.request(request, caller);
        self.client()
            .run_generation(request)
            .await
            .map(tonic::Response::into_inner)
    }

    /// Runs a call to the end.
    pub async fn run(&self, request: RunGenerationRequest) -> Told {
        self.run_as(&u1(), request).await
    }

    pub async fn run_as(&self, caller: &Caller, request: RunGenerationRequest) -> Told {
        match self.open(caller, request).await {
            Ok(stream) => read(stream).await,
            Err(error) => Told {
                error: Some(error),
                ..Told::default()
            },
        }
    }

    pub async fn cancel(&self, caller: &Caller, id: &str) -> CancelGenerationResponse {
        let request = CancelGenerationRequest {
            generation_id: id.to_owned(),
            job_id: None,
        };
        let request = self.signer.request(request, caller);
        self.client()
            .cancel_generation(request)
            .await
            .unwrap()
            .into_inner()
    }

    pub fn tracker(&self) -> GenerationServiceClient<Transport> {
        GenerationServiceClient::new(self.tracker.clone())
    }

    pub fn signed<T>(&self, message: T) -> tonic::Request<T> {
        self.signer.request(message, &u1())
    }

    pub fn signer(&self) -> Signer {
        self.signer.clone()
    }
    pub fn tracker_transport(&self) -> Transport {
        self.tracker.clone()
    }
    pub fn asset_transport(&self) -> Transport {
        self.assets.clone()
    }

    pub async fn row(&self, id: &str) -> Generation {
        let request = self.signed(GetGenerationRequest {
            generation_id: id.to_owned(),
        });
        self.tracker()
            .get_generation(request)
            .await
            .unwrap()
            .into_inner()
            .generation
            .unwrap()
    }

    /// Waits until a row is in a status.
    pub async fn row_in(&self, id: &str, wanted: GenerationStatus) -> Generation {
        let look = async || Some(self.row(id).await).filter(|row| status(row) == wanted);
        atelier_common::testkit::until(look)
            .within(Duration::from_secs(10))
            .await
    }

    pub async fn rows(&self) -> Vec<Generation> {
        let request = self.signed(ListGenerationsRequest {
            page_size: 500,
            ..ListGenerationsRequest::default()
        });
        self.tracker()
            .list_generations(request)
            .await
            .unwrap()
            .into_inner()
            .generations
    }

    fn asset_client(&self) -> AssetServiceClient<Transport> {
        AssetServiceClient::new(self.assets.clone())
    }

    pub async fn asset(&self, id: &str) -> Asset {
        let request = self.signed(GetAssetRequest {
            asset_id: id.to_owned(),
        });
        self.asset_client()
            .get_asset(request)
            .await
            .unwrap()
            .into_inner()
            .asset
            .unwrap()
    }

    pub async fn assets(&self) -> Vec<Asset> {
        let request = self.signed(ListAssetsRequest {
            page_size: 500,
            ..ListAssetsRequest::default()
        });
        self.asset_client()
            .list_assets(request)
            .await
            .unwrap()
            .into_inner()
            .assets
    }

    /// The metadata of a row, as a map.
    pub async fn facts(&self, id: &str) -> Map {
        self.row(id)
            .await
            .metadata
            .unwrap_or_default()
            .try_into()
            .unwrap()
    }
}
impl Drop for Stack {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

pub async fn read(mut stream: Streaming<RunGenerationResponse>) -> Told {
    let mut told = Told::default();
    loop {
        match stream.message().await {
            Ok(Some(message)) => told.take(message.event.unwrap()),
            Ok(None) => return told,
            Err(error) => {
                told.error = Some(error);
                return told;
            }
        }
    }
}

/// The id of a call whose stream was just opened.
pub async fn first_id(stream: &mut Streaming<RunGenerationResponse>) -> String {
    let mut told = Told::default();
    told.take(stream.message().await.unwrap().unwrap().event.unwrap());
    told.id()
}

pub fn deps(folder: &Path) -> Deps {
    Deps::new(folder, Signer::random())
}
