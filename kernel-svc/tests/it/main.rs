//! Tests of the engine: the recorded corpus, the tables of the kernel specification, properties, and a
//! benchmark.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::large_futures,
    reason = "tests say what they expect by failing"
)]

mod basics;
mod budget;
mod control;
mod corpus;
mod ends;
mod failures;
mod fuzz;
mod harness;
mod iteration;
mod joins;
mod journal;
mod loading;
mod loops;
mod messages;
mod nodes;
mod properties;
mod robust;
mod store;
mod streams;
mod supervise;
mod waits;
mod workers;
