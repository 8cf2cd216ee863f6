//! A stand-in for a provider that makes images by OpenAI's wire format: it counts what it is asked for.
//!
//! Source of the format: the API reference of OpenAI, "Create image".

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{Json, Router, extract::State, routing::post};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// A running stand-in; it ends when it is dropped.
pub struct ImageProvider {
    address: String,
    asked: Asked,
    /// Ends with it.
    _task: JoinSet<()>,
}
type Asked = Arc<Mutex<HashMap<String, usize>>>;

impl ImageProvider {
    /// Starts it; an image takes so long.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn start(delay: Duration) -> anyhow::Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}/v1", listener.local_addr()?);
        let asked = Asked::default();
        let routes = Router::new()
            .route("/v1/images/generations", post(generate))
            .with_state((Arc::clone(&asked), delay));
        let mut task = JoinSet::new();
        task.spawn(async move {
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self {
            address,
            asked,
            _task: task,
        })
    }
    /// Its base address.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }
    /// How often it was asked for a prompt.
    #[must_use]
    pub fn asked(&self, prompt: &str) -> usize {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.get(prompt).copied().unwrap_or(0)
    }
}
async fn generate(
    State((asked, delay)): State<(Asked, Duration)>,
    Json(request): Json<Value>,
) -> Json<Value> {
    let prompt = request["prompt"].as_str().unwrap_or_default().to_owned();
    let image = gif(&prompt);
    let count = {
        let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
        let count = asked.entry(prompt).or_default();
        *count += 1;
        *count
    };
    tokio::time::sleep(delay).await;
    Json(json!({"created": 1_700_000_000 + count, "data": [{"b64_json": STANDARD.encode(image)}]}))
}
/// One pixel in a colour that depends on the text, and a comment with the text, so that no two are equal.
fn gif(text: &str) -> Vec<u8> {
    let sum = text.bytes().fold(0_u8, u8::wrapping_add);
    let comment: Vec<u8> = text.bytes().take(200).collect();
    let mut gif = b"GIF89a\x01\x00\x01\x00\x80\x00\x00".to_vec();
    gif.extend([sum, 90, 200, 255, 255, 255]);
    gif.extend([0x21, 0xfe, u8::try_from(comment.len()).unwrap_or(0)]);
    gif.extend(comment);
    gif.push(0);
    gif.extend(b"\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00\x3b");
    gif
}
