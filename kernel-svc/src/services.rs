//! What node code reaches of other services, as the run's owner: providers through the seam, stored media.

mod keep;

use std::{
    sync::{Arc, PoisonError, atomic::Ordering},
    time::Duration,
};

use async_trait::async_trait;
use atelier_common::{
    backoff::Exponential,
    channel::Transport,
    identity::{Caller, Signer},
};
use atelier_proto::{
    asset::v1::{
        DownloadAssetRequest, asset_service_client::AssetServiceClient, download_asset_response::Part,
    },
    common::v1::{Origin, Surface},
    kernel::v1::Severity,
    provider::v1::{
        CancelGenerationRequest, ListModelsRequest, Model, Persist, RunGenerationRequest,
        RunGenerationResponse, provider_service_client::ProviderServiceClient,
        run_generation_response::Event as Said,
    },
    reason,
    tracker::v1::Generation,
    value::{Map, MediaRef, Value},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::{Bytes, BytesMut};
use tonic::{Code, Request, Status, Streaming};
use tonic_types::StatusExt;

use crate::{
    event::Note,
    host::Host,
    jobs::Inner,
    node::{
        Context, Generated, GenerationCall, InnerRun, Kept, NodeError, NodeErrorKind, Piece, Pieces, Services,
    },
};

/// Largest media that a node may read whole, in bytes.
const MAX_MEDIA: usize = 256 * 1024 * 1024;

/// Longest idempotency key that the seam takes, in bytes.
const MAX_KEY: usize = 512;
/// Pauses before a call whose connection was lost is asked for again; all of them are about three minutes.
const REATTACH: u32 = 40;

/// Clients of the services that the kernel calls.
#[derive(Clone)]
pub struct Clients {
    /// The seam to providers.
    pub providers: ProviderServiceClient<Transport>,
    /// Stored media.
    pub assets: AssetServiceClient<Transport>,
    /// Signs for the run's owner.
    pub signer: Signer,
    /// This machine and the network, for nodes.
    pub host: Arc<Host>,
}
/// The services as one run sees them.
pub struct JobServices {
    clients: Clients,
    caller: Caller,
    host: Host,
    scratch: Option<std::path::PathBuf>,
    inner: Option<Inner>,
}
impl JobServices {
    /// The services for one owner.
    #[must_use]
    pub fn new(clients: Clients, caller: Caller) -> Self {
        let host = clients.host.of(&caller);
        Self {
            clients,
            caller,
            host,
            scratch: None,
            inner: None,
        }
    }
    /// The folder for temporary files.
    #[must_use]
    pub fn with_scratch(mut self, scratch: std::path::PathBuf) -> Self {
        self.scratch = Some(scratch);
        self
    }
    /// Lets nodes run workflows inside of the run.
    #[must_use]
    pub fn with_inner(mut self, inner: Inner) -> Self {
        self.inner = Some(inner);
        self
    }
    fn signed<T>(&self, message: T) -> Request<T> {
        self.clients.signer.attach(Request::new(message), &self.caller)
    }
    /// Reads a call to its end. A cancelled run cancels the generation and goes on reading: the end tells what was paid.
    async fn follow(
        &self,
        ctx: &Context,
        mut stream: Streaming<RunGenerationResponse>,
        seen: &mut Seen,
        pieces: &mut dyn Pieces,
    ) -> Result<(), Lost> {
        let mut cancel_sent = false;
        loop {
            let next = tokio::select! {
                biased;
                () = ctx.cancel.cancelled(), if !cancel_sent && seen.generation.is_some() => {
                    cancel_sent = true;
                    self.cancel(&seen.id()).await;
                    continue;
                }
                next = stream.message() => next,
            };
            match next {
                Ok(Some(RunGenerationResponse { event: Some(said) })) => {
                    seen.take(ctx, said, pieces)
                        .await
                        .map_err(|error| Lost::ByNode(Box::new(error)))?;
                }
                Ok(Some(RunGenerationResponse { event: None })) => {}
                Ok(None) => return Ok(()),
                Err(status) => return Err(Lost::Call(status)),
            }
        }
    }
    async fn cancel(&self, generation_id: &str) {
        let request = self.signed(CancelGenerationRequest {
            generation_id: generation_id.to_owned(),
            job_id: None,
        });
        if let Err(status) = self.clients.providers.clone().cancel_generation(request).await {
            tracing::warn!(generation_id, code = ?status.code(), "a generation could not be cancelled");
        }
    }
}
/// Why a call is not read to its end.
enum Lost {
    /// The node cannot take what the call says.
    ByNode(Box<NodeError>),
    /// It failed, or its connection broke.
    Call(Status),
}
/// Whether nothing was said about the call itself: the seam went away, or is going down. The row goes on without it.
fn is_broken(status: &Status) -> bool {
    match status.get_details_error_info() {
        Some(info) => info.reason == reason::DRAINING,
        None => matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Internal),
    }
}
/// What a call said so far.
#[derive(Default)]
struct Seen {
    /// The provider that the node asked; empty: any.
    asked: String,
    generation: Option<Generation>,
    output: Option<Value>,
}
impl Seen {
    fn id(&self) -> String {
        self.generation
            .as_ref()
            .map(|generation| generation.generation_id.clone())
            .unwrap_or_default()
    }
    async fn take(&mut self, ctx: &Context, said: Said, pieces: &mut dyn Pieces) -> Result<(), NodeError> {
        match said {
            Said::Prediction(prediction) => {
                let Some(generation) = prediction.generation else {
                    return Ok(());
                };
                if self.generation.is_none() {
                    remember(ctx, &generation.generation_id);
                    self.tell_stand_in(ctx, &generation).await;
                }
                ctx.note(Note::Prediction(Box::new(generation.clone()))).await;
                self.generation = Some(generation);
                Ok(())
            }
            Said::Progress(progress) => {
                let preview = progress
                    .preview
                    .and_then(|preview| MediaRef::try_from(preview).ok());
                pieces
                    .piece(Piece::Progress {
                        progress: progress.progress,
                        total: progress.total,
                        preview,
                    })
                    .await
            }
            Said::Chunk(chunk) if chunk.content_type == "audio" => {
                pieces
                    .piece(Piece::Audio {
                        data: chunk.data,
                        done: chunk.done,
                    })
                    .await
            }
            Said::Chunk(chunk) => {
                pieces
                    .piece(Piece::Text {
                        text: chunk.text,
                        done: chunk.done,
                        thinking: chunk.thinking,
                    })
                    .await
            }
            Said::Result(result) => {
                let output = result.output.map(Value::try_from).transpose();
                self.output =
                    output.map_err(|error| NodeError::new(format!("the result is no value: {error}")))?;
                Ok(())
            }
        }
    }
    /// A provider that is not here was replaced: whoever looks at the run must know.
    async fn tell_stand_in(&self, ctx: &Context, generation: &Generation) {
        if !self.asked.is_empty() && self.asked != generation.provider {
            let content = format!(
                "no provider {} is configured: {} stands in",
                self.asked, generation.provider
            );
            ctx.note(Note::Log {
                content,
                severity: Severity::Warning,
            })
            .await;
        }
    }
    fn end(self, ctx: &Context) -> Result<Generated, NodeError> {
        let generation_id = self.id();
        match self.output {
            Some(output) => Ok(Generated {
                generation_id,
                output,
                generation: self.generation.map(Box::new),
            }),
            None if ctx.cancel.is_cancelled() => Err(NodeError::cancelled()),
            None => Err(NodeError::new("the provider answered without a result")),
        }
    }
}
fn remember(ctx: &Context, generation_id: &str) {
    ctx.generation_ids
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(generation_id.to_owned());
}
/// A failed call as an error of the node. A generation that somebody cancelled by itself is lost like one that failed.
fn failure(status: &Status, generation: Option<&Generation>, run_cancelled: bool) -> NodeError {
    let info = status.get_details_error_info();
    let metadata = |key: &str| info.as_ref().and_then(|info| info.metadata.get(key).cloned());
    let reason = info.as_ref().map(|info| info.reason.clone()).unwrap_or_default();
    let class = metadata("class").unwrap_or_default();
    let kind = match (status.code(), reason.as_str()) {
        (Code::Cancelled, _) if run_cancelled => NodeErrorKind::Cancelled,
        (_, "CONTENT_FILTERED") => NodeErrorKind::Refused,
        // Without a key or credit every other item would fail as well.
        _ if generation.is_some() && !matches!(class.as_str(), "auth" | "quota") => NodeErrorKind::Item,
        _ => NodeErrorKind::Failed,
    };
    let code = match reason.as_str() {
        "MISSING_CREDENTIAL" => Some("provider_auth".to_owned()),
        "" => None,
        other => Some(other.to_ascii_lowercase()),
    };
    NodeError {
        message: status.message().to_owned(),
        code,
        provider: metadata("provider").or_else(|| generation.map(|generation| generation.provider.clone())),
        secret_key: metadata("secret_key"),
        runtime_package: None,
        generation_id: metadata("generation_id")
            .or_else(|| generation.map(|generation| generation.generation_id.clone())),
        kind,
    }
}

#[async_trait]
impl Services for JobServices {
    async fn generate(
        &self,
        ctx: &Context,
        call: GenerationCall,
        pieces: &mut dyn Pieces,
    ) -> Result<Generated, NodeError> {
        if ctx.cancel.is_cancelled() {
            return Err(NodeError::cancelled());
        }
        let ordinal = ctx.ordinal.fetch_add(1, Ordering::Relaxed);
        let key = format!("inv:{}:{}:{}:{ordinal}", ctx.job_id, ctx.node_id, ctx.invocation);
        // Ids of nodes are as long as their author likes, and iterations lie within each other.
        let key = if key.len() > MAX_KEY {
            format!("inv:{}", blake3::hash(key.as_bytes()).to_hex())
        } else {
            key
        };
        let GenerationCall {
            provider,
            model,
            capability,
            params,
            persist,
        } = call;
        let mut seen = Seen {
            asked: provider.clone(),
            ..Seen::default()
        };
        let request = RunGenerationRequest {
            provider,
            model,
            capability,
            params: Some((&params).into()),
            origin: Some(Origin {
                surface: Surface::Workflow.into(),
                job_id: Some(ctx.job_id.to_string()),
                node_id: Some(ctx.node_id.to_string()),
                node_type: Some(ctx.node_type.to_string()),
                invocation_id: Some(format!("{}:{}:{}", ctx.job_id, ctx.node_id, ctx.invocation)),
                workflow_id: ctx.workflow_id.as_ref().map(ToString::to_string),
                ..Origin::default()
            }),
            idempotency_key: Some(key),
            persist: persist.then(Persist::default),
            ..RunGenerationRequest::default()
        };
        let mut pauses = Exponential::new(Duration::from_millis(200), Duration::from_secs(5))
            .pauses(REATTACH)
            .iter();
        loop {
            let mut providers = self.clients.providers.clone();
            let status = match providers.run_generation(self.signed(request.clone())).await {
                Ok(stream) => match self.follow(ctx, stream.into_inner(), &mut seen, pieces).await {
                    Ok(()) => return seen.end(ctx),
                    Err(Lost::ByNode(error)) => return Err(*error),
                    Err(Lost::Call(status)) => status,
                },
                Err(status) => status,
            };
            let pause = pauses.next().filter(|_| is_broken(&status));
            let Some(pause) = pause else {
                return Err(failure(
                    &status,
                    seen.generation.as_ref(),
                    ctx.cancel.is_cancelled(),
                ));
            };
            tracing::warn!(
                code = ?status.code(),
                "a call to a provider lost its connection and is asked for again by its key"
            );
            // Whoever is cancelled meanwhile asks at once: only the seam can say what was paid.
            let _ = ctx.cancel.run_until_cancelled(tokio::time::sleep(pause)).await;
            if ctx.cancel.is_cancelled() && seen.generation.is_none() {
                return Err(NodeError::cancelled());
            }
        }
    }
    async fn media_bytes(&self, _ctx: &Context, media: &MediaRef) -> Result<Bytes, NodeError> {
        if let Some(data) = &media.data {
            return Ok(data.clone());
        }
        if let Some(rest) = media.uri.strip_prefix("data:") {
            let (_, payload) = rest
                .split_once("base64,")
                .ok_or_else(|| NodeError::new("a data URI is not base64"))?;
            let bytes = STANDARD
                .decode(payload)
                .map_err(|_| NodeError::new("a data URI is not base64"))?;
            return Ok(bytes.into());
        }
        let id = media.asset_id.clone().or_else(|| asset_of_uri(&media.uri));
        let asset_id =
            id.ok_or_else(|| NodeError::new("a media reference names no stored asset and has no bytes"))?;
        let request = self.signed(DownloadAssetRequest {
            asset_id,
            offset: None,
            length: None,
        });
        let lost =
            |status: Status| NodeError::new(format!("a stored asset cannot be read: {}", status.message()));
        let mut parts = self
            .clients
            .assets
            .clone()
            .download_asset(request)
            .await
            .map_err(lost)?
            .into_inner();
        let mut bytes = BytesMut::new();
        while let Some(part) = parts.message().await.map_err(lost)? {
            if let Some(Part::Chunk(chunk)) = part.part {
                if bytes.len() + chunk.len() > MAX_MEDIA {
                    return Err(NodeError::new("a stored asset is too large to read whole"));
                }
                bytes.extend_from_slice(&chunk);
            }
        }
        Ok(bytes.freeze())
    }
    async fn run_inside(&self, ctx: &Context, inner: InnerRun) -> Result<Map, NodeError> {
        let Some(runs) = &self.inner else {
            return Err(NodeError::new("workflows cannot be run from here"));
        };
        let ordinal = ctx.ordinal.fetch_add(1, Ordering::Relaxed);
        runs.run(&self.caller, ctx, ordinal, inner).await
    }
    fn host(&self) -> &Host {
        &self.host
    }
    async fn keep(&self, ctx: &Context, kept: Kept) -> Result<MediaRef, NodeError> {
        keep::keep(self, ctx, kept).await
    }
    async fn models(&self, _ctx: &Context, capability: &str) -> Result<Vec<Model>, NodeError> {
        let request = ListModelsRequest {
            provider: None,
            capability: Some(capability.to_owned()),
        };
        let response = self
            .clients
            .providers
            .clone()
            .list_models(self.signed(request))
            .await;
        response
            .map(|response| response.into_inner().models)
            .map_err(|status| NodeError::new(format!("models cannot be listed: {}", status.message())))
    }
    fn scratch(&self) -> std::path::PathBuf {
        self.scratch.clone().unwrap_or_else(std::env::temp_dir)
    }
}
/// The asset that an `asset://ID.ext` names.
fn asset_of_uri(uri: &str) -> Option<String> {
    let id = uri.strip_prefix("asset://")?;
    Some(id.split('.').next().unwrap_or(id).to_owned())
}
