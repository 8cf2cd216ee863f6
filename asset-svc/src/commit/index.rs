//! What is there already: filled slots of an artifact, and assets that its references name.

use std::collections::HashMap;

use atelier_common::identity::Caller;

use super::collect::Leaf;
use super::{Artifact, in_place, inline};
use crate::assets::rows::Rows;
use crate::entity::asset::Model;
use crate::error::Error;

/// Slots of the artifact that are filled.
#[derive(Debug, Default)]
pub struct Filled(Vec<Model>);

/// Assets of the caller by id.
pub type Named = HashMap<String, Model>;

impl Filled {
    /// The asset in a slot.
    pub fn get(&self, handle: &str, element: i32) -> Option<Model> {
        self.0.iter().find(|row| in_place(row, handle, element)).cloned()
    }
}

/// Reads the filled slots.
pub async fn filled(rows: &Rows, caller: &Caller, artifact: &Artifact) -> Result<Filled, Error> {
    let Artifact {
        job_id,
        node_id,
        index,
        ..
    } = artifact;
    Ok(Filled(rows.of_artifact(caller, job_id, node_id, *index).await?))
}

/// Reads the assets that references name. What is somebody else's is as good as unknown.
pub async fn named(rows: &Rows, caller: &Caller, leaves: &[Leaf]) -> Result<Named, Error> {
    let mut ids: Vec<String> = leaves
        .iter()
        .filter_map(|leaf| inline::named_asset(&leaf.media))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    let found = rows.get_many(caller, ids).await?;
    Ok(found.into_iter().map(|row| (row.id.clone(), row)).collect())
}
