//! Which actors share a task. A task a node would let the threads of the runtime wake each other for every value; a task a
//! run would keep a run on one thread. Neighbours along the edges share one: most values go to a node of the same task,
//! which costs no wake-up.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use atelier_proto::kernel::v1::NodeStatus;
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use tracing::Instrument;

use super::super::{
    actor::Actor,
    cancel::panic_text,
    result::{NodeEnd, Outcome},
};
use crate::{event::Event, graph::plan::Plan, node::NodeError};

/// Nodes of a task at most. One that keeps its thread holds up as many.
const MOST: usize = 64;
/// Tasks of a run before nodes begin to share one: small graphs have one a node.
const TASKS: usize = 16;

/// The end of a node, and its number among the ends of the run.
pub(super) type Ended = (usize, NodeEnd);

/// Deals the actors into groups, along the edges.
pub(super) fn groups(plan: &Plan, actors: Vec<Actor>) -> Vec<Vec<Actor>> {
    let size = actors.len().div_ceil(TASKS).clamp(1, MOST);
    let mut places: Vec<Option<Actor>> = Vec::new();
    places.resize_with(plan.nodes.len(), || None);
    let count = actors.len();
    for actor in actors {
        let at = actor.at;
        if let Some(place) = places.get_mut(at) {
            *place = Some(actor);
        }
    }
    let mut groups = Vec::with_capacity(count.div_ceil(size));
    let mut group = Vec::with_capacity(size);
    for at in along_the_edges(plan) {
        group.extend(places.get_mut(at).and_then(Option::take));
        if group.len() == size {
            groups.push(std::mem::replace(&mut group, Vec::with_capacity(size)));
        }
    }
    if !group.is_empty() {
        groups.push(group);
    }
    groups
}

/// All nodes, each soon after one that feeds it.
fn along_the_edges(plan: &Plan) -> Vec<usize> {
    let mut fed = vec![false; plan.nodes.len()];
    for edge in &plan.edges {
        if let Some(fed) = fed.get_mut(edge.target) {
            *fed = true;
        }
    }
    let first = (0..plan.nodes.len()).filter(|at| fed.get(*at) == Some(&false));
    // Nodes of a loop that nothing outside feeds come last.
    let mut left: Vec<usize> = first.chain(0..plan.nodes.len()).collect();
    left.reverse();
    let mut seen = vec![false; plan.nodes.len()];
    let mut order = Vec::with_capacity(plan.nodes.len());
    while let Some(at) = left.pop() {
        let (Some(node), Some(seen)) = (plan.nodes.get(at), seen.get_mut(at)) else {
            continue;
        };
        if !std::mem::replace(seen, true) {
            order.push(at);
            let next = node.edges_out.iter().chain(&node.control_out).rev();
            left.extend(
                next.filter_map(|edge| plan.edges.get(*edge))
                    .map(|edge| edge.target),
            );
        }
    }
    order
}

/// Runs the actors of a group to their ends.
pub(super) async fn run(actors: Vec<Actor>, ends: Arc<AtomicUsize>) -> Vec<Ended> {
    let count = actors.len();
    let mut tasks: FuturesUnordered<_> = actors
        .into_iter()
        .map(|actor| {
            let span = tracing::info_span!("node", node_id = %actor.node.label.id);
            whole(Box::new(actor)).instrument(span)
        })
        .collect();
    let mut ended = Vec::with_capacity(count);
    while let Some(end) = tasks.next().await {
        ended.push((ends.fetch_add(1, Ordering::Relaxed), end));
    }
    ended
}

/// An actor and what follows its end, whatever panics.
async fn whole(actor: Box<Actor>) -> NodeEnd {
    let (core, at) = (Arc::clone(&actor.core), actor.at);
    match AssertUnwindSafe(task(actor)).catch_unwind().await {
        Ok(end) => end,
        Err(panic) => {
            // What follows the end of a node has failed: its consumers must not wait for it.
            let text = panic_text(panic.as_ref());
            Box::pin(core.end_node(at, Some(&text))).await;
            core.activity.end();
            NodeEnd {
                at,
                outcome: Outcome::Failed(NodeError::new(text)),
                values: Vec::new(),
            }
        }
    }
}

/// An actor and what follows its end, also when its node panics.
async fn task(actor: Box<Actor>) -> NodeEnd {
    let (core, at, node) = (Arc::clone(&actor.core), actor.at, Arc::clone(&actor.node));
    let end = AssertUnwindSafe(actor.run()).catch_unwind().await;
    let end = match end {
        Ok(end) => end,
        Err(panic) => {
            let error = NodeError::new(panic_text(panic.as_ref())).code("node.panicked");
            let event = Event::Node {
                node: Arc::clone(&node.label),
                status: NodeStatus::Error,
                result: None,
                error: Some(error.message.clone()),
                detail: Some(Box::new(error.clone())),
                properties: Arc::clone(&node.node.properties),
            };
            Box::pin(core.say(event)).await;
            NodeEnd {
                at,
                outcome: Outcome::Failed(error),
                values: Vec::new(),
            }
        }
    };
    let error = match &end.outcome {
        Outcome::Failed(error) => Some(error.message.as_str()),
        Outcome::Completed | Outcome::Suspended(_) => None,
    };
    if let Some(probe) = &core.probe {
        probe.ended(&node.label.id);
    }
    core.end_node(at, error).await;
    core.activity.end();
    end
}
