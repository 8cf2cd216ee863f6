//! Control frames: a `type` and no `command` (wire specification 2.7). No reply on success, but for a ping.

use atelier_common::clock::Clock;
use atelier_proto::value::{Map, Value};
use chrono::DateTime;

use super::commands::invalid_message;
use super::queue::Closed;
use super::socket::Connection;

/// A field that a control frame must have.
enum Field {
    Text(&'static str),
    Bool(&'static str),
    List(&'static str),
    Word(&'static str, &'static [&'static str]),
}

/// The types, and what they must carry. What they are about (tools of a page, approvals of a chat) is not done here, so
/// nothing waits for them.
fn fields(kind: &str) -> Option<&'static [Field]> {
    Some(match kind {
        "ping" => &[],
        "pong" => &[],
        "client_tools_manifest" => &[Field::List("tools")],
        "tool_result" => &[Field::Text("tool_call_id"), Field::Bool("ok")],
        "renderer_tool_result" => &[
            Field::Text("renderer_id"),
            Field::Text("tool_call_id"),
            Field::Bool("ok"),
        ],
        "tool_approval_response" => &[
            Field::Text("approval_id"),
            Field::Word("decision", &["allow", "allow_for_chat", "deny"]),
        ],
        "plan_approval_response" => &[
            Field::Text("approval_id"),
            Field::Word("decision", &["approve", "reject"]),
        ],
        "secret_request_response" => &[
            Field::Text("approval_id"),
            Field::Word("status", &["saved", "declined"]),
        ],
        _ => return None,
    })
}

/// Whether a type is one of the control types.
pub(crate) fn is_control(kind: &str) -> bool {
    fields(kind).is_some()
}

/// Takes a control frame.
///
/// # Errors
/// The connection is closing.
pub(crate) async fn handle(connection: &Connection, kind: &str, frame: &Map) -> Result<(), Closed> {
    if let Err(detail) = check(kind, frame) {
        return invalid_message(connection, format!("Malformed '{kind}' frame: {detail}"), None).await;
    }
    if kind == "ping" {
        return connection
            .queue
            .keep(stamped(&connection.app.clock, "pong"))
            .await;
    }
    Ok(())
}

fn check(kind: &str, frame: &Map) -> Result<(), String> {
    if let Some(ts) = frame.get("ts").filter(|ts| !ts.is_null())
        && ts.as_f64().is_none()
    {
        return Err("ts must be a number".to_owned());
    }
    for field in fields(kind).unwrap_or_default() {
        let (name, fine, wanted) = match field {
            Field::Text(name) => (
                name,
                frame.get(*name).is_some_and(|v| v.as_str().is_some()),
                "a string".to_owned(),
            ),
            Field::Bool(name) => (
                name,
                frame.get(*name).is_some_and(|v| v.as_bool().is_some()),
                "a boolean".to_owned(),
            ),
            Field::List(name) => (
                name,
                frame.get(*name).is_some_and(|v| v.as_list().is_some()),
                "a list".to_owned(),
            ),
            Field::Word(name, words) => {
                let word = frame.get(*name).and_then(Value::as_str).unwrap_or_default();
                (
                    name,
                    words.contains(&word),
                    format!("one of {}", words.join(", ")),
                )
            }
        };
        if !fine {
            return Err(format!("{name} must be {wanted}"));
        }
    }
    Ok(())
}

/// A frame of this type with the time in seconds.
pub(crate) fn stamped(clock: &Clock, kind: &str) -> Map {
    let since = clock
        .now()
        .signed_duration_since(DateTime::UNIX_EPOCH)
        .to_std()
        .unwrap_or_default();
    Map::from_iter([
        ("type".to_owned(), kind.into()),
        ("ts".to_owned(), Value::Float(since.as_secs_f64())),
    ])
}
