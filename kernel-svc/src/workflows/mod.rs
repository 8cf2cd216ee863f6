//! Saved workflows: their records, the history of their graphs, and the files that they come from and go to.
//!
//! `draft.rs` says what may be saved, `store.rs` and `save.rs` keep the records, `versions.rs` the graphs, `file.rs` reads and
//! writes files. What does not live here: running a workflow (`jobs/`), and what a graph means (`graph/`): what is wrong
//! with a graph does not keep it from being saved, because people save work that is not done.

mod draft;
mod file;
mod rows;
mod save;
mod store;
mod versions;

pub use draft::{Draft, Graph};
pub use file::{read_file, write_file};
pub use rows::to_proto;
pub use save::Expected;
pub use store::{Page, Saved, Store};
pub use versions::{VersionPage, version_to_proto};
