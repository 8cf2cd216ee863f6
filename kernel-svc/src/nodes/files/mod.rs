//! Files and folders of the workspace, and names of files.
//!
//! What lives here: paths as texts ([`paths`]), the file system ([`touch`]), folders as streams ([`folder`]), and the rule
//! that nothing leaves the folder of the run's owner ([`workspace`]). What does not: formats of files (`document`, `table`).

mod folder;
mod paths;
mod touch;
mod workspace;

use super::code::Types;
pub(super) use workspace::{Workspace, fault};

/// All types of this family.
pub(super) fn types() -> Types {
    let mut types = paths::types();
    types.extend(touch::types());
    types.extend(folder::types());
    types
}
/// The code of a type that yields frames, for tests.
#[cfg(test)]
pub(super) fn generator(node_type: &str) -> Option<Box<dyn super::code::Generator>> {
    folder::generator(node_type)
}

/// A name of a file out of a pattern with `%Y`, `%m`, `%d`, `%H`, `%M` and `%S`; what is left empty gets a default.
pub(super) fn named(pattern: &str, default: &str, at: chrono::DateTime<chrono::Utc>) -> String {
    let pattern = if pattern.trim().is_empty() {
        default
    } else {
        pattern
    };
    let mut name = pattern.to_owned();
    for field in ["%Y", "%m", "%d", "%H", "%M", "%S", "%y", "%j", "%B", "%b"] {
        if name.contains(field) {
            name = name.replace(field, &at.format(field).to_string());
        }
    }
    name
}
