//! Node types that are served from outside: a process in any language opens a stream, declares types, and gets their
//! invocations (`WorkerService`).
//!
//! What lives here: [`NodeTypes`], the types that a user has at an instant; the hub, which knows workers and the
//! invocations that they have; the driver of one invocation; the session of one stream. To the engine a served type is an
//! executor like any other (`remote`). What does not live here: how a graph runs (`run/`), and the Python client
//! (`workers/python` at the root of the project).
//!
//! An invocation belongs to the node that waits for it and not to a stream: frames that arrived are kept, frames that
//! were not accepted are sent again by the worker, and only an invocation that its worker does not know any more is given
//! to another one.

mod calls;
mod declare;
mod driver;
mod frame;
mod hub;
mod inputs;
mod media;
mod remote;
mod session;
mod types;
mod worker;

use std::{sync::Arc, time::Duration};

use atelier_common::tasks::Tasks;
use atelier_proto::kernel::v1::{ConnectRequest, ConnectResponse};
use tokio::sync::mpsc;
use tonic::{Status, Streaming};

pub use types::{NodeTypes, Scope};

use hub::Hub;

/// Version of the protocol.
pub const PROTOCOL_VERSION: u32 = 1;
/// Largest message of a worker, in bytes. Media travel in parts, so that this is for texts and lists.
pub const MAX_WORKER_MESSAGE: usize = 4 * 1024 * 1024;
/// Largest media that a node may give out, in bytes: what fits into one message to asset-svc, with room for the rest.
pub const MAX_UPLOAD: usize = 48 * 1024 * 1024;
/// Frames of one invocation that may be unaccepted at a time.
const FRAME_WINDOW: i64 = 16;
/// Streamed inputs of one invocation that are sent ahead of what its node has read.
const INPUT_WINDOW: i64 = 16;
/// Messages that wait for one stream. Full: invocations wait, and a stream that stays full is ended.
const OUTBOX: usize = 64;

/// Times of the protocol.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// How long invocations wait for a worker that is gone, and for a first one.
    pub grace: Duration,
    /// How often both sides say something.
    pub heartbeat: Duration,
}
impl Timing {
    /// Silence after which the other side counts as gone.
    fn timeout(&self) -> Duration {
        self.heartbeat * 3
    }
}

/// All workers of this process. Cheap to clone.
#[derive(Clone)]
pub struct Workers {
    hub: Arc<Hub>,
    tasks: Tasks,
}
impl Workers {
    /// No workers yet; what they declare is added to `types`.
    #[must_use]
    pub fn new(types: NodeTypes, timing: Timing, tasks: Tasks) -> Self {
        Self {
            hub: Hub::new(types, timing),
            tasks,
        }
    }
    /// Serves one stream; gives what goes out on it. The stream lives on its own, until it ends or breaks.
    #[must_use]
    pub fn serve(
        &self,
        scope: Scope,
        inbound: Streaming<ConnectRequest>,
    ) -> mpsc::Receiver<Result<ConnectResponse, Status>> {
        let (out, receiver) = mpsc::channel(OUTBOX);
        let session = session::serve(Arc::clone(&self.hub), scope, inbound, out, self.tasks.clone());
        drop(self.tasks.spawn("worker", session));
        receiver
    }
    /// Streams that are open now.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.hub.connected()
    }
    /// Invocations that are not over.
    #[must_use]
    pub fn invocations(&self) -> usize {
        self.hub.invocations()
    }
}
