//! Documents: what is read out of PDF, Word, PowerPoint, EPUB and Excel files, cut into pieces, and written.
//!
//! What lives here: packages of files ([`package`]), the text of each format ([`office`], [`pdf`], [`book`]; [`unpack`] bounds what a PDF unpacks to), pieces ([`split`]),
//! workbooks ([`excel`]), Word documents that are made step by step ([`word`]). What does not: where files lie (`files`).

mod book;
mod convert;
mod excel;
mod office;
mod package;
mod pdf;
mod split;
mod unpack;
mod word;

use atelier_proto::value::Map;
use bytes::Bytes;

use super::{
    args::Args,
    code::Types,
    work::{blocking, content},
};
use crate::node::{Context, NodeError};

/// All types of this family.
pub(super) fn types() -> Types {
    let mut types = book::types();
    types.extend(convert::types());
    types.extend(excel::types());
    types.extend(office::types());
    types.extend(pdf::types());
    types.extend(split::types());
    types.extend(word::types());
    types
}
/// The code of a type that yields frames, for tests.
#[cfg(test)]
pub(super) fn generator(node_type: &str) -> Option<Box<dyn super::code::Generator>> {
    split::generator(node_type)
}

/// Reads the content of an input and works on it on a thread of its own.
async fn with_content<T: Send + 'static>(
    args: Args<'_>,
    input: &'static str,
    ctx: &Context,
    work: impl FnOnce(Args<'_>, &Bytes) -> Result<T, NodeError> + Send + 'static,
) -> Result<T, NodeError> {
    let bytes = content(args, input, "document", ctx).await?;
    let inputs: Map = args.0.clone();
    blocking(ctx, move || work(Args(&inputs), &bytes)).await
}
/// The fault of a document that is none of its kind.
fn unreadable(input: &str, kind: &str) -> NodeError {
    NodeError::new(format!("the input `{input}` cannot be read as {kind}")).code("input.value")
}

#[cfg(test)]
mod tests;
