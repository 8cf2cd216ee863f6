//! The gateway over a real listener, with scripted services behind it. Test names carry the ids of the wire
//! specification.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::large_futures,
    reason = "tests say what they expect by failing"
)]

mod assets;
mod commands;
mod console;
mod description;
mod errors;
mod escalations;
mod events;
mod fakes;
mod frames;
mod generate;
mod jobs;
mod limits;
mod reach;
mod reconnect;
mod resources;
mod socket;
mod stack;
mod workflows;
