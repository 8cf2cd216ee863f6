//! Which command a frame means. The order of the checks is part of the contract (wire specification 2.1).

use atelier_common::trace;
use atelier_proto::value::{Map, Value};
use serde_json::Value as Json;

use super::decode::{Inbound, object};
use super::queue::Closed;
use super::refusal::Refusal;
use super::socket::{Connection, fields};
use super::{
    cancel_job, chat, control, get_status, inputs, reconnect_job, resume_job, rpc, run_job, set_mode, stop,
};

const NO_COMMAND: &str = "All messages must include a 'command' field. Use 'chat_message' command for chat.";

/// A command whose envelope is in order.
pub(crate) struct Request {
    /// Its name.
    pub(crate) command: String,
    /// Its data; empty when there are none.
    pub(crate) data: Map,
    /// What the client pairs replies by.
    pub(crate) request_id: Option<String>,
    /// The graph of a text frame, as it was written.
    pub(crate) graph: Option<Json>,
}

impl Request {
    /// A text that may be absent or null.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&str>, Refusal> {
        match self.data.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Str(text)) => Ok(Some(text)),
            Some(_) => Err(Refusal::Malformed(format!("{key} must be a string"))),
        }
    }

    /// The same, empty counting as absent.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn id(&self, key: &str) -> Result<Option<&str>, Refusal> {
        Ok(self.text(key)?.filter(|text| !text.is_empty()))
    }

    /// An object that may be absent or null.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn object(&self, key: &str) -> Result<Option<Map>, Refusal> {
        match self.data.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => object(value)
                .map(Some)
                .ok_or_else(|| Refusal::Malformed(format!("{key} must be an object"))),
        }
    }

    /// The truth of a flag; absent is false.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn flag(&self, key: &str) -> Result<bool, Refusal> {
        match self.data.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(Refusal::Malformed(format!("{key} must be a boolean"))),
        }
    }

    /// The data of a nested object, under the same command.
    pub(crate) fn nested(&self, data: Map) -> Self {
        Self {
            command: self.command.clone(),
            data,
            request_id: None,
            graph: None,
        }
    }
}

/// Does what a frame asks for.
///
/// # Errors
/// The connection is closing.
pub(crate) async fn handle(connection: &mut Connection, inbound: Inbound) -> Result<(), Closed> {
    let Inbound { frame, graph } = inbound;
    let Some(frame) = frame else {
        return invalid_message(connection, NO_COMMAND.to_owned(), None).await;
    };
    let has_command = frame.get("command").is_some_and(|command| !command.is_null());
    let kind = frame.get("type").and_then(Value::as_str).unwrap_or_default();
    if !has_command && control::is_control(kind) {
        return control::handle(connection, kind, &frame).await;
    }
    let request_id = frame
        .get("request_id")
        .and_then(Value::as_str)
        .map(ToOwned::to_owned);
    let Some(command) = frame.get("command").and_then(Value::as_str) else {
        return invalid_message(connection, NO_COMMAND.to_owned(), request_id).await;
    };
    let data = match frame.get("data") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(data) => object(data).ok_or("data must be an object"),
    };
    let id_in_order = frame
        .get("request_id")
        .is_none_or(|id| id.is_null() || id.as_str().is_some());
    let data = match data {
        Ok(data) if id_in_order => data,
        wrong => {
            let detail = wrong.err().unwrap_or("request_id must be a string");
            let refusal = Refusal::Failed(format!("Malformed command envelope: {detail}"));
            return refuse(connection, command, request_id, refusal).await;
        }
    };
    let context = frame
        .get("traceparent")
        .and_then(Value::as_str)
        .and_then(trace::Context::parse);
    let context = context.map_or_else(trace::Context::root, |above| above.child());
    let request = Request {
        command: command.to_owned(),
        data,
        request_id,
        graph,
    };
    match context.scope(dispatch(connection, &request)).await {
        Ok(()) => Ok(()),
        Err(refusal) => refuse(connection, &request.command, request.request_id, refusal).await,
    }
}

async fn dispatch(connection: &mut Connection, request: &Request) -> Result<(), Refusal> {
    match request.command.as_str() {
        "run_job" => run_job::run(connection, request).await,
        "cancel_job" => cancel_job::run(connection, request).await,
        "reconnect_job" => reconnect_job::run(connection, request).await,
        "resume_job" => resume_job::resume(connection, request).await,
        "pause_job" => resume_job::pause(connection, request).await,
        "get_status" => get_status::run(connection, request).await,
        "set_mode" => set_mode::run(connection, request).await,
        "stop" => stop::run(connection, request).await,
        "clear_models" => {
            connection
                .reply(
                    request,
                    fields([("message", "No models are held by this server".into())]),
                )
                .await?;
            Ok(())
        }
        "stream_input" | "end_input_stream" => inputs::stream(connection, request).await,
        "update_node_properties" => inputs::update_properties(connection, request).await,
        "chat_message" | "resume_chat" | "list_chat_turns" | "inference" => {
            chat::run(connection, request).await
        }
        command if rpc::is_rpc(command) => rpc::run(connection, request).await,
        _ => Err(Refusal::plain("Unknown command")),
    }
}

async fn refuse(
    connection: &Connection,
    command: &str,
    request_id: Option<String>,
    refusal: Refusal,
) -> Result<(), Closed> {
    let Some(mut reply) = refusal.reply(command) else {
        return Err(Closed);
    };
    if let Some(id) = request_id {
        reply.insert("request_id".to_owned(), id.into());
    }
    connection.queue.keep(reply).await
}

/// Says that a frame is no message at all.
pub(crate) async fn invalid_message(
    connection: &Connection,
    message: String,
    request_id: Option<String>,
) -> Result<(), Closed> {
    let keys = vec![("message", Value::from(message))];
    refuse(
        connection,
        "",
        request_id,
        Refusal::Plain("invalid_message".to_owned(), keys),
    )
    .await
}
