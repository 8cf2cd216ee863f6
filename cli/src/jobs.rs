//! `atelier jobs`.

use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::{
    FAILED, OK,
    args::{Jobs, Listing},
    client::{Client, Refused},
    generations::segment,
    print, reach,
};

/// Does it.
///
/// # Errors
/// The server refused or cannot be reached.
pub async fn jobs(client: &Client, command: Jobs) -> anyhow::Result<u8> {
    match command {
        Jobs::List { status, listing } => list(client, status, &listing).await,
        Jobs::Get { id, json } => get(client, &id, json).await,
        Jobs::Events { id, after, json: _ } => events(client, &id, after).await,
        Jobs::Cancel { id, json } => cancel(client, &id, json).await,
        command @ (Jobs::Push { .. } | Jobs::Control { .. } | Jobs::Resume { .. }) => {
            reach::reach(client, command).await
        }
    }
}
async fn list(client: &Client, status: Option<String>, listing: &Listing) -> anyhow::Result<u8> {
    let limit = print::limit(&listing.limit)?;
    let query: Vec<_> = status.map(|status| ("status", status)).into_iter().collect();
    let rows = client.list("/api/v1/jobs", "jobs", &query, limit).await?;
    if listing.json {
        for row in &rows {
            print::json_line(row)?;
        }
        return Ok(OK);
    }
    if rows.is_empty() {
        print::line("No runs yet. Try: atelier run examples/six-images.json")?;
        return Ok(OK);
    }
    let cells = |row: &Value| {
        vec![
            print::text(row, "id"),
            print::text(row, "name"),
            print::text(row, "status"),
            print::text(row, "artifact_count"),
            cost_of(row),
            print::text(row, "created_at"),
            print::duration(row, "duration_ms"),
        ]
    };
    print::table(
        &["id", "name", "status", "results", "cost", "created", "took"],
        rows.iter().map(cells).collect(),
    )?;
    Ok(OK)
}
/// The cost of a run, with what is unknown of it.
pub(crate) fn cost_of(job: &Value) -> String {
    let Some(cost) = job.get("cost") else {
        return String::new();
    };
    let mut text = print::cost(&print::text(cost, "amount"), &print::text(cost, "currency"));
    for (key, word) in [("unpriced", "unpriced"), ("running", "running")] {
        let count = cost.get(key).and_then(Value::as_i64).unwrap_or(0);
        if count > 0 {
            text.push_str(&format!(" + {count} {word}"));
        }
    }
    text
}
async fn get(client: &Client, id: &str, json: bool) -> anyhow::Result<u8> {
    let job = match client.get(&format!("/api/v1/jobs/{}", segment(id)), &[]).await {
        Ok(job) => job,
        Err(error)
            if error
                .downcast_ref::<Refused>()
                .is_some_and(|refused| refused.status == 404) =>
        {
            anyhow::bail!("Job {id} was not found.")
        }
        Err(error) => return Err(error),
    };
    if json {
        print::json_line(&job)?;
        return Ok(OK);
    }
    print::record(&[
        ("id", print::text(&job, "id")),
        ("name", print::text(&job, "name")),
        ("workflow", print::text(&job, "workflow_id")),
        ("version", print::text(&job, "workflow_version")),
        ("inside of", print::text(&job, "parent_job_id")),
        ("status", print::text(&job, "status")),
        ("error", print::text(&job, "error")),
        ("error code", print::text(&job, "error_code")),
        ("results", print::text(&job, "artifact_count")),
        ("cost", cost_of(&job)),
        ("created", print::text(&job, "created_at")),
        ("started", print::text(&job, "started_at")),
        ("finished", print::text(&job, "finished_at")),
        ("took", print::duration(&job, "duration_ms")),
        ("params", print::text(&job, "params")),
        ("outputs", print::text(&job, "outputs")),
    ])?;
    for issue in job.get("issues").and_then(Value::as_array).into_iter().flatten() {
        print::line(&format!("issue      {}", issue_line(issue)))?;
    }
    Ok(OK)
}
/// An issue as one line: code, node, handle, message.
pub(crate) fn issue_line(issue: &Value) -> String {
    let (code, message) = (print::text(issue, "code"), print::text(issue, "message"));
    let place = [print::text(issue, "node_id"), print::text(issue, "property")];
    let place: Vec<String> = place.into_iter().filter(|part| !part.is_empty()).collect();
    if place.is_empty() {
        format!("{code}: {message}")
    } else {
        format!("{code} [{}]: {message}", place.join("."))
    }
}
async fn events(client: &Client, id: &str, after: i64) -> anyhow::Result<u8> {
    let mut events = std::pin::pin!(client.events(&segment(id), after));
    while let Some(event) = events.next().await {
        print::json_line(&event?)?;
    }
    Ok(OK)
}
async fn cancel(client: &Client, id: &str, json: bool) -> anyhow::Result<u8> {
    let answer = client
        .post(&format!("/api/v1/jobs/{}/cancel", segment(id)), &json!({}))
        .await?;
    let cancelled = answer.get("cancelled").and_then(Value::as_bool).unwrap_or(false);
    if json {
        print::json_line(&answer)?;
    } else if cancelled {
        print::line(&format!(
            "Job {id} is being cancelled. What was bought is kept, and may be billed."
        ))?;
    } else {
        print::line(&format!(
            "Job {id} was not cancelled: it is {}.",
            print::text(&answer, "status")
        ))?;
    }
    Ok(if cancelled { OK } else { FAILED })
}
