//! Instants in microseconds, UTC, and their protobuf form.

use chrono::{DateTime, SecondsFormat, TimeZone, Utc};

/// Microseconds since the epoch.
#[must_use]
pub fn micros(at: DateTime<Utc>) -> i64 {
    at.timestamp_micros()
}
/// The instant of so many microseconds since the epoch; `None` when out of range.
#[must_use]
pub fn from_micros(micros: i64) -> Option<DateTime<Utc>> {
    Utc.timestamp_micros(micros).single()
}
/// The protobuf form of microseconds since the epoch.
#[must_use]
pub fn proto_from_micros(micros: i64) -> prost_types::Timestamp {
    let nanos = i32::try_from(micros.rem_euclid(1_000_000) * 1_000).unwrap_or(0);
    prost_types::Timestamp {
        seconds: micros.div_euclid(1_000_000),
        nanos,
    }
}
/// Microseconds since the epoch of a protobuf instant, cut below the microsecond.
#[must_use]
pub fn micros_from_proto(at: &prost_types::Timestamp) -> i64 {
    at.seconds
        .saturating_mul(1_000_000)
        .saturating_add(i64::from(at.nanos) / 1_000)
}
/// ISO 8601 with `Z` and milliseconds, as the wire has it.
#[must_use]
pub fn iso(at: &prost_types::Timestamp) -> String {
    from_micros(micros_from_proto(at))
        .map_or_else(String::new, |at| at.to_rfc3339_opts(SecondsFormat::Millis, true))
}
/// Seconds of a protobuf duration.
#[must_use]
pub fn seconds(duration: &prost_types::Duration) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "durations of calls are far below 2^52 seconds"
    )]
    let whole = duration.seconds as f64;
    whole + f64::from(duration.nanos) / 1e9
}
/// The protobuf form of a duration.
#[must_use]
pub fn proto_duration(duration: std::time::Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or(0),
    }
}
