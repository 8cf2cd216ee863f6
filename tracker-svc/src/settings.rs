//! The settings of the ledger.

use std::path::Path;
use std::time::Duration;

use atelier_common::db::DbSettings;
use atelier_common::settings::secret;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

/// Section `tracker` of the settings.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where the ledger is: `sqlite://…` or `postgres://…`. Default: the file `atelier.db` in the data folder.
    #[serde(with = "secret")]
    pub database_url: SecretString,
    /// How to connect to it.
    pub database: DbSettings,
    /// How long a driver may be silent before its rows count as orphans. Default 45 s.
    #[serde(with = "humantime_serde")]
    pub lease: Duration,
    /// How often a driver is expected to be heard; the lease must be at least twice as long. Default 10 s.
    #[serde(with = "humantime_serde")]
    pub heartbeat: Duration,
    /// Pause between sweeps. Default 15 s.
    #[serde(with = "humantime_serde")]
    pub sweep_interval: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            database_url: SecretString::default(),
            database: DbSettings::default(),
            lease: Duration::from_secs(45),
            heartbeat: Duration::from_secs(10),
            sweep_interval: Duration::from_secs(15),
        }
    }
}

impl Settings {
    /// The address of the database.
    #[must_use]
    pub fn url(&self, data_dir: &Path) -> String {
        match self.database_url.expose_secret() {
            "" => format!("sqlite://{}", data_dir.join("atelier.db").display()),
            url => url.to_owned(),
        }
    }
}

impl atelier_common::settings::Settings for Settings {
    const SECTION: &'static str = "tracker";
}
