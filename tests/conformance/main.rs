//! The index of cases against the specifications and the tests; who uses whom.

mod architecture;
mod index;
mod metrics;
