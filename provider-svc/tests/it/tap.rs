//! A transport that a test can listen to, cut, and hold.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use atelier_common::channel::Transport;
use tokio::sync::Semaphore;
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
    calls: Mutex<Vec<String>>,
    held: Mutex<HashMap<&'static str, Held>>,
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
                transport.ready().await?.call(request).await
            }
        }))
    }

    /// Cuts calls of a method; `*` cuts all.
    pub fn cut(&self, method: &'static str) {
        self.inner.down.lock().unwrap().insert(method);
    }

    /// Lets everything through again.
    pub fn mend(&self) {
        self.inner.down.lock().unwrap().clear();
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
