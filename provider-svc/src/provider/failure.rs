//! Why a call failed, in the ten classes of the providers specification 24.

use std::time::Duration;

/// The class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The key is missing, wrong or not for this.
    Auth,
    /// No credit, or a limit of the plan.
    Quota,
    /// Too fast, or too many at once.
    RateLimit,
    /// The parameters were rejected.
    InvalidInput,
    /// The content was refused.
    ContentPolicy,
    /// Overload, a lost worker, not reachable.
    ProviderTransient,
    /// A final failure, or an answer without usable output.
    ProviderPermanent,
    /// Too late.
    Timeout,
    /// Cancelled by the caller or at the provider.
    Cancelled,
    /// Nobody can tell what happened.
    Unknown,
}
impl Class {
    /// Its name in metadata and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Quota => "quota",
            Self::RateLimit => "rate_limit",
            Self::InvalidInput => "invalid_input",
            Self::ContentPolicy => "content_policy",
            Self::ProviderTransient => "provider_transient",
            Self::ProviderPermanent => "provider_permanent",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }
}

/// A failed call.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Its class.
    pub class: Class,
    /// A refinement: `permission`, `submit_outcome_unknown`, `result_expired`, `bad_output`, `no_output`, …
    pub reason: Option<&'static str>,
    /// The provider's own words, without secrets and bytes.
    pub message: String,
    /// Wait this long before trying again, when the provider says so.
    pub retry_after: Option<Duration>,
    /// Whether any byte of the paid request may have left. False only when the transport proves it.
    pub sent: bool,
    /// Whether the provider may bill the call all the same.
    pub maybe_billed: bool,
}
impl Failure {
    /// A failure of a request that was sent.
    #[must_use]
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        let maybe_billed = match class {
            Class::Auth | Class::Quota | Class::RateLimit | Class::InvalidInput => false,
            Class::ContentPolicy
            | Class::ProviderTransient
            | Class::ProviderPermanent
            | Class::Timeout
            | Class::Cancelled
            | Class::Unknown => true,
        };
        Self {
            class,
            reason: None,
            message: message.into(),
            retry_after: None,
            sent: true,
            maybe_billed,
        }
    }

    /// Adds a refinement.
    #[must_use]
    pub fn because(mut self, reason: &'static str) -> Self {
        self.reason = Some(reason);
        self
    }

    /// Says that nothing was sent.
    #[must_use]
    pub fn unsent(mut self) -> Self {
        self.sent = false;
        self.maybe_billed = false;
        self
    }

    /// Nobody knows whether the request arrived.
    #[must_use]
    pub fn unknown_submit(message: impl Into<String>) -> Self {
        Self::new(Class::Unknown, message).because("submit_outcome_unknown")
    }

    /// The machine-readable reason for the row (generations specification 3.7).
    #[must_use]
    pub fn error_code(&self) -> &'static str {
        match self.class {
            Class::Auth => "AUTH",
            Class::Quota => "QUOTA",
            Class::InvalidInput => "INVALID_PARAMS",
            Class::ContentPolicy => "CONTENT_FILTERED",
            Class::RateLimit => "PROVIDER_ERROR",
            Class::ProviderTransient if self.reason == Some("ledger_unavailable") => "LEDGER_UNAVAILABLE",
            Class::ProviderTransient if !self.sent => "PROVIDER_UNREACHABLE",
            Class::ProviderTransient => "PROVIDER_ERROR",
            Class::ProviderPermanent if matches!(self.reason, Some("bad_output" | "no_output")) => {
                "OUTPUT_UNDECODABLE"
            }
            Class::ProviderPermanent => "PROVIDER_ERROR",
            Class::Timeout => "TIMEOUT",
            Class::Cancelled => "CANCELLED",
            Class::Unknown if self.reason == Some("submit_outcome_unknown") => "SUBMISSION_UNKNOWN",
            Class::Unknown => "PROVIDER_ERROR",
        }
    }
}
