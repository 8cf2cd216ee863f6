//! Saved workflows and their versions.

use atelier_proto::kernel::v1;
use atelier_proto::time::iso;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use utoipa::ToSchema;

/// A saved workflow.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Workflow {
    /// Its id.
    id: String,
    /// Name for people.
    name: String,
    /// What it does.
    description: String,
    /// Words to find it by.
    tags: Vec<String>,
    /// What it is used as: `workflow`, `chat`, `app`, `tool`, `clip`, `layer` or `image`.
    run_mode: String,
    /// Settings of its editor or its runs.
    #[schema(value_type = Object)]
    settings: Json,
    /// Values of its inputs that a run takes when the request states none.
    #[schema(value_type = Object)]
    params: Json,
    /// Other fields of its file.
    #[schema(value_type = Object)]
    extra: Json,
    /// Number of its newest version.
    pub(crate) version: i64,
    /// Changes with everything that is saved.
    pub(crate) etag: String,
    /// How many nodes the newest version has.
    node_count: i64,
    /// When it was made.
    created_at: String,
    /// When it was last changed.
    pub(crate) updated_at: String,
    /// The graph of the newest version; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    graph: Option<Json>,
}

/// A version of a saved workflow.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkflowVersion {
    /// The workflow.
    workflow_id: String,
    /// Its number, from 1.
    version: i64,
    /// What its author said about it.
    note: String,
    /// The version whose graph it brought back.
    #[schema(required)]
    restored_from: Option<i64>,
    /// How many nodes it has.
    node_count: i64,
    /// Size of its graph, in bytes of JSON.
    graph_bytes: i64,
    /// When it was saved.
    created_at: String,
    /// The graph; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    graph: Option<Json>,
}

fn parsed(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_default()
}

fn object(text: &str) -> Json {
    match parsed(text) {
        object @ Json::Object(_) => object,
        _ => Json::Object(Map::new()),
    }
}

impl Workflow {
    /// The workflow as its owner sees it.
    pub(crate) fn new(workflow: v1::Workflow, user_id: &str) -> Self {
        let v1::Workflow {
            workflow_id,
            name,
            description,
            tags,
            settings_json,
            params,
            run_mode,
            extra_json,
            version,
            etag,
            graph_json,
            node_count,
            created_at,
            updated_at,
        } = workflow;
        Self {
            id: workflow_id,
            name,
            description,
            tags,
            run_mode: run_mode.unwrap_or_else(|| "workflow".to_owned()),
            settings: object(&settings_json),
            params: super::object(params, user_id),
            extra: object(&extra_json),
            version,
            etag,
            node_count,
            created_at: created_at.as_ref().map(iso).unwrap_or_default(),
            updated_at: updated_at.as_ref().map(iso).unwrap_or_default(),
            graph: graph_json.as_deref().map(parsed),
        }
    }

    /// The record as clients of the field know it (wire specification 6.2): all keys, null where nothing is known, and
    /// whatever else its file had.
    pub(crate) fn record(self) -> Json {
        let mut record = Map::new();
        for key in [
            "access",
            "tool_name",
            "thumbnail",
            "thumbnail_url",
            "input_schema",
            "output_schema",
            "package_name",
            "path",
            "workspace_id",
            "required_providers",
            "required_models",
            "html_app",
        ] {
            record.insert(key.to_owned(), Json::Null);
        }
        record.insert("access".to_owned(), "private".into());
        if let Json::Object(extra) = self.extra {
            record.extend(extra);
        }
        let own = json!({
            "id": self.id, "name": self.name, "description": self.description, "tags": self.tags,
            "run_mode": self.run_mode, "settings": self.settings, "created_at": self.created_at,
            "updated_at": self.updated_at, "etag": self.etag, "graph": self.graph,
        });
        if let Json::Object(own) = own {
            record.extend(own);
        }
        Json::Object(record)
    }
}

impl Workflow {
    /// Other fields of its file.
    pub(crate) fn extra(&self) -> Map<String, Json> {
        self.extra.as_object().cloned().unwrap_or_default()
    }
}

impl From<v1::WorkflowVersion> for WorkflowVersion {
    fn from(version: v1::WorkflowVersion) -> Self {
        let v1::WorkflowVersion {
            workflow_id,
            version,
            note,
            restored_from,
            node_count,
            graph_bytes,
            created_at,
            graph_json,
        } = version;
        Self {
            workflow_id,
            version,
            note,
            restored_from,
            node_count,
            graph_bytes,
            created_at: created_at.as_ref().map(iso).unwrap_or_default(),
            graph: graph_json.as_deref().map(parsed),
        }
    }
}
