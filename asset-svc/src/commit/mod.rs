//! What `CommitGeneration` does, in order: look which slots are filled (`index`), find the media (`collect`), decide what
//! is text (`text`), store bytes and fill the slots (`save`), say which generations they are of (`link`).
//!
//! A slot is filled once. Whatever was done before a crash is found again: bytes by their digest, rows by their slot. So
//! the whole of it may be repeated, also by two at once, and saves nothing twice. Nothing is fetched from anywhere: a
//! reference to the web or to a file stays what it is.

mod collect;
mod index;
mod inline;
mod link;
mod making;
mod pixels;
mod save;
mod text;

use atelier_common::clock::Clock;
use atelier_common::identity::Caller;
use atelier_proto::value::{Map, MediaRef};

use crate::assets::rows::Rows;
use crate::blobs::Blobs;
use crate::entity::asset::Model;
use crate::error::Error;
use crate::sniff;

pub use inline::SCHEME;

/// One committed artifact.
#[derive(Debug, Clone, Default)]
pub struct Artifact {
    /// The run.
    pub job_id: String,
    /// The node.
    pub node_id: String,
    /// Type of the node.
    pub node_type: String,
    /// Which artifact of the node in the run.
    pub index: i64,
    /// The workflow of the run.
    pub workflow_id: Option<String>,
    /// The outputs, handle by handle.
    pub outputs: Map,
    /// Inputs of the invocation.
    pub properties: Map,
    /// Generations of the invocation.
    pub generation_ids: Vec<String>,
    /// Handle whose text is saved; `*` for whatever there is; empty for none.
    pub text_handle: String,
}

/// What became of an artifact.
#[derive(Debug, Clone)]
pub struct Committed {
    /// The outputs with references in the place of bytes.
    pub outputs: Map,
    /// The assets in slot order.
    pub assets: Vec<Model>,
}

/// Commits artifacts. Clones are the same.
#[derive(Debug, Clone)]
pub struct Committer {
    /// The rows.
    pub rows: Rows,
    /// The bytes.
    pub blobs: Blobs,
    /// The time.
    pub clock: Clock,
    /// Most bytes of one inline medium.
    pub max_inline_bytes: u64,
}

/// A place of the artifact that has an asset or gets one.
#[derive(Debug)]
struct Place {
    handle: String,
    element: i32,
    /// Word for the default name: the kind of the reference, `text` or `json`.
    kind: String,
    content: Content,
}

/// What stands in a place.
#[derive(Debug)]
enum Content {
    /// The asset that was saved there before.
    Filled(Box<Model>),
    /// An asset of the caller that gets this slot.
    Named(Box<Model>),
    /// Bytes to be saved.
    Bytes(inline::Inline),
    /// Text to be saved.
    Text(String),
    /// JSON to be saved.
    Json(String),
}

impl Committer {
    /// Saves what an artifact carries. Dropped while waiting, some of it may be saved; repeating it does the rest.
    ///
    /// # Errors
    /// `Invalid` when there are too many media, `TooLarge`, `Store`, `Database`.
    pub async fn commit(&self, caller: &Caller, artifact: &Artifact) -> Result<Committed, Error> {
        let filled = index::filled(&self.rows, caller, artifact).await?;
        let leaves = collect::collect(&artifact.outputs)?;
        let named = index::named(&self.rows, caller, &leaves).await?;
        let has_media = !leaves.is_empty();
        let inlined = self.inlined(&leaves, &filled, &named).await?;
        let mut places: Vec<Place> = leaves
            .into_iter()
            .zip(inlined)
            .filter_map(|(leaf, inlined)| {
                let content = content(&leaf, inlined, &filled, &named)?;
                let collect::Leaf {
                    handle,
                    element,
                    media,
                } = leaf;
                Some(Place {
                    handle,
                    element,
                    kind: media.kind,
                    content,
                })
            })
            .collect();
        let media = places.len();
        places.extend(text::place(artifact, has_media, &filled));
        let linked = link::generations(&places, media, &artifact.generation_ids);
        let assets = self.save(caller, artifact, places, linked).await?;
        let outputs = collect::replace(&artifact.outputs, |handle, element, media| {
            let row = assets.iter().find(|row| in_place(row, handle, element))?;
            Some(reference(row, media))
        });
        Ok(Committed { outputs, assets })
    }
}

impl Committer {
    /// The bytes that the media carry which have no asset.
    async fn inlined(
        &self,
        leaves: &[collect::Leaf],
        filled: &index::Filled,
        named: &index::Named,
    ) -> Result<Vec<Option<inline::Inline>>, Error> {
        let known = |leaf: &collect::Leaf| {
            filled.get(&leaf.handle, leaf.element).is_some()
                || inline::named_asset(&leaf.media).is_some_and(|id| named.contains_key(&id))
        };
        let wanted = leaves
            .iter()
            .map(|leaf| (!known(leaf)).then(|| leaf.media.clone()));
        let wanted: Vec<Option<MediaRef>> = wanted.collect();
        inline::all(self.blobs.tasks(), wanted).await
    }
}

fn in_place(row: &Model, handle: &str, element: i32) -> bool {
    row.slot_handle.as_deref() == Some(handle) && row.slot_element == Some(element)
}

/// What stands in the place of a medium; `None` when there is nothing to be saved.
fn content(
    leaf: &collect::Leaf,
    inlined: Option<inline::Inline>,
    filled: &index::Filled,
    named: &index::Named,
) -> Option<Content> {
    if let Some(row) = filled.get(&leaf.handle, leaf.element) {
        return Some(Content::Filled(Box::new(row)));
    }
    if let Some(row) = inline::named_asset(&leaf.media).and_then(|id| named.get(&id).cloned()) {
        return Some(Content::Named(Box::new(row)));
    }
    let found = inlined.map(Content::Bytes);
    if found.is_none() {
        let scheme = leaf
            .media
            .uri
            .split(':')
            .next()
            .filter(|_| leaf.media.uri.contains(':'))
            .unwrap_or_default();
        let scheme: String = scheme.chars().take(16).collect();
        tracing::warn!(
            kind = leaf.media.kind,
            scheme,
            "a reference cannot be saved and is left as it is"
        );
    }
    found
}

/// The reference that stands for an asset from then on.
fn reference(row: &Model, media: &MediaRef) -> MediaRef {
    let mut extra = media.extra.clone();
    for key in ["mimeType", "content_type"] {
        extra.shift_remove(key);
    }
    MediaRef {
        kind: media.kind.clone(),
        uri: uri(row),
        asset_id: Some(row.id.clone()),
        data: None,
        mime_type: Some(row.content_type.clone()),
        extra,
    }
}

/// The address that values carry: `asset://ID.ext`.
#[must_use]
pub fn uri(row: &Model) -> String {
    format!("{SCHEME}{}.{}", row.id, sniff::ending(&row.content_type))
}
