//! Continues the caller's trace, or starts one: a span per call, which the handler and its stream run in.

use std::convert::Infallible;
use std::task::{Context, Poll};

use http::{Request, Response};
use tonic::Code;
use tonic::body::Body;
use tower::{Layer, Service};
use tracing::{Instrument, Span};

use super::Answer;
use super::body::{End, Watched};
use crate::trace;

#[derive(Clone, Copy)]
pub(super) struct Trace;

impl<S> Layer<S> for Trace {
    type Service = Traced<S>;

    fn layer(&self, inner: S) -> Traced<S> {
        Traced { inner }
    }
}

#[derive(Clone)]
pub(super) struct Traced<S> {
    inner: S,
}

impl<S> Service<Request<Body>> for Traced<S>
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
        let context = match trace::Context::extract(request.headers()) {
            Some(parent) => parent.child(),
            None => trace::Context::root(),
        };
        let method = request.uri().path().trim_start_matches('/');
        let span = tracing::info_span!(
            "rpc",
            otel.name = method,
            otel.kind = "server",
            trace_id = context.trace_id(),
            rpc.method = method,
            rpc.response.status_code = tracing::field::Empty,
        );
        let future = context.sync_scope(|| span.in_scope(|| self.inner.call(request)));
        let call = Call {
            span: span.clone(),
            context,
        };
        Box::pin(async move {
            let response = call.context.scope(future).instrument(span).await?;
            Ok(Watched::response(response, call))
        })
    }
}

struct Call {
    span: Span,
    context: trace::Context,
}

impl End for Call {
    fn within<R>(&mut self, poll: impl FnOnce() -> R) -> R {
        self.context.sync_scope(|| self.span.in_scope(poll))
    }

    fn ended(&mut self, code: Code) {
        self.span.record("rpc.response.status_code", i32::from(code));
        tracing::debug!(parent: &self.span, code = ?code, "call ended");
    }
}
