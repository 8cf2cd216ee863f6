//! What tests across services share: the stack in one process, the `atelier` command as a process, a client of the socket,
//! the index of cases.

pub mod cases;
pub mod cluster;
pub mod process;
pub mod socket;
pub mod stack;
pub mod stand_in;
pub mod workflows;

pub use process::{Server, atelier};
pub use socket::Socket;
pub use stack::TestStack;
