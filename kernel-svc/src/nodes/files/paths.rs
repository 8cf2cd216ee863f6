//! Types that work with paths as texts. They touch no file.

use std::path::{Component, Path, PathBuf};

use atelier_proto::value::{Map, Value};

use super::folder::matches;
use crate::{
    node::NodeError,
    nodes::{
        args::{Args, map, text_of},
        code::{Compute, Plain, Routed, Types, factory},
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    let plain: [(&'static str, Compute); 11] = [
        ("lib.os.Basename", basename),
        ("lib.os.Dirname", |args| Ok(folder_of(&path(args, "path")).into())),
        ("lib.os.FileExtension", |args| {
            Ok(split(&path(args, "path")).1.into())
        }),
        ("lib.os.FileName", |args| Ok(last(&path(args, "path")).into())),
        ("lib.os.FileNameMatch", |args| {
            matches(&args.text("filename"), &pattern(args), sensitive(args)).map(Value::from)
        }),
        ("lib.os.FilterFileNames", |args| {
            let (pattern, sensitive) = (pattern(args), sensitive(args));
            let names = args.list("filenames").into_iter().map(|name| text_of(&name));
            let mut kept = Vec::new();
            for name in names {
                if matches(&name, &pattern, sensitive)? {
                    kept.push(Value::from(name));
                }
            }
            Ok(Value::list(kept))
        }),
        ("lib.os.GetDirectory", |args| {
            Ok(folder_of(&path(args, "path")).into())
        }),
        ("lib.os.JoinPaths", |args| {
            let mut joined = PathBuf::new();
            args.list("paths")
                .iter()
                .for_each(|part| joined.push(text_of(part)));
            Ok(joined.display().to_string().into())
        }),
        ("lib.os.NormalizePath", |args| {
            Ok(normal(Path::new(&path(args, "path"))).into())
        }),
        ("lib.os.PathToString", |args| Ok(path(args, "file_path").into())),
        ("lib.os.RelativePath", relative),
    ];
    let mut types: Types = plain
        .into_iter()
        .map(|(name, compute)| (name, factory(Plain(compute))))
        .collect();
    types.push(("lib.os.SplitExtension", factory(Routed(split_extension))));
    types.push(("lib.os.SplitPath", factory(Routed(split_path))));
    types
}

/// A path as text; older files write it as an object.
pub(super) fn path(args: Args<'_>, name: &str) -> String {
    match args.0.get(name) {
        Some(Value::Map(map)) if map.contains_key("path") => map.get("path").map(text_of).unwrap_or_default(),
        _ => args.text(name),
    }
}
fn pattern(args: Args<'_>) -> String {
    args.text_or("pattern", "*")
}
fn sensitive(args: Args<'_>) -> bool {
    args.flag("case_sensitive", true)
}
fn last(path: &str) -> String {
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned()
}
fn folder_of(path: &str) -> String {
    match path.rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((folder, _)) => folder.to_owned(),
        None => String::new(),
    }
}
/// What comes before the ending, and the ending with its dot. A name that begins with a dot has none.
fn split(path: &str) -> (String, String) {
    let name = path.rsplit('/').next().unwrap_or_default();
    let bare = name.trim_start_matches('.');
    match bare.rfind('.') {
        Some(at) => {
            let ending = bare.get(at..).unwrap_or_default().to_owned();
            let root = path.strip_suffix(&ending).unwrap_or(path).to_owned();
            (root, ending)
        }
        None => (path.to_owned(), String::new()),
    }
}
fn basename(args: Args<'_>) -> Result<Value, NodeError> {
    let name = last(&path(args, "path"));
    Ok(if args.flag("remove_extension", false) {
        split(&name).0.into()
    } else {
        name.into()
    })
}
fn split_extension(args: Args<'_>) -> Result<Map, NodeError> {
    let (root, extension) = split(&path(args, "path"));
    Ok(map([("root", root.into()), ("extension", extension.into())]))
}
fn split_path(args: Args<'_>) -> Result<Map, NodeError> {
    let path = path(args, "path");
    let base = path.rsplit('/').next().unwrap_or_default();
    Ok(map([
        ("dirname", folder_of(&path).into()),
        ("basename", base.into()),
    ]))
}
fn normal(path: &Path) -> String {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => match out.components().next_back() {
                Some(Component::Normal(_)) => {
                    out.pop();
                }
                Some(Component::RootDir) => {}
                _ => out.push(".."),
            },
            other => out.push(other),
        }
    }
    if out.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        out.display().to_string()
    }
}
fn relative(args: Args<'_>) -> Result<Value, NodeError> {
    let target = normal(Path::new(&path(args, "target_path")));
    let start = args.text_or("start_path", ".");
    let start = normal(Path::new(&start));
    let (target, start) = (Path::new(&target), Path::new(&start));
    if target.is_absolute() != start.is_absolute() && start != Path::new(".") {
        let text = "the inputs `target_path` and `start_path` must both be absolute, or neither";
        return Err(NodeError::new(text).code("input.value"));
    }
    let parts = |path: &Path| -> Vec<String> {
        path.components()
            .filter(|part| !matches!(part, Component::CurDir))
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect()
    };
    let (target, start) = (parts(target), parts(start));
    let same = target
        .iter()
        .zip(&start)
        .take_while(|(one, other)| one == other)
        .count();
    let up = std::iter::repeat_n("..".to_owned(), start.len() - same);
    let path: Vec<String> = up.chain(target.into_iter().skip(same)).collect();
    Ok(if path.is_empty() {
        ".".into()
    } else {
        path.join("/").into()
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use crate::nodes::testing::process;

    #[rstest]
    #[case("Basename", json!({"path": "/a/b.tar.gz"}), json!({"output": "b.tar.gz"}))]
    #[case("Basename", json!({"path": "/a/b.txt", "remove_extension": true}), json!({"output": "b"}))]
    #[case("Dirname", json!({"path": "/a/b.txt"}), json!({"output": "/a"}))]
    #[case("Dirname", json!({"path": "b.txt"}), json!({"output": ""}))]
    #[case("FileExtension", json!({"path": "a/.hidden"}), json!({"output": ""}))]
    #[case("FileExtension", json!({"path": "a/b.tar.gz"}), json!({"output": ".gz"}))]
    #[case("FileName", json!({"path": {"type": "file_path", "path": "a/b.c"}}), json!({"output": "b.c"}))]
    #[case("FileNameMatch", json!({"filename": "a.TXT", "pattern": "*.txt"}), json!({"output": false}))]
    #[case("FileNameMatch", json!({"filename": "a.TXT", "pattern": "?.[tT]*", "case_sensitive": false}),
        json!({"output": true}))]
    #[case("FilterFileNames", json!({"filenames": ["a.md", "b.txt"], "pattern": "*.md"}), json!({"output": ["a.md"]}))]
    #[case("JoinPaths", json!({"paths": ["a", "b", "c.txt"]}), json!({"output": "a/b/c.txt"}))]
    #[case("NormalizePath", json!({"path": "a/./b/../c"}), json!({"output": "a/c"}))]
    #[case("NormalizePath", json!({"path": "/../a"}), json!({"output": "/a"}))]
    #[case("PathToString", json!({"file_path": {"path": "a/b"}}), json!({"output": "a/b"}))]
    #[case("RelativePath", json!({"target_path": "/a/b/c", "start_path": "/a/d"}), json!({"output": "../b/c"}))]
    #[case("RelativePath", json!({"target_path": "a", "start_path": "a"}), json!({"output": "."}))]
    #[case("SplitExtension", json!({"path": "a/b.txt"}), json!({"root": "a/b", "extension": ".txt"}))]
    #[case("SplitPath", json!({"path": "a/b.txt"}), json!({"dirname": "a", "basename": "b.txt"}))]
    #[tokio::test]
    async fn paths_are_taken_apart(
        #[case] name: &str,
        #[case] inputs: serde_json::Value,
        #[case] expected: serde_json::Value,
    ) {
        let out = process(&format!("lib.os.{name}"), inputs).await.expect("a path");
        assert_eq!(out, expected);
    }

    #[tokio::test]
    async fn paths_of_two_kinds_have_no_relation() {
        let inputs = json!({"target_path": "/a", "start_path": "b"});
        let error = process("lib.os.RelativePath", inputs).await.expect_err("a fault");
        assert!(error.message.contains("`target_path`"));
    }
}
