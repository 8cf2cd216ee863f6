//! Names for refusals that every provider shares (providers specification 24 and 25).

use reqwest::StatusCode;

use crate::provider::{Class, Failure};

/// The failure of a status and what was said with it.
pub(crate) fn by_status(status: StatusCode, message: &str) -> Failure {
    let text = if message.trim().is_empty() {
        format!("the provider answered {status}")
    } else {
        message.to_owned()
    };
    let failure = |class| Failure::new(class, text.clone());
    match status.as_u16() {
        401 => failure(Class::Auth),
        403 => failure(Class::Auth).because("permission"),
        402 => failure(Class::Quota).because("INSUFFICIENT_CREDIT"),
        429 => failure(Class::RateLimit),
        408 | 409 | 425 | 500..=599 => failure(Class::ProviderTransient),
        400..=499 if refuses_content(message) => failure(Class::ContentPolicy).because("input"),
        404 => failure(Class::InvalidInput).because("unknown_model"),
        400..=499 => failure(Class::InvalidInput),
        _ => failure(Class::Unknown).because("submit_outcome_unknown"),
    }
}

/// Whether words say that content was refused.
pub(crate) fn refuses_content(text: &str) -> bool {
    let text = text.to_lowercase();
    let both = |a: &str, b: &str| text.contains(a) && text.contains(b);
    both("content policy", "violat")
        || both("usage policy", "violat")
        || both("safety system", "reject")
        || both("blocked", "safety")
        || both("nsfw", "detect")
        || both("blocked", "moderation")
        || [
            "prohibited_content",
            "flagged as sensitive",
            "sensitive word",
            "content filter",
            "safety filter",
            "content_policy_violation",
            "moderation_blocked",
            "content management policy",
        ]
        .iter()
        .any(|mark| text.contains(mark))
}
