//! Sums and counts over a user's rows, in SQL, over any number of rows, exact.
//!
//! Settled rows only; open ones are counted apart. Currencies are never merged. A database adds up whole numbers of
//! billionths: whole units and the rest apart, so that no sum overflows and no sum is a float.

use std::collections::BTreeMap;

use atelier_common::db::Db;
use atelier_proto::common::v1::Surface;
use chrono::DateTime;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;
use sea_orm::sea_query::Expr;
use sea_orm::{EntityTrait, FromQueryResult, QueryFilter, QuerySelect, Select};

use crate::entity::generations::Entity;
use crate::error::Error;
use crate::filter::Filter;
use crate::ledger::clock;
use crate::time::LedgerTime;
use crate::zones;

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
    /// Calendar day in a time zone: of the settling, or of the opening for open rows.
    Day,
    /// Node of a run.
    Node,
    /// Project.
    Project,
    /// Surface.
    Surface,
    /// User.
    User,
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
    /// Sum of the estimates of open rows per currency.
    pub pending: BTreeMap<String, Decimal>,
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
    pending_whole: Option<String>,
    pending_rest: Option<String>,
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

/// When a row counts: when it was settled, or opened while it is not.
const INSTANT: &str = "COALESCE(completed_at, created_at)";
/// The currency of what a row adds: of its estimate while it is open.
const CURRENCY: &str = "CASE WHEN status = 'running' THEN estimated_currency ELSE currency END";

/// Sums up.
///
/// # Errors
/// The database's.
pub async fn summarize(
    db: &Db,
    time: &LedgerTime,
    filter: &Filter,
    group: Group,
    zone: &TimeZone,
) -> Result<Report, Error> {
    let day = match group {
        Group::Day => {
            let since = filter.since.unwrap_or_default();
            let until = clock(db.read(), time).await?;
            format!("CAST({} AS TEXT)", zones::day_number(INSTANT, zone, since, until))
        }
        _ => String::new(),
    };
    let lines = select(filter, group, &day)
        .into_model::<Line>()
        .all(db.read())
        .await?;
    fold(&lines, filter, group)
}

/// The one statement of a report: a line per group and currency. `day` is the SQL of a row's day.
#[must_use]
pub fn select(filter: &Filter, group: Group, day: &str) -> Select<Entity> {
    let nothing = "CAST(NULL AS TEXT)";
    let (first, second) = match group {
        Group::Nothing => (nothing, nothing),
        // Not the bare columns: SQLite would rather read all of the user's rows by an index that has their order than
        // the few of the filter by theirs.
        Group::Provider => ("COALESCE(provider, '')", nothing),
        Group::Model => ("COALESCE(provider, '')", "COALESCE(model, '')"),
        Group::Capability => ("COALESCE(capability, '')", nothing),
        Group::Job => ("COALESCE(job_id, '')", nothing),
        Group::Day => (day, nothing),
        Group::Node => ("COALESCE(job_id, '')", "COALESCE(node_id, '')"),
        Group::Project => ("COALESCE(project_id, '')", nothing),
        Group::Surface => ("CAST(surface AS TEXT)", nothing),
        Group::User => ("COALESCE(user_id, '')", nothing),
    };
    let mut select = Entity::find()
        .select_only()
        .expr_as(Expr::cust(first.to_owned()), "first")
        .expr_as(Expr::cust(second.to_owned()), "second")
        .expr_as(Expr::cust(CURRENCY), "currency")
        .expr_as(sum("<>", "cost / 1000000000"), "whole")
        .expr_as(sum("<>", "cost % 1000000000"), "rest")
        .expr_as(sum("=", "estimated_cost / 1000000000"), "pending_whole")
        .expr_as(sum("=", "estimated_cost % 1000000000"), "pending_rest");
    for (name, condition) in COUNTS {
        let count = format!("CAST(COALESCE(SUM(CASE WHEN {condition} THEN 1 ELSE 0 END), 0) AS BIGINT)");
        select = select.expr_as(Expr::cust(count), name);
    }
    for key in [first, second].into_iter().filter(|key| *key != nothing) {
        select = select.group_by(Expr::cust(key.to_owned()));
    }
    select.group_by(Expr::cust(CURRENCY)).filter(filter.condition())
}

fn sum(compare: &str, of: &str) -> Expr {
    Expr::cust(format!(
        "CAST(SUM(CASE WHEN status {compare} 'running' THEN {of} END) AS TEXT)"
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
        Group::Provider | Group::Capability | Group::Job | Group::Project | Group::User => first,
        Group::Surface => surface(&first),
        Group::Model => format!("{first}/{second}"),
        Group::Node if filter.job_id.is_some() || (first.is_empty() && second.is_empty()) => second,
        Group::Node => format!("{first}/{second}"),
        Group::Day => day(&first),
    }
}

/// The word of a surface.
fn surface(number: &str) -> String {
    let surface = number
        .parse::<i32>()
        .ok()
        .and_then(|number| Surface::try_from(number).ok());
    let name = surface.unwrap_or_default().as_str_name();
    name.trim_start_matches("SURFACE_").to_ascii_lowercase()
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
    add_amount(&mut summary.costs, &line.currency, &line.whole, &line.rest)?;
    add_amount(
        &mut summary.pending,
        &line.currency,
        &line.pending_whole,
        &line.pending_rest,
    )?;
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

fn add_amount(
    sums: &mut BTreeMap<String, Decimal>,
    currency: &Option<String>,
    whole: &Option<String>,
    rest: &Option<String>,
) -> Result<(), Error> {
    if let (Some(currency), Some(whole), Some(rest)) = (currency, whole, rest) {
        let number = |text: &str| text.parse::<Decimal>().map_err(|_| Error::Corrupt("sum"));
        let billionth = Decimal::new(1, atelier_proto::money::SCALE);
        let amount = number(whole)? + number(rest)? * billionth;
        *sums.entry(currency.clone()).or_default() += amount;
    }
    Ok(())
}
