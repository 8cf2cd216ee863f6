//! A recorded run, the queue of its log, and a relay for it.

use std::sync::Arc;

use atelier_common::{
    channel::local,
    clock::Clock,
    db::{Db, GroupCommit},
    identity::{Caller, Signer},
    tasks::Tasks,
    testkit::{TestDb, engines},
};
use atelier_kernel::{
    entity::{artifacts, jobs::Model},
    error::Error,
    event::{Event, NodeLabel},
    jobs::{NewJob, Store},
    log::{Append, JobPatch, Live, Reader, Segment, apply, encode},
    migration::Migrator,
    node::{Context, Executor, NodeError, NodeMeta, OutputMeta, Registry},
    relay::{Identity, Relay, Saver},
};
use atelier_proto::{
    asset::v1::{asset_service_client::AssetServiceClient, asset_service_server::AssetServiceServer},
    kernel::v1::{Disposition, JobEvent, JobStatus, LogUpdate, RunOptions, job_event::Event as Frame},
    value::{Map, MediaRef, Value},
};
use futures_util::FutureExt;
use prost::Message;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};
use tonic::service::Routes;

use super::fakes::Assets;

/// The instance that drives the runs of a scene.
pub const OWNER: &str = "instance-a";

/// A run and everything that writes to it.
pub struct Scene {
    pub db: TestDb,
    pub store: Store,
    pub commits: GroupCommit<Append, (), Error>,
    pub row: Model,
    pub live: Arc<Live>,
    pub assets: Assets,
    pub options: RunOptions,
    _tasks: Tasks,
}
/// A scene on each engine.
pub async fn scenes() -> Vec<Scene> {
    scenes_with(RunOptions::default()).await
}
pub async fn scenes_with(options: RunOptions) -> Vec<Scene> {
    let mut scenes = Vec::new();
    for db in engines().await {
        scenes.push(Scene::new(db, options).await);
    }
    scenes
}
pub fn queue(db: &Db, tasks: &Tasks) -> GroupCommit<Append, (), Error> {
    GroupCommit::new(db.clone(), tasks, "test-log", 64, |tx, batch| {
        async move {
            let answers = vec![(); batch.len()];
            for append in batch {
                apply(tx, append).await?;
            }
            Ok::<_, Error>(answers)
        }
        .boxed()
    })
}
impl Scene {
    async fn new(db: TestDb, options: RunOptions) -> Self {
        db.migrate::<Migrator>().await.unwrap();
        let tasks = Tasks::new();
        let store = Store::new(db.db().clone(), Clock::system());
        let row = record(&store, &Caller::local(), "job-1", "{}").await.unwrap().0;
        let commits = queue(&db, &tasks);
        let assets = Assets::over(db.db().clone());
        Self {
            db,
            store,
            commits,
            row,
            live: Arc::new(Live::new(0)),
            assets,
            options,
            _tasks: tasks,
        }
    }
    pub fn key(&self) -> &str {
        &self.row.job_key
    }
    /// A relay that goes on where the row's log ends.
    pub fn relay(&self, seq: i64) -> Relay {
        let signer = Signer::random();
        let routes = Routes::new(AssetServiceServer::new(self.assets.clone()));
        let saver = Saver::new(
            AssetServiceClient::new(local(routes, &signer)),
            signer,
            Caller::local(),
        );
        let identity = Identity {
            job_key: self.row.job_key.clone(),
            job_id: self.row.job_id.clone(),
            workflow_id: self.row.workflow_id.clone(),
            owner: OWNER.to_owned(),
        };
        let (commits, live) = (self.commits.clone(), Arc::clone(&self.live));
        Relay::new(
            identity,
            self.options,
            Arc::new(types()),
            commits,
            live,
            saver,
            Clock::system(),
            seq,
        )
    }
    /// Plays events through a relay's whole life.
    pub async fn play(&self, events: Vec<Event>) {
        let (sender, inbox) = atelier_kernel::event::channel(64);
        let send = async move {
            for event in events {
                sender.send(event).await.unwrap();
            }
        };
        let (ended, ()) = tokio::join!(self.relay(0).pump(inbox), send);
        ended.unwrap();
    }
    pub async fn append(&self, append: Append) -> Result<(), Error> {
        self.commits.submit(append).await
    }
    /// An append of the run's owner with nothing in it.
    pub fn nothing(&self) -> Append {
        Append {
            job_key: self.row.job_key.clone(),
            owner: OWNER.to_owned(),
            segment: None,
            artifacts: Vec::new(),
            published: Vec::new(),
            frames: Vec::new(),
            checkpoint: None,
            patch: JobPatch::default(),
        }
    }
    /// Appends lines numbered `first..=last`, all kept, and gives them.
    pub async fn lines(&self, first: i64, last: i64) -> Vec<Arc<JobEvent>> {
        let events: Vec<_> = (first..=last).map(|seq| Arc::new(line(seq))).collect();
        let segment = Some(segment(&events, first, last));
        self.append(Append {
            segment,
            ..self.nothing()
        })
        .await
        .unwrap();
        events
    }
    pub async fn row(&self) -> Model {
        self.store.get(&Caller::local(), &self.row.job_id).await.unwrap()
    }
    /// The log as it is kept.
    pub async fn log(&self) -> Vec<JobEvent> {
        drain(Reader::new(
            self.db.db().clone(),
            self.row.job_key.clone(),
            None,
            0,
            true,
        ))
        .await
    }
    /// The log as a subscriber of this process sees it, as long as the tail holds it.
    pub fn shown(&self) -> Vec<JobEvent> {
        let events = self.live.after(0, usize::MAX).expect("the tail holds all");
        events.iter().map(|event| JobEvent::clone(event)).collect()
    }
    pub async fn artifacts(&self) -> Vec<artifacts::Model> {
        artifacts::Entity::find()
            .filter(artifacts::Column::JobKey.eq(self.key()))
            .order_by_asc(artifacts::Column::NodeId)
            .order_by_asc(artifacts::Column::Idx)
            .all(self.db.read())
            .await
            .unwrap()
    }
}
/// Reads to the end.
pub async fn drain(mut reader: Reader) -> Vec<JobEvent> {
    let mut events = Vec::new();
    while let Some(event) = reader.next().await.unwrap() {
        events.push(JobEvent::clone(&event));
    }
    events
}
/// Records a run of a caller.
pub async fn record(
    store: &Store,
    caller: &Caller,
    job_id: &str,
    graph: &str,
) -> Result<(Model, bool), Error> {
    record_driven(store, caller, job_id, graph, OWNER, i64::MAX).await
}
/// Records a run that an instance drives until then.
pub async fn record_driven(
    store: &Store,
    caller: &Caller,
    job_id: &str,
    graph: &str,
    owner: &str,
    lease_until: i64,
) -> Result<(Model, bool), Error> {
    let (params, options) = Default::default();
    let new = NewJob {
        job_id,
        workflow_id: None,
        name: "a run",
        graph,
        params: &params,
        options: &options,
        owner,
        lease_until,
        trigger: None,
        workflow_version: None,
        asked: None,
        parent: None,
    };
    store.insert(caller, new).await
}
pub fn segment(kept: &[Arc<JobEvent>], first_seq: i64, last_seq: i64) -> Segment {
    let payload = encode(kept.iter().map(AsRef::as_ref));
    Segment {
        first_seq,
        last_seq,
        event_count: i64::try_from(kept.len()).unwrap(),
        payload,
    }
}
pub fn line(seq: i64) -> JobEvent {
    let frame = Frame::LogUpdate(LogUpdate {
        content: format!("line {seq}"),
        ..LogUpdate::default()
    });
    JobEvent {
        seq,
        job_id: "job-1".to_owned(),
        event: Some(frame),
        ..JobEvent::default()
    }
}
pub fn seqs(events: &[JobEvent]) -> Vec<i64> {
    events.iter().map(|event| event.seq).collect()
}
/// Encoded, for comparing logs.
pub fn encoded(events: &[JobEvent]) -> Vec<Vec<u8>> {
    events.iter().map(Message::encode_to_vec).collect()
}

struct Nothing;
#[async_trait::async_trait]
impl Executor for Nothing {
    async fn process(&mut self, _: Map, _: &Context) -> Result<Map, NodeError> {
        Ok(Map::new())
    }
}
/// `test.Maker` saves what it makes, `test.Plain` does not, `test.Writer` makes texts that are saved.
fn types() -> Registry {
    let mut registry = Registry::default();
    for (name, ty, auto_save_asset) in [
        ("test.Maker", "image", true),
        ("test.Plain", "any", false),
        ("test.Writer", "str", true),
    ] {
        let output = OutputMeta {
            name: "output".to_owned(),
            ty: ty.to_owned(),
            stream: false,
        };
        let (node_type, outputs) = (name.to_owned(), vec![output]);
        let meta = NodeMeta {
            node_type,
            outputs,
            auto_save_asset,
            ..NodeMeta::default()
        };
        registry.register(meta, Arc::new(|| Box::new(Nothing)));
    }
    registry
}
pub fn label(id: &str, node_type: &str) -> Arc<NodeLabel> {
    Arc::new(NodeLabel {
        id: id.into(),
        name: None,
        node_type: node_type.into(),
    })
}
pub fn one(name: &str, value: Value) -> Map {
    Map::from_iter([(name.to_owned(), value)])
}
pub fn image(bytes: &[u8]) -> Value {
    let data = Some(bytes.to_vec().into());
    Value::media(MediaRef {
        kind: "image".to_owned(),
        data,
        ..MediaRef::default()
    })
}
pub fn running() -> Event {
    job(JobStatus::Running, None)
}
/// The end of a run with values of its output `out`.
pub fn completed(values: Vec<Value>) -> Event {
    job(JobStatus::Completed, Some(one("out", Value::list(values))))
}
fn job(status: JobStatus, outputs: Option<Map>) -> Event {
    Event::Job {
        status,
        error: None,
        error_code: None,
        outputs,
        issues: Vec::new(),
        suspensions: Vec::new(),
    }
}
pub fn artifact(node: &Arc<NodeLabel>, invocation: impl Into<String>, value: Value) -> Event {
    let (node, invocation, outputs) = (Arc::clone(node), invocation.into(), one("output", value));
    Event::Artifact {
        node,
        invocation,
        outputs: outputs.into(),
        properties: None,
        generation_ids: Vec::new(),
    }
}
pub fn output(node: &Arc<NodeLabel>, value: Value) -> Event {
    Event::Output {
        node: Arc::clone(node),
        output_name: "output".into(),
        value,
        output_type: "any".into(),
        disposition: Disposition::Replace,
        done: false,
    }
}
