//! Files of the workspace folder: the only ones that media types read and write.
//!
//! A path is relative to the workspace, or absolute and within it. Links that lead out of it are not followed.

use std::{
    io::Write,
    path::{Component, Path, PathBuf},
};

use bytes::Bytes;

use super::media_io::{MAX_INPUT, value_fault};
use crate::node::{Context, NodeError};

/// Files that one folder may give, and entries that are looked at for them.
const MAX_FILES: usize = 10_000;
const MAX_ENTRIES: usize = 100_000;
/// How deep folders are searched.
const MAX_DEPTH: usize = 32;

/// The workspace, made when it is not there.
fn workspace(ctx: &Context) -> Result<PathBuf, NodeError> {
    let folder = ctx
        .services
        .host()
        .workspace
        .as_ref()
        .ok_or_else(|| NodeError::new("this run has no workspace folder").code("workspace.missing"))?;
    let made = std::fs::create_dir_all(folder).and_then(|()| folder.canonicalize());
    made.map_err(|error| NodeError::new(format!("the workspace folder cannot be used: {}", error.kind())))
}
fn outside(name: &str) -> NodeError {
    value_fault(name, "must be a path within the workspace folder")
}
/// The path within the workspace that a text names; `..` may not leave it.
fn named(root: &Path, name: &str, text: &str) -> Result<PathBuf, NodeError> {
    // As for other files (`files/workspace`): both are names of the folder itself.
    let path = Path::new(text.trim());
    let inner = path
        .strip_prefix("~")
        .or_else(|_| path.strip_prefix("/workspace"));
    let path = inner.unwrap_or(path);
    if text.contains('\0') || text.len() > 4_096 {
        return Err(outside(name));
    }
    let mut full = PathBuf::new();
    let joined = root.join(path);
    for part in joined.components() {
        match part {
            Component::ParentDir => {
                full.pop();
            }
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => full.push(part),
        }
    }
    if full.starts_with(root) {
        Ok(full)
    } else {
        Err(outside(name))
    }
}
/// Something that is there.
pub(super) fn existing(ctx: &Context, name: &str, text: &str) -> Result<PathBuf, NodeError> {
    let root = workspace(ctx)?;
    let path = named(&root, name, text)?;
    let real = path.canonicalize().map_err(|_| {
        value_fault(
            name,
            &format!(
                "names {:?}, which is not in the workspace folder",
                shown(&root, &path)
            ),
        )
    })?;
    if real.starts_with(&root) {
        Ok(real)
    } else {
        Err(outside(name))
    }
}
fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
/// A path of a file as it is told to others: relative to the workspace.
pub(super) fn relative(ctx: &Context, path: &Path) -> Result<String, NodeError> {
    Ok(shown(&workspace(ctx)?, path))
}
/// A file's bytes, bounded.
pub(super) async fn read(name: &str, path: &Path) -> Result<Bytes, NodeError> {
    let lost = |error: std::io::Error| {
        value_fault(
            name,
            &format!("names a file that cannot be read: {}", error.kind()),
        )
    };
    let info = tokio::fs::metadata(path).await.map_err(lost)?;
    if !info.is_file() {
        return Err(value_fault(name, "must name a file"));
    }
    if info.len() > MAX_INPUT as u64 {
        return Err(value_fault(
            name,
            &format!("names a file of more than {MAX_INPUT} bytes"),
        ));
    }
    tokio::fs::read(path).await.map(Bytes::from).map_err(lost)
}
/// Writes a file of a folder as a whole or not at all. Without `overwrite` a number is added to a name that is taken.
pub(super) fn write(
    ctx: &Context,
    folder: &str,
    filename: &str,
    overwrite: bool,
    bytes: &[u8],
) -> Result<PathBuf, NodeError> {
    let root = workspace(ctx)?;
    let folder = named(&root, "folder", folder)?;
    let single = Path::new(filename).file_name().and_then(|name| name.to_str());
    let single = single
        .filter(|single| *single == filename && !filename.is_empty())
        .ok_or_else(|| value_fault("filename", "must be the name of a file, without folders"))?;
    let failed = |error: std::io::Error| {
        NodeError::new(format!("the file {single:?} cannot be written: {}", error.kind()))
    };
    // The deepest folder that is there must be within the workspace before anything is made in it.
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(&root);
    if !there.canonicalize().map_err(failed)?.starts_with(&root) {
        return Err(outside("folder"));
    }
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let path = if overwrite {
        folder.join(single)
    } else {
        free(&folder, single)?
    };
    let temporary = folder.join(format!(".{}.part", uuid::Uuid::now_v7()));
    let written = std::fs::File::create_new(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| std::fs::rename(&temporary, &path));
    if let Err(error) = written {
        drop(std::fs::remove_file(&temporary));
        return Err(failed(error));
    }
    Ok(path)
}
fn free(folder: &Path, single: &str) -> Result<PathBuf, NodeError> {
    let (stem, end) = single
        .rsplit_once('.')
        .map_or((single, String::new()), |(stem, end)| (stem, format!(".{end}")));
    let names = std::iter::once(single.to_owned())
        .chain((1..MAX_FILES).map(|number| format!("{stem}_{number}{end}")));
    names
        .map(|name| folder.join(name))
        .find(|path| path.symlink_metadata().is_err())
        .ok_or_else(|| value_fault("filename", "is taken, and so are all numbered names"))
}
/// Files of a folder with one of the ends (`.png`) and a name that fits a pattern with `*` and `?`, sorted by path.
pub(super) fn files(
    ctx: &Context,
    name: &str,
    folder: &str,
    deep: bool,
    ends: &[String],
    pattern: &str,
) -> Result<Vec<PathBuf>, NodeError> {
    let root = existing(ctx, name, folder)?;
    if !root.is_dir() {
        return Err(value_fault(name, "must name a folder"));
    }
    let ends: Vec<String> = ends
        .iter()
        .map(|end| end.trim_start_matches('.').to_lowercase())
        .collect();
    let pattern = glob(pattern)?;
    let (mut found, mut looked) = (Vec::new(), 0);
    let mut open = vec![(root, 0)];
    while let Some((folder, depth)) = open.pop() {
        let lost = |error: std::io::Error| {
            value_fault(
                name,
                &format!("names a folder that cannot be read: {}", error.kind()),
            )
        };
        for entry in std::fs::read_dir(&folder).map_err(lost)? {
            let entry = entry.map_err(lost)?;
            looked += 1;
            if looked > MAX_ENTRIES || found.len() >= MAX_FILES {
                return Err(value_fault(
                    name,
                    &format!("names a folder of more than {MAX_FILES} files"),
                ));
            }
            let kind = entry.file_type().map_err(lost)?;
            let path = entry.path();
            let end = path
                .extension()
                .and_then(|end| end.to_str())
                .unwrap_or_default()
                .to_lowercase();
            let file = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() && deep && depth < MAX_DEPTH {
                open.push((path, depth + 1));
            } else if kind.is_file()
                && !file.starts_with('.')
                && (ends.is_empty() || ends.contains(&end))
                && pattern.as_ref().is_none_or(|pattern| pattern.is_match(&file))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
fn glob(pattern: &str) -> Result<Option<regex::Regex>, NodeError> {
    if pattern.is_empty() {
        return Ok(None);
    }
    let translated: String = pattern
        .chars()
        .map(|sign| match sign {
            '*' => ".*".to_owned(),
            '?' => ".".to_owned(),
            other => regex::escape(&other.to_string()),
        })
        .collect();
    let made = regex::RegexBuilder::new(&format!("^{translated}$"))
        .case_insensitive(true)
        .size_limit(1 << 20)
        .build();
    made.map(Some)
        .map_err(|_| value_fault("pattern", "must be a pattern with * and ?"))
}
