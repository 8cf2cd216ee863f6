//! The asset service through its gRPC interface: every case on SQLite and PostgreSQL, with a folder and with memory.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::large_futures,
    reason = "tests say what they expect by failing"
)]

mod commit;
mod download;
mod faults;
mod list;
mod s3;
mod slots;
mod socket;
mod store;
mod text;
mod upload;
mod world;
