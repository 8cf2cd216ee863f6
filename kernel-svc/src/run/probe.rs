//! A window into a run for tests and tools: every value on every edge, without copies of the run's own state.

use std::sync::Arc;

use atelier_proto::value::Value;

use super::lineage::Lineage;

/// Watches the edges of a run. It is called on the hop path and must not wait.
pub trait Probe: Send + Sync {
    /// A value was put on an edge.
    fn delivered(&self, edge: &Arc<str>, value: &Value, lineage: &Lineage, roots: &[Arc<str>]);
    /// An edge brings no value for a key.
    fn done(&self, _edge: &Arc<str>, _key: &Lineage, _roots: &[Arc<str>]) {}
    /// The code of a node has ended; what follows its end comes next.
    fn ended(&self, _node: &Arc<str>) {}
}
