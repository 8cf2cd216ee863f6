//! Names for what the server refused (providers specification 24 and 25).

use reqwest::StatusCode;
use serde_json::Value;

use crate::adapters::http::refuses_content;
use crate::provider::{Class, Failure};

/// What an error body says.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) message: String,
    pub(super) kind: String,
    pub(super) code: String,
}

/// Reads an error body: an object with `error` as an object or text, an older form without, or no JSON at all.
pub(super) fn said(body: &[u8]) -> Said {
    match serde_json::from_slice::<Value>(body) {
        Ok(json) => said_json(&json),
        Err(_) => Said {
            message: String::from_utf8_lossy(body).chars().take(200).collect(),
            ..Said::default()
        },
    }
}

/// The same for JSON that was read already.
pub(super) fn said_json(json: &Value) -> Said {
    let inner = json.get("error").unwrap_or(json);
    let text = |key: &str| match inner.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(_) | None => String::new(),
    };
    match inner {
        Value::String(message) => Said {
            message: message.clone(),
            ..Said::default()
        },
        _ => Said {
            message: text("message"),
            kind: text("type"),
            code: text("code"),
        },
    }
}

/// The failure of an answer by its status and words.
pub(super) fn classify(status: StatusCode, said: &Said) -> Failure {
    let message = if said.message.is_empty() {
        format!("the provider answered {status}")
    } else {
        said.message.clone()
    };
    let failure = |class| Failure::new(class, message.clone());
    match status.as_u16() {
        401 => failure(Class::Auth),
        403 => failure(Class::Auth).because("permission"),
        402 => failure(Class::Quota),
        429 if is_quota(said) => failure(Class::Quota).because("INSUFFICIENT_CREDIT"),
        429 => failure(Class::RateLimit),
        400..=499 if refused_content(said) && !matches!(status.as_u16(), 408 | 409 | 425) => {
            failure(Class::ContentPolicy).because("input")
        }
        408 | 409 | 425 | 500..=599 => failure(Class::ProviderTransient),
        404 => failure(Class::InvalidInput).because("unknown_model"),
        400..=499 => failure(Class::InvalidInput),
        _ => failure(Class::Unknown).because("submit_outcome_unknown"),
    }
}

/// The failure of an error that came inside of a stream, after the head said success.
pub(super) fn in_stream(said: &Said) -> Failure {
    let message = if said.message.is_empty() {
        "the stream ended with an error".to_owned()
    } else {
        said.message.clone()
    };
    let class = if refused_content(said) {
        Class::ContentPolicy
    } else if is_quota(said) {
        Class::Quota
    } else {
        match said.kind.as_str() {
            "invalid_request_error" => Class::InvalidInput,
            "rate_limit_error" | "requests" | "tokens" => Class::RateLimit,
            _ => Class::ProviderTransient,
        }
    };
    let mut failure = Failure::new(class, message);
    // Something was made already.
    failure.maybe_billed = true;
    failure
}

fn is_quota(said: &Said) -> bool {
    let quota = |text: &str| matches!(text, "insufficient_quota" | "billing_hard_limit_reached");
    quota(&said.code) || quota(&said.kind)
}

fn refused_content(said: &Said) -> bool {
    if matches!(
        said.code.as_str(),
        "moderation_blocked" | "content_policy_violation"
    ) || said.kind == "image_generation_user_error"
    {
        return true;
    }
    refuses_content(&format!("{} {} {}", said.message, said.kind, said.code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(status: u16, body: &str) -> Class {
        classify(
            StatusCode::from_u16(status).expect("a status"),
            &said(body.as_bytes()),
        )
        .class
    }

    #[test]
    fn answers_have_their_classes() {
        let quota = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        assert_eq!(class(429, quota), Class::Quota);
        assert_eq!(
            class(
                429,
                r#"{"error":{"message":"slow","code":"rate_limit_exceeded"}}"#
            ),
            Class::RateLimit
        );
        assert_eq!(class(401, r#"{"error":"Unauthorized"}"#), Class::Auth);
        let policy = r#"{"error":{"message":"rejected by the safety system","code":"moderation_blocked"}}"#;
        assert_eq!(class(400, policy), Class::ContentPolicy);
        assert_eq!(class(500, policy), Class::ProviderTransient);
        assert_eq!(
            class(404, r#"{"error":{"message":"model \"x\" not found"}}"#),
            Class::InvalidInput
        );
        assert_eq!(class(302, ""), Class::Unknown);
        let older = said(br#"{"object":"error","message":"bad","type":"BadRequestError","code":400}"#);
        assert_eq!(
            older,
            Said {
                message: "bad".into(),
                kind: "BadRequestError".into(),
                code: "400".into()
            }
        );
    }
}
