//! The JSON of answers. Unknown fields are ignored and almost everything may be missing: servers differ.

use serde::Deserialize;
use serde_json::Value;

/// An answer with pictures.
#[derive(Debug, Deserialize)]
pub(super) struct Images {
    #[serde(default)]
    pub(super) data: Vec<Image>,
    #[serde(default)]
    pub(super) usage: Option<ImageUsage>,
}
/// One picture: its bytes or its address.
#[derive(Debug, Deserialize)]
pub(super) struct Image {
    #[serde(default)]
    pub(super) b64_json: Option<String>,
    #[serde(default)]
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) revised_prompt: Option<String>,
}
/// Tokens of a picture.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct ImageUsage {
    #[serde(default)]
    pub(super) input_tokens: Option<i64>,
    #[serde(default)]
    pub(super) output_tokens: Option<i64>,
}
/// An event of a stream of pictures.
#[derive(Debug, Deserialize)]
pub(super) struct ImageEvent {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) b64_json: Option<String>,
    #[serde(default)]
    pub(super) partial_image_index: Option<i64>,
    #[serde(default)]
    pub(super) usage: Option<ImageUsage>,
}

/// A chat answer, or a piece of one.
#[derive(Debug, Deserialize)]
pub(super) struct Completion {
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) choices: Vec<Choice>,
    #[serde(default)]
    pub(super) usage: Option<ChatUsage>,
}
/// One of the answers.
#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    pub(super) delta: Option<Message>,
    #[serde(default)]
    pub(super) message: Option<Message>,
    #[serde(default)]
    pub(super) finish_reason: Option<String>,
}
/// What is said.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    #[serde(default)]
    pub(super) content: Option<Value>,
    #[serde(default, alias = "reasoning")]
    pub(super) reasoning_content: Option<String>,
    #[serde(default)]
    pub(super) refusal: Option<String>,
    #[serde(default)]
    pub(super) tool_calls: Option<Vec<ToolCall>>,
}
/// A call of a tool, or a piece of one: the pieces of one call have the same index.
#[derive(Debug, Deserialize)]
pub(super) struct ToolCall {
    #[serde(default)]
    pub(super) index: Option<usize>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) function: Option<FunctionCall>,
}
/// What is called, and with what.
#[derive(Debug, Deserialize)]
pub(super) struct FunctionCall {
    #[serde(default)]
    pub(super) name: Option<String>,
    /// JSON text in pieces; some servers send the object itself.
    #[serde(default)]
    pub(super) arguments: Option<Value>,
}
/// Tokens of a chat.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct ChatUsage {
    #[serde(default)]
    pub(super) prompt_tokens: Option<i64>,
    #[serde(default)]
    pub(super) completion_tokens: Option<i64>,
    #[serde(default)]
    pub(super) prompt_tokens_details: Option<PromptDetails>,
}
/// Tokens that were cached.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct PromptDetails {
    #[serde(default)]
    pub(super) cached_tokens: Option<i64>,
}

/// An answer with a transcript.
#[derive(Debug, Deserialize)]
pub(super) struct Transcript {
    pub(super) text: String,
    #[serde(default)]
    pub(super) usage: Option<TranscriptUsage>,
}
/// Seconds or tokens of a transcript.
#[derive(Debug, Deserialize)]
pub(super) struct TranscriptUsage {
    #[serde(default)]
    pub(super) seconds: Option<serde_json::Number>,
    #[serde(default)]
    pub(super) input_tokens: Option<i64>,
    #[serde(default)]
    pub(super) output_tokens: Option<i64>,
}
