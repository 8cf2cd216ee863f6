//! For tests of media types: one node or a graph with a workspace folder, and pictures as pixels.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, atomic::AtomicU32},
};

use async_trait::async_trait;
use atelier_proto::{
    provider::v1::Model,
    value::{Map, MediaRef, Value, from_json},
};
use bytes::Bytes;
use image::RgbaImage;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use super::{image::decode, registry};
use crate::{
    event::{Event, NoteSink},
    graph::load::{LoadOptions, load},
    host::Host,
    node::{Context, Generated, GenerationCall, Kept, NodeError, Pieces, Services},
    run::{RunOptions, RunResult, RunSpec, run},
};

/// A workspace, and assets in memory.
#[derive(Default)]
pub(super) struct Local {
    pub workspace: Option<PathBuf>,
    pub saved: Mutex<Vec<Kept>>,
    /// Where programs are; `None`: where the system looks for them.
    pub programs: Option<PathBuf>,
    /// The machine with that workspace, made when it is asked for.
    pub host: OnceLock<Host>,
}
#[async_trait]
impl Services for Local {
    async fn generate(
        &self,
        _: &Context,
        _: GenerationCall,
        _: &mut dyn Pieces,
    ) -> Result<Generated, NodeError> {
        Err(NodeError::new("no provider"))
    }
    async fn media_bytes(&self, _ctx: &Context, media: &MediaRef) -> Result<Bytes, NodeError> {
        let saved = self.saved.lock().expect("assets");
        let found = saved
            .iter()
            .find(|asset| media.uri == format!("asset://{}", asset.name));
        found
            .map(|asset| asset.bytes.clone())
            .ok_or_else(|| NodeError::new("not found"))
    }
    async fn models(&self, _ctx: &Context, _capability: &str) -> Result<Vec<Model>, NodeError> {
        Ok(Vec::new())
    }
    async fn keep(&self, _ctx: &Context, kept: Kept) -> Result<MediaRef, NodeError> {
        let media = MediaRef {
            kind: kept.kind.clone(),
            uri: format!("asset://{}", kept.name),
            asset_id: Some("a1".to_owned()),
            mime_type: Some(kept.mime_type.clone()),
            ..MediaRef::default()
        };
        self.saved.lock().expect("assets").push(kept);
        Ok(media)
    }
    fn host(&self) -> &Host {
        self.host.get_or_init(|| Host {
            workspace: self.workspace.clone(),
            ..Host::default()
        })
    }
    fn program(&self, name: &str) -> PathBuf {
        self.programs
            .as_ref()
            .map_or_else(|| name.into(), |folder| folder.join(name))
    }
}
/// What a node of a type sees.
pub(super) fn context(node_type: &str, services: Arc<Local>) -> Context {
    let (sender, events) = crate::event::channel(64);
    // Notes that nobody reads must not block.
    drop(events);
    Context {
        job_id: "j".into(),
        workflow_id: None,
        node_id: "n".into(),
        node_type: node_type.into(),
        node_name: None,
        properties: Arc::default(),
        outputs: Arc::default(),
        invocation: "".into(),
        cancel: CancellationToken::new(),
        notes: NoteSink::new(Arc::default(), sender),
        services,
        ordinal: Arc::new(AtomicU32::new(0)),
        generation_ids: Arc::default(),
        resuming: None,
        variables: Arc::default(),
        events: Arc::default(),
        controls: Arc::new(super::testing::Controlled::default()),
        longest_wait: None,
        clock: atelier_common::clock::Clock::default(),
    }
}
/// One invocation.
pub(super) async fn call(ctx: &Context, inputs: Map) -> Result<Map, NodeError> {
    let mut code = registry()
        .executor(&ctx.node_type)
        .unwrap_or_else(|| panic!("no type {}", ctx.node_type));
    code.process(inputs, ctx).await
}
/// One invocation: JSON, and media beside it.
pub(super) async fn node(node_type: &str, params: Json, media: &[(&str, &Value)]) -> Result<Map, NodeError> {
    call(&context(node_type, Arc::default()), inputs(params, media)).await
}
pub(super) fn inputs(params: Json, media: &[(&str, &Value)]) -> Map {
    let Value::Map(map) = from_json(params) else {
        panic!("an object")
    };
    let mut map = map.as_ref().clone();
    map.extend(
        media
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).clone())),
    );
    map
}
/// A picture of pixels in rows.
pub(super) fn picture(width: u32, pixels: &[[u8; 4]]) -> Value {
    let height = u32::try_from(pixels.len()).expect("small") / width;
    let raw = pixels.iter().flatten().copied().collect();
    super::image::encode(&RgbaImage::from_raw(width, height, raw).expect("a picture")).expect("PNG")
}
/// A grey, opaque picture.
pub(super) fn grey(width: u32, values: &[u8]) -> Value {
    let pixels: Vec<[u8; 4]> = values.iter().map(|value| [*value, *value, *value, 255]).collect();
    picture(width, &pixels)
}
/// Pixels of a picture, and its width.
pub(super) fn pixels(value: &Value) -> (u32, Vec<[u8; 4]>) {
    let media = value.as_media().unwrap_or_else(|| panic!("media, got {value:?}"));
    assert_eq!(
        (media.kind.as_str(), media.mime_type.as_deref()),
        ("image", Some("image/png"))
    );
    let picture = decode("test", media.data.as_ref().expect("bytes")).expect("a picture");
    (picture.width(), picture.pixels().map(|pixel| pixel.0).collect())
}
/// The red of each pixel.
pub(super) fn reds(value: &Value) -> Vec<u8> {
    pixels(value).1.iter().map(|pixel| pixel[0]).collect()
}

/// Runs a graph of nodes `[id, type, properties]` and edges `source.handle -> target.handle`.
pub(super) async fn graph(
    nodes: Json,
    edges: &[&str],
    params: Map,
    services: Arc<Local>,
) -> (RunResult, Vec<(String, Map)>) {
    let nodes: Vec<Json> = nodes
        .as_array()
        .expect("a list")
        .iter()
        .map(|node| json!({"id": node[0], "type": node[1], "properties": node[2]}))
        .collect();
    let end = |text: &str| {
        text.split_once('.')
            .map(|(node, handle)| (node.to_owned(), handle.to_owned()))
            .expect("an end")
    };
    let edges: Vec<Json> = edges
        .iter()
        .map(|edge| {
            let (from, to) = edge.split_once(" -> ").expect("an edge");
            let ((source, out), (target, handle)) = (end(from), end(to));
            json!({"source": source, "sourceHandle": out, "target": target, "targetHandle": handle})
        })
        .collect();
    let file = json!({"nodes": nodes, "edges": edges});
    run_file(&file, params, services).await
}
/// What a run gave by a name, once.
pub(super) fn only(result: &RunResult, name: &str) -> Value {
    let all = result
        .outputs
        .get(name)
        .and_then(Value::as_list)
        .unwrap_or_default();
    assert_eq!(all.len(), 1, "{name}: {all:?}");
    all.first().cloned().unwrap_or_default()
}
/// Runs a workflow file.
pub(super) async fn run_file(
    file: &Json,
    params: Map,
    services: Arc<Local>,
) -> (RunResult, Vec<(String, Map)>) {
    let registry = registry();
    let graph = load(file, &registry, &LoadOptions::default()).expect("a graph");
    let (events, mut said) = crate::event::channel(64);
    let spec = RunSpec {
        job_id: "j".into(),
        workflow_id: None,
        graph,
        params,
        options: RunOptions::default(),
        registry,
        services,
        events,
        cancel: CancellationToken::new(),
        probe: None,
        journal: None,
        trigger: None,
        resume: std::collections::HashMap::new(),
    };
    let listen = async {
        let mut artifacts = Vec::new();
        while let Some(event) = said.recv().await {
            if let Event::Artifact { node, outputs, .. } = event {
                artifacts.push((node.id.to_string(), (*outputs).clone()));
            }
        }
        artifacts
    };
    tokio::join!(run(spec), listen)
}
