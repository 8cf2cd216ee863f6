//! The gateway's REST, as the commands use it.

use std::time::Duration;

use anyhow::{Context, anyhow};
use bytes::Bytes;
use eventsource_stream::Eventsource;
use futures_util::{Stream, StreamExt};
use reqwest::{Method, Response};
use serde_json::Value;
use url::Url;

/// Longest wait for the head of an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Tries to go on with a stream of events that broke, within half a minute: longer than a server takes to start again.
const TRIES: u32 = 15;
/// Longest pause between two of them.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Talks to one gateway.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
}
/// The gateway said no.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// HTTP status.
    pub status: u16,
    /// Machine-readable reason.
    pub reason: String,
    /// For people.
    pub message: String,
}
impl Client {
    /// A client of the gateway at an address.
    ///
    /// # Errors
    /// The TLS library cannot be set up.
    pub fn new(base: Url) -> anyhow::Result<Self> {
        atelier_common::egress::install_crypto();
        let http = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(5))
            .build()?;
        Ok(Self { http, base })
    }
    /// The gateway's address.
    #[must_use]
    pub fn base(&self) -> &Url {
        &self.base
    }
    fn url(&self, path: &str) -> anyhow::Result<Url> {
        self.base.join(path).with_context(|| format!("{path} is no path"))
    }
    fn unreachable(&self) -> String {
        format!("cannot reach the server at {}", self.base)
    }
    /// Whether a gateway answers there.
    pub async fn alive(&self) -> bool {
        let Ok(url) = self.url("/livez") else { return false };
        let answer = self.http.get(url).timeout(Duration::from_secs(3)).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }
    /// GET, JSON.
    ///
    /// # Errors
    /// [`Refused`], or the gateway cannot be reached.
    pub async fn get(&self, path: &str, query: &[(&str, String)]) -> anyhow::Result<Value> {
        let mut url = self.url(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.call(Method::GET, url, None).await
    }
    /// POST, JSON.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.call(Method::POST, self.url(path)?, Some(body)).await
    }
    /// PUT, JSON.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn put(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.call(Method::PUT, self.url(path)?, Some(body)).await
    }
    /// GET, JSON, with an answer that may take longer than others.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn get_patiently(
        &self,
        path: &str,
        query: &[(&str, String)],
        limit: Duration,
    ) -> anyhow::Result<Value> {
        let mut url = self.url(path)?;
        url.query_pairs_mut().extend_pairs(query);
        let answer = self.http.get(url).timeout(limit).send().await;
        let answer = answer.with_context(|| self.unreachable())?;
        Ok(accepted(answer).await?.json().await?)
    }
    /// PATCH, JSON.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn patch(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.call(Method::PATCH, self.url(path)?, Some(body)).await
    }
    /// DELETE; the answer has no body.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn delete(&self, path: &str) -> anyhow::Result<()> {
        let request = self.http.delete(self.url(path)?).timeout(PATIENCE);
        let answer = request.send().await.with_context(|| self.unreachable())?;
        accepted(answer).await.map(drop)
    }
    /// POST, JSON, with an answer that may take longer than others.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn post_patiently(&self, path: &str, body: &Value, limit: Duration) -> anyhow::Result<Value> {
        let request = self.http.post(self.url(path)?).timeout(limit).json(body);
        let answer = request.send().await.with_context(|| self.unreachable())?;
        Ok(accepted(answer).await?.json().await?)
    }
    async fn call(&self, method: Method, url: Url, body: Option<&Value>) -> anyhow::Result<Value> {
        let mut request = self.http.request(method, url).timeout(PATIENCE);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.with_context(|| self.unreachable())?;
        Ok(accepted(answer).await?.json().await?)
    }
    /// All rows of a list up to a limit, page by page.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn list(
        &self,
        path: &str,
        plural: &str,
        query: &[(&str, String)],
        limit: usize,
    ) -> anyhow::Result<Vec<Value>> {
        let mut rows = Vec::new();
        let mut cursor: Option<String> = None;
        while rows.len() < limit {
            let mut query = query.to_vec();
            query.push(("limit", (limit - rows.len()).min(500).to_string()));
            if let Some(cursor) = &cursor {
                query.push(("cursor", cursor.clone()));
            }
            let mut page = self.get(path, &query).await?;
            let Some(Value::Array(more)) = page.get_mut(plural).map(Value::take) else {
                return Err(anyhow!("the server answered without {plural}"));
            };
            rows.extend(more);
            cursor = page.get("next").and_then(Value::as_str).map(ToOwned::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        Ok(rows)
    }
    /// The bytes of a file.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn download(
        &self,
        path: &str,
    ) -> anyhow::Result<impl Stream<Item = reqwest::Result<Bytes>> + Unpin + use<>> {
        let answer = self
            .http
            .get(self.url(path)?)
            .send()
            .await
            .with_context(|| self.unreachable())?;
        Ok(accepted(answer).await?.bytes_stream().boxed())
    }
    /// POST, JSON, with an answer of events, once.
    ///
    /// # Errors
    /// As [`Client::get`]; the stream ends with an error when it breaks.
    pub async fn post_events(
        &self,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<impl Stream<Item = anyhow::Result<Value>> + Unpin + use<>> {
        let request = self
            .http
            .post(self.url(path)?)
            .header("accept", "text/event-stream");
        let answer = request
            .json(body)
            .send()
            .await
            .with_context(|| self.unreachable())?;
        let events = accepted(answer).await?.bytes_stream().eventsource();
        Ok(events
            .map(|event| Ok(serde_json::from_str(&event?.data)?))
            .boxed())
    }
    /// Events of a run after a number, to its end. A stream that breaks goes on where it broke.
    ///
    /// # Errors
    /// As [`Client::get`]; the stream ends with an error when it cannot be mended.
    pub fn events(
        &self,
        job_id: &str,
        after: i64,
    ) -> impl Stream<Item = anyhow::Result<Value>> + Send + use<> {
        let client = self.clone();
        let path = format!("/api/v1/jobs/{job_id}/events");
        async_stream::try_stream! {
            let mut after = after;
            let mut failures = 0;
            loop {
                let mut broken = None;
                match client.open_events(&path, after).await {
                    Ok(events) => {
                        let mut events = std::pin::pin!(events.eventsource());
                        while let Some(event) = events.next().await {
                            match event {
                                Ok(event) => {
                                    let frame: Value = serde_json::from_str(&event.data)?;
                                    // Only an event of the log is progress; what the gateway says of itself is none.
                                    if let Some(seq) = frame.get("job_seq").and_then(Value::as_i64) {
                                        after = seq;
                                        failures = 0;
                                    }
                                    let ended = is_end(&frame);
                                    yield frame;
                                    if ended {
                                        return;
                                    }
                                }
                                Err(error) => {
                                    broken = Some(anyhow::Error::new(error));
                                    break;
                                }
                            }
                        }
                    }
                    Err(error) if !may_pass(&error) => Err(error)?,
                    Err(error) => broken = Some(error),
                }
                if broken.is_none() {
                    // A server that stops ends its streams well, and may be away by now.
                    match client.is_over(&path, after).await {
                        Ok(true) => return,
                        Ok(false) => {}
                        Err(error) if !may_pass(&error) => Err(error)?,
                        Err(error) => broken = Some(error),
                    }
                }
                failures += 1;
                if failures > TRIES {
                    Err(broken.unwrap_or_else(|| anyhow!("the server stopped telling events of the run")))?;
                }
                tokio::time::sleep((Duration::from_millis(200) * failures).min(MAX_PAUSE)).await;
            }
        }
    }
    /// Whether a run has ended and no event follows a number.
    async fn is_over(&self, events: &str, after: i64) -> anyhow::Result<bool> {
        let job = self.get(events.trim_end_matches("/events"), &[]).await?;
        let waits = job.get("status").and_then(Value::as_str) == Some("suspended");
        let ended = waits || job.get("finished_at").is_some_and(|at| !at.is_null());
        Ok(ended
            && job
                .get("last_seq")
                .and_then(Value::as_i64)
                .is_some_and(|last| last <= after))
    }
    async fn open_events(
        &self,
        path: &str,
        after: i64,
    ) -> anyhow::Result<impl Stream<Item = reqwest::Result<Bytes>> + use<>> {
        let mut url = self.url(path)?;
        url.query_pairs_mut().append_pair("after_seq", &after.to_string());
        let answer = self
            .http
            .get(url)
            .header("accept", "text/event-stream")
            .send()
            .await
            .with_context(|| self.unreachable())?;
        Ok(accepted(answer).await?.bytes_stream())
    }
}
/// Whether trying again may help: nobody answered, or a service behind the gateway is away.
fn may_pass(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<Refused>()
        .is_none_or(|refused| refused.status == 429 || refused.status >= 500)
}
/// Whether nothing follows a frame.
fn is_end(frame: &Value) -> bool {
    let text = |key: &str| frame.get(key).and_then(Value::as_str);
    // A suspended run may have gone on since: its stream ends by itself when it has not.
    text("type") == Some("job_update") && matches!(text("status"), Some("completed" | "failed" | "cancelled"))
}
async fn accepted(answer: Response) -> anyhow::Result<Response> {
    if answer.status().is_success() {
        return Ok(answer);
    }
    let status = answer.status().as_u16();
    let body: Value = answer.json().await.unwrap_or_default();
    let error = body.get("error").cloned().unwrap_or_default();
    let text = |key: &str| {
        error
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let message = match text("message") {
        message if message.is_empty() => format!("the server answered with status {status}"),
        message => message,
    };
    // What went wrong inside is told in the server's log alone, under this id.
    let message = match text("request_id") {
        id if status >= 500 && !id.is_empty() => format!("{message} (request {id})"),
        _ => message,
    };
    Err(Refused {
        status,
        reason: text("reason"),
        message,
    }
    .into())
}
