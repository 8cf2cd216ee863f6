//! How a call ended, as its waiters and its repeats are told.

use atelier_proto::provider::v1::GenerationResult;
use atelier_proto::tracker::v1::Generation;
use atelier_proto::value::Value;

use crate::error::Error;

/// Longest text that is kept for repeats of a call, in bytes.
const MAX_TEXT: usize = 64 * 1024;

/// The end of a call.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The row.
    pub generation: Generation,
    /// The result, when it completed.
    pub result: Option<GenerationResult>,
    /// Why it did not complete.
    pub error: Option<Error>,
}

impl Outcome {
    /// The same without what is too large to be kept: inline media and long texts.
    #[must_use]
    pub(crate) fn light(&self) -> Self {
        let mut light = self.clone();
        if let Some(result) = &mut light.result {
            let output = result
                .output
                .take()
                .and_then(|output| Value::try_from(output).ok());
            result.output = output.filter(is_light).map(|output| (&output).into());
        }
        light
    }
}

fn is_light(value: &Value) -> bool {
    match value {
        Value::Media(media) => media.data.is_none(),
        Value::List(values) => values.iter().all(is_light),
        Value::Bytes(_) => false,
        other => other.weight() <= MAX_TEXT,
    }
}
