//! Who a request is from. Local mode only: a loopback peer is the local user, everybody else is refused, and so is a
//! page of another origin that talks to this machine (`origin.rs`). A body never changes who somebody is.

mod origin;

use std::net::{IpAddr, SocketAddr};

use atelier_common::identity::Caller;
use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, request::Parts};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::json;

use crate::app::App;
use crate::error::Error;
use crate::settings::Cors;

pub(crate) use origin::may_call;

/// Whether an address is of this machine, also when an IPv4 address comes in IPv6 clothes.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Says who a request is from.
///
/// # Errors
/// `Unauthenticated` for a peer that is not of this machine, `Forbidden` for a host or an origin that is not.
pub(crate) fn identify(
    peer: Option<SocketAddr>,
    uri: &Uri,
    headers: &HeaderMap,
    cors: &Cors,
) -> Result<Caller, Error> {
    if !peer.is_some_and(|peer| is_loopback(peer.ip())) {
        return Err(Error::Unauthenticated);
    }
    origin::check(uri, headers, cors)?;
    Ok(Caller::local())
}

/// The layer in front of everything but the probes.
pub(crate) async fn layer(State(app): State<App>, request: Request, next: Next) -> Response {
    let peer = request
        .extensions()
        .get::<ConnectInfo<SocketAddr>>()
        .map(|ConnectInfo(peer)| *peer);
    let socket = request.uri().path() == "/ws";
    match identify(peer, request.uri(), request.headers(), &app.settings.cors) {
        Ok(caller) => {
            let mut request = request;
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        // A refused upgrade is an HTTP answer with the body that clients of the socket know.
        Err(Error::Unauthenticated) if socket => {
            let body = json!({"error": "Remote access requires authentication"});
            (StatusCode::UNAUTHORIZED, Json(body)).into_response()
        }
        Err(error) => error.into_response(),
    }
}

/// The caller that the layer found, as an argument of a handler.
#[derive(Debug, Clone)]
pub(crate) struct Who(pub(crate) Caller);

impl<S: Send + Sync> FromRequestParts<S> for Who {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        match Extension::<Caller>::from_request_parts(parts, state).await {
            Ok(Extension(caller)) => Ok(Self(caller)),
            Err(_) => Err(Error::Unauthenticated),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identified(peer: &str) -> Result<Caller, Error> {
        let mut headers = HeaderMap::new();
        headers.insert("host", "127.0.0.1:7777".parse().expect("host"));
        identify(
            Some(peer.parse().expect("peer")),
            &Uri::from_static("/ws"),
            &headers,
            &Cors::default(),
        )
    }

    #[test]
    fn w_014_only_peers_of_this_machine_are_the_local_user() {
        for peer in ["127.0.0.1:5", "127.8.8.8:5", "[::1]:5", "[::ffff:127.0.0.1]:5"] {
            assert_eq!(identified(peer).expect(peer).user_id, "1");
        }
        for peer in [
            "10.0.0.7:5",
            "192.168.1.2:5",
            "[2001:db8::1]:5",
            "[::ffff:10.0.0.7]:5",
        ] {
            assert!(matches!(identified(peer), Err(Error::Unauthenticated)), "{peer}");
        }
        let nobody = identify(None, &Uri::from_static("/"), &HeaderMap::new(), &Cors::default());
        assert!(matches!(nobody, Err(Error::Unauthenticated)));
    }
}
