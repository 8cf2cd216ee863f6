//! Takes an upload piece by piece.
//!
//! The bytes are read in the call itself: a client that goes away takes them along, and nothing is left. Only when the
//! last one is there, the rest is done whether or not somebody waits for it.

use std::sync::Arc;

use atelier_common::failpoint;
use atelier_common::identity::Caller;
use atelier_proto::asset::v1::UploadAssetRequest;
use atelier_proto::asset::v1::upload_asset_request::Part;
use tonic::{Status, Streaming};

use super::{Parts, convert};
use crate::assets::upload::Upload;
use crate::blobs::Writer;
use crate::commit::Committer;
use crate::entity::asset::Model;
use crate::error::Error;
use crate::metrics::UPLOADED;

/// Largest piece that is taken; the contract asks for 64 KiB.
const MAX_PIECE_BYTES: usize = 4 * 1024 * 1024;

/// Reads an upload and makes its asset; false when it was made before. Cancel safe: dropped, it leaves nothing or all.
pub async fn receive(
    parts: &Arc<Parts>,
    caller: Caller,
    mut pieces: Streaming<UploadAssetRequest>,
) -> Result<(Model, bool), Status> {
    let Some(Part::Header(header)) = pieces.message().await?.and_then(|first| first.part) else {
        return Err(Error::invalid("header", "must come first").into());
    };
    let upload = convert::upload(header)?;
    let committer = &parts.committer;
    if let Some(key) = &upload.idempotency_key
        && let Some(row) = committer.rows.by_key(&caller, key).await?
    {
        drain(pieces, parts.max_asset_bytes).await?;
        return Ok((row, false));
    }
    let mut writer = committer.blobs.writer(parts.max_asset_bytes);
    while let Some(bytes) = next(&mut pieces).await? {
        writer.write(&bytes).await?;
    }
    // A client that has reset the call looks like one that has sent everything. Whoever serves the call finds the reset
    // when the handler waits, and drops it then; so it waits once before half an asset is taken for a whole one.
    tokio::task::yield_now().await;
    let work = finish(committer.clone(), caller, upload, writer);
    Ok(parts
        .tasks
        .spawn("finish upload", work)
        .await
        .map_err(Error::Died)??)
}

async fn finish(
    committer: Committer,
    caller: Caller,
    upload: Upload,
    writer: Writer,
) -> Result<(Model, bool), Error> {
    let blob = writer.finish().await?;
    failpoint!("asset.upload.before_row", Error::Injected);
    let row = upload.row(&caller, &committer.clock, &blob)?;
    let id = row.id.clone();
    let row = committer.rows.create(row).await?;
    let created = row.id == id;
    if created {
        metrics::counter!(UPLOADED).increment(blob.size);
    }
    Ok((row, created))
}

/// The next bytes; `None` at the end.
async fn next(pieces: &mut Streaming<UploadAssetRequest>) -> Result<Option<bytes::Bytes>, Status> {
    match pieces.message().await? {
        None => Ok(None),
        Some(UploadAssetRequest {
            part: Some(Part::Chunk(bytes)),
        }) if bytes.len() <= MAX_PIECE_BYTES => Ok(Some(bytes)),
        Some(UploadAssetRequest {
            part: Some(Part::Chunk(_)),
        }) => Err(Error::invalid("chunk", "is larger than 4 MiB").into()),
        Some(UploadAssetRequest {
            part: Some(Part::Header(_)),
        }) => Err(Error::invalid("header", "must come once").into()),
        Some(UploadAssetRequest { part: None }) => Err(Error::invalid("part", "must be set").into()),
    }
}

/// Reads and forgets the bytes of an upload whose answer is known, so that the client sees the answer and no reset.
async fn drain(mut pieces: Streaming<UploadAssetRequest>, limit: u64) -> Result<(), Status> {
    let mut size = 0_u64;
    while let Some(bytes) = next(&mut pieces).await? {
        size = size.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if size > limit {
            return Err(Error::TooLarge { limit }.into());
        }
    }
    Ok(())
}
