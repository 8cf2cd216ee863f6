//! Settings that every provider on the network has.

use std::time::Duration;

use atelier_common::settings::secret;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

/// A provider on the network.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Remote {
    /// The key. Default none: the provider cannot be called.
    #[serde(with = "secret::optional")]
    pub api_key: Option<SecretString>,
    /// Address of the API. Default empty: the provider's own.
    pub base_url: String,
    /// Models beside those that are known, each as `capability:model`. The first of a capability becomes its default.
    pub models: Vec<String>,
    /// Longest wait that the provider may ask for before a retry; more means giving up. Default 2 minutes.
    #[serde(with = "humantime_serde")]
    pub longest_wait: Duration,
    /// First pause before a request that was refused for its speed is sent again. Default 500 ms.
    #[serde(with = "humantime_serde")]
    pub first_pause: Duration,
    /// How long a connection may take. Default 5 s.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
    /// How long the server may be silent. Default 5 minutes.
    #[serde(with = "humantime_serde")]
    pub read_timeout: Duration,
    /// Largest output that is taken, in bytes. Default 512 MiB.
    pub max_media_bytes: u64,
    /// Hosts that result addresses may name although they are private, for instance `127.0.0.1:8188`. Default none.
    pub allowed_hosts: Vec<String>,
}
impl Default for Remote {
    fn default() -> Self {
        Self {
            api_key: None,
            base_url: String::new(),
            models: Vec::new(),
            longest_wait: Duration::from_secs(120),
            first_pause: Duration::from_millis(500),
            connect_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(300),
            max_media_bytes: 512 * 1024 * 1024,
            allowed_hosts: Vec::new(),
        }
    }
}
