//! `atelier jobs push`, `control` and `resume`: reaching into a run.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{
    OK,
    args::Jobs,
    client::Client,
    generations::segment,
    print,
    run::params::{json_or_text, pairs},
};

/// Longest wait for the outputs of a controlled node; the server waits a little less.
const CONTROL_WAIT: Duration = Duration::from_secs(310);

/// Does it.
///
/// # Errors
/// The server refused or cannot be reached.
pub(crate) async fn reach(client: &Client, command: Jobs) -> anyhow::Result<u8> {
    match command {
        Jobs::Push {
            id,
            name,
            value,
            text,
            finish,
            handle,
            input_id,
            json,
        } => {
            // Named here, so that a push whose answer is lost can be repeated.
            let input_id = input_id.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
            let mut body = Map::from_iter([
                ("name".to_owned(), name.as_str().into()),
                ("finish".to_owned(), finish.into()),
                ("input_id".to_owned(), input_id.into()),
            ]);
            if let Some(value) = value {
                let value = if text { value.into() } else { json_or_text(&value) };
                body.insert("value".to_owned(), value);
            }
            if let Some(handle) = handle {
                body.insert("handle".to_owned(), handle.into());
            }
            let answer = post(client, &id, "inputs", body.into()).await?;
            let created = answer.get("created").and_then(Value::as_bool).unwrap_or(false);
            say(&answer, json, || match (created, finish) {
                (false, _) => format!("Input {name} had this already; nothing was pushed."),
                (true, false) => format!("Pushed into {name}."),
                (true, true) => format!("Input {name} is finished."),
            })
        }
        Jobs::Control {
            id,
            node,
            properties,
            wait,
            json,
        } => {
            let body =
                json!({"node_id": node, "properties": pairs("--property", &properties)?, "wait": wait});
            let path = format!("/api/v1/jobs/{}/control", segment(&id));
            let answer = client.post_patiently(&path, &body, CONTROL_WAIT).await?;
            say(&answer, json, || match answer.get("outputs") {
                Some(outputs) if !outputs.is_null() => outputs.to_string(),
                _ => format!("Sent to {node}."),
            })
        }
        Jobs::Resume { id, state, json } => {
            let body = json!({"state": pairs("--state", &state)?});
            let answer = post(client, &id, "resume", body).await?;
            say(&answer, json, || {
                format!("Job {id} goes on. `atelier jobs events {id}` follows it.")
            })
        }
        Jobs::List { .. } | Jobs::Get { .. } | Jobs::Events { .. } | Jobs::Cancel { .. } => Ok(OK),
    }
}
async fn post(client: &Client, id: &str, what: &str, body: Value) -> anyhow::Result<Value> {
    client
        .post(&format!("/api/v1/jobs/{}/{what}", segment(id)), &body)
        .await
}
fn say(answer: &Value, json: bool, text: impl FnOnce() -> String) -> anyhow::Result<u8> {
    if json {
        print::json_line(answer)?;
    } else {
        print::line(&text())?;
    }
    Ok(OK)
}
