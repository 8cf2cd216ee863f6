//! What every service of atelier needs and none should write again.
//!
//! Nothing here knows a word of the domain. Where to start: [`component`] says what a service is and how a process runs
//! one; [`settings`] where its settings come from; [`channel`] how it reaches others, in memory or over the network, and
//! [`layers`] what every call passes; [`db`] how it writes. [`tasks`] is the only place that spawns.

pub mod backoff;
pub mod channel;
pub mod clock;
pub mod component;
pub mod db;
pub mod egress;
pub mod failpoint;
pub mod health;
pub mod identity;
pub mod layers;
pub mod metrics;
pub mod secrets;
pub mod settings;
pub mod tasks;
pub mod telemetry;
#[cfg(feature = "testkit")]
pub mod testkit;
pub mod trace;
