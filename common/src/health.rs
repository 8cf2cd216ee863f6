//! Whether the process is alive and ready: named gates, and the `grpc.health.v1` service that tells others.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use tokio::sync::watch;
use tokio_stream::Stream;
use tokio_stream::wrappers::WatchStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health as HealthApi, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

/// The state of one gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// This part can serve.
    Ready,
    /// This part cannot serve, and why.
    NotReady(String),
}

/// The gates of a process. It is ready when every gate is; with no gate it is ready. Clones are the same gates.
#[derive(Clone)]
pub struct Health {
    inner: Arc<Inner>,
}

struct Inner {
    gates: Mutex<BTreeMap<String, Gate>>,
    services: Mutex<BTreeSet<String>>,
    ready: watch::Sender<bool>,
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

impl Health {
    /// Makes a health without gates.
    pub fn new() -> Self {
        let inner = Inner {
            gates: Mutex::default(),
            services: Mutex::default(),
            ready: watch::Sender::new(true),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Sets a gate, making it if it is not there. Watchers hear of a change of the whole.
    pub fn set(&self, gate: &str, state: Gate) {
        let mut gates = self.inner.gates.lock().unwrap_or_else(PoisonError::into_inner);
        let before = gates.insert(gate.to_owned(), state.clone());
        let ready = gates.values().all(|gate| *gate == Gate::Ready);
        // Sent while the gates are locked, so that two changes cannot be told in the wrong order.
        self.inner
            .ready
            .send_if_modified(|value| std::mem::replace(value, ready) != ready);
        drop(gates);
        if before.as_ref() != Some(&state) {
            match state {
                Gate::Ready => tracing::info!(gate, "gate is ready"),
                Gate::NotReady(reason) => tracing::info!(gate, reason, "gate is not ready"),
            }
        }
    }

    /// Names a gRPC service that the health service shall answer for, e.g. `pkg.v1.ThingService`.
    pub fn register(&self, service: &str) {
        self.inner
            .services
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(service.to_owned());
    }

    /// Whether the process works at all. True as long as it can answer.
    pub fn live(&self) -> bool {
        true
    }

    /// Whether the process can serve.
    ///
    /// # Errors
    /// The gates that are not ready, each with its reason.
    pub fn ready(&self) -> Result<(), Vec<(String, String)>> {
        let gates = self.inner.gates.lock().unwrap_or_else(PoisonError::into_inner);
        let closed: Vec<_> = gates
            .iter()
            .filter_map(|(name, gate)| match gate {
                Gate::Ready => None,
                Gate::NotReady(reason) => Some((name.clone(), reason.clone())),
            })
            .collect();
        if closed.is_empty() { Ok(()) } else { Err(closed) }
    }

    /// Waits until the process is ready. Cancel safe.
    pub async fn until_ready(&self) {
        let mut watcher = self.inner.ready.subscribe();
        // The sender is in `self`, so it cannot be gone.
        let _ = watcher.wait_for(|ready| *ready).await;
    }

    /// The `grpc.health.v1` service over these gates. It answers for the whole ("") and for the registered services
    /// with the same status; its watch streams end when `stop` is cancelled, so that they do not hold up a drain.
    pub fn service(&self, stop: CancellationToken) -> HealthServer<impl HealthApi> {
        HealthServer::new(Service {
            health: self.clone(),
            stop,
        })
    }

    fn knows(&self, service: &str) -> bool {
        service.is_empty()
            || self
                .inner
                .services
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .contains(service)
    }
}

struct Service {
    health: Health,
    stop: CancellationToken,
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status.into(),
    }
}

fn status_of(ready: bool) -> ServingStatus {
    if ready {
        ServingStatus::Serving
    } else {
        ServingStatus::NotServing
    }
}

#[tonic::async_trait]
impl HealthApi for Service {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if !self.health.knows(&request.get_ref().service) {
            return Err(Status::not_found("service not registered"));
        }
        Ok(Response::new(response(status_of(self.health.ready().is_ok()))))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let stop = self.stop.clone().cancelled_owned();
        if !self.health.knows(&request.get_ref().service) {
            // The protocol asks for a stream here, not for an error: the service may appear later.
            let unknown = futures_util::stream::iter([Ok(response(ServingStatus::ServiceUnknown))]);
            let stream = unknown.chain(futures_util::stream::pending()).take_until(stop);
            return Ok(Response::new(Box::pin(stream)));
        }
        let changes = WatchStream::new(self.health.inner.ready.subscribe());
        let stream = changes
            .map(|ready| Ok(response(status_of(ready))))
            .take_until(stop);
        Ok(Response::new(Box::pin(stream)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn is_ready_when_every_gate_is() {
        let health = Health::new();
        assert!(health.ready().is_ok());
        health.set("database", Gate::NotReady("connecting".into()));
        health.set("peers", Gate::Ready);
        assert_eq!(
            health.ready(),
            Err(vec![("database".into(), "connecting".into())])
        );
        let waiting = health.clone();
        let waiter = async move { waiting.until_ready().await };
        let opener = async { health.set("database", Gate::Ready) };
        tokio::join!(waiter, opener);
        assert!(health.ready().is_ok() && health.live());
    }
}
