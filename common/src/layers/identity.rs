//! Puts the verified caller into the request's extensions.
//!
//! No identity: no caller, and the handler decides (health and reflection need none). A bad identity: refused.

use std::convert::Infallible;
use std::task::{Context, Poll};

use futures_util::future::{self, Either, Ready};
use http::{Request, Response};
use tonic::body::Body;
use tower::{Layer, Service};

use super::refusal;
use crate::identity::{Caller, IDENTITY, IdentityError, Signer};

#[derive(Clone)]
pub(super) struct Identity {
    signer: Signer,
}

impl Identity {
    pub(super) fn new(signer: Signer) -> Self {
        Self { signer }
    }
}

impl<S> Layer<S> for Identity {
    type Service = Identified<S>;

    fn layer(&self, inner: S) -> Identified<S> {
        Identified {
            inner,
            signer: self.signer.clone(),
        }
    }
}

#[derive(Clone)]
pub(super) struct Identified<S> {
    inner: S,
    signer: Signer,
}

impl<S> Service<Request<Body>> for Identified<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<S::Future, Ready<Result<Response<Body>, Infallible>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        // In memory the caller's extensions arrive as they are: a caller in them is a claim, not a fact.
        request.extensions_mut().remove::<Caller>();
        if let Some(value) = request.headers().get(IDENTITY) {
            let text = value.to_str().map_err(|_| IdentityError::Invalid);
            match text.and_then(|text| self.signer.verify_text(text)) {
                Ok(caller) => {
                    request.extensions_mut().insert(caller);
                }
                Err(error) => {
                    tracing::debug!(%error, "identity refused");
                    return Either::Right(future::ready(Ok(refusal(error.into()))));
                }
            }
        }
        Either::Left(self.inner.call(request))
    }
}
