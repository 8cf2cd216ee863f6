//! What the engine and node code say, before the relay stamps and stores it: bare events without job, number or index.

mod channel;

use std::sync::Arc;

use atelier_proto::{
    kernel::v1::{Disposition, EdgeStatus, Issue, JobStatus, NodeStatus, Severity},
    tracker::v1::Generation,
    value::{Map, MediaRef, Value},
};
pub use channel::{Closed, EventReceiver, EventSender, WeakEventSender, channel};

use crate::{
    node::NodeError,
    run::{
        Suspension,
        supervise::{Account, Decision, Escalation},
    },
};

/// One bare event of a run.
#[derive(Debug, Clone)]
pub enum Event {
    /// The run changed its state: running first, one terminal last.
    Job {
        /// The state.
        status: JobStatus,
        /// Why it failed.
        error: Option<String>,
        /// Machine-readable reason.
        error_code: Option<String>,
        /// With a completed run: values for each output's name.
        outputs: Option<Map>,
        /// What is wrong with the graph.
        issues: Vec<Issue>,
        /// With a suspended run: the nodes that wait, and their states.
        suspensions: Vec<Suspension>,
    },
    /// The run waits for a slot.
    Queued {
        /// Place in the queue, from 1.
        position: u32,
    },
    /// A node changed its state.
    Node {
        /// The node.
        node: Arc<NodeLabel>,
        /// The state.
        status: NodeStatus,
        /// The last result, with completed; the state, with suspended.
        result: Option<Map>,
        /// Text of an error or a warning.
        error: Option<String>,
        /// Cause of an error.
        detail: Option<Box<NodeError>>,
        /// Static properties.
        properties: Arc<Map>,
    },
    /// A node committed one whole artifact. The relay gives it its index under `invocation`.
    Artifact {
        /// The node.
        node: Arc<NodeLabel>,
        /// Key of the commit: lineage and ordinal, unique for the node in the run.
        invocation: String,
        /// The result by handle.
        outputs: Arc<Map>,
        /// Scalar inputs; `None` when there are none.
        properties: Option<Map>,
        /// Generations of the invocation.
        generation_ids: Vec<String>,
    },
    /// All that an invocation emitted, kept for a later process only. Comes before the commit of the invocation.
    Frames {
        /// The node.
        node: Arc<NodeLabel>,
        /// Key of the invocation: lineage and ordinal.
        invocation: String,
        /// Values by handle, in order.
        frames: Arc<[Map]>,
    },
    /// Something to show right now.
    Output {
        /// The node.
        node: Arc<NodeLabel>,
        /// Name of the output.
        output_name: Arc<str>,
        /// The value.
        value: Value,
        /// Declared type, else `any`.
        output_type: Arc<str>,
        /// How it joins what is shown.
        disposition: Disposition,
        /// On the last piece.
        done: bool,
    },
    /// Traffic on an edge.
    Edge {
        /// The edge.
        edge_id: Arc<str>,
        /// Its state.
        status: EdgeStatus,
        /// Values so far.
        counter: Option<i64>,
    },
    /// In a supervised run: an invocation failed and somebody is asked, or has decided.
    Supervision {
        /// The node.
        node: Arc<NodeLabel>,
        /// The question.
        escalation: Arc<Escalation>,
        /// What was decided; `None` with the question itself.
        decision: Option<Decision>,
    },
    /// Something that node code said.
    Note {
        /// The node.
        node: Arc<NodeLabel>,
        /// What it said.
        note: Note,
    },
}

/// How a node is called in events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeLabel {
    /// Its id.
    pub id: Arc<str>,
    /// Its name, if the author gave one.
    pub name: Option<Arc<str>>,
    /// Its type.
    pub node_type: Arc<str>,
}

/// Something that node code says beside its results.
#[derive(Debug, Clone)]
pub enum Note {
    /// How far it is.
    Progress {
        /// Steps done.
        progress: i64,
        /// Steps in all.
        total: i64,
        /// The output so far.
        preview: Option<MediaRef>,
    },
    /// A line of its log.
    Log {
        /// The text.
        content: String,
        /// How grave it is.
        severity: Severity,
    },
    /// A call to a provider opened or settled its row.
    Prediction(Box<Generation>),
    /// Tokens that are not an output.
    Chunk {
        /// The piece.
        content: String,
        /// Whether it is the last one.
        done: bool,
        /// Whether it is a model's thinking.
        thinking: bool,
    },
}

/// Where notes of one node go. Those of a run end with it: node code that outlives its run says nothing more,
/// and keeps no one waiting for the last event.
#[derive(Clone)]
pub struct NoteSink {
    label: Arc<NodeLabel>,
    events: Events,
    /// In a supervised run: what the node's calls cost.
    account: Option<Arc<Account>>,
}
#[derive(Clone)]
enum Events {
    Kept(EventSender),
    OfRun(WeakEventSender),
}
impl NoteSink {
    /// A sink for a node's notes.
    #[must_use]
    pub fn new(label: Arc<NodeLabel>, events: EventSender) -> Self {
        let events = Events::Kept(events);
        Self {
            label,
            events,
            account: None,
        }
    }
    /// A sink for the notes of a node of a run that goes on.
    #[must_use]
    pub fn of_run(label: Arc<NodeLabel>, events: WeakEventSender) -> Self {
        let events = Events::OfRun(events);
        Self {
            label,
            events,
            account: None,
        }
    }
    /// Keeps an account of the node's calls.
    pub(crate) fn supervised(mut self, supervised: bool) -> Self {
        self.account = supervised.then(Arc::default);
        self
    }
    /// What the node's calls cost, in a supervised run.
    pub(crate) fn account(&self) -> Option<&Arc<Account>> {
        self.account.as_ref()
    }
    /// Remembers outputs that the node has at hand should its invocation fail: whoever supervises the run may take them.
    /// Forgotten at the next attempt.
    pub fn propose(&self, outputs: Map) {
        if let Some(account) = &self.account {
            account.propose(outputs);
        }
    }
    /// Sends a note; waits while the relay is behind; a closed relay is not the node's concern.
    pub async fn send(&self, note: Note) {
        if let (Some(account), Note::Prediction(generation)) = (&self.account, &note) {
            account.note(generation);
        }
        let node = Arc::clone(&self.label);
        let event = Event::Note { node, note };
        let _ = match &self.events {
            Events::Kept(events) => events.send(event).await,
            Events::OfRun(events) => events.send(event).await,
        };
    }
}
