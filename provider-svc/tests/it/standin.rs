//! A server that answers like OpenAI, letter by letter, and misbehaves as told.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::net::TcpListener;
use tokio::time::Instant;

/// The tiny PNG of the providers specification 0.2, as base64.
pub const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mNQcGgAAAFkAOH57hpaAAAAAElFTkSuQmCC";
/// The tiny WAV: the four samples with a head.
pub const WAV: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAwF0AAIC7AAACABAAZGF0YQgAAAAAAAEAAAD//w==";
/// The tiny MP4.
pub const MP4: &[u8] = b"\0\0\0\x18ftypisom\0\0\x02\0isommp41\0\0\0\x08mdat";
/// The tiny GLB.
pub const GLB: &[u8] = b"glTF\x02\0\0\0\x30\0\0\0\x1c\0\0\0JSON{\"asset\":{\"version\":\"2.0\"}} ";
/// The tiny MP3.
pub const MP3: &[u8] = b"\xff\xfb\x90\x64\0\0\0\0\0\0\0\0";

/// One answer.
#[derive(Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Wait before the head.
    pub delay: Duration,
    /// Cut the body into pieces of so many bytes.
    pub chunk: usize,
    /// Break the connection after so many bytes.
    pub reset_after: Option<usize>,
    /// Repeat the body without end.
    pub endless: bool,
}
impl Answer {
    pub fn new(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".into(), kind.into())],
            body: body.into(),
            delay: Duration::ZERO,
            chunk: usize::MAX,
            reset_after: None,
            endless: false,
        }
    }
    pub fn json(status: u16, body: serde_json::Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }
    pub fn film() -> Self {
        Self::new(200, "video/mp4", MP4)
    }
    pub fn moved(to: &str) -> Self {
        Self::new(302, "text/plain", "").header("location", to)
    }
    pub fn error(status: u16, message: &str, kind: &str, code: Option<&str>) -> Self {
        let error = serde_json::json!({"message": message, "type": kind, "param": null, "code": code});
        Self::json(status, serde_json::json!({ "error": error }))
    }
    /// The standard answer with one picture.
    pub fn picture() -> Self {
        let body = serde_json::json!({
            "created": 1_750_000_000, "background": "opaque", "output_format": "png", "quality": "medium",
            "size": "1024x1024", "data": [{"b64_json": PNG}],
            "usage": {"total_tokens": 1068, "input_tokens": 12, "output_tokens": 1056},
        });
        Self::json(200, body).header("x-request-id", "req_oa1")
    }
    pub fn sse(body: &str) -> Self {
        Self::new(200, "text/event-stream", body)
    }
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
    pub fn chunked(mut self, size: usize) -> Self {
        self.chunk = size;
        self
    }
    pub fn reset_after(mut self, bytes: usize) -> Self {
        self.reset_after = Some(bytes);
        self
    }
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub path: String,
    /// Path and query.
    pub target: String,
    pub headers: axum::http::HeaderMap,
    pub query: String,
    pub authorization: Option<String>,
    pub kind: String,
    pub body: Bytes,
    pub at: Instant,
}
impl Seen {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// The server. The last answer of the list is given again and again.
#[derive(Clone)]
pub struct StandIn {
    pub address: SocketAddr,
    inner: Arc<Inner>,
}
#[derive(Default)]
struct Inner {
    answers: Mutex<VecDeque<Answer>>,
    seen: Mutex<Vec<Seen>>,
    to_put: Mutex<Option<Answer>>,
}

impl StandIn {
    pub async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let inner = Arc::new(Inner {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Inner::default()
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(inner.clone());
        atelier_common::tasks::Tasks::new().spawn("stand-in", async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self { address, inner }
    }
    /// The address of the server itself.
    pub fn root(&self) -> String {
        format!("http://{}", self.address)
    }
    pub fn base(&self) -> String {
        format!("http://{}/v1", self.address)
    }
    pub fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        *self.inner.answers.lock().unwrap() = answers.into_iter().collect();
    }
    /// What a PUT is answered, whatever the others are.
    pub fn answer_put(&self, answer: Answer) {
        *self.inner.to_put.lock().unwrap() = Some(answer);
    }
    pub fn seen(&self) -> Vec<Seen> {
        self.inner.seen.lock().unwrap().clone()
    }
    /// Requests as `METHOD target`.
    pub fn targets(&self) -> Vec<String> {
        let target = |seen: &Seen| format!("{} {}", seen.method, seen.target);
        self.seen().iter().map(target).collect()
    }
    /// How many paid requests arrived.
    pub fn submits(&self) -> usize {
        self.seen()
            .iter()
            .filter(|seen| seen.path.starts_with("/v1/"))
            .count()
    }
}

async fn answer(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let at = Instant::now();
    let body = axum::body::to_bytes(body, 16 << 20).await.unwrap();
    let text = |name: &str| {
        head.headers
            .get(name)
            .map(|value| value.to_str().unwrap().to_owned())
    };
    let seen = Seen {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        target: head.uri.to_string(),
        headers: head.headers.clone(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        authorization: text("authorization"),
        kind: text("content-type").unwrap_or_default(),
        body,
        at,
    };
    inner.seen.lock().unwrap().push(seen);
    let put = inner
        .to_put
        .lock()
        .unwrap()
        .clone()
        .filter(|_| head.method == "PUT");
    let answer = if let Some(put) = put {
        put
    } else {
        let mut answers = inner.answers.lock().unwrap();
        if answers.len() > 1 {
            answers.pop_front().unwrap()
        } else {
            answers.front().cloned().unwrap()
        }
    };
    tokio::time::sleep(answer.delay).await;
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    let whole = answer
        .reset_after
        .map_or(answer.body.as_slice(), |bytes| &answer.body[..bytes]);
    if answer.chunk == usize::MAX && answer.reset_after.is_none() && !answer.endless {
        return response.body(Body::from(whole.to_vec())).unwrap();
    }
    let pieces: Vec<io::Result<Bytes>> = whole
        .chunks(answer.chunk.min(1 << 20))
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    let body = if answer.endless {
        Body::from_stream(stream::repeat_with(move || {
            Ok::<_, io::Error>(Bytes::from(vec![0x89; 1 << 16]))
        }))
    } else {
        let broken = answer.reset_after.map(|_| Err(io::Error::other("reset")));
        // A pause between pieces keeps them apart on the wire.
        Body::from_stream(
            stream::iter(pieces.into_iter().chain(broken)).then(|piece| async {
                tokio::time::sleep(Duration::from_millis(1)).await;
                piece
            }),
        )
    };
    response.body(body).unwrap()
}
