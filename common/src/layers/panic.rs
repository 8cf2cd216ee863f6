//! Turns a panic of a handler or of its stream into the status INTERNAL. The text goes to the log only.

use std::any::Any;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

use super::body::Guarded;
use super::{Answer, refusal};
use crate::tasks::panic_text;

#[derive(Clone, Copy)]
pub(super) struct CatchPanic;

impl<S> Layer<S> for CatchPanic {
    type Service = Caught<S>;

    fn layer(&self, inner: S) -> Caught<S> {
        Caught { inner }
    }
}

#[derive(Clone)]
pub(super) struct Caught<S> {
    inner: S,
}

impl<S> Service<Request<Body>> for Caught<S>
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
        let called = std::panic::catch_unwind(AssertUnwindSafe(|| self.inner.call(request)));
        Box::pin(async move {
            let outcome = match called {
                Ok(future) => AssertUnwindSafe(future).catch_unwind().await,
                Err(panic) => Err(panic),
            };
            match outcome {
                Ok(response) => Ok(response?.map(|body| Body::new(Guarded::new(body)))),
                Err(panic) => Ok(refusal(internal(panic.as_ref()))),
            }
        })
    }
}

pub(super) fn internal(panic: &(dyn Any + Send)) -> Status {
    tracing::error!(panic = panic_text(panic), "handler panicked");
    Status::internal("internal error")
}
