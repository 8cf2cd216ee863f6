//! Writes the running trace into outgoing requests.

use std::task::{Context, Poll};

use http::Request;
use tower::{Layer, Service};

use crate::trace;

/// The client's side of the trace: adds `traceparent` where the calling code runs in a trace and has not set one.
#[derive(Debug, Clone, Copy, Default)]
pub struct InjectTrace;

impl<S> Layer<S> for InjectTrace {
    type Service = Injected<S>;

    fn layer(&self, inner: S) -> Injected<S> {
        Injected { inner }
    }
}

/// A service that [`InjectTrace`] wraps.
#[derive(Debug, Clone)]
pub struct Injected<S> {
    inner: S,
}

impl<S, B> Service<Request<B>> for Injected<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        if let Some(context) = trace::Context::current()
            && !request.headers().contains_key(trace::TRACEPARENT)
        {
            context.inject(request.headers_mut());
        }
        self.inner.call(request)
    }
}
