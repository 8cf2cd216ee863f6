//! `atelier budgets`.

use serde_json::{Value, json};

use crate::{
    OK,
    args::{Budgets, Listing, SetBudget},
    client::Client,
    generations::segment,
    print,
};

const PATH: &str = "/api/v1/budgets";

/// Does it.
///
/// # Errors
/// The server refused or cannot be reached.
pub async fn budgets(client: &Client, command: Budgets) -> anyhow::Result<u8> {
    match command {
        Budgets::List { user, listing } => list(client, user, &listing).await,
        Budgets::Get { id, json } => {
            let budget = client.get(&format!("{PATH}/{}", segment(&id)), &[]).await?;
            show(&budget, json)
        }
        Budgets::Set(set) => {
            let as_json = set.json;
            let budget = client.put(PATH, &body(*set)).await?;
            show(&budget, as_json)
        }
        Budgets::Delete { id, json } => {
            client.delete(&format!("{PATH}/{}", segment(&id))).await?;
            if json {
                print::json_line(&json!({ "id": id, "deleted": true }))?;
            } else {
                print::line(&format!("Budget {id} is gone."))?;
            }
            Ok(OK)
        }
    }
}
async fn list(client: &Client, user: Option<String>, listing: &Listing) -> anyhow::Result<u8> {
    let limit = print::limit(&listing.limit)?;
    let query: Vec<_> = user.into_iter().map(|user| ("user_id", user)).collect();
    let budgets = client.list(PATH, "budgets", &query, limit).await?;
    if listing.json {
        for budget in &budgets {
            print::json_line(budget)?;
        }
        return Ok(OK);
    }
    if budgets.is_empty() {
        print::line("No budgets.")?;
        return Ok(OK);
    }
    let cells = |budget: &Value| {
        vec![
            print::text(budget, "id"),
            bounds(budget),
            print::text(budget, "period"),
            limit_of(budget),
            amount(budget, "spent"),
            amount(budget, "held"),
            amount(budget, "remaining"),
            calls(budget),
        ]
    };
    let header = [
        "id",
        "bounds",
        "period",
        "limit",
        "spent",
        "held",
        "remaining",
        "calls",
    ];
    print::table(&header, budgets.iter().map(cells).collect())?;
    Ok(OK)
}
fn show(budget: &Value, as_json: bool) -> anyhow::Result<u8> {
    if as_json {
        print::json_line(budget)?;
        return Ok(OK);
    }
    let managed = budget.get("managed").and_then(Value::as_bool).unwrap_or(false);
    print::record(&[
        ("id", print::text(budget, "id")),
        ("bounds", bounds(budget)),
        ("user", print::text(budget, "user_id")),
        ("period", print::text(budget, "period")),
        ("time zone", print::text(budget, "time_zone")),
        ("limit", limit_of(budget)),
        ("spent", amount(budget, "spent")),
        ("held", amount(budget, "held")),
        ("remaining", amount(budget, "remaining")),
        ("calls", calls(budget)),
        ("unpriced", print::text(budget, "unpriced")),
        ("assumed cost", amount(budget, "assumed_cost")),
        ("set by", if managed { "an admin" } else { "its user" }.to_owned()),
        ("since", print::text(budget, "period_start")),
        ("until", print::text(budget, "period_end")),
    ])?;
    Ok(OK)
}
fn bounds(budget: &Value) -> String {
    let (scope, key) = (print::text(budget, "scope"), print::text(budget, "key"));
    if key.is_empty() {
        scope
    } else {
        format!("{scope} {key}")
    }
}
/// An amount; nothing when there is none.
fn amount(budget: &Value, key: &str) -> String {
    match print::text(budget, key) {
        text if text.is_empty() => text,
        text => print::cost(&text, &print::text(budget, "currency")),
    }
}
fn limit_of(budget: &Value) -> String {
    match amount(budget, "limit") {
        none if none.is_empty() => "-".to_owned(),
        limit => limit,
    }
}
fn calls(budget: &Value) -> String {
    match print::text(budget, "max_calls") {
        none if none.is_empty() => print::text(budget, "calls"),
        most => format!("{} of {most}", print::text(budget, "calls")),
    }
}
fn body(set: SetBudget) -> Value {
    let SetBudget {
        limit,
        currency,
        period,
        scope,
        key,
        time_zone,
        max_calls,
        unpriced,
        assumed_cost,
        user,
        json: _,
    } = set;
    json!({
        "limit": limit,
        "currency": currency,
        "period": period.name(),
        "scope": scope.name(),
        "key": key,
        "time_zone": time_zone,
        "max_calls": max_calls,
        "unpriced": unpriced.map(super::args::Unpriced::name),
        "assumed_cost": assumed_cost,
        "user_id": user,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_bounded_and_left_is_told() {
        let budget = json!({
            "scope": "project", "key": "p1", "currency": "USD", "limit": "50.00", "remaining": "7.5",
            "calls": 3, "max_calls": 10,
        });
        assert_eq!(bounds(&budget), "project p1");
        assert_eq!(amount(&budget, "remaining"), "$7.5");
        assert_eq!(calls(&budget), "3 of 10");
        let counted = json!({"scope": "user", "key": "", "calls": 3, "limit": null, "max_calls": null});
        assert_eq!(
            (bounds(&counted), limit_of(&counted), calls(&counted)),
            ("user".into(), "-".into(), "3".into())
        );
    }
}
