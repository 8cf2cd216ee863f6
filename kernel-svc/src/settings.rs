//! Settings of kernel-svc: section `[kernel]`, environment `ATELIER_KERNEL__…`.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use atelier_common::{egress::Limits, settings::secret};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

/// Settings of kernel-svc.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Database, `sqlite://PATH` or `postgres://…`. Default empty: the file `atelier.db` in the data folder.
    #[serde(with = "secret")]
    pub database_url: SecretString,
    /// Runs of one user at once; more wait. Default 16.
    pub max_concurrent_jobs: usize,
    /// Runs of one user that may wait. Default 1000.
    pub max_queued_jobs: usize,
    /// How long a cancelled invocation may take to end. Default 5 seconds (kernel specification 8.3).
    #[serde(with = "humantime_serde")]
    pub cancel_grace: Duration,
    /// How long a node may take to clean up when it is over. Default 30 seconds.
    #[serde(with = "humantime_serde")]
    pub finalize_limit: Duration,
    /// How long a run counts as driven after its process last said so. Default 30 seconds.
    #[serde(with = "humantime_serde")]
    pub lease: Duration,
    /// Waits that are longer than this suspend their run, which then takes no slot and goes on by itself at its time, to
    /// the tick of a lease. Runs inside of other ones wait without that. Default 5 minutes.
    #[serde(with = "humantime_serde")]
    pub longest_wait: Duration,
    /// Appends that are committed together at most. Default 64.
    pub max_batch: usize,
    /// Folder of the files that nodes read and write. Default empty: the folder `workspace` in the data folder. With
    /// authentication every user has a folder of their own below `users` in it.
    pub workspace: PathBuf,
    /// Whether nodes may run commands, with the rights of this process. Default false.
    pub allow_commands: bool,
    /// Hosts in private ranges that nodes may fetch from all the same, as `host` or `host:port`. Default none.
    pub allowed_hosts: Vec<String>,
    /// What one fetch of a node may cost. Default 64 MiB, 60 seconds, 5 redirects.
    pub fetch: Limits,
    /// Where workers may connect without an identity, a loopback address; read where all services are one process
    /// (`atelier up`). A `kernel-svc` alone serves workers on its own address. Default: nowhere.
    pub worker_listen: Option<SocketAddr>,
    /// How long invocations wait for a worker that is gone, and for a first one. Default 30 seconds.
    #[serde(with = "humantime_serde")]
    pub worker_grace: Duration,
    /// How often a worker and the kernel give each other a sign of life; three missed ones end the stream. Default 5
    /// seconds.
    #[serde(with = "humantime_serde")]
    pub worker_heartbeat: Duration,
}
impl Default for Settings {
    fn default() -> Self {
        Self {
            database_url: SecretString::default(),
            max_concurrent_jobs: 16,
            max_queued_jobs: 1_000,
            cancel_grace: Duration::from_secs(5),
            finalize_limit: Duration::from_secs(30),
            lease: Duration::from_secs(30),
            longest_wait: Duration::from_secs(300),
            max_batch: 64,
            workspace: PathBuf::new(),
            allow_commands: false,
            allowed_hosts: Vec::new(),
            fetch: Limits::default(),
            worker_listen: None,
            worker_grace: Duration::from_secs(30),
            worker_heartbeat: Duration::from_secs(5),
        }
    }
}
impl atelier_common::settings::Settings for Settings {
    const SECTION: &'static str = "kernel";
}
impl Settings {
    /// The database, with the default filled in.
    #[must_use]
    pub fn database(&self, data_dir: &Path) -> String {
        match self.database_url.expose_secret() {
            "" => format!("sqlite://{}", data_dir.join("atelier.db").display()),
            url => url.to_owned(),
        }
    }
}
