//! tracker-svc: the ledger of generations.
//!
//! One row per generation: opened before money is spent, closed with what became of it, what it cost and which assets
//! came out. The row outlives everybody: the caller that went away, the driver that died, the provider that failed.
//!
//! What lives here, and where to start:
//! - [`ledger`]: the transitions of a row, one file each; the rules of who may change what are there and nowhere else.
//! - [`entity`], [`migration`]: the tables. This crate is their only reader and writer.
//! - [`queries`], [`costs`], [`filter`]: one row, pages of rows, sums.
//! - [`budgets`]: what may be spent, and what is held of it.
//! - [`instances`], [`follow`], [`sweep`], [`adopt`]: who drives, how a driver hears of a cancel, what happens when it is
//!   gone: another one takes its jobs up, or its rows are interrupted.
//! - [`waiting`], [`runs`]: who waits for a row; what is done to all rows of a run.
//! - [`reconcile`]: which rows wait for their bill, who looks for it, and what the bill changes.
//! - [`charge`], [`metadata`], [`text`], [`time`], [`zones`]: amounts, further facts, foreign texts, the database's clock,
//!   time zones.
//! - [`api`]: the service on the wire.
//!
//! What does not live here: calls to providers, prices and the reading of bills (provider-svc), bytes (asset-svc), runs
//! (kernel-svc), API keys (gateway). The ledger calls nobody.

pub mod adopt;
pub mod api;
pub mod budgets;
pub mod charge;
pub mod costs;
pub mod entity;
pub mod error;
pub mod filter;
pub mod follow;
pub mod instances;
pub mod ledger;
pub mod metadata;
pub mod metrics;
pub mod migration;
pub mod queries;
pub mod reconcile;
pub mod runs;
pub mod settings;
pub mod sweep;
pub mod text;
pub mod time;
pub mod waiting;
pub mod zones;

use std::time::Duration;

use atelier_common::component::{BuildError, Component, Deps, RunError};
use atelier_common::db::Db;
use atelier_common::health::{Gate, Health};
use atelier_common::tasks::Tasks;
use atelier_proto::MAX_MESSAGE_BYTES;
use atelier_proto::tracker::v1::budget_service_server::{self, BudgetServiceServer};
use atelier_proto::tracker::v1::generation_service_server::{GenerationServiceServer, SERVICE_NAME};
use tonic::service::Routes;

pub use error::Error;
pub use settings::Settings;

use crate::adopt::Adoption;
use crate::api::{BudgetApi, Service};
use crate::budgets::store::Budgets;
use crate::follow::{Following, Hub};
use crate::instances::Instances;
use crate::ledger::Ledger;
use crate::migration::Migrator;
use crate::queries::Queries;
use crate::reconcile::Reconciliations;
use crate::sweep::Sweep;
use crate::time::LedgerTime;
use crate::waiting::Waiting;

/// The ledger as a part of a process.
pub struct Tracker {
    service: Service,
    budgets: BudgetApi,
    sweep: Sweep,
    time: LedgerTime,
    sweep_interval: Duration,
    health: Health,
}

impl Tracker {
    /// The ledger's clock, which a test may move on.
    #[must_use]
    pub fn time(&self) -> LedgerTime {
        self.time.clone()
    }

    /// The ledger itself, for whoever lives in this process and settles rows by statements of its own.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.service.ledger.clone()
    }
}

impl Component for Tracker {
    const NAME: &'static str = "tracker-svc";
    type Settings = Settings;

    async fn build(settings: Settings, deps: &Deps) -> Result<Self, BuildError> {
        if settings.heartbeat.saturating_mul(2) > settings.lease {
            return Err(BuildError::invalid(
                "tracker.lease must be at least twice tracker.heartbeat",
            ));
        }
        let url = settings.url(&deps.data_dir);
        let db = Db::connect(&url, &settings.database).await?;
        db.migrate::<Migrator>().await?;
        atelier_common::metrics::describe(metrics::ALL);
        deps.health.register(SERVICE_NAME);
        deps.health.register(budget_service_server::SERVICE_NAME);
        deps.health.set(sweep::GATE, Gate::Ready);
        let time = LedgerTime::new(db.backend(), deps.clock.clone());
        let waiting = Waiting::default();
        let ledger = Ledger::new(&db, &time, &deps.tasks, &waiting);
        let sweep = Sweep::new(db.clone(), time.clone(), ledger.clone(), waiting.clone());
        let reconciliations = Reconciliations::new(db.clone(), time.clone());
        let hub = Hub::default();
        deps.tasks.spawn(
            "awaited rows",
            waiting.clone().look_out(db.clone(), deps.tasks.clone()),
        );
        deps.tasks
            .spawn("cancel orders", hub.clone().relay(db.clone(), deps.tasks.clone()));
        let budgets = BudgetApi {
            budgets: Budgets::new(db.clone(), time.clone()),
        };
        let service = Service {
            ledger,
            queries: Queries::new(db.clone()),
            waiting,
            following: Following {
                instances: Instances::new(&db, &time, &deps.tasks, settings.lease),
                hub,
                sweep: sweep.clone(),
                adoption: Adoption::new(db.clone(), time.clone()),
                reconciliations: reconciliations.clone(),
                db: db.clone(),
            },
            reconciliations,
            time: time.clone(),
            db,
            stop: deps.tasks.token(),
        };
        Ok(Self {
            service,
            budgets,
            sweep,
            time,
            sweep_interval: settings.sweep_interval,
            health: deps.health.clone(),
        })
    }

    fn routes(&self) -> Routes {
        let server =
            GenerationServiceServer::new(self.service.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let budgets = BudgetServiceServer::new(self.budgets.clone());
        Routes::new(server).add_service(budgets)
    }

    fn descriptor() -> &'static [u8] {
        atelier_proto::DESCRIPTORS
    }

    async fn run(self, tasks: &Tasks) -> Result<(), RunError> {
        self.sweep.forever(self.sweep_interval, &self.health, tasks).await;
        Ok(())
    }
}
