//! Serving gRPC on a socket, and the small HTTP page for operators.

use std::io;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use futures_util::StreamExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::service::Routes;
use tonic::transport::Server;

use super::{Deps, RunError};
use crate::health::Health;
use crate::tasks::Tasks;
use crate::{layers, metrics};

/// How long open calls may go on after the signal to stop.
pub const DRAIN_LIMIT: Duration = Duration::from_secs(20);

const STREAMS_PER_CONNECTION: u32 = 256;
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// tonic's 1 MiB for a whole connection slows down uploads.
const CONNECTION_WINDOW: u32 = 8 * 1024 * 1024;
const STREAM_WINDOW: u32 = 2 * 1024 * 1024;
/// Signed identities and trace state need more than the 16 KiB that would be allowed.
const HEADER_LIST: u32 = 64 * 1024;

/// Serves routes on a listener until `deps.tasks` is told to stop: in the server's layers, with `grpc.health.v1` over
/// `deps.health` and reflection (v1 and v1alpha) of the descriptors. Then it accepts nothing more, lets open calls end
/// for [`DRAIN_LIMIT`], and cuts the rest. Streams that should end sooner listen to `deps.tasks.token()`.
///
/// # Errors
/// [`RunError`] when the descriptors cannot be read or the listener breaks.
pub async fn serve_grpc(
    routes: Routes,
    descriptors: &[&'static [u8]],
    listener: TcpListener,
    deps: &Deps,
) -> Result<(), RunError> {
    serve_grpc_within(routes, descriptors, listener, deps, DRAIN_LIMIT).await
}

/// [`serve_grpc`] with another limit for the drain.
///
/// # Errors
/// As [`serve_grpc`].
pub async fn serve_grpc_within(
    routes: Routes,
    descriptors: &[&'static [u8]],
    listener: TcpListener,
    deps: &Deps,
    drain: Duration,
) -> Result<(), RunError> {
    let stop = deps.tasks.token();
    let routes = with_reflection(routes, descriptors)?.add_service(deps.health.service(stop.clone()));
    let service = layers::server(routes, &deps.signer);
    let incoming = TcpListenerStream::new(listener).map(|socket| {
        let socket: TcpStream = socket?;
        // tonic sets it only on sockets that it accepts itself; without it small answers wait for 40 ms.
        socket.set_nodelay(true)?;
        Ok::<_, io::Error>(socket)
    });
    let server = Server::builder()
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .initial_connection_window_size(CONNECTION_WINDOW)
        .initial_stream_window_size(STREAM_WINDOW)
        .http2_max_header_list_size(HEADER_LIST)
        .serve_with_incoming_shutdown(service, incoming, stop.clone().cancelled_owned());
    let overdue = async {
        stop.cancelled().await;
        tokio::time::sleep(drain).await;
    };
    tokio::select! {
        result = server => result.map_err(|error| RunError::new("cannot serve", error)),
        () = overdue => {
            tracing::warn!("calls were still open after the drain limit");
            Ok(())
        }
    }
}

fn with_reflection(routes: Routes, descriptors: &[&'static [u8]]) -> Result<Routes, RunError> {
    let broken = |error| RunError::new("cannot read the descriptors", error);
    let mut sets: Vec<&'static [u8]> = vec![tonic_health::pb::FILE_DESCRIPTOR_SET];
    for set in descriptors {
        // Components that share a contract crate hand in the same set.
        if !set.is_empty() && !sets.iter().any(|known| known.as_ptr() == set.as_ptr()) {
            sets.push(set);
        }
    }
    let builder = || {
        let builder = tonic_reflection::server::Builder::configure();
        sets.iter().fold(builder, |builder, set| {
            builder.register_encoded_file_descriptor_set(set)
        })
    };
    let v1 = builder().build_v1().map_err(broken)?;
    let v1alpha = builder().build_v1alpha().map_err(broken)?;
    Ok(routes.add_service(v1).add_service(v1alpha))
}

/// The page for operators: `/livez`, `/readyz` (503 and the closed gates when not ready) and `/metrics`. Says nothing
/// secret, but is not meant for the public.
pub fn admin_router(health: Health) -> Router {
    let ready = health.clone();
    Router::new()
        .route(
            "/livez",
            get(move || {
                let live = health.live();
                async move {
                    if live {
                        (StatusCode::OK, "ok\n")
                    } else {
                        (StatusCode::SERVICE_UNAVAILABLE, "not live\n")
                    }
                }
            }),
        )
        .route(
            "/readyz",
            get(move || {
                let ready = ready.ready();
                async move {
                    match ready {
                        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
                        Err(gates) => {
                            let lines = gates
                                .into_iter()
                                .map(|(gate, reason)| format!("{gate}: {reason}\n"));
                            (StatusCode::SERVICE_UNAVAILABLE, lines.collect())
                        }
                    }
                }
            }),
        )
        .route("/metrics", get(page))
}

async fn page() -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
        metrics::render(),
    )
}

/// Serves [`admin_router`] until told to stop, and keeps the metrics tidy.
///
/// # Errors
/// [`RunError`] when the listener breaks.
pub async fn serve_admin(listener: TcpListener, health: Health, tasks: &Tasks) -> Result<(), RunError> {
    let stop = tasks.token();
    tasks.spawn("metrics", {
        let tasks = tasks.clone();
        async move {
            while tasks.pause(Duration::from_secs(5)).await {
                metrics::upkeep();
            }
        }
    });
    let server =
        axum::serve(listener, admin_router(health)).with_graceful_shutdown(stop.clone().cancelled_owned());
    tokio::select! {
        result = server.into_future() => result.map_err(|error| RunError::new("cannot serve the page for operators", error)),
        // Open keep-alive connections must not hold up the end.
        () = async { stop.cancelled().await; tokio::time::sleep(Duration::from_secs(1)).await } => Ok(()),
    }
}
