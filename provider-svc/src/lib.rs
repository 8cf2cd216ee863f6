//! provider-svc, the one seam to AI providers.
//!
//! What lives here: [`seam`] carries out a generation in the order that keeps money and rows together (start reading at
//! `seam/run.rs`); [`provider`] is what an adapter is, and [`adapters`] are those there are; [`pricing`] knows what
//! things cost; [`follow`] holds the lease at the ledger; [`api`] is the contract. What does not: rows and their rules
//! (tracker-svc), the bytes of assets (asset-svc), graphs and their nodes (kernel-svc).

pub mod adapters;
pub mod api;
pub mod error;
pub mod follow;
pub mod metrics;
pub mod pricing;
pub mod provider;
pub mod seam;
pub mod settings;

use std::sync::Arc;
use std::time::Duration;

use atelier_common::component::{BuildError, Component, Deps, RunError};
use atelier_common::health::Health;
use atelier_common::tasks::Tasks;
use atelier_proto::MAX_MESSAGE_BYTES;
use atelier_proto::ids::InstanceId;
use atelier_proto::provider::v1::provider_service_server::ProviderServiceServer;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::adapters::fal::Fal;
use crate::adapters::kie::Kie;
use crate::adapters::openai::OpenAi;
use crate::adapters::sketch::{Counters, Sketch};
use crate::follow::Follower;
use crate::pricing::Catalog;
use crate::provider::Provider;
use crate::seam::Seam;
use crate::seam::assets::Assets;
use crate::seam::directory::Directory;
use crate::seam::ledger::Ledger;
use crate::seam::registry::Registry;
use crate::seam::run::Inner;
use crate::seam::spool::Spool;
use crate::settings::{LedgerMode, Settings};

/// Looks at bills that go on at once.
const LOOKS: usize = 64;
/// How long calls that were let go may take to end.
const RELEASE_LIMIT: Duration = Duration::from_secs(2);

/// provider-svc as a part of a process.
pub struct Providers {
    seam: Seam,
    health: Health,
    sole_process: bool,
    required: bool,
    stop_grace: Duration,
    sketch: Arc<Counters>,
}

impl Providers {
    /// Builds it with providers beside, or in the place of, those that it has; for hosts that bring their own.
    ///
    /// # Errors
    /// When a peer is missing, the price catalog is wrong, or the spool cannot be opened.
    pub async fn build_with(
        settings: Settings,
        deps: &Deps,
        own: Vec<Arc<dyn Provider>>,
    ) -> Result<Self, BuildError> {
        atelier_common::metrics::describe(metrics::ALL);
        let tasks = deps.tasks.child("generations");
        let mut catalog =
            Catalog::load(None).map_err(|error| BuildError::new("cannot use the price catalog", error))?;
        if let Some(path) = &settings.catalog {
            let texts = pricing::files::read(path).await;
            let texts = texts.map_err(|error| BuildError::new("cannot read the price catalog", error))?;
            for (file, text) in texts {
                let unusable = |error| BuildError::new(format!("cannot use the prices of {file}"), error);
                catalog.put_in_front(&text).map_err(unusable)?;
            }
        }
        let catalog = Arc::new(catalog);
        let spool = Spool::open(&deps.data_dir, tasks.clone())
            .map_err(|error| BuildError::new("cannot open the spool", error))?;
        let sketch = Sketch::new(settings.sketch.clone(), catalog.clone(), tasks.clone());
        let counters = sketch.counters();
        let mut directory = Directory::default().with_stand_in(settings.stand_in);
        directory.add(Arc::new(sketch));
        directory.add(Arc::new(OpenAi::new(settings.openai.clone(), catalog.clone())?));
        for remote in adapters::remotes(&settings, &catalog)? {
            directory.add(remote);
        }
        directory.add(Arc::new(Fal::new(settings.fal.clone())?));
        directory.add(Arc::new(Kie::new(settings.kie.clone())?));
        for provider in own {
            directory.add(provider);
        }
        let instance = InstanceId::from_uuid(deps.instance);
        let ledger = Ledger::new(
            deps.peers.get("tracker")?,
            deps.signer.clone(),
            instance,
            spool,
            settings.ledger,
            settings.rpc_timeout,
        );
        let seam = Seam::new(Inner {
            directory,
            catalog,
            ledger,
            assets: Assets::new(
                deps.peers.get("asset")?,
                deps.signer.clone(),
                settings.rpc_timeout,
            ),
            registry: Registry::default(),
            tasks: tasks.clone(),
            clock: deps.clock.clone(),
            looks: Semaphore::new(LOOKS),
            bill_spread: settings.bill_spread,
            save_pauses: settings
                .save_pauses_ms
                .iter()
                .copied()
                .map(Duration::from_millis)
                .collect(),
        });
        Ok(Self {
            seam,
            health: deps.health.clone(),
            sole_process: deps.sole_process,
            required: settings.ledger == LedgerMode::Required,
            stop_grace: settings.stop_grace,
            sketch: counters,
        })
    }

    /// The seam, for hosts that look closer.
    #[must_use]
    pub fn seam(&self) -> Seam {
        self.seam.clone()
    }

    /// What the offline provider was asked so far.
    #[must_use]
    pub fn sketch_counters(&self) -> Arc<Counters> {
        self.sketch.clone()
    }
}

impl Component for Providers {
    const NAME: &'static str = "provider-svc";
    type Settings = Settings;

    async fn build(settings: Settings, deps: &Deps) -> Result<Self, BuildError> {
        Self::build_with(settings, deps, Vec::new()).await
    }

    fn routes(&self) -> Routes {
        let service = ProviderServiceServer::new(api::Service::new(self.seam.clone()))
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        Routes::new(service)
    }

    fn descriptor() -> &'static [u8] {
        atelier_proto::DESCRIPTORS
    }

    async fn run(self, tasks: &Tasks) -> Result<(), RunError> {
        // The lease must outlive the calls in flight, so it ends after them and not with the signal to stop.
        let released = CancellationToken::new();
        let follower = Follower {
            seam: self.seam.clone(),
            health: self.health.clone(),
            tasks: tasks.clone(),
            sole_process: self.sole_process,
            required: self.required,
        };
        let following = tasks.spawn("follow", {
            let released = released.clone();
            async move { follower.run(&released).await }
        });
        let drained = CancellationToken::new();
        let delivering = tasks.spawn("deliver", {
            let (seam, drained) = (self.seam.clone(), drained.clone());
            async move { follow::deliver(&seam, &drained).await }
        });
        tasks.stopped().await;
        self.finish_calls().await;
        // What the last calls left is told before the goodbye, which lets the ledger close what is open.
        drained.cancel();
        let delivered = delivering.await;
        released.cancel();
        for part in [following.await, delivered] {
            part.map_err(|error| RunError::new("a part of the provider service died", error))?;
        }
        Ok(())
    }
}

impl Providers {
    /// Lets calls in flight end on their own, for a while. What is not done then is left to another process, or to the
    /// sweep.
    async fn finish_calls(&self) {
        let running = self.seam.registry().running();
        if running.is_empty() {
            return;
        }
        tracing::info!(calls = running.len(), "waiting for calls in flight");
        if tokio::time::timeout(self.stop_grace, self.seam.registry().idle())
            .await
            .is_err()
        {
            let released = self.seam.registry().release();
            let gone = self.seam.registry().idle();
            if tokio::time::timeout(RELEASE_LIMIT, gone).await.is_err() {
                let calls = self.seam.registry().running().len();
                tracing::warn!(calls, released, "calls are left behind");
            } else {
                tracing::info!(released, "calls are left to another process");
            }
        }
    }
}
