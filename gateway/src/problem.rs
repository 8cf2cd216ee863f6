//! Errors as HTTP answers. One table from gRPC codes to HTTP statuses; one body for every surface but the socket:
//! `{"error":{"code","reason","message","details","request_id"}}`.
//!
//! A [`Problem`] travels as an extension of an empty response; [`crate::http::request_id`] writes the body, because only
//! it knows the id of the request.

use std::borrow::Cow;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tonic::{Code, Status};
use tonic_types::StatusExt;
use utoipa::ToSchema;

use crate::error::{Error, http_reason};

/// What went wrong, before it has the id of its request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) reason: Cow<'static, str>,
    pub(crate) message: String,
    /// `fields`, and whatever varies in the message.
    pub(crate) details: Map<String, Value>,
    pub(crate) retry_after: Option<std::time::Duration>,
}

/// The body of every answer that is an error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// What went wrong.
    pub(crate) error: ErrorInfo,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error)]
pub(crate) struct ErrorInfo {
    /// The class of the error, for instance `not_found`.
    #[schema(example = "not_found")]
    pub(crate) code: String,
    /// The machine-readable reason, for instance `JOB_NOT_FOUND`.
    #[schema(example = "JOB_NOT_FOUND")]
    pub(crate) reason: String,
    /// The text for people.
    pub(crate) message: String,
    /// `fields` names each bad field; the rest is whatever varies in the message.
    #[schema(value_type = Object)]
    pub(crate) details: Map<String, Value>,
    /// The id of the request, also in `x-request-id`.
    pub(crate) request_id: String,
}

/// The HTTP status and the word of a gRPC code. The only table of its kind.
pub(crate) fn http_of(code: Code) -> (u16, &'static str) {
    match code {
        Code::Ok => (200, "ok"),
        Code::InvalidArgument => (400, "invalid_argument"),
        Code::FailedPrecondition => (409, "failed_precondition"),
        Code::NotFound => (404, "not_found"),
        Code::AlreadyExists => (409, "already_exists"),
        Code::Aborted => (409, "aborted"),
        Code::ResourceExhausted => (429, "resource_exhausted"),
        Code::Unavailable => (503, "unavailable"),
        Code::Unauthenticated => (401, "unauthenticated"),
        Code::PermissionDenied => (403, "permission_denied"),
        Code::OutOfRange => (416, "out_of_range"),
        Code::DeadlineExceeded => (504, "deadline_exceeded"),
        Code::Cancelled => (499, "cancelled"),
        Code::Unimplemented => (501, "unimplemented"),
        Code::Internal | Code::Unknown | Code::DataLoss => (500, "internal"),
    }
}

/// What is told of a status that no service of ours made; its own text may name addresses.
fn plain_message(code: Code) -> Option<&'static str> {
    match code {
        Code::Unavailable => Some("a service that this needs cannot be reached"),
        Code::Internal | Code::Unknown | Code::DataLoss => Some("something went wrong inside"),
        Code::Cancelled => Some("the call was cancelled"),
        Code::DeadlineExceeded => Some("a service that this needs did not answer in time"),
        Code::Ok
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Unauthenticated => None,
    }
}

impl Problem {
    /// A problem of HTTP itself, which no gRPC code stands for.
    pub(crate) fn http(
        status: StatusCode,
        code: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status,
            code,
            reason: reason.into(),
            message: message.into(),
            details: Map::new(),
            retry_after: None,
        }
    }

    /// The body, for the request with this id.
    pub(crate) fn body(self, request_id: &str) -> ErrorBody {
        let Self {
            status: _,
            code,
            reason,
            message,
            details,
            retry_after: _,
        } = self;
        let (code, reason, request_id) = (code.to_owned(), reason.into_owned(), request_id.to_owned());
        ErrorBody {
            error: ErrorInfo {
                code,
                reason,
                message,
                details,
                request_id,
            },
        }
    }
}

/// The reason, message and bad fields of a status, as every surface tells them.
pub(crate) fn message_of(status: &Status) -> String {
    let of_ours = status.get_details_error_info().is_some();
    match plain_message(status.code()).filter(|_| !of_ours) {
        Some(plain) => plain.to_owned(),
        None => status.message().to_owned(),
    }
}

impl From<Status> for Problem {
    fn from(status: Status) -> Self {
        let (number, code) = http_of(status.code());
        let details = status.get_error_details();
        if status.code() == Code::OutOfRange && details.error_info().is_none() {
            // What a message between services may weigh; a range is always refused by a service of ours.
            let text = "the request is larger than services can take";
            return Self::http(
                StatusCode::PAYLOAD_TOO_LARGE,
                "payload_too_large",
                http_reason::BODY_TOO_LARGE,
                text,
            );
        }
        let mut told = Map::new();
        let violations = details
            .bad_request()
            .map(|bad| bad.field_violations.as_slice())
            .unwrap_or_default();
        if !violations.is_empty() {
            let fields = violations
                .iter()
                .map(|bad| json!({"field": bad.field, "description": bad.description}));
            told.insert("fields".to_owned(), fields.collect());
        }
        let reason = details.error_info().map_or_else(
            || Cow::Owned(code.to_ascii_uppercase()),
            |info| {
                told.extend(
                    info.metadata
                        .iter()
                        .map(|(key, value)| (key.clone(), json!(value))),
                );
                Cow::Owned(info.reason.clone())
            },
        );
        let retry_after = details.retry_info().and_then(|retry| retry.retry_delay);
        if number >= 500 {
            tracing::warn!(code, %reason, message = status.message(), "a service failed");
        }
        Self {
            status: StatusCode::from_u16(number).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            code,
            reason,
            message: message_of(&status),
            details: told,
            retry_after,
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Http {
                status,
                code,
                reason,
                message,
            } => Self::http(status, code, reason, message),
            Error::Service(status) => (*status).into(),
            Error::Field { .. }
            | Error::Unanswered
            | Error::Forbidden(_)
            | Error::Unauthenticated
            | Error::Draining => Status::from(error).into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if let Some(after) = self.retry_after {
            let seconds = after.as_secs().max(1);
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        Problem::from(self).into_response()
    }
}

#[cfg(test)]
mod tests {
    use atelier_proto::reason;

    use super::*;

    #[test]
    fn a_status_of_ours_keeps_reason_fields_and_facts() {
        let status: Status = reason::Problem::new(
            Code::NotFound,
            reason::JOB_NOT_FOUND,
            "kernel.atelier",
            "no such run",
        )
        .with("job_id", "J")
        .field("job_id", "is not known")
        .into();
        let problem = Problem::from(status);
        assert_eq!(
            (problem.status.as_u16(), problem.code, problem.reason.as_ref()),
            (404, "not_found", "JOB_NOT_FOUND")
        );
        assert_eq!(problem.details["job_id"], "J");
        assert_eq!(
            problem.details["fields"][0],
            json!({"field": "job_id", "description": "is not known"})
        );
    }

    #[test]
    fn a_foreign_status_does_not_tell_addresses() {
        let problem = Problem::from(Status::unavailable("tcp connect error: 10.0.0.7:1234"));
        assert_eq!(
            (problem.status.as_u16(), problem.reason.as_ref()),
            (503, "UNAVAILABLE")
        );
        assert!(!problem.message.contains("10.0.0.7"));
    }
}
