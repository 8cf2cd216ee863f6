//! Whether given outputs may stand in for those of a node.

use atelier_proto::value::Map;

use crate::graph::{model::Types, types::Type};

/// Whether every output that a node declares is of a type that a value can be checked against.
pub(super) fn checkable(declared: &Types) -> bool {
    !declared.is_empty() && declared.values().all(|ty| Type::parse(ty).is_checkable())
}

/// Says what is wrong with outputs that are to stand in for a node's.
pub(super) fn wrong(declared: &Types, outputs: &Map) -> Option<String> {
    for (name, ty) in declared {
        match outputs.get(&**name) {
            None => return Some(format!("the substitute has no output {name}")),
            Some(value) if !Type::parse(ty).admits(value) => {
                return Some(format!("output {name} of the substitute is no {ty}"));
            }
            Some(_) => {}
        }
    }
    let extra = outputs.keys().find(|name| !declared.contains_key(name.as_str()));
    extra.map(|name| format!("the node has no output {name}"))
}
