//! The log: filter, form, and where it goes. To standard error only; standard output belongs to results.

use serde::{Deserialize, Serialize};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::settings::Settings;

/// The `[telemetry]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetrySettings {
    /// What to log, as `tracing` directives: `info,atelier_tracker=debug`. Default `info`, and warnings only of the
    /// libraries that talk a lot.
    pub log: String,
    /// How lines look. Default `text`.
    pub format: Format,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for TelemetrySettings {
    fn default() -> Self {
        Self {
            log: "info,h2=warn,hyper=warn,hyper_util=warn,sqlx=warn,sea_orm=warn,sea_orm_migration=warn"
                .into(),
            format: Format::Text,
        }
    }
}

impl Settings for TelemetrySettings {
    const SECTION: &'static str = "telemetry";
}

/// Why the log cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// `telemetry.log` is not a list of directives.
    #[error("`telemetry.log` is not valid")]
    Filter(#[source] tracing_subscriber::filter::ParseError),
}

/// Keeps the log going; hold it until the process ends.
#[must_use = "dropping it ends the log"]
#[derive(Debug)]
pub struct Telemetry {
    _private: (),
}

/// Starts the log of a process. When one was started before (tests, embedding programs) that one stays.
///
/// # Errors
/// [`TelemetryError::Filter`] for directives that cannot be read.
pub fn init(service: &str, settings: &TelemetrySettings) -> Result<Telemetry, TelemetryError> {
    let filter = EnvFilter::try_new(&settings.log).map_err(TelemetryError::Filter)?;
    let lines = match settings.format {
        Format::Text => fmt::layer().with_writer(std::io::stderr).with_ansi(false).boxed(),
        Format::Json => fmt::layer()
            .json()
            .flatten_event(true)
            .with_writer(std::io::stderr)
            .boxed(),
    };
    if tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init()
        .is_ok()
    {
        tracing::debug!(service, version = env!("CARGO_PKG_VERSION"), "log started");
    }
    Ok(Telemetry { _private: () })
}

/// An error and everything below it, `: ` between, for the `error` field of a log line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        let next = error.to_string();
        // Some libraries repeat their source in their own text.
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        below = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_a_bad_filter_and_starts_twice() {
        let bad = TelemetrySettings {
            log: "a=b=c".into(),
            ..TelemetrySettings::default()
        };
        assert!(init("test", &bad).is_err());
        let _first = init("test", &TelemetrySettings::default()).unwrap();
        let _second = init("test", &TelemetrySettings::default()).unwrap();
    }
}
