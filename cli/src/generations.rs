//! `atelier generations`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    FAILED, OK,
    args::{Filter, Generations, Listing},
    client::{Client, Refused},
    print,
};

/// Does it.
///
/// # Errors
/// The server refused or cannot be reached.
pub async fn generations(client: &Client, command: Generations) -> anyhow::Result<u8> {
    match command {
        Generations::List { filter, listing } => list(client, &filter, &listing).await,
        Generations::Get { id, json } => get(client, &id, json).await,
        Generations::Sweep { json } => sweep(client, json).await,
        Generations::Await { id, timeout, json } => wait(client, &id, timeout, json).await,
        Generations::Cancel { id, json } => cancel(client, &id, json).await,
    }
}
async fn list(client: &Client, filter: &Filter, listing: &Listing) -> anyhow::Result<u8> {
    let limit = print::limit(&listing.limit)?;
    let rows = client
        .list("/api/v1/generations", "generations", &filter.query(), limit)
        .await?;
    if listing.json {
        for row in &rows {
            print::json_line(&short(row))?;
        }
        return Ok(OK);
    }
    if rows.is_empty() {
        print::line("No generations recorded.")?;
        return Ok(OK);
    }
    let cells = |row: &Value| {
        vec![
            print::text(row, "id"),
            print::text(row, "status"),
            print::text(row, "provider"),
            print::text(row, "model"),
            print::text(row, "capability"),
            cost_cell(row),
            print::text(row, "asset_ids"),
            print::text(row, "started_at"),
        ]
    };
    let header = [
        "id",
        "status",
        "provider",
        "model",
        "capability",
        "cost",
        "assets",
        "started",
    ];
    print::table(&header, rows.iter().map(cells).collect())?;
    Ok(OK)
}
/// What a line of the ledger shows.
fn short(row: &Value) -> Value {
    let mut out = serde_json::Map::new();
    for key in [
        "id",
        "status",
        "provider",
        "model",
        "capability",
        "cost",
        "currency",
        "asset_ids",
        "job_id",
        "node_id",
        "started_at",
        "duration_ms",
        "error",
    ] {
        out.insert(key.to_owned(), row.get(key).cloned().unwrap_or(Value::Null));
    }
    Value::Object(out)
}
fn cost_cell(row: &Value) -> String {
    let amount = print::text(row, "cost");
    if amount.is_empty() && print::text(row, "status") == "running" {
        return "running".to_owned();
    }
    print::cost(&amount, &print::text(row, "currency"))
}
async fn get(client: &Client, id: &str, json: bool) -> anyhow::Result<u8> {
    let row = match client
        .get(&format!("/api/v1/generations/{}", segment(id)), &[])
        .await
    {
        Ok(row) => row,
        Err(error)
            if error
                .downcast_ref::<Refused>()
                .is_some_and(|refused| refused.status == 404) =>
        {
            anyhow::bail!("Generation {id} was not found.")
        }
        Err(error) => return Err(error),
    };
    show(&row, json)
}
/// The whole row.
fn show(row: &Value, json: bool) -> anyhow::Result<u8> {
    if json {
        print::json_line(row)?;
        return Ok(OK);
    }
    let origin = row.get("origin").cloned().unwrap_or_default();
    let reconcile = row.get("reconcile").cloned().unwrap_or_default();
    print::record(&[
        ("id", print::text(row, "id")),
        ("status", print::text(row, "status")),
        ("provider", print::text(row, "provider")),
        ("model", print::text(row, "model")),
        ("capability", print::text(row, "capability")),
        ("cost", cost_cell(row)),
        ("price source", print::text(row, "price_source")),
        (
            "quantity",
            format!(
                "{} {}",
                print::text(row, "quantity"),
                print::text(row, "billing_unit")
            )
            .trim()
            .to_owned(),
        ),
        ("estimated", print::text(row, "estimated_cost")),
        ("assets", print::text(row, "asset_ids")),
        ("request id", print::text(row, "provider_request_id")),
        ("reconcile", print::text(&reconcile, "state")),
        ("surface", print::text(&origin, "surface")),
        ("job", print::text(row, "job_id")),
        ("node", print::text(row, "node_id")),
        ("started", print::text(row, "started_at")),
        ("completed", print::text(row, "completed_at")),
        ("duration", print::duration(row, "duration_ms")),
        ("error", print::text(row, "error")),
        ("error code", print::text(row, "error_code")),
        ("params", print::text(row, "params")),
    ])?;
    Ok(OK)
}
async fn sweep(client: &Client, json: bool) -> anyhow::Result<u8> {
    let answer = client.post("/api/v1/generations/sweep", &json!({})).await?;
    if json {
        print::json_line(&answer)?;
    } else {
        let interrupted = answer.get("interrupted").and_then(Value::as_u64).unwrap_or(0);
        let interrupted = usize::try_from(interrupted).unwrap_or(usize::MAX);
        print::line(&format!(
            "{} interrupted.",
            print::count(interrupted, "generation")
        ))?;
    }
    Ok(OK)
}
/// Waits; whether the row is settled decides the exit code.
async fn wait(client: &Client, id: &str, timeout: u64, json: bool) -> anyhow::Result<u8> {
    let path = format!("/api/v1/generations/{}/await", segment(id));
    let limit = Duration::from_secs(timeout + 60);
    let answer = match client
        .get_patiently(&path, &[("timeout", timeout.to_string())], limit)
        .await
    {
        Ok(answer) => answer,
        Err(error)
            if error
                .downcast_ref::<Refused>()
                .is_some_and(|refused| refused.status == 404) =>
        {
            anyhow::bail!("Generation {id} was not found.")
        }
        Err(error) => return Err(error),
    };
    let row = answer.get("generation").cloned().unwrap_or_default();
    if print::text(&row, "status") != "running" {
        return show(&row, json);
    }
    if json {
        let waited = answer.get("waited_seconds").cloned().unwrap_or_default();
        print::json_line(&json!({ "generation_id": id, "status": "running", "waited_seconds": waited }))?;
    } else {
        print::line(&format!("Generation {id} is still running."))?;
    }
    Ok(FAILED)
}
async fn cancel(client: &Client, id: &str, json: bool) -> anyhow::Result<u8> {
    let answer = client
        .post(&format!("/api/v1/generations/{}/cancel", segment(id)), &json!({}))
        .await?;
    let cancelled = answer.get("cancelled").and_then(Value::as_bool).unwrap_or(false);
    if json {
        print::json_line(&answer)?;
    } else if cancelled {
        print::line(&format!("Generation {id} is cancelled. It may still be billed."))?;
    } else {
        print::line(&format!(
            "Generation {id} was not cancelled: {}.",
            print::text(&answer, "error")
        ))?;
    }
    Ok(if cancelled { OK } else { FAILED })
}
/// An id as one segment of a path.
#[must_use]
pub fn segment(id: &str) -> String {
    url::form_urlencoded::byte_serialize(id.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}
