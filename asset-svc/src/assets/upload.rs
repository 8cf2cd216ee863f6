//! Makes an asset of uploaded bytes.

use atelier_common::clock::Clock;
use atelier_common::identity::Caller;
use atelier_proto::ids::AssetId;
use atelier_proto::value::Map;

use super::{names, rows};
use crate::blobs::Blob;
use crate::entity::asset::Model;
use crate::error::Error;
use crate::sniff;

/// What an upload is to become.
#[derive(Debug, Clone, Default)]
pub struct Upload {
    /// Name for people.
    pub name: Option<String>,
    /// The stated media type.
    pub content_type: Option<String>,
    /// Repeating the upload with this key answers with the first asset.
    pub idempotency_key: Option<String>,
    /// The run that made it.
    pub job_id: Option<String>,
    /// The node that made it.
    pub node_id: Option<String>,
    /// The workflow of that run.
    pub workflow_id: Option<String>,
    /// Generations that made it.
    pub generation_ids: Vec<String>,
    /// What is known of its making.
    pub metadata: Map,
}

impl Upload {
    /// The row of a stored blob.
    ///
    /// # Errors
    /// `Row`, which cannot be.
    pub fn row(self, caller: &Caller, clock: &Clock, blob: &Blob) -> Result<Model, Error> {
        let Self {
            name,
            content_type,
            idempotency_key,
            job_id,
            node_id,
            workflow_id,
            generation_ids,
            metadata,
        } = self;
        let content_type = sniff::content_type(blob.sniffed, content_type.as_deref());
        let id = AssetId::new().to_string();
        let name = name
            .and_then(|name| names::sanitise(&name, &content_type))
            .unwrap_or_else(|| {
                // The end of an id is random, its start is the time.
                let tail = id.get(id.len().saturating_sub(8)..).unwrap_or(&id);
                names::default_name(names::kind_of(&content_type), tail, &content_type)
            });
        let row = row(caller, clock, blob, id, name, content_type)?;
        Ok(Model {
            job_id,
            node_id,
            workflow_id,
            generation_ids: rows::ids_to_column(&generation_ids)?,
            metadata: rows::metadata_to_column(&metadata),
            idempotency_key,
            ..row
        })
    }
}

/// A row of a blob, of no run and no slot.
///
/// # Errors
/// `Bug` for a size that no database holds.
pub fn row(
    caller: &Caller,
    clock: &Clock,
    blob: &Blob,
    id: String,
    name: String,
    content_type: String,
) -> Result<Model, Error> {
    Ok(Model {
        id,
        user_id: caller.user_id.clone(),
        name,
        kind: content_type.split('/').next().unwrap_or_default().to_owned(),
        content_type,
        size_bytes: i64::try_from(blob.size).map_err(|_| Error::Bug("a blob is too large for a row"))?,
        digest: blob.digest.clone(),
        object: blob.object.clone(),
        job_id: None,
        node_id: None,
        workflow_id: None,
        slot_job_id: None,
        slot_node_id: None,
        slot_index: None,
        slot_handle: None,
        slot_element: None,
        generation_ids: "[]".to_owned(),
        metadata: "{}".to_owned(),
        idempotency_key: None,
        created_at: atelier_proto::time::micros(clock.now()),
    })
}
