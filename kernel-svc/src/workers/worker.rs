//! One worker as the hub knows it, and the stream to it.

use std::{collections::HashMap, sync::Arc};

use atelier_proto::kernel::v1::{ConnectResponse, WorkerNodeType, connect_response::Message as Said};
use indexmap::IndexMap;
use tokio::sync::{mpsc, watch};
use tonic::Status;

use super::Scope;

/// A worker over reconnects.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct WorkerKey {
    pub scope: Scope,
    pub instance: Arc<str>,
}
/// A served type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TypeKey {
    pub scope: Scope,
    pub node_type: Arc<str>,
}
/// Why a stream is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    No,
    /// The instance has a newer stream.
    Replaced,
    /// The worker said goodbye, and its last invocation is over.
    Drained,
}
/// Where messages to one stream go.
#[derive(Clone)]
pub(super) struct Link {
    pub session: u64,
    pub out: mpsc::Sender<Result<ConnectResponse, Status>>,
    pub end: watch::Sender<End>,
}
impl Link {
    /// Says something if there is room.
    pub fn try_say(&self, said: Said) -> bool {
        self.out.try_send(Ok(message(said))).is_ok()
    }
}
/// A message of the kernel.
pub(super) fn message(said: Said) -> ConnectResponse {
    ConnectResponse { message: Some(said) }
}
/// One worker.
pub(super) struct Worker {
    pub name: String,
    /// The stream, while there is one.
    pub link: Option<Link>,
    /// Number of the last stream.
    pub session: u64,
    /// What it serves.
    pub types: IndexMap<String, WorkerNodeType>,
    /// It said on this stream what it serves.
    pub ready: bool,
    pub slots: usize,
    pub draining: bool,
    /// Its invocations: whether each reads streams.
    pub running: HashMap<u64, bool>,
}
impl Worker {
    /// Whether it can take an invocation of a type now, or could if it had room.
    pub fn serves(&self, node_type: &str) -> bool {
        self.link.is_some() && self.ready && !self.draining && self.types.contains_key(node_type)
    }
    /// Its name in errors.
    pub fn label(&self, key: &WorkerKey) -> String {
        format!("{} (instance {})", self.name, key.instance)
    }
    /// A worker that leaves ends its stream with its last invocation.
    pub fn leave_if_done(&self) {
        if let Some(link) = self
            .link
            .as_ref()
            .filter(|_| self.draining && self.running.is_empty())
        {
            link.end.send_if_modified(|end| {
                let open = *end == End::No;
                if open {
                    *end = End::Drained;
                }
                open
            });
        }
    }
}
