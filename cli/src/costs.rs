//! `atelier costs`.

use serde_json::Value;

use crate::{OK, args::Costs, client::Client, print};

/// Does it.
///
/// # Errors
/// The server refused or cannot be reached.
pub async fn costs(client: &Client, command: Costs) -> anyhow::Result<u8> {
    let Costs { by, filter, json } = command;
    let mut query = filter.query();
    query.push(("group", by.name().to_owned()));
    let report = client.get("/api/v1/costs", &query).await?;
    if json {
        print::json_line(&report)?;
        return Ok(OK);
    }
    let total = report.get("total").cloned().unwrap_or_default();
    let groups = report
        .get("groups")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let mut rows: Vec<Vec<String>> = groups
        .iter()
        .map(|group| row(&print::text(group, "key"), group))
        .collect();
    rows.push(row("total", &total));
    print::table(
        &[
            by.name(),
            "cost",
            "calls",
            "completed",
            "failed",
            "cancelled",
            "interrupted",
            "unpriced",
            "running",
        ],
        rows,
    )?;
    Ok(OK)
}
fn row(name: &str, summary: &Value) -> Vec<String> {
    vec![
        name.to_owned(),
        amounts(summary),
        print::text(summary, "call_count"),
        print::text(summary, "completed_count"),
        print::text(summary, "failed_count"),
        print::text(summary, "cancelled_count"),
        print::text(summary, "interrupted_count"),
        print::text(summary, "unpriced_count"),
        print::text(summary, "running_count"),
    ]
}
/// One amount per currency; never merged.
fn amounts(summary: &Value) -> String {
    let costs = summary
        .get("costs")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if costs.is_empty() {
        return "$0.00".to_owned();
    }
    let amount = |cost: &Value| print::cost(&print::text(cost, "amount"), &print::text(cost, "currency"));
    costs.iter().map(amount).collect::<Vec<_>>().join(" + ")
}
