//! A bar per node on stderr, while a run goes on. In a pipe: a line per change.

use std::{
    collections::HashMap,
    io::{IsTerminal, Write},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::Value;

/// Shows how far a run is.
pub(super) struct Progress {
    bars: MultiProgress,
    nodes: Mutex<HashMap<String, Node>>,
    names: HashMap<String, String>,
    quiet: bool,
    terminal: bool,
}
struct Node {
    bar: ProgressBar,
    artifacts: u64,
}
impl Progress {
    /// For a workflow; silent when events go to stdout as JSON.
    pub(super) fn new(workflow: &Value, quiet: bool) -> Self {
        let graph = workflow.get("graph").unwrap_or(workflow);
        let names = graph
            .get("nodes")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|node| {
                let id = node.get("id")?.as_str()?.to_owned();
                let name = node.get("name").and_then(Value::as_str).map(ToOwned::to_owned);
                Some((id.clone(), name.unwrap_or(id)))
            });
        let terminal = std::io::stderr().is_terminal();
        Self {
            bars: MultiProgress::new(),
            nodes: Mutex::default(),
            names: names.collect(),
            quiet,
            terminal,
        }
    }
    /// Says something beside the bars.
    pub(super) fn say(&self, text: &str) {
        if self.terminal {
            let _ = self.bars.println(text);
        } else {
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }
    /// Shows one event.
    pub(super) fn take(&self, event: &Value) {
        if self.quiet {
            return;
        }
        let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "node_update" => self.node(text("node_id"), text("status"), text("error")),
            "node_progress" => self.step(text("node_id"), event),
            "generation_complete" => self.artifact(text("node_id")),
            "log_update" if text("severity") != "info" => {
                self.say(&format!(
                    "{} {}: {}",
                    text("severity"),
                    self.name(text("node_id")),
                    text("content")
                ));
            }
            "job_update" if text("status") == "queued" => self.say(text("message")),
            "job_update" => {
                for issue in event
                    .get("validation_issues")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                {
                    self.say(&format!("problem {}", crate::jobs::issue_line(issue)));
                }
            }
            _ => {}
        }
    }
    fn name(&self, id: &str) -> String {
        self.names.get(id).cloned().unwrap_or_else(|| id.to_owned())
    }
    fn node(&self, id: &str, status: &str, error: &str) {
        if !self.terminal {
            let error = if error.is_empty() {
                String::new()
            } else {
                format!(": {error}")
            };
            self.say(&format!("{status} {}{error}", self.name(id)));
            return;
        }
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let node = nodes.entry(id.to_owned()).or_insert_with(|| {
            let bar = self.bars.add(ProgressBar::new_spinner());
            bar.set_style(style("{spinner} {prefix:18} {wide_msg}"));
            bar.set_prefix(self.name(id));
            bar.enable_steady_tick(Duration::from_millis(120));
            Node { bar, artifacts: 0 }
        });
        match status {
            "completed" => node
                .bar
                .finish_with_message(format!("done{}", made(node.artifacts))),
            "error" => node.bar.abandon_with_message(format!("failed: {error}")),
            _ => node.bar.set_message("running"),
        }
    }
    fn step(&self, id: &str, event: &Value) {
        let number = |key: &str| event.get(key).and_then(Value::as_u64).unwrap_or(0);
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(node) = nodes.get(id) {
            node.bar
                .set_style(style("{spinner} {prefix:18} {bar:28} {pos}/{len} {wide_msg}"));
            node.bar.set_length(number("total"));
            node.bar.set_position(number("progress"));
        }
    }
    fn artifact(&self, id: &str) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(node) = nodes.get_mut(id) {
            node.artifacts += 1;
            node.bar.set_message(format!("running{}", made(node.artifacts)));
        }
    }
    /// Ends the bars that still run.
    pub(super) fn finish(&self) {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        for node in nodes.values().filter(|node| !node.bar.is_finished()) {
            node.bar.abandon();
        }
    }
}
fn made(artifacts: u64) -> String {
    match artifacts {
        0 => String::new(),
        1 => ", 1 artifact".to_owned(),
        more => format!(", {more} artifacts"),
    }
}
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸─")
}
