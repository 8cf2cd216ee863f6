//! A graph ready to run: nodes and edges by number, what each node knows of its handles, and where its values
//! go.

use std::sync::Arc;

use atelier_proto::value::{Map, Value};

use indexmap::IndexMap;

use super::{
    control::context,
    facts::{Facts, NodeFacts, OutputFacts, Repeat, Root, Scope},
    model::{CONTROL, CONTROL_OUTPUT, HydratedGraph, Node, OUTPUT_PREFIX},
    order::Places,
};
use crate::{event::NodeLabel, node::CorrelationKind};

/// A graph ready to run.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Its nodes.
    pub nodes: Vec<Arc<PlanNode>>,
    /// Its edges.
    pub edges: Vec<PlanEdge>,
    /// Names of its iterations.
    pub roots: Arc<[Arc<str>]>,
}

/// A node of a plan.
#[derive(Debug, Clone)]
pub struct PlanNode {
    /// The node and its type.
    pub node: Node,
    /// How it is called in events.
    pub label: Arc<NodeLabel>,
    /// What is known about its handles.
    pub facts: NodeFacts,
    /// Static values in order of precedence.
    pub statics: Arc<Map>,
    /// Whether the run feeds it: it has no actor.
    pub external: bool,
    /// Whether no data edge leaves it.
    pub terminal: bool,
    /// The key of its values in the results of the run.
    pub result_key: Arc<str>,
    /// Its outputs: declared ones, and those that an edge leaves.
    pub slots: Arc<Vec<SlotPlan>>,
    /// Data edges that leave it, in order of the graph.
    pub edges_out: Vec<usize>,
    /// Control edges that leave it.
    pub control_out: Vec<usize>,
    /// Nodes that it controls, each once.
    pub controls: Vec<usize>,
    /// How many nodes control it.
    pub controllers: usize,
    /// What it is told about the nodes it controls.
    pub control_context: Option<Value>,
    /// Inputs (by place in the facts) that are required and have no value but what their edges bring.
    pub required: Vec<usize>,
}

/// An output of a node.
#[derive(Debug, Clone)]
pub struct SlotPlan {
    /// Its name.
    pub name: Arc<str>,
    /// How it is called in display updates.
    pub display: Arc<str>,
    /// Its declared type, else `any`.
    pub ty: Arc<str>,
    /// How its values relate to what was consumed.
    pub kind: CorrelationKind,
    /// The input it is bound to.
    pub source: Option<usize>,
    /// The iterations that its values belong to.
    pub scope: Scope,
    /// The iteration that it opens.
    pub root: Option<Root>,
    /// Data edges that leave it, in order of the graph.
    pub edges: Vec<usize>,
    /// Whether its values are shown.
    pub shown: bool,
    /// Whether each value on it is an artifact of its own.
    pub artifact: bool,
}

/// An edge of a plan.
#[derive(Debug, Clone)]
pub struct PlanEdge {
    /// Its id.
    pub id: Arc<str>,
    /// The node it leaves.
    pub source: usize,
    /// The output it leaves.
    pub source_handle: Arc<str>,
    /// The node it enters.
    pub target: usize,
    /// The input it enters, by its place in the target's facts; for control edges the place after the last.
    pub handle: usize,
    /// Whether it carries control events.
    pub control: bool,
}

impl Plan {
    /// Numbers a graph. Edges without both ends must be gone already.
    #[must_use]
    pub fn new(graph: HydratedGraph, places: &Places, facts: Facts) -> Self {
        // The input that each data edge enters, as the analysis has it.
        let mut entered: Vec<Option<usize>> = vec![None; graph.edges.len()];
        for node in &facts.nodes {
            for (at, handle) in node.handles.iter().enumerate() {
                for edge in &handle.edges {
                    if let Some(place) = entered.get_mut(*edge) {
                        *place = Some(at);
                    }
                }
            }
        }
        let edges: Vec<PlanEdge> = places
            .edges(&graph)
            .zip(entered)
            .filter_map(|((edge, (source, target)), entered)| {
                let (source, target) = (source?, target?);
                let handle = if edge.control {
                    facts.nodes.get(target)?.handles.len()
                } else {
                    entered?
                };
                let (id, source_handle) = (Arc::clone(&edge.id), Arc::clone(&edge.source_handle));
                Some(PlanEdge {
                    id,
                    source,
                    source_handle,
                    target,
                    handle,
                    control: edge.control,
                })
            })
            .collect();
        let mut ends = vec![Ends::default(); graph.nodes.len()];
        for (at, edge) in edges.iter().enumerate() {
            if let Some(source) = ends.get_mut(edge.source) {
                source.leaves(at, edge);
            }
            if let Some(target) = ends.get_mut(edge.target) {
                target.enters(edge);
            }
        }
        let contexts: Vec<Option<Value>> = ends
            .iter()
            .map(|ends| {
                let targets = ends.controls.iter().filter_map(|at| graph.nodes.get(*at));
                (!ends.controls.is_empty()).then(|| context(targets))
            })
            .collect();
        let nodes = graph.nodes.into_iter().zip(facts.nodes).zip(ends).zip(contexts);
        let nodes = nodes
            .map(|(((node, facts), ends), context)| Arc::new(plan_node(node, facts, ends, context, &edges)))
            .collect();
        Self {
            nodes,
            edges,
            roots: facts.roots.into(),
        }
    }
    /// The node with an id.
    #[must_use]
    pub fn place(&self, id: &str) -> Option<usize> {
        self.nodes.iter().position(|node| &*node.node.id == id)
    }
}

/// Edges at a node.
#[derive(Debug, Clone, Default)]
struct Ends {
    data_out: Vec<usize>,
    control_out: Vec<usize>,
    controls: Vec<usize>,
    controllers: Vec<usize>,
    entered: bool,
}
impl Ends {
    fn leaves(&mut self, at: usize, edge: &PlanEdge) {
        if !edge.control {
            self.data_out.push(at);
            return;
        }
        self.control_out.push(at);
        if !self.controls.contains(&edge.target) {
            self.controls.push(edge.target);
        }
    }
    fn enters(&mut self, edge: &PlanEdge) {
        self.entered = true;
        if edge.control && !self.controllers.contains(&edge.source) {
            self.controllers.push(edge.source);
        }
    }
}

fn plan_node(
    node: Node,
    facts: NodeFacts,
    ends: Ends,
    control_context: Option<Value>,
    edges: &[PlanEdge],
) -> PlanNode {
    let label = NodeLabel {
        id: node.id.clone(),
        name: node.name.clone(),
        node_type: node.node_type.clone(),
    };
    let statics = node.static_values();
    let needs = |name: &str| {
        let declared = node
            .meta
            .inputs
            .iter()
            .any(|input| input.required && input.name == name);
        let added = node.dynamic_inputs.get(name).is_some_and(|slot| slot.required);
        (declared || added) && statics.get(name).is_none_or(Value::is_null)
    };
    let required = facts
        .handles
        .iter()
        .enumerate()
        .filter(|(_, handle)| needs(&handle.name))
        .map(|(at, _)| at)
        .collect();
    PlanNode {
        label: Arc::new(label),
        external: node.is_input() && !ends.entered,
        terminal: ends.data_out.is_empty(),
        result_key: result_key(&node),
        slots: Arc::new(slots(&node, &facts, &ends.data_out, edges)),
        control_context,
        edges_out: ends.data_out,
        control_out: ends.control_out,
        controls: ends.controls,
        controllers: ends.controllers.len(),
        required,
        statics: Arc::new(statics),
        node,
        facts,
    }
}

/// The author's name for the values; for outputs of the run also their property `name`.
fn result_key(node: &Node) -> Arc<str> {
    if let Some(name) = node.name.as_ref().filter(|name| !name.is_empty()) {
        return Arc::clone(name);
    }
    let own = node
        .property_name()
        .filter(|_| node.node_type.starts_with(OUTPUT_PREFIX));
    own.map_or_else(|| Arc::clone(&node.id), Into::into)
}

fn slots(node: &Node, facts: &NodeFacts, data_out: &[usize], edges: &[PlanEdge]) -> Vec<SlotPlan> {
    let mut by_name: IndexMap<&Arc<str>, Vec<usize>, foldhash::fast::RandomState> = IndexMap::default();
    for at in data_out {
        if let Some(edge) = edges.get(*at) {
            by_name.entry(&edge.source_handle).or_default().push(*at);
        }
    }
    let declared = facts.outputs.iter();
    let mut slots: Vec<SlotPlan> = declared
        .map(|output| {
            let own = by_name.get_mut(&output.name).map(std::mem::take);
            slot(node, output, own.unwrap_or_default())
        })
        .collect();
    let undeclared = by_name.into_iter().filter(|(_, edges)| !edges.is_empty());
    slots.extend(undeclared.map(|(name, edges)| slot(node, &plain(name), edges)));
    slots
}

/// An output that nothing is known about.
#[must_use]
pub fn plain(name: &Arc<str>) -> OutputFacts {
    OutputFacts {
        name: Arc::clone(name),
        kind: CorrelationKind::Single,
        source: None,
        scope: Scope::default(),
        repeats: Repeat::No,
        root: None,
    }
}

/// The plan of one output.
#[must_use]
pub fn slot(node: &Node, output: &OutputFacts, edges: Vec<usize>) -> SlotPlan {
    let reserved = [CONTROL, CONTROL_OUTPUT].contains(&&*output.name);
    let silent = node.is_constant() || node.is_input() || reserved;
    let ty = &*node.node_type;
    let sink = ty.ends_with(".output.Output") || ty.ends_with(".workflows.base_node.Preview");
    let display = node
        .property_name()
        .filter(|_| sink)
        .map_or_else(|| Arc::clone(&output.name), Into::into);
    SlotPlan {
        display,
        ty: node
            .outputs
            .get(&*output.name)
            .filter(|ty| !ty.is_empty())
            .map_or_else(|| "any".into(), Arc::clone),
        kind: output.kind,
        source: output.source,
        scope: output.scope.clone(),
        root: output.root,
        shown: !silent && (edges.is_empty() || node.meta.always_emit_output_updates),
        artifact: node
            .meta
            .artifact_outputs
            .iter()
            .any(|name| *name == *output.name),
        edges,
        name: Arc::clone(&output.name),
    }
}
