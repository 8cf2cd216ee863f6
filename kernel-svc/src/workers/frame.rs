//! Frames of an invocation and handles of lineages: from the wire to what the driver of the invocation reads.

use atelier_proto::{
    kernel::v1::{
        FailureKind, FrameChunk, FrameComplete, FrameDrop, FrameFailure, FrameForward, FrameLog, FrameMedia,
        FrameProgress, FrameYield, Severity, invocation_frame::Body,
    },
    value::{Map, Value},
};
use bytes::{BufMut, Bytes, BytesMut};

use crate::{
    event::Note,
    graph::facts::Root,
    node::{NodeError, NodeErrorKind},
    run::Lineage,
};

/// Longest text of an error or a line of a log, in bytes; what is longer is cut.
const MAX_TEXT: usize = 64 * 1024;
/// Longest code of an error, in bytes.
const MAX_CODE: usize = 128;
/// Most iterations in a lineage.
const MAX_TOKENS: usize = 64;
/// A token on the wire: iteration and item, big endian.
const TOKEN: usize = 8;

/// A frame that arrived.
#[derive(Debug)]
pub(super) enum Frame {
    /// One that an earlier attempt gave already.
    Nothing,
    /// The same with values: what was uploaded for them is not wanted again.
    Repeated(Map),
    Result(Map),
    Values(Map, Option<Bytes>),
    Forward {
        output: String,
        value: Value,
        lineage: Bytes,
    },
    Drop {
        output: String,
        lineage: Bytes,
    },
    Complete(String),
    Media {
        upload: i64,
        data: Bytes,
    },
    Note(Note),
    End,
    Failure(NodeError),
}
impl Frame {
    /// Whether nothing may follow.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Result(_) | Self::End | Self::Failure(_))
    }
    /// Whether it gives something out that other nodes may have seen.
    pub fn is_yield(&self) -> bool {
        matches!(
            self,
            Self::Values(..) | Self::Forward { .. } | Self::Drop { .. } | Self::Complete(_)
        )
    }
    /// A yield that an earlier attempt gave already.
    pub fn repeated(self) -> Self {
        match self {
            Self::Values(values, _) => Self::Repeated(values),
            Self::Forward { output, value, .. } => Self::Repeated([(output, value)].into_iter().collect()),
            Self::Nothing
            | Self::Repeated(_)
            | Self::Result(_)
            | Self::Drop { .. }
            | Self::Complete(_)
            | Self::Media { .. }
            | Self::Note(_)
            | Self::End
            | Self::Failure(_) => Self::Nothing,
        }
    }
    /// Reads a frame; the text says what is wrong with it.
    pub fn read(body: Option<Body>) -> Result<Self, String> {
        let wrong = |error: atelier_proto::value::ValueError| error.to_string();
        Ok(match body.ok_or("a frame says nothing")? {
            Body::Result(outputs) => Self::Result(Map::try_from(outputs).map_err(wrong)?),
            Body::Values(FrameYield { values, lineage }) => {
                let values = Map::try_from(values.unwrap_or_default()).map_err(wrong)?;
                Self::Values(values, lineage)
            }
            Body::Forward(FrameForward {
                output,
                value,
                lineage,
            }) => Self::Forward {
                output,
                value: Value::try_from(value.ok_or("a value is missing")?).map_err(wrong)?,
                lineage,
            },
            Body::Drop(FrameDrop { output, lineage }) => Self::Drop { output, lineage },
            Body::Complete(FrameComplete { output }) => Self::Complete(output),
            Body::Media(FrameMedia { upload_id, data }) => Self::Media {
                upload: upload_id,
                data,
            },
            Body::Progress(FrameProgress { progress, total }) => Self::Note(Note::Progress {
                progress,
                total,
                preview: None,
            }),
            Body::Log(FrameLog { content, severity }) => Self::Note(Note::Log {
                content: cut(content, MAX_TEXT),
                severity: Severity::try_from(severity).unwrap_or(Severity::Info),
            }),
            Body::Chunk(FrameChunk {
                content,
                done,
                thinking,
            }) => Self::Note(Note::Chunk {
                content,
                done,
                thinking,
            }),
            Body::End(_) => Self::End,
            Body::Failure(failure) => Self::Failure(error_of(failure)),
        })
    }
}
fn error_of(failure: FrameFailure) -> NodeError {
    let FrameFailure { message, code, kind } = failure;
    let message = if message.is_empty() {
        "the worker gave no reason".to_owned()
    } else {
        cut(message, MAX_TEXT)
    };
    let kind = match FailureKind::try_from(kind).unwrap_or_default() {
        FailureKind::Unspecified | FailureKind::Node => NodeErrorKind::Failed,
        FailureKind::Item => NodeErrorKind::Item,
        FailureKind::Refused => NodeErrorKind::Refused,
        FailureKind::Cancelled => NodeErrorKind::Cancelled,
    };
    NodeError {
        code: Some(cut(code, MAX_CODE)).filter(|code| !code.is_empty()),
        kind,
        ..NodeError::new(message)
    }
}
fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let end = (0..=limit)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        text.truncate(end);
    }
    text
}
/// The handle of a lineage.
pub(super) fn handle_of(lineage: &Lineage) -> Bytes {
    let mut handle = BytesMut::with_capacity(lineage.tokens().len() * TOKEN);
    for token in lineage.tokens() {
        handle.put_u32(token.root.0);
        handle.put_u32(token.index);
    }
    handle.freeze()
}
/// The lineage of a handle; `roots` is the number of iterations of the run.
///
/// # Errors
/// It is no handle of this run.
pub(super) fn lineage_of(handle: &[u8], roots: usize) -> Result<Lineage, NodeError> {
    let wrong =
        || NodeError::new("the worker gave a lineage that is none of this run").code("worker.protocol");
    let (tokens, rest) = handle.as_chunks::<TOKEN>();
    if !rest.is_empty() || tokens.len() > MAX_TOKENS {
        return Err(wrong());
    }
    let mut lineage = Lineage::default();
    for [a, b, c, d, e, f, g, h] in tokens {
        let root = u32::from_be_bytes([*a, *b, *c, *d]);
        if usize::try_from(root).map_or(true, |root| root >= roots) {
            return Err(wrong());
        }
        lineage = lineage.with(Root(root), u32::from_be_bytes([*e, *f, *g, *h]));
    }
    Ok(lineage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lineage_comes_back_as_it_went_and_forged_ones_are_refused() {
        let lineage = Lineage::default().with(Root(0), 7).with(Root(2), 1);
        let handle = handle_of(&lineage);
        assert_eq!(lineage_of(&handle, 3).unwrap(), lineage);
        assert_eq!(lineage_of(&[], 0).unwrap(), Lineage::default());
        for (handle, roots) in [(&handle[..], 2), (&handle[..5], 3), (&[0_u8; 8 * 65][..], 3)] {
            assert!(lineage_of(handle, roots).is_err());
        }
    }
    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("ä".repeat(3), 3), "ä");
        let failure = FrameFailure {
            message: "x".repeat(MAX_TEXT * 2),
            ..FrameFailure::default()
        };
        assert_eq!(error_of(failure).message.len(), MAX_TEXT);
    }
}
