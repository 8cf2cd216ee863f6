//! The gateway as a part of a process: built, served, drained.

use std::net::SocketAddr;

use atelier_common::component::{BuildError, Deps, RunError};
use atelier_common::tasks::Tasks;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use tokio::net::TcpListener;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;

use crate::app::{App, Inner};
use crate::clients::Clients;
use crate::settings::Settings;
use crate::{auth, console, http, metrics, openapi, ws};

/// The gateway.
pub struct Gateway {
    app: App,
}

impl Gateway {
    /// The name as a process.
    pub const NAME: &'static str = "gateway";

    /// Makes the clients of the peers `kernel`, `provider`, `tracker` and `asset`. Binds no port, connects to nothing.
    ///
    /// # Errors
    /// [`BuildError`] without one of the peers, and for an address that is not loopback: there is no authentication.
    pub fn build(settings: Settings, deps: &Deps) -> Result<Self, BuildError> {
        refuse_remote(settings.listen)?;
        atelier_common::metrics::describe(metrics::ALL);
        let clients = Clients::new(&deps.peers, deps.signer.clone(), settings.call_timeout)?;
        let inner = Inner {
            settings,
            clients,
            health: deps.health.clone(),
            tasks: deps.tasks.clone(),
            clock: deps.clock.clone(),
            instance: deps.instance.to_string(),
        };
        Ok(Self { app: App::new(inner) })
    }

    /// All routes. The peer's address comes from the connection, so this is to be served with connect info (as
    /// [`serve`](Self::serve) does); without it nobody is let in.
    pub fn router(&self) -> Router {
        let (resources, probes, description) = openapi::described();
        let description = get(move || async move { Json(description) });
        let inner = resources
            .route("/ws", get(ws::upgrade))
            .route("/openapi.json", description)
            .fallback(console::fallback)
            .method_not_allowed_fallback(http::method_not_allowed)
            .layer(from_fn_with_state(self.app.clone(), auth::layer))
            .merge(
                probes
                    .merge(aliases())
                    .method_not_allowed_fallback(http::method_not_allowed),
            )
            .layer(CatchPanicLayer::custom(http::panicked))
            .layer(http::cors(self.app.settings.cors.clone()))
            .layer(from_fn(http::request_id))
            .with_state(self.app.clone());
        // Outside of the router, because it has to come before the choice of the route.
        let trimmed = ServiceBuilder::new()
            .map_request(http::without_slash)
            .service(inner);
        Router::new().fallback_service(trimmed)
    }

    /// Serves until `tasks` is told to stop, then lets open requests and sockets with work in flight go on for the
    /// drain limit. The caller owns the listener.
    ///
    /// # Errors
    /// [`RunError`] when the listener is not on loopback or fails.
    pub async fn serve(self, listener: TcpListener, tasks: &Tasks) -> Result<(), RunError> {
        let bound = listener
            .local_addr()
            .map_err(|error| RunError::new("cannot listen", error))?;
        refuse_remote(bound).map_err(|error| RunError::new("cannot listen", error))?;
        let drain = self.app.settings.drain;
        let listener = listener.tap_io(|socket| {
            // Small frames must not wait for each other; without it they are only slower.
            let _ = socket.set_nodelay(true);
        });
        let service = self.router().into_make_service_with_connect_info::<SocketAddr>();
        let stop = tasks.token();
        let serving = axum::serve(listener, service).with_graceful_shutdown(stop.clone().cancelled_owned());
        tracing::info!(address = %bound, "gateway listens");
        let late = async {
            stop.cancelled().await;
            tokio::time::sleep(drain).await;
        };
        tokio::select! {
            result = serving.into_future() => result.map_err(|error| RunError::new("cannot serve", error)),
            () = late => {
                tracing::warn!("connections were still open after the drain limit");
                Ok(())
            }
        }
    }
}

/// The probes under the names that clients of the socket know.
fn aliases() -> Router<App> {
    use crate::rest::probes;
    Router::new()
        .route("/health", get(probes::live))
        .route("/ready", get(probes::ready))
}

/// Without authentication only this machine may be listened to.
fn refuse_remote(address: SocketAddr) -> Result<(), BuildError> {
    if auth::is_loopback(address.ip()) {
        return Ok(());
    }
    Err(BuildError::invalid(format!(
        "`gateway.listen` is {address}, but without authentication only loopback addresses can be listened on"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_the_network_is_refused() {
        for bad in ["0.0.0.0:7777", "[::]:7777", "192.168.1.2:80"] {
            assert!(refuse_remote(bad.parse().expect("address")).is_err(), "{bad}");
        }
        assert!(refuse_remote("127.0.0.1:0".parse().expect("address")).is_ok());
    }
}
