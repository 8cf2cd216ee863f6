//! A stored asset.

use atelier_proto::asset::v1;
use atelier_proto::time::iso;
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

/// A stored asset.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Asset {
    /// Its id.
    id: String,
    /// File name for people.
    name: String,
    /// The media type.
    content_type: String,
    /// The size of the bytes.
    size_bytes: i64,
    /// BLAKE3 of the bytes, lower-case hex.
    digest: String,
    /// The reference that values carry.
    #[schema(example = "asset://ID.png")]
    uri: String,
    /// Where its bytes are to be had.
    #[schema(example = "/api/v1/assets/ID/content")]
    url: String,
    /// The file, when the store is a folder of this machine.
    #[schema(required)]
    path: Option<String>,
    /// The run that made it.
    #[schema(required)]
    job_id: Option<String>,
    /// The node that made it.
    #[schema(required)]
    node_id: Option<String>,
    /// The workflow of that run.
    #[schema(required)]
    workflow_id: Option<String>,
    /// The artifact of the node, from 0.
    #[schema(required)]
    index: Option<i64>,
    /// The output of the node.
    #[schema(required)]
    handle: Option<String>,
    /// The position below the output.
    #[schema(required)]
    element: Option<i32>,
    /// The calls that it came out of.
    generation_ids: Vec<String>,
    /// What is known of its making.
    #[schema(value_type = Object)]
    metadata: Json,
    /// When it was created.
    created_at: String,
}

impl Asset {
    /// The asset as its owner sees it.
    pub(crate) fn new(asset: v1::Asset, user_id: &str) -> Self {
        let v1::Asset {
            asset_id,
            name,
            content_type,
            size_bytes,
            digest,
            uri,
            file_path,
            job_id,
            node_id,
            workflow_id,
            slot,
            generation_ids,
            metadata,
            created_at,
        } = asset;
        Self {
            url: format!("/api/v1/assets/{asset_id}/content"),
            id: asset_id,
            name,
            content_type,
            size_bytes,
            digest,
            uri,
            path: file_path,
            job_id,
            node_id,
            workflow_id,
            index: slot.as_ref().map(|slot| slot.index),
            element: slot.as_ref().map(|slot| slot.element),
            handle: slot.map(|slot| slot.handle),
            generation_ids,
            metadata: super::object(metadata, user_id),
            created_at: created_at.as_ref().map(iso).unwrap_or_default(),
        }
    }
}
