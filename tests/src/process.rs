//! The `atelier` command as real processes.

use std::{
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, ensure};
use atelier_cli::client::Client;
use serde_json::Value;
use tokio::process::{Child, Command};
use url::Url;

/// Path of the built command: beside this test's own folder.
///
/// # Errors
/// It is not built.
pub fn binary() -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test.parent().and_then(Path::parent).context("no target folder")?;
    let binary = folder.join("atelier");
    ensure!(
        binary.exists(),
        "{} is not built: run `cargo build` first",
        binary.display()
    );
    Ok(binary)
}
/// Root of the project.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default()
}
/// A command on a data folder, from the project's root, with a clean environment.
///
/// # Errors
/// It is not built.
pub fn atelier(data: &Path, args: &[&str]) -> anyhow::Result<Command> {
    let mut command = Command::new(binary()?);
    command
        .args(args)
        .current_dir(root())
        .env("ATELIER_DATA", data)
        .kill_on_drop(true)
        .stdin(Stdio::null());
    let providers = atelier_provider::settings::ALIASES.iter().map(|(name, _)| *name);
    for name in ["ATELIER_SERVER", "ATELIER_CONFIG"].into_iter().chain(providers) {
        command.env_remove(name);
    }
    Ok(command)
}
/// What a command came to.
pub struct Outcome {
    /// Its exit.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it said.
    pub stderr: String,
}
impl Outcome {
    /// Stdout as lines of JSON.
    ///
    /// # Errors
    /// A line is no JSON.
    pub fn lines(&self) -> anyhow::Result<Vec<Value>> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).with_context(|| line.to_owned()))
            .collect()
    }
}
/// Runs a command to its end.
///
/// # Errors
/// It cannot be started, or does not end in two minutes.
pub async fn outcome(mut command: Command) -> anyhow::Result<Outcome> {
    let output = tokio::time::timeout(Duration::from_secs(120), command.output())
        .await
        .context("it does not end")??;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Outcome {
        status: output.status,
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    })
}
/// `atelier up` as a process.
pub struct Server {
    child: Child,
    client: Client,
}
impl Server {
    /// Starts it on a free port and waits until it is ready.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start(data: &Path, environment: &[(&str, &str)]) -> anyhow::Result<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        Self::start_on(port, data, environment).await
    }
    /// Starts it on a port of the loopback and waits until it is ready.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start_on(port: u16, data: &Path, environment: &[(&str, &str)]) -> anyhow::Result<Self> {
        let listen = format!("127.0.0.1:{port}");
        let mut command = atelier(data, &["up", "--listen", &listen])?;
        command
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn()?;
        let client = Client::new(Url::parse(&format!("http://{listen}"))?)?;
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        while !client.alive().await {
            if let Some(status) = child.try_wait()? {
                anyhow::bail!("the server ended with {status}");
            }
            ensure!(
                tokio::time::Instant::now() < deadline,
                "the server does not get ready"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(Self { child, client })
    }
    /// Client of its gateway.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }
    /// Ends it as an operator would, and waits until it is gone.
    ///
    /// # Errors
    /// It cannot be told to.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let pid = self.child.id().context("the server is gone already")?;
        let told = Command::new("kill")
            .args(["-TERM", &pid.to_string()])
            .status()
            .await?;
        ensure!(told.success(), "the server cannot be told to stop");
        self.child.wait().await?;
        Ok(())
    }
    /// Ends it as a crash would.
    ///
    /// # Errors
    /// It cannot be killed.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        self.child.start_kill()?;
        self.child.wait().await?;
        Ok(())
    }
}
