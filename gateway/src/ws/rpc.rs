//! Commands that ask and get one answer by their `request_id` (wire specification 2.6).

use atelier_proto::reason;
use atelier_proto::value::{Map, Value, from_json};
use serde::Serialize;

use super::commands::Request;
use super::refusal::{Refusal, text_of};
use super::socket::{Connection, fields};
use crate::error::Error;
use crate::problem::http_of;
use crate::rest::{assets, field, nodes};
use crate::wire::resource::Asset;

/// Commands of this kind; those that are not served are answered as such.
const COMMANDS: &[&str] = &[
    "list_workflows",
    "get_workflow",
    "list_assets",
    "get_asset",
    "list_nodes",
    "get_node",
    "lookup_generations",
    "generate_media",
    "generate_text",
    "transcribe_audio",
    "list_workflow_summaries",
    "get_workflow_interface",
    "get_workflow_interfaces",
    "get_node_type_inventory",
    "get_capabilities",
    "preflight_workflow",
];

/// Classes of errors after which asking again may help.
const RETRYABLE: &[&str] = &[
    "INTERNAL_ERROR",
    "SERVICE_UNAVAILABLE",
    "TIMEOUT",
    "TOO_MANY_REQUESTS",
];

pub(crate) fn is_rpc(command: &str) -> bool {
    COMMANDS.contains(&command)
}

pub(crate) async fn run(connection: &Connection, request: &Request) -> Result<(), Refusal> {
    let Some(id) = &request.request_id else {
        return Err(Refusal::plain("request_id is required for RPC commands"));
    };
    let answer = match ask(connection, request).await {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    let frame = [
        ("type", Value::from("rpc_response")),
        ("request_id", id.as_str().into()),
        ("command", request.command.as_str().into()),
        answer,
    ];
    connection.send(fields(frame)).await?;
    Ok(())
}

async fn ask(connection: &Connection, request: &Request) -> Result<Value, Value> {
    let (app, caller) = (&connection.app, &connection.caller);
    let text = |key: &str| {
        request
            .data
            .get(key)
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
    };
    let needed = |key: &str| text(key).ok_or_else(|| failure("INVALID_INPUT", &format!("{key} is required")));
    match request.command.as_str() {
        "list_workflows" => {
            let limit = request.data.get("limit").and_then(Value::as_i64);
            let limit = limit.map(|limit| i32::try_from(limit.clamp(1, 500)).unwrap_or(500));
            field::page(app, caller, limit, text("cursor"), text("run_mode"), text("tag"))
                .await
                .map(from_json)
                .map_err(|error| told(&error))
        }
        "get_workflow" => field::record(app, caller, &needed("id")?)
            .await
            .map(from_json)
            .map_err(|error| told(&error)),
        "list_assets" => {
            let size = request.data.get("page_size").and_then(Value::as_i64);
            let query = assets::AssetsQuery {
                job_id: text("job_id"),
                node_id: text("node_id"),
                content_type: text("content_type"),
                since: None,
                limit: size.map(|size| i32::try_from(size.clamp(1, 500)).unwrap_or(500)),
                cursor: text("cursor"),
            };
            assets::page(app, caller, query)
                .await
                .map(|page| value(&page))
                .map_err(|error| told(&error))
        }
        "get_asset" => {
            let asset = assets::fetch(app, caller, needed("id")?)
                .await
                .map_err(|error| told(&error))?;
            Ok(value(&Asset::new(asset, &caller.user_id)))
        }
        "list_nodes" => {
            let query = nodes::NodesQuery {
                namespace: text("namespace"),
                query: text("query"),
                cursor: text("cursor"),
                limit: None,
            };
            nodes::all(app, caller, query)
                .await
                .map(|nodes| value(&nodes))
                .map_err(|error| told(&error))
        }
        "get_node" => {
            let node = nodes::one(app, caller, needed("node_type")?).await;
            node.map(|node| value(&node)).map_err(|error| told(&error))
        }
        _ => Err(failure(
            "NOT_IMPLEMENTED",
            "This command is not supported by this server",
        )),
    }
}

fn value(result: &impl Serialize) -> Value {
    serde_json::to_value(result).map_or(Value::Null, from_json)
}

fn told(error: &Error) -> Value {
    let (code, api_code) = match error {
        Error::Service(status) => (status.code(), reason::reason_of(status)),
        Error::Field { .. } => (tonic::Code::InvalidArgument, "INVALID_INPUT".to_owned()),
        Error::Http { .. }
        | Error::Unanswered
        | Error::Forbidden(_)
        | Error::Unauthenticated
        | Error::Draining => (tonic::Code::Unavailable, String::new()),
    };
    let class = match http_of(code).0 {
        400 | 409 | 416 => "INVALID_INPUT",
        404 => "NOT_FOUND",
        429 => "TOO_MANY_REQUESTS",
        503 => "SERVICE_UNAVAILABLE",
        504 => "TIMEOUT",
        _ => "INTERNAL_ERROR",
    };
    with_api_code(failure(class, &text_of(error)), &api_code)
}

fn failure(code: &str, message: &str) -> Value {
    let retryable = RETRYABLE.contains(&code) && !message.contains("disabled");
    let keys = [
        ("code", Value::from(code)),
        ("message", message.into()),
        ("retryable", retryable.into()),
        ("apiCode", Value::Null),
    ];
    Map::from_iter(keys.map(|(key, value)| (key.to_owned(), value))).into()
}

fn with_api_code(failure: Value, api_code: &str) -> Value {
    match failure.as_map() {
        Some(map) if !api_code.is_empty() => {
            let mut map = map.clone();
            map.insert("apiCode".to_owned(), api_code.into());
            map.into()
        }
        _ => failure,
    }
}
