//! Files with an operator's own prices. The one part of pricing that reads a disk.

use std::io;
use std::path::{Path, PathBuf};

/// Names and texts of the files that a setting names: a file, or a folder with a file per provider, which are read in the
/// order of their names. Of two prices for one model the later one counts.
///
/// # Errors
/// When the file or the folder cannot be read.
pub async fn read(path: &Path) -> io::Result<Vec<(String, String)>> {
    let mut files: Vec<PathBuf> = Vec::new();
    if tokio::fs::metadata(path).await?.is_dir() {
        let mut entries = tokio::fs::read_dir(path).await?;
        while let Some(entry) = entries.next_entry().await? {
            let file = entry.path();
            if file.extension().is_some_and(|ending| ending == "toml") {
                files.push(file);
            }
        }
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let mut texts = Vec::with_capacity(files.len());
    for file in files {
        let text = tokio::fs::read_to_string(&file).await?;
        texts.push((file.display().to_string(), text));
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_is_read_by_the_names_of_its_files_and_a_file_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("b.toml", "two"), ("a.toml", "one"), ("notes.txt", "no")] {
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        let texts = |read: Vec<(String, String)>| read.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(read(folder.path()).await.expect("read")), ["one", "two"]);
        let one = read(&folder.path().join("b.toml")).await.expect("read");
        assert_eq!(texts(one), ["two"]);
        assert!(read(&folder.path().join("none")).await.is_err());
    }
}
