//! Assets: names, reads that are scoped to the caller, pages, and the one queue that writes rows.
//!
//! What is in a row's bytes is the business of `blobs`; which rows a committed artifact needs is decided in `commit`.

pub mod list;
pub mod names;
pub mod rows;
pub mod upload;
