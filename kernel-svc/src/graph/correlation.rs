//! Static correlation: which iterations the values of each handle belong to (kernel specification 4.2, 4.3,
//! 4.6).

use std::sync::Arc;

use atelier_proto::kernel::v1::Issue;
use foldhash::HashMap;
use indexmap::IndexMap;

use super::{
    facts::{Facts, HandleFacts, NodeFacts, OutputFacts, Repeat, Root, Scope},
    loops,
    model::{HydratedGraph, Node, issue},
    order::{Places, names, order},
    types::is_list,
};
use crate::node::{Correlation, CorrelationKind, InputMode};

/// The name of the whole execution as a source.
const EXECUTION: &str = "__execution__";

/// Iterations within iterations at most. Every handle keeps all that it lies in, so that the memory for a graph grows with
/// its nodes times this.
const MAX_NESTED: usize = 64;

/// Analyses a graph.
///
/// # Errors
/// All issues of the whole graph.
pub fn correlate(graph: &HydratedGraph, places: &Places) -> Result<Facts, Vec<Issue>> {
    let order = order(graph, places, false).map_err(|cycle| {
        let node = cycle.first().and_then(|at| graph.nodes.get(*at));
        let text = format!(
            "data edges form a cycle through the nodes {}",
            names(graph, &cycle)
        );
        vec![issue("graph.cycle", node, "", text)]
    })?;
    let nodes = vec![NodeFacts::default(); graph.nodes.len()];
    let mut analysis = Analysis {
        graph,
        places,
        facts: Facts {
            roots: Vec::new(),
            nodes,
        },
        roots: HashMap::default(),
        issues: Vec::new(),
    };
    let mut incoming: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    let data = places.edges(graph).enumerate();
    for (at, (edge, (_, target))) in data.filter(|(_, (edge, _))| !edge.control) {
        // What closes a loop is known when its body is.
        let closes = target
            .and_then(|target| graph.nodes.get(target))
            .is_some_and(|node| loops::is_back_edge(edge, node));
        if let Some(list) = target
            .filter(|_| !closes)
            .and_then(|target| incoming.get_mut(target))
        {
            list.push(at);
        }
    }
    for at in order {
        let edges = incoming.get(at).map(Vec::as_slice).unwrap_or_default();
        if let Some(node) = graph.nodes.get(at) {
            let facts = analysis.node(node, edges);
            if let Some(place) = analysis.facts.nodes.get_mut(at) {
                *place = facts;
            }
        }
    }
    let open = loops::close(graph, places, &mut analysis.facts);
    analysis.issues.extend(open);
    if analysis.issues.is_empty() {
        Ok(analysis.facts)
    } else {
        Err(analysis.issues)
    }
}

struct Analysis<'a> {
    graph: &'a HydratedGraph,
    places: &'a Places,
    facts: Facts,
    /// Iterations by name.
    roots: HashMap<Arc<str>, Root>,
    issues: Vec<Issue>,
}

impl Analysis<'_> {
    fn report(&mut self, code: &str, node: &Node, handle: &str, text: String) {
        self.issues.push(issue(code, Some(node), handle, text));
    }

    fn node(&mut self, node: &Node, edges: &[usize]) -> NodeFacts {
        let handles = self.handles(node, edges);
        let scope = self.invocation_scope(node, &handles);
        let mut facts = NodeFacts {
            scope,
            handles,
            ..NodeFacts::default()
        };
        if loops::is_loop(node) {
            let root = self.root(node, loops::GROUP);
            facts.outputs = loops::outputs(&facts, root);
            return facts;
        }
        let buffered = node.meta.input_mode != Some(InputMode::Stream);
        self.repeats(node, &mut facts, buffered);
        facts.outputs = node
            .outputs
            .keys()
            .map(|name| self.output(node, name, &facts, buffered))
            .collect();
        facts
    }

    fn handles(&mut self, node: &Node, edges: &[usize]) -> Vec<HandleFacts> {
        // In order of their first edges.
        let mut by_name: IndexMap<Arc<str>, Vec<usize>, foldhash::fast::RandomState> = IndexMap::default();
        for at in edges {
            if let Some(edge) = self.graph.edges.get(*at) {
                by_name
                    .entry(Arc::clone(&edge.target_handle))
                    .or_default()
                    .push(*at);
            }
        }
        by_name
            .into_iter()
            .map(|(name, edges)| self.handle(node, name, edges))
            .collect()
    }

    fn handle(&mut self, node: &Node, name: Arc<str>, edges: Vec<usize>) -> HandleFacts {
        let list = edges.len() > 1;
        if list && !node.inputs.get(&*name).is_some_and(|ty| is_list(ty)) {
            let text = format!(
                "input {name} of node {} takes one value, but {} edges enter it; only an input of type list takes \
                 several",
                node.id,
                edges.len()
            );
            self.report("corr.multi_edge_scalar", node, &name, text);
        }
        let sources: Vec<(Scope, Repeat)> = edges.iter().map(|edge| self.source(*edge)).collect();
        let longest = sources
            .iter()
            .map(|(scope, _)| scope)
            .max_by_key(|scope| scope.len());
        let mut scope = longest.cloned().unwrap_or_default();
        if scope.len() > MAX_NESTED {
            let text = format!(
                "input {name} of node {} lies in more than {MAX_NESTED} iterations within each other",
                node.id
            );
            self.report("corr.too_deep", node, &name, text);
            scope.0.truncate(MAX_NESTED);
        }
        if sources.iter().any(|(other, _)| !other.comparable(&scope)) {
            let text = format!(
                "the edges into list input {name} of node {} come from unrelated iterations",
                node.id
            );
            self.report("corr.list_incomparable", node, &name, text);
        }
        let at_scope = sources.iter().filter(|(other, _)| *other == scope);
        let repeats = at_scope.map(|(_, repeats)| *repeats).max().unwrap_or_default();
        HandleFacts {
            name,
            scope,
            repeats,
            list,
            edges,
        }
    }

    /// Scope and repetition of what an edge carries; nothing is known of an undeclared output.
    fn source(&self, edge: usize) -> (Scope, Repeat) {
        let source = self.places.ends(edge).0;
        let output = self.graph.edges.get(edge).and_then(|edge| {
            let facts = self.facts.nodes.get(source?)?;
            facts
                .outputs
                .iter()
                .find(|output| output.name == edge.source_handle)
        });
        output
            .map(|output| (output.scope.clone(), output.repeats))
            .unwrap_or_default()
    }

    fn invocation_scope(&mut self, node: &Node, handles: &[HandleFacts]) -> Scope {
        let scoped: Vec<&HandleFacts> = handles.iter().filter(|handle| !handle.scope.is_empty()).collect();
        let Some(first) = scoped.first() else {
            return Scope::default();
        };
        if node.flags.join {
            return scoped
                .iter()
                .fold(first.scope.clone(), |common, handle| common.common(&handle.scope));
        }
        let longest = scoped
            .iter()
            .max_by_key(|handle| handle.scope.len())
            .unwrap_or(first);
        for handle in scoped
            .iter()
            .filter(|handle| !handle.scope.comparable(&longest.scope))
        {
            let text = format!(
                "inputs {} and {} of node {} belong to unrelated iterations; join them with Zip (by position) or Cross \
                 (every pair)",
                longest.name, handle.name, node.id
            );
            self.report("corr.incomparable_inputs", node, &handle.name, text);
        }
        longest.scope.clone()
    }

    /// Finds the input that drives the node, and refuses repetition that cannot be told apart.
    fn repeats(&mut self, node: &Node, facts: &mut NodeFacts, buffered: bool) {
        let at_scope = |strength: Repeat| {
            let all = facts.handles.iter().enumerate();
            let found = all.filter(|(_, handle)| handle.repeats == strength && handle.scope == facts.scope);
            found.map(|(at, _)| at).collect::<Vec<_>>()
        };
        let (genuine, inherited) = (at_scope(Repeat::Genuine), at_scope(Repeat::Inherited));
        let name = |at: &usize| {
            facts
                .handles
                .get(*at)
                .map(|handle| handle.name.to_string())
                .unwrap_or_default()
        };
        let list = |at: &usize| facts.handles.get(*at).is_some_and(|handle| handle.list);
        if buffered {
            if let [first, second, ..] = genuine.as_slice() {
                let text = format!(
                    "inputs {} and {} of node {} both bring several values for one item, so they cannot be paired",
                    name(first),
                    name(second),
                    node.id
                );
                self.report("corr.two_repeating", node, &name(second), text);
            }
            if let [only] = genuine.as_slice()
                && list(only)
            {
                let text = format!(
                    "list input {} of node {} brings several values for one item",
                    name(only),
                    node.id
                );
                self.report("corr.repeating_list", node, &name(only), text);
            }
            let outer = facts.handles.iter().filter(|handle| {
                handle.repeats == Repeat::Genuine
                    && !handle.scope.is_empty()
                    && handle.scope.len() < facts.scope.len()
            });
            for handle in outer {
                let text = format!(
                    "input {} of node {} brings several values for an outer item, while another input iterates inside \
                     it",
                    handle.name, node.id
                );
                self.report("corr.repeating_prefix", node, &handle.name, text);
            }
        }
        let weak: Vec<usize> = inherited.iter().copied().filter(|at| !list(at)).collect();
        facts.driver = match (genuine.as_slice(), weak.as_slice()) {
            ([only], _) => Some(*only).filter(|at| !list(at)),
            ([], [only]) => Some(*only),
            _ => None,
        };
        if genuine.is_empty() && weak.len() > 1 {
            let names: Vec<String> = weak.iter().map(name).collect();
            let text = format!(
                "inputs {} repeat and cannot be paired; each is read at its latest value",
                names.join(" and ")
            );
            facts.warnings.push(text);
        }
    }

    fn output(&mut self, node: &Node, name: &Arc<str>, facts: &NodeFacts, buffered: bool) -> OutputFacts {
        let declared = node.meta.output_correlation.get(&**name);
        let single = Correlation {
            kind: CorrelationKind::Single,
            source: Some(EXECUTION.to_owned()),
            group: None,
            collapse_innermost: false,
        };
        let rule = declared.unwrap_or(&single);
        let source_name = rule.source.as_deref().unwrap_or_default();
        if source_name.is_empty() {
            let text = format!(
                "output {name} of node type {} does not say what it is derived from",
                node.node_type
            );
            self.report("corr.source_missing", node, name, text);
        }
        let execution = source_name == EXECUTION;
        let source = facts
            .handles
            .iter()
            .position(|handle| &*handle.name == source_name)
            .filter(|_| !execution);
        let (base, inherited) = match source.and_then(|at| facts.handles.get(at)) {
            Some(handle) => (handle.scope.clone(), handle.repeats),
            None if execution => (facts.scope.clone(), execution_repeats(facts)),
            None => (Scope::default(), Repeat::No),
        };
        self.check_rule(
            node,
            name,
            rule,
            source.and_then(|at| facts.handles.get(at)),
            buffered,
        );
        let mut output = OutputFacts {
            name: Arc::clone(name),
            kind: rule.kind,
            source,
            scope: base.clone(),
            repeats: inherited,
            root: None,
        };
        match rule.kind {
            CorrelationKind::Single | CorrelationKind::Forward => {}
            CorrelationKind::Chunk => output.repeats = Repeat::Genuine,
            CorrelationKind::Iteration => {
                let root = self.root(node, rule.group.as_deref().unwrap_or(name));
                output.root = Some(root);
                output.scope.0.push(root);
                output.repeats = Repeat::No;
            }
            CorrelationKind::Aggregate => {
                output.scope = base.parent();
                output.repeats = Repeat::No;
            }
        }
        if node.flags.controlled {
            // Its invocations belong to events, not to items: what it emits opens no iteration either.
            output.scope = Scope::default();
            output.root = None;
            output.repeats = if declared.is_none() {
                Repeat::Inherited
            } else {
                Repeat::No
            };
        } else if buffered
            && rule.kind != CorrelationKind::Aggregate
            && output.scope.narrower_than(&facts.scope)
        {
            let text = format!(
                "output {name} of node {} would lose an iteration that the node runs in; only an aggregate of a \
                 streaming node may do that",
                node.id
            );
            self.report("corr.output_narrows", node, name, text);
        }
        output
    }

    fn check_rule(
        &mut self,
        node: &Node,
        name: &str,
        rule: &Correlation,
        source: Option<&HandleFacts>,
        buffered: bool,
    ) {
        let ty = &node.node_type;
        match rule.kind {
            CorrelationKind::Forward => {
                if rule.source.as_deref() == Some(EXECUTION) {
                    let text = format!(
                        "output {name} of node type {ty} forwards the whole execution instead of an input"
                    );
                    self.report("corr.forward_execution", node, name, text);
                }
                if let Some(handle) = source.filter(|handle| handle.list) {
                    let text = format!(
                        "output {name} of node {} forwards input {}, which has several edges",
                        node.id, handle.name
                    );
                    self.report("corr.forward_multi_edge", node, name, text);
                }
            }
            CorrelationKind::Aggregate => {
                if !rule.collapse_innermost {
                    let text =
                        format!("output {name} of node type {ty} aggregates without saying which iteration");
                    self.report("corr.aggregate_collapse_missing", node, name, text);
                }
                if buffered {
                    let text = format!(
                        "output {name} of node type {ty} aggregates, but the node does not read a stream"
                    );
                    self.report("corr.aggregate_on_buffered", node, name, text);
                }
            }
            CorrelationKind::Single | CorrelationKind::Chunk | CorrelationKind::Iteration => {}
        }
    }

    fn root(&mut self, node: &Node, group: &str) -> Root {
        let name: Arc<str> = format!("{}:{group}", node.id).into();
        let next = Root(u32::try_from(self.facts.roots.len()).unwrap_or(u32::MAX));
        *self.roots.entry(name).or_insert_with_key(|name| {
            self.facts.roots.push(Arc::clone(name));
            next
        })
    }
}

/// Whether a whole execution repeats: inside an iteration like its inputs, outside of one as an inheritance
/// only.
fn execution_repeats(facts: &NodeFacts) -> Repeat {
    let at_scope = facts.handles.iter().filter(|handle| handle.scope == facts.scope);
    let strongest = at_scope.map(|handle| handle.repeats).max().unwrap_or_default();
    if facts.scope.is_empty() && strongest == Repeat::Genuine {
        Repeat::Inherited
    } else {
        strongest
    }
}
