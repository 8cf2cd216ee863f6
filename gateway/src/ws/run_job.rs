//! `run_job`: starts a run and watches it (wire specification 2.3, 2.4).

use atelier_proto::kernel::v1::{AssetPersistence, EventDetail, RunJobRequest, RunOptions};
use atelier_proto::reason;
use atelier_proto::value::{BytesForm, Map, Value, to_json};
use uuid::Uuid;

use super::attach::Opening;
use super::commands::Request;
use super::reconnect_job;
use super::refusal::{Refusal, text_of};
use super::socket::{Connection, fields};
use crate::error::Error;
use crate::rest::graph::checked;
use crate::wire::frame::job_update;
use crate::wire::value::is_too_deep;
use crate::wire::words;

pub(crate) async fn run(connection: &mut Connection, request: &Request) -> Result<(), Refusal> {
    let job_id = request
        .id("job_id")?
        .map_or_else(|| Uuid::now_v7().to_string(), ToOwned::to_owned);
    let workflow_id = request.id("workflow_id")?.map(ToOwned::to_owned);
    let polls = request.flag("require_terminal_result")?;
    let message = message(request, &job_id, workflow_id.clone(), polls)?;
    if connection.app.tasks.stopping() {
        return draining(connection, workflow_id.as_deref()).await;
    }
    let mut jobs = connection.app.clients.jobs();
    let call = jobs.run_job(connection.app.clients.request(&connection.caller, message));
    let answer = match connection.app.clients.answer(call).await {
        Ok(answer) => answer,
        Err(error) => return refused(connection, request, &job_id, workflow_id.as_deref(), error).await,
    };
    if !answer.created {
        // The same request again is somebody who lost the connection.
        return reconnect_job::attach(connection, request, &job_id, None, polls).await;
    }
    connection.reply(request, ack(workflow_id.as_deref())).await?;
    let opening = Opening {
        resumed: false,
        ack: None,
        workflow_id,
    };
    connection.attach(&job_id, 0, polls, opening);
    Ok(())
}

fn ack(workflow_id: Option<&str>) -> Map {
    fields([
        ("message", "Job started".into()),
        ("workflow_id", workflow_id.map_or(Value::Null, Into::into)),
    ])
}

fn message(
    request: &Request,
    job_id: &str,
    workflow_id: Option<String>,
    temporary: bool,
) -> Result<RunJobRequest, Refusal> {
    let graph = match (&request.graph, request.object("graph")?) {
        (Some(graph), _) => Some(graph.clone()),
        (None, Some(graph)) => Some(to_json(&graph.into(), BytesForm::Tagged)),
        (None, None) => None,
    };
    let graph = graph.map(|graph| checked("graph", graph)).transpose();
    let graph = graph.map_err(|error| Refusal::Malformed(error.to_string()))?;
    if graph.is_none() && workflow_id.is_none() {
        return Err(Refusal::Failed(
            "Either a graph or a workflow_id is required".to_owned(),
        ));
    }
    let params = request.object("params")?.unwrap_or_default();
    if is_too_deep(&params) {
        return Err(Refusal::Malformed("params is nested too deeply".to_owned()));
    }
    Ok(RunJobRequest {
        job_id: job_id.to_owned(),
        workflow_id,
        graph_json: graph.map(|graph| graph.to_string()),
        params: Some((&params).into()),
        name: request.text("job_name")?.unwrap_or_default().to_owned(),
        options: Some(options(request, temporary)?),
        trigger: None,
        workflow_version: version(request)?,
    })
}

fn version(request: &Request) -> Result<Option<i64>, Refusal> {
    match request.data.get("workflow_version") {
        None | Some(Value::Null) => Ok(None),
        Some(version) => match version.as_i64() {
            Some(version) => Ok(Some(version)),
            None => Err(Refusal::Malformed("workflow_version must be a number".to_owned())),
        },
    }
}

fn options(request: &Request, temporary: bool) -> Result<RunOptions, Refusal> {
    let given = request.nested(request.object("execution_options")?.unwrap_or_else(Map::new));
    let wrong = |key: &str, known: &str| {
        Refusal::Malformed(format!("execution_options.{key} must be one of {known}"))
    };
    let detail = match given.text("event_detail")? {
        None => EventDetail::Full,
        Some(word) => {
            words::parse_event_detail(word).ok_or_else(|| wrong("event_detail", "full, outputs, terminal"))?
        }
    };
    let keep = match given.text("asset_persistence")? {
        None if temporary => AssetPersistence::Temporary,
        None => AssetPersistence::Auto,
        Some(word) => words::parse_asset_persistence(word)
            .ok_or_else(|| wrong("asset_persistence", "auto, temporary"))?,
    };
    Ok(RunOptions {
        event_detail: detail.into(),
        asset_persistence: keep.into(),
        strict: false,
        buffer_limit: 0,
        supervised: request.flag("supervise")?,
    })
}

/// A refusal that the client can do nothing about at this moment.
async fn draining(connection: &Connection, workflow_id: Option<&str>) -> Result<(), Refusal> {
    let text = "This server is restarting. Reconnect and try again.";
    let frame = [
        ("type", "error".into()),
        ("message", text.into()),
        ("error", text.into()),
        ("thread_id", Value::Null),
        ("workflow_id", workflow_id.map_or(Value::Null, Into::into)),
    ];
    connection.send(fields(frame)).await?;
    Ok(())
}

/// The kernel did not take the run. A wrong request is told as one; whatever else happened ends the run that the client
/// waits for, so that it does not wait for ever.
async fn refused(
    connection: &Connection,
    request: &Request,
    job_id: &str,
    workflow_id: Option<&str>,
    error: Error,
) -> Result<(), Refusal> {
    let code = match &error {
        Error::Service(status) => reason::reason_of(status),
        _ => String::new(),
    };
    match code.as_str() {
        reason::JOB_ID_USED => return Err(Refusal::Failed("Job id already used".to_owned())),
        reason::MALFORMED_GRAPH | reason::INVALID_FIELD => return Err(error.into()),
        reason::DRAINING => return draining(connection, workflow_id).await,
        _ => {}
    }
    let code = match code.as_str() {
        reason::WORKFLOW_NOT_FOUND | reason::VERSION_NOT_FOUND => "NOT_FOUND",
        "" => "SERVICE_UNAVAILABLE",
        other => other,
    };
    let text = text_of(&error);
    tracing::warn!(job_id, code, "a run could not be started");
    connection.reply(request, ack(workflow_id)).await?;
    connection
        .queue
        .keep(job_update(
            job_id,
            workflow_id,
            "failed",
            Some((&text, Some(code))),
        ))
        .await?;
    Ok(())
}
