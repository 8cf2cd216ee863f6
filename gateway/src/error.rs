//! What can go wrong in the gateway itself. A service's error passes through as it is.

use atelier_proto::reason;
use axum::http::StatusCode;
use tonic::{Code, Status};

/// Reasons that only an HTTP surface has.
pub(crate) mod http_reason {
    /// No such route.
    pub(crate) const ROUTE_NOT_FOUND: &str = "ROUTE_NOT_FOUND";
    /// The route does not know the method.
    pub(crate) const METHOD_NOT_ALLOWED: &str = "METHOD_NOT_ALLOWED";
    /// The body is larger than allowed.
    pub(crate) const BODY_TOO_LARGE: &str = "BODY_TOO_LARGE";
    /// The body is not JSON by its content type.
    pub(crate) const UNSUPPORTED_MEDIA_TYPE: &str = "UNSUPPORTED_MEDIA_TYPE";
    /// The body is not JSON.
    pub(crate) const MALFORMED_JSON: &str = "MALFORMED_JSON";
    /// The body broke off.
    pub(crate) const BODY_INCOMPLETE: &str = "BODY_INCOMPLETE";
    /// The request is no upgrade to a socket.
    pub(crate) const UPGRADE_REQUIRED: &str = "UPGRADE_REQUIRED";
    /// The host or the origin is not one that may call.
    pub(crate) const ORIGIN_REFUSED: &str = "ORIGIN_REFUSED";
}

/// An error of the gateway.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A field of the request is wrong.
    #[error("{field} {wrong}")]
    Field {
        /// The field.
        field: String,
        /// What is wrong with it.
        wrong: String,
    },
    /// Something that only HTTP knows.
    #[error("{message}")]
    Http {
        /// The status.
        status: StatusCode,
        /// The word of its class.
        code: &'static str,
        /// The reason.
        reason: &'static str,
        /// The text.
        message: String,
    },
    /// What a service said.
    #[error("{}", .0.message())]
    Service(#[source] Box<Status>),
    /// A service did not answer in time.
    #[error("a service that this needs did not answer in time")]
    Unanswered,
    /// The request may not come from there.
    #[error("{0}")]
    Forbidden(&'static str),
    /// The caller is not known.
    #[error("remote access requires authentication")]
    Unauthenticated,
    /// The process is going down.
    #[error("this server is restarting")]
    Draining,
}

impl Error {
    /// A wrong field.
    pub(crate) fn field(field: impl Into<String>, wrong: impl Into<String>) -> Self {
        Self::Field {
            field: field.into(),
            wrong: wrong.into(),
        }
    }

    fn parts(&self) -> (Code, &'static str) {
        match self {
            Self::Field { .. } => (Code::InvalidArgument, reason::INVALID_FIELD),
            Self::Http { reason, .. } => (Code::InvalidArgument, reason),
            Self::Service(status) => (status.code(), reason::INTERNAL),
            Self::Unanswered => (Code::DeadlineExceeded, reason::TIMEOUT),
            Self::Forbidden(_) => (Code::PermissionDenied, http_reason::ORIGIN_REFUSED),
            Self::Unauthenticated => (Code::Unauthenticated, reason::UNAUTHENTICATED),
            Self::Draining => (Code::Unavailable, reason::DRAINING),
        }
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self::Service(Box::new(status))
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let (code, reason) = error.parts();
        let problem = reason::Problem::new(code, reason, "gateway.atelier", error.to_string());
        match error {
            Error::Service(status) => *status,
            Error::Field { field, wrong } => problem.field(field, wrong).into(),
            Error::Http { .. }
            | Error::Unanswered
            | Error::Forbidden(_)
            | Error::Unauthenticated
            | Error::Draining => problem.into(),
        }
    }
}
