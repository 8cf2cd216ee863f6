//! A transport that a test can listen to, cut, and hold.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use atelier_common::channel::Transport;
use futures_util::StreamExt;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::body::Body;
use tower::{Service, ServiceExt, service_fn};

/// What a test does to the calls of a transport. Clones are the same tap.
#[derive(Clone, Default)]
pub struct Tap {
    inner: Arc<Inner>,
}
#[derive(Default)]
struct Inner {
    down: Mutex<HashSet<&'static str>>,
    lost: Mutex<HashSet<&'static str>>,
    calls: Mutex<Vec<String>>,
    held: Mutex<HashMap<&'static str, Held>>,
    broken: Mutex<CancellationToken>,
}
/// A method whose calls wait.
#[derive(Clone)]
pub struct Held {
    arrived: Arc<Semaphore>,
    released: Arc<Semaphore>,
}
impl Held {
    /// Waits until a call has arrived.
    pub async fn arrived(&self) {
        self.arrived.acquire().await.unwrap().forget();
    }
    /// Lets one call go on.
    pub fn release(&self) {
        self.released.add_permits(1);
    }
}

impl Tap {
    /// The transport, tapped.
    pub fn on(&self, transport: Transport) -> Transport {
        let tap = self.clone();
        Transport::new(service_fn(move |request: http::Request<Body>| {
            let (tap, mut transport) = (tap.clone(), transport.clone());
            async move {
                let method = request
                    .uri()
                    .path()
                    .rsplit('/')
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                tap.inner.calls.lock().unwrap().push(method.clone());
                let held = tap.inner.held.lock().unwrap().get(method.as_str()).cloned();
                if let Some(held) = held {
                    held.arrived.add_permits(1);
                    held.released.acquire().await.unwrap().forget();
                }
                let down = tap
                    .inner
                    .down
                    .lock()
                    .unwrap()
                    .iter()
                    .any(|down| *down == "*" || *down == method);
                if down {
                    return Ok(Status::unavailable("cut by the test").into_http());
                }
                let broken = tap.inner.broken.lock().unwrap().clone();
                let response = transport.ready().await?.call(request).await?;
                if tap.inner.lost.lock().unwrap().remove(method.as_str()) {
                    return Ok(Status::unavailable("lost by the test").into_http());
                }
                if method != "Follow" {
                    return Ok(response);
                }
                Ok(response.map(|body| {
                    let body = body.into_data_stream().take_until(broken.cancelled_owned());
                    Body::new(StreamBody::new(body.map(|piece| piece.map(Frame::data))))
                }))
            }
        }))
    }

    /// Cuts calls of a method; `*` cuts all.
    pub fn cut(&self, method: &'static str) {
        self.inner.down.lock().unwrap().insert(method);
    }

    /// Loses the next answer of a method, which is carried out.
    pub fn lose(&self, method: &'static str) {
        self.inner.lost.lock().unwrap().insert(method);
    }

    /// Lets everything through again.
    pub fn mend(&self) {
        self.inner.down.lock().unwrap().clear();
    }

    /// Ends the streams to the ledger that stand.
    pub fn break_streams(&self) {
        std::mem::take(&mut *self.inner.broken.lock().unwrap()).cancel();
    }

    /// Makes calls of a method wait.
    pub fn hold(&self, method: &'static str) -> Held {
        let held = Held {
            arrived: Arc::new(Semaphore::new(0)),
            released: Arc::new(Semaphore::new(0)),
        };
        self.inner.held.lock().unwrap().insert(method, held.clone());
        held
    }

    /// The methods that were called, in order.
    pub fn calls(&self) -> Vec<String> {
        self.inner.calls.lock().unwrap().clone()
    }

    /// How often a method was called.
    pub fn count(&self, method: &str) -> usize {
        self.calls().iter().filter(|call| *call == method).count()
    }
}
