//! Stores the bytes of an artifact and fills its slots.
//!
//! All bytes first, then all rows in one transaction: a crash in between leaves blobs without a row, which the repetition
//! finds by their digest.

use atelier_common::failpoint;
use atelier_common::identity::Caller;
use atelier_proto::ids::AssetId;
use atelier_proto::value::Map;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::{Artifact, Committer, Content, Place, inline, making};
use crate::assets::rows::{self, Fill};
use crate::assets::{names, upload};
use crate::blobs::Blob;
use crate::entity::asset::Model;
use crate::error::Error;
use crate::sniff;

/// Media of one artifact that are stored at once.
const AT_ONCE: usize = 4;
/// Most bytes of a text or JSON that the metadata repeat.
const MAX_REPEATED: usize = 200_000;

/// A place whose bytes are stored.
enum Stored {
    Filled(Box<Model>),
    Fill(Box<Fill>),
}

/// What a row that is made has of its own.
#[derive(Debug, Clone, Copy)]
struct New {
    id: AssetId,
    created_at: i64,
}

impl Committer {
    /// Saves the places and answers with their assets, in the same order. `linked` has the generations of each.
    pub(super) async fn save(
        &self,
        caller: &Caller,
        artifact: &Artifact,
        places: Vec<Place>,
        linked: Vec<Vec<String>>,
    ) -> Result<Vec<Model>, Error> {
        let created_at = atelier_proto::time::micros(self.clock.now());
        let stored: Vec<Stored> = stream::iter(places.into_iter().zip(linked))
            // The ids are made in the order of the slots, so a list has them in this order too.
            .map(|(place, ids)| {
                self.store(
                    caller,
                    artifact,
                    place,
                    ids,
                    New {
                        id: AssetId::new(),
                        created_at,
                    },
                )
            })
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        failpoint!("asset.commit.before_rows", Error::Injected);
        let fills = stored.iter().filter_map(|stored| match stored {
            Stored::Filled(_) => None,
            Stored::Fill(fill) => Some(Fill::clone(fill)),
        });
        let mut rows = self.rows.fill(fills.collect()).await?.into_iter();
        failpoint!("asset.commit.after_rows", Error::Injected);
        let row = |stored| match stored {
            Stored::Filled(row) => Ok(*row),
            Stored::Fill(_) => rows.next().ok_or(Error::Bug("a slot was not filled")),
        };
        stored.into_iter().map(row).collect()
    }

    async fn store(
        &self,
        caller: &Caller,
        artifact: &Artifact,
        place: Place,
        generation_ids: Vec<String>,
        new: New,
    ) -> Result<Stored, Error> {
        let Place {
            handle,
            element,
            kind,
            content,
        } = place;
        let mut before = Map::new();
        let (take, row) = match content {
            Content::Filled(row) => return Ok(Stored::Filled(row)),
            Content::Named(row) => {
                before = rows::metadata_of(&row)?;
                (may_take(&row, artifact).then(|| Model::clone(&row)), *row)
            }
            Content::Bytes(inline::Inline { bytes, stated }) => {
                let blob = self.write(&bytes).await?;
                let content_type = sniff::content_type(blob.sniffed, stated.as_deref());
                (None, self.row(caller, artifact, &kind, content_type, &blob)?)
            }
            Content::Text(text) => {
                before.insert("text".to_owned(), names::cut(&text, MAX_REPEATED).into());
                let blob = self.write(&Bytes::from(text)).await?;
                (
                    None,
                    self.row(caller, artifact, &kind, sniff::TEXT.to_owned(), &blob)?,
                )
            }
            Content::Json(text) => {
                if text.len() <= MAX_REPEATED {
                    let json = serde_json::from_str(&text).map_err(Error::Row)?;
                    before.insert("json".to_owned(), atelier_proto::value::from_json(json));
                }
                let blob = self.write(&Bytes::from(text)).await?;
                (
                    None,
                    self.row(caller, artifact, &kind, sniff::JSON.to_owned(), &blob)?,
                )
            }
        };
        let make = Model {
            id: new.id.to_string(),
            job_id: Some(artifact.job_id.clone()),
            node_id: Some(artifact.node_id.clone()),
            workflow_id: artifact.workflow_id.clone(),
            slot_job_id: Some(artifact.job_id.clone()),
            slot_node_id: Some(artifact.node_id.clone()),
            slot_index: Some(artifact.index),
            slot_handle: Some(handle.clone()),
            slot_element: Some(element),
            generation_ids: rows::ids_to_column(&generation_ids)?,
            metadata: rows::metadata_to_column(&making::metadata(artifact, &handle, &generation_ids, before)),
            idempotency_key: None,
            created_at: new.created_at,
            ..row
        };
        Ok(Stored::Fill(Box::new(Fill { take, make })))
    }

    async fn write(&self, bytes: &Bytes) -> Result<Blob, Error> {
        let mut writer = self.blobs.writer(self.max_inline_bytes);
        writer.write(bytes).await?;
        writer.finish().await
    }

    fn row(
        &self,
        caller: &Caller,
        artifact: &Artifact,
        kind: &str,
        content_type: String,
        blob: &Blob,
    ) -> Result<Model, Error> {
        let name = names::default_name(kind, &names::head(&artifact.node_id, 8), &content_type);
        upload::row(
            caller,
            &self.clock,
            blob,
            AssetId::new().to_string(),
            name,
            content_type,
        )
    }
}

/// Whether an asset can be given a slot of this artifact: it has none, and no other run or node made it.
fn may_take(row: &Model, artifact: &Artifact) -> bool {
    let fits = |made_by: &Option<String>, ours: &str| made_by.as_deref().is_none_or(|id| id == ours);
    row.slot_index.is_none() && fits(&row.job_id, &artifact.job_id) && fits(&row.node_id, &artifact.node_id)
}
