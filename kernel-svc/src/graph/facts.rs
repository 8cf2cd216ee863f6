//! What the correlation analysis finds out about a graph: scopes, repeating handles, and the roots of
//! iterations.

use std::sync::Arc;

use crate::node::CorrelationKind;

/// An iteration, by its place in [`Facts::roots`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Root(pub u32);

/// Iterations that a value belongs to, outermost first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope(pub Vec<Root>);
impl Scope {
    /// Whether one of the two begins with the other.
    #[must_use]
    pub fn comparable(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(left, right)| left == right)
    }
    /// Whether this begins `other` and is shorter.
    #[must_use]
    pub fn narrower_than(&self, other: &Self) -> bool {
        self.0.len() < other.0.len() && self.comparable(other)
    }
    /// The longest beginning that both share.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        Self(
            self.0
                .iter()
                .zip(&other.0)
                .take_while(|(left, right)| left == right)
                .map(|(root, _)| *root)
                .collect(),
        )
    }
    /// The scope without its innermost iteration.
    #[must_use]
    pub fn parent(&self) -> Self {
        Self(
            self.0
                .split_last()
                .map(|(_, outer)| outer.to_vec())
                .unwrap_or_default(),
        )
    }
    /// The innermost iteration.
    #[must_use]
    pub fn innermost(&self) -> Option<Root> {
        self.0.last().copied()
    }
    /// How many iterations are nested.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether it is no iteration at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether several values come for one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repeat {
    /// One value a key.
    #[default]
    No,
    /// Several, but only because something before it repeats outside of any iteration, or is controlled. It
    /// never makes a graph illegal, and gives way to a genuine stream.
    Inherited,
    /// A stream of pieces.
    Genuine,
}

/// What is known about a connected data input.
#[derive(Debug, Clone, Default)]
pub struct HandleFacts {
    /// Its name.
    pub name: Arc<str>,
    /// The iterations that its values belong to.
    pub scope: Scope,
    /// Whether several values come for one key.
    pub repeats: Repeat,
    /// Whether it gathers the values of several edges.
    pub list: bool,
    /// Its edges, by their place in the graph.
    pub edges: Vec<usize>,
}

/// What is known about an output.
#[derive(Debug, Clone)]
pub struct OutputFacts {
    /// Its name.
    pub name: Arc<str>,
    /// How its values relate to what was consumed.
    pub kind: CorrelationKind,
    /// The input it is bound to, by its place in [`NodeFacts::handles`]; `None`: the whole execution.
    pub source: Option<usize>,
    /// The iterations that its values belong to.
    pub scope: Scope,
    /// Whether several values come for one key.
    pub repeats: Repeat,
    /// The iteration that it opens.
    pub root: Option<Root>,
}

/// What is known about a node.
#[derive(Debug, Clone, Default)]
pub struct NodeFacts {
    /// The iterations that an invocation belongs to.
    pub scope: Scope,
    /// Connected data inputs, in order of their first edge.
    pub handles: Vec<HandleFacts>,
    /// Declared outputs.
    pub outputs: Vec<OutputFacts>,
    /// The input whose every value is an invocation of its own.
    pub driver: Option<usize>,
    /// Things to tell the author that do not stop the run.
    pub warnings: Vec<String>,
}

/// What is known about a graph.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Names of the iterations.
    pub roots: Vec<Arc<str>>,
    /// Facts of each node, in order of the graph.
    pub nodes: Vec<NodeFacts>,
}
