//! Why a request is refused, or how a call ended, and what a client is told of it.

use std::time::Duration;

use atelier_proto::ids::GenerationId;
use atelier_proto::reason::{self, Problem};
use tonic::{Code, Status};

use crate::provider::{Class, Failure};

/// Who says so, in the details of a status.
const DOMAIN: &str = "provider.atelier";

/// An error of this service.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// There is no such provider.
    #[error("unknown provider {0:?}")]
    UnknownProvider(String),
    /// Nobody, or not this provider or model, can do this.
    #[error("{who} cannot do {capability:?}")]
    UnknownCapability {
        /// What was asked.
        capability: String,
        /// Who cannot.
        who: String,
    },
    /// The provider has no such model.
    #[error("{provider} has no model {model:?}")]
    UnknownModel {
        /// The provider.
        provider: String,
        /// The model.
        model: String,
    },
    /// A field is wrong.
    #[error("{field} {wrong}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        wrong: String,
    },
    /// The provider needs something that is not there.
    #[error("{provider} cannot be called: {missing}")]
    MissingCredential {
        /// The provider.
        provider: String,
        /// What is missing.
        missing: String,
    },
    /// The ledger cannot be told, so nothing was sent.
    #[error("the ledger cannot be reached")]
    LedgerUnavailable,
    /// Too much waits to be told to the ledger, so nothing was sent.
    #[error("too many outcomes wait for the ledger")]
    SpoolFull,
    /// The ledger refused; its own words are passed on.
    #[error("the ledger refused: {}", .0.message())]
    Ledger(Status),
    /// The service is going down; nothing was sent.
    #[error("the service is going down")]
    Draining,
    /// The call failed.
    #[error("{failure}")]
    Failed {
        /// The row.
        id: GenerationId,
        /// Why.
        failure: Failure,
    },
    /// The call was cancelled.
    #[error("the generation was cancelled")]
    Cancelled(GenerationId),
    /// The driver of the call is gone and its outcome unknown.
    #[error("the generation was interrupted, its outcome is unknown")]
    Interrupted(GenerationId),
    /// The call had failed before; the stored outcome is told again.
    #[error("{message}")]
    Replayed {
        /// The row.
        id: GenerationId,
        /// Machine-readable reason of the row.
        error_code: String,
        /// The row's words.
        message: String,
    },
    /// The task that did the work is gone.
    #[error("the call broke off")]
    Died,
}

impl Error {
    fn parts(&self) -> (Code, &'static str) {
        match self {
            Self::UnknownProvider(_) => (Code::InvalidArgument, reason::UNKNOWN_PROVIDER),
            Self::UnknownCapability { .. } => (Code::InvalidArgument, reason::UNKNOWN_CAPABILITY),
            Self::UnknownModel { .. } => (Code::InvalidArgument, reason::UNKNOWN_MODEL),
            Self::Invalid { .. } => (Code::InvalidArgument, reason::INVALID_FIELD),
            Self::MissingCredential { .. } => (Code::FailedPrecondition, reason::MISSING_CREDENTIAL),
            Self::LedgerUnavailable | Self::SpoolFull => (Code::Unavailable, reason::LEDGER_UNAVAILABLE),
            Self::Ledger(status) => (status.code(), reason::LEDGER_UNAVAILABLE),
            Self::Draining => (Code::Unavailable, reason::DRAINING),
            Self::Failed { failure, .. } => (code_of(failure), reason_of(failure.error_code())),
            Self::Cancelled(_) => (Code::Cancelled, reason::CANCELLED),
            Self::Interrupted(_) => (Code::Unknown, reason::INTERRUPTED),
            Self::Replayed { error_code, .. } => (code_of_row(error_code), reason_of(error_code)),
            Self::Died => (Code::Internal, reason::INTERNAL),
        }
    }

    /// The row that it is about, once there is one.
    #[must_use]
    pub fn generation_id(&self) -> Option<GenerationId> {
        match self {
            Self::Failed { id, .. }
            | Self::Cancelled(id)
            | Self::Interrupted(id)
            | Self::Replayed { id, .. } => Some(*id),
            Self::UnknownProvider(_)
            | Self::UnknownCapability { .. }
            | Self::UnknownModel { .. }
            | Self::Invalid { .. }
            | Self::MissingCredential { .. }
            | Self::LedgerUnavailable
            | Self::SpoolFull
            | Self::Ledger(_)
            | Self::Draining
            | Self::Died => None,
        }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        if let Error::Ledger(status) = error {
            return status;
        }
        let (code, reason) = error.parts();
        let mut problem = Problem::new(code, reason, DOMAIN, error.to_string());
        if let Some(id) = error.generation_id() {
            problem = problem.with("generation_id", id);
        }
        match error {
            Error::UnknownProvider(provider) => {
                problem = problem.with("provider", provider).field("provider", "is unknown")
            }
            Error::UnknownCapability { capability, who } => {
                problem = problem
                    .with("capability", capability)
                    .with("who", who)
                    .field("capability", "cannot be done");
            }
            Error::UnknownModel { provider, model } => {
                problem = problem
                    .with("provider", provider)
                    .with("model", model)
                    .field("model", "is unknown");
            }
            Error::Invalid { field, wrong } => problem = problem.with("field", field).field(field, wrong),
            Error::MissingCredential { provider, missing } => {
                problem = problem.with("provider", provider).with("missing", missing);
            }
            Error::LedgerUnavailable | Error::SpoolFull | Error::Draining => {
                problem.retry_after = Some(Duration::from_secs(1));
            }
            Error::Failed { failure, .. } => problem = with_failure(problem, failure),
            Error::Replayed { error_code, .. } => {
                problem = problem.with("error_code", error_code).with("replayed", true)
            }
            Error::Cancelled(_) => problem = problem.with("class", Class::Cancelled.as_str()),
            Error::Interrupted(_) => {
                problem = problem
                    .with("class", Class::Unknown.as_str())
                    .with("maybe_billed", true)
            }
            Error::Ledger(_) | Error::Died => {}
        }
        problem.into()
    }
}

fn with_failure(mut problem: Problem, failure: Failure) -> Problem {
    problem = problem
        .with("class", failure.class.as_str())
        .with("maybe_billed", failure.maybe_billed);
    problem = problem.with("error_code", failure.error_code());
    if let Some(reason) = failure.reason {
        problem = problem.with("reason", reason);
    }
    if let Some(after) = failure.retry_after {
        problem = problem.with("retry_after_seconds", after.as_secs_f64());
    }
    problem.retry_after = failure.retry_after;
    problem
}

/// The gRPC code of a failure (providers specification 24).
fn code_of(failure: &Failure) -> Code {
    match (failure.class, failure.reason) {
        (Class::Auth, Some("permission")) => Code::PermissionDenied,
        (Class::Auth, _) => Code::Unauthenticated,
        (Class::Quota, _) => Code::FailedPrecondition,
        (Class::RateLimit, _) => Code::ResourceExhausted,
        (Class::InvalidInput, Some("unknown_model")) | (Class::ProviderPermanent, Some("result_expired")) => {
            Code::NotFound
        }
        (Class::InvalidInput | Class::ContentPolicy, _) => Code::InvalidArgument,
        (Class::ProviderTransient, _) => Code::Unavailable,
        (Class::ProviderPermanent, _) => Code::Internal,
        (Class::Timeout, _) => Code::DeadlineExceeded,
        (Class::Cancelled, _) => Code::Cancelled,
        (Class::Unknown, _) => Code::Unknown,
    }
}

/// The gRPC code for the `error_code` of a stored row.
fn code_of_row(error_code: &str) -> Code {
    match error_code {
        "AUTH" => Code::Unauthenticated,
        "QUOTA" => Code::FailedPrecondition,
        "INVALID_PARAMS" | "CONTENT_FILTERED" => Code::InvalidArgument,
        "PROVIDER_UNREACHABLE" | "LEDGER_UNAVAILABLE" => Code::Unavailable,
        "TIMEOUT" => Code::DeadlineExceeded,
        "CANCELLED" => Code::Cancelled,
        "SUBMISSION_UNKNOWN" => Code::Unknown,
        _ => Code::Internal,
    }
}

fn reason_of(error_code: &str) -> &'static str {
    match error_code {
        "CONTENT_FILTERED" => reason::CONTENT_FILTERED,
        "PROVIDER_UNREACHABLE" => reason::PROVIDER_UNREACHABLE,
        "SUBMISSION_UNKNOWN" => reason::SUBMISSION_UNKNOWN,
        "TIMEOUT" => reason::TIMEOUT,
        "OUTPUT_UNDECODABLE" => reason::OUTPUT_UNDECODABLE,
        "CANCELLED" => reason::CANCELLED,
        "LEDGER_UNAVAILABLE" => reason::LEDGER_UNAVAILABLE,
        _ => reason::PROVIDER_ERROR,
    }
}
