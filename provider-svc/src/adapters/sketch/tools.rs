//! Calls of tools by the offline provider, scripted by the words of the prompt.
//!
//! A tool is called when the conversation names it, all named ones at once; the first one when the prompt asks for tools
//! or the request demands a call. After their results comes an answer that repeats them.

use atelier_proto::value::{Value, from_json};
use serde_json::{Value as Json, json};

use super::write;

/// Most tools that are looked at.
const MAX_TOOLS: usize = 128;
/// Letters of a result that an answer repeats.
const MAX_REPEATED: usize = 600;

/// A tool that may be called.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    name: String,
    parameters: Json,
}

/// Reads the tools of a request.
pub(super) fn tools(list: &Json) -> Vec<Tool> {
    let read = |tool: &Json| {
        let function = tool.get("function").unwrap_or(tool);
        Some(Tool {
            name: function.get("name")?.as_str()?.to_owned(),
            parameters: function
                .get("parameters")
                .or_else(|| function.get("input_schema"))
                .cloned()
                .unwrap_or_else(|| json!({"type": "object"})),
        })
    };
    let tools = list.as_array().into_iter().flatten();
    tools.filter_map(read).take(MAX_TOOLS).collect()
}

/// The tools that are to be called for a prompt.
pub(super) fn wanted<'a>(tools: &'a [Tool], system: &str, prompt: &str, demanded: bool) -> Vec<&'a Tool> {
    let asked = format!(" {} {} ", plain(system), plain(prompt));
    let named: Vec<&Tool> = tools
        .iter()
        .filter(|tool| asked.contains(&format!(" {} ", plain(&tool.name))))
        .collect();
    if !named.is_empty() {
        return named;
    }
    let prompt = format!(" {} ", plain(prompt));
    let asks = [" tool ", " tools ", " search ", " look up ", " calculate "];
    if demanded || asks.iter().any(|word| prompt.contains(word)) {
        tools.iter().take(1).collect()
    } else {
        Vec::new()
    }
}

/// The message that calls them.
pub(super) fn message(tools: &[&Tool], prompt: &str, seed: u64) -> Value {
    let calls: Vec<Json> = tools
        .iter()
        .enumerate()
        .map(|(at, tool)| {
            let arguments = arguments(tool, prompt, seed).to_string();
            let id = format!("call_{at}_{}", tool.name);
            json!({"id": id, "type": "function", "function": {"name": tool.name, "arguments": arguments}})
        })
        .collect();
    from_json(json!({"role": "assistant", "content": "", "tool_calls": calls}))
}

/// Arguments that fit the tool's schema. What is asked goes into a question, a sum into an expression.
fn arguments(tool: &Tool, prompt: &str, seed: u64) -> Json {
    let mut arguments = write::json(prompt, Some(&tool.parameters), seed);
    let Some(object) = arguments.as_object_mut() else {
        return json!({});
    };
    let defaults = tool.parameters.get("properties").and_then(Json::as_object);
    let has_default = |name: &str| defaults.and_then(|all| all.get(name)?.get("default")).is_some();
    // What a schema gives a value for is left to it, unless the question belongs there.
    object.retain(|name, _| question(name) || !has_default(name));
    for (name, value) in object.iter_mut().filter(|(_, value)| value.is_string()) {
        match name.as_str() {
            "expression" => *value = sum(prompt).unwrap_or_else(|| "1 + 1".to_owned()).into(),
            name if question(name) => *value = prompt.trim().chars().take(200).collect::<String>().into(),
            _ => {}
        }
    }
    arguments
}
fn question(name: &str) -> bool {
    matches!(
        name,
        "query" | "keyword" | "question" | "prompt" | "text" | "q" | "input"
    )
}

/// The longest piece of a text that looks like a sum.
fn sum(text: &str) -> Option<String> {
    let fits = |letter: char| letter.is_ascii_digit() || " +-*/().,^%".contains(letter);
    let pieces = text
        .split(|letter| !fits(letter))
        .map(|piece| piece.trim_matches([' ', ',', '.']));
    let sums = pieces.filter(|piece| {
        piece.contains(['+', '-', '*', '/', '^', '%']) && piece.chars().any(|letter| letter.is_ascii_digit())
    });
    sums.max_by_key(|piece| piece.len()).map(ToOwned::to_owned)
}

/// An answer after tools were called: their results and a sentence about the prompt.
pub(super) fn answer(results: &[(String, String)], prompt: &str, seed: u64) -> String {
    let mut lines: Vec<String> = results
        .iter()
        .map(|(tool, result)| {
            let result: String = result.trim().chars().take(MAX_REPEATED).collect();
            format!("{tool}: {result}")
        })
        .collect();
    lines.push(write::reply("", &format!("About {prompt}"), seed));
    lines.join("\n")
}

/// Words in lower case with single spaces around what is neither letter nor digit.
fn plain(text: &str) -> String {
    let spaced: String = text
        .chars()
        .map(|letter| if letter.is_alphanumeric() { letter } else { ' ' })
        .collect();
    spaced
        .to_lowercase()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Vec<Tool> {
        tools(&json!([
            {"type": "function", "function": {"name": "calculator", "parameters":
                {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}}},
            {"type": "function", "function": {"name": "google_search", "parameters": {"type": "object",
                "properties": {"keyword": {"type": "string"}, "num_results": {"type": "integer", "default": 10}}}}},
        ]))
    }
    fn names(system: &str, prompt: &str, demanded: bool) -> Vec<String> {
        let tools = two();
        wanted(&tools, system, prompt, demanded)
            .iter()
            .map(|tool| tool.name.clone())
            .collect()
    }

    #[test]
    fn tools_are_called_when_they_are_named_or_asked_for() {
        assert_eq!(names("", "use the Calculator for 2+3", false), ["calculator"]);
        assert_eq!(
            names("- google_search: the web", "boats", false),
            ["google_search"]
        );
        assert_eq!(names("", "search for boats", false), ["calculator"]);
        assert!(names("", "hello", false).is_empty());
        assert_eq!(names("", "hello", true), ["calculator"]);
    }

    #[test]
    fn arguments_come_from_the_prompt_and_fit() {
        let tools = two();
        let all: Vec<&Tool> = tools.iter().collect();
        let message = message(&all, "what is 12 * (3 + 4)?", 1);
        let call = |at: usize| -> Json {
            let calls = message.get("tool_calls").unwrap();
            let arguments = calls.as_list().unwrap()[at]
                .get("function")
                .unwrap()
                .get("arguments")
                .unwrap();
            serde_json::from_str(arguments.as_str().unwrap()).unwrap()
        };
        assert_eq!(call(0), json!({"expression": "12 * (3 + 4)"}));
        assert_eq!(call(1), json!({"keyword": "what is 12 * (3 + 4)?"}));
    }
}
