//! Saved workflows: their records, the history of their graphs, and the files that they come from and go to.
//!
//! `draft.rs` says what may be saved, `store.rs` keeps the records, `versions.rs` the graphs, `file.rs` reads and writes
//! files. What does not live here: running a workflow (`jobs/`), and what a graph means (`graph/`): what is wrong with a
//! graph does not keep it from being saved, because people save work that is not done.

mod draft;
mod file;
mod store;
mod versions;

pub use draft::{Draft, Graph};
pub use file::{read_file, write_file};
pub use store::{Expected, Page, Saved, Store, to_proto};
pub use versions::{VersionPage, version_to_proto};
