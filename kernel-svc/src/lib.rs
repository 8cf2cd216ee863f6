//! kernel-svc: workflows, jobs, actors, the event log and the built-in node types.

pub mod event;
pub mod graph;
pub mod node;
pub mod run;
