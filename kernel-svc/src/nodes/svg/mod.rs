//! Vector graphics: elements, documents of them, and their pictures.
//!
//! An element is `{type: "svg_element", name, attributes, content, children}`. What does not live here: pictures of pixels
//! (`image/`), and turning those into vectors, which a model does.

mod element;
mod picture;

#[cfg(test)]
mod tests;

use super::code::Types;
pub(super) use element::plain;

/// All types of this family.
pub(super) fn types() -> Types {
    let mut types = element::types();
    types.extend(picture::types());
    types
}
