//! Named time zones: where days and months begin, and how a database counts days in one.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::entity::budget_words::Period;
use crate::error::Error;

/// The zone when nothing is said.
pub const UTC: &str = "UTC";
/// Microseconds of a second.
const MICROS_PER_SECOND: i64 = 1_000_000;
/// Microseconds of a day.
const DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// Changes of the clock that a statement can know. A zone has two a year at most, but for a few odd years.
const CHANGES: usize = 400;

/// A time zone by its name in the IANA database; the empty text is UTC.
///
/// # Errors
/// `Invalid` when there is none of this name.
pub fn named(name: &str) -> Result<(String, TimeZone), Error> {
    match name {
        "" | UTC => Ok((UTC.to_owned(), TimeZone::UTC)),
        name => {
            let zone = TimeZone::get(name).map_err(|_| {
                Error::invalid(
                    "time_zone",
                    "is not the name of a time zone, for instance Europe/Berlin",
                )
            })?;
            let name = zone.iana_name().unwrap_or(name).to_owned();
            Ok((name, zone))
        }
    }
}

/// The period that an instant lies in: when it begins, and when the next one does. One that never starts over begins at
/// 0 and has no end.
///
/// # Errors
/// `Corrupt` for instants beyond all calendars.
pub fn window(period: Period, zone: &TimeZone, at: i64) -> Result<(i64, Option<i64>), Error> {
    let wrong = |_| Error::Corrupt("instant");
    let local = Timestamp::from_microsecond(at)
        .map_err(wrong)?
        .to_zoned(zone.clone());
    let day = |zoned: Zoned| zoned.start_of_day().map_err(wrong);
    let (start, end) = match period {
        Period::Total => return Ok((0, None)),
        Period::Day => (day(local.clone())?, day(local.tomorrow().map_err(wrong)?)?),
        Period::Month => {
            let first = local.first_of_month().map_err(wrong)?;
            let next = local
                .last_of_month()
                .and_then(|last| last.tomorrow())
                .map_err(wrong)?;
            (day(first)?, day(next)?)
        }
    };
    Ok((
        start.timestamp().as_microsecond(),
        Some(end.timestamp().as_microsecond()),
    ))
}

/// SQL for the number of the local day since 1970 of an instant in microseconds, the same on both engines: a database
/// need not know any zone. Holds from `since` to `until`; beyond, the offset of the nearest of the two is taken.
#[must_use]
pub fn day_number(instant: &str, zone: &TimeZone, since: i64, until: i64) -> String {
    let offset_at = |at: Timestamp| i64::from(zone.to_offset(at).seconds()) * MICROS_PER_SECOND;
    let start = Timestamp::from_microsecond(since).unwrap_or(Timestamp::UNIX_EPOCH);
    let first = offset_at(start);
    let mut offset = first;
    let mut changes = Vec::new();
    for change in zone.following(start).take(CHANGES) {
        let at = change.timestamp();
        if at.as_microsecond() > until {
            break;
        }
        let next = i64::from(change.offset().seconds()) * MICROS_PER_SECOND;
        if next != offset {
            changes.push((at.as_microsecond(), next));
            offset = next;
        }
    }
    let shift = if changes.is_empty() {
        first.to_string()
    } else {
        // Latest first: most rows are young.
        let cases: String = changes
            .iter()
            .rev()
            .map(|(at, offset)| format!(" WHEN {instant} >= {at} THEN {offset}"))
            .collect();
        format!("(CASE{cases} ELSE {first} END)")
    };
    format!("(({instant}) + {shift}) / {DAY}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(text: &str) -> i64 {
        text.parse::<Timestamp>().expect("an instant").as_microsecond()
    }

    #[test]
    fn periods_begin_where_the_clocks_of_the_zone_say() {
        let (_, berlin) = named("Europe/Berlin").expect("a zone");
        let cases = [
            // The day on which the clocks go forward has 23 hours, the one on which they go back has 25.
            (
                Period::Day,
                "2026-03-29T10:00:00Z",
                "2026-03-28T23:00:00Z",
                "2026-03-29T22:00:00Z",
            ),
            (
                Period::Day,
                "2026-10-25T10:00:00Z",
                "2026-10-24T22:00:00Z",
                "2026-10-25T23:00:00Z",
            ),
            (
                Period::Day,
                "2026-12-31T23:30:00Z",
                "2026-12-31T23:00:00Z",
                "2027-01-01T23:00:00Z",
            ),
            (
                Period::Month,
                "2026-03-31T22:30:00Z",
                "2026-03-31T22:00:00Z",
                "2026-04-30T22:00:00Z",
            ),
            (
                Period::Month,
                "2026-02-10T00:00:00Z",
                "2026-01-31T23:00:00Z",
                "2026-02-28T23:00:00Z",
            ),
        ];
        for (period, at, start, end) in cases {
            let window = window(period, &berlin, micros(at)).expect("a period");
            assert_eq!(window, (micros(start), Some(micros(end))), "{at}");
        }
        let total = window(Period::Total, &berlin, micros("2026-01-01T00:00:00Z")).expect("a period");
        assert_eq!(total, (0, None));
    }

    #[test]
    fn names_are_of_the_database_and_nothing_else() {
        assert_eq!(named("").expect("utc").0, "UTC");
        assert_eq!(named("europe/berlin").expect("a zone").0, "Europe/Berlin");
        for wrong in ["Europe/Nowhere", "+02:00", "UTC+2", "../etc/passwd"] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_zone_without_changes_is_one_offset() {
        let (_, zone) = named("Asia/Kolkata").expect("a zone");
        let since = micros("2020-01-01T00:00:00Z");
        let sql = day_number("at", &zone, since, micros("2030-01-01T00:00:00Z"));
        assert_eq!(sql, "((at) + 19800000000) / 86400000000");
    }
}
