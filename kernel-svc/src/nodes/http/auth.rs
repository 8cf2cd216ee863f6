//! Who asks: the `auth` of a request, by a name and a password or by a token. What is in it is in no error.

use atelier_proto::value::Value;
use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderValue;

use crate::{node::NodeError, nodes::args::text_of};

/// The header for what an `auth` holds; nothing for none. It is one of
///
/// - an object with `username` and `password`, or with `token`, and perhaps the `type`, `basic` or `bearer`;
/// - a list of a name and a password;
/// - a text: `Basic …` and `Bearer …` as they are, a name and a password with a colon between them, or a token.
pub(super) fn header(auth: &Value) -> Result<Option<HeaderValue>, NodeError> {
    let value = match auth {
        Value::Null => return Ok(None),
        Value::Str(text) if text.trim().is_empty() => return Ok(None),
        Value::Str(text) => of_text(text.trim()),
        Value::List(items) => match items.as_slice() {
            [] => return Ok(None),
            [name, password] => Some(basic(&text_of(name), &text_of(password))),
            _ => None,
        },
        Value::Map(fields) if fields.is_empty() => return Ok(None),
        Value::Map(_) => of_fields(auth),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Bytes(_) | Value::Media(_) => None,
    };
    let mut value = value
        .and_then(|value| HeaderValue::from_str(&value).ok())
        .ok_or_else(|| {
            let text = "the input `auth` must be a name and a password, or a token";
            NodeError::new(text).code("input.value")
        })?;
    value.set_sensitive(true);
    Ok(Some(value))
}
fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}
fn of_text(text: &str) -> Option<String> {
    let scheme = text
        .split_once(' ')
        .map(|(scheme, rest)| (scheme.to_ascii_lowercase(), rest.trim()));
    match scheme {
        Some((scheme, rest)) if scheme == "bearer" => Some(format!("Bearer {rest}")),
        Some((scheme, rest)) if scheme == "basic" => Some(format!("Basic {rest}")),
        Some(_) | None => match text.split_once(':') {
            Some((name, password)) => Some(basic(name, password)),
            None if text.contains(' ') => None,
            None => Some(format!("Bearer {text}")),
        },
    }
}
fn of_fields(auth: &Value) -> Option<String> {
    let text = |name: &str| {
        auth.get(name)
            .map(|value| text_of(&value))
            .filter(|text| !text.is_empty())
    };
    let kind = text("type").map(|kind| kind.to_ascii_lowercase());
    let by_name = || {
        let name = text("username").or_else(|| text("user"))?;
        Some(basic(&name, &text("password").unwrap_or_default()))
    };
    let by_token = || Some(format!("Bearer {}", text("token")?));
    match kind.as_deref() {
        Some("basic") => by_name(),
        Some("bearer") => by_token(),
        Some(_) => None,
        None => by_token().or_else(by_name),
    }
}
