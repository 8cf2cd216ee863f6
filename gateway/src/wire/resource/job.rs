//! A run.

use atelier_proto::kernel::v1;
use atelier_proto::time::iso;
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::JobCost;
use crate::wire::words;

/// A run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Job {
    /// Its id.
    id: String,
    /// The workflow it belongs to.
    #[schema(required)]
    workflow_id: Option<String>,
    /// The version of the saved workflow that it runs; null when the request had a graph.
    #[schema(required)]
    workflow_version: Option<i64>,
    /// The run whose node started it.
    #[schema(required)]
    parent_job_id: Option<String>,
    /// That node.
    #[schema(required)]
    parent_node_id: Option<String>,
    /// Name shown in lists.
    name: String,
    /// `queued`, `running`, `completed`, `failed`, `cancelled` or `suspended`.
    pub(crate) status: &'static str,
    /// Why it failed.
    #[schema(required)]
    error: Option<String>,
    /// Machine-readable reason.
    #[schema(required)]
    error_code: Option<String>,
    /// What is wrong with the graph, for a run that was refused.
    issues: Vec<Issue>,
    /// Values of its inputs.
    #[schema(value_type = Object)]
    params: Json,
    /// With a completed run: a list of values for each output's name.
    #[schema(required, value_type = Option<Object>)]
    outputs: Option<Json>,
    /// When it was asked for.
    created_at: String,
    /// When it started.
    #[schema(required)]
    started_at: Option<String>,
    /// When it ended.
    #[schema(required)]
    finished_at: Option<String>,
    /// How long it ran, in milliseconds.
    #[schema(required)]
    duration_ms: Option<i64>,
    /// Number of its newest event.
    last_seq: i64,
    /// Artifacts committed so far.
    artifact_count: i64,
    /// What its calls to providers cost so far.
    cost: JobCost,
    /// The graph as it was given; only for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    graph: Option<Json>,
}

/// Something wrong with a graph.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Issue {
    /// Machine-readable code, for instance `graph.cycle`.
    code: String,
    /// The node.
    node_id: String,
    /// Its type.
    node_type: String,
    /// The property or handle.
    property: String,
    /// What is wrong.
    message: String,
}

impl From<v1::Issue> for Issue {
    fn from(issue: v1::Issue) -> Self {
        let v1::Issue {
            code,
            node_id,
            node_type,
            property,
            message,
        } = issue;
        Self {
            code,
            node_id,
            node_type,
            property,
            message,
        }
    }
}

impl Job {
    /// The run as its owner sees it.
    pub(crate) fn new(job: v1::Job, cost: JobCost, user_id: &str) -> Self {
        let v1::Job {
            job_id,
            workflow_id,
            name,
            status,
            error,
            error_code,
            params,
            outputs,
            created_at,
            started_at,
            finished_at,
            duration,
            last_seq,
            graph_json,
            issues,
            artifact_count,
            workflow_version,
            parent_job_id,
            parent_node_id,
        } = job;
        Self {
            id: job_id,
            workflow_id,
            workflow_version,
            parent_job_id,
            parent_node_id,
            name,
            status: words::job_status(status),
            error: error.and_then(super::text),
            error_code: error_code.and_then(super::text),
            issues: issues.into_iter().map(Into::into).collect(),
            params: super::object(params, user_id),
            outputs: outputs.map(|outputs| super::object(Some(outputs), user_id)),
            created_at: created_at.as_ref().map(iso).unwrap_or_default(),
            started_at: started_at.as_ref().map(iso),
            finished_at: finished_at.as_ref().map(iso),
            duration_ms: duration.as_ref().map(super::millis),
            last_seq,
            artifact_count,
            cost,
            // What was given may be anything; it is shown as text then.
            graph: graph_json.map(|text| serde_json::from_str(&text).unwrap_or(Json::String(text))),
        }
    }
}
