//! The REST interface: one file per resource, translation only.

pub(crate) mod assets;
pub(crate) mod body;
pub(crate) mod budgets;
pub(crate) mod check;
pub(crate) mod content;
pub(crate) mod costs;
pub(crate) mod escalations;
pub(crate) mod field;
pub(crate) mod files;
pub(crate) mod generate;
pub(crate) mod generations;
pub(crate) mod graph;
pub(crate) mod jobs;
pub(crate) mod models;
pub(crate) mod nodes;
pub(crate) mod probes;
pub(crate) mod range;
pub(crate) mod reach;
pub(crate) mod storage;
pub(crate) mod versions;
pub(crate) mod workflows;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use prost_types::Timestamp;

use crate::error::Error;

/// Rows of a page when nothing is asked.
const DEFAULT_LIMIT: i32 = 50;
/// Most rows of a page.
const MAX_LIMIT: i32 = 500;

/// How many rows a page shall have.
///
/// # Errors
/// A wrong field, when it is not 1 to 500.
fn page_size(limit: Option<i32>) -> Result<i32, Error> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if (1..=MAX_LIMIT).contains(&limit) {
        return Ok(limit);
    }
    Err(Error::field("limit", format!("must be 1 to {MAX_LIMIT}")))
}

/// The cursor to the next page; null at the end.
fn next(token: String) -> Option<String> {
    Some(token).filter(|token| !token.is_empty())
}

/// An instant, or a day that stands for its start in UTC.
///
/// # Errors
/// A wrong field, when it is neither.
fn instant(field: &str, text: Option<&str>) -> Result<Option<Timestamp>, Error> {
    let Some(text) = text else { return Ok(None) };
    let at = DateTime::parse_from_rfc3339(text)
        .map(|at| at.with_timezone(&Utc))
        .ok();
    let day = || {
        text.parse::<NaiveDate>()
            .ok()
            .map(|day| day.and_time(NaiveTime::MIN).and_utc())
    };
    let at = at.or_else(day).ok_or_else(|| {
        Error::field(
            field,
            "must be an instant like 2026-11-30T12:00:00Z, or a day like 2026-11-30",
        )
    })?;
    Ok(Some(atelier_proto::time::proto_from_micros(
        at.timestamp_micros(),
    )))
}

/// A word of a closed set.
///
/// # Errors
/// A wrong field that tells the set.
fn word<T>(
    field: &str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Option<T>,
    known: &str,
) -> Result<Option<T>, Error> {
    let Some(text) = text else { return Ok(None) };
    parse(text)
        .map(Some)
        .ok_or_else(|| Error::field(field, format!("must be one of {known}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_instants_are_checked() {
        assert_eq!(page_size(None).expect("default"), 50);
        assert!(page_size(Some(0)).is_err() && page_size(Some(501)).is_err() && page_size(Some(-1)).is_err());
        let day = instant("since", Some("2026-11-30")).expect("day").expect("some");
        let at = instant("since", Some("2026-11-30T01:00:00+01:00"))
            .expect("instant")
            .expect("some");
        assert_eq!(day, at);
        assert!(instant("since", Some("yesterday")).is_err());
    }
}
