//! One node without an engine: a scripted provider, its frames, and what it said.

use std::sync::{Arc, Mutex, atomic::AtomicU32};

use async_trait::async_trait;
use atelier_proto::{
    provider::v1::Model,
    value::{BytesForm, MediaRef, Value, map_from_json, to_json},
};
use bytes::Bytes;
use serde_json::Value as Json;
use tokio::sync::mpsc;

use super::registry;
use crate::{
    event::{Event, Note, NoteSink},
    host::Host,
    node::{Context, Executor, Generated, GenerationCall, Kept, NodeError, Piece, Pieces, Services},
};

/// What the provider says to every call.
#[derive(Debug, Clone, Default)]
pub(super) struct Script {
    pieces: Vec<Piece>,
    output: Value,
}
impl Script {
    /// Pieces of a text; one that begins with `~` is thinking.
    pub fn text(pieces: &[&str]) -> Self {
        let piece = |piece: &&str| match piece.strip_prefix('~') {
            Some(text) => Piece::Text {
                text: text.to_owned(),
                done: false,
                thinking: true,
            },
            None => Piece::Text {
                text: (*piece).to_owned(),
                done: false,
                thinking: false,
            },
        };
        let whole: String = pieces
            .iter()
            .filter(|piece| !piece.starts_with('~'))
            .copied()
            .collect();
        Self {
            pieces: pieces.iter().map(piece).collect(),
            output: whole.into(),
        }
    }
    /// A text that is not streamed.
    pub fn whole(text: &str) -> Self {
        Self {
            pieces: Vec::new(),
            output: text.into(),
        }
    }
    /// A picture at an address, with one step of progress.
    pub fn image(uri: &str) -> Self {
        let output = MediaRef {
            kind: "image".to_owned(),
            uri: uri.to_owned(),
            ..MediaRef::default()
        };
        Self {
            pieces: vec![Piece::Progress {
                progress: 1,
                total: 2,
                preview: None,
            }],
            output: output.into(),
        }
    }
}

#[derive(Default)]
struct Scripted {
    script: Script,
    host: Host,
    calls: Mutex<Vec<GenerationCall>>,
}
#[async_trait]
impl Services for Scripted {
    async fn generate(
        &self,
        _ctx: &Context,
        call: GenerationCall,
        pieces: &mut dyn Pieces,
    ) -> Result<Generated, NodeError> {
        self.calls.lock().expect("calls").push(call);
        for piece in self.script.pieces.clone() {
            pieces.piece(piece).await?;
        }
        Ok(Generated {
            output: self.script.output.clone(),
            ..Generated::default()
        })
    }
    async fn media_bytes(&self, _ctx: &Context, media: &MediaRef) -> Result<Bytes, NodeError> {
        media.data.clone().ok_or_else(|| NodeError::new("no media"))
    }
    fn host(&self) -> &Host {
        &self.host
    }
    /// Keeps nothing; the reference says what was asked.
    async fn keep(&self, _ctx: &Context, kept: Kept) -> Result<MediaRef, NodeError> {
        let ending = kept.name.rsplit('.').next().unwrap_or_default();
        Ok(MediaRef {
            kind: kept.kind,
            uri: format!("asset://kept.{ending}"),
            mime_type: Some(kept.mime_type),
            ..MediaRef::default()
        })
    }
    async fn models(&self, _ctx: &Context, _capability: &str) -> Result<Vec<Model>, NodeError> {
        Ok(Vec::new())
    }
}

/// One node.
pub(super) struct Node {
    executor: Box<dyn Executor>,
    ctx: Context,
    services: Arc<Scripted>,
    events: mpsc::Receiver<Event>,
}
impl Node {
    pub fn new(node_type: &str) -> Self {
        Self::scripted(node_type, Script::default())
    }
    pub fn scripted(node_type: &str, script: Script) -> Self {
        Self::on(node_type, script, Host::default())
    }
    /// A node that reaches the files of a folder.
    pub fn in_folder(node_type: &str, folder: &std::path::Path) -> Self {
        let host = Host {
            workspace: Some(folder.to_owned()),
            ..Host::default()
        };
        Self::on(node_type, Script::default(), host)
    }
    /// A node on a machine.
    pub fn on(node_type: &str, script: Script, host: Host) -> Self {
        let executor = registry()
            .executor(node_type)
            .unwrap_or_else(|| panic!("no type {node_type}"));
        let services = Arc::new(Scripted {
            script,
            host,
            ..Scripted::default()
        });
        let (sender, events) = mpsc::channel(64);
        let ctx = Context {
            job_id: "j".into(),
            workflow_id: None,
            node_id: "n".into(),
            node_type: node_type.into(),
            node_name: None,
            properties: Arc::default(),
            outputs: Arc::default(),
            invocation: "".into(),
            cancel: tokio_util::sync::CancellationToken::new(),
            notes: NoteSink::new(Arc::default(), sender),
            services: services.clone(),
            ordinal: Arc::new(AtomicU32::new(0)),
            generation_ids: Arc::default(),
        };
        Self {
            executor,
            ctx,
            services,
            events,
        }
    }
    /// Lets the node run commands.
    pub fn allow_commands(&mut self) {
        let host = Host {
            allow_commands: true,
            ..self.services.host.clone()
        };
        self.services = Arc::new(Scripted {
            host,
            ..Scripted::default()
        });
        self.ctx.services = self.services.clone();
    }
    /// Properties that the workflow states.
    pub fn properties(&mut self, properties: Json) {
        self.ctx.properties = Arc::new(map_from_json(properties).expect("a map"));
    }
    pub fn outputs(&mut self, outputs: &[(&str, &str)]) {
        self.ctx.outputs = Arc::new(
            outputs
                .iter()
                .map(|(name, ty)| ((*name).to_owned(), (*ty).into()))
                .collect(),
        );
    }
    /// Defaults of the type as inputs.
    pub fn defaults(&self) -> Json {
        let meta = registry().meta(&self.ctx.node_type).expect("a type").clone();
        let defaults = meta
            .inputs
            .iter()
            .filter_map(|input| Some((input.name.clone(), input.default.clone()?)));
        to_json(&Value::map(defaults.collect()), BytesForm::Tagged)
    }
    pub async fn process(&mut self, inputs: Json) -> Result<Json, NodeError> {
        let out = self
            .executor
            .process(map_from_json(inputs).expect("a map"), &self.ctx)
            .await?;
        Ok(to_json(&out.into(), BytesForm::Tagged))
    }
    /// The frames of one invocation, by way of the family's own code.
    pub async fn frames(&mut self, inputs: Json) -> Result<Vec<Json>, NodeError> {
        let mut frames = Vec::new();
        let inputs = map_from_json(inputs).expect("a map");
        let name = &*self.ctx.node_type;
        let generator = super::models::generator(name)
            .or_else(|| super::control::generator(name))
            .or_else(|| super::document::generator(name))
            .or_else(|| super::files::generator(name))
            .or_else(|| super::markup::generator(name))
            .or_else(|| super::table::generator(name));
        generator
            .expect("a type with frames")
            .generate(inputs, &mut frames, &self.ctx)
            .await?;
        Ok(frames
            .into_iter()
            .map(|frame| to_json(&frame.into(), BytesForm::Tagged))
            .collect())
    }
    /// The one call that was made.
    pub fn call(&self) -> GenerationCall {
        let calls = self.services.calls.lock().expect("calls");
        assert_eq!(calls.len(), 1, "one call");
        calls[0].clone()
    }
    pub fn params(&self) -> Json {
        to_json(&self.call().params.into(), BytesForm::Tagged)
    }
    pub fn calls(&self) -> usize {
        self.services.calls.lock().expect("calls").len()
    }
    /// What the node said: texts of the log, and how far it was.
    pub fn notes(&mut self) -> Vec<String> {
        let mut notes = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            match event {
                Event::Note {
                    note: Note::Log { content, .. },
                    ..
                } => notes.push(content),
                Event::Note {
                    note: Note::Progress { progress, total, .. },
                    ..
                } => {
                    notes.push(format!("progress {progress}/{total}"));
                }
                other => panic!("unexpected {other:?}"),
            }
        }
        notes
    }
}

/// Services that answer every call by a script.
pub(super) fn services(script: Script) -> Arc<dyn Services> {
    Arc::new(Scripted {
        script,
        ..Scripted::default()
    })
}
/// Services on a machine, whose providers say nothing.
pub(super) fn services_on(host: Host) -> Arc<dyn Services> {
    Arc::new(Scripted {
        host,
        ..Scripted::default()
    })
}
/// The result of one invocation of a node.
pub(super) async fn process(node_type: &str, inputs: Json) -> Result<Json, NodeError> {
    Node::new(node_type).process(inputs).await
}
