//! Assets and their bytes: the store that every other service saves to and reads from.
//!
//! What lives here: blobs, named by what they contain ([`blobs`]); assets, the rows that say whose a blob is and what is
//! known of it ([`assets`]); and the saving of committed artifacts ([`commit`]), which gives each medium of a run's results
//! its slot, once. What does not: the index of an artifact (the kernel's log gives it), costs and statuses (the ledger),
//! fetching from the web (nothing here does), and serving to browsers (the gateway).
//!
//! Start reading at [`commit`]; [`api`] is only translation.

pub mod api;
pub mod assets;
pub mod blobs;
pub mod commit;
pub mod entity;
pub mod error;
pub mod metrics;
pub mod migration;
pub mod settings;
pub mod sniff;

use std::sync::Arc;
use std::time::Duration;

use atelier_common::component::{BuildError, Component, Deps, RunError};
use atelier_common::db::{Db, DbSettings};
use atelier_common::health::{Gate, Health};
use atelier_common::tasks::Tasks;
use atelier_proto::asset::v1::asset_service_server::AssetServiceServer;
use tonic::service::Routes;

use crate::assets::rows::Rows;
use crate::blobs::Blobs;
use crate::commit::Committer;
use crate::error::Error;

pub use crate::settings::Settings;

/// Bytes without a name are left behind by a crash when they are older than this.
const LEFTOVER_AGE: Duration = Duration::from_hours(24);
/// Pause between looks at store and database.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// Every so many looks, leftovers are removed.
const CHECKS_PER_CLEANING: u32 = 120;
/// The gate of this service.
const GATE: &str = "assets";

/// The asset service.
#[derive(Clone)]
pub struct Assets {
    api: api::Api,
    health: Health,
}

impl std::fmt::Debug for Assets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Assets")
    }
}

impl Assets {
    /// Builds the service over a store that is open already.
    ///
    /// # Errors
    /// [`BuildError`] when database or store cannot be used.
    pub async fn with_blobs(settings: &Settings, deps: &Deps, blobs: Blobs) -> Result<Self, BuildError> {
        atelier_common::metrics::describe(metrics::ALL);
        let db = Db::connect(&settings.database(&deps.data_dir), &DbSettings::default()).await?;
        db.migrate::<migration::Migrator>().await?;
        let unusable = |error: Error| BuildError::new("the store of assets cannot be used", error);
        let before = if deps.sole_process {
            None
        } else {
            Some(deps.clock.now() - LEFTOVER_AGE)
        };
        let removed = blobs.remove_leftovers(before).await.map_err(unusable)?;
        if removed > 0 {
            tracing::info!(removed, "bytes without a name were removed");
        }
        let committer = Committer {
            rows: Rows::new(db, &deps.tasks),
            blobs,
            clock: deps.clock.clone(),
            max_inline_bytes: settings.max_inline_bytes,
        };
        let api = api::Api::new(Arc::new(api::Parts {
            committer,
            tasks: deps.tasks.clone(),
            max_asset_bytes: settings.max_asset_bytes,
        }));
        deps.health.register(NAME_OF_SERVICE);
        deps.health.set(GATE, Gate::Ready);
        Ok(Self {
            api,
            health: deps.health.clone(),
        })
    }

    /// Looks at store and database, and says so.
    async fn check(&self) {
        let Committer { rows, blobs, .. } = self.api.committer();
        let gate = match (rows.db().ping().await, blobs.check().await) {
            (Ok(()), Ok(())) => Gate::Ready,
            (Err(_), _) => Gate::NotReady("the database does not answer".to_owned()),
            (_, Err(_)) => Gate::NotReady("the store does not answer".to_owned()),
        };
        self.health.set(GATE, gate);
    }

    async fn clean(&self) {
        let Committer { blobs, clock, .. } = self.api.committer();
        match blobs.remove_leftovers(Some(clock.now() - LEFTOVER_AGE)).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "bytes without a name were removed"),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "bytes without a name could not be removed"
                );
            }
        }
    }
}

/// The service's full name, for health checks.
const NAME_OF_SERVICE: &str = "atelier.asset.v1.AssetService";

impl Component for Assets {
    const NAME: &'static str = "asset-svc";
    type Settings = Settings;

    async fn build(settings: Settings, deps: &Deps) -> Result<Self, BuildError> {
        let url = settings.store(&deps.data_dir)?;
        let blobs = Blobs::open(&url, &Settings::store_options(), deps.tasks.clone())
            .map_err(|error| BuildError::new("the store of assets cannot be opened", error))?;
        Self::with_blobs(&settings, deps, blobs).await
    }

    fn routes(&self) -> Routes {
        let service = AssetServiceServer::new(self.api.clone())
            .max_decoding_message_size(atelier_proto::MAX_MESSAGE_BYTES)
            .max_encoding_message_size(atelier_proto::MAX_MESSAGE_BYTES);
        Routes::new(service)
    }

    fn descriptor() -> &'static [u8] {
        atelier_proto::DESCRIPTORS
    }

    async fn run(self, tasks: &Tasks) -> Result<(), RunError> {
        let mut checks = 0_u32;
        while tasks.pause(CHECK_INTERVAL).await {
            self.check().await;
            checks = checks.wrapping_add(1);
            if checks.is_multiple_of(CHECKS_PER_CLEANING) {
                self.clean().await;
            }
        }
        Ok(())
    }
}
