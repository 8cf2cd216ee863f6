//! One node without an engine: a scripted provider, its frames, and what it said.

use std::sync::{Arc, Mutex, atomic::AtomicU32};

use async_trait::async_trait;
use atelier_proto::{
    provider::v1::Model,
    value::{BytesForm, Map, MediaRef, Value, from_json, map_from_json, to_json},
};
use bytes::Bytes;
use serde_json::Value as Json;

use super::registry;
use crate::{
    event::{Event, EventReceiver, Note, NoteSink, channel},
    host::Host,
    node::{
        Context, Controls, Executor, Generated, GenerationCall, Kept, NodeError, Piece, Pieces, Services,
    },
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
    /// A result of any form.
    pub fn value(output: Json) -> Self {
        Self {
            pieces: Vec::new(),
            output: from_json(output),
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
    /// One for each call; the last one for all further ones.
    scripts: Vec<Script>,
    host: Host,
    calls: Mutex<Vec<GenerationCall>>,
}

/// What a controlled node answers.
type Answer = (String, Result<Json, String>);
/// What controlled nodes answer, and what they were called with.
#[derive(Default)]
pub(super) struct Controlled {
    answers: Vec<Answer>,
    calls: Mutex<Vec<(String, Json)>>,
}
#[async_trait]
impl Controls for Controlled {
    async fn call(&self, node: &str, properties: Map) -> Result<Map, String> {
        let properties = to_json(&properties.into(), BytesForm::Tagged);
        self.calls
            .lock()
            .expect("calls")
            .push((node.to_owned(), properties));
        let answer = self.answers.iter().find(|(id, _)| id == node);
        let (_, answer) = answer.ok_or_else(|| format!("no node {node}"))?;
        answer.clone().map(|json| map_from_json(json).expect("a map"))
    }
}
#[async_trait]
impl Services for Scripted {
    async fn generate(
        &self,
        _ctx: &Context,
        call: GenerationCall,
        pieces: &mut dyn Pieces,
    ) -> Result<Generated, NodeError> {
        let script = {
            let mut calls = self.calls.lock().expect("calls");
            calls.push(call);
            let at = (calls.len() - 1).min(self.scripts.len() - 1);
            self.scripts[at].clone()
        };
        for piece in script.pieces.clone() {
            pieces.piece(piece).await?;
        }
        Ok(Generated {
            output: script.output.clone(),
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
    controlled: Arc<Controlled>,
    events: EventReceiver,
}
impl Node {
    pub fn new(node_type: &str) -> Self {
        Self::scripted(node_type, Script::default())
    }
    pub fn scripted(node_type: &str, script: Script) -> Self {
        Self::scripts(node_type, [script])
    }
    pub fn scripts(node_type: &str, scripts: impl IntoIterator<Item = Script>) -> Self {
        Self::on(node_type, scripts, Host::default())
    }
    /// A node that reaches the files of a folder.
    pub fn in_folder(node_type: &str, folder: &std::path::Path) -> Self {
        let host = Host {
            workspace: Some(folder.to_owned()),
            ..Host::default()
        };
        Self::on(node_type, [Script::default()], host)
    }
    /// A node on a machine.
    pub fn on(node_type: &str, scripts: impl IntoIterator<Item = Script>, host: Host) -> Self {
        let executor = registry()
            .executor(node_type)
            .unwrap_or_else(|| panic!("no type {node_type}"));
        let services = Arc::new(Scripted {
            scripts: scripts.into_iter().collect(),
            host,
            ..Scripted::default()
        });
        let controlled = Arc::new(Controlled::default());
        let (sender, events) = channel(64);
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
            controls: controlled.clone(),
            ordinal: Arc::new(AtomicU32::new(0)),
            generation_ids: Arc::default(),
            resuming: None,
            variables: Arc::default(),
            events: Arc::default(),
            longest_wait: None,
            clock: atelier_common::clock::Clock::default(),
        };
        Self {
            executor,
            ctx,
            services,
            controlled,
            events,
        }
    }
    /// Answers of controlled nodes.
    pub fn controls(&mut self, answers: &[(&str, Result<Json, String>)]) {
        let answers = answers
            .iter()
            .map(|(id, answer)| ((*id).to_owned(), answer.clone()));
        self.controlled = Arc::new(Controlled {
            answers: answers.collect(),
            ..Controlled::default()
        });
        self.ctx.controls = self.controlled.clone();
    }
    /// What controlled nodes were called with.
    pub fn controlled(&self) -> Vec<(String, Json)> {
        self.controlled.calls.lock().expect("calls").clone()
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
                .map(|(name, ty)| ((*name).into(), (*ty).into()))
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
    /// Parameters of all calls.
    pub fn all_params(&self) -> Vec<Json> {
        let calls = self.services.calls.lock().expect("calls");
        calls
            .iter()
            .map(|call| to_json(&call.params.clone().into(), BytesForm::Tagged))
            .collect()
    }
    pub fn calls(&self) -> usize {
        self.services.calls.lock().expect("calls").len()
    }
    /// What the node said: texts of the log, and how far it was.
    pub fn notes(&mut self) -> Vec<String> {
        let mut notes = Vec::new();
        while let Some(event) = self.events.try_recv() {
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
        scripts: vec![script],
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
