//! What a node type is to the kernel: its metadata, the code that runs it, and what that code may reach.
//!
//! The engine (`run/`) calls [`Executor`]s; the built-in types (`nodes/`) implement them; a [`Registry`] joins the two.
//! Node code sees values, a [`Context`] and, when it streams, [`Frames`], [`Inputs`] and [`Outputs`]; it never sees job
//! logs, sequence numbers or tables.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use atelier_common::clock::Clock;
use atelier_proto::{
    provider::v1::Model,
    tracker::v1::Generation,
    value::{Map, MediaRef, Value},
};
use bytes::Bytes;
use indexmap::IndexMap;
use tokio_util::sync::CancellationToken;

use crate::{
    event::{Note, NoteSink},
    graph::model::Types,
    host::Host,
    run::{EventQueue, Frames, Inputs, Outputs, Variables},
};

/// What a node type takes and gives, and how it runs.
#[derive(Debug, Clone, Default)]
pub struct NodeMeta {
    /// The dotted type, for instance `nodetool.image.TextToImage`.
    pub node_type: String,
    /// Title for people.
    pub title: String,
    /// What it does, in a sentence.
    pub description: String,
    /// Inputs, in order.
    pub inputs: Vec<InputMeta>,
    /// Outputs, in order.
    pub outputs: Vec<OutputMeta>,
    /// It drains its own inbox ([`Executor::run`]). `None`: the type does not say, a saved flag may.
    pub streaming_input: Option<bool>,
    /// It yields frames ([`Executor::stream`]).
    pub streaming_output: Option<bool>,
    /// It is run by control events.
    pub controlled: Option<bool>,
    /// It may take inputs of unrelated iterations.
    pub join: Option<bool>,
    /// An event may start it ([`Executor::emit_trigger_event`]), and events may be sent to it while it runs.
    pub trigger: bool,
    /// Unknown properties are kept and become inputs.
    pub dynamic_inputs: bool,
    /// Outputs may be added by the user.
    pub dynamic_outputs: bool,
    /// Its artifacts are saved as assets.
    pub auto_save_asset: bool,
    /// Its display values go out even on connected handles.
    pub always_emit_output_updates: bool,
    /// Running it again with equal inputs is harmless.
    pub retry_safe: bool,
    /// Correlation metadata: how it reads its inputs.
    pub input_mode: Option<InputMode>,
    /// Correlation metadata per output; absent means `single` over the execution.
    pub output_correlation: BTreeMap<String, Correlation>,
    /// Handles on which each frame with a value is an artifact of its own.
    pub artifact_outputs: Vec<String>,
    /// Its main output, else the first one.
    pub primary_output: Option<String>,
    /// Secrets it needs.
    pub required_settings: Vec<String>,
    /// It runs, and new workflows should not use it.
    pub deprecated: bool,
    /// The type that does its work today.
    pub replaced_by: Option<String>,
    /// What runs it.
    pub runner: Runner,
}

/// What runs a node type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Runner {
    /// Code of the kernel, or of whoever registered it.
    #[default]
    BuiltIn,
    /// A call of a provider's model.
    Provider,
    /// Something from outside that is not there: its runs fail with `missing_connector`.
    Connector,
}

/// One input.
#[derive(Debug, Clone, Default)]
pub struct InputMeta {
    /// Its name.
    pub name: String,
    /// Its type, for instance `list[str]`.
    pub ty: String,
    /// Its value when nothing is given; `None`: none.
    pub default: Option<Value>,
    /// Whether a value must be given.
    pub required: bool,
    /// What it means.
    pub description: String,
    /// Smallest value.
    pub min: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// The allowed values, when they are few.
    pub values: Vec<Value>,
}

/// One output.
#[derive(Debug, Clone, Default)]
pub struct OutputMeta {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: String,
    /// Whether it comes in pieces.
    pub stream: bool,
}

/// How a node reads its inputs, for the correlation analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputMode {
    /// One value per handle and key.
    Buffered,
    /// The node drains its inbox.
    Stream,
    /// Control events drive it.
    Controlled,
}

/// The correlation of one output (kernel specification 4.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correlation {
    /// The kind.
    pub kind: CorrelationKind,
    /// `__execution__` or an input handle; `None` is the fault `corr.source_missing`.
    pub source: Option<String>,
    /// Group of an iteration; absent means the handle itself.
    pub group: Option<String>,
    /// An aggregate drops the innermost root; absent is the fault `corr.aggregate_collapse_missing`.
    pub collapse_innermost: bool,
}

/// Kinds of correlation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CorrelationKind {
    /// The lineage of the invocation.
    Single,
    /// The lineage of the source envelope.
    Forward,
    /// The lineage of the invocation, several times.
    Chunk,
    /// A token of its own.
    Iteration,
    /// Without the innermost root.
    Aggregate,
}

/// Which of its entry points an executor offers besides `process`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offers {
    /// [`Executor::stream`].
    pub stream: bool,
    /// [`Executor::run`].
    pub run: bool,
}

/// The code of a node; one instance per node and run.
///
/// All nodes share the threads of the runtime: code that computes for long, or blocks, does so in
/// `tokio::task::spawn_blocking`, and one that keeps its thread for more than a second is warned about. Code that waits
/// looks at [`Context::cancel`]; after the grace period of a cancel it is dropped at its next wait.
#[async_trait]
pub trait Executor: Send + Sync {
    /// The entry points besides `process`.
    fn offers(&self) -> Offers {
        Offers::default()
    }
    /// Whether the frames of a finished invocation are kept for a later process of the run. Code that gives the same again,
    /// at no cost and without effects, says no and runs again.
    fn remembered(&self) -> bool {
        true
    }
    /// Called for every node, in graph order, before anything runs.
    async fn initialize(&mut self, _ctx: &Context) -> Result<(), NodeError> {
        Ok(())
    }
    /// Called at the start of the node's actor.
    async fn pre_process(&mut self, _ctx: &Context) -> Result<(), NodeError> {
        Ok(())
    }
    /// One invocation: merged inputs in, outputs by handle out. A missing key is not delivered, a null is.
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError>;
    /// One invocation that yields frames.
    async fn stream(&mut self, inputs: Map, frames: &mut Frames<'_>, ctx: &Context) -> Result<(), NodeError> {
        let frame = self.process(inputs, ctx).await?;
        frames.send(frame).await
    }
    /// Drains the inbox of the node until it ends.
    async fn run(
        &mut self,
        _inputs: &mut Inputs<'_>,
        _outputs: &mut Outputs<'_>,
        ctx: &Context,
    ) -> Result<(), NodeError> {
        Err(NodeError::new(format!(
            "node {} cannot read a stream",
            ctx.node_id
        )))
    }
    /// Emits the event that the run was started with, in the place of everything else that the node does. For types
    /// that are triggers only. By default values of the payload go out on the outputs of the same name, as one item
    /// where those open an iteration; the rest of the payload is left out.
    async fn emit_trigger_event(
        &mut self,
        event: &TriggerEvent,
        outputs: &mut Outputs<'_>,
        ctx: &Context,
    ) -> Result<(), NodeError> {
        let own = event
            .payload
            .iter()
            .filter(|(name, _)| ctx.outputs.contains_key(name.as_str()));
        let own: Map = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        outputs.emit_group(own, None).await
    }
    /// Called once at the end, also after an error or a cancel.
    async fn finalize(&mut self, _ctx: &Context) {}
}

/// What starts a run, for a node that waits for such things.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerEvent {
    /// The trigger node.
    pub node_id: Arc<str>,
    /// Values of its outputs by name.
    pub payload: Map,
}

/// What a node's code failed with.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct NodeError {
    /// For people: what went wrong, no secrets.
    pub message: String,
    /// Machine-readable cause.
    pub code: Option<String>,
    /// The provider that failed.
    pub provider: Option<String>,
    /// Name of the missing secret.
    pub secret_key: Option<String>,
    /// What has to be installed beside the kernel.
    pub runtime_package: Option<String>,
    /// The generation that failed.
    pub generation_id: Option<String>,
    /// What kind of end this is.
    pub kind: NodeErrorKind,
}
/// What kind of end a [`NodeError`] is.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum NodeErrorKind {
    /// An ordinary failure.
    #[default]
    Failed,
    /// The run was cancelled while the code ran.
    Cancelled,
    /// A provider refused the content; inside a fan-out only the item is lost.
    Refused,
    /// A call that was made, and may be billed, failed for its item. Inside a fan-out the other items go on, so that what
    /// they make is not lost with it; the node ends as failed.
    Item,
    /// The node waits for something outside: state and metadata to resume with.
    Suspended {
        /// State to resume with.
        state: Map,
        /// Facts for whoever resumes it.
        metadata: Map,
    },
}
impl NodeError {
    /// An ordinary failure.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code: None,
            provider: None,
            secret_key: None,
            runtime_package: None,
            generation_id: None,
            kind: NodeErrorKind::Failed,
        }
    }
    /// Adds a machine-readable cause.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }
    /// Something that is not part of the kernel is not installed: the message says what and how.
    #[must_use]
    pub fn missing_package(package: &str, message: impl Into<String>) -> Self {
        Self {
            runtime_package: Some(package.to_owned()),
            ..Self::new(message).code("missing_runtime_package")
        }
    }
    /// The run was cancelled.
    #[must_use]
    pub fn cancelled() -> Self {
        Self {
            kind: NodeErrorKind::Cancelled,
            ..Self::new("cancelled")
        }
    }
}

/// What node code may reach during one run.
#[derive(Clone)]
pub struct Context {
    /// The run.
    pub job_id: Arc<str>,
    /// The workflow of the run.
    pub workflow_id: Option<Arc<str>>,
    /// The node.
    pub node_id: Arc<str>,
    /// Its type.
    pub node_type: Arc<str>,
    /// Its name, if it has one.
    pub node_name: Option<Arc<str>>,
    /// The values that the workflow states for it, without the defaults of its type.
    pub properties: Arc<Map>,
    /// Types of its outputs by handle, those that the user added included.
    pub outputs: Arc<Types>,
    /// Key of the running invocation: lineage and ordinal; empty outside an invocation.
    pub invocation: Arc<str>,
    /// Tripped when the run is cancelled.
    pub cancel: CancellationToken,
    /// Where progress, logs and predictions go.
    pub notes: NoteSink,
    /// Other services.
    pub services: Arc<dyn Services>,
    /// The nodes that it controls.
    pub controls: Arc<dyn Controls>,
    /// Counts the generations of an invocation; part of their idempotency keys.
    pub ordinal: Arc<std::sync::atomic::AtomicU32>,
    /// Generations that the running invocation opened.
    pub generation_ids: Arc<std::sync::Mutex<Vec<String>>>,
    /// What the node left behind when it suspended the run that now goes on.
    pub resuming: Option<Arc<Map>>,
    /// The variables of the run.
    pub variables: Arc<Variables>,
    /// Events that are sent to the node while it runs.
    pub events: Arc<EventQueue>,
    /// A node that waits longer than this suspends the run; `None`: it may wait for as long as it likes.
    pub longest_wait: Option<std::time::Duration>,
    /// The time.
    pub clock: Clock,
}
impl Context {
    /// Whether the run goes on after this node suspended it.
    #[must_use]
    pub fn is_resuming(&self) -> bool {
        self.resuming.is_some()
    }
    /// What the node left behind when it suspended the run, with what was merged into it since.
    ///
    /// # Errors
    /// `run.not_resuming` when the node is not resuming.
    pub fn saved_state(&self) -> Result<&Map, NodeError> {
        let text = || {
            NodeError::new(format!(
                "node {} is not resuming, so it has no saved state",
                self.node_id
            ))
            .code("run.not_resuming")
        };
        self.resuming.as_deref().ok_or_else(text)
    }
    /// Says something about the node: progress, a log line, a prediction.
    pub async fn note(&self, note: Note) {
        self.notes.send(note).await;
    }
    /// Remembers outputs that the node has at hand should its invocation fail: in a supervised run they may be taken for
    /// its result, when every output that the node declares is there and of its type.
    pub fn propose(&self, outputs: Map) {
        self.notes.propose(outputs);
    }
    /// Calls a provider through the seam and waits for the outcome. Pieces of a stream and progress go to `pieces`.
    ///
    /// Cancel safe in this sense: when the run is cancelled the generation is cancelled too, and its end is awaited.
    ///
    /// # Errors
    /// What the provider or the seam failed with, with its reason and the generation id.
    pub async fn generate(
        &self,
        call: GenerationCall,
        pieces: &mut dyn Pieces,
    ) -> Result<Generated, NodeError> {
        let services = Arc::clone(&self.services);
        services.generate(self, call, pieces).await
    }
}

/// A request to a provider.
#[derive(Debug, Clone, Default)]
pub struct GenerationCall {
    /// The provider; empty: the default of the capability.
    pub provider: String,
    /// The model; empty: the provider's default.
    pub model: String,
    /// `text_to_image`, `text_to_speech`, `generate_message`, …
    pub capability: String,
    /// The capability's parameters.
    pub params: Map,
    /// Save what it makes as assets.
    pub persist: bool,
}
/// The outcome of a call.
#[derive(Debug, Clone, Default)]
pub struct Generated {
    /// The row's id.
    pub generation_id: String,
    /// `output` of the capability: media, a list of them, or text.
    pub output: Value,
    /// The settled row.
    pub generation: Option<Box<Generation>>,
}
/// A piece of a running call.
#[derive(Debug, Clone)]
pub enum Piece {
    /// Tokens.
    Text {
        /// The piece.
        text: String,
        /// Whether it is the last one.
        done: bool,
        /// Whether it is a model's thinking.
        thinking: bool,
    },
    /// Audio.
    Audio {
        /// The bytes.
        data: Bytes,
        /// Whether it is the last one.
        done: bool,
    },
    /// How far the provider is.
    Progress {
        /// Steps done.
        progress: i64,
        /// Steps in all.
        total: i64,
        /// The output so far.
        preview: Option<MediaRef>,
    },
}
/// Takes the pieces of a running call, one after the other; the call waits for it.
#[async_trait]
pub trait Pieces: Send {
    /// Takes one piece. An error ends the call for its caller (the generation itself goes on to its end).
    async fn piece(&mut self, piece: Piece) -> Result<(), NodeError>;
}
/// Ignores all pieces but progress, which becomes a note of the node.
pub struct OnlyProgress<'a>(pub &'a Context);
#[async_trait]
impl Pieces for OnlyProgress<'_> {
    async fn piece(&mut self, piece: Piece) -> Result<(), NodeError> {
        if let Piece::Progress {
            progress,
            total,
            preview,
        } = piece
        {
            self.0
                .note(Note::Progress {
                    progress,
                    total,
                    preview,
                })
                .await;
        }
        Ok(())
    }
}

/// A workflow to run inside of a run.
#[derive(Debug, Clone, Default)]
pub struct InnerRun {
    /// The saved workflow.
    pub workflow_id: Option<String>,
    /// A graph, JSON: what runs when no saved workflow is named, or it is not here.
    pub graph: Option<String>,
    /// Values of its inputs, by name.
    pub params: Map,
}
/// What the kernel offers to node code from other services.
#[async_trait]
pub trait Services: Send + Sync {
    /// See [`Context::generate`].
    async fn generate(
        &self,
        ctx: &Context,
        call: GenerationCall,
        pieces: &mut dyn Pieces,
    ) -> Result<Generated, NodeError>;
    /// The bytes of a reference: inline data, a `data:` URI, or a stored asset. Bounded.
    async fn media_bytes(&self, ctx: &Context, media: &MediaRef) -> Result<Bytes, NodeError>;
    /// Runs a workflow inside of this run and waits for its end: a list of values for each output's name.
    async fn run_inside(&self, ctx: &Context, _inner: InnerRun) -> Result<Map, NodeError> {
        let text = format!("node {} cannot run a workflow from here", ctx.node_id);
        Err(NodeError::new(text))
    }
    /// All models that can be asked now.
    async fn models(&self, ctx: &Context, capability: &str) -> Result<Vec<Model>, NodeError>;
    /// The folder for files that are gone when their node ends.
    fn scratch(&self) -> std::path::PathBuf {
        std::env::temp_dir()
    }
    /// Where a program is that is installed beside the kernel.
    fn program(&self, name: &str) -> std::path::PathBuf {
        name.into()
    }
    /// What node code may reach of this machine and of the network.
    fn host(&self) -> &Host {
        Host::nothing()
    }
    /// Keeps bytes as an asset of the run's owner and gives the reference. Repeating an invocation keeps nothing twice.
    async fn keep(&self, _ctx: &Context, _kept: Kept) -> Result<MediaRef, NodeError> {
        Err(NodeError::new("this run keeps no assets"))
    }
}
/// Bytes that are to become an asset.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// Kind of the reference: `image`, `text`, `document`, …
    pub kind: String,
    /// Name for people, with its ending.
    pub name: String,
    /// The media type.
    pub mime_type: String,
    /// The content.
    pub bytes: Bytes,
}

/// The nodes that a node controls, as its code reaches them.
#[async_trait]
pub trait Controls: Send + Sync {
    /// Runs a controlled node once with these values over its others, and waits for what it gives by handle.
    ///
    /// # Errors
    /// A text for whoever asked: the node is not controlled by this one, waits for something of this one, failed, or has
    /// ended.
    async fn call(&self, node: &str, properties: Map) -> Result<Map, String>;
}

/// Makes the code of a node.
pub type Factory = Arc<dyn Fn() -> Box<dyn Executor> + Send + Sync>;

/// All node types by name.
#[derive(Clone, Default)]
pub struct Registry {
    types: IndexMap<String, (Arc<NodeMeta>, Factory)>,
}
impl Registry {
    /// Adds a type; a later one replaces an earlier one of the same name.
    pub fn register(&mut self, meta: NodeMeta, factory: Factory) {
        self.types
            .insert(meta.node_type.clone(), (Arc::new(meta), factory));
    }
    /// Metadata of a type.
    #[must_use]
    pub fn meta(&self, node_type: &str) -> Option<&Arc<NodeMeta>> {
        self.types.get(node_type).map(|(meta, _)| meta)
    }
    /// New code for a node of a type.
    #[must_use]
    pub fn executor(&self, node_type: &str) -> Option<Box<dyn Executor>> {
        self.types.get(node_type).map(|(_, factory)| factory())
    }
    /// All types, in order of registration.
    pub fn all(&self) -> impl Iterator<Item = &Arc<NodeMeta>> {
        self.types.values().map(|(meta, _)| meta)
    }
}
