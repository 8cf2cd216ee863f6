//! The JSON of kie.ai, and names for what it refuses. Pure.

use rust_decimal::Decimal;
use serde_json::Value;

use crate::adapters::web::{Answer, bad, decimal, refuses_content};
use crate::provider::{Class, Failure};

/// What every answer is wrapped in. The status of HTTP says nothing: errors come with 200.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Envelope {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Value,
}

impl Envelope {
    /// Reads an answer; `None` when it is none of the API's.
    pub(super) fn read(answer: &Answer) -> Option<Self> {
        let json = answer.json()?;
        Some(Self {
            code: decimal(json.get("code")?)?.try_into().ok()?,
            message: ["msg", "message"]
                .iter()
                .find_map(|key| json.get(*key)?.as_str())
                .unwrap_or_default()
                .to_owned(),
            data: json.get("data").cloned().unwrap_or_default(),
        })
    }
}

/// The id of a task that was created.
pub(super) fn task_id(data: &Value) -> Option<String> {
    ["taskId", "task_id"]
        .iter()
        .find_map(|key| data.get(*key)?.as_str())
        .filter(|id| !id.is_empty())
        .map(ToOwned::to_owned)
}

/// The credits that a task took, when it says so.
pub(super) fn credits(data: &Value) -> Option<Decimal> {
    decimal(data.get("creditsConsumed")?)
}

/// The failure of an answer with another code than 200: no task came of it.
pub(super) fn refusal(code: i64, message: &str) -> Failure {
    let message = if message.is_empty() {
        format!("the provider answered {code}")
    } else {
        message.to_owned()
    };
    let failure = |class| Failure::new(class, message.clone());
    match code {
        401 => failure(Class::Auth),
        402 => failure(Class::Quota).because("INSUFFICIENT_CREDIT"),
        429 => failure(Class::RateLimit),
        400..=499 if refuses_content(&message) => failure(Class::ContentPolicy),
        404 => failure(Class::InvalidInput).because("unknown_model"),
        // Maintenance: refused before anything was made.
        455 => {
            let mut failure = failure(Class::ProviderTransient);
            failure.maybe_billed = false;
            failure
        }
        400..=499 => failure(Class::InvalidInput),
        501 | 505 => failure(Class::ProviderPermanent),
        500 | 502..=504 => Failure::unknown_submit(message),
        _ => Failure::unknown_submit(message),
    }
}

/// The failure of a task that failed.
pub(super) fn failed(code: &str, message: &str) -> Failure {
    let text = if message.is_empty() { code } else { message };
    let class = if refuses_content(&format!("{code} {message}")) {
        Class::ContentPolicy
    } else {
        match code {
            "455" | "CALLBACK_EXCEPTION" => Class::ProviderTransient,
            "422" | "400" => Class::InvalidInput,
            _ => Class::ProviderPermanent,
        }
    };
    let mut failure = Failure::new(class, text);
    // Credits are taken with the task, and are not always given back.
    failure.maybe_billed = true;
    failure
}

/// What a task gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) addresses: Vec<String>,
    pub(super) text: Option<String>,
}

/// Reads a result: JSON whose one value is a text that holds JSON.
///
/// # Errors
/// No output, or one that cannot be read.
pub(super) fn outputs(result: &str) -> Result<Found, Failure> {
    let nothing =
        || Failure::new(Class::ProviderPermanent, "the provider gave no output").because("no_output");
    let inner = match serde_json::from_str::<Value>(result) {
        Ok(Value::String(inner)) if inner.is_empty() => return Err(nothing()),
        Ok(Value::String(inner)) => {
            serde_json::from_str(&inner).map_err(|_| bad("the result is not JSON"))?
        }
        Ok(Value::Null) => return Err(nothing()),
        Ok(json) => json,
        Err(_) => return Err(bad("the result is not JSON")),
    };
    let addresses: Vec<String> = match inner.get("resultUrls") {
        Some(Value::Array(urls)) => urls
            .iter()
            .filter_map(Value::as_str)
            .map(ToOwned::to_owned)
            .collect(),
        Some(Value::String(url)) => vec![url.clone()],
        Some(_) | None => Vec::new(),
    };
    let text = match inner.get("resultObject") {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Object(object)) => match object.get("text").and_then(Value::as_str) {
            Some(text) => Some(text.to_owned()),
            None => Some(Value::Object(object.clone()).to_string()),
        },
        Some(_) | None => None,
    };
    if addresses.is_empty() && text.is_none() {
        return Err(nothing());
    }
    Ok(Found { addresses, text })
}

/// What an output is, by its type, else by the end of its address.
pub(super) fn kind_of(served: Option<&str>, address: &str) -> &'static str {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let end = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    match (served.and_then(|served| served.split('/').next()), end.as_str()) {
        (Some("video"), _) | (_, "mp4" | "webm" | "mov") => "video",
        (Some("audio"), _) | (_, "mp3" | "wav" | "m4a" | "ogg" | "flac") => "audio",
        (Some("model"), _) | (_, "glb" | "gltf" | "obj" | "fbx") => "model_3d",
        _ => "image",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_050_codes_inside_of_an_answer_have_their_classes() {
        for (code, class) in [
            (401, Class::Auth),
            (402, Class::Quota),
            (404, Class::InvalidInput),
            (422, Class::InvalidInput),
            (429, Class::RateLimit),
            (455, Class::ProviderTransient),
            (501, Class::ProviderPermanent),
            (505, Class::ProviderPermanent),
        ] {
            assert_eq!(refusal(code, "").class, class, "{code}");
        }
    }

    #[test]
    fn p_054_a_success_without_media_is_none() {
        let reason = |result: &str| outputs(result).expect_err("no output").reason;
        assert_eq!(reason("\"\""), Some("no_output"));
        assert_eq!(reason("null"), Some("no_output"));
        assert_eq!(reason(r#""{\"resultUrls\":[]}""#), Some("no_output"));
        assert_eq!(reason(r#""{\"resultUrls\":""#), Some("bad_output"));
        let found = outputs(r#""{\"resultUrls\":[\"https://h/a.mp4?x=1\"]}""#).expect("an output");
        assert_eq!(found.addresses, ["https://h/a.mp4?x=1"]);
        assert_eq!(kind_of(None, &found.addresses[0]), "video");
    }

    #[test]
    fn g_082_credits_are_read_as_numbers_and_as_text() {
        for (data, credits_of) in [
            (
                serde_json::json!({"creditsConsumed": "16"}),
                Some(Decimal::from(16)),
            ),
            (serde_json::json!({"creditsConsumed": 0}), Some(Decimal::ZERO)),
            (serde_json::json!({"creditsConsumed": null}), None),
            (serde_json::json!({}), None),
        ] {
            assert_eq!(credits(&data), credits_of, "{data}");
        }
    }
}
