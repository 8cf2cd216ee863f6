//! Loops (kernel specification 6): which edges close one, what is known about the outputs of a Loop node, and
//! the rules that its edges and its body keep. How a loop runs lives in `run::mode`.

use atelier_proto::kernel::v1::Issue;
use foldhash::{HashMap, HashSet};

use super::{
    facts::{Facts, HandleFacts, NodeFacts, OutputFacts, Repeat, Root, Scope},
    model::{CONTROL, Edge, HydratedGraph, Node, issue},
    order::Places,
};
use crate::node::CorrelationKind;

/// The type of the node that repeats a part of the graph.
pub const LOOP: &str = "nodetool.control.Loop";
/// The group of the iteration that a loop opens.
pub const GROUP: &str = "loop";
/// The input that a run of the loop starts with.
pub const INITIAL: &str = "initial";
/// The input that brings the value of the next iteration.
pub const NEXT: &str = "next";
/// The input that says whether there is a next iteration.
pub const CONDITION: &str = "condition";
/// The output with the value of an iteration.
pub const VALUE: &str = "value";
/// The output with the number of an iteration.
pub const INDEX: &str = "index";
/// The output with the result.
pub const DONE: &str = "done";
/// The property that bounds the iterations.
pub const MAX_ITERATIONS: &str = "max_iterations";

/// Whether a node is a loop.
#[must_use]
pub fn is_loop(node: &Node) -> bool {
    &*node.node_type == LOOP
}
/// Whether an input of a loop is fed from its body.
#[must_use]
pub fn is_feedback(handle: &str) -> bool {
    handle == NEXT || handle == CONDITION
}
/// Whether an edge into a node closes a loop.
#[must_use]
pub fn is_back_edge(edge: &Edge, target: &Node) -> bool {
    !edge.control && is_feedback(&edge.target_handle) && is_loop(target)
}

/// The outputs of a loop, from what feeds it.
pub(super) fn outputs(facts: &NodeFacts, root: Root) -> Vec<OutputFacts> {
    let source = facts.handles.iter().position(|handle| &*handle.name == INITIAL);
    let outer = source
        .and_then(|at| facts.handles.get(at))
        .map(|handle| handle.scope.clone())
        .unwrap_or_default();
    let mut inner = outer.clone();
    inner.0.push(root);
    let output = |name: &str, kind, scope: &Scope, root| OutputFacts {
        name: name.into(),
        kind,
        source,
        scope: scope.clone(),
        repeats: Repeat::No,
        root,
    };
    vec![
        output(VALUE, CorrelationKind::Iteration, &inner, Some(root)),
        output(INDEX, CorrelationKind::Iteration, &inner, Some(root)),
        output(DONE, CorrelationKind::Single, &outer, None),
    ]
}

/// Adds what the back edges carry to the facts of all loops, and checks the rules. The rest of the graph is
/// analysed already.
pub(super) fn close(graph: &HydratedGraph, places: &Places, facts: &mut Facts) -> Vec<Issue> {
    let loops: Vec<usize> = graph
        .nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| is_loop(node))
        .map(|(at, _)| at)
        .collect();
    if loops.is_empty() {
        return Vec::new();
    }
    let mut issues = Vec::new();
    let links = Links::of(graph, places);
    let mut fed = feedback(graph, places);
    let controlled = graph.edges.iter().filter(|edge| edge.control);
    let controlled: HashSet<&str> = controlled.map(|edge| &*edge.target).collect();
    let gathered = gathered(facts);
    for at in loops {
        let Some(node) = graph.nodes.get(at) else { continue };
        let feedback = fed.remove(&at).unwrap_or_default();
        let feedback = [(NEXT, feedback.next), (CONDITION, feedback.condition)];
        let is_controlled = controlled.contains(&*node.id);
        inputs(node, is_controlled, &feedback, facts.nodes.get(at), &mut issues);
        let Some(expected) = facts.nodes.get(at).and_then(body_scope) else {
            continue;
        };
        for (name, edges) in &feedback {
            for edge in edges.iter().filter_map(|edge| graph.edges.get(*edge)) {
                back_edge(node, edge, &expected, source(facts, places, edge), &mut issues);
            }
            if let Some(own) = facts.nodes.get_mut(at).filter(|_| !edges.is_empty()) {
                own.handles.push(HandleFacts {
                    name: (*name).into(),
                    scope: expected.clone(),
                    repeats: Repeat::No,
                    list: false,
                    edges: edges.clone(),
                });
            }
        }
        // Most loops have nothing in them that gathers: their bodies need not be walked through.
        if expected.innermost().is_none_or(|root| !gathered.contains(&root)) {
            continue;
        }
        let ends = feedback.iter().flat_map(|(_, edges)| edges);
        let ends = ends.filter_map(|edge| places.ends(*edge).0);
        for inside in links.body(at, ends) {
            aggregates(node, inside, graph, facts, &mut issues);
        }
    }
    issues
}

/// Iterations in which some node gathers the values of one.
fn gathered(facts: &Facts) -> HashSet<Root> {
    let gathers = |node: &&NodeFacts| {
        let mut outputs = node.outputs.iter();
        outputs.any(|output| output.kind == CorrelationKind::Aggregate)
    };
    let nodes = facts.nodes.iter().filter(gathers);
    let scopes = nodes.flat_map(|node| {
        node.handles
            .iter()
            .map(|handle| &handle.scope)
            .chain([&node.scope])
    });
    scopes.flat_map(|scope| scope.0.iter().copied()).collect()
}

/// The edges into the two inputs that are fed from the body, by their place in the graph.
#[derive(Default)]
struct Feedback {
    next: Vec<usize>,
    condition: Vec<usize>,
}
fn feedback(graph: &HydratedGraph, places: &Places) -> HashMap<usize, Feedback> {
    let mut fed: HashMap<usize, Feedback> = HashMap::default();
    for (at, edge) in graph.edges.iter().enumerate() {
        let Some(target) = places.ends(at).1 else {
            continue;
        };
        if graph
            .nodes
            .get(target)
            .is_some_and(|node| is_back_edge(edge, node))
        {
            let own = fed.entry(target).or_default();
            let list = if &*edge.target_handle == NEXT {
                &mut own.next
            } else {
                &mut own.condition
            };
            list.push(at);
        }
    }
    fed
}

/// The iterations that the values of a loop's body belong to.
fn body_scope(facts: &NodeFacts) -> Option<Scope> {
    let value = facts.outputs.iter().find(|output| &*output.name == VALUE)?;
    Some(value.scope.clone())
}

fn source(facts: &Facts, places: &Places, edge: &Edge) -> (Scope, Repeat) {
    let output = places
        .get(&edge.source)
        .and_then(|at| facts.nodes.get(at))
        .and_then(|node| {
            node.outputs
                .iter()
                .find(|output| output.name == edge.source_handle)
        });
    output
        .map(|output| (output.scope.clone(), output.repeats))
        .unwrap_or_default()
}

/// Which inputs are wired: the next value must be, each at most once, and nothing but the three of them.
fn inputs(
    node: &Node,
    is_controlled: bool,
    feedback: &[(&'static str, Vec<usize>); 2],
    facts: Option<&NodeFacts>,
    issues: &mut Vec<Issue>,
) {
    let id = &node.id;
    for (name, edges) in feedback {
        if *name == NEXT && edges.is_empty() {
            let text =
                format!("loop {id} repeats nothing: an edge from its body must enter its input {NEXT}");
            issues.push(issue("loop.next_missing", Some(node), NEXT, text));
        }
        if edges.len() > 1 {
            let text = format!(
                "input {name} of loop {id} takes one edge, but {} enter it",
                edges.len()
            );
            issues.push(issue("loop.several_edges", Some(node), name, text));
        }
    }
    let handles = facts.map(|facts| facts.handles.as_slice()).unwrap_or_default();
    for handle in handles.iter().filter(|handle| &*handle.name != INITIAL) {
        let text = format!(
            "input {} of loop {id} cannot be wired; it takes edges into {INITIAL}, {NEXT} and {CONDITION} only",
            handle.name
        );
        issues.push(issue("loop.fixed_input", Some(node), &handle.name, text));
    }
    if is_controlled {
        let text = format!("loop {id} cannot be controlled by events");
        issues.push(issue("loop.fixed_input", Some(node), CONTROL, text));
    }
    let streams = |handle: &&HandleFacts| &*handle.name == INITIAL && handle.repeats == Repeat::Genuine;
    if handles.iter().any(|handle| streams(&handle)) {
        let text =
            format!("input {INITIAL} of loop {id} gets a stream of pieces; a loop starts with whole values");
        issues.push(issue("loop.repeating", Some(node), INITIAL, text));
    }
}

/// What an edge from the body brings must belong to exactly the iteration that it answers.
fn back_edge(
    node: &Node,
    edge: &Edge,
    expected: &Scope,
    (scope, repeats): (Scope, Repeat),
    issues: &mut Vec<Issue>,
) {
    let (name, id, from) = (&*edge.target_handle, &node.id, &edge.source);
    if repeats == Repeat::Genuine {
        let text = format!(
            "input {name} of loop {id} gets a stream of pieces from node {from}; it takes one value an iteration"
        );
        issues.push(issue("loop.repeating", Some(node), name, text));
    }
    if scope == *expected {
        return;
    }
    let (code, why) = if scope.narrower_than(expected) {
        ("loop.from_outside", "lies outside of the loop's body")
    } else if expected.narrower_than(&scope) {
        ("loop.fans_out", "brings several values an iteration")
    } else {
        ("loop.foreign_iteration", "belongs to another iteration")
    };
    let text = format!("input {name} of loop {id} must be fed from its body, but node {from} {why}");
    issues.push(issue(code, Some(node), name, text));
}

/// Nothing in the body may wait for the end of the iteration that the loop itself keeps going.
fn aggregates(node: &Node, inside: usize, graph: &HydratedGraph, facts: &Facts, issues: &mut Vec<Issue>) {
    let (Some(inner), Some(own)) = (graph.nodes.get(inside), facts.nodes.get(inside)) else {
        return;
    };
    for output in own
        .outputs
        .iter()
        .filter(|output| output.kind == CorrelationKind::Aggregate)
    {
        let text = format!(
            "node {} in the body of loop {} gathers a whole iteration (output {}); gather outside of the body",
            inner.id, node.id, output.name
        );
        issues.push(issue("loop.aggregate_in_body", Some(inner), &output.name, text));
    }
}

/// Data edges both ways, without those that close a loop.
struct Links {
    next: Vec<Vec<usize>>,
    previous: Vec<Vec<usize>>,
}
impl Links {
    fn of(graph: &HydratedGraph, places: &Places) -> Self {
        let mut next = vec![Vec::new(); graph.nodes.len()];
        let mut previous = next.clone();
        for (edge, ends) in places.edges(graph).filter(|(edge, _)| !edge.control) {
            let (Some(source), Some(target)) = ends else {
                continue;
            };
            if graph
                .nodes
                .get(target)
                .is_some_and(|node| is_back_edge(edge, node))
            {
                continue;
            }
            if let (Some(next), Some(previous)) = (next.get_mut(source), previous.get_mut(target)) {
                next.push(target);
                previous.push(source);
            }
        }
        Self { next, previous }
    }
    /// Nodes that are reachable from a loop and able to reach what feeds it, in order of the graph.
    fn body(&self, at: usize, ends: impl Iterator<Item = usize>) -> Vec<usize> {
        let (after, before) = (reach(&self.next, [at]), reach(&self.previous, ends));
        let mut body: Vec<usize> = after
            .intersection(&before)
            .copied()
            .filter(|other| *other != at)
            .collect();
        body.sort_unstable();
        body
    }
}

/// Everything that can be reached from some nodes, those included.
fn reach(links: &[Vec<usize>], from: impl IntoIterator<Item = usize>) -> HashSet<usize> {
    let mut seen: HashSet<usize> = HashSet::default();
    let mut left: Vec<usize> = from.into_iter().collect();
    while let Some(at) = left.pop() {
        if seen.insert(at) {
            left.extend(links.get(at).into_iter().flatten().copied());
        }
    }
    seen
}
