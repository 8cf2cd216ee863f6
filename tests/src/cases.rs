//! The index of cases: every id of every specification, and whether a test covers it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use regex::Regex;
use serde::Deserialize;

use crate::process::root;

/// Whether a case has a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// A test has its id in its name.
    Covered,
    /// Not built yet.
    Later,
}
#[derive(Debug, Deserialize)]
struct Index {
    cases: BTreeMap<String, Case>,
}
#[derive(Debug, Deserialize)]
struct Case {
    status: Status,
}
/// The index as it is checked in.
///
/// # Errors
/// It cannot be read.
pub fn index() -> anyhow::Result<BTreeMap<String, Status>> {
    let index: Index = toml::from_str(&fs::read_to_string(path())?)?;
    Ok(index
        .cases
        .into_iter()
        .map(|(id, case)| (id, case.status))
        .collect())
}
/// Writes the index anew.
///
/// # Errors
/// It cannot be written.
pub fn write_index(cases: &BTreeMap<String, Status>) -> anyhow::Result<()> {
    let mut text = "# Every case of the specifications: covered by a test that has its id in its name, or not built yet.\n\
                    # UPDATE_INDEX=1 cargo test -p atelier-tests --test conformance writes it anew.\n[cases]\n"
        .to_owned();
    for (id, status) in cases {
        let status = match status {
            Status::Covered => "covered",
            Status::Later => "later",
        };
        text.push_str(&format!("\"{id}\" = {{ status = \"{status}\" }}\n"));
    }
    Ok(fs::write(path(), text)?)
}
fn path() -> PathBuf {
    root().join("tests/cases/index.toml")
}
/// Ids of the specifications, when they are beside the project.
///
/// # Errors
/// They are there and cannot be read.
pub fn specified() -> anyhow::Result<Option<BTreeSet<String>>> {
    let folder =
        std::env::var_os("ATELIER_SPECS").map_or_else(|| root().join("../shared/spec"), PathBuf::from);
    if !folder.exists() {
        return Ok(None);
    }
    let id = Regex::new(r"\b[KWGPF]-\d{3}\b")?;
    let mut ids = BTreeSet::new();
    for name in [
        "kernel.md",
        "wire.md",
        "generations.md",
        "providers.md",
        "field-cases.md",
    ] {
        let text = fs::read_to_string(folder.join(name)).with_context(|| name.to_owned())?;
        ids.extend(id.find_iter(&text).map(|found| found.as_str().to_owned()));
    }
    ensure!(
        ids.len() > 500,
        "only {} ids were found in the specifications",
        ids.len()
    );
    Ok(Some(ids))
}
/// Ids in the names of tests: `fn w_034_w_035_…`, `fn w_038_and_039_…` and
/// `fn k_078_to_k_081_…` in Rust, `"w_034 …"` or `"W-034 …"` in TypeScript and Python.
///
/// # Errors
/// The sources cannot be read.
pub fn tested() -> anyhow::Result<BTreeSet<String>> {
    let function = Regex::new(r"fn ([kwgpf]_\d{3}_(?:(?:to_|and_)?(?:[kwgpf]_)?\d{3}_)*)")?;
    let case = Regex::new(r#"["'`]((?:[kwgpfKWGPF][_-]\d{3}[ ,:_]*)+)"#)?;
    let part = Regex::new(r"(?:([kwgpfKWGPF])[_-])?(\d{3})(_to_)?")?;
    let mut ids = BTreeSet::new();
    for file in sources(&root())? {
        let text = fs::read_to_string(&file)?;
        let rust = file.extension().is_some_and(|extension| extension == "rs");
        let names = function
            .captures_iter(&text)
            .filter(|_| rust)
            .chain(case.captures_iter(&text));
        for name in names.filter_map(|found| found.get(1)) {
            let (mut letter, mut from) = (String::new(), None);
            for found in part.captures_iter(name.as_str()) {
                let number: u16 = found[2].parse()?;
                if let Some(own) = found.get(1) {
                    letter = own.as_str().to_uppercase();
                }
                for number in from.unwrap_or(number)..=number {
                    ids.insert(format!("{letter}-{number:03}"));
                }
                from = found.get(3).map(|_| number);
            }
        }
    }
    Ok(ids)
}
fn sources(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            if !matches!(name.as_ref(), "target" | "node_modules" | "dist" | "charts")
                && !name.starts_with('.')
            {
                files.extend(sources(&entry.path())?);
            }
        } else if [".rs", ".ts", ".py"].iter().any(|ending| name.ends_with(ending)) {
            files.push(entry.path());
        }
    }
    Ok(files)
}
