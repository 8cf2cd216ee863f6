//! The parts of a run after its last actor: leftovers, edges, status.

use std::sync::{Arc, atomic::Ordering};

use atelier_proto::kernel::v1::JobStatus;
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        core::Core,
        handle::Shared,
        result::{Outcome, RunResult, Suspension, gather},
        supervise::Desk,
    },
    Run,
};
use crate::node::NodeError;

impl Run {
    /// Ends the run: its edges, its inputs, and what it came to.
    pub(super) async fn finish(mut self, shared: &Shared, cancel: &CancellationToken) -> RunResult {
        let core = Arc::clone(&self.core);
        let strict = core.options.strict && !cancel.is_cancelled();
        let (left, open) = if strict {
            (leftovers(&core), open_edges(&core))
        } else {
            Default::default()
        };
        let drained = core.left_edges();
        let started = shared.started.get();
        let externals = || started.into_iter().flat_map(|started| &started.externals);
        let externals = || externals().map(|(external, _)| external);
        for external in externals() {
            external.finish(&core, None).await;
        }
        // All at once: together they take no longer than the slowest may.
        join_all(externals().map(|external| {
            let code = async {
                let mut exec = external.exec.lock().await;
                exec.finalize(&external.ctx).await;
            };
            core.clean_up(&external.node, &external.ctx.cancel, code)
        }))
        .await;
        core.flush_edges(&drained).await;
        let pending = core.waiters.len();
        core.waiters.end_all();
        let (mut node_errors, mut suspensions) = (Vec::new(), Vec::new());
        // Groups of nodes are told of one after the other; the order is that of the ends.
        self.ends.sort_unstable_by_key(|(number, _)| *number);
        for (_, end) in &self.ends {
            match &end.outcome {
                Outcome::Completed => {}
                Outcome::Failed(error) => node_errors.extend(
                    core.plan
                        .nodes
                        .get(end.at)
                        .map(|node| (Arc::clone(&node.label.id), error.clone())),
                ),
                Outcome::Suspended(found) => suspensions.push(found.clone()),
            }
        }
        let (outputs, outputs_by_handle) = gather(&core.plan, self.ends.into_iter().map(|(_, end)| end));
        let cancelled = cancel.is_cancelled();
        let mut errors: Vec<String> = node_errors
            .iter()
            .map(|(id, error)| format!("{id}: {}", error.message))
            .collect();
        let mut code = node_errors.first().map(|(_, error)| code_of(error));
        if let Some((why, text)) = self.stalled.take() {
            errors.push(text);
            code.get_or_insert_with(|| why.to_owned());
        }
        if strict && !cancelled && suspensions.is_empty() {
            let clean = errors.is_empty();
            let findings = left
                .into_iter()
                .chain((pending > 0).then(|| format!("{pending} control events were never answered")));
            let findings: Vec<String> = findings.chain(open.into_iter().filter(|_| clean)).collect();
            if !findings.is_empty() {
                code.get_or_insert_with(|| "run.leftovers".to_owned());
                errors.extend(findings);
            }
        }
        let suspensions: Vec<Suspension> = if cancelled { Vec::new() } else { suspensions };
        let status = match (cancelled, suspensions.is_empty(), errors.is_empty()) {
            (true, ..) => JobStatus::Cancelled,
            (_, false, _) => JobStatus::Suspended,
            (_, true, false) => JobStatus::Failed,
            (_, true, true) => JobStatus::Completed,
        };
        let failed = status == JobStatus::Failed;
        RunResult {
            outputs,
            outputs_by_handle,
            error: failed.then(|| errors.join("; ")),
            error_code: code.filter(|_| failed),
            node_errors,
            suspensions,
            interventions: core.desk.as_ref().map(Desk::interventions).unwrap_or_default(),
            pending_responses: core.waiters.len(),
            live_actors: core
                .finished
                .iter()
                .zip(&core.plan.nodes)
                .filter(|(finished, node)| !node.external && !finished.load(Ordering::SeqCst))
                .count(),
            ..RunResult::of(status)
        }
    }
}

fn code_of(error: &NodeError) -> String {
    error.code.clone().unwrap_or_else(|| "node.error".to_owned())
}

/// Inboxes with values that nobody read, or with producers that never ended.
fn leftovers(core: &Core) -> Vec<String> {
    let mut texts = Vec::new();
    for (node, inbox) in core.plan.nodes.iter().zip(&core.inboxes) {
        let mut handles: Vec<&str> = node.facts.handles.iter().map(|facts| &*facts.name).collect();
        handles.push("__control__");
        for (at, name) in handles.into_iter().enumerate() {
            let (unread, open) = inbox.view(|view| (view.buffered(at), view.open(at)));
            if unread > 0 || open > 0 {
                texts.push(format!(
                    "input {name} of node {} was left with {unread} unread values and {open} open producers",
                    node.label.id
                ));
            }
        }
    }
    texts
}

fn open_edges(core: &Core) -> Vec<String> {
    let data = core
        .plan
        .edges
        .iter()
        .zip(&core.edges)
        .filter(|(edge, state)| !edge.control && !state.is_ended());
    data.map(|(edge, _)| format!("edge {} was never ended", edge.id))
        .collect()
}

/// Who waits for whom, when nobody can go on.
pub(super) fn stall_text(core: &Core) -> String {
    let mut waits = Vec::new();
    for (at, (node, inbox)) in core.plan.nodes.iter().zip(&core.inboxes).enumerate() {
        if node.external
            || core
                .finished
                .get(at)
                .is_some_and(|finished| finished.load(Ordering::SeqCst))
        {
            continue;
        }
        let open = node
            .facts
            .handles
            .iter()
            .enumerate()
            .filter(|(at, _)| inbox.view(|view| view.is_open(*at)));
        let edges = open
            .flat_map(|(_, facts)| &facts.edges)
            .filter(|edge| core.edges.get(**edge).is_some_and(|state| !state.is_ended()));
        let names: Vec<&str> = edges
            .filter_map(|edge| core.plan.edges.get(*edge))
            .map(|edge| &*edge.id)
            .collect();
        let control = inbox.view(|view| view.is_open(node.facts.handles.len()));
        let what = match (names.is_empty(), control) {
            (false, _) => format!("edges {}", names.join(", ")),
            (true, true) => "control events".to_owned(),
            (true, false) => "something".to_owned(),
        };
        waits.push(format!("node {} waits for {what}", node.label.id));
    }
    format!("the run cannot go on: {}", waits.join("; "))
}
