//! All services in one process, joined by channels in memory: the same libraries, the same contracts.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::Pin,
};

use anyhow::Context;
use atelier_asset::Assets;
use atelier_common::{
    channel,
    clock::Clock,
    component::{BuildError, Component, Deps, Peers, serve_grpc_within},
    health::Health,
    identity::Signer,
    settings::Loader,
    tasks::Tasks,
};
use atelier_gateway::Gateway;
use atelier_kernel::Kernel;
use atelier_provider::Providers;
use atelier_tracker::Tracker;
use tokio::net::TcpListener;
use url::Url;
use uuid::Uuid;

/// How long running work may go on after a stop was asked for.
pub const DRAIN: std::time::Duration = std::time::Duration::from_secs(10);

/// Sections that a settings file may have.
const SECTIONS: &[&str] = &[
    "tracker",
    "assets",
    "provider",
    "kernel",
    "gateway",
    "telemetry",
    "process",
];

/// What a stack is started with.
pub struct Options {
    /// Folder of the data.
    pub data: PathBuf,
    /// Settings file.
    pub config: Option<PathBuf>,
    /// Where the gateway listens.
    pub listener: TcpListener,
    /// Settings that win over file and environment: key and value.
    pub overrides: Vec<(String, String)>,
}
/// All services, running.
pub struct Stack {
    tasks: Tasks,
    url: Url,
    peers: Peers,
    signer: Signer,
    workers: Option<SocketAddr>,
}
impl Stack {
    /// Builds and starts all services. They serve when this returns.
    ///
    /// # Errors
    /// Settings that are wrong, a store that cannot be opened.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let Options {
            data,
            config,
            listener,
            overrides,
        } = options;
        let tasks = Tasks::new();
        let mut deps = Deps {
            peers: Peers::default(),
            tasks: tasks.clone(),
            health: Health::new(),
            signer: Signer::random(),
            clock: Clock::system(),
            instance: Uuid::now_v7(),
            data_dir: data,
            sole_process: true,
        };
        let loader = loader(config.as_deref(), &overrides);
        loader.check_sections(SECTIONS)?;
        join::<Tracker>(&mut deps, &loader, "tracker").await?;
        join::<Assets>(&mut deps, &loader, "asset").await?;
        join::<Providers>(&mut deps, &loader, "provider").await?;
        let settings = loader.load::<atelier_kernel::settings::Settings>()?.settings;
        let workers = bind_workers(settings.worker_listen).await?;
        let kernel = build::<Kernel>(&deps, settings).await?;
        let workers = workers
            .map(|listener| serve_workers(&kernel, listener, &deps))
            .transpose()?;
        launch(kernel, &mut deps, "kernel");
        let settings = loader.load()?.settings;
        let gateway = Gateway::build(settings, &deps).context(Gateway::NAME)?;
        let url = Url::parse(&format!("http://{}", listener.local_addr()?))?;
        let serving = tasks.clone();
        drop(tasks.spawn("gateway", async move {
            if let Err(error) = gateway.serve(listener, &serving).await {
                tracing::error!(error = &error as &dyn std::error::Error, "the gateway ended");
            }
        }));
        Ok(Self {
            tasks,
            url,
            peers: deps.peers,
            signer: deps.signer,
            workers,
        })
    }
    /// Address of the gateway.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }
    /// The services, for clients of their contracts.
    #[must_use]
    pub fn peers(&self) -> &Peers {
        &self.peers
    }
    /// Where workers connect, if anywhere.
    #[must_use]
    pub fn workers(&self) -> Option<SocketAddr> {
        self.workers
    }
    /// Signs for callers of the services.
    #[must_use]
    pub fn signer(&self) -> &Signer {
        &self.signer
    }
    /// Stops: no new work, then a while for what runs. False when something had to be left.
    pub async fn stop(self) -> bool {
        self.tasks.stop();
        self.tasks.drain(DRAIN).await
    }
}
fn loader(config: Option<&Path>, overrides: &[(String, String)]) -> Loader {
    let mut loader = Loader::new().file(config);
    for (key, value) in overrides {
        // As in the environment: text that reads as something else is that.
        loader = loader.variable(variable_of(key), value.as_str());
    }
    loader
}
/// The variable of a key: `provider.sketch.steps` is `ATELIER_PROVIDER__SKETCH__STEPS`.
fn variable_of(key: &str) -> String {
    format!("ATELIER_{}", key.replace('.', "__").to_uppercase())
}
/// Builds a service, makes it a peer of those that come after it, and starts it.
async fn join<C: Component>(deps: &mut Deps, loader: &Loader, name: &'static str) -> anyhow::Result<()> {
    let settings = loader.load::<C::Settings>()?.settings;
    let component = build::<C>(deps, settings).await?;
    launch(component, deps, name);
    Ok(())
}
async fn build<C: Component>(deps: &Deps, settings: C::Settings) -> anyhow::Result<C> {
    // Boxed: what starts a stack holds all of these futures in its own.
    let building: Pin<Box<dyn Future<Output = Result<C, BuildError>> + Send + '_>> =
        Box::pin(C::build(settings, deps));
    building.await.with_context(|| C::NAME)
}
/// Makes a service a peer of those that come after it, and starts it.
fn launch<C: Component>(component: C, deps: &mut Deps, name: &'static str) {
    deps.peers
        .insert(name, channel::local(component.routes(), &deps.signer));
    let tasks = deps.tasks.clone();
    drop(deps.tasks.spawn(C::NAME, async move {
        if let Err(error) = component.run(&tasks).await {
            tracing::error!(
                service = C::NAME,
                error = &error as &dyn std::error::Error,
                "a service ended"
            );
        }
    }));
}
/// The listener for workers. They need no identity there, so that it must not be reached from elsewhere.
async fn bind_workers(address: Option<SocketAddr>) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = address else { return Ok(None) };
    if !address.ip().is_loopback() {
        anyhow::bail!(
            "kernel.worker_listen: without authentication workers connect at a loopback address only, not {address}"
        );
    }
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen for workers on {address}"))?;
    Ok(Some(listener))
}
fn serve_workers(kernel: &Kernel, listener: TcpListener, deps: &Deps) -> anyhow::Result<SocketAddr> {
    let address = listener.local_addr()?;
    let (routes, deps) = (kernel.worker_routes(), deps.clone());
    drop(deps.tasks.clone().spawn("workers", async move {
        let descriptors = [Kernel::descriptor()];
        if let Err(error) = serve_grpc_within(routes, &descriptors, listener, &deps, DRAIN).await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "workers cannot connect any more"
            );
        }
    }));
    Ok(address)
}
