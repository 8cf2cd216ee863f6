//! Text: templates, changes, questions and patterns. Any value is taken as text where a text is asked for.

mod edit;
mod keep;
mod pattern;
mod question;
pub(super) mod template;

use super::{code::Types, work::MAX_CONTENT};
use crate::node::NodeError;

/// All types of this family.
pub(super) fn types() -> Types {
    let mut types = edit::types();
    types.extend(question::types());
    types.extend(pattern::types());
    types.extend(template::types());
    types.extend(keep::types());
    types
}

/// Refuses to make a text of more bytes than a node reads: a short one that stands in many places is a long one.
fn room(bytes: usize) -> Result<(), NodeError> {
    if bytes <= MAX_CONTENT {
        return Ok(());
    }
    Err(NodeError::new(format!("the text would have more than {MAX_CONTENT} bytes")).code("output.size"))
}
/// The places of a slice in a text of a length: negative ones count from the end, all are kept inside.
fn bounds(length: usize, start: i64, stop: i64) -> (usize, usize) {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let place = |at: i64| if at < 0 { at.saturating_add(length) } else { at }.clamp(0, length);
    let (start, stop) = (place(start), place(stop));
    (super::args::size(start), super::args::size(stop.max(start)))
}
/// Characters from one place up to another.
fn part(text: &str, start: i64, stop: i64) -> String {
    let (start, stop) = bounds(text.chars().count(), start, stop);
    text.chars().skip(start).take(stop - start).collect()
}
