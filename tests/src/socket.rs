//! A client of `/ws`, in text or in msgpack.

use std::{collections::VecDeque, time::Duration};

use anyhow::{Context, bail};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, tungstenite::Message};
use url::Url;

/// Longest wait for a frame.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection; frames that nobody waited for are kept in order.
pub struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    binary: bool,
    unread: VecDeque<Value>,
}
impl Socket {
    /// Opens a connection and asks for text.
    ///
    /// # Errors
    /// It does not open.
    pub async fn text(base: &Url) -> anyhow::Result<Self> {
        let mut socket = Self::open(base, false).await?;
        socket
            .send(&serde_json::json!({"command": "set_mode", "data": {"mode": "text"}}))
            .await?;
        socket
            .wait(|frame| {
                frame
                    .get("message")
                    .is_some_and(|text| text == "Mode set to text")
            })
            .await?;
        Ok(socket)
    }
    /// Opens a connection in msgpack.
    ///
    /// # Errors
    /// It does not open.
    pub async fn binary(base: &Url) -> anyhow::Result<Self> {
        Self::open(base, true).await
    }
    async fn open(base: &Url, binary: bool) -> anyhow::Result<Self> {
        let mut url = base.join("/ws")?;
        if url.set_scheme("ws").is_err() {
            bail!("{base} is no address of a socket");
        }
        let (stream, _) = tokio_tungstenite::connect_async(url.as_str()).await?;
        Ok(Self {
            stream,
            binary,
            unread: VecDeque::new(),
        })
    }
    /// Sends a frame.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn send(&mut self, frame: &Value) -> anyhow::Result<()> {
        let message = if self.binary {
            Message::Binary(rmp_serde::to_vec_named(frame)?.into())
        } else {
            Message::Text(frame.to_string().into())
        };
        Ok(self.stream.send(message).await?)
    }
    /// Sends whatever it is.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn send_raw(&mut self, message: Message) -> anyhow::Result<()> {
        Ok(self.stream.send(message).await?)
    }
    /// The next frame.
    ///
    /// # Errors
    /// The connection is gone, or nothing comes.
    pub async fn next(&mut self) -> anyhow::Result<Value> {
        match self.unread.pop_front() {
            Some(frame) => Ok(frame),
            None => self.receive().await,
        }
    }
    async fn receive(&mut self) -> anyhow::Result<Value> {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.stream.next())
                .await
                .context("no frame came")?;
            match message.context("the connection is gone")?? {
                Message::Text(text) => return Ok(serde_json::from_str(&text)?),
                Message::Binary(bytes) => return Ok(rmp_serde::from_slice(&bytes)?),
                Message::Close(frame) => bail!("closed: {frame:?}"),
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }
    /// Waits for a frame; others stay for later.
    ///
    /// # Errors
    /// As [`Socket::next`].
    pub async fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        if let Some(at) = self.unread.iter().position(&wanted) {
            return self.unread.remove(at).context("just found");
        }
        loop {
            let frame = self.receive().await?;
            if wanted(&frame) {
                return Ok(frame);
            }
            self.unread.push_back(frame);
        }
    }
    /// All frames of a run up to its terminal one, in order.
    ///
    /// # Errors
    /// As [`Socket::next`].
    pub async fn frames_of(&mut self, job_id: &str) -> anyhow::Result<Vec<Value>> {
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await?;
            if frame.get("job_id").and_then(Value::as_str) != Some(job_id) || frame.get("job_seq").is_none() {
                continue;
            }
            let text = |key: &str| frame.get(key).and_then(Value::as_str).unwrap_or_default();
            let ended = text("type") == "job_update"
                && matches!(text("status"), "completed" | "failed" | "cancelled");
            frames.push(frame);
            if ended {
                return Ok(frames);
            }
        }
    }
}
