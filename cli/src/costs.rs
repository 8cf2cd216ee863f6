//! `atelier costs`.

use serde_json::{Value, json};

use crate::{
    OK,
    args::{Calls, Costs, CostsCommand, Filter, Group, Listing},
    client::Client,
    print,
};

/// Does it.
///
/// # Errors
/// The server refused or cannot be reached.
pub async fn costs(client: &Client, command: Costs) -> anyhow::Result<u8> {
    let Costs {
        command,
        by,
        time_zone,
        calls,
    } = command;
    match command {
        None => by_group(client, by, time_zone, &calls).await,
        Some(CostsCommand::Summary(calls)) => summary(client, &calls).await,
        Some(CostsCommand::List { filter, listing }) => list(client, &filter, &listing).await,
        Some(CostsCommand::ByProvider(calls)) => by_group(client, Group::Provider, None, &calls).await,
        Some(CostsCommand::ByModel(calls)) => by_group(client, Group::Model, None, &calls).await,
    }
}
async fn report(
    client: &Client,
    by: Group,
    time_zone: Option<String>,
    filter: &Filter,
) -> anyhow::Result<Value> {
    let mut query = filter.query();
    query.push(("group", by.name().to_owned()));
    query.extend(time_zone.map(|zone| ("time_zone", zone)));
    client.get("/api/v1/costs", &query).await
}
async fn by_group(
    client: &Client,
    by: Group,
    time_zone: Option<String>,
    calls: &Calls,
) -> anyhow::Result<u8> {
    let report = report(client, by, time_zone, &calls.filter).await?;
    if calls.json {
        print::json_line(&report)?;
        return Ok(OK);
    }
    let mut rows = groups(&report);
    rows.push(row("total", &report.get("total").cloned().unwrap_or_default()));
    print::table(&header(by.name()), rows)?;
    Ok(OK)
}
async fn summary(client: &Client, calls: &Calls) -> anyhow::Result<u8> {
    let providers = report(client, Group::Provider, None, &calls.filter).await?;
    let models = report(client, Group::Model, None, &calls.filter).await?;
    let total = providers.get("total").cloned().unwrap_or_default();
    if calls.json {
        print::json_line(&json!({
            "overall": total,
            "by_provider": providers.get("groups"),
            "by_model": models.get("groups"),
        }))?;
        return Ok(OK);
    }
    print::table(&header(""), vec![row("total", &total)])?;
    for (name, report) in [("provider", &providers), ("model", &models)] {
        let rows = groups(report);
        if !rows.is_empty() {
            print::line("")?;
            print::table(&header(name), rows)?;
        }
    }
    Ok(OK)
}
async fn list(client: &Client, filter: &Filter, listing: &Listing) -> anyhow::Result<u8> {
    let limit = print::limit(&listing.limit)?;
    let calls = client
        .list("/api/v1/generations", "generations", &filter.query(), limit)
        .await?;
    if listing.json {
        for call in &calls {
            print::json_line(&call_line(call))?;
        }
        return Ok(OK);
    }
    if calls.is_empty() {
        print::line("(no results)")?;
        return Ok(OK);
    }
    let header = [
        "created_at",
        "provider",
        "model",
        "cost",
        "in",
        "out",
        "units",
        "status",
        "assets",
    ];
    print::table(&header, calls.iter().map(call_row).collect())?;
    Ok(OK)
}
/// What a line of a list tells of a call.
fn call_line(call: &Value) -> Value {
    let keys = [
        "id",
        "created_at",
        "provider",
        "model",
        "capability",
        "status",
        "cost",
        "currency",
        "input_tokens",
        "output_tokens",
        "quantity",
        "billing_unit",
        "unit_price",
        "price_source",
        "asset_ids",
        "job_id",
        "node_id",
    ];
    let pair = |key: &str| (key.to_owned(), call.get(key).cloned().unwrap_or(Value::Null));
    Value::Object(keys.into_iter().map(pair).collect())
}
fn call_row(call: &Value) -> Vec<String> {
    let text = |key: &str| print::text(call, key);
    // An open call has no cost to be unpriced.
    let cost = match (text("cost"), text("status").as_str()) {
        (cost, "running") if cost.is_empty() => "running".to_owned(),
        (cost, _) => print::cost(&cost, &text("currency")),
    };
    let units = format!("{} {}", text("quantity"), text("billing_unit"));
    vec![
        text("created_at"),
        text("provider"),
        text("model"),
        cost,
        text("input_tokens"),
        text("output_tokens"),
        units.trim().to_owned(),
        text("status"),
        text("asset_ids"),
    ]
}
fn groups(report: &Value) -> Vec<Vec<String>> {
    let groups = report.get("groups").and_then(Value::as_array);
    groups
        .into_iter()
        .flatten()
        .map(|group| row(&print::text(group, "key"), group))
        .collect()
}
fn header(by: &str) -> [&str; 9] {
    [
        by,
        "cost",
        "calls",
        "completed",
        "failed",
        "cancelled",
        "interrupted",
        "unpriced",
        "running",
    ]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w_241_a_failed_priced_call_shows_its_status_and_cost() {
        let call = json!({
            "provider": "acme", "model": "m1", "status": "failed", "cost": "0.02", "currency": "USD",
            "quantity": "1", "billing_unit": "images", "asset_ids": [],
        });
        let row = call_row(&call);
        assert_eq!(row[1..4], ["acme", "m1", "$0.02"]);
        assert_eq!(row[6..9], ["1 images", "failed", ""]);
        let open = json!({"status": "running", "cost": null});
        assert_eq!(call_row(&open)[3], "running");
        let unpriced = json!({"status": "completed", "cost": null});
        assert_eq!(call_row(&unpriced)[3], "unpriced");
    }

    #[test]
    fn w_240_a_line_has_status_and_assets() {
        let line = call_line(&json!({"status": "completed", "asset_ids": ["a1"]}));
        assert_eq!(
            (&line["status"], &line["asset_ids"]),
            (&json!("completed"), &json!(["a1"]))
        );
    }
}
