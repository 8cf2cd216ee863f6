//! Messages to the domain's types and back.

use atelier_proto::asset::v1::{
    ArtifactSlot, Asset, CommitGenerationRequest, ListAssetsRequest, UploadHeader,
};
use atelier_proto::common::v1::MapValue;
use atelier_proto::time;
use atelier_proto::value::Map;

use crate::assets::list::Filter;
use crate::assets::rows;
use crate::assets::upload::Upload;
use crate::blobs::Blobs;
use crate::commit::{self, Artifact};
use crate::entity::asset::Model;
use crate::error::Error;

/// Longest id or handle, in bytes.
const MAX_ID_BYTES: usize = 512;
/// Most generations of one asset.
const MAX_GENERATIONS: usize = 1_000;

/// Largest metadata of an upload, as JSON, in bytes. A page of rows is read before it is cut to size.
const MAX_METADATA_BYTES: usize = 256 * 1024;

/// The message of a row.
pub fn asset(row: &Model, blobs: &Blobs) -> Result<Asset, Error> {
    let metadata = rows::metadata_of(row)?;
    let generation_ids = rows::ids_of(row)?;
    let Model {
        id,
        user_id: _,
        name,
        content_type,
        kind: _,
        size_bytes,
        digest,
        object,
        job_id,
        node_id,
        workflow_id,
        slot_job_id,
        slot_node_id,
        slot_index,
        slot_handle,
        slot_element,
        generation_ids: _,
        metadata: _,
        idempotency_key: _,
        created_at,
    } = row.clone();
    let slot = slot_index.map(|index| ArtifactSlot {
        job_id: slot_job_id.unwrap_or_default(),
        node_id: slot_node_id.unwrap_or_default(),
        index,
        handle: slot_handle.unwrap_or_default(),
        element: slot_element.unwrap_or_default(),
    });
    Ok(Asset {
        asset_id: id,
        name,
        content_type,
        size_bytes,
        digest,
        uri: commit::uri(row),
        file_path: blobs.file_path(&object).map(|path| path.display().to_string()),
        job_id,
        node_id,
        workflow_id,
        slot,
        generation_ids,
        metadata: Some((&metadata).into()),
        created_at: Some(time::proto_from_micros(created_at)),
    })
}

/// The messages of rows.
pub fn all(rows: &[Model], blobs: &Blobs) -> Result<Vec<Asset>, Error> {
    rows.iter().map(|row| asset(row, blobs)).collect()
}

/// An upload's header.
pub fn upload(header: UploadHeader) -> Result<Upload, Error> {
    let UploadHeader {
        name,
        content_type,
        idempotency_key,
        job_id,
        node_id,
        workflow_id,
        generation_ids,
        metadata,
    } = header;
    let metadata = map("metadata", metadata)?;
    if rows::metadata_to_column(&metadata).len() > MAX_METADATA_BYTES {
        return Err(Error::invalid("metadata", "is larger than 256 KiB"));
    }
    Ok(Upload {
        name: name.filter(|name| !name.is_empty()),
        content_type: content_type.filter(|content_type| !content_type.is_empty()),
        idempotency_key: optional("idempotency_key", idempotency_key)?,
        job_id: optional("job_id", job_id)?,
        node_id: optional("node_id", node_id)?,
        workflow_id: optional("workflow_id", workflow_id)?,
        generation_ids: generations(generation_ids)?,
        metadata,
    })
}

/// A committed artifact.
pub fn artifact(request: CommitGenerationRequest) -> Result<Artifact, Error> {
    let CommitGenerationRequest {
        job_id,
        node_id,
        node_type,
        index,
        workflow_id,
        outputs,
        properties,
        generation_ids,
        text_handle,
    } = request;
    if index < 0 {
        return Err(Error::invalid("index", "must not be negative"));
    }
    let outputs = map("outputs", outputs)?;
    for handle in outputs.keys() {
        checked("outputs", handle, true)?;
    }
    Ok(Artifact {
        job_id: required("job_id", job_id)?,
        node_id: required("node_id", node_id)?,
        node_type,
        index,
        workflow_id: optional("workflow_id", workflow_id)?,
        outputs,
        properties: map("properties", properties)?,
        generation_ids: generations(generation_ids)?,
        text_handle,
    })
}

/// Filter, size and token of a page.
pub fn listing(request: ListAssetsRequest) -> (Filter, i32, String) {
    let ListAssetsRequest {
        page_size,
        page_token,
        job_id,
        node_id,
        content_type,
        since,
    } = request;
    let filter = Filter {
        job_id,
        node_id,
        content_type,
        since: since.as_ref().map(time::micros_from_proto),
    };
    (filter, page_size, page_token)
}

fn map(field: &'static str, map: Option<MapValue>) -> Result<Map, Error> {
    let map = map.map(Map::try_from).transpose();
    Ok(map
        .map_err(|_| Error::invalid(field, "is not a map of values"))?
        .unwrap_or_default())
}

fn required(field: &'static str, text: String) -> Result<String, Error> {
    if text.is_empty() {
        return Err(Error::invalid(field, "must not be empty"));
    }
    checked(field, &text, false)?;
    Ok(text)
}

fn optional(field: &'static str, text: Option<String>) -> Result<Option<String>, Error> {
    text.filter(|text| !text.is_empty())
        .map(|text| required(field, text))
        .transpose()
}

/// What a database can hold and an index can take.
fn checked(field: &'static str, text: &str, is_handle: bool) -> Result<(), Error> {
    if text.len() > MAX_ID_BYTES {
        return Err(Error::invalid(
            field,
            if is_handle {
                "has a handle that is too long"
            } else {
                "is too long"
            },
        ));
    }
    if text.contains(char::is_control) {
        let wrong = if is_handle {
            "has a handle with control characters"
        } else {
            "has control characters"
        };
        return Err(Error::invalid(field, wrong));
    }
    Ok(())
}

fn generations(ids: Vec<String>) -> Result<Vec<String>, Error> {
    if ids.len() > MAX_GENERATIONS {
        return Err(Error::invalid("generation_ids", "has more than 1000 ids"));
    }
    let mut kept: Vec<String> = Vec::with_capacity(ids.len());
    for id in ids {
        let id = required("generation_ids", id)?;
        if !kept.contains(&id) {
            kept.push(id);
        }
    }
    Ok(kept)
}
