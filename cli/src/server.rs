//! Finding a server, or starting one inside of this process.
//!
//! Whoever works on a data folder holds its lock; a server also leaves its address there. So a second command finds the
//! first one's server instead of working on the same files beside it.

use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use atelier_common::telemetry::Telemetry;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use url::Url;

use crate::{
    args::Place,
    client::Client,
    stack::{Options, Stack},
};

/// How long a command waits for another one that works on the data folder.
const PATIENCE: Duration = Duration::from_secs(600);
const LOCK: &str = "atelier.lock";
const ADDRESS: &str = "server.json";

/// A server to talk to.
pub struct Server {
    client: Client,
    own: Option<Own>,
}
/// A server inside of this process.
pub struct Own {
    stack: Stack,
    lock: DataLock,
    // Held, not read: dropping it ends the log.
    _telemetry: Telemetry,
}
/// A data folder that nobody else works on.
pub struct DataLock {
    folder: PathBuf,
    // Held, not read: dropping it unlocks.
    _file: File,
}
/// What a server leaves in its data folder.
#[derive(Debug, Serialize, Deserialize)]
struct Address {
    url: Url,
    pid: u32,
}
impl Server {
    /// The server that was named; else the one that has the data folder; else one in this process.
    ///
    /// # Errors
    /// The named server does not answer, or none can be started.
    pub async fn find_or_start(place: &Place) -> anyhow::Result<Self> {
        if let Some(url) = &place.server {
            let client = Client::new(url.clone())?;
            anyhow::ensure!(client.alive().await, "no server answers at {url}");
            return Ok(Self { client, own: None });
        }
        let folder = data_folder(place)?;
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let mut told = false;
        loop {
            if let Some(lock) = DataLock::take(&folder)? {
                return Self::start(place, lock).await;
            }
            if let Some(client) = announced(&folder).await {
                return Ok(Self { client, own: None });
            }
            if !told {
                told = true;
                crate::up::say(&format!(
                    "another atelier works on {}; waiting for it",
                    folder.display()
                ));
            }
            anyhow::ensure!(
                tokio::time::Instant::now() < deadline,
                "{} is still in use",
                folder.display()
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    async fn start(place: &Place, lock: DataLock) -> anyhow::Result<Self> {
        let telemetry = crate::up::logging(place, "warn")?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let options = Options {
            data: lock.folder.clone(),
            config: place.config.clone(),
            listener,
            overrides: Vec::new(),
        };
        let stack = Stack::start(options).await?;
        let client = Client::new(stack.url().clone())?;
        Ok(Self {
            client,
            own: Some(Own {
                stack,
                lock,
                _telemetry: telemetry,
            }),
        })
    }
    /// Whether it goes on when this process ends.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.own.is_none()
    }
    /// A client of it.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }
    /// Stops it, if it is in this process.
    pub async fn stop(self) {
        if let Some(Own {
            stack,
            lock,
            _telemetry,
        }) = self.own
        {
            stack.stop().await;
            drop(lock);
        }
    }
}
impl DataLock {
    /// Takes the folder; `None` when somebody else has it.
    ///
    /// # Errors
    /// The folder cannot be made or locked.
    pub fn take(folder: &Path) -> anyhow::Result<Option<Self>> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the data folder {}", folder.display()))?;
        let folder = folder.canonicalize()?;
        let path = folder.join(LOCK);
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { folder, _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", path.display()))
            }
        }
    }
    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
    /// Tells other commands where the server is.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn announce(&self, url: &Url) -> anyhow::Result<()> {
        let address = Address {
            url: url.clone(),
            pid: std::process::id(),
        };
        let partial = self.folder.join(format!("{ADDRESS}.part"));
        std::fs::write(&partial, serde_json::to_vec(&address)?)?;
        std::fs::rename(partial, self.folder.join(ADDRESS))?;
        Ok(())
    }
}
impl Drop for DataLock {
    fn drop(&mut self) {
        // Before the lock goes; missing when nothing was announced.
        let _ = std::fs::remove_file(self.folder.join(ADDRESS));
    }
}
async fn announced(folder: &Path) -> Option<Client> {
    let address: Address = serde_json::from_slice(&tokio::fs::read(folder.join(ADDRESS)).await.ok()?).ok()?;
    let client = Client::new(address.url).ok()?;
    client.alive().await.then_some(client)
}
/// The data folder: as named, else the user's own.
///
/// # Errors
/// The user has no home folder.
pub fn data_folder(place: &Place) -> anyhow::Result<PathBuf> {
    if let Some(folder) = &place.data {
        return Ok(folder.clone());
    }
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let base = variable("XDG_DATA_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/share")));
    Ok(base
        .context("no home folder: name a data folder with --data")?
        .join("atelier"))
}
