//! Refuses calls when too many are being answered, instead of queueing them until nobody wants the answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tokio::sync::Semaphore;
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

use super::{Answer, refusal};
use crate::metrics::RPC_SERVER_SHED;

#[derive(Clone)]
pub(super) struct Limit {
    places: Arc<Semaphore>,
}

impl Limit {
    pub(super) fn new(running: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(running)),
        }
    }
}

impl<S> Layer<S> for Limit {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        Limited {
            inner,
            places: Arc::clone(&self.places),
        }
    }
}

#[derive(Clone)]
pub(super) struct Limited<S> {
    inner: S,
    places: Arc<Semaphore>,
}

impl<S> Service<Request<Body>> for Limited<S>
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
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            metrics::counter!(RPC_SERVER_SHED).increment(1);
            return Box::pin(async { Ok(refusal(Status::resource_exhausted("too many calls at once"))) });
        };
        let future = self.inner.call(request);
        Box::pin(async move {
            let response = future.await;
            drop(place);
            response
        })
    }
}
