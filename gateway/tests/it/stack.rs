//! A gateway on a free port of this machine, and clients of it.

use std::time::Duration;

use atelier_common::channel::{self, Transport};
use atelier_common::component::Deps;
use atelier_common::identity::Signer;
use atelier_gateway::{Gateway, Settings};
use atelier_proto::asset::v1::asset_service_server::AssetServiceServer;
use atelier_proto::kernel::v1::job_service_server::JobServiceServer;
use atelier_proto::kernel::v1::node_service_server::NodeServiceServer;
use atelier_proto::kernel::v1::workflow_service_server::WorkflowServiceServer;
use atelier_proto::provider::v1::provider_service_server::ProviderServiceServer;
use atelier_proto::tracker::v1::generation_service_server::GenerationServiceServer;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};
use tonic::service::Routes;

use crate::fakes::Fakes;

const LIMIT: Duration = Duration::from_secs(10);

/// A gateway with scripted services behind it.
pub struct Stack {
    pub fakes: Fakes,
    pub deps: Deps,
    pub address: std::net::SocketAddr,
    pub http: reqwest::Client,
    _data: tempfile::TempDir,
}

impl Stack {
    pub async fn start() -> Self {
        Self::with(Settings::default()).await
    }

    pub async fn with(settings: Settings) -> Self {
        atelier_common::egress::install_crypto();
        atelier_common::metrics::install();
        let data = tempfile::tempdir().expect("folder");
        let fakes = Fakes::default();
        let signer = Signer::random();
        let mut deps = Deps::new(data.path(), signer.clone());
        let join = |routes: Routes| -> Transport { channel::local(routes, &signer) };
        let jobs = JobServiceServer::new(fakes.clone()).max_decoding_message_size(64 << 20);
        let kernel = Routes::new(jobs)
            .add_service(NodeServiceServer::new(fakes.clone()))
            .add_service(WorkflowServiceServer::new(fakes.clone()));
        deps.peers.insert("kernel", join(kernel));
        deps.peers.insert(
            "provider",
            join(Routes::new(ProviderServiceServer::new(fakes.clone()))),
        );
        deps.peers.insert(
            "tracker",
            join(Routes::new(GenerationServiceServer::new(fakes.clone()))),
        );
        deps.peers
            .insert("asset", join(Routes::new(AssetServiceServer::new(fakes.clone()))));
        let gateway = Gateway::build(settings, &deps).expect("gateway");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("port");
        let address = listener.local_addr().expect("address");
        let tasks = deps.tasks.clone();
        deps.tasks.spawn("gateway", async move {
            gateway.serve(listener, &tasks).await.expect("served")
        });
        let http = reqwest::Client::builder().no_proxy().build().expect("client");
        Self {
            fakes,
            deps,
            address,
            http,
            _data: data,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The answer to a GET: status and JSON.
    pub async fn get(&self, path: &str) -> (u16, Value) {
        let response = self.http.get(self.url(path)).send().await.expect("answer");
        let status = response.status().as_u16();
        (status, response.json().await.expect("json"))
    }

    /// The answer to any request: status, etag and JSON; null without a body.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> (u16, String, Value) {
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("method");
        let mut request = self.http.request(method, self.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.expect("answer");
        let etag = response.headers().get("etag").cloned();
        let etag = etag.map(|etag| etag.to_str().expect("text").to_owned());
        let status = response.status().as_u16();
        let bytes = response.bytes().await.expect("body");
        let json = serde_json::from_slice(&bytes).unwrap_or_default();
        (status, etag.unwrap_or_default(), json)
    }

    /// The answer to a POST of JSON: status and JSON.
    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        let response = self
            .http
            .post(self.url(path))
            .json(&body)
            .send()
            .await
            .expect("answer");
        let status = response.status().as_u16();
        (status, response.json().await.expect("json"))
    }

    /// A socket, past its first frame.
    pub async fn socket(&self) -> Socket {
        let mut socket = self.raw_socket("/ws").await;
        let first = socket.next().await;
        assert_eq!(first["type"], "sdk_execution_target");
        socket
    }

    /// A socket whose frames are text.
    pub async fn text_socket(&self) -> Socket {
        let mut socket = self.socket().await;
        socket.command("set_mode", json!({"mode": "text"})).await;
        assert_eq!(socket.next().await, json!({"message": "Mode set to text"}));
        socket
    }

    pub async fn raw_socket(&self, path: &str) -> Socket {
        let request = format!("ws://{}{path}", self.address)
            .into_client_request()
            .expect("request");
        let (inner, _) = tokio_tungstenite::connect_async(request).await.expect("socket");
        Socket { inner }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.deps.tasks.stop();
    }
}

/// A client of the socket.
pub struct Socket {
    pub inner: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Socket {
    pub async fn send(&mut self, frame: Value) {
        self.inner
            .send(Message::text(frame.to_string()))
            .await
            .expect("sent");
    }

    pub async fn send_raw(&mut self, message: Message) {
        self.inner.send(message).await.expect("sent");
    }

    /// A command in text form.
    pub async fn command(&mut self, command: &str, data: Value) {
        self.send(json!({"command": command, "data": data})).await;
    }

    /// The next message that is no ping.
    pub async fn next_message(&mut self) -> Option<Result<Message, tungstenite::Error>> {
        loop {
            match tokio::time::timeout(LIMIT, self.inner.next())
                .await
                .expect("a message in time")
            {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => return other,
            }
        }
    }

    /// The next frame as JSON, whatever its form.
    pub async fn next(&mut self) -> Value {
        match self.next_message().await.expect("open").expect("message") {
            Message::Text(text) => serde_json::from_str(&text).expect("json"),
            Message::Binary(bytes) => {
                let pack = rmpv::decode::read_value(&mut bytes.as_ref()).expect("msgpack");
                rmpv::ext::from_value(pack).expect("value")
            }
            other => panic!("{other:?}"),
        }
    }

    /// Frames up to and with the first that fits.
    pub async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await;
            let done = fits(&frame);
            frames.push(frame);
            if done {
                return frames;
            }
        }
    }

    /// Frames up to and with the last of a run.
    pub async fn until_the_end(&mut self) -> Vec<Value> {
        self.until(|frame| {
            let over = ["completed", "failed", "cancelled"];
            frame["type"] == "job_update" && over.contains(&frame["status"].as_str().unwrap_or_default())
        })
        .await
    }

    /// Frames up to and with the last of this run.
    pub async fn until_the_end_of(&mut self, job_id: &str) -> Vec<Value> {
        self.until(|frame| {
            let over = ["completed", "failed", "cancelled"];
            frame["type"] == "job_update"
                && frame["job_id"] == job_id
                && over.contains(&frame["status"].as_str().unwrap_or_default())
        })
        .await
    }

    /// The code and reason that the server closes with.
    pub async fn closed(&mut self) -> (u16, String) {
        loop {
            match self.next_message().await {
                Some(Ok(Message::Close(Some(frame)))) => {
                    return (frame.code.into(), frame.reason.to_string());
                }
                Some(Ok(Message::Text(_) | Message::Binary(_))) => {}
                other => panic!("not closed in good order: {other:?}"),
            }
        }
    }

    /// That nothing more comes: the reply to a ping is the next frame.
    pub async fn is_quiet(&mut self) {
        self.send(json!({"type": "ping"})).await;
        assert_eq!(self.next().await["type"], "pong");
    }
}

/// A graph of one node.
pub fn graph() -> Value {
    json!({"nodes": [{"id": "n1", "type": "nodetool.constant.String", "data": {"value": "a"}}], "edges": []})
}
