//! `atelier generate`: one call to a provider, through the same seam as every other.

mod files;

use std::io::{IsTerminal, Read, Write};
use std::path::Path;

use anyhow::Context;
use futures_util::StreamExt;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};

use crate::{
    FAILED, INTERRUPTED, OK,
    args::{Generate, Kind},
    client::Client,
    generations::segment,
    print,
    run::params,
};

/// Longest prompt that is read from stdin, in bytes.
const MAX_PROMPT: u64 = 1024 * 1024;

/// Does it; `goes_on` says whether the server stays when this process ends.
///
/// # Errors
/// A file cannot be read or written; the server refused or cannot be reached.
pub async fn generate(client: &Client, command: Generate, goes_on: bool) -> anyhow::Result<u8> {
    if command.list_models {
        return list(client, &command).await;
    }
    anyhow::ensure!(
        goes_on || !command.background,
        "--background needs a server that is up: start one with `atelier up`, or name one with --server"
    );
    // Everything of the command line is read before anything is paid for.
    let body = match body(&command).await {
        Ok(body) => body,
        Err(error) => return refused(&command, error),
    };
    if command.background {
        return match client.post("/api/v1/generations", &body).await {
            Ok(row) => started(&command, &row),
            Err(error) => refused(&command, error),
        };
    }
    let outcome = match follow(client, &command, &body).await {
        Ok(outcome) => outcome,
        Err(error) => return refused(&command, error),
    };
    if outcome.interrupted {
        print::aside(&format!(
            "Generation {} is cancelled. It may still be billed.",
            outcome.id()
        ));
        return Ok(INTERRUPTED);
    }
    if print::text(&outcome.row, "status") != "completed" {
        let why = match print::text(&outcome.row, "error") {
            why if why.is_empty() => outcome.error.clone(),
            why => why,
        };
        let error = anyhow::anyhow!("generation {}: {why}", outcome.id());
        return refused(&command, error);
    }
    finish(client, &command, &outcome).await
}

/// What a call came to.
#[derive(Default)]
struct Outcome {
    /// The row as it was last told.
    row: Value,
    /// The result, when there is one.
    result: Value,
    /// What the server said against it.
    error: String,
    /// Somebody pressed Ctrl-C.
    interrupted: bool,
    /// Text that was printed already.
    told: bool,
}
impl Outcome {
    fn id(&self) -> String {
        print::text(&self.row, "id")
    }
}

/// The request.
async fn body(command: &Generate) -> anyhow::Result<Value> {
    let mut params = params::pairs("--param", &command.params)?;
    let prompt = match command.prompt.as_deref().unwrap_or_default() {
        "-" => stdin()?,
        prompt => prompt.to_owned(),
    };
    let key = if command.kind == Kind::Speech {
        "text"
    } else {
        "prompt"
    };
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            params.insert(key.to_owned(), value);
        }
    };
    set(key, Some(prompt.into()));
    set("num_images", command.count.map(Into::into));
    set("width", command.width.map(Into::into));
    set("height", command.height.map(Into::into));
    set("aspect_ratio", command.aspect_ratio.clone().map(Into::into));
    set("negative_prompt", command.negative_prompt.clone().map(Into::into));
    set("seed", command.seed.map(Into::into));
    set("duration", command.duration.map(number));
    set("voice", command.voice.clone().map(Into::into));
    let mut images = Vec::new();
    for file in &command.images {
        images.push(files::reference(file).await?);
    }
    let from_picture = !images.is_empty();
    match images.len() {
        0 => {}
        1 => set("image", images.pop()),
        _ => set("images", Some(images.into())),
    }
    let mut body = Map::from_iter([
        (
            "capability".to_owned(),
            command.kind.capability(from_picture).into(),
        ),
        ("params".to_owned(), Value::Object(params)),
        ("surface".to_owned(), "cli".into()),
        ("background".to_owned(), command.background.into()),
        // Named here, so that no repeat of the request is paid for twice.
        (
            "idempotency_key".to_owned(),
            command
                .idempotency_key
                .clone()
                .unwrap_or_else(|| format!("cli:{}", uuid::Uuid::now_v7()))
                .into(),
        ),
    ]);
    for (key, value) in [("provider", &command.provider), ("model", &command.model)] {
        if let Some(value) = value {
            body.insert(key.to_owned(), value.as_str().into());
        }
    }
    Ok(body.into())
}

/// A whole number stays one.
fn number(value: f64) -> Value {
    let text = value.to_string();
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

fn stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(MAX_PROMPT)
        .read_to_string(&mut text)
        .context("cannot read the prompt from stdin")?;
    Ok(text.trim().to_owned())
}

/// Runs the call and shows how far it is; Ctrl-C cancels it.
async fn follow(client: &Client, command: &Generate, body: &Value) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut events = client.post_events("/api/v1/generations", body).await?;
    let bar = bar(command);
    let tell = command.kind == Kind::Text && command.out.is_none() && !command.json;
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            _ = tokio::signal::ctrl_c() => {
                bar.finish_and_clear();
                cancel(client, &outcome.id()).await;
                outcome.interrupted = true;
                return Ok(outcome);
            }
        };
        let Some(event) = event else { break };
        let mut event = event.with_context(|| lost(&outcome.id()))?;
        match event.get("type").and_then(Value::as_str) {
            Some("prediction") => {
                if let Some(row) = event.get_mut("generation") {
                    outcome.row = row.take();
                }
                bar.set_message(format!(
                    "{} {} {}",
                    print::text(&outcome.row, "provider"),
                    print::text(&outcome.row, "model"),
                    print::text(&outcome.row, "status"),
                ));
            }
            Some("progress") => {
                let of = |key: &str| event.get(key).and_then(Value::as_u64).unwrap_or(0);
                bar.set_style(style("{spinner} {bar:28} {pos}/{len} {wide_msg}"));
                bar.set_length(of("total"));
                bar.set_position(of("progress"));
            }
            Some("chunk") if tell && event.get("thinking") != Some(&Value::Bool(true)) => {
                let text = print::text(&event, "text");
                if !text.is_empty() {
                    bar.finish_and_clear();
                    outcome.told = true;
                    let mut out = std::io::stdout().lock();
                    out.write_all(text.as_bytes())?;
                    out.flush()?;
                }
            }
            Some("result") => outcome.result = event,
            Some("error") => outcome.error = print::text(&event, "message"),
            Some(_) | None => {}
        }
    }
    bar.finish_and_clear();
    Ok(outcome)
}

fn lost(id: &str) -> String {
    format!("lost touch with generation {id}, which goes on (`atelier generations get {id}` shows it)")
}

async fn cancel(client: &Client, id: &str) {
    if id.is_empty() {
        return;
    }
    let path = format!("/api/v1/generations/{}/cancel", segment(id));
    if let Err(error) = client.post(&path, &json!({})).await {
        print::aside(&format!("generation {id} could not be cancelled: {error}"));
    }
}

fn bar(command: &Generate) -> ProgressBar {
    if command.json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bar.set_style(style("{spinner} {wide_msg}"));
    bar.enable_steady_tick(std::time::Duration::from_millis(120));
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸─")
}

/// Says that a call goes on without us.
fn started(command: &Generate, row: &Value) -> anyhow::Result<u8> {
    if command.json {
        print::json_line(row)?;
    } else {
        print::line(&print::text(row, "id"))?;
    }
    Ok(OK)
}

/// Says why nothing was made.
fn refused(command: &Generate, error: anyhow::Error) -> anyhow::Result<u8> {
    if !command.json {
        return Err(error);
    }
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    print::json_line(&json!({"ok": false, "error": causes.join(": ")}))?;
    Ok(FAILED)
}

/// Writes what was made and says where it is and what it cost.
async fn finish(client: &Client, command: &Generate, outcome: &Outcome) -> anyhow::Result<u8> {
    let text = outcome.result.get("output").and_then(Value::as_str);
    let to_stdout = command.out.as_deref() == Some(Path::new("-"));
    let mut written = Vec::new();
    match (command.kind, text) {
        (Kind::Text, Some(text)) if command.out.is_none() || to_stdout => {
            if outcome.told {
                print::line("")?;
            } else if !command.json {
                print::line(text)?;
            }
        }
        (Kind::Text, Some(text)) => written.push(files::write_text(command, &outcome.id(), text).await?),
        _ => written = files::write(client, command, &outcome.id(), &outcome.result).await?,
    }
    if let Some(wrong) = outcome.result.get("persist_error").and_then(Value::as_str) {
        print::aside(&format!("what was made could not be kept: {wrong}"));
    }
    let row = &outcome.row;
    if command.json {
        let mut summary = json!({
            "ok": true,
            "generation_id": outcome.id(),
            "provider": row.get("provider"),
            "model": row.get("model"),
            "prompt": command.prompt,
            "cost": row.get("cost"),
            "currency": row.get("currency"),
            "asset_ids": row.get("asset_ids"),
            "files": written,
            "text": text,
        });
        if let (Kind::Image, Some(summary)) = (command.kind, summary.as_object_mut()) {
            summary.insert("images".to_owned(), written.into());
        }
        print::json_line(&summary)?;
        return Ok(OK);
    }
    if to_stdout {
        return Ok(OK);
    }
    for file in &written {
        print::line(&print::text(file, "path"))?;
    }
    let cost = print::cost(&print::text(row, "cost"), &print::text(row, "currency"));
    print::aside(&format!("{cost}, generation {}", outcome.id()));
    Ok(OK)
}

/// Lists who can do it.
async fn list(client: &Client, command: &Generate) -> anyhow::Result<u8> {
    let mut query = vec![(
        "capability",
        command.kind.capability(!command.images.is_empty()).to_owned(),
    )];
    if let Some(provider) = &command.provider {
        query.push(("provider", provider.clone()));
    }
    let answer = client.get("/api/v1/models", &query).await?;
    let models = answer
        .get("models")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if command.json {
        for model in &models {
            print::json_line(model)?;
        }
        return Ok(OK);
    }
    let cells = |model: &Value| {
        let ready = model.get("available").and_then(Value::as_bool).unwrap_or(false);
        let note = if ready {
            "ready".to_owned()
        } else {
            print::text(model, "unavailable_reason")
        };
        vec![
            print::text(model, "provider"),
            print::text(model, "model"),
            print::text(model, "price"),
            note,
        ]
    };
    print::table(
        &["provider", "model", "price", "note"],
        models.iter().map(cells).collect(),
    )?;
    Ok(OK)
}
