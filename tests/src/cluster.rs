//! The services as processes of their own, joined by gRPC over sockets.

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context, ensure};
use atelier_cli::client::Client;
use atelier_common::testkit::until;
use tokio::process::{Child, Command};
use url::Url;

use crate::process::binary;

/// A port that nobody listens on.
///
/// # Errors
/// The loopback has none.
pub fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
/// Starts a service on a port, with the addresses of its peers.
///
/// # Errors
/// It is not built, or cannot be started.
pub fn start(
    name: &str,
    port: u16,
    data: &Path,
    peers: &[(&str, u16)],
    environment: &[(&str, &str)],
) -> anyhow::Result<Child> {
    let program = binary()?.with_file_name(name);
    ensure!(
        program.exists(),
        "{} is not built: run `cargo build --workspace --bins` first",
        program.display()
    );
    let mut command = Command::new(program);
    command
        .args(["--listen", &format!("127.0.0.1:{port}")])
        .env("ATELIER_PROCESS__DATA_DIR", data);
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ATELIER_CONFIG"] {
        command.env_remove(name);
    }
    for (peer, port) in peers {
        command.env(
            format!("ATELIER_PROCESS__PEERS__{}", peer.to_uppercase()),
            format!("http://127.0.0.1:{port}"),
        );
    }
    Ok(command
        .envs(environment.iter().copied())
        .kill_on_drop(true)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?)
}

/// Ports of the services.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    /// tracker-svc.
    pub tracker: u16,
    /// asset-svc.
    pub asset: u16,
    /// provider-svc.
    pub provider: u16,
    /// kernel-svc.
    pub kernel: u16,
    /// The gateway.
    pub gateway: u16,
}
/// All five services on one data folder; they end when it is dropped.
pub struct Cluster {
    /// Where they listen.
    pub ports: Ports,
    data: tempfile::TempDir,
    kernel: Child,
    client: Client,
    _others: Vec<Child>,
}
impl Cluster {
    /// Starts them, the provider's with more of an environment, and waits until the gateway answers.
    ///
    /// # Errors
    /// One does not start.
    pub async fn start(provider: &[(&str, &str)]) -> anyhow::Result<Self> {
        let data = tempfile::tempdir()?;
        let ports = Ports {
            tracker: free_port()?,
            asset: free_port()?,
            provider: free_port()?,
            kernel: free_port()?,
            gateway: free_port()?,
        };
        let Ports {
            tracker,
            asset,
            provider: seam,
            kernel,
            gateway,
        } = ports;
        let at = data.path();
        let others = vec![
            start("tracker-svc", tracker, at, &[], &[])?,
            start("asset-svc", asset, at, &[], &[])?,
            start(
                "provider-svc",
                seam,
                at,
                &[("tracker", tracker), ("asset", asset)],
                provider,
            )?,
            start(
                "gateway",
                gateway,
                at,
                &[
                    ("kernel", kernel),
                    ("provider", seam),
                    ("tracker", tracker),
                    ("asset", asset),
                ],
                &[],
            )?,
        ];
        let client = Client::new(Url::parse(&format!("http://127.0.0.1:{gateway}"))?)?;
        let cluster = Self {
            kernel: kernel_process(ports, at)?,
            ports,
            data,
            client,
            _others: others,
        };
        for path in ["jobs", "generations", "assets", "models"] {
            let path = format!("/api/v1/{path}");
            until(|| async { cluster.client.get(&path, &[]).await.is_ok() })
                .within(Duration::from_secs(60))
                .await;
        }
        Ok(cluster)
    }
    /// Client of its gateway.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }
    /// Kills kernel-svc as a crash would, and starts another in its place.
    ///
    /// # Errors
    /// It cannot be killed or started.
    pub async fn crash_kernel(&mut self) -> anyhow::Result<()> {
        self.kernel.start_kill().context("kernel-svc is gone")?;
        self.kernel.wait().await?;
        self.kernel = kernel_process(self.ports, self.data.path())?;
        Ok(())
    }
}
fn kernel_process(ports: Ports, data: &Path) -> anyhow::Result<Child> {
    let peers = [("provider", ports.provider), ("asset", ports.asset)];
    // Short, so that a test need not wait long until the run of a dead process is taken up.
    let environment = [("ATELIER_KERNEL__LEASE", "600ms")];
    start("kernel-svc", ports.kernel, data, &peers, &environment)
}
