//! Values that must be there before a run starts: parameters of its inputs, and required inputs of its nodes.

use atelier_proto::{
    kernel::v1::Issue,
    value::{Map, Value},
};

use foldhash::HashSet;

use super::{
    model::{HydratedGraph, Node, issue},
    order::Places,
    types::{compatible, infer},
};

/// What edges enter.
struct Connected {
    /// Nodes that any edge enters, by place.
    entered: Vec<bool>,
}
impl Connected {
    fn of(graph: &HydratedGraph, places: &Places) -> Self {
        let mut entered = vec![false; graph.nodes.len()];
        for (_, (_, target)) in places.edges(graph) {
            if let Some(entered) = target.and_then(|at| entered.get_mut(at)) {
                *entered = true;
            }
        }
        Self { entered }
    }
    fn external(&self, graph: &HydratedGraph, places: &Places, (at, node): (usize, &Node)) -> bool {
        node.is_input() && self.entered.get(places.first(graph, at)) != Some(&true)
    }
    /// Inputs of the run.
    fn externals<'a>(
        &'a self,
        graph: &'a HydratedGraph,
        places: &'a Places,
    ) -> impl Iterator<Item = &'a Node> {
        let nodes = graph.nodes.iter().enumerate();
        nodes
            .filter(|(at, node)| self.external(graph, places, (*at, node)))
            .map(|(_, node)| node)
    }
}

/// Required inputs without an edge, a value or a default. Handles with an incoming data edge count as given;
/// so does what the events of a controlled node may bring. An explicit null is no value here.
#[must_use]
pub fn missing_inputs(graph: &HydratedGraph, places: &Places) -> Vec<Issue> {
    let connected = Connected::of(graph, places);
    let mut fed: Option<HashSet<(usize, &str)>> = None;
    let feeds = || {
        let data = places.edges(graph).filter(|(edge, _)| !edge.control);
        data.filter_map(|(edge, (_, target))| Some((target?, &*edge.target_handle)))
            .collect()
    };
    let mut issues = Vec::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let declared = node
            .meta
            .inputs
            .iter()
            .filter(|input| input.required)
            .map(|input| input.name.as_str());
        let added = node
            .dynamic_inputs
            .iter()
            .filter(|(_, slot)| slot.required)
            .map(|(name, _)| name.as_str());
        let mut required = declared.chain(added).peekable();
        if required.peek().is_none() || node.flags.controlled || connected.external(graph, places, (at, node))
        {
            continue;
        }
        let fed = fed.get_or_insert_with(feeds);
        let (statics, own) = (node.static_values(), places.first(graph, at));
        let missing =
            |name: &str| !fed.contains(&(own, name)) && statics.get(name).is_none_or(|value| value.is_null());
        for name in required.filter(|name| missing(name)) {
            let text = format!(
                "input {name} of node {} ({}) needs a value or an edge",
                node.id, node.node_type
            );
            issues.push(issue("input.missing", Some(node), name, text));
        }
    }
    issues
}

/// Inputs of the run that nothing gives a value: no parameter, no property `value`, no pushes to come. A
/// parameter that is null is given.
#[must_use]
pub fn missing_params(graph: &HydratedGraph, places: &Places, params: &Map) -> Vec<Issue> {
    let connected = Connected::of(graph, places);
    let open = connected
        .externals(graph, places)
        .filter(|node| !node.flags.streaming_output);
    // A default of the type is no value: whoever left the input empty is told, instead of paying for an empty
    // prompt.
    let own =
        |node: &Node| node.properties.contains_key("value") || node.dynamic_properties.contains_key("value");
    let given = |node: &Node| params.contains_key(node.input_name()) || own(node);
    open.filter(|node| !given(node))
        .map(|node| {
            let text = format!(
                "the run needs a value for its input {} (node {})",
                node.input_name(),
                node.id
            );
            issue("input.required", Some(node), "value", text)
        })
        .collect()
}

/// Parameters whose value does not fit the declared type of their input.
#[must_use]
pub fn wrong_params(graph: &HydratedGraph, places: &Places, params: &Map) -> Vec<Issue> {
    let connected = Connected::of(graph, places);
    let mut issues = Vec::new();
    for node in connected.externals(graph, places) {
        let Some(value) = params.get(node.input_name()) else {
            continue;
        };
        if let (Some(declared), Some(actual)) = (node.inputs.get("value"), infer(value))
            && !fits(value, &actual, declared)
        {
            let name = node.input_name();
            let text = format!(
                "parameter {name} (node {}) must be of type {declared}, not {actual}",
                node.id
            );
            issues.push(issue("input.wrong_type", Some(node), "value", text));
        }
    }
    issues
}

/// Types of which a value can be judged; values of all others are left to the node.
const JUDGED: &[&str] = &[
    "str", "int", "float", "number", "bool", "list", "dict", "image", "audio", "video", "union",
];

fn fits(value: &Value, actual: &str, declared: &str) -> bool {
    let base = declared.split('[').next().unwrap_or_default().trim();
    let object = base == "dict" && value.as_map().is_some();
    object || !JUDGED.contains(&base) || compatible(actual, declared)
}

/// One sentence that lists the distinct names of missing parameters.
#[must_use]
pub fn missing_params_message(graph: &HydratedGraph, issues: &[Issue]) -> String {
    let missing: HashSet<&str> = issues.iter().map(|issue| issue.node_id.as_str()).collect();
    let nodes = graph.nodes.iter().filter(|node| missing.contains(&*node.id));
    let mut seen = HashSet::default();
    let names: Vec<&str> = nodes
        .map(Node::input_name)
        .filter(|name| seen.insert(*name))
        .collect();
    format!("the run needs values for its inputs {}", names.join(", "))
}
