//! What node code may reach of this machine and of the network: a folder for files, commands, and the guarded client.
//!
//! What does not live here: the check of paths (`nodes/files`) and of addresses (`atelier_common::egress`).

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use atelier_common::{
    egress::{Egress, EgressError, Limits, Outgoing, Reply},
    identity::Caller,
};

use crate::{node::NodeError, settings::Settings};

/// Longest name of a user that is taken for a folder as it is.
const PLAIN_NAME: usize = 64;

/// This machine, as the nodes of one user's runs see it.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// The folder that files are kept in; `None`: nodes reach no files.
    pub workspace: Option<PathBuf>,
    /// Whether nodes may run commands, with the rights of this process.
    pub allow_commands: bool,
    /// The client for addresses that users name; `None`: nodes reach no addresses.
    pub egress: Option<Egress>,
    /// What one fetch may cost.
    pub limits: Limits,
}
impl Host {
    /// The machine as the settings describe it.
    ///
    /// # Errors
    /// What the guarded client cannot be made for.
    pub fn new(settings: &Settings, data_dir: &Path) -> Result<Self, EgressError> {
        let workspace = if settings.workspace.as_os_str().is_empty() {
            data_dir.join("workspace")
        } else {
            settings.workspace.clone()
        };
        Ok(Self {
            workspace: Some(workspace),
            allow_commands: settings.allow_commands,
            egress: Some(Egress::new(&settings.allowed_hosts)?),
            limits: settings.fetch.clone(),
        })
    }
    /// The machine for one user. Everyone but the one local user has a folder of their own, so that nobody sees the
    /// files of somebody else.
    #[must_use]
    pub fn of(&self, caller: &Caller) -> Self {
        let local = caller.user_id == Caller::local().user_id;
        let workspace = self.workspace.as_ref().map(|root| {
            if local {
                root.clone()
            } else {
                root.join("users").join(folder_of(&caller.user_id))
            }
        });
        Self {
            workspace,
            ..self.clone()
        }
    }
    /// A machine that offers nothing.
    #[must_use]
    pub fn nothing() -> &'static Self {
        static NOTHING: LazyLock<Host> = LazyLock::new(Host::default);
        &NOTHING
    }
    /// Sends a request through the guarded client, within the limits of the deployment. Cancel safe.
    ///
    /// # Errors
    /// The address may not be reached, cannot be, or answered too much or too late.
    pub async fn send(&self, request: Outgoing) -> Result<Reply, NodeError> {
        let Some(egress) = &self.egress else {
            return Err(NodeError::new("nodes reach no addresses in this deployment").code("http.off"));
        };
        egress
            .send(request, &self.limits)
            .await
            .map_err(|error| NodeError::new(error.to_string()).code("http.failed"))
    }
}

/// A folder for a user: the id where it is plain, else its digest.
fn folder_of(user_id: &str) -> String {
    let plain = !user_id.is_empty()
        && user_id.len() <= PLAIN_NAME
        && user_id
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if plain {
        user_id.to_owned()
    } else {
        format!("_{}", blake3::hash(user_id.as_bytes()).to_hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_a_folder_and_the_local_one_has_the_whole() {
        let host = Host {
            workspace: Some(PathBuf::from("/w")),
            ..Host::default()
        };
        let of = |id: &str| {
            let caller = Caller::new(id, ["*"]);
            host.of(&caller).workspace.expect("a folder")
        };
        assert_eq!(of("1"), Path::new("/w"));
        assert_eq!(of("ann-7"), Path::new("/w/users/ann-7"));
        for odd in ["", "..", "a/b", "Ann", "ann@example.com"] {
            let name = of(odd).file_name().expect("a name").to_owned();
            assert!(name.to_string_lossy().starts_with('_'), "{odd}");
        }
        assert_ne!(of("Ann"), of("ann@example.com"));
    }
}
