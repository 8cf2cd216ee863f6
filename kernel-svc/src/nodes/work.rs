//! Shapes of node code that reaches beyond memory: files, the network, or a processor for longer.
//!
//! What takes long, or blocks, runs on a thread of its own, so that no other run waits for it.

use async_trait::async_trait;
use atelier_proto::value::{Map, MediaRef, Value};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use super::{
    args::{Args, missing, one, wrong},
    code::{Compute, Route},
    files::Workspace,
};
use crate::node::{Context, Executor, NodeError};

/// Works that run at once in a process; more wait, and a cancelled run stops waiting.
static SLOTS: Semaphore = Semaphore::const_new(8);
/// Largest content that a node reads whole, in bytes.
pub(super) const MAX_CONTENT: usize = 64 * 1024 * 1024;

/// Runs work on a thread for blocking work. When the run is cancelled its result is not awaited; the work itself is bounded
/// by the size of what it was given.
pub(super) async fn blocking<T: Send + 'static>(
    ctx: &Context,
    work: impl FnOnce() -> Result<T, NodeError> + Send + 'static,
) -> Result<T, NodeError> {
    let cancelled = ctx.cancel.cancelled();
    let done = async {
        let slot = SLOTS
            .acquire()
            .await
            .map_err(|_| NodeError::new("the process is shutting down"))?;
        let work = move || {
            let result = work();
            drop(slot);
            result
        };
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|_| NodeError::new("the content cannot be processed: the work broke off"))?
    };
    tokio::select! {
        biased;
        () = cancelled => Err(NodeError::cancelled()),
        done = done => done,
    }
}

/// A node that computes for longer.
#[derive(Clone, Copy)]
pub(super) struct Heavy(pub Route);
#[async_trait]
impl Executor for Heavy {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let route = self.0;
        blocking(ctx, move || route(Args(&inputs))).await
    }
}

/// A node that computes one value for longer.
#[derive(Clone, Copy)]
pub(super) struct Long(pub Compute);
#[async_trait]
impl Executor for Long {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let compute = self.0;
        blocking(ctx, move || Ok(one("output", compute(Args(&inputs))?))).await
    }
}

/// Inputs and the folder in, values by handle out.
pub(super) type InFolder = fn(Args<'_>, &Workspace) -> Result<Map, NodeError>;
/// A node that works with files.
#[derive(Clone, Copy)]
pub(super) struct Filed(pub InFolder);
#[async_trait]
impl Executor for Filed {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let work = self.0;
        let workspace = Workspace::of(ctx.services.host());
        blocking(ctx, move || work(Args(&inputs), &workspace?)).await
    }
}

/// Code that waits for something: the network, stored media, files.
pub(super) type Reach = for<'a> fn(Args<'a>, &'a Context) -> BoxFuture<'a, Result<Map, NodeError>>;
/// A node whose code waits.
#[derive(Clone, Copy)]
pub(super) struct Reaching(pub Reach);
#[async_trait]
impl Executor for Reaching {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        self.0(Args(&inputs), ctx).await
    }
}

/// The reference that an input holds, also written as an address.
pub(super) fn reference(args: Args<'_>, name: &str, kind: &str) -> Result<MediaRef, NodeError> {
    let empty = || missing(name, "a reference with content is needed");
    match args.0.get(name) {
        None | Some(Value::Null) => Err(empty()),
        Some(Value::Media(media)) => {
            let media = media.as_ref().clone();
            if media.uri.is_empty() && media.asset_id.is_none() && media.data.is_none() {
                return Err(empty());
            }
            Ok(media)
        }
        Some(Value::Str(text)) if text.trim().is_empty() => Err(empty()),
        Some(Value::Str(address)) => Ok(MediaRef {
            kind: kind.to_owned(),
            uri: address.trim().to_owned(),
            ..MediaRef::default()
        }),
        Some(Value::Bytes(bytes)) => Ok(MediaRef {
            kind: kind.to_owned(),
            data: Some(bytes.clone()),
            ..MediaRef::default()
        }),
        Some(other) => Err(wrong(name, kind, other)),
    }
}
/// The content of an input that is a reference.
pub(super) async fn content(
    args: Args<'_>,
    name: &str,
    kind: &str,
    ctx: &Context,
) -> Result<Bytes, NodeError> {
    let media = reference(args, name, kind)?;
    let bytes = media_bytes(&media, ctx).await.map_err(|error| NodeError {
        message: format!("the input `{name}` cannot be read: {}", error.message),
        ..error
    })?;
    if bytes.len() > MAX_CONTENT {
        let text = format!("the input `{name}` is larger than {MAX_CONTENT} bytes");
        return Err(NodeError::new(text).code("input.size"));
    }
    Ok(bytes)
}
/// The bytes of a reference: inline or stored, a file of the workspace, or an address on the network.
async fn media_bytes(media: &MediaRef, ctx: &Context) -> Result<Bytes, NodeError> {
    let elsewhere = media.data.is_none() && media.asset_id.is_none();
    if elsewhere && let Some(path) = media.uri.strip_prefix("file://") {
        let workspace = Workspace::of(ctx.services.host());
        let path = path.to_owned();
        return blocking(ctx, move || {
            workspace?.read("uri", &path, MAX_CONTENT).map(Bytes::from)
        })
        .await;
    }
    if elsewhere && (media.uri.starts_with("http://") || media.uri.starts_with("https://")) {
        return super::http::fetch(ctx, &media.uri).await;
    }
    ctx.services.media_bytes(ctx, media).await
}
