//! What every process has, whatever runs in it: addresses, folder, secret, signals.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::Rng;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

use super::{BuildError, DRAIN_LIMIT, Peers};
use crate::channel;
use crate::identity::Signer;
use crate::settings::{Settings, secret};

/// The shortest secret that signs identities, in bytes.
const SHORTEST_SECRET: usize = 16;

/// The `[process]` section.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessSettings {
    /// Where gRPC is served. Default 127.0.0.1:0, a port that the system picks and the log tells.
    pub listen: SocketAddr,
    /// Where `/livez`, `/readyz` and `/metrics` are served. Default: nowhere.
    pub admin_listen: Option<SocketAddr>,
    /// A folder for files of this process. Default `data`.
    pub data_dir: PathBuf,
    /// Whether no other process uses the data folder. Default false.
    pub sole_process: bool,
    /// The secret that signs identities, the same for every service. Default: one kept in the data folder, which is
    /// enough for processes that share it and listen on loopback only.
    #[serde(with = "secret::optional")]
    pub identity_secret: Option<SecretString>,
    /// Addresses of the other services by name: `tracker = "http://tracker:7003"`. Default: none.
    pub peers: BTreeMap<String, String>,
    /// How long open calls and tasks may go on after the signal to stop. Default 20 seconds.
    #[serde(with = "humantime_serde")]
    pub drain: Duration,
}

impl Default for ProcessSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            admin_listen: None,
            data_dir: PathBuf::from("data"),
            sole_process: false,
            identity_secret: None,
            peers: BTreeMap::new(),
            drain: DRAIN_LIMIT,
        }
    }
}

impl Settings for ProcessSettings {
    const SECTION: &'static str = "process";
}

impl ProcessSettings {
    /// Transports to the peers that have an address. Connects to none yet.
    ///
    /// # Errors
    /// [`BuildError`] for an address that is not one.
    pub fn peers(&self) -> Result<Peers, BuildError> {
        let mut peers = Peers::default();
        for (name, uri) in &self.peers {
            peers.insert(name, channel::remote(uri)?);
        }
        Ok(peers)
    }

    /// The signer of the configured secret, else of the one in the data folder (made if it is not there).
    ///
    /// # Errors
    /// [`BuildError`] when the secret is too short, absent on an address that is not loopback, or the file cannot be
    /// used.
    pub fn signer(&self) -> Result<Signer, BuildError> {
        match &self.identity_secret {
            Some(secret) if secret.expose_secret().len() < SHORTEST_SECRET => Err(BuildError::invalid(
                format!("`process.identity_secret` is shorter than {SHORTEST_SECRET} bytes"),
            )),
            Some(secret) => Ok(Signer::new(secret.clone())),
            None if !self.listen.ip().is_loopback() => Err(BuildError::invalid(
                "`process.identity_secret` must be set to listen on an address that is not loopback",
            )),
            None => self.kept_secret().map(Signer::new),
        }
    }

    fn kept_secret(&self) -> Result<SecretString, BuildError> {
        let path = self.data_dir.join("identity.key");
        let failed =
            |error: std::io::Error| BuildError::new(format!("cannot keep {}", path.display()), error);
        std::fs::create_dir_all(&self.data_dir).map_err(failed)?;
        let secret = URL_SAFE_NO_PAD.encode(rand::rng().random::<[u8; 32]>());
        // Written aside and linked, so that of two processes one wins and nobody reads half a key.
        let mut draft = DraftFile::new(self.data_dir.join(format!(".identity.{}", uuid::Uuid::now_v7())))
            .map_err(failed)?;
        draft
            .file
            .write_all(secret.as_bytes())
            .and_then(|()| draft.file.sync_all())
            .map_err(failed)?;
        match std::fs::hard_link(&draft.path, &path) {
            Ok(()) => Ok(SecretString::from(secret)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let kept = std::fs::read_to_string(&path).map_err(failed)?;
                if kept.trim().len() < SHORTEST_SECRET {
                    return Err(BuildError::invalid(format!(
                        "{} holds no usable secret",
                        path.display()
                    )));
                }
                Ok(SecretString::from(kept.trim().to_owned()))
            }
            Err(error) => Err(failed(error)),
        }
    }
}

/// A file for the owner's eyes, gone when dropped.
struct DraftFile {
    path: PathBuf,
    file: std::fs::File,
}

impl DraftFile {
    fn new(path: PathBuf) -> std::io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt;
        let file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Self { path, file })
    }
}

impl Drop for DraftFile {
    fn drop(&mut self) {
        // What is left over is harmless: an unused key.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Waits for the next SIGINT or SIGTERM and says which. Cancel safe once polled.
///
/// # Errors
/// The system's, when signals cannot be listened to.
pub async fn shutdown_signal() -> std::io::Result<&'static str> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => Ok("SIGINT"),
        _ = terminate.recv() => Ok("SIGTERM"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Caller;

    #[test]
    fn processes_that_share_a_folder_trust_each_other_on_loopback_only() {
        let folder = tempfile::tempdir().unwrap();
        let settings = ProcessSettings {
            data_dir: folder.path().join("d"),
            ..ProcessSettings::default()
        };
        let (one, two) = (settings.signer().unwrap(), settings.signer().unwrap());
        let request = one.request((), &Caller::local());
        assert_eq!(two.verify(request.metadata()).unwrap(), Caller::local());
        assert_eq!(std::fs::read_dir(&settings.data_dir).unwrap().count(), 1);

        let open = ProcessSettings {
            listen: ([0, 0, 0, 0], 0).into(),
            ..settings.clone()
        };
        assert!(open.signer().is_err());
        let short = ProcessSettings {
            identity_secret: Some("short".into()),
            ..settings
        };
        assert!(short.signer().is_err());
    }

    #[test]
    fn a_peer_needs_an_address() {
        let peers = |uri: &str| {
            let peers = BTreeMap::from([("other".to_owned(), uri.to_owned())]);
            ProcessSettings {
                peers,
                ..ProcessSettings::default()
            }
            .peers()
        };
        assert!(peers("other:80:80").is_err() && peers("").is_err());
    }
}
