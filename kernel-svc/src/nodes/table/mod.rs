//! Tables: what is read from CSV and JSON, changed by rows and columns, joined and summed up.
//!
//! What lives here: the table itself ([`frame`]), conditions on rows ([`condition`]), texts in CSV ([`text`]), and the types by
//! what they do. What does not: workbooks (`document`).

mod change;
mod combine;
mod condition;
mod files;
mod frame;
mod rows;
mod stats;
mod text;

use super::code::Types;
pub(super) use condition::Condition;
pub(super) use frame::{Column, Frame};

/// All types of this family.
pub(super) fn types() -> Types {
    let mut types = change::types();
    types.extend(combine::types());
    types.extend(files::types());
    types.extend(rows::types());
    types.extend(stats::types());
    types.extend(text::types());
    types
}
/// The code of a type that yields frames, for tests.
#[cfg(test)]
pub(super) fn generator(node_type: &str) -> Option<Box<dyn super::code::Generator>> {
    rows::generator(node_type)
}
