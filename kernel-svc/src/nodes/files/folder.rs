//! Folders of the workspace as streams of files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use atelier_proto::value::{Map, MediaRef, Value};
use regex::RegexBuilder;

use super::{Workspace, fault, paths::path};
use crate::{
    node::{Context, NodeError},
    nodes::{
        args::{Args, map, text_of},
        code::{Generator, Sink, Streamed, Types, factory},
        work::{MAX_CONTENT, blocking},
    },
};

/// Files that one listing gives at most.
const MAX_FILES: usize = 10_000;
/// Folders below each other that are entered.
const MAX_DEPTH: usize = 32;
/// Longest pattern of a name, in bytes.
const MAX_PATTERN: usize = 1_000;
/// Largest compiled pattern, in bytes.
const MAX_REGEX: usize = 1 << 20;

const FOLDERS: [(&str, Folder); 3] = [
    ("lib.os.ListFiles", Folder::Files),
    ("nodetool.document.ListDocuments", Folder::Documents),
    ("nodetool.text.LoadTextFolder", Folder::Texts),
];
/// All types of this part.
pub(super) fn types() -> Types {
    FOLDERS
        .into_iter()
        .map(|(name, folder)| (name, factory(Streamed(folder))))
        .collect()
}
/// The code of a type that yields frames, for tests.
#[cfg(test)]
pub(super) fn generator(node_type: &str) -> Option<Box<dyn Generator>> {
    let found = FOLDERS.into_iter().find(|(name, _)| *name == node_type);
    found.map(|(_, folder)| Box::new(folder) as Box<dyn Generator>)
}

/// Whether a name fits a pattern of `*`, `?` and `[…]`.
pub(super) fn matches(name: &str, pattern: &str, case_sensitive: bool) -> Result<bool, NodeError> {
    let bad = || NodeError::new("the input `pattern` is no pattern of names").code("input.value");
    if pattern.len() > MAX_PATTERN {
        return Err(bad());
    }
    let mut regex = String::from("^");
    let mut set = false;
    for letter in pattern.chars() {
        match letter {
            _ if set => {
                set = letter != ']';
                match letter {
                    '!' if regex.ends_with('[') => regex.push('^'),
                    '[' | '\\' | '&' | '~' => {
                        regex.push('\\');
                        regex.push(letter);
                    }
                    other => regex.push(other),
                }
            }
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            '[' if pattern.contains(']') => {
                set = true;
                regex.push('[');
            }
            other => regex.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    regex.push('$');
    let regex = RegexBuilder::new(&regex)
        .case_insensitive(!case_sensitive)
        .dot_matches_new_line(true)
        .size_limit(MAX_REGEX)
        .build()
        .map_err(|_| bad())?;
    Ok(regex.is_match(name))
}

/// Files of a folder in order of their names. Hidden ones and links that lead outside are left out.
fn listed(
    workspace: &Workspace,
    folder: &str,
    below: bool,
    wanted: impl Fn(&str) -> Result<bool, NodeError>,
) -> Result<Vec<PathBuf>, NodeError> {
    let folder = if folder.trim().is_empty() { "." } else { folder };
    let start = workspace.found("folder", folder)?;
    if !start.is_dir() {
        return Err(fault(
            "folder",
            &format!("`{}` is no folder", workspace.shown(&start)),
        ));
    }
    let mut found = Vec::new();
    let mut open = vec![(start, 0)];
    while let Some((folder, depth)) = open.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| workspace.lost("folder", &folder, &error))?;
        for entry in entries.filter_map(Result::ok) {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(kind) = entry.file_type() else { continue };
            if name.starts_with('.') || kind.is_symlink() {
                continue;
            }
            if kind.is_dir() {
                if below && depth < MAX_DEPTH {
                    open.push((path, depth + 1));
                }
            } else if wanted(&name)? {
                found.push(path);
                if found.len() > MAX_FILES {
                    return Err(fault("folder", &format!("it has more than {MAX_FILES} files")));
                }
            }
        }
    }
    found.sort();
    Ok(found)
}

/// What is given of each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Folder {
    Files,
    Documents,
    Texts,
}
impl Folder {
    /// Handles: the item, its path, all items, all paths.
    fn handles(
        self,
    ) -> (
        &'static str,
        Option<&'static str>,
        &'static str,
        Option<&'static str>,
    ) {
        match self {
            Self::Files => ("file", None, "files", None),
            Self::Documents => ("document", None, "documents", None),
            Self::Texts => ("text", Some("path"), "texts", Some("paths")),
        }
    }
}
/// Names that are wanted: by pattern, and by ending where the type has a list of them.
struct Wanted {
    pattern: String,
    endings: Vec<String>,
}
impl Wanted {
    fn fits(&self, name: &str) -> Result<bool, NodeError> {
        let lower = name.to_lowercase();
        let ends = self.endings.is_empty() || self.endings.iter().any(|ending| lower.ends_with(ending));
        Ok(ends && matches(name, &self.pattern, true)?)
    }
}

#[async_trait]
impl Generator for Folder {
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, ctx: &Context) -> Result<(), NodeError> {
        let args = Args(&inputs);
        let folder = path(args, "folder");
        let below = args.flag("include_subdirectories", false) || args.flag("recursive", false);
        let pattern = args.text("pattern");
        let wanted = Wanted {
            pattern: if pattern.is_empty() {
                "*".to_owned()
            } else {
                pattern
            },
            endings: args
                .list("extensions")
                .iter()
                .map(|ending| text_of(ending).to_lowercase())
                .collect(),
        };
        let workspace = Workspace::of(ctx.services.host())?;
        let opened = workspace.clone();
        let files = blocking(ctx, move || {
            listed(&opened, &folder, below, |name| wanted.fits(name))
        })
        .await?;
        let (item, place, items, places) = self.handles();
        let (mut all, mut names, mut bytes) = (Vec::new(), Vec::new(), 0_usize);
        for file in files {
            let shown = Value::from(workspace.shown(&file));
            let value = self.load(&workspace, file, ctx).await?;
            bytes = bytes.saturating_add(value.as_str().map_or(0, str::len));
            if bytes > MAX_CONTENT {
                // The list of all of them is held until the end.
                let text = format!("the input `folder` has texts of more than {MAX_CONTENT} bytes together");
                return Err(NodeError::new(text).code("input.size"));
            }
            let mut frame = map([(item, value.clone())]);
            frame.extend(place.map(|place| (place.to_owned(), shown.clone())));
            frames.frame(frame).await?;
            all.push(value);
            names.push(shown);
        }
        let mut last = map([(items, Value::list(all))]);
        last.extend(places.map(|places| (places.to_owned(), Value::list(names))));
        frames.frame(last).await
    }
}
impl Folder {
    async fn load(self, workspace: &Workspace, file: PathBuf, ctx: &Context) -> Result<Value, NodeError> {
        match self {
            Self::Files => Ok(workspace.shown(&file).into()),
            Self::Documents => Ok(document(&file).into()),
            Self::Texts => {
                let (workspace, path) = (workspace.clone(), file.display().to_string());
                let bytes = blocking(ctx, move || workspace.read("folder", &path, MAX_CONTENT)).await?;
                Ok(String::from_utf8_lossy(&bytes).into_owned().into())
            }
        }
    }
}
/// A file of the workspace as a document.
pub(super) fn document(file: &Path) -> MediaRef {
    MediaRef {
        kind: "document".to_owned(),
        uri: format!("file://{}", file.display()),
        ..MediaRef::default()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::nodes::testing::Node;

    #[rstest]
    #[case("a.txt", "*.txt", true)]
    #[case("a.txt", "[ab].t?t", true)]
    #[case("c.txt", "[!ab].txt", true)]
    #[case("a.txt", "[!ab].txt", false)]
    #[case("a+b.txt", "a+b.*", true)]
    #[case("a.txtx", "*.txt", false)]
    #[case("[", "[", true)]
    fn names_fit_patterns(#[case] name: &str, #[case] pattern: &str, #[case] fits: bool) {
        assert_eq!(matches(name, pattern, true).expect("a pattern"), fits);
    }

    #[tokio::test]
    async fn files_of_a_folder_come_one_after_the_other_and_then_together() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("a/b")).expect("folders");
        for (name, text) in [("a/1.txt", "one"), ("a/b/2.md", "two"), ("a/.3.txt", "hidden")] {
            fs::write(folder.path().join(name), text).expect("a file");
        }
        let mut node = Node::in_folder("lib.os.ListFiles", folder.path());
        let frames = node.frames(json!({"folder": "a"})).await.expect("frames");
        assert_eq!(
            frames,
            [json!({"file": "a/1.txt"}), json!({"files": ["a/1.txt"]})]
        );
        let mut node = Node::in_folder("nodetool.text.LoadTextFolder", folder.path());
        let inputs = json!({"folder": "a", "include_subdirectories": true, "extensions": [".MD"]});
        assert_eq!(
            node.frames(inputs).await.expect("frames"),
            [
                json!({"text": "two", "path": "a/b/2.md"}),
                json!({"texts": ["two"], "paths": ["a/b/2.md"]})
            ]
        );
        let mut node = Node::in_folder("nodetool.text.LoadTextFolder", folder.path());
        let error = node
            .frames(json!({"folder": "../.."}))
            .await
            .expect_err("outside");
        assert!(error.message.contains("`folder`"), "{error}");
        let error = node.frames(json!({"folder": "gone"})).await.expect_err("nothing");
        assert!(error.message.contains("there is no `gone`"), "{error}");
    }
}
