//! Clients' transports: over memory or over the network, the same to the generated clients.

use std::convert::Infallible;
use std::time::Duration;

use http::Extensions;
use tonic::Status;
use tonic::body::Body;
use tonic::service::Routes;
use tonic::transport::Endpoint;
use tower::ServiceBuilder;
use tower::util::BoxCloneSyncService;

use crate::component::BuildError;
use crate::identity::Signer;
use crate::layers;

/// Any error of a transport.
pub type BoxError = tower::BoxError;

/// A call did not get through. A type of its own: over a bare boxed error the generated clients' futures are not `Send`
/// in the compiler's eyes.
#[derive(Debug, thiserror::Error)]
#[error("the call did not get through")]
pub struct TransportError(#[source] BoxError);

/// What a generated client is made over: `ThingServiceClient::new(transport)`. Cheap to clone.
pub type Transport = BoxCloneSyncService<http::Request<Body>, http::Response<Body>, TransportError>;

/// The largest message, in bytes: 64 MiB. To be set on both ends with `max_decoding_message_size`; tonic's own limit is
/// 4 MiB, on clients too.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// A transport to services of the same process, through the same layers as a socket's.
pub fn local(routes: Routes, signer: &Signer) -> Transport {
    let service = ServiceBuilder::new()
        .layer(layers::InjectTrace)
        .map_request(|mut request: http::Request<Body>| {
            // Nothing but headers and body goes through a socket; extensions must not go through memory either.
            *request.extensions_mut() = Extensions::new();
            request
        })
        .map_err(|never: Infallible| -> TransportError { match never {} })
        .service(layers::server(routes, signer));
    Transport::new(service)
}

/// A transport to `http://host:port`. Connects with the first call, and again after the connection is lost; while the
/// peer is away calls fail at once with UNAVAILABLE. Connections are watched, so that a dead peer ends streams.
///
/// # Errors
/// [`BuildError`] when the address is not one.
pub fn remote(uri: &str) -> Result<Transport, BuildError> {
    let endpoint = Endpoint::from_shared(uri.to_owned())
        .map_err(|error| BuildError::new(format!("peer address {uri:?} is not valid"), error))?;
    if endpoint.uri().host().is_none() || endpoint.uri().scheme().is_none() {
        return Err(BuildError::invalid(format!(
            "peer address {uri:?} has no scheme or no host"
        )));
    }
    let channel = endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .tcp_keepalive(Some(Duration::from_secs(60)))
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .connect_lazy();
    let service = ServiceBuilder::new()
        .layer(layers::InjectTrace)
        .map_err(named)
        .service(channel);
    Ok(Transport::new(service))
}

/// Gives errors of the transport the code that callers expect. tonic says CANCELLED for a deadline that has passed, and
/// for a request that meets a connection just closing; here nobody has cancelled anything.
fn named(error: tonic::transport::Error) -> TransportError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(below) = cause {
        if below.is::<tonic::TimeoutExpired>() {
            return TransportError(Status::deadline_exceeded("deadline exceeded").into());
        }
        // The type is hyper's and reached through no public path; its text has been the same since 0.12.
        if below.to_string() == "operation was canceled" {
            return TransportError(Status::unavailable("connection closed").into());
        }
        cause = below.source();
    }
    TransportError(error.into())
}
