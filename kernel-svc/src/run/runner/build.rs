//! The parts of a run before its actors start: inboxes, executors, and the first values of its inputs.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, atomic::AtomicBool},
};

use atelier_proto::value::Map;
use futures_util::future::{join, join_all};
use tokio::{sync::Mutex as AsyncMutex, time::Instant};
use tokio_util::sync::CancellationToken;

use super::super::{
    activity::Activity,
    actor::{Actor, context},
    budget::Budget,
    cancel::call,
    core::{Core, EdgeState},
    inbox::Inbox,
    journal::Journal,
    mode::external::External,
    options::RunOptions,
    probe::Probe,
    quiet::Loops,
    result::Resumed,
    supervise::{Desk, secrets},
    variables::Variables,
    waiters::Waiters,
};
use crate::{
    event::EventSender,
    graph::plan::{Plan, PlanNode},
    node::{Registry, Services, TriggerEvent},
};

/// A code and a text.
pub(super) type Failure = (String, String);

/// Executors of a run.
pub(super) struct Made {
    pub actors: Vec<Actor>,
    pub externals: Vec<External>,
    /// Why they are not all there.
    pub error: Option<Failure>,
}

pub(super) fn core(
    plan: Plan,
    options: RunOptions,
    events: &EventSender,
    cancel: &CancellationToken,
    (probe, journal): (Option<Arc<dyn Probe>>, Option<Arc<Journal>>),
    (trigger, resume): (Option<TriggerEvent>, HashMap<String, Resumed>),
    (job_id, params): (&Arc<str>, &Map),
) -> Core {
    let desk = options.supervision.0.clone().map(|supervisor| {
        let nodes = plan.nodes.iter().map(|node| &node.label.id);
        Desk::new(supervisor, Arc::clone(job_id), secrets(&plan, params), nodes)
    });
    let activity = Arc::new(Activity::default());
    let budget = Arc::new(Budget::new(
        options.byte_budget,
        plan.nodes.len(),
        Arc::clone(&activity),
    ));
    let inbox = |node: &Arc<PlanNode>| {
        let handles = node.facts.handles.iter().map(|handle| handle.edges.len());
        Arc::new(Inbox::new(
            handles.chain([node.controllers]),
            Arc::clone(&activity),
            Arc::clone(&budget),
        ))
    };
    let flags = || plan.nodes.iter().map(|_| AtomicBool::new(false)).collect();
    Core {
        inboxes: plan.nodes.iter().map(inbox).collect(),
        edges: plan.edges.iter().map(|_| EdgeState::default()).collect(),
        events: events.downgrade(),
        cancel: cancel.child_token(),
        options,
        finished: flags(),
        tainted: flags(),
        opened: plan.roots.iter().map(|_| Mutex::default()).collect(),
        waiters: Waiters::default(),
        loops: Loops::of(&plan),
        variables: Arc::new(Variables::of(&plan, Arc::clone(&activity))),
        queues: plan
            .nodes
            .iter()
            .filter(|node| node.node.meta.trigger)
            .map(|node| (Arc::clone(&node.label.id), Arc::default()))
            .collect(),
        no_events: Arc::default(),
        trigger,
        resume,
        probe,
        journal,
        desk,
        started: Instant::now(),
        activity,
        budget,
        plan,
    }
}

/// Makes and initialises one executor a node, in order of the graph. After a failure the earlier ones are
/// still given, to be finalised.
pub(super) async fn executors(
    core: &Arc<Core>,
    registry: &Registry,
    services: &Arc<dyn Services>,
    (job_id, workflow_id): (&Arc<str>, Option<&Arc<str>>),
) -> Made {
    let mut made = Made {
        actors: Vec::new(),
        externals: Vec::new(),
        error: None,
    };
    for (at, (node, inbox)) in core.plan.nodes.iter().zip(&core.inboxes).enumerate() {
        let (id, ty) = (&node.label.id, &node.label.node_type);
        let Some(mut exec) = registry.executor(ty) else {
            made.error = Some((
                "graph.unknown_type".to_owned(),
                format!("node {id} has the unknown type {ty}"),
            ));
            break;
        };
        let ctx = context(job_id, workflow_id, node, (core, at), services);
        if let Err(error) = call(&ctx.cancel, core.options.cancel_grace, exec.initialize(&ctx)).await {
            let text = format!("node {id} ({ty}) could not be initialised: {}", error.message);
            made.error = Some((error.code.unwrap_or_else(|| "node.initialize".to_owned()), text));
            break;
        }
        if node.external {
            made.externals.push(External {
                node: Arc::clone(node),
                ctx,
                exec: AsyncMutex::new(exec),
            });
        } else {
            made.actors.push(Actor::new(
                core,
                at,
                (Arc::clone(node), Arc::clone(inbox)),
                exec,
                ctx,
            ));
        }
    }
    made
}

/// Sends the first values of the inputs and ends those that nothing more can come to. The limit of the
/// inboxes and the budget hold afterwards only: nobody reads them yet.
pub(super) async fn dispatch(core: &Core, externals: &[External], params: &Map) -> Result<(), Failure> {
    for external in externals {
        let Some(value) = external.initial(params) else {
            continue;
        };
        if let Err(error) = external.send(core, value, None).await {
            let (name, ty) = (external.node.node.input_name(), &external.node.label.node_type);
            return Err((
                "input.failed".to_owned(),
                format!("input {name} ({ty}): {}", error.message),
            ));
        }
        if !external.stays_open(params) {
            external.finish(core, None).await;
        }
    }
    core.inboxes
        .iter()
        .for_each(|inbox| inbox.set_limit(core.options.buffer_limit));
    core.budget.enforce();
    Ok(())
}

/// Finalises executors that will never run, all at once: together they take no longer than the slowest may.
pub(super) async fn finalize(core: &Core, mut actors: Vec<Actor>, mut externals: Vec<External>) {
    let actors = join_all(actors.iter_mut().map(|actor| {
        let code = actor.exec.finalize(&actor.ctx);
        core.clean_up(&actor.node, &actor.ctx.cancel, code)
    }));
    let externals = join_all(externals.iter_mut().map(|external| {
        let code = external.exec.get_mut().finalize(&external.ctx);
        core.clean_up(&external.node, &external.ctx.cancel, code)
    }));
    join(actors, externals).await;
}
