//! The whole component, with other services that are played.

use std::time::Duration;

use atelier_common::{
    channel::{Transport, local},
    component::{Deps, start},
    identity::{Caller, Signer},
    testkit::TestDb,
};
use atelier_kernel::{Kernel, settings::Settings};
use atelier_proto::{
    asset::v1::asset_service_server::AssetServiceServer,
    kernel::v1::{
        GetJobRequest, Job, JobEvent, JobStatus, RunJobRequest, WatchJobRequest, WatchStarted,
        job_service_client::JobServiceClient, watch_job_response::Message,
        workflow_service_client::WorkflowServiceClient,
    },
    provider::v1::provider_service_server::ProviderServiceServer,
};
use serde_json::{Value as Json, json};
use tonic::{Request, Status, service::Routes};

use super::fakes::{Assets, Provider};

/// A running kernel. It is told to stop when dropped.
pub struct Up {
    client: JobServiceClient<Transport>,
    workflows: WorkflowServiceClient<Transport>,
    deps: Deps,
    pub assets: Assets,
    pub provider: Provider,
}
impl Up {
    pub async fn new(db: &TestDb, settings: Settings, provider: Provider) -> Self {
        let signer = Signer::random();
        Self::with(db, settings, provider, Deps::new(std::env::temp_dir(), signer)).await
    }
    pub async fn with(db: &TestDb, settings: Settings, provider: Provider, mut deps: Deps) -> Self {
        let assets = Assets::new();
        let routes = Routes::new(AssetServiceServer::new(assets.clone()));
        deps.peers.insert("asset", local(routes, &deps.signer));
        let routes = Routes::new(ProviderServiceServer::new(provider.clone()));
        deps.peers.insert("provider", local(routes, &deps.signer));
        let settings = Settings {
            database_url: db.url().into(),
            ..settings
        };
        let started = start::<Kernel>(settings, &deps).await.unwrap();
        Self {
            workflows: WorkflowServiceClient::new(started.transport.clone()),
            client: JobServiceClient::new(started.transport),
            deps,
            assets,
            provider,
        }
    }
    /// Another instance on the same database that knows itself alone.
    pub async fn successor(&self, db: &TestDb, provider: Provider) -> Self {
        let deps = Deps {
            sole_process: true,
            ..self.deps.restarted()
        };
        Self::with(db, Settings::default(), provider, deps).await
    }
    /// A second instance beside this one.
    pub async fn beside(&self, db: &TestDb, settings: Settings) -> Self {
        Self::with(db, settings, self.provider.clone(), self.deps.restarted()).await
    }
    /// Stops it as a process that ends well would, and waits until it has given its runs up.
    pub async fn stop(&self) {
        self.deps.tasks.stop();
        self.deps.tasks.drain(Duration::from_secs(20)).await;
    }
    pub fn client(&self) -> JobServiceClient<Transport> {
        self.client.clone()
    }
    pub fn workflows(&self) -> WorkflowServiceClient<Transport> {
        self.workflows.clone()
    }
    pub fn signed<T>(&self, message: T) -> Request<T> {
        self.by("1", message)
    }
    pub fn by<T>(&self, user: &str, message: T) -> Request<T> {
        self.deps.signer.request(message, &Caller::new(user, ["*"]))
    }
    pub async fn run(&self, job_id: &str, graph: &Json) -> Result<(Job, bool), Status> {
        let job_id = job_id.to_owned();
        let request = RunJobRequest {
            job_id,
            graph_json: Some(graph.to_string()),
            ..RunJobRequest::default()
        };
        let answer = self.client().run_job(self.signed(request)).await?.into_inner();
        Ok((answer.job.unwrap(), answer.created))
    }
    pub async fn get(&self, job_id: &str) -> Job {
        let request = self.signed(GetJobRequest {
            job_id: job_id.to_owned(),
        });
        self.client()
            .get_job(request)
            .await
            .unwrap()
            .into_inner()
            .job
            .unwrap()
    }
    /// Watches to the end.
    pub async fn watch(
        &self,
        job_id: &str,
        after_seq: i64,
        replay_only: bool,
    ) -> (WatchStarted, Vec<JobEvent>) {
        let watch = self.watch_on(job_id, after_seq, replay_only);
        let watched = tokio::time::timeout(Duration::from_secs(60), watch).await;
        watched.expect("the end of the run")
    }
    async fn watch_on(
        &self,
        job_id: &str,
        after_seq: i64,
        replay_only: bool,
    ) -> (WatchStarted, Vec<JobEvent>) {
        let request = WatchJobRequest {
            job_id: job_id.to_owned(),
            after_seq,
            replay_only,
        };
        let mut stream = self
            .client()
            .watch_job(self.signed(request))
            .await
            .unwrap()
            .into_inner();
        let (mut started, mut events) = (None, Vec::new());
        while let Some(message) = stream.message().await.unwrap() {
            match message.message.unwrap() {
                Message::Started(first) => {
                    assert!(started.replace(first).is_none() && events.is_empty());
                }
                Message::Event(event) => events.push(event),
            }
        }
        (started.expect("a start"), events)
    }
    pub async fn end(&self, job_id: &str) -> Job {
        self.watch(job_id, 0, false).await;
        let job = self.get(job_id).await;
        assert!(
            !matches!(job.status(), JobStatus::Queued | JobStatus::Running),
            "{job:?}"
        );
        job
    }
}
impl Drop for Up {
    fn drop(&mut self) {
        self.provider.open();
        self.assets.open(true);
        self.deps.tasks.stop();
    }
}
pub fn node(id: &str, node_type: &str, properties: Json) -> Json {
    json!({"id": id, "type": node_type, "data": properties})
}
pub fn edge(from: &str, to: &str) -> Json {
    let (source, source_handle) = from.split_once('.').unwrap();
    let (target, target_handle) = to.split_once('.').unwrap();
    json!({"id": format!("{from}>{to}"), "source": source, "sourceHandle": source_handle, "target": target,
        "targetHandle": target_handle})
}
/// A text in upper case.
pub fn shout(text: &str) -> Json {
    json!({
        "nodes": [
            node("up", "nodetool.text.ToUppercase", json!({"text": text})),
            node("out", "nodetool.output.Output", json!({"name": "loud"})),
        ],
        "edges": [edge("up.output", "out.value")],
    })
}
/// A picture of the played provider.
pub fn paint() -> Json {
    let model = json!({"type": "image_model", "provider": "played", "id": "brush"});
    json!({
        "nodes": [
            node("paint", "nodetool.image.TextToImage", json!({"prompt": "the sea", "model": model})),
            node("out", "nodetool.output.Output", json!({"name": "picture"})),
        ],
        "edges": [edge("paint.output", "out.value")],
    })
}
/// Each item of a list through a node and out.
pub fn each(items: usize) -> Json {
    let items: Vec<_> = (0..items).map(|item| format!("item {item}")).collect();
    json!({
        "nodes": [
            node("list", "nodetool.constant.List", json!({"value": items})),
            node("each", "nodetool.control.ForEach", json!({})),
            node("up", "nodetool.text.ToUppercase", json!({})),
            node("out", "nodetool.output.Output", json!({"name": "loud"})),
        ],
        "edges": [
            edge("list.output", "each.input_list"),
            edge("each.output", "up.text"),
            edge("up.output", "out.value"),
        ],
    })
}
