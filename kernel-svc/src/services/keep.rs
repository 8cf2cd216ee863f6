//! Keeping what a node wrote as an asset.

use std::sync::atomic::Ordering;

use atelier_proto::{
    asset::v1::{UploadAssetRequest, UploadHeader, upload_asset_request::Part},
    value::MediaRef,
};
use bytes::Bytes;
use tonic::Status;

use super::JobServices;
use crate::node::{Context, Kept, NodeError};

/// Size of one message of an upload, in bytes.
const CHUNK: usize = 64 * 1024;

/// Uploads under a key of the invocation, so that a run that is driven again keeps nothing twice.
pub(super) async fn keep(services: &JobServices, ctx: &Context, kept: Kept) -> Result<MediaRef, NodeError> {
    let Kept {
        kind,
        name,
        mime_type,
        bytes,
    } = kept;
    let ordinal = ctx.ordinal.fetch_add(1, Ordering::Relaxed);
    let header = UploadHeader {
        name: (!name.is_empty()).then_some(name),
        content_type: (!mime_type.is_empty()).then_some(mime_type),
        idempotency_key: Some(format!(
            "keep:{}:{}:{}:{ordinal}",
            ctx.job_id, ctx.node_id, ctx.invocation
        )),
        job_id: Some(ctx.job_id.to_string()),
        node_id: Some(ctx.node_id.to_string()),
        workflow_id: ctx.workflow_id.as_ref().map(ToString::to_string),
        ..UploadHeader::default()
    };
    let parts = std::iter::once(Part::Header(header)).chain(chunks(bytes).into_iter().map(Part::Chunk));
    let messages: Vec<_> = parts
        .map(|part| UploadAssetRequest { part: Some(part) })
        .collect();
    let request = services.signed(tokio_stream::iter(messages));
    let lost = |status: Status| NodeError::new(format!("an asset cannot be kept: {}", status.message()));
    let response = services.clients.assets.clone().upload_asset(request).await;
    let asset = response.map_err(lost)?.into_inner().asset.unwrap_or_default();
    Ok(MediaRef {
        kind,
        uri: asset.uri,
        asset_id: Some(asset.asset_id),
        mime_type: Some(asset.content_type),
        ..MediaRef::default()
    })
}
/// Pieces that share the memory of the whole.
fn chunks(mut bytes: Bytes) -> Vec<Bytes> {
    let mut chunks = Vec::new();
    while !bytes.is_empty() {
        chunks.push(bytes.split_to(bytes.len().min(CHUNK)));
    }
    chunks
}
