//! Every service in this process on its own folder and port.

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use atelier_cli::{
    client::Client,
    stack::{Options, Stack},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::Socket;

/// A stack for one test; its folder goes with it.
pub struct TestStack {
    stack: Option<Stack>,
    client: Client,
    folder: TempDir,
}
impl TestStack {
    /// Starts a stack on a new folder.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start() -> anyhow::Result<Self> {
        Self::with(&[]).await
    }
    /// Starts a stack with settings of its own: key and value.
    ///
    /// # Errors
    /// It does not start.
    pub async fn with(overrides: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::on(tempfile::tempdir()?, overrides).await
    }
    async fn on(folder: TempDir, overrides: &[(&str, &str)]) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let overrides = overrides
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let options = Options {
            data: folder.path().to_owned(),
            config: None,
            listener,
            overrides,
        };
        let stack = Stack::start(options).await?;
        let client = Client::new(stack.url().clone())?;
        Ok(Self {
            stack: Some(stack),
            client,
            folder,
        })
    }
    /// Stops, and starts again on the same folder.
    ///
    /// # Errors
    /// It does not start.
    pub async fn restart(mut self) -> anyhow::Result<Self> {
        if let Some(stack) = self.stack.take() {
            stack.stop().await;
        }
        Self::on(self.folder, &[]).await
    }
    /// Client of the gateway.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }
    /// Folder of the data.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }
    /// The stack itself.
    ///
    /// # Errors
    /// It was stopped.
    pub fn stack(&self) -> anyhow::Result<&Stack> {
        self.stack.as_ref().context("stopped")
    }
    /// A socket in text mode.
    ///
    /// # Errors
    /// The socket does not open.
    pub async fn socket(&self) -> anyhow::Result<Socket> {
        Socket::text(self.client.base()).await
    }
    /// Runs a workflow to its end.
    ///
    /// # Errors
    /// The gateway refused.
    pub async fn run(&self, workflow: &Value, params: Value) -> anyhow::Result<Value> {
        self.client
            .post(
                "/api/v1/jobs?wait=120",
                &json!({"workflow": workflow, "params": params}),
            )
            .await
    }
    /// All frames of a run that ended.
    ///
    /// # Errors
    /// The gateway refused.
    pub async fn frames(&self, job_id: &str) -> anyhow::Result<Vec<Value>> {
        use futures_util::TryStreamExt;
        tokio::time::timeout(
            Duration::from_secs(60),
            self.client.events(job_id, 0).try_collect(),
        )
        .await?
    }
    /// Rows of a list for a run.
    ///
    /// # Errors
    /// The gateway refused.
    pub async fn of_job(&self, plural: &str, job_id: &str) -> anyhow::Result<Vec<Value>> {
        let query = [("job_id", job_id.to_owned())];
        self.client
            .list(&format!("/api/v1/{plural}"), plural, &query, 10_000)
            .await
    }
    /// Stops in good order.
    pub async fn stop(mut self) {
        if let Some(stack) = self.stack.take() {
            stack.stop().await;
        }
    }
}
/// Text of a field; empty when there is none.
#[must_use]
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
/// Frames of one type.
#[must_use]
pub fn of_type<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames
        .iter()
        .filter(|frame| text(frame, "type") == kind)
        .collect()
}
