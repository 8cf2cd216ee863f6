//! The tools of an agent: the nodes that it controls, and a few that are built in.

use std::collections::HashSet;

use atelier_proto::{
    kernel::v1::Severity,
    value::{Map, Value, map_from_json},
};

use super::{builtin, warn};
use crate::{
    event::Note,
    graph::control::CONTROL_CONTEXT,
    node::Context,
    nodes::{
        args::{Args, json_of, map, text_of},
        catalog,
    },
};

/// Most letters of a result that a model is given.
const MAX_RESULT: usize = 32_000;
/// Longest name of a tool, as providers have it.
const MAX_NAME: usize = 64;

enum Tool {
    /// A node, by its id.
    Node(String),
    Builtin(&'static builtin::Builtin),
}
struct Offered {
    name: String,
    description: String,
    parameters: Value,
    tool: Tool,
}

/// The tools of one invocation.
#[derive(Default)]
pub(super) struct Toolbox(Vec<Offered>);

impl Toolbox {
    /// The nodes that are controlled, and the built-in tools that the input `tools` names. Others are warned of.
    pub async fn of(args: Args<'_>, ctx: &Context) -> Self {
        let mut toolbox = Self::default();
        let mut taken = HashSet::new();
        let controlled = args.value(CONTROL_CONTEXT);
        for (id, node) in controlled.as_map().into_iter().flatten() {
            let offered = of_node(id, node, &mut taken);
            toolbox.0.push(offered);
        }
        let name = |tool: Value| text_of(&tool.get("name").unwrap_or(tool));
        let mut unknown = Vec::new();
        for name in args
            .list("tools")
            .into_iter()
            .map(name)
            .filter(|name| !name.is_empty())
        {
            match builtin::find(&name) {
                Some(tool) if taken.insert(tool.name.to_owned()) => toolbox.0.push(Offered {
                    name: tool.name.to_owned(),
                    description: tool.description.to_owned(),
                    parameters: tool.parameters(),
                    tool: Tool::Builtin(tool),
                }),
                Some(_) => {}
                None => unknown.push(name),
            }
        }
        if !unknown.is_empty() {
            let text = format!(
                "tools are not available, the model answers without them: {}",
                unknown.join(", ")
            );
            warn(ctx, &text).await;
        }
        toolbox
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The tools as a model is told of them.
    pub fn offer(&self) -> Value {
        let offer = |tool: &Offered| {
            let function = map([
                ("name", tool.name.as_str().into()),
                ("description", tool.description.as_str().into()),
                ("parameters", tool.parameters.clone()),
            ]);
            map([("type", "function".into()), ("function", function.into())]).into()
        };
        Value::list(self.0.iter().map(offer).collect())
    }
    /// Carries a call out. What goes wrong is told to the model, which may do better.
    pub async fn answer(&self, ctx: &Context, call: &Value) -> Value {
        let function = call.get("function").unwrap_or_default();
        let name = function
            .get("name")
            .map(|name| text_of(&name))
            .unwrap_or_default();
        let arguments = function.get("arguments").unwrap_or_default();
        let note = Note::Log {
            content: format!("calls the tool {name}"),
            severity: Severity::Info,
        };
        ctx.note(note).await;
        let result = match (self.0.iter().find(|tool| tool.name == name), read(&arguments)) {
            (None, _) => Err(format!("there is no tool {name}")),
            (_, Err(wrong)) => Err(wrong),
            (Some(tool), Ok(arguments)) => match &tool.tool {
                Tool::Node(id) => ctx.controls.call(id, arguments).await.map(Value::from),
                Tool::Builtin(tool) => (tool.run)(Args(&arguments)).map_err(|error| error.message),
            },
        };
        let result = match result {
            Ok(Value::Str(text)) => text.to_string(),
            Ok(value) => json_of(&value).to_string(),
            Err(wrong) => {
                warn(ctx, &format!("the tool {name} failed: {wrong}")).await;
                format!("Error: {wrong}")
            }
        };
        let result: String = result.chars().take(MAX_RESULT).collect();
        map([
            ("role", "tool".into()),
            ("tool_call_id", call.get("id").unwrap_or_default()),
            ("name", name.into()),
            ("content", result.into()),
        ])
        .into()
    }
}

/// Arguments: JSON text, or the object itself.
fn read(arguments: &Value) -> Result<Map, String> {
    match arguments {
        Value::Null => Ok(Map::new()),
        Value::Map(map) => Ok(map.as_ref().clone()),
        Value::Str(text) if text.trim().is_empty() => Ok(Map::new()),
        Value::Str(text) => serde_json::from_str(text)
            .ok()
            .and_then(map_from_json)
            .ok_or_else(|| "the arguments are no JSON object".to_owned()),
        _ => Err("the arguments are no JSON object".to_owned()),
    }
}

/// A controlled node as a tool, called after its title.
fn of_node(id: &str, node: &Value, taken: &mut HashSet<String>) -> Offered {
    let text = |key: &str| node.get(key).map(|value| text_of(&value)).unwrap_or_default();
    let (title, node_type) = (text("node_title"), text("node_type"));
    let run = node.get("control_actions").and_then(|actions| actions.get("run"));
    let properties = run
        .and_then(|run| run.get("properties"))
        .unwrap_or_else(|| Map::new().into());
    let stem: String = slug(&title).chars().take(MAX_NAME - 4).collect();
    let stem = if stem.is_empty() { "node".to_owned() } else { stem };
    let mut name = stem.clone();
    let mut number = 2;
    while !taken.insert(name.clone()) {
        name = format!("{stem}_{number}");
        number += 1;
    }
    let known = catalog::meta(&node_type)
        .map(|meta| meta.description.clone())
        .filter(|text| !text.is_empty());
    Offered {
        name,
        description: known
            .unwrap_or_else(|| format!("Runs the node {title} ({node_type}) and gives its outputs.")),
        parameters: map([("type", "object".into()), ("properties", properties)]).into(),
        tool: Tool::Node(id.to_owned()),
    }
}
fn slug(title: &str) -> String {
    let spaced: String = title
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter.to_ascii_lowercase()
            } else {
                ' '
            }
        })
        .collect();
    spaced.split_whitespace().collect::<Vec<_>>().join("_")
}
