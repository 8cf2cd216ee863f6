//! Outputs that a user added to a node of a language model: the schema that is asked for, and what the answer gives.

use std::sync::Arc;

use atelier_proto::value::{Map, Value, from_json};
use indexmap::IndexMap;
use serde_json::{Map as JsonMap, Value as Json, json};

use crate::{
    node::{Context, NodeError, NodeMeta},
    nodes::{
        args::{map, text_of},
        catalog,
    },
};

/// Deepest nesting of a type that is written as a schema.
const MAX_DEPTH: usize = 8;

/// Names and types of the outputs that the type itself does not have.
pub(in crate::nodes) struct Added {
    types: IndexMap<String, Arc<str>>,
    /// The schema of the only field, when its type does not say enough.
    own: Option<Json>,
}

impl Added {
    pub fn of(ctx: &Context) -> Self {
        let own = catalog::meta(&ctx.node_type)
            .map(|meta| meta.outputs.as_slice())
            .unwrap_or_default();
        let added = ctx
            .outputs
            .iter()
            .filter(|(name, _)| !name.starts_with("__") && own.iter().all(|output| *output.name != ***name));
        Self::of_types(added.map(|(name, ty)| (name.to_string(), Arc::clone(ty))))
    }
    fn of_types(types: impl Iterator<Item = (String, Arc<str>)>) -> Self {
        Self {
            types: types.collect(),
            own: None,
        }
    }
    /// The outputs of a type as fields; `None` when it gives one text, which needs no form.
    pub fn declared(meta: &NodeMeta) -> Option<Self> {
        let plain = |ty: &str| matches!(ty, "str" | "text" | "any");
        match meta.outputs.as_slice() {
            [] => None,
            [one] if plain(&one.ty) => None,
            outputs => {
                let fields = outputs
                    .iter()
                    .map(|output| (output.name.clone(), output.ty.as_str().into()));
                Some(Self::of_types(fields))
            }
        }
    }
    /// Fields of these names and types.
    pub fn fields(fields: &[(&str, &str)]) -> Self {
        let field = |(name, ty): &(&str, &str)| ((*name).to_owned(), Arc::from(*ty));
        Self::of_types(fields.iter().map(field))
    }
    /// One field of a type with a schema of its own.
    pub fn schema(name: &str, ty: &str, schema: Json) -> Self {
        Self {
            own: Some(schema),
            ..Self::fields(&[(name, ty)])
        }
    }
    /// One field that is one of several texts.
    pub fn one_of(name: &str, options: &[String]) -> Self {
        Self::schema(name, "str", json!({"type": "string", "enum": options}))
    }
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }
    /// What the call asks for: an object with one field for each output.
    pub fn response_format(&self) -> Value {
        let fields: JsonMap<String, Json> = self
            .types
            .iter()
            .map(|(name, ty)| (name.clone(), self.own.clone().unwrap_or_else(|| schema(ty, 0))))
            .collect();
        let required: Vec<&String> = self.types.keys().collect();
        let schema = from_json(json!({
            "type": "object", "properties": fields, "required": required, "additionalProperties": false,
        }));
        let named = map([("name", "outputs".into()), ("schema", schema)]);
        map([("type", "json_schema".into()), ("json_schema", named.into())]).into()
    }
    /// The values in an answer, all of them and of their types.
    ///
    /// # Errors
    /// What does not fit, in words that the model can go by.
    pub fn read_strictly(&self, answer: &str) -> Result<Map, NodeError> {
        let values = self.read(answer)?;
        let wrong = self.types.iter().find_map(|(name, ty)| match values.get(name) {
            None => Some(format!("the model's answer has no field {name}")),
            Some(value) if !is_of(ty, value) => {
                Some(format!("the field {name} of the model's answer is no {ty}"))
            }
            Some(_) => None,
        });
        wrong.map_or(
            Ok(values),
            |wrong| Err(NodeError::new(wrong).code("model.answer")),
        )
    }
    /// The values in an answer. Fences and words around the object are overlooked; a text that is no object stands for
    /// the only output when that is a text.
    pub fn read(&self, answer: &str) -> Result<Map, NodeError> {
        let Some(Json::Object(mut object)) = object(answer) else {
            return match self.types.first() {
                Some((name, ty)) if self.types.len() == 1 && matches!(&**ty, "str" | "any" | "") => {
                    Ok(map([(name.as_str(), answer.trim().into())]))
                }
                _ => {
                    let names = self
                        .types
                        .keys()
                        .map(String::as_str)
                        .collect::<Vec<_>>()
                        .join(", ");
                    let text = format!("the model's answer is no JSON object with the outputs {names}");
                    Err(NodeError::new(text).code("model.answer"))
                }
            };
        };
        let given = self
            .types
            .iter()
            .filter_map(|(name, ty)| Some((name.clone(), fitted(ty, object.remove(name)?))));
        Ok(given.collect())
    }
}

/// Whether a value is of a type, where that is plain.
fn is_of(ty: &str, value: &Value) -> bool {
    match ty.split('[').next().unwrap_or_default().trim() {
        "str" | "text" => value.as_str().is_some(),
        "int" => value.as_i64().is_some(),
        "float" | "number" => value.as_f64().is_some(),
        "bool" => value.as_bool().is_some(),
        "list" => value.as_list().is_some(),
        "dict" => value.as_map().is_some(),
        _ => true,
    }
}

/// The object in a text: all of it, or from the first brace to the last.
pub(super) fn object(answer: &str) -> Option<Json> {
    let answer = answer.trim();
    serde_json::from_str(answer).ok().or_else(|| {
        let (from, to) = (answer.find('{')?, answer.rfind('}')?);
        serde_json::from_str(answer.get(from..=to)?).ok()
    })
}
/// A value in the form of its type, where that is plain.
fn fitted(ty: &str, value: Json) -> Value {
    let value = from_json(value);
    let list = ty == "list" || ty.starts_with("list[");
    match (ty, &value) {
        (_, Value::Null) => value,
        ("str", Value::Str(_)) => value,
        ("str", _) => text_of(&value).into(),
        ("int", _) => value
            .as_i64()
            .or_else(|| value.as_str()?.trim().parse().ok())
            .map_or(value, Value::Int),
        ("float" | "number", Value::Str(text)) => text.trim().parse().map_or(value, Value::Float),
        ("bool", Value::Str(text)) => text
            .trim()
            .to_ascii_lowercase()
            .parse()
            .map_or(value, Value::Bool),
        (_, Value::List(_)) => value,
        (_, _) if list => Value::list(vec![value]),
        _ => value,
    }
}

/// The JSON schema of a type.
fn schema(ty: &str, depth: usize) -> Json {
    let ty = ty.trim();

    let (name, arguments) = match ty.split_once('[') {
        Some((name, rest)) if rest.ends_with(']') => {
            (name.trim(), arguments(rest.strip_suffix(']').unwrap_or(rest)))
        }
        _ => (ty, Vec::new()),
    };
    if depth > MAX_DEPTH {
        return json!({});
    }
    match name {
        "str" | "text" | "date" | "datetime" => json!({"type": "string"}),
        "int" => json!({"type": "integer"}),
        "float" | "number" => json!({"type": "number"}),
        "bool" => json!({"type": "boolean"}),
        "list" => {
            let items = arguments
                .first()
                .map_or_else(|| json!({}), |inner| schema(inner, depth + 1));
            json!({"type": "array", "items": items})
        }
        "dict" => json!({"type": "object"}),
        "union" => {
            let arms: Vec<Json> = arguments.iter().map(|inner| schema(inner, depth + 1)).collect();
            json!({"anyOf": arms})
        }
        _ => json!({}),
    }
}
/// Arguments of a type, separated by commas outside of brackets.
fn arguments(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = text.split(move |letter: char| {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use atelier_proto::value::{BytesForm, to_json};
    use rstest::rstest;

    use super::*;

    fn added(types: &[(&str, &str)]) -> Added {
        Added::fields(types)
    }

    #[rstest]
    #[case("str", json!({"type": "string"}))]
    #[case("list[str]", json!({"type": "array", "items": {"type": "string"}}))]
    #[case("list", json!({"type": "array", "items": {}}))]
    #[case("list[dict[str, any]]", json!({"type": "array", "items": {"type": "object"}}))]
    #[case("union[int, list[float]]",
        json!({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "number"}}]}))]
    #[case("any", json!({}))]
    fn types_become_schemas(#[case] ty: &str, #[case] expected: Json) {
        assert_eq!(schema(ty, 0), expected);
    }

    #[rstest]
    #[case("{\"a\": \"x\", \"n\": 2}")]
    #[case("Sure!\n```json\n{\"a\": \"x\", \"n\": \"2\"}\n```\nBye.")]
    #[case("{\"n\": 2.0, \"a\": \"x\", \"more\": 1}")]
    fn answers_are_read_leniently(#[case] answer: &str) {
        let values = added(&[("a", "str"), ("n", "int")]).read(answer).expect("values");
        assert_eq!(
            to_json(&values.into(), BytesForm::Tagged),
            json!({"a": "x", "n": 2})
        );
    }

    #[test]
    fn a_plain_text_is_the_only_output_or_a_fault() {
        let values = added(&[("a", "str")]).read(" just text ").expect("values");
        assert_eq!(values["a"], "just text".into());
        let error = added(&[("a", "str"), ("b", "int")])
            .read("just text")
            .map(drop)
            .expect_err("a fault");
        assert!(error.message.ends_with("the outputs a, b"), "{}", error.message);
    }

    #[test]
    fn values_take_the_form_of_their_type() {
        let types = added(&[("s", "str"), ("l", "list[str]"), ("b", "bool"), ("z", "str")]);
        let values = types
            .read("{\"s\": [1], \"l\": \"x\", \"b\": \"True\"}")
            .expect("values");
        assert_eq!(
            to_json(&values.into(), BytesForm::Tagged),
            json!({"s": "[1]", "l": ["x"], "b": true})
        );
    }
}
