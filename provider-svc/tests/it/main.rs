//! provider-svc against the real ledger and the real asset store, with providers that do what a test says.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::large_futures,
    reason = "tests say what they expect by failing"
)]

mod acme;
mod adoption;
mod audit;
mod away;
mod bills;
mod budgets;
mod cancel;
mod fal;
mod kie;
mod lifecycle;
mod openai;
mod openai_chat;
mod openai_media;
mod receipts;
mod remote;
mod remote_gemini;
mod remote_home;
mod remote_jobs;
mod remote_others;
mod remote_replicate;
mod remote_sound;
mod sketch;
mod sketch_more;
mod stack;
mod standin;
mod tap;
