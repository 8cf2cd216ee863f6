//! Embeddings: texts in, lists of numbers out.

use atelier_proto::value::{BytesForm, Value, from_json, to_json};
use serde::Deserialize;
use serde_json::json;

use super::OpenAi;
use crate::provider::{Call, Class, Failure, Finished, Output, Params, Usage};

/// Longest answer that is taken, in bytes.
const MAX_ANSWER: u64 = 64 * 1024 * 1024;

/// An answer. Unknown fields are ignored.
#[derive(Debug, Deserialize)]
struct Embeddings {
    data: Vec<Embedding>,
    #[serde(default)]
    usage: Option<Used>,
}
#[derive(Debug, Deserialize)]
struct Embedding {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f64>,
}
#[derive(Debug, Clone, Copy, Deserialize)]
struct Used {
    #[serde(default)]
    prompt_tokens: Option<i64>,
}

impl OpenAi {
    /// Turns a text, or several, into vectors.
    pub(super) async fn embedding(&self, call: &Call) -> Result<Finished, Failure> {
        let url = self.link.url("embeddings")?;
        let input = call.params.get("input").cloned().unwrap_or_default();
        let mut body = json!({"model": call.model, "input": to_json(&input, BytesForm::Tagged)});
        if let (Some(object), Some(dimensions)) =
            (body.as_object_mut(), Params(&call.params).int("dimensions"))
        {
            object.insert("dimensions".to_owned(), dimensions.into());
        }
        let build = || Ok(self.link.client().post(url.clone()).json(&body));
        let response = self.send(call, true, build).await?;
        let bytes = self.link.body(response, MAX_ANSWER).await?;
        let mut answer: Embeddings =
            serde_json::from_slice(&bytes).map_err(|_| self.link.unreadable(&bytes))?;
        answer.data.sort_by_key(|one| one.index);
        let many = input.as_list().is_some();
        let mut vectors = answer.data.into_iter().map(|one| from_json(json!(one.embedding)));
        let output = if many {
            Some(Value::list(vectors.collect()))
        } else {
            vectors.next()
        };
        let none =
            || Failure::new(Class::ProviderPermanent, "the answer has no embedding").because("no_output");
        let usage = Usage {
            input_tokens: answer.usage.and_then(|usage| usage.prompt_tokens),
            output_tokens: Some(0),
            ..Usage::default()
        };
        Ok(Finished {
            outputs: vec![Output::Value(output.ok_or_else(none)?)],
            usage,
        })
    }
}
