//! The scripted store of workflows: versions by number, an etag by revision.

use atelier_proto::kernel::v1::workflow_service_server::WorkflowService;
use atelier_proto::kernel::v1::{self as kernel, Workflow, WorkflowVersion};
use atelier_proto::reason::{self, Problem};
use serde_json::{Value, json};
use tonic::{Code, Request, Response, Status};

use super::{Fakes, Reply, missing, user};

/// A saved workflow.
#[derive(Clone)]
pub struct Stored {
    user_id: String,
    key: String,
    workflow: Workflow,
    graphs: Vec<String>,
    revision: u32,
}

impl Stored {
    fn shown(&self) -> Workflow {
        Workflow {
            version: i64::try_from(self.graphs.len()).expect("small"),
            etag: format!("r{}", self.revision),
            graph_json: self.graphs.last().cloned(),
            ..self.workflow.clone()
        }
    }
}

fn not_there() -> Status {
    missing(reason::WORKFLOW_NOT_FOUND)
}

impl Fakes {
    /// The graph of somebody's workflow.
    pub(super) fn graph_of(
        &self,
        user_id: &str,
        id: &str,
        version: Option<i64>,
    ) -> Result<(i64, String), Status> {
        let stored = self.stored(user_id, id)?;
        let version = version.unwrap_or(stored.shown().version);
        let at = usize::try_from(version - 1).unwrap_or(usize::MAX);
        let graph = stored.graphs.get(at).cloned();
        Ok((version, graph.ok_or_else(|| missing(reason::VERSION_NOT_FOUND))?))
    }

    /// A workflow of somebody else.
    pub fn add_workflow(&self, user_id: &str, id: &str) {
        let workflow = Workflow {
            workflow_id: id.to_owned(),
            name: id.to_owned(),
            ..Workflow::default()
        };
        self.workflows.lock().expect("lock").push(Stored {
            user_id: user_id.to_owned(),
            key: String::new(),
            workflow,
            graphs: vec![json!({"nodes": [], "edges": []}).to_string()],
            revision: 1,
        });
    }

    fn stored(&self, user_id: &str, id: &str) -> Result<Stored, Status> {
        let workflows = self.workflows.lock().expect("lock");
        let found = workflows
            .iter()
            .find(|stored| stored.user_id == user_id && stored.workflow.workflow_id == id);
        found.cloned().ok_or_else(not_there)
    }

    fn change(
        &self,
        user_id: &str,
        id: &str,
        etag: Option<String>,
        change: impl FnOnce(&mut Stored),
    ) -> Result<Workflow, Status> {
        let mut workflows = self.workflows.lock().expect("lock");
        let stored = workflows
            .iter_mut()
            .find(|stored| stored.user_id == user_id && stored.workflow.workflow_id == id)
            .ok_or_else(not_there)?;
        let bare = etag.map(|etag| etag.trim_matches('"').to_owned());
        if bare.is_some_and(|etag| etag != stored.shown().etag) {
            let problem = Problem::new(
                Code::Aborted,
                reason::WORKFLOW_CHANGED,
                "fake.atelier",
                "saved meanwhile",
            );
            return Err(problem.with("etag", stored.shown().etag).into());
        }
        change(stored);
        stored.revision += 1;
        Ok(stored.shown())
    }

    fn save(&self, user_id: String, key: String, mut workflow: Workflow, graph: String) -> (Workflow, bool) {
        let mut workflows = self.workflows.lock().expect("lock");
        if let Some(stored) = workflows
            .iter()
            .find(|stored| !key.is_empty() && stored.user_id == user_id && stored.key == key)
        {
            return (stored.shown(), false);
        }
        if workflow.workflow_id.is_empty() {
            workflow.workflow_id = format!("w{}", workflows.len());
        }
        let at = Some(prost_types::Timestamp {
            seconds: 1_788_436_800,
            nanos: 0,
        });
        (workflow.created_at, workflow.updated_at) = (at, at);
        let stored = Stored {
            user_id,
            key,
            workflow,
            graphs: vec![graph],
            revision: 1,
        };
        let shown = stored.shown();
        workflows.push(stored);
        (shown, true)
    }
}

#[tonic::async_trait]
impl WorkflowService for Fakes {
    async fn create_workflow(
        &self,
        request: Request<kernel::CreateWorkflowRequest>,
    ) -> Reply<kernel::CreateWorkflowResponse> {
        let user_id = user(&request);
        let request = request.into_inner();
        let workflow = Workflow {
            workflow_id: request.workflow_id,
            name: request.name,
            description: request.description,
            tags: request.tags.unwrap_or_default().values,
            settings_json: request.settings_json,
            params: request.params,
            run_mode: request.run_mode,
            extra_json: request.extra_json,
            ..Workflow::default()
        };
        let (workflow, created) = self.save(user_id, request.idempotency_key, workflow, request.graph_json);
        let workflow = Some(workflow);
        Ok(Response::new(kernel::CreateWorkflowResponse {
            workflow,
            created,
        }))
    }

    async fn get_workflow(
        &self,
        request: Request<kernel::GetWorkflowRequest>,
    ) -> Reply<kernel::GetWorkflowResponse> {
        let stored = self.stored(&user(&request), &request.get_ref().workflow_id)?;
        let workflow = Some(stored.shown());
        Ok(Response::new(kernel::GetWorkflowResponse { workflow }))
    }

    async fn list_workflows(
        &self,
        request: Request<kernel::ListWorkflowsRequest>,
    ) -> Reply<kernel::ListWorkflowsResponse> {
        let user_id = user(&request);
        let workflows = self.workflows.lock().expect("lock");
        let own = workflows.iter().rev().filter(|stored| stored.user_id == user_id);
        let asked = request.get_ref();
        let fits = |stored: &&Stored| stored.workflow.name.contains(&asked.query);
        let rows = own.filter(fits).map(|stored| Workflow {
            graph_json: None,
            ..stored.shown()
        });
        Ok(Response::new(kernel::ListWorkflowsResponse {
            workflows: rows.collect(),
            next_page_token: String::new(),
        }))
    }

    async fn update_workflow(
        &self,
        request: Request<kernel::UpdateWorkflowRequest>,
    ) -> Reply<kernel::UpdateWorkflowResponse> {
        let user_id = user(&request);
        let request = request.into_inner();
        let (id, etag) = (request.workflow_id.clone(), request.expected_etag.clone());
        let workflow = self.change(&user_id, &id, etag, |stored| {
            if let Some(name) = request.name {
                stored.workflow.name = name;
            }
            if let Some(extra) = request.extra_json {
                stored.workflow.extra_json = extra;
            }
            stored.graphs.extend(request.graph_json);
        })?;
        Ok(Response::new(kernel::UpdateWorkflowResponse {
            workflow: Some(workflow),
            changed: true,
        }))
    }

    async fn delete_workflow(
        &self,
        request: Request<kernel::DeleteWorkflowRequest>,
    ) -> Reply<kernel::DeleteWorkflowResponse> {
        let user_id = user(&request);
        let request = request.into_inner();
        self.change(&user_id, &request.workflow_id, request.expected_etag, |stored| {
            stored.user_id = "nobody".to_owned();
        })?;
        Ok(Response::new(kernel::DeleteWorkflowResponse {}))
    }

    async fn list_workflow_versions(
        &self,
        request: Request<kernel::ListWorkflowVersionsRequest>,
    ) -> Reply<kernel::ListWorkflowVersionsResponse> {
        let stored = self.stored(&user(&request), &request.get_ref().workflow_id)?;
        let versions = (1_i64..)
            .zip(&stored.graphs)
            .map(|(version, graph)| WorkflowVersion {
                workflow_id: stored.workflow.workflow_id.clone(),
                version,
                graph_bytes: i64::try_from(graph.len()).expect("small"),
                ..WorkflowVersion::default()
            });
        let mut versions: Vec<_> = versions.collect();
        versions.reverse();
        Ok(Response::new(kernel::ListWorkflowVersionsResponse {
            versions,
            next_page_token: "more".to_owned(),
        }))
    }

    async fn get_workflow_version(
        &self,
        request: Request<kernel::GetWorkflowVersionRequest>,
    ) -> Reply<kernel::GetWorkflowVersionResponse> {
        let asked = request.get_ref();
        let (version, graph) = self.graph_of(&user(&request), &asked.workflow_id, Some(asked.version))?;
        let version = WorkflowVersion {
            workflow_id: asked.workflow_id.clone(),
            version,
            graph_json: Some(graph),
            ..WorkflowVersion::default()
        };
        Ok(Response::new(kernel::GetWorkflowVersionResponse {
            version: Some(version),
        }))
    }

    async fn restore_workflow_version(
        &self,
        request: Request<kernel::RestoreWorkflowVersionRequest>,
    ) -> Reply<kernel::RestoreWorkflowVersionResponse> {
        let user_id = user(&request);
        let request = request.into_inner();
        let (_, graph) = self.graph_of(&user_id, &request.workflow_id, Some(request.version))?;
        let restore = |stored: &mut Stored| stored.graphs.push(graph);
        let workflow = self.change(&user_id, &request.workflow_id, request.expected_etag, restore)?;
        Ok(Response::new(kernel::RestoreWorkflowVersionResponse {
            workflow: Some(workflow),
            changed: true,
        }))
    }

    async fn import_workflow(
        &self,
        request: Request<kernel::ImportWorkflowRequest>,
    ) -> Reply<kernel::ImportWorkflowResponse> {
        let user_id = user(&request);
        let request = request.into_inner();
        let mut file: Value = serde_json::from_str(&request.file_json).expect("json");
        let file = file.as_object_mut().expect("object");
        let graph = file
            .remove("graph")
            .unwrap_or_else(|| json!({"nodes": [], "edges": []}));
        let own = file
            .remove("name")
            .and_then(|name| name.as_str().map(ToOwned::to_owned));
        let workflow = Workflow {
            workflow_id: request.workflow_id,
            name: request.name.or(own).unwrap_or_default(),
            extra_json: Value::Object(file.clone()).to_string(),
            ..Workflow::default()
        };
        let (workflow, created) = self.save(user_id, request.idempotency_key, workflow, graph.to_string());
        let workflow = Some(workflow);
        Ok(Response::new(kernel::ImportWorkflowResponse {
            workflow,
            created,
        }))
    }

    async fn export_workflow(
        &self,
        request: Request<kernel::ExportWorkflowRequest>,
    ) -> Reply<kernel::ExportWorkflowResponse> {
        let asked = request.get_ref();
        let (version, graph) = self.graph_of(&user(&request), &asked.workflow_id, asked.version)?;
        let graph: Value = serde_json::from_str(&graph).expect("json");
        let file = json!({"graph": graph, "asked": [asked.spelling, asked.values, i32::from(asked.flat)]});
        Ok(Response::new(kernel::ExportWorkflowResponse {
            file_json: file.to_string(),
            version,
        }))
    }
}
