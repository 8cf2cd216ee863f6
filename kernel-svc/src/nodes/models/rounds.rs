//! The rounds of an agent: the model is asked, its calls of tools are carried out, and it is asked again with the results.

use atelier_proto::value::{Map, Value};

use super::{Answer, call, message, outputs::Added, toolbox::Toolbox};
use crate::{
    node::{Context, NodeError},
    nodes::{
        args::{Args, map},
        code::Sink,
    },
};

/// Most rounds, whatever a node says.
const MAX_ROUNDS: i64 = 1_000;
/// Most calls of tools in one round.
const MAX_CALLS: usize = 32;

/// What an agent works with.
pub(super) struct Agent<'a> {
    pub ctx: &'a Context,
    pub args: Args<'a>,
    pub toolbox: Toolbox,
    /// Fields that the answer is to have; none: any text.
    pub fields: Added,
    /// Most times that the model is asked before it must answer.
    pub rounds: i64,
    /// Parameters of every call but its messages and tools.
    pub params: Map,
}

impl Agent<'_> {
    /// Asks until there is an answer. The last round offers no tools, so there always is one. Gives the text, and the
    /// values of the fields.
    ///
    /// # Errors
    /// A call failed, or the answer has not the fields that were asked for, also after it was asked for once more.
    pub async fn run(
        &self,
        mut messages: Vec<Value>,
        frames: &mut dyn Sink,
    ) -> Result<(String, Map), NodeError> {
        let rounds = self.rounds.clamp(1, MAX_ROUNDS);
        let mut text = String::new();
        for round in 1..=rounds {
            match self.ask(&messages, round < rounds, frames).await? {
                Said::Text(said) => {
                    text = said;
                    break;
                }
                Said::Calls(said, calls) => {
                    messages.push(said);
                    for asked in calls {
                        messages.push(self.toolbox.answer(self.ctx, &asked).await);
                    }
                }
            }
        }
        if self.fields.is_empty() {
            return Ok((text, Map::new()));
        }
        let wrong = match self.fields.read_strictly(&text) {
            Ok(values) => return Ok((text, values)),
            Err(wrong) => wrong,
        };
        // One try to repair it: the model is told what is wrong.
        messages.push(message("assistant", &text, &[]));
        let told = format!(
            "{}. Answer again, with nothing but the JSON object that was asked for.",
            wrong.message
        );
        messages.push(message("user", &told, &[]));
        let text = match self.ask(&messages, false, frames).await? {
            Said::Text(text) => text,
            Said::Calls(..) => String::new(),
        };
        // What is still not all there, but can be read, is taken as far as it goes.
        let values = self.fields.read(&text)?;
        Ok((text, values))
    }

    async fn ask(&self, messages: &[Value], tools: bool, frames: &mut dyn Sink) -> Result<Said, NodeError> {
        let mut params = map([("messages", Value::list(messages.to_vec()))]);
        params.extend(self.params.clone());
        if !self.fields.is_empty() {
            params.insert("response_format".to_owned(), self.fields.response_format());
        }
        if !self.toolbox.is_empty() {
            params.insert("tools".to_owned(), self.toolbox.offer());
            if !tools {
                params.insert("tool_choice".to_owned(), "none".into());
            }
        }
        let request = call(self.ctx, self.args, "generate_message", params)?;
        let mut answer = if self.toolbox.is_empty() {
            Answer::new(frames, true)
        } else {
            Answer::open(frames)
        };
        let made = self.ctx.generate(request, &mut answer).await?;
        let calls = made.output.get("tool_calls");
        let calls = calls.as_ref().and_then(Value::as_list).unwrap_or_default();
        if calls.is_empty() || !tools {
            let said = made.output.get("content").unwrap_or(made.output);
            return answer.end(&said).await.map(Said::Text);
        }
        let calls = calls.iter().take(MAX_CALLS).cloned().collect();
        Ok(Said::Calls(made.output, calls))
    }
}

/// What the model said in a round.
enum Said {
    Text(String),
    /// The message and its calls of tools.
    Calls(Value, Vec<Value>),
}
