//! What one case takes of memory, measured in a process of its own: this test program, started again for that case.

use std::{fmt, process::Stdio, str::FromStr, sync::Arc};

use anyhow::{Context, ensure};

use crate::{
    graphs::{ready, registry, timed},
    peak_mib,
};

/// Names the case in the environment of the other process.
const VARIABLE: &str = "ATELIER_LOAD_CASE";

/// A graph of some size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// One behind the other.
    Chain(usize),
    /// One beside the other.
    SideBySide(usize),
    /// Items through one consumer into a list.
    List(usize),
}
impl Case {
    /// Nodes that run, or invocations of the consumer.
    pub fn size(self) -> usize {
        let (Self::Chain(size) | Self::SideBySide(size) | Self::List(size)) = self;
        size
    }
}
impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(nodes) => write!(out, "chain of {nodes}"),
            Self::SideBySide(nodes) => write!(out, "{nodes} side by side"),
            Self::List(items) => write!(out, "list of {items}"),
        }
    }
}
impl FromStr for Case {
    type Err = anyhow::Error;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, size) = text.split_once(' ').context("a case")?;
        let size = size.parse()?;
        Ok(match name {
            "chain" => Self::Chain(size),
            "side" => Self::SideBySide(size),
            _ => Self::List(size),
        })
    }
}

/// The largest resident memory of a process that does a case and nothing else, in MiB.
pub async fn peak_of(case: Case, bare: bool) -> anyhow::Result<u64> {
    let name = match case {
        Case::Chain(size) => format!("chain {size}"),
        Case::SideBySide(size) => format!("side {size}"),
        Case::List(size) => format!("list {size}"),
    };
    let done = tokio::process::Command::new(std::env::current_exe()?)
        .args(["memory::one_case", "--exact", "--nocapture"])
        .env(VARIABLE, format!("{} {name}", if bare { "bare" } else { "ours" }))
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    let text = String::from_utf8_lossy(&done.stdout);
    ensure!(done.status.success(), "{name} failed: {text}");
    let line = text.lines().find_map(|line| line.split_once("peak: "));
    Ok(line.context("no figure")?.1.trim().parse()?)
}

/// Does nothing unless it is started for a case.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_case() -> anyhow::Result<()> {
    let Ok(variable) = std::env::var(VARIABLE) else {
        return Ok(());
    };
    let (whose, case) = variable.split_once(' ').context("a case")?;
    let case: Case = case.parse()?;
    if whose == "bare" {
        case.floor().await;
    } else {
        let registry = registry();
        let graph = ready(&case.graph(), &registry);
        timed(graph, Arc::clone(&registry)).await;
    }
    println!("peak: {}", peak_mib().context("no figure")?);
    Ok(())
}
