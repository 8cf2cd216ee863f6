//! Whether a given value is of the type that an input or a constant declares.
//!
//! Null passes everywhere: it is an explicit value. Media may be given as a reference, as an object without a type, or
//! as an address; models as an object with whatever is known of them.

use atelier_proto::value::{MEDIA_KINDS, Map, MediaRef, Value};

use super::args::{map, type_of};
use crate::node::NodeError;

/// The value in the form that the type has, or what is wrong with it. `who` names the input for people.
pub(super) fn check(who: &str, ty: &str, value: Value) -> Result<Value, NodeError> {
    if value.is_null() {
        return Ok(value);
    }
    if let Some(inner) = ty.strip_prefix("list[").and_then(|rest| rest.strip_suffix(']')) {
        return list(who, ty, inner, &value);
    }
    let wrong = |value: &Value| Err(mismatch(who, ty, value));
    match (ty, value) {
        ("any" | "json", value)
        | ("str", value @ Value::Str(_))
        | ("bool", value @ Value::Bool(_))
        | ("float", value @ Value::Int(_))
        | ("list", value @ Value::List(_))
        | ("dict" | "dict[str,any]" | "dict[str, any]", value @ Value::Map(_)) => Ok(value),
        ("float", value @ Value::Float(number)) if number.is_finite() => Ok(value),
        ("int", value @ (Value::Int(_) | Value::Float(_))) => match value.as_i64() {
            Some(whole) => Ok(Value::Int(whole)),
            None => wrong(&value),
        },
        ("path", value @ Value::Str(_)) => Ok(value),
        ("path", Value::Map(map)) if is_path(&map) => Ok(map.get("path").cloned().unwrap_or_default()),
        ("color", Value::Str(colour)) => {
            Ok(map([("type", "color".into()), ("value", Value::Str(colour))]).into())
        }
        ("message", Value::Str(text)) => Ok(message(&text)),
        ("image_size", value @ Value::Map(_)) => image_size(who, value),
        (ty, value) if MEDIA_KINDS.contains(&ty) => media(who, ty, value),
        (ty, Value::Map(map)) if is_object(ty) => typed(who, ty, map.as_ref()),
        (_, value) => wrong(&value),
    }
}

/// The fault of a value of another type.
fn mismatch(who: &str, expected: &str, value: &Value) -> NodeError {
    NodeError::new(format!("{who} expects {expected}, got {}", type_of(value))).code("input.type")
}
fn list(who: &str, ty: &str, inner: &str, value: &Value) -> Result<Value, NodeError> {
    let Value::List(items) = value else {
        return Err(mismatch(who, ty, value));
    };
    let items = items.iter().enumerate().map(|(place, item)| {
        let who = format!("{who}, item {place},");
        check(&who, inner, item.clone())
    });
    Ok(Value::list(items.collect::<Result<_, _>>()?))
}
/// Older files write paths as objects.
fn is_path(map: &Map) -> bool {
    let kind = map.get("type").and_then(Value::as_str);
    matches!(kind, Some("file_path" | "folder_path"))
        && map.get("path").is_none_or(|path| path.as_str().is_some())
}
/// Types whose values are objects that carry the type's name.
fn is_object(ty: &str) -> bool {
    ty.ends_with("_model")
        || ty.starts_with("hf.")
        || matches!(
            ty,
            "color" | "message" | "dataframe" | "image_size" | "date" | "datetime"
        )
}
fn typed(who: &str, ty: &str, map: &Map) -> Result<Value, NodeError> {
    let mut map = map.clone();
    match map.get("type") {
        None | Some(Value::Null) => {
            map.insert("type".to_owned(), ty.into());
            Ok(map.into())
        }
        Some(Value::Str(given))
            if given.as_ref() == ty || (ty.starts_with("hf.") && given.starts_with("hf.")) =>
        {
            Ok(map.into())
        }
        Some(_) => Err(mismatch(who, ty, &map.into())),
    }
}
fn image_size(who: &str, value: Value) -> Result<Value, NodeError> {
    for side in ["width", "height"] {
        let given = value.get(side).unwrap_or_default();
        if given.as_i64().is_none_or(|pixels| pixels < 1) {
            let text = format!("{who} expects image_size, whose {side} is a positive whole number");
            return Err(NodeError::new(text).code("input.type"));
        }
    }
    Ok(value)
}
fn message(text: &str) -> Value {
    let part = map([("type", "text".into()), ("text", text.into())]);
    map([
        ("type", "message".into()),
        ("role", "user".into()),
        ("content", Value::list(vec![part.into()])),
    ])
    .into()
}

fn media(who: &str, ty: &str, value: Value) -> Result<Value, NodeError> {
    match &value {
        Value::Media(media) if media.kind == ty => Ok(value),
        Value::Str(address) => Ok(reference(ty, address)),
        Value::Map(map) => untyped(ty, map).ok_or_else(|| mismatch(who, ty, &value)),
        _ => Err(mismatch(who, ty, &value)),
    }
}
/// A reference by address.
pub(super) fn reference(kind: &str, address: &str) -> Value {
    let address = address.trim();
    MediaRef {
        kind: kind.to_owned(),
        uri: address.to_owned(),
        asset_id: asset_of(address),
        ..MediaRef::default()
    }
    .into()
}
/// A reference out of an object that says too little to be one by itself.
fn untyped(kind: &str, map: &Map) -> Option<Value> {
    let text = |key: &str| match map.get(key) {
        None | Some(Value::Null) => Some(None),
        Some(Value::Str(text)) => Some(Some(text.to_string())),
        Some(_) => None,
    };
    if text("type")?.is_some_and(|given| given != kind) {
        return None;
    }
    let data = match map.get("data") {
        None | Some(Value::Null) => None,
        Some(Value::Bytes(bytes)) => Some(bytes.clone()),
        Some(_) if matches!(kind, "sketch" | "timeline") => None,
        Some(_) => return None,
    };
    let uri = text("uri")?.unwrap_or_default();
    let asset_id = text("asset_id")?.or_else(|| asset_of(&uri));
    let own = ["type", "uri", "asset_id", "mime_type"];
    let kept = |key: &str, value: &Value| {
        !own.contains(&key) && (key != "data" || (data.is_none() && !value.is_null()))
    };
    let extra = map.iter().filter(|(key, value)| kept(key, value));
    let extra = extra.map(|(key, value)| (key.clone(), value.clone())).collect();
    Some(
        MediaRef {
            kind: kind.to_owned(),
            uri,
            asset_id,
            data,
            mime_type: text("mime_type")?,
            extra,
        }
        .into(),
    )
}
/// The asset that `asset://ID.ext` names.
fn asset_of(uri: &str) -> Option<String> {
    let id = uri.strip_prefix("asset://")?.split('.').next()?;
    (!id.is_empty()).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use atelier_proto::value::from_json;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("int", json!(3), json!(3))]
    #[case("int", json!(3.0), json!(3))]
    #[case("float", json!(3), json!(3))]
    #[case("float", json!(0.5), json!(0.5))]
    #[case("bool", json!(false), json!(false))]
    #[case("str", json!(""), json!(""))]
    #[case("list[str]", json!(["a"]), json!(["a"]))]
    #[case("list[any]", json!([1, "a", null]), json!([1, "a", null]))]
    #[case("int", json!(null), json!(null))]
    #[case("language_model", json!({}), json!({"type": "language_model"}))]
    #[case("language_model", json!({"provider": "p", "id": "m"}),
        json!({"provider": "p", "id": "m", "type": "language_model"}))]
    #[case("hf.model", json!({"type": "hf.flux"}), json!({"type": "hf.flux"}))]
    #[case("color", json!("#fff"), json!({"type": "color", "value": "#fff"}))]
    #[case("image", json!({}), json!({"type": "image", "uri": "", "asset_id": null}))]
    #[case("image", json!("asset://a7.png"), json!({"type": "image", "uri": "asset://a7.png", "asset_id": "a7"}))]
    #[case("image", json!({"uri": "https://x/y.png"}), json!({"type": "image", "uri": "https://x/y.png", "asset_id": null}))]
    #[case("list[image]", json!(["asset://a7"]), json!([{"type": "image", "uri": "asset://a7", "asset_id": "a7"}]))]
    #[case("path", json!({"type": "file_path", "path": "/a"}), json!("/a"))]
    #[case("image_size", json!({"width": 8, "height": 9}), json!({"width": 8, "height": 9}))]
    fn values_that_fit_pass(
        #[case] ty: &str,
        #[case] value: serde_json::Value,
        #[case] expected: serde_json::Value,
    ) {
        assert_eq!(
            check("the input `x`", ty, from_json(value)).expect("fits"),
            from_json(expected)
        );
    }

    #[rstest]
    #[case("int", json!("3"), "the input `x` expects int, got str")]
    #[case("int", json!(2.5), "the input `x` expects int, got float")]
    #[case("int", json!(true), "the input `x` expects int, got bool")]
    #[case("float", json!("1"), "the input `x` expects float, got str")]
    #[case("bool", json!(1), "the input `x` expects bool, got int")]
    #[case("bool", json!("true"), "the input `x` expects bool, got str")]
    #[case("str", json!(5), "the input `x` expects str, got int")]
    #[case("list[str]", json!("a"), "the input `x` expects list[str], got str")]
    #[case("list[str]", json!(["a", 2]), "the input `x`, item 1, expects str, got int")]
    #[case("image", json!({"type": "audio", "uri": "a"}), "the input `x` expects image, got audio")]
    #[case("image", json!(5), "the input `x` expects image, got int")]
    #[case("tts_model", json!({"type": "image_model"}), "the input `x` expects tts_model, got image_model")]
    #[case("image_size", json!({"width": 0, "height": 9}),
        "the input `x` expects image_size, whose width is a positive whole number")]
    fn values_that_do_not_fit_are_named(
        #[case] ty: &str,
        #[case] value: serde_json::Value,
        #[case] expected: &str,
    ) {
        let error = check("the input `x`", ty, from_json(value)).expect_err("does not fit");
        assert_eq!(error.message, expected);
        assert_eq!(error.code.as_deref(), Some("input.type"));
    }
}
