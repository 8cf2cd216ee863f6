//! kernel-svc: runs workflows.
//!
//! It owns runs, their event logs and their committed artifacts. `graph/` turns a file into a plan, `run/` runs the plan
//! with the code of `nodes/`, `relay/` stamps and commits what the run says, `log/` keeps it, `jobs/` drives all that,
//! `workflows/` keeps what people save, and `api/` serves it. What does not live here: calls to providers (the seam, reached through `services`), assets, costs.
//!
//! Start reading at [`jobs::Jobs::start`].

pub mod api;
pub mod entity;
pub mod error;
pub mod event;
pub mod graph;
pub mod host;
pub mod jobs;
pub mod log;
pub mod metrics;
pub mod migration;
pub mod node;
pub mod nodes;
pub mod relay;
pub mod run;
pub mod services;
pub mod settings;
pub mod workers;
pub mod workflows;

use std::{sync::Arc, time::Duration};

use atelier_common::{
    component::{BuildError, Component, Deps, RunError},
    db::{Db, DbSettings, GroupCommit},
    tasks::Tasks,
};
use atelier_proto::{
    MAX_MESSAGE_BYTES,
    asset::v1::asset_service_client::AssetServiceClient,
    kernel::v1::{
        job_service_server::JobServiceServer, node_service_server::NodeServiceServer,
        worker_service_server::WorkerServiceServer, workflow_service_server::WorkflowServiceServer,
    },
    provider::v1::provider_service_client::ProviderServiceClient,
};
use futures_util::FutureExt;
use tonic::service::Routes;

use crate::{
    api::{JobApi, NodeApi, WorkerApi, WorkflowApi},
    error::Error,
    host::Host,
    jobs::{Jobs, Store},
    migration::Migrator,
    services::Clients,
    settings::Settings,
    workers::{MAX_WORKER_MESSAGE, NodeTypes, Timing, Workers},
};

/// The kernel as a part of a process.
pub struct Kernel {
    jobs: Jobs,
    routes: Routes,
    workers: Workers,
    sole_process: bool,
}
/// Shortest pause between signs of life; an interval of nothing would never end.
const MIN_HEARTBEAT: Duration = Duration::from_millis(10);

impl Kernel {
    /// What a loopback listener serves to workers without an identity, and nothing else.
    #[must_use]
    pub fn worker_routes(&self) -> Routes {
        Routes::new(worker_service(WorkerApi::unsigned(self.workers.clone())))
    }
}
fn worker_service(api: WorkerApi) -> WorkerServiceServer<WorkerApi> {
    WorkerServiceServer::new(api).max_decoding_message_size(MAX_WORKER_MESSAGE)
}
impl Component for Kernel {
    const NAME: &'static str = "kernel-svc";
    type Settings = Settings;

    async fn build(settings: Settings, deps: &Deps) -> Result<Self, BuildError> {
        atelier_common::metrics::describe(metrics::ALL);
        let store = |error| BuildError::new("the store of jobs", error);
        let db = Db::connect(&settings.database(&deps.data_dir), &DbSettings::default())
            .await
            .map_err(store)?;
        db.migrate::<Migrator>().await.map_err(store)?;
        let commits = GroupCommit::new(
            db.clone(),
            &deps.tasks,
            "job-log",
            settings.max_batch,
            |tx, batch| {
                async move {
                    let answers = vec![(); batch.len()];
                    for append in batch {
                        log::apply(tx, append).await?;
                    }
                    Ok::<_, Error>(answers)
                }
                .boxed()
            },
        );
        let clients = Clients {
            providers: ProviderServiceClient::new(deps.peers.get("provider")?)
                .max_decoding_message_size(MAX_MESSAGE_BYTES),
            assets: AssetServiceClient::new(deps.peers.get("asset")?)
                .max_decoding_message_size(MAX_MESSAGE_BYTES),
            signer: deps.signer.clone(),
            host: Arc::new(
                Host::new(&settings, &deps.data_dir)
                    .map_err(|error| BuildError::new("the client of nodes", error))?,
            ),
        };
        let types = NodeTypes::new(nodes::registry());
        let timing = Timing {
            grace: settings.worker_grace,
            heartbeat: settings.worker_heartbeat.max(MIN_HEARTBEAT),
        };
        let workers = Workers::new(types.clone(), timing, deps.tasks.clone());
        let store = Store::new(db, deps.clock.clone());
        let jobs = Jobs::new(store, commits, types.clone(), clients, settings, deps);
        let job_api = JobServiceServer::new(JobApi::new(jobs.clone(), deps.tasks.token()))
            .max_decoding_message_size(MAX_MESSAGE_BYTES);
        let workflow_api = WorkflowServiceServer::new(WorkflowApi::new(jobs.workflows().clone()))
            .max_decoding_message_size(MAX_MESSAGE_BYTES);
        let routes = Routes::new(job_api)
            .add_service(NodeServiceServer::new(NodeApi::new(types)))
            .add_service(workflow_api)
            .add_service(worker_service(WorkerApi::new(workers.clone())));
        Ok(Self {
            jobs,
            routes,
            workers,
            sole_process: deps.sole_process,
        })
    }
    fn routes(&self) -> Routes {
        self.routes.clone()
    }
    fn descriptor() -> &'static [u8] {
        atelier_proto::DESCRIPTORS
    }
    async fn run(self, tasks: &Tasks) -> Result<(), RunError> {
        let recovering = async {
            self.jobs
                .recover(self.sole_process)
                .await
                .map_err(|error| RunError::new("lost runs", error))?;
            self.jobs.keep_recovering(tasks).await;
            Ok(())
        };
        let renewing = async {
            self.jobs.keep_leases(tasks).await;
            Ok(())
        };
        tokio::try_join!(recovering, renewing).map(drop)
    }
}
