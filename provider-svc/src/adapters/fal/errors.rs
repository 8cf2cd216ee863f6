//! Names for what FAL refuses (providers specification 25).

use serde_json::Value;

use crate::adapters::web::{Answer, refuses_content};
use crate::provider::{Class, Failure};

/// The failure of an answer to a submit, or to a question that has no answer.
pub(super) fn of_submit(answer: &Answer) -> Failure {
    let json = answer.json();
    let words = words(json.as_ref()).unwrap_or_else(|| answer.glimpse());
    let message = if words.is_empty() {
        format!("the provider answered {}", answer.status)
    } else {
        words
    };
    let failure = |class| Failure::new(class, message.clone());
    let mut failure = match answer.status {
        401 => failure(Class::Auth),
        402 => failure(Class::Quota),
        403 if is_credit(&message) => failure(Class::Quota).because("INSUFFICIENT_CREDIT"),
        403 => failure(Class::Auth).because("permission"),
        429 => failure(Class::RateLimit),
        422 => return of_details(json.as_ref(), &message),
        404 => failure(Class::InvalidInput).because("unknown_model"),
        504 if answer.header("x-fal-request-timeout-type") == Some("user") => failure(Class::Timeout),
        // The gateway alone was there: no job exists.
        502..=504 if answer.header("x-fal-request-id").is_none() => failure(Class::ProviderTransient),
        408 | 425 | 500..=599 => Failure::unknown_submit(message),
        400..=499 => failure(Class::InvalidInput),
        _ => Failure::unknown_submit(message),
    };
    failure.retry_after = answer.retry_after();
    failure
}

/// The failure of an answer to the question for a result.
pub(super) fn of_result(answer: &Answer) -> Failure {
    let json = answer.json();
    let message = words(json.as_ref()).unwrap_or_else(|| answer.glimpse());
    match answer.status {
        422 => of_details(json.as_ref(), &message),
        404 | 410 => Failure::new(Class::ProviderPermanent, message).because("result_expired"),
        408 | 425 | 429 | 500..=599 => Failure::new(Class::ProviderTransient, message),
        401 => Failure::new(Class::Auth, message),
        403 => Failure::new(Class::Auth, message).because("permission"),
        _ if refuses_content(&message) => Failure::new(Class::ContentPolicy, message),
        _ => Failure::new(Class::ProviderPermanent, message),
    }
}

/// The failure of a job that is completed with an error, which is how the queue says failed.
pub(super) fn of_job(json: &Value) -> Failure {
    let kind = json.get("error_type").and_then(Value::as_str).unwrap_or_default();
    let message = words(Some(json)).unwrap_or_else(|| "the job failed".to_owned());
    let class = match kind {
        "content_policy_violation" => Class::ContentPolicy,
        "request_timeout" => Class::Timeout,
        "internal_error" | "startup_timeout" | "internal_server_error" => Class::ProviderTransient,
        kind if kind.starts_with("runner_") => Class::ProviderTransient,
        _ if refuses_content(&message) => Class::ContentPolicy,
        _ => Class::ProviderPermanent,
    };
    Failure::new(class, message)
}

/// A 422: a refusal of the content, or fields that are wrong. A worker may have run, so it may be billed.
fn of_details(json: Option<&Value>, message: &str) -> Failure {
    let details = json
        .and_then(|json| json.get("detail")?.as_array())
        .map(Vec::as_slice)
        .unwrap_or_default();
    let kind = |detail: &Value| {
        detail
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    if details
        .iter()
        .any(|detail| kind(detail) == "content_policy_violation")
        || refuses_content(message)
    {
        return Failure::new(Class::ContentPolicy, message);
    }
    let mut failure = Failure::new(Class::InvalidInput, message);
    failure.maybe_billed = true;
    failure
}

fn is_credit(message: &str) -> bool {
    let message = message.to_lowercase();
    ["user is locked", "exhausted balance", "top_up", "top up"]
        .iter()
        .any(|words| message.contains(words))
}

/// The words of an error body: fields that are wrong come with their path.
fn words(json: Option<&Value>) -> Option<String> {
    let json = json?;
    let text = |key: &str| json.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
    match json.get("detail") {
        Some(Value::Array(details)) => {
            let lines: Vec<String> = details.iter().filter_map(detail).collect();
            (!lines.is_empty()).then(|| lines.join("; "))
        }
        Some(Value::String(detail)) => Some(detail.clone()),
        Some(_) | None => text("error").or_else(|| text("message")),
    }
}

fn detail(detail: &Value) -> Option<String> {
    let message = detail.get("msg").and_then(Value::as_str)?;
    let path: Vec<String> = detail
        .get("loc")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|part| part.as_str().map_or_else(|| part.to_string(), ToOwned::to_owned))
        .filter(|part| part != "body")
        .collect();
    Some(if path.is_empty() {
        message.to_owned()
    } else {
        format!("{}: {message}", path.join("."))
    })
}
