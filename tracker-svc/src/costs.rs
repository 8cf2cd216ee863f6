//! Sums and counts over a user's rows, in SQL, over any number of rows, exact.
//!
//! Settled rows only; open ones are counted apart. Currencies are never merged. A database adds up whole numbers of
//! billionths: whole units and the rest apart, so that no sum overflows and no sum is a float.

use std::collections::BTreeMap;

use atelier_common::db::Db;
use chrono::DateTime;
use rust_decimal::Decimal;
use sea_orm::sea_query::Expr;
use sea_orm::{EntityTrait, FromQueryResult, QueryFilter, QuerySelect};

use crate::entity::generations::{Column, Entity};
use crate::error::Error;
use crate::filter::Filter;

/// What to group by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Totals only.
    Nothing,
    /// Provider.
    Provider,
    /// Provider and model.
    Model,
    /// Capability.
    Capability,
    /// Run.
    Job,
    /// Calendar day in UTC: of the settling, or of the opening for open rows.
    Day,
    /// Node of a run.
    Node,
}

/// Sums and counts of one group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The group's key; empty for the total, and for rows that have none.
    pub key: String,
    /// Sum per currency.
    pub costs: BTreeMap<String, Decimal>,
    /// Settled rows.
    pub calls: i64,
    /// Of those, completed.
    pub completed: i64,
    /// Of those, failed.
    pub failed: i64,
    /// Of those, cancelled.
    pub cancelled: i64,
    /// Of those, interrupted.
    pub interrupted: i64,
    /// Settled, cost unknown, something was sent.
    pub unpriced: i64,
    /// Settled, nothing was sent.
    pub unsent: i64,
    /// Open rows.
    pub running: i64,
}

/// Totals and groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Over everything.
    pub total: Summary,
    /// Per group, dearest first.
    pub groups: Vec<Summary>,
}

#[derive(Debug, FromQueryResult)]
struct Line {
    first: Option<String>,
    second: Option<String>,
    currency: Option<String>,
    whole: Option<String>,
    rest: Option<String>,
    calls: i64,
    completed: i64,
    failed: i64,
    cancelled: i64,
    interrupted: i64,
    unpriced: i64,
    unsent: i64,
    running: i64,
}

const COUNTS: [(&str, &str); 8] = [
    ("calls", "status <> 'running'"),
    ("completed", "status = 'completed'"),
    ("failed", "status = 'failed'"),
    ("cancelled", "status = 'cancelled'"),
    ("interrupted", "status = 'interrupted'"),
    (
        "unpriced",
        "status <> 'running' AND cost IS NULL AND submission <> 'accepted'",
    ),
    ("unsent", "status <> 'running' AND submission = 'accepted'"),
    ("running", "status = 'running'"),
];

const DAY: &str = "CAST(COALESCE(completed_at, created_at) / 86400000000 AS TEXT)";

/// Sums up.
///
/// # Errors
/// The database's.
pub async fn summarize(db: &Db, filter: &Filter, group: Group) -> Result<Report, Error> {
    let nothing = "CAST(NULL AS TEXT)";
    let (first, second) = match group {
        Group::Nothing => (nothing, nothing),
        Group::Provider => ("provider", nothing),
        Group::Model => ("provider", "model"),
        Group::Capability => ("capability", nothing),
        Group::Job => ("job_id", nothing),
        Group::Day => (DAY, nothing),
        Group::Node => ("job_id", "node_id"),
    };
    let mut select = Entity::find()
        .select_only()
        .expr_as(Expr::cust(first), "first")
        .expr_as(Expr::cust(second), "second")
        .column(Column::Currency)
        .expr_as(sum("cost / 1000000000"), "whole")
        .expr_as(sum("cost % 1000000000"), "rest");
    for (name, condition) in COUNTS {
        let count = format!("CAST(COALESCE(SUM(CASE WHEN {condition} THEN 1 ELSE 0 END), 0) AS BIGINT)");
        select = select.expr_as(Expr::cust(count), name);
    }
    for key in [first, second].into_iter().filter(|key| *key != nothing) {
        select = select.group_by(Expr::cust(key));
    }
    let lines = select
        .group_by(Expr::col(Column::Currency))
        .filter(filter.condition())
        .into_model::<Line>()
        .all(db.read())
        .await?;
    fold(&lines, filter, group)
}

fn sum(of: &str) -> Expr {
    Expr::cust(format!(
        "CAST(SUM(CASE WHEN status <> 'running' THEN {of} END) AS TEXT)"
    ))
}

fn fold(lines: &[Line], filter: &Filter, group: Group) -> Result<Report, Error> {
    let mut report = Report::default();
    let mut groups: BTreeMap<String, Summary> = BTreeMap::new();
    for line in lines {
        add(&mut report.total, line)?;
        if group != Group::Nothing {
            let key = key_of(line, filter, group);
            let summary = groups.entry(key.clone()).or_insert_with(|| Summary {
                key,
                ..Default::default()
            });
            add(summary, line)?;
        }
    }
    report.groups = groups.into_values().collect();
    // Stable, so equal ones stay in the order of their keys.
    report
        .groups
        .sort_by_key(|summary| std::cmp::Reverse(dearness(summary)));
    Ok(report)
}

fn dearness(summary: &Summary) -> (Decimal, Decimal) {
    let dollars = summary.costs.get("USD").copied().unwrap_or_default();
    let others = summary
        .costs
        .iter()
        .filter(|(currency, _)| *currency != "USD")
        .map(|(_, amount)| *amount);
    (dollars, others.max().unwrap_or_default())
}

fn key_of(line: &Line, filter: &Filter, group: Group) -> String {
    let first = line.first.clone().unwrap_or_default();
    let second = line.second.clone().unwrap_or_default();
    match group {
        Group::Nothing => String::new(),
        Group::Provider | Group::Capability | Group::Job => first,
        Group::Model => format!("{first}/{second}"),
        Group::Node if filter.job_id.is_some() || (first.is_empty() && second.is_empty()) => second,
        Group::Node => format!("{first}/{second}"),
        Group::Day => day(&first),
    }
}

fn day(number: &str) -> String {
    let seconds = number
        .parse::<i64>()
        .ok()
        .and_then(|days| days.checked_mul(86_400));
    let at = seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    at.map(|at| at.format("%Y-%m-%d").to_string()).unwrap_or_default()
}

fn add(summary: &mut Summary, line: &Line) -> Result<(), Error> {
    if let (Some(currency), Some(whole), Some(rest)) = (&line.currency, &line.whole, &line.rest) {
        let number = |text: &str| text.parse::<Decimal>().map_err(|_| Error::Corrupt("sum"));
        let billionth = Decimal::new(1, atelier_proto::money::SCALE);
        let amount = number(whole)? + number(rest)? * billionth;
        *summary.costs.entry(currency.clone()).or_default() += amount;
    }
    summary.calls += line.calls;
    summary.completed += line.completed;
    summary.failed += line.failed;
    summary.cancelled += line.cancelled;
    summary.interrupted += line.interrupted;
    summary.unpriced += line.unpriced;
    summary.unsent += line.unsent;
    summary.running += line.running;
    Ok(())
}
