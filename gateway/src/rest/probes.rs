//! Whether the process lives and is ready, and its metrics. For machines: no caller is asked for.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;

/// Whether the process is ready.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// `ready` or `not_ready`.
    status: &'static str,
    /// What is not ready, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gates: Vec<Gate>,
}

/// A part that is not ready.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Gate {
    /// The part.
    gate: String,
    /// Why it is not.
    reason: String,
}

/// Whether the process works at all.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Liveness {
    /// Always `alive`.
    status: &'static str,
}

/// Whether the process works at all.
#[utoipa::path(get, path = "/livez", operation_id = "live", tag = "probes", responses((status = 200, description = "It does", body = Liveness)))]
pub(crate) async fn live() -> Json<Liveness> {
    Json(Liveness { status: "alive" })
}

/// Whether the process can serve.
#[utoipa::path(
    get, path = "/readyz", operation_id = "ready", tag = "probes",
    responses(
        (status = 200, description = "It can", body = Readiness),
        (status = 503, description = "It cannot", body = Readiness),
    )
)]
pub(crate) async fn ready(State(app): State<App>) -> Response {
    let mut gates: Vec<_> = match app.health.ready() {
        Ok(()) => Vec::new(),
        Err(closed) => closed
            .into_iter()
            .map(|(gate, reason)| Gate { gate, reason })
            .collect(),
    };
    if app.tasks.stopping() {
        gates.push(Gate {
            gate: "process".to_owned(),
            reason: "is going down".to_owned(),
        });
    }
    if gates.is_empty() {
        return Json(Readiness {
            status: "ready",
            gates,
        })
        .into_response();
    }
    (
        StatusCode::SERVICE_UNAVAILABLE,
        Json(Readiness {
            status: "not_ready",
            gates,
        }),
    )
        .into_response()
}

/// The metrics of the process, in the Prometheus text format.
#[utoipa::path(get, path = "/metrics", operation_id = "metrics", tag = "probes", responses((status = 200, description = "The page", body = String)))]
pub(crate) async fn metrics() -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        atelier_common::metrics::render(),
    )
}
