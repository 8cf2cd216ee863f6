//! Pages and marked-up texts: what is written in HTML or Markdown, and feeds.
//!
//! What lives here: reading HTML ([`page`]) and what types take out of it ([`html`]), Markdown ([`markdown`]), feeds
//! ([`feed`]). What does not: fetching (`http`).

mod feed;
mod html;
mod markdown;
mod page;

use super::code::Types;
pub(super) use page::{Piece, Style, pieces, text_of_html};

/// All types of this family.
pub(super) fn types() -> Types {
    let mut types = html::types();
    types.extend(markdown::types());
    types.extend(feed::types());
    types
}
/// The code of a type that yields frames, for tests.
#[cfg(test)]
pub(super) fn generator(node_type: &str) -> Option<Box<dyn super::code::Generator>> {
    html::generator(node_type)
}
