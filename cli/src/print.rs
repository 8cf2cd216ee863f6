//! Tables and lines on stdout.

use std::io::Write;

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

/// One JSON document a line.
///
/// # Errors
/// Stdout cannot be written.
pub fn json_line(value: &Value) -> anyhow::Result<()> {
    let mut text = serde_json::to_string(value)?;
    text.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
/// A line of text.
///
/// # Errors
/// Stdout cannot be written.
pub fn line(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{text}")?;
    Ok(())
}
/// A line of talk, on stderr.
pub fn aside(text: &str) {
    // Nobody reads stderr: nothing to do about it.
    let _ = writeln!(std::io::stderr(), "{text}");
}
/// A table with a header. Cells are never broken: ids and paths are there to be copied.
///
/// # Errors
/// Stdout cannot be written.
pub fn table(header: &[&str], rows: Vec<Vec<String>>) -> anyhow::Result<()> {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(header.iter().map(|name| name.to_uppercase()));
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.add_rows(rows);
    line(table.trim_fmt().trim_end())
}
/// Names and values of one thing.
///
/// # Errors
/// Stdout cannot be written.
pub fn record(rows: &[(&str, String)]) -> anyhow::Result<()> {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        line(&format!("{name:width$}  {value}"))?;
    }
    Ok(())
}
/// Text of a field: empty for null or missing.
#[must_use]
pub fn text(value: &Value, key: &str) -> String {
    match value.get(key) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(values)) if values.iter().all(Value::is_string) => values
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(","),
        Some(other) => other.to_string(),
    }
}
/// A cost as people read it: `$0.04`, `0.04 EUR`, or `unpriced`.
#[must_use]
pub fn cost(amount: &str, currency: &str) -> String {
    match (amount, currency) {
        ("", _) => "unpriced".to_owned(),
        (amount, "USD" | "") => format!("${amount}"),
        (amount, currency) => format!("{amount} {currency}"),
    }
}
/// Milliseconds as people read them.
#[must_use]
pub fn duration(value: &Value, key: &str) -> String {
    value
        .get(key)
        .and_then(Value::as_f64)
        .map_or_else(String::new, |ms| {
            if ms < 1_000.0 {
                format!("{ms:.0} ms")
            } else {
                format!("{:.1} s", ms / 1_000.0)
            }
        })
}
/// So many of something: `1 artifact`, `6 artifacts`.
#[must_use]
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
/// A limit from the command line.
///
/// # Errors
/// It is no number above zero.
pub fn limit(text: &str) -> anyhow::Result<usize> {
    match text.parse::<usize>() {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => anyhow::bail!("Invalid --limit value: {text}"),
    }
}
