//! Chains of iterators, steps and aggregates against a sequential model: a value or a list of values, worked on one after
//! the other.

use atelier_proto::kernel::v1::JobStatus;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::graphs::{on_threads, setup};
use crate::nodes::canonical_json;

/// A step for each value.
#[derive(Debug, Clone)]
enum Step {
    Pass,
    Add(i64),
    Mul(i64),
    Filter(&'static str),
    Gate(&'static str),
}
/// A link of a chain.
#[derive(Debug, Clone)]
enum Link {
    Each(Step),
    /// Two branches of steps, joined by a sum: only where both have a value.
    Fork(Vec<Step>, Vec<Step>),
    /// Each value is a list to go through.
    Open,
    /// The numbers below each value, to go through.
    Range,
    Collect,
    Count,
    Sum,
    Last,
}
fn step() -> impl Strategy<Value = Step> {
    let pred = prop_oneof![Just("even"), Just("odd"), Just("always"), Just("never")];
    prop_oneof![
        Just(Step::Pass),
        (0..3_i64).prop_map(Step::Add),
        (0..3_i64).prop_map(Step::Mul),
        pred.clone().prop_map(Step::Filter),
        pred.prop_map(Step::Gate),
    ]
}
fn link() -> impl Strategy<Value = Link> {
    let steps = || prop::collection::vec(step(), 1..3);
    prop_oneof![
        4 => step().prop_map(Link::Each),
        2 => (steps(), steps()).prop_map(|(left, right)| Link::Fork(left, right)),
        3 => Just(Link::Open),
        2 => Just(Link::Range),
        2 => Just(Link::Collect),
        1 => Just(Link::Count),
        1 => Just(Link::Sum),
        1 => Just(Link::Last),
    ]
}

/// A value at the end of as many lists as there are iterations around it.
#[derive(Debug, Clone)]
enum Tree {
    Leaf(Json),
    Many(Vec<Tree>),
}
impl Tree {
    /// Replaces each leaf, or drops it.
    fn each(self, change: &mut impl FnMut(Json) -> Option<Tree>) -> Option<Self> {
        match self {
            Self::Leaf(value) => change(value),
            Self::Many(trees) => Some(Self::Many(
                trees.into_iter().filter_map(|tree| tree.each(change)).collect(),
            )),
        }
    }
    /// Replaces each innermost list.
    fn fold(self, change: &mut impl FnMut(Vec<Json>) -> Option<Json>, depth: usize) -> Option<Self> {
        let Self::Many(trees) = self else {
            return Some(self);
        };
        if depth > 1 {
            let folded = trees.into_iter().filter_map(|tree| tree.fold(change, depth - 1));
            return Some(Self::Many(folded.collect()));
        }
        let leaves = trees.into_iter().map(|tree| match tree {
            Self::Leaf(value) => value,
            Self::Many(_) => unreachable!("too deep"),
        });
        change(leaves.collect()).map(Self::Leaf)
    }
    fn leaves(&self, out: &mut Vec<Json>) {
        match self {
            Self::Leaf(value) => out.push(value.clone()),
            Self::Many(trees) => trees.iter().for_each(|tree| tree.leaves(out)),
        }
    }
}
fn number(value: &Json, default: i64) -> i64 {
    value.as_i64().unwrap_or(default)
}
fn holds(pred: &str, value: &Json) -> bool {
    match pred {
        "odd" => value.as_i64().is_some_and(|number| number.rem_euclid(2) == 1),
        "even" => value.as_i64().is_some_and(|number| number.rem_euclid(2) == 0),
        other => other == "always",
    }
}
fn apply(steps: &[Step], value: Json) -> Option<Json> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Pass => Some(value),
        Step::Add(number_) => Some(json!(number(&value, 0) + number_)),
        Step::Mul(number_) => Some(json!(number(&value, 1) * number_)),
        Step::Filter(pred) | Step::Gate(pred) => holds(pred, &value).then_some(value),
    })
}
fn leaves(values: &[Json]) -> Tree {
    Tree::Many(values.iter().cloned().map(Tree::Leaf).collect())
}

/// The chain as a graph, and what its last node gives; `None` when the chain does not fit its values.
struct Chain {
    nodes: Vec<Json>,
    edges: Vec<Json>,
    last: (String, &'static str),
    tree: Option<Tree>,
    depth: usize,
}
impl Chain {
    fn node(&mut self, ty: &str, properties: Json) -> String {
        let id = format!("n{}", self.nodes.len());
        self.nodes
            .push(json!({"id": id, "type": ty, "properties": properties}));
        id
    }
    fn edge(&mut self, from: &(String, &'static str), to: &str, handle: &str) {
        self.edges.push(json!({
            "id": format!("e{}", self.edges.len()), "source": from.0, "sourceHandle": from.1, "target": to,
            "targetHandle": handle,
        }));
    }
    fn then(&mut self, ty: &str, properties: Json, handle: &str, output: &'static str) {
        let id = self.node(ty, properties);
        let from = self.last.clone();
        self.edge(&from, &id, handle);
        self.last = (id, output);
    }
    fn step(&mut self, step: &Step) {
        match step {
            Step::Pass => self.then("test.Pass", json!({}), "value", "output"),
            Step::Add(number) => self.then("test.Add", json!({"b": number}), "a", "output"),
            Step::Mul(number) => self.then("test.Mul", json!({"b": number}), "a", "output"),
            Step::Filter(pred) => self.then("test.Filter", json!({"pred": pred}), "value", "output"),
            Step::Gate(pred) => self.then("test.Gate", json!({"pred": pred}), "value", "yes"),
        }
    }
    /// Adds a link; false when it does not fit.
    fn link(&mut self, link: &Link) -> bool {
        let Some(tree) = self.tree.take() else {
            return false;
        };
        let deep = self.depth > 0;
        let fold = |chain: &mut Self, ty: &str, change: &mut dyn FnMut(Vec<Json>) -> Option<Json>| {
            chain.then(ty, json!({}), "input_item", "output");
            chain.tree = tree.clone().fold(&mut |values| change(values), chain.depth);
            chain.depth -= 1;
        };
        match link {
            Link::Each(step) => {
                self.step(step);
                self.tree = tree.each(&mut |value| apply(std::slice::from_ref(step), value).map(Tree::Leaf));
            }
            Link::Fork(left, right) if deep => {
                let start = self.last.clone();
                left.iter().for_each(|step| self.step(step));
                let left_end = std::mem::replace(&mut self.last, start);
                right.iter().for_each(|step| self.step(step));
                let right_end = self.last.clone();
                let join = self.node("test.Add", json!({}));
                self.edge(&left_end, &join, "a");
                self.edge(&right_end, &join, "b");
                self.last = (join, "output");
                self.tree = tree.each(&mut |value| {
                    let sides = (apply(left, value.clone())?, apply(right, value)?);
                    Some(Tree::Leaf(json!(number(&sides.0, 0) + number(&sides.1, 0))))
                });
            }
            Link::Open => {
                self.then("test.ForEach", json!({}), "input_list", "output");
                self.tree = tree.each(&mut |value| match value {
                    Json::Array(values) => Some(leaves(&values)),
                    other => Some(leaves(&[other])),
                });
                self.depth += 1;
            }
            Link::Range => {
                let mut all = Vec::new();
                tree.leaves(&mut all);
                if all.iter().any(|value| number(value, 0) > 50) {
                    self.tree = Some(tree);
                    return false;
                }
                self.then("test.Range", json!({}), "value", "output");
                self.then("test.ForEach", json!({}), "input_list", "output");
                self.tree = tree.each(&mut |value| {
                    let values: Vec<Json> = (0..number(&value, 0)).map(|number| json!(number)).collect();
                    Some(leaves(&values))
                });
                self.depth += 1;
            }
            Link::Collect if deep => fold(self, "test.Collect", &mut |values| Some(Json::Array(values))),
            Link::Count if deep => fold(self, "test.Count", &mut |values| Some(json!(values.len()))),
            Link::Sum if deep => fold(self, "test.SumAll", &mut |values| {
                Some(json!(values.iter().map(|value| number(value, 0)).sum::<i64>()))
            }),
            Link::Last if deep => fold(self, "test.Last", &mut |values| values.last().cloned()),
            Link::Fork(..) | Link::Collect | Link::Count | Link::Sum | Link::Last => {
                self.tree = Some(tree);
            }
        }
        // Beyond this a run says nothing new.
        let mut all = Vec::new();
        self.tree.iter().for_each(|tree| tree.leaves(&mut all));
        all.len() <= 200 && self.depth <= 5 && self.tree.is_some()
    }
}
fn sorted(mut values: Vec<Json>) -> Vec<Json> {
    values.sort_by_key(canonical_json);
    values
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_chain_gives_what_its_steps_give_one_after_the_other(
        start in prop::collection::vec(0..6_i64, 0..5), links in prop::collection::vec(link(), 1..8), seed in any::<u32>(),
        limit in prop::option::of(1..4_usize),
    ) {
        let mut chain = Chain {
            nodes: Vec::new(),
            edges: Vec::new(),
            last: (String::new(), "output"),
            tree: Some(Tree::Leaf(json!(start))),
            depth: 0,
        };
        chain.last.0 = chain.node("test.Const", json!({"value": start}));
        for link in &links {
            if !chain.link(link) {
                break;
            }
        }
        let mut expected = Vec::new();
        chain.tree.iter().for_each(|tree| tree.leaves(&mut expected));
        chain.then("test.Pass", json!({}), "value", "output");
        chain.nodes.last_mut().unwrap()["name"] = json!("out");
        let graph = json!({"nodes": chain.nodes, "edges": chain.edges});
        on_threads(async {
            let done = setup(&graph, u64::from(seed), |options| options.buffer_limit = limit).run().await;
            assert_eq!(done.status(), JobStatus::Completed, "{:?}\n{graph}", done.result.error);
            let outputs = done.outputs()["out"].as_array().unwrap().clone();
            assert_eq!(sorted(outputs), sorted(expected), "{graph}");
        });
    }
}
