//! Control events and what a controller is told about the nodes it controls (kernel specification 5.1, 5.2,
//! 5.5).

use std::sync::Arc;

use atelier_proto::value::{Map, Value};

use super::{
    model::{CONTROL, Node},
    types::{Type, infer, is_list},
};

/// The name under which a controller finds its targets among its inputs.
pub const CONTROL_CONTEXT: &str = "_control_context";

/// A control event.
#[derive(Debug, Clone, PartialEq)]
pub enum ControlEvent {
    /// Run once, with these values over all others.
    Run(Arc<Map>),
    /// End.
    Stop,
}

/// The event in a value that arrived at a controlled node; unknown kinds are none.
#[must_use]
pub fn event_of(value: &Value) -> Option<ControlEvent> {
    let map = value.as_map()?;
    match map.get("event_type")?.as_str()? {
        "run" => Some(ControlEvent::Run(match map.get("properties") {
            Some(Value::Map(properties)) => Arc::clone(properties),
            _ => Arc::default(),
        })),
        "stop" => Some(ControlEvent::Stop),
        _ => None,
    }
}

/// What travels over a control edge when a value is emitted on its handle: an event as it is, another object
/// as a run event, anything else not at all.
#[must_use]
pub fn wrap(value: &Value) -> Option<Value> {
    let map = value.as_map()?;
    if map.get("event_type").is_some_and(|kind| kind.as_str().is_some()) {
        return Some(value.clone());
    }
    Some(run_event(match map.get("properties") {
        Some(properties @ Value::Map(_)) => properties.clone(),
        _ => value.clone(),
    }))
}

/// A run event with these properties.
#[must_use]
pub fn run_event(properties: Value) -> Value {
    Value::map(
        [
            ("event_type".to_owned(), "run".into()),
            ("properties".to_owned(), properties),
        ]
        .into_iter()
        .collect(),
    )
}

/// What a controller is told about the nodes it controls: their properties and the events they take.
#[must_use]
pub fn context<'a>(targets: impl Iterator<Item = &'a Node>) -> Value {
    Value::map(targets.map(|node| (node.id.to_string(), target(node))).collect())
}

fn map(entries: Vec<(&str, Value)>) -> Value {
    Value::map(
        entries
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
    )
}

fn target(node: &Node) -> Value {
    let values = node.static_values();
    let mut names: Vec<&str> = node.inputs.keys().map(String::as_str).collect();
    names.extend(
        values
            .keys()
            .map(String::as_str)
            .filter(|name| !node.inputs.contains_key(*name)),
    );
    names.retain(|name| !name.starts_with('_') && *name != CONTROL);
    let (mut properties, mut schema) = (Map::new(), Map::new());
    for name in names {
        let value = values.get(name);
        let declared = node.inputs.get(name).map(ToString::to_string);
        let ty = declared
            .or_else(|| value.and_then(infer))
            .unwrap_or_else(|| "any".to_owned());
        let input = node.meta.inputs.iter().find(|input| input.name == name);
        let slot = node.dynamic_inputs.get(name);
        let description = input
            .map(|input| &input.description)
            .or_else(|| slot.map(|slot| &slot.description));
        let description = Value::from(description.cloned().unwrap_or_default());
        let min = input
            .and_then(|input| input.min)
            .or_else(|| slot.and_then(|slot| slot.min))
            .map(number);
        let max = input
            .and_then(|input| input.max)
            .or_else(|| slot.and_then(|slot| slot.max))
            .map(number);
        let mut action = vec![
            ("type", schema_name(&ty).into()),
            ("description", description.clone()),
        ];
        action.extend(value.map(|value| ("default", value.clone())));
        action.extend(min.clone().map(|min| ("minimum", min)));
        action.extend(max.clone().map(|max| ("maximum", max)));
        schema.insert(name.to_owned(), map(action));
        if let Some(value) = value {
            let mut property = vec![
                ("value", value.clone()),
                ("type", ty.into()),
                ("description", description),
            ];
            property.extend(min.map(|min| ("min", min)));
            property.extend(max.map(|max| ("max", max)));
            properties.insert(name.to_owned(), map(property));
        }
    }
    let title = node
        .name
        .as_deref()
        .filter(|name| !name.is_empty())
        .unwrap_or(&node.meta.title);
    map(vec![
        ("node_id", (&*node.id).into()),
        ("node_type", (&*node.node_type).into()),
        (
            "node_title",
            if title.is_empty() {
                (&*node.node_type).into()
            } else {
                title.into()
            },
        ),
        ("properties", properties.into()),
        (
            "control_actions",
            map(vec![("run", map(vec![("properties", schema.into())]))]),
        ),
    ])
}

fn number(value: f64) -> Value {
    let whole = Value::Float(value);
    whole.as_i64().map_or(whole, Value::Int)
}

fn schema_name(ty: &str) -> &'static str {
    let base = ty.split('[').next().unwrap_or_default().trim();
    match base {
        "int" => "integer",
        "float" | "number" => "number",
        "bool" => "boolean",
        _ if is_list(ty) => "array",
        _ if base.starts_with("dict") || base == "object" => "object",
        _ => "string",
    }
}

/// Coerces and checks the values of declared slots (kernel specification 1.9).
///
/// # Errors
/// A text that names the slot, the node, and what was expected and received.
pub fn coerce_slots(node: &Node, inputs: &mut Map) -> Result<(), String> {
    for (name, slot) in &node.dynamic_inputs {
        let Some(value) = inputs.get_mut(name) else {
            continue;
        };
        if slot.ty.is_empty() || value.is_null() {
            continue;
        }
        if is_list(&slot.ty) && value.as_list().is_none() {
            *value = Value::list(vec![value.clone()]);
        }
        let Some(actual) = infer(value) else { continue };
        if !Type::parse(&actual).feeds(&Type::parse(&slot.ty)) {
            return Err(format!(
                "input {name} of node {} must be of type {}, not {actual}",
                node.id, slot.ty
            ));
        }
    }
    Ok(())
}
