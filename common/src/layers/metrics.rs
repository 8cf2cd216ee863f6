//! Counts calls, by method and code, and how long they take.

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Instant;

use http::{Request, Response};
use tonic::Code;
use tonic::body::Body;
use tower::{Layer, Service};

use super::Answer;
use super::body::{End, Watched};
use crate::metrics::{RPC_SERVER_CALLS, RPC_SERVER_DURATION, RPC_SERVER_RUNNING};

#[derive(Clone, Copy)]
pub(super) struct Metrics;

impl<S> Layer<S> for Metrics {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner }
    }
}

#[derive(Clone)]
pub(super) struct Counted<S> {
    inner: S,
}

impl<S> Service<Request<Body>> for Counted<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        let mut call = Call::start(request.uri().path());
        let future = self.inner.call(request);
        Box::pin(async move {
            let response = future.await?;
            call.answered = true;
            Ok(Watched::response(response, call))
        })
    }
}

struct Call {
    method: String,
    start: Instant,
    answered: bool,
    counted: bool,
}

impl Call {
    fn start(path: &str) -> Self {
        metrics::gauge!(RPC_SERVER_RUNNING).increment(1.0);
        let method = path.trim_start_matches('/').to_owned();
        Self {
            method,
            start: Instant::now(),
            answered: false,
            counted: false,
        }
    }

    fn count(&mut self, code: Code) {
        if std::mem::replace(&mut self.counted, true) {
            return;
        }
        // A method that is not served can be any text, which must not become a label.
        let method = if code == Code::Unimplemented {
            "unknown".to_owned()
        } else {
            std::mem::take(&mut self.method)
        };
        metrics::counter!(RPC_SERVER_CALLS, "method" => method.clone(), "code" => name(code)).increment(1);
        metrics::histogram!(RPC_SERVER_DURATION, "method" => method).record(self.start.elapsed());
    }
}

impl End for Call {
    fn ended(&mut self, code: Code) {
        self.count(code);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        metrics::gauge!(RPC_SERVER_RUNNING).decrement(1.0);
        if !self.answered && !self.counted {
            // The caller went away before the answer, perhaps from a method that does not exist.
            self.method = "unanswered".to_owned();
            self.count(Code::Cancelled);
        }
    }
}

fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}
