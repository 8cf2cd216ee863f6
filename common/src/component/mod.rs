//! What a service is; how one is started, joined with others and stopped.

mod main;
mod process;
mod serve;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;

use tokio::task::JoinHandle;
use tonic::service::Routes;
use uuid::Uuid;

use crate::channel::{self, BoxError, Transport};
use crate::clock::Clock;
use crate::health::Health;
use crate::identity::Signer;
use crate::settings;
use crate::tasks::Tasks;

pub use main::main_of;
pub use process::{ProcessSettings, shutdown_signal};
pub use serve::{DRAIN_LIMIT, admin_router, serve_admin, serve_grpc, serve_grpc_within};

/// A part that can run alone or beside the others.
pub trait Component: Sized + Send + 'static {
    /// Its name as a process: `tracker-svc`.
    const NAME: &'static str;
    /// Its section of the settings.
    type Settings: settings::Settings;

    /// Connects and checks. Binds no port and starts no service; tasks that it needs for itself are spawned on
    /// `deps.tasks`.
    fn build(settings: Self::Settings, deps: &Deps) -> impl Future<Output = Result<Self, BuildError>> + Send;

    /// Its gRPC services, for a socket or for an in-memory channel. Layers, health and reflection are added to them.
    fn routes(&self) -> Routes;

    /// The file descriptor set of its services, for reflection.
    fn descriptor() -> &'static [u8];

    /// Works in the background until `tasks` is told to stop.
    fn run(self, tasks: &Tasks) -> impl Future<Output = Result<(), RunError>> + Send;
}

/// What a component gets from its process. Cheap to clone.
#[derive(Clone)]
pub struct Deps {
    /// Transports to other services.
    pub peers: Peers,
    /// Where to spawn, and the signal to stop.
    pub tasks: Tasks,
    /// Where to say what is not ready.
    pub health: Health,
    /// Signs and verifies callers.
    pub signer: Signer,
    /// The time.
    pub clock: Clock,
    /// This start of the process: a version 7 id, never the same twice.
    pub instance: Uuid,
    /// A folder that the process may keep files in.
    pub data_dir: PathBuf,
    /// Whether this process alone holds the data folder, so that leases of earlier instances are dead.
    pub sole_process: bool,
}

impl Deps {
    /// What a process without peers gives: fresh tasks, health and instance, the system's clock.
    pub fn new(data_dir: impl Into<PathBuf>, signer: Signer) -> Self {
        Self {
            peers: Peers::default(),
            tasks: Tasks::new(),
            health: Health::new(),
            signer,
            clock: Clock::system(),
            instance: Uuid::now_v7(),
            data_dir: data_dir.into(),
            sole_process: false,
        }
    }

    /// The same for a process started again: another instance, with tasks and health of its own.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self {
            tasks: Tasks::new(),
            health: Health::new(),
            instance: Uuid::now_v7(),
            ..self.clone()
        }
    }
}

/// Transports to other services by name.
#[derive(Clone, Default)]
pub struct Peers {
    by_name: BTreeMap<String, Transport>,
}

impl Peers {
    /// Adds or replaces a peer.
    pub fn insert(&mut self, name: impl Into<String>, transport: Transport) {
        self.by_name.insert(name.into(), transport);
    }

    /// The transport to a peer.
    ///
    /// # Errors
    /// [`BuildError`] when there is no peer of this name.
    pub fn get(&self, name: &str) -> Result<Transport, BuildError> {
        self.find(name).ok_or_else(|| {
            let known: Vec<_> = self.by_name.keys().map(String::as_str).collect();
            BuildError::invalid(format!(
                "no address for peer `{name}` (known: {})",
                known.join(", ")
            ))
        })
    }

    /// The transport to a peer that may be absent.
    pub fn find(&self, name: &str) -> Option<Transport> {
        self.by_name.get(name).cloned()
    }
}

/// Why a component cannot be built.
#[derive(Debug, thiserror::Error)]
#[error("{context}")]
pub struct BuildError {
    context: String,
    #[source]
    source: Option<BoxError>,
}

impl BuildError {
    /// What was being done, and what went wrong below.
    pub fn new(context: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self {
            context: context.into(),
            source: Some(source.into()),
        }
    }

    /// A setting or an environment that cannot work, with nothing below.
    pub fn invalid(context: impl Into<String>) -> Self {
        Self {
            context: context.into(),
            source: None,
        }
    }
}

impl From<crate::db::DbError> for BuildError {
    fn from(error: crate::db::DbError) -> Self {
        Self::new("cannot open the database", error)
    }
}

impl From<settings::SettingsError> for BuildError {
    fn from(error: settings::SettingsError) -> Self {
        Self::new("cannot read the settings", error)
    }
}

/// Why a component stopped without being told to.
#[derive(Debug, thiserror::Error)]
#[error("{context}")]
pub struct RunError {
    context: String,
    #[source]
    source: Option<BoxError>,
}

impl RunError {
    /// What was being done, and what went wrong below.
    pub fn new(context: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self {
            context: context.into(),
            source: Some(source.into()),
        }
    }

    /// A failure with nothing below.
    pub fn failed(context: impl Into<String>) -> Self {
        Self {
            context: context.into(),
            source: None,
        }
    }
}

/// A component that runs inside of this process.
pub struct Started {
    /// Its services, without layers, to be served on a socket as well.
    pub routes: Routes,
    /// An in-memory transport to them.
    pub transport: Transport,
    /// Ends when its background work does.
    pub running: JoinHandle<Result<(), RunError>>,
}

/// Builds a component, joins it by memory and starts its background work on a child of `deps.tasks`.
///
/// # Errors
/// The component's own.
pub async fn start<C: Component>(settings: C::Settings, deps: &Deps) -> Result<Started, BuildError> {
    let component = C::build(settings, deps).await?;
    let routes = component.routes();
    let transport = channel::local(routes.clone(), &deps.signer);
    let tasks = deps.tasks.clone();
    let running = deps
        .tasks
        .spawn(C::NAME, async move { component.run(&tasks).await });
    Ok(Started {
        routes,
        transport,
        running,
    })
}

#[cfg(test)]
mod tests;
