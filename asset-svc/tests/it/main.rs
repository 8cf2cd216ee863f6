//! The asset service through its gRPC interface: every case on SQLite and PostgreSQL, with a folder and with memory.

mod commit;
mod download;
mod faults;
mod list;
mod slots;
mod socket;
mod store;
mod text;
mod upload;
mod world;
