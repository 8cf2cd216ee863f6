//! Runs a plan: one actor a node, inboxes between them, events to the outside.
//!
//! [`start`] takes a [`RunSpec`] and gives a handle (pushes, control events, cancel) and the run itself, a
//! future. What a graph means is decided in `graph`; what becomes of the events, in the relay.

mod activity;
mod actor;
mod budget;
mod cancel;
mod controls;
mod core;
mod events;
mod frames;
mod handle;
mod inbox;
mod io;
mod journal;
mod lineage;
mod mode;
mod options;
mod probe;
mod quiet;
mod result;
mod routing;
mod runner;
mod scheduler;
pub mod supervise;
mod variables;
mod waiters;

pub use events::{Appended, Deliveries, EventQueue, InputLog, QueueError};
pub use frames::Frames;
pub use handle::{RunError, RunHandle};
pub use inbox::Envelope;
pub(crate) use io::Arrival;
pub use io::{Group, Inputs, Outputs};
pub use journal::{Journal, Recorded};
pub use lineage::{Lineage, Token};
pub use options::{RunOptions, Supervision};
pub use probe::Probe;
pub use result::{Resumed, RunResult, Suspension};
pub use runner::{Busy, RunSpec, Runner, run, start};
pub use variables::{Reader, Variables};
