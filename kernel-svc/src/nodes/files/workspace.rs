//! The one folder that nodes may reach, and the check that a path stays inside of it.

use std::{
    fs,
    io::Read,
    path::{Component, Path, PathBuf},
};

use crate::{host::Host, node::NodeError};

/// Longest path, in bytes.
const MAX_PATH: usize = 4096;

/// The folder of the run's owner.
#[derive(Debug, Clone)]
pub(in crate::nodes) struct Workspace {
    root: PathBuf,
}
impl Workspace {
    /// The folder that the deployment gives; it is made when it is not there.
    pub fn of(host: &Host) -> Result<Self, NodeError> {
        let Some(root) = &host.workspace else {
            return Err(NodeError::new("nodes reach no files in this deployment").code("file.off"));
        };
        let lost = |_| NodeError::new("the workspace folder cannot be made").code("file.off");
        fs::create_dir_all(root).map_err(lost)?;
        let root = root.canonicalize().map_err(lost)?;
        Ok(Self { root })
    }
    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }
    /// The place that a text names. Relative texts, `~` and `/workspace` begin at the folder; links are followed before it
    /// is judged. The place itself need not be there.
    pub fn place(&self, input: &str, text: &str) -> Result<PathBuf, NodeError> {
        if text.len() > MAX_PATH || text.contains('\0') {
            return Err(fault(input, "it is no path"));
        }
        let text = text.strip_prefix("file://").unwrap_or(text);
        let path = Path::new(text);
        let inner = path
            .strip_prefix("~")
            .or_else(|_| path.strip_prefix("/workspace"))
            .or_else(|_| path.strip_prefix(&self.root))
            .unwrap_or(path);
        if inner.is_absolute() {
            return Err(outside(input));
        }
        let mut place = self.root.clone();
        for part in inner.components() {
            match part {
                Component::Normal(name) => place.push(name),
                Component::CurDir => {}
                Component::ParentDir if place != self.root => {
                    place.pop();
                }
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(outside(input));
                }
            }
        }
        let there = place.ancestors().find_map(|above| above.canonicalize().ok());
        match there {
            Some(there) if there.starts_with(&self.root) => {}
            _ => return Err(outside(input)),
        }
        // A link that leads nowhere yet would be followed when the file is made.
        if !place.exists() && place.symlink_metadata().is_ok() {
            return Err(outside(input));
        }
        Ok(place)
    }
    /// The place that a text names, which must be there.
    pub fn found(&self, input: &str, text: &str) -> Result<PathBuf, NodeError> {
        if text.trim().is_empty() {
            return Err(fault(input, "it is empty"));
        }
        let place = self.place(input, text)?;
        if !place.exists() {
            return Err(fault(input, &format!("there is no `{}`", self.shown(&place))));
        }
        Ok(place)
    }
    /// The content of a file, up to a size.
    pub fn read(&self, input: &str, text: &str, most: usize) -> Result<Vec<u8>, NodeError> {
        let place = self.found(input, text)?;
        if !place.is_file() {
            return Err(fault(input, &format!("`{}` is no file", self.shown(&place))));
        }
        let lost = |error: std::io::Error| self.lost(input, &place, &error);
        let mut bytes = Vec::new();
        let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        let file = fs::File::open(&place).map_err(lost)?;
        file.take(limit).read_to_end(&mut bytes).map_err(lost)?;
        if bytes.len() > most {
            return Err(fault(
                input,
                &format!("`{}` is larger than {most} bytes", self.shown(&place)),
            ));
        }
        Ok(bytes)
    }
    /// Writes a file and makes the folders that it needs.
    pub fn write(&self, input: &str, place: &Path, bytes: &[u8]) -> Result<(), NodeError> {
        if place.is_dir() {
            return Err(fault(input, &format!("`{}` is a folder", self.shown(place))));
        }
        let lost = |error: std::io::Error| self.lost(input, place, &error);
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder).map_err(lost)?;
        }
        fs::write(place, bytes).map_err(lost)
    }
    /// A place as people know it: below the folder.
    pub fn shown(&self, place: &Path) -> String {
        let inner = place.strip_prefix(&self.root).unwrap_or(place);
        if inner.as_os_str().is_empty() {
            ".".to_owned()
        } else {
            inner.display().to_string()
        }
    }
    /// The fault of the file system, by kind.
    pub fn lost(&self, input: &str, place: &Path, error: &std::io::Error) -> NodeError {
        let why = error.kind();
        fault(input, &format!("`{}`: {why}", self.shown(place)))
    }
}

/// The fault of an input that names a file.
pub(in crate::nodes) fn fault(input: &str, why: &str) -> NodeError {
    NodeError::new(format!("the input `{input}` names no usable file: {why}")).code("file.path")
}
fn outside(input: &str) -> NodeError {
    fault(input, "it leads out of the workspace folder")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn workspace(folder: &Path) -> Workspace {
        let host = Host {
            workspace: Some(folder.join("w")),
            ..Host::default()
        };
        Workspace::of(&host).expect("a folder")
    }

    #[rstest]
    #[case("a.txt", "a.txt")]
    #[case("~/a/b.txt", "a/b.txt")]
    #[case("~", ".")]
    #[case("", ".")]
    #[case("a/../b", "b")]
    #[case("/workspace/x", "x")]
    #[case("file:///workspace/x", "x")]
    fn paths_inside_are_found(#[case] text: &str, #[case] expected: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = workspace(folder.path());
        let place = workspace.place("path", text).expect("inside");
        assert_eq!(workspace.shown(&place), expected);
        let whole = place.display().to_string();
        assert_eq!(workspace.place("path", &whole).expect("the same"), place);
    }

    #[rstest]
    #[case("..")]
    #[case("a/../../b")]
    #[case("/etc/passwd")]
    #[case("/")]
    #[case("file:///etc/passwd")]
    #[case("link/passwd")]
    #[case("nowhere")]
    #[case("a\0b")]
    fn paths_outside_are_refused(#[case] text: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = workspace(folder.path());
        std::os::unix::fs::symlink("/etc", workspace.root().join("link")).expect("a link");
        std::os::unix::fs::symlink(folder.path().join("made"), workspace.root().join("nowhere"))
            .expect("a link");
        let error = workspace.place("path", text).expect_err("outside");
        assert!(error.message.contains("`path`"), "{error}");
        assert_eq!(error.code.as_deref(), Some("file.path"));
    }

    #[test]
    fn files_have_a_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = workspace(folder.path());
        workspace
            .write("path", &workspace.root().join("d/a"), b"12345")
            .expect("written");
        assert_eq!(workspace.read("path", "d/a", 5).expect("read"), b"12345");
        assert!(workspace.read("path", "d/a", 4).is_err());
        assert!(workspace.read("path", "d", 5).is_err());
    }
}
