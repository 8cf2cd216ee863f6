//! What every call passes on its way in and out, one layer per file.
//!
//! Server, outermost first: [`trace`] → [`metrics`] → [`panic`] to INTERNAL → [`deadline`] → [`identity`] → [`limit`]
//! → the services. The order matters: trace sees everything, metrics count what was refused too, a panic of a layer
//! below is caught, nobody unauthenticated takes a place. Client: [`inject`] the trace.
//!
//! The layers are the same for a socket and for an in-memory channel.

mod body;
mod deadline;
mod identity;
mod inject;
mod limit;
mod metrics;
mod panic;
mod trace;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;

use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic::service::Routes;
use tower::ServiceBuilder;
use tower::util::BoxCloneSyncService;

pub use inject::InjectTrace;

use crate::identity::Signer;

/// Calls that one server answers at once; more are refused with RESOURCE_EXHAUSTED. A stream counts until its head.
pub const MAX_RUNNING: usize = 4096;

/// A service that answers every request, if need be with a status.
pub(crate) type Served = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// What the layers' futures are.
type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// Wraps services in the server's layers.
pub(crate) fn server(routes: Routes, signer: &Signer) -> Served {
    let stack = ServiceBuilder::new()
        .layer(trace::Trace)
        .layer(metrics::Metrics)
        .layer(panic::CatchPanic)
        .layer(deadline::Deadline)
        .layer(identity::Identity::new(signer.clone()))
        .layer(limit::Limit::new(MAX_RUNNING));
    Served::new(stack.service(routes.prepare()))
}

/// The answer that is only a status.
fn refusal(status: Status) -> Response<Body> {
    status.into_http()
}

#[cfg(test)]
mod tests;
