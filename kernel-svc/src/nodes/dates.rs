//! Points in time: arithmetic, formats, beginnings and ends of periods.
//!
//! A point in time may be given as an object with its fields, as a text in ISO 8601, or as milliseconds since 1970. A text
//! without an offset is in UTC. Weeks begin on Monday.

use atelier_proto::value::{Map, Value};
use chrono::{
    DateTime, Datelike, Days, Duration, FixedOffset, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeZone,
    Timelike, Utc,
};

use super::{
    args::{Args, map, missing, wrong},
    code::{Routed, Types, factory},
};
use crate::node::NodeError;

/// A point in time with its offset.
type Instant = DateTime<FixedOffset>;

/// All types of this family.
pub(super) fn types() -> Types {
    vec![
        ("lib.datetime.Add", factory(Routed(add))),
        ("lib.datetime.Diff", factory(Routed(diff))),
        ("lib.datetime.Format", factory(Routed(format))),
        (
            "lib.datetime.Now",
            factory(Routed(|_| Ok(outputs(Utc::now().fixed_offset())))),
        ),
        ("lib.datetime.StartEnd", factory(Routed(start_end))),
    ]
}

/// A point in time as the object that graphs know.
pub(super) fn value(at: Instant) -> Value {
    let offset = at.offset().local_minus_utc() / 60;
    let zone = if offset == 0 {
        "UTC".to_owned()
    } else {
        at.format("%:z").to_string()
    };
    map([
        ("type", "datetime".into()),
        ("year", i64::from(at.year()).into()),
        ("month", i64::from(at.month()).into()),
        ("day", i64::from(at.day()).into()),
        ("hour", i64::from(at.hour()).into()),
        ("minute", i64::from(at.minute()).into()),
        ("second", i64::from(at.second()).into()),
        ("millisecond", i64::from(at.timestamp_subsec_millis()).into()),
        ("tzinfo", zone.into()),
        ("utc_offset", i64::from(offset).into()),
    ])
    .into()
}
fn iso(at: Instant) -> String {
    if at.offset().local_minus_utc() == 0 {
        at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
    } else {
        at.format("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
    }
}
fn outputs(at: Instant) -> Map {
    map([
        ("iso", iso(at).into()),
        ("epoch_ms", at.timestamp_millis().into()),
        ("date", value(at)),
    ])
}

fn given(args: Args<'_>, name: &str) -> Result<Instant, NodeError> {
    let value = args.value(name);
    let no_date = || {
        let text =
            format!("the input `{name}` is no date: ISO 8601, milliseconds or a date object is needed");
        NodeError::new(text).code("input.value")
    };
    match &value {
        Value::Null => Err(missing(name, "a date is needed")),
        Value::Str(text) if text.trim().is_empty() => Err(missing(name, "a date is needed")),
        Value::Str(text) => read(text.trim()).ok_or_else(no_date),
        Value::Int(_) | Value::Float(_) => {
            let number = value.as_f64().filter(|number| number.abs() < 8.64e15);
            #[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
            let millis = number.map(|number| number as i64).ok_or_else(no_date)?;
            let at = Utc.timestamp_millis_opt(millis).single();
            at.map(|at| at.fixed_offset()).ok_or_else(no_date)
        }
        Value::Map(fields) => fields_of(fields).ok_or_else(no_date),
        other => Err(wrong(name, "a date", other)),
    }
}
/// Common ways to write a point in time.
pub(super) fn read(text: &str) -> Option<Instant> {
    let utc = |at: NaiveDateTime| at.and_utc().fixed_offset();
    if let Ok(at) = DateTime::parse_from_rfc3339(text).or_else(|_| DateTime::parse_from_rfc2822(text)) {
        return Some(at);
    }
    for pattern in ["%Y-%m-%dT%H:%M:%S%.f%z", "%Y-%m-%d %H:%M:%S%.f%z"] {
        if let Ok(at) = DateTime::parse_from_str(text, pattern) {
            return Some(at);
        }
    }
    let with_time = [
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M",
    ];
    for pattern in with_time {
        if let Ok(at) = NaiveDateTime::parse_from_str(text, pattern) {
            return Some(utc(at));
        }
    }
    for pattern in [
        "%Y-%m-%d",
        "%Y/%m/%d",
        "%Y%m%d",
        "%d.%m.%Y",
        "%B %d, %Y",
        "%d %B %Y",
    ] {
        if let Ok(day) = NaiveDate::parse_from_str(text, pattern) {
            return Some(utc(day.and_time(NaiveTime::MIN)));
        }
    }
    None
}
fn fields_of(fields: &Map) -> Option<Instant> {
    let field = |name: &str, default: i64| match fields.get(name) {
        None | Some(Value::Null) => Some(default),
        Some(value) => value.as_i64(),
    };
    let small = |name: &str, default: i64| u32::try_from(field(name, default)?).ok();
    let year = i32::try_from(field("year", 1900)?).ok()?;
    let day = NaiveDate::from_ymd_opt(year, small("month", 1)?, small("day", 1)?)?;
    let milli = match fields.get("microsecond").and_then(Value::as_i64) {
        Some(micro) => u32::try_from(micro / 1000).ok()?,
        None => small("millisecond", 0)?,
    };
    let at = day.and_hms_milli_opt(small("hour", 0)?, small("minute", 0)?, small("second", 0)?, milli)?;
    let offset = i32::try_from(field("utc_offset", 0)?).ok()?.checked_mul(60)?;
    FixedOffset::east_opt(offset)?.from_local_datetime(&at).single()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}
impl Unit {
    fn of(args: Args<'_>) -> Result<Self, NodeError> {
        let text = args.text_or("unit", "day").to_lowercase();
        Ok(match text.strip_suffix('s').unwrap_or(&text) {
            "millisecond" => Self::Millisecond,
            "second" => Self::Second,
            "minute" => Self::Minute,
            "hour" => Self::Hour,
            "day" => Self::Day,
            "week" => Self::Week,
            "month" => Self::Month,
            "year" => Self::Year,
            _ => {
                let text =
                    "the input `unit` must be millisecond, second, minute, hour, day, week, month or year";
                return Err(NodeError::new(text).code("input.value"));
            }
        })
    }
    /// Its length, where it has one.
    fn millis(self) -> Option<i64> {
        match self {
            Self::Millisecond => Some(1),
            Self::Second => Some(1_000),
            Self::Minute => Some(60_000),
            Self::Hour => Some(3_600_000),
            Self::Day => Some(86_400_000),
            Self::Week => Some(7 * 86_400_000),
            Self::Month | Self::Year => None,
        }
    }
    /// A number of units later, or earlier when negative.
    fn later(self, at: Instant, amount: i64) -> Option<Instant> {
        if let Some(millis) = self.millis() {
            let by = Duration::try_milliseconds(amount.checked_mul(millis)?)?;
            return at.checked_add_signed(by);
        }
        let months = if self == Self::Year {
            amount.checked_mul(12)?
        } else {
            amount
        };
        let by = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
        if months < 0 {
            at.checked_sub_months(by)
        } else {
            at.checked_add_months(by)
        }
    }
    /// The beginning of the unit that a point lies in.
    fn start(self, at: Instant) -> Option<Instant> {
        let day = at.date_naive();
        let time = |hour, minute, second, milli| NaiveTime::from_hms_milli_opt(hour, minute, second, milli);
        let start = match self {
            Self::Millisecond => day.and_time(time(
                at.hour(),
                at.minute(),
                at.second(),
                at.timestamp_subsec_millis() % 1000,
            )?),
            Self::Second => day.and_time(time(at.hour(), at.minute(), at.second(), 0)?),
            Self::Minute => day.and_time(time(at.hour(), at.minute(), 0, 0)?),
            Self::Hour => day.and_time(time(at.hour(), 0, 0, 0)?),
            Self::Day => day.and_time(NaiveTime::MIN),
            Self::Week => {
                let back = Days::new(u64::from(day.weekday().num_days_from_monday()));
                day.checked_sub_days(back)?.and_time(NaiveTime::MIN)
            }
            Self::Month => day.with_day(1)?.and_time(NaiveTime::MIN),
            Self::Year => NaiveDate::from_ymd_opt(day.year(), 1, 1)?.and_time(NaiveTime::MIN),
        };
        at.offset().from_local_datetime(&start).single()
    }
}
fn too_far(name: &str) -> NodeError {
    NodeError::new(format!(
        "the input `{name}` leads to a date that cannot be represented"
    ))
    .code("input.value")
}
fn add(args: Args<'_>) -> Result<Map, NodeError> {
    let at = given(args, "date")?;
    let later = Unit::of(args)?.later(at, args.int("amount", 0)?);
    later.map(outputs).ok_or_else(|| too_far("amount"))
}
/// Whole units from the second date to the first one.
fn diff(args: Args<'_>) -> Result<Map, NodeError> {
    let (a, b) = (given(args, "date_a")?, given(args, "date_b")?);
    let unit = Unit::of(args)?;
    let diff = match unit.millis() {
        Some(millis) => (a - b).num_milliseconds() / millis,
        None => {
            let months = whole_months(b, a);
            if unit == Unit::Year { months / 12 } else { months }
        }
    };
    Ok(map([
        ("diff", diff.into()),
        ("is_before", (a < b).into()),
        ("is_after", (a > b).into()),
        ("is_same", (a == b).into()),
    ]))
}
fn whole_months(from: Instant, to: Instant) -> i64 {
    if to < from {
        return -whole_months(to, from);
    }
    let to = to.with_timezone(from.offset());
    let count = |at: Instant| i64::from(at.year()) * 12 + i64::from(at.month0());
    let months = count(to) - count(from);
    let over = Unit::Month.later(from, months).is_some_and(|at| at > to);
    if over { months - 1 } else { months }
}
fn start_end(args: Args<'_>) -> Result<Map, NodeError> {
    let (at, unit) = (given(args, "date")?, Unit::of(args)?);
    let start = unit.start(at).ok_or_else(|| too_far("date"))?;
    let end = unit
        .later(start, 1)
        .and_then(|next| next.checked_sub_signed(Duration::milliseconds(1)))
        .ok_or_else(|| too_far("date"))?;
    Ok(map([
        ("start_iso", iso(start).into()),
        ("end_iso", iso(end).into()),
        ("start", value(start)),
        ("end", value(end)),
    ]))
}
fn format(args: Args<'_>) -> Result<Map, NodeError> {
    let at = given(args, "date")?;
    let formatted = formatted(at, &args.text_or("pattern", "YYYY-MM-DD HH:mm:ss"));
    Ok(map([
        ("formatted", formatted.into()),
        ("iso", iso(at).into()),
        ("epoch_ms", at.timestamp_millis().into()),
    ]))
}
/// Fields of a pattern, longer ones before their parts.
const FIELDS: &[(&str, &str)] = &[
    ("YYYY", "%Y"),
    ("YY", "%y"),
    ("MMMM", "%B"),
    ("MMM", "%b"),
    ("MM", "%m"),
    ("M", "%-m"),
    ("DD", "%d"),
    ("D", "%-d"),
    ("dddd", "%A"),
    ("ddd", "%a"),
    ("HH", "%H"),
    ("H", "%-H"),
    ("hh", "%I"),
    ("h", "%-I"),
    ("mm", "%M"),
    ("m", "%-M"),
    ("ss", "%S"),
    ("s", "%-S"),
    ("SSS", "%3f"),
    ("A", "%p"),
    ("a", "%P"),
    ("ZZ", "%z"),
    ("Z", "%:z"),
    ("X", "%s"),
];
/// Letters in square brackets stay as they are.
fn formatted(at: Instant, pattern: &str) -> String {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        if let Some((kept, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            out.push_str(kept);
            rest = after;
        } else if let Some((field, code)) = FIELDS.iter().find(|(field, _)| rest.starts_with(field)) {
            out.push_str(&at.format(code).to_string());
            rest = rest.strip_prefix(field).unwrap_or_default();
        } else {
            out.push(letter);
            rest = rest.strip_prefix(letter).unwrap_or_default();
        }
    }
    out
}

#[cfg(test)]
mod tests;
