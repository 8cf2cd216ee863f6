//! Types that read and write files of the workspace.

use std::{fs, io::Write, path::Path, time::SystemTime};

use atelier_proto::value::{Map, Value};
use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};

use super::{Workspace, fault, folder::document, named, paths::path};
use crate::{
    node::NodeError,
    nodes::{
        args::{Args, map, one},
        code::{Types, factory},
        dates,
        work::{Filed, InFolder, MAX_CONTENT},
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    let filed: [(&'static str, InFolder); 21] = [
        ("lib.os.AbsolutePath", |args, folder| {
            let place = folder.place("path", &path(args, "path"))?;
            Ok(one("output", place.display().to_string()))
        }),
        ("lib.os.AccessedTime", |args, folder| {
            time(args, folder, fs::Metadata::accessed)
        }),
        ("lib.os.CopyFile", copy),
        ("lib.os.CreateDirectory", create_directory),
        ("lib.os.CreatedTime", |args, folder| {
            // Not every file system remembers the creation.
            time(args, folder, |about| {
                about.created().or_else(|_| about.modified())
            })
        }),
        ("lib.os.FileExists", |args, folder| {
            asked(args, folder, Path::exists)
        }),
        ("lib.os.GetFileSize", |args, folder| {
            let place = folder.found("path", &path(args, "path"))?;
            let size = about(folder, &place)?.len();
            Ok(one("output", i64::try_from(size).unwrap_or(i64::MAX)))
        }),
        ("lib.os.GetPathInfo", info),
        ("lib.os.IsDirectory", |args, folder| {
            asked(args, folder, Path::is_dir)
        }),
        ("lib.os.IsFile", |args, folder| asked(args, folder, Path::is_file)),
        ("lib.os.ModifiedTime", |args, folder| {
            time(args, folder, fs::Metadata::modified)
        }),
        ("lib.os.MoveFile", move_file),
        ("lib.os.ReadBinaryFile", |args, folder| {
            let bytes = folder.read("path", &path(args, "path"), MAX_CONTENT)?;
            Ok(one("output", STANDARD.encode(bytes)))
        }),
        ("lib.os.ReadTextFile", |args, folder| {
            encoding(args)?;
            let bytes = folder.read("path", &path(args, "path"), MAX_CONTENT)?;
            let text = String::from_utf8(bytes).map_err(|_| fault("path", "it is no text in UTF-8"))?;
            Ok(one("output", text))
        }),
        ("lib.os.WorkspaceDirectory", |_, folder| {
            Ok(one("output", folder.root().display().to_string()))
        }),
        ("lib.os.WriteBinaryFile", |args, folder| {
            let bytes = STANDARD
                .decode(args.text("content").trim())
                .map_err(|_| NodeError::new("the input `content` is no base64 text").code("input.value"))?;
            write(args, folder, &bytes, false)
        }),
        ("lib.os.WriteTextFile", |args, folder| {
            encoding(args)?;
            write(
                args,
                folder,
                args.text("content").as_bytes(),
                args.flag("append", false),
            )
        }),
        ("nodetool.document.LoadDocumentFile", |args, folder| {
            let place = folder.found("path", &path(args, "path"))?;
            if !place.is_file() {
                return Err(fault("path", &format!("`{}` is no file", folder.shown(&place))));
            }
            Ok(one("output", document(&place)))
        }),
        ("lib.docx.LoadWordDocument", |args, folder| {
            let place = folder.found("path", &path(args, "path"))?;
            Ok(one("output", document(&place)))
        }),
        ("nodetool.text.SaveTextFile", save_text),
        ("lib.sqlite.GetDatabasePath", |args, folder| {
            let place = folder.place("database_name", &args.text_or("database_name", "memory.db"))?;
            Ok(one("output", place.display().to_string()))
        }),
    ];
    filed
        .into_iter()
        .map(|(name, work)| (name, factory(Filed(work))))
        .collect()
}

fn about(folder: &Workspace, place: &Path) -> Result<fs::Metadata, NodeError> {
    fs::metadata(place).map_err(|error| folder.lost("path", place, &error))
}
/// A question about a place; one that is empty or not there is answered with no.
fn asked(args: Args<'_>, folder: &Workspace, question: fn(&Path) -> bool) -> Result<Map, NodeError> {
    let path = path(args, "path");
    let answer = !path.trim().is_empty() && question(&folder.place("path", &path)?);
    Ok(one("output", answer))
}
fn time(
    args: Args<'_>,
    folder: &Workspace,
    of: fn(&fs::Metadata) -> std::io::Result<SystemTime>,
) -> Result<Map, NodeError> {
    let place = folder.found("path", &path(args, "path"))?;
    let at = of(&about(folder, &place)?).map_err(|error| folder.lost("path", &place, &error))?;
    Ok(one(
        "output",
        dates::value(DateTime::<Utc>::from(at).fixed_offset()),
    ))
}
fn info(args: Args<'_>, folder: &Workspace) -> Result<Map, NodeError> {
    let place = folder.place("path", &path(args, "path"))?;
    let name = place
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let ending = place
        .extension()
        .map(|ending| format!(".{}", ending.to_string_lossy()));
    let size = fs::metadata(&place).map(|about| about.len()).unwrap_or_default();
    let parent = place
        .parent()
        .filter(|above| above.starts_with(folder.root()))
        .map(|above| folder.shown(above));
    let info = map([
        ("path", place.display().to_string().into()),
        ("name", name.into()),
        ("extension", ending.unwrap_or_default().into()),
        ("parent", parent.unwrap_or_default().into()),
        ("size", i64::try_from(size).unwrap_or(i64::MAX).into()),
        ("exists", place.exists().into()),
        ("is_file", place.is_file().into()),
        ("is_directory", place.is_dir().into()),
    ]);
    Ok(one("output", Value::from(info)))
}
fn create_directory(args: Args<'_>, folder: &Workspace) -> Result<Map, NodeError> {
    let place = folder.place("path", &path(args, "path"))?;
    if place.exists() && !(place.is_dir() && args.flag("exist_ok", true)) {
        return Err(fault(
            "path",
            &format!("`{}` is there already", folder.shown(&place)),
        ));
    }
    fs::create_dir_all(&place).map_err(|error| folder.lost("path", &place, &error))?;
    Ok(Map::new())
}
/// Where a file goes: into a folder under its own name, else to the place itself.
fn target(args: Args<'_>, folder: &Workspace, from: &Path) -> Result<std::path::PathBuf, NodeError> {
    let text = path(args, "destination_path");
    if text.trim().is_empty() {
        return Err(fault("destination_path", "it is empty"));
    }
    let mut place = folder.place("destination_path", &text)?;
    if place.is_dir() {
        // A link of that name may lead out.
        let within = place.join(from.file_name().unwrap_or_default());
        place = folder.place("destination_path", &within.display().to_string())?;
    }
    if let Some(above) = place.parent() {
        fs::create_dir_all(above).map_err(|error| folder.lost("destination_path", &place, &error))?;
    }
    Ok(place)
}
fn is_same(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |place: &Path| fs::metadata(place).map(|about| (about.dev(), about.ino())).ok();
    of(one).is_some_and(|one| Some(one) == of(other))
}
fn copy(args: Args<'_>, folder: &Workspace) -> Result<Map, NodeError> {
    let from = folder.found("source_path", &path(args, "source_path"))?;
    if !from.is_file() {
        return Err(fault("source_path", "only files are copied"));
    }
    let to = target(args, folder, &from)?;
    // Copied onto itself under another name, a file would be empty.
    if !is_same(&from, &to) {
        fs::copy(&from, &to).map_err(|error| folder.lost("destination_path", &to, &error))?;
    }
    Ok(one("output", folder.shown(&to)))
}
fn move_file(args: Args<'_>, folder: &Workspace) -> Result<Map, NodeError> {
    let from = folder.found("source_path", &path(args, "source_path"))?;
    if from == folder.root() {
        return Err(fault("source_path", "the workspace folder itself stays"));
    }
    let to = target(args, folder, &from)?;
    fs::rename(&from, &to).map_err(|error| folder.lost("destination_path", &to, &error))?;
    Ok(Map::new())
}
fn encoding(args: Args<'_>) -> Result<(), NodeError> {
    let name = args.text_or("encoding", "utf-8").to_lowercase();
    if matches!(name.as_str(), "" | "utf-8" | "utf8" | "ascii" | "us-ascii") {
        return Ok(());
    }
    let text = "the input `encoding` must be utf-8: other encodings are not read or written";
    Err(NodeError::new(text).code("input.value"))
}
fn write(args: Args<'_>, folder: &Workspace, bytes: &[u8], append: bool) -> Result<Map, NodeError> {
    let text = path(args, "path");
    if text.trim().is_empty() {
        return Err(fault("path", "it is empty"));
    }
    if bytes.len() > MAX_CONTENT {
        return Err(
            NodeError::new(format!("the input `content` is larger than {MAX_CONTENT} bytes"))
                .code("input.size"),
        );
    }
    let place = folder.place("path", &text)?;
    if append && place.exists() {
        let lost = |error: std::io::Error| folder.lost("path", &place, &error);
        let mut file = fs::OpenOptions::new().append(true).open(&place).map_err(lost)?;
        file.write_all(bytes).map_err(lost)?;
    } else {
        folder.write("path", &place, bytes)?;
    }
    Ok(one("output", folder.shown(&place)))
}
/// The text goes on as a reference to the file.
fn save_text(args: Args<'_>, folder: &Workspace) -> Result<Map, NodeError> {
    let name = named(&args.text("name"), "text.txt", Utc::now());
    let place = folder
        .place("folder", &path(args, "folder"))
        .and_then(|above| folder.place("name", &above.join(&name).display().to_string()))?;
    folder.write("name", &place, args.text("text").as_bytes())?;
    let mut saved = document(&place);
    "text".clone_into(&mut saved.kind);
    saved.mime_type = Some("text/plain".to_owned());
    Ok(one("output", saved))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use crate::nodes::testing::Node;

    #[tokio::test]
    async fn files_are_written_read_moved_and_asked_about() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = |name: &str, inputs| {
            let mut node = Node::in_folder(&format!("lib.os.{name}"), folder.path());
            async move { node.process(inputs).await }
        };
        let written = run("WriteTextFile", json!({"path": "a/b.txt", "content": "one"})).await;
        assert_eq!(written.expect("written"), json!({"output": "a/b.txt"}));
        let more = json!({"path": "a/b.txt", "content": " two", "append": true});
        run("WriteTextFile", more).await.expect("written");
        let steps = [
            (
                "ReadTextFile",
                json!({"path": "a/b.txt"}),
                json!({"output": "one two"}),
            ),
            ("GetFileSize", json!({"path": "a/b.txt"}), json!({"output": 7})),
            ("FileExists", json!({"path": "a/c.txt"}), json!({"output": false})),
            ("FileExists", json!({"path": ""}), json!({"output": false})),
            ("IsDirectory", json!({"path": "a"}), json!({"output": true})),
            ("IsFile", json!({"path": "a"}), json!({"output": false})),
            (
                "CopyFile",
                json!({"source_path": "a/b.txt", "destination_path": "c.txt"}),
                json!({"output": "c.txt"}),
            ),
            (
                "MoveFile",
                json!({"source_path": "c.txt", "destination_path": "a"}),
                json!({}),
            ),
            (
                "ReadBinaryFile",
                json!({"path": "a/c.txt"}),
                json!({"output": "b25lIHR3bw=="}),
            ),
            (
                "WriteBinaryFile",
                json!({"path": "d", "content": "AAE="}),
                json!({"output": "d"}),
            ),
            ("CreateDirectory", json!({"path": "e/f"}), json!({})),
            ("IsDirectory", json!({"path": "e/f"}), json!({"output": true})),
        ];
        for (name, inputs, expected) in steps {
            assert_eq!(run(name, inputs).await.expect(name), expected, "{name}");
        }
        let info = run("GetPathInfo", json!({"path": "a/b.txt"}))
            .await
            .expect("info");
        assert_eq!(
            (&info["output"]["name"], &info["output"]["parent"]),
            (&json!("b.txt"), &json!("a"))
        );
        let time = run("ModifiedTime", json!({"path": "a/b.txt"}))
            .await
            .expect("a time");
        assert_eq!(time["output"]["type"], "datetime");
    }

    #[rstest]
    #[case("ReadTextFile", json!({"path": "../x"}), "`path` names no usable file: it leads out")]
    #[case("ReadTextFile", json!({"path": "/etc/passwd"}), "it leads out")]
    #[case("ReadTextFile", json!({"path": "none.txt"}), "there is no `none.txt`")]
    #[case("ReadTextFile", json!({"path": ""}), "it is empty")]
    #[case("ReadTextFile", json!({"path": "x", "encoding": "utf-16"}), "`encoding`")]
    #[case("WriteTextFile", json!({"path": "/tmp/x", "content": ""}), "it leads out")]
    #[case("WriteBinaryFile", json!({"path": "x", "content": "?"}), "`content` is no base64")]
    #[case("CopyFile", json!({"source_path": "none", "destination_path": "x"}), "`source_path`")]
    #[case("MoveFile", json!({"source_path": ".", "destination_path": "x"}), "`source_path`")]
    #[tokio::test]
    async fn faults_name_the_input(
        #[case] name: &str,
        #[case] inputs: serde_json::Value,
        #[case] part: &str,
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut node = Node::in_folder(&format!("lib.os.{name}"), folder.path());
        let error = node.process(inputs).await.expect_err("a fault");
        assert!(error.message.contains(part), "{}", error.message);
    }

    #[tokio::test]
    async fn without_a_folder_no_file_is_reached() {
        let error = Node::new("lib.os.ReadTextFile")
            .process(json!({"path": "x"}))
            .await;
        assert!(
            error
                .expect_err("off")
                .message
                .contains("no files in this deployment")
        );
    }
}
