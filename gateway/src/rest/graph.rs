//! The body that names what to run: a graph, a workflow file, or a saved workflow. Every bad field is named.

use atelier_proto::kernel::v1::{RunJobRequest, RunOptions};
use atelier_proto::value::map_from_json;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use utoipa::ToSchema;

use crate::error::Error;
use crate::wire::value::is_too_deep;
use crate::wire::words;

/// What to run. One of `graph`, `workflow` and `workflow_id` is needed; a graph wins.
#[derive(Debug, Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "the shape for the description of the interface; bodies are read field by field"
)]
pub(crate) struct JobBody {
    /// `{"nodes": […], "edges": […]}`.
    #[schema(value_type = Option<Object>)]
    graph: Option<Json>,
    /// A workflow file: an object with `graph`, or with `nodes` and `edges`. Its `id`, `name` and `params`
    /// stand in for those of the request.
    #[schema(value_type = Option<Object>)]
    workflow: Option<Json>,
    /// A saved workflow; also the routing key of the events.
    workflow_id: Option<String>,
    /// The version of the saved workflow to run; the newest one when absent.
    workflow_version: Option<i64>,
    /// Values of the input nodes, by name.
    #[schema(value_type = Option<Object>)]
    params: Option<Json>,
    /// Name shown in lists.
    name: Option<String>,
    /// Id of the run, chosen by the caller; repeating a request with it starts nothing again.
    job_id: Option<String>,
    /// How it runs.
    options: Option<JobOptions>,
}

/// How a run runs.
#[derive(Debug, Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "the shape for the description of the interface; bodies are read field by field"
)]
pub(crate) struct JobOptions {
    /// `full`, `outputs` or `terminal`: how much subscribers are told. Default `full`.
    event_detail: Option<String>,
    /// `auto` or `temporary`: whether media are saved as assets. Default `auto`.
    asset_persistence: Option<String>,
    /// Leftovers at the end fail the run. Default false.
    strict: Option<bool>,
    /// Failed invocations wait for an answer (`POST /jobs/{id}/escalations/{escalation_id}`), a minute at most, before
    /// they count. Default false.
    supervised: Option<bool>,
}

/// Reads a body.
///
/// # Errors
/// A wrong field.
pub(crate) fn run_request(body: Json) -> Result<RunJobRequest, Error> {
    let Json::Object(mut body) = body else {
        return Err(Error::field("body", "must be an object"));
    };
    let file = take(&mut body, "workflow")
        .map(workflow_file)
        .transpose()?
        .unwrap_or_default();
    let graph = match take(&mut body, "graph") {
        Some(graph) => Some(checked("graph", graph)?),
        None => file.graph,
    };
    let workflow_id = text(&mut body, "workflow_id")?.or(file.id);
    if graph.is_none() && workflow_id.is_none() {
        return Err(Error::field(
            "graph",
            "is missing: give graph, workflow or workflow_id",
        ));
    }
    let params = match with_defaults(file.params, take(&mut body, "params")) {
        None => None,
        Some(params) => {
            let map = map_from_json(params).ok_or_else(|| Error::field("params", "must be an object"))?;
            if is_too_deep(&map) {
                return Err(Error::field("params", "is nested too deeply"));
            }
            Some((&map).into())
        }
    };
    let name = text(&mut body, "name")?.or(file.name).unwrap_or_default();
    let job_id = text(&mut body, "job_id")?.unwrap_or_default();
    let options = take(&mut body, "options").map(run_options).transpose()?;
    let workflow_version = match take(&mut body, "workflow_version") {
        None => None,
        Some(version) => match version.as_i64() {
            Some(version) => Some(version),
            None => return Err(Error::field("workflow_version", "must be a whole number")),
        },
    };
    if let Some(unknown) = body.keys().next() {
        return Err(Error::field(unknown, "is not a field of this request"));
    }
    Ok(RunJobRequest {
        job_id,
        workflow_id,
        graph_json: graph.map(|graph| graph.to_string()),
        params,
        name,
        options,
        trigger: None,
        workflow_version,
    })
}

/// What a run takes of a workflow file.
#[derive(Default)]
struct File {
    graph: Option<Json>,
    /// Its own id, name and parameters; those of the request win.
    id: Option<String>,
    name: Option<String>,
    params: Option<Json>,
}
fn workflow_file(workflow: Json) -> Result<File, Error> {
    let Json::Object(mut file) = workflow else {
        return Err(Error::field("workflow", "must be an object"));
    };
    let mut stated = |key: &str| match file.remove(key) {
        Some(Json::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    };
    let (id, name) = (stated("workflow_id").or_else(|| stated("id")), stated("name"));
    let params = take(&mut file, "params").filter(Json::is_object);
    let graph = Some(workflow_graph(file)?);
    Ok(File {
        graph,
        id,
        name,
        params,
    })
}

/// Parameters of a request over those of its file; what is no object is left for the check.
fn with_defaults(file: Option<Json>, request: Option<Json>) -> Option<Json> {
    match (file, request) {
        (Some(Json::Object(mut file)), Some(Json::Object(request))) => {
            file.extend(request);
            Some(Json::Object(file))
        }
        (file, request) => request.or(file),
    }
}

/// The graph of a workflow file.
fn workflow_graph(mut file: Map<String, Json>) -> Result<Json, Error> {
    match take(&mut file, "graph") {
        Some(graph) => checked("workflow.graph", graph),
        None if file.contains_key("nodes") => {
            let (nodes, edges) = (file.remove("nodes"), file.remove("edges"));
            let mut graph = Map::new();
            graph.insert("nodes".to_owned(), nodes.unwrap_or_default());
            graph.insert(
                "edges".to_owned(),
                edges.unwrap_or_else(|| Json::Array(Vec::new())),
            );
            checked("workflow", Json::Object(graph))
        }
        None => Err(Error::field(
            "workflow",
            "has neither a graph nor nodes and edges",
        )),
    }
}

/// A graph in its outermost shape; the kernel says the rest.
///
/// # Errors
/// A wrong field, when it is no graph at all.
pub(crate) fn checked(field: &str, graph: Json) -> Result<Json, Error> {
    if !graph.is_object() {
        return Err(Error::field(field, "must be an object with nodes and edges"));
    }
    if !graph.get("nodes").is_some_and(Json::is_array) {
        return Err(Error::field(format!("{field}.nodes"), "must be a list"));
    }
    match graph.get("edges") {
        None | Some(Json::Array(_)) => Ok(graph),
        Some(_) => Err(Error::field(format!("{field}.edges"), "must be a list")),
    }
}

pub(crate) fn run_options(options: Json) -> Result<RunOptions, Error> {
    let Json::Object(mut options) = options else {
        return Err(Error::field("options", "must be an object"));
    };
    let detail = text(&mut options, "event_detail")?;
    let detail = super::word(
        "options.event_detail",
        detail.as_deref(),
        words::parse_event_detail,
        "full, outputs, terminal",
    )?;
    let keep = text(&mut options, "asset_persistence")?;
    let keep = super::word(
        "options.asset_persistence",
        keep.as_deref(),
        words::parse_asset_persistence,
        "auto, temporary",
    )?;
    let mut flag = |name: &str| match take(&mut options, name) {
        None => Ok(false),
        Some(Json::Bool(flag)) => Ok(flag),
        Some(_) => Err(Error::field(format!("options.{name}"), "must be true or false")),
    };
    let (strict, supervised) = (flag("strict")?, flag("supervised")?);
    if let Some(unknown) = options.keys().next() {
        return Err(Error::field(
            format!("options.{unknown}"),
            "is not a field of this request",
        ));
    }
    Ok(RunOptions {
        event_detail: detail.unwrap_or_default().into(),
        asset_persistence: keep.unwrap_or_default().into(),
        strict,
        buffer_limit: 0,
        supervised,
    })
}

/// A field that is there and not null.
fn take(object: &mut Map<String, Json>, key: &str) -> Option<Json> {
    object.remove(key).filter(|value| !value.is_null())
}

fn text(object: &mut Map<String, Json>, key: &str) -> Result<Option<String>, Error> {
    match take(object, key) {
        None => Ok(None),
        Some(Json::String(text)) if text.is_empty() => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(_) => Err(Error::field(key, "must be text")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field_of(body: Json) -> String {
        match run_request(body) {
            Err(Error::Field { field, .. }) => field,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_graph_a_file_and_a_saved_workflow_are_taken() {
        let graph = json!({"nodes": [{"id": "a"}], "edges": []});
        for body in [
            json!({"graph": graph}),
            json!({"workflow": {"name": "x", "graph": graph}}),
            json!({"workflow": graph}),
        ] {
            let request = run_request(body).expect("request");
            assert_eq!(request.graph_json.expect("graph"), graph.to_string());
        }
        let saved = run_request(json!({"workflow_id": "W"})).expect("request");
        assert_eq!(
            (saved.workflow_id.as_deref(), saved.graph_json),
            (Some("W"), None)
        );
    }

    #[test]
    fn every_wrong_field_is_named() {
        let graph = json!({"nodes": [], "edges": []});
        assert_eq!(field_of(json!([1])), "body");
        assert_eq!(field_of(json!({})), "graph");
        assert_eq!(field_of(json!({"graph": {"edges": []}})), "graph.nodes");
        assert_eq!(field_of(json!({"graph": graph, "params": [1]})), "params");
        let deep = (0..60).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(
            field_of(json!({"graph": graph, "params": {"deep": deep}})),
            "params"
        );
        assert_eq!(field_of(json!({"graph": graph, "parms": {}})), "parms");
        assert_eq!(
            field_of(json!({"graph": graph, "options": {"event_detail": "some"}})),
            "options.event_detail"
        );
        assert_eq!(field_of(json!({"graph": graph, "job_id": 7})), "job_id");
        assert_eq!(field_of(json!({"workflow": {"name": "x"}})), "workflow");
    }
}
