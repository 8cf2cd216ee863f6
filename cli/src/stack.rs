//! All services in one process, joined by channels in memory: the same libraries, the same contracts.

use std::path::{Path, PathBuf};

use anyhow::Context;
use atelier_asset::Assets;
use atelier_common::{
    channel,
    clock::Clock,
    component::{Component, Deps, Peers},
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
        join::<Kernel>(&mut deps, &loader, "kernel").await?;
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
    let component = C::build(settings, deps).await.with_context(|| C::NAME)?;
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
    Ok(())
}
