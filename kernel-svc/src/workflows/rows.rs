//! Rows of saved workflows: what they hold for filters and etags, the tokens of their pages, their messages.

use atelier_proto::{common::v1::MapValue, kernel::v1::Workflow, time};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use prost::Message;
use sea_orm::sea_query::LikeExpr;

use super::draft::Draft;
use crate::{entity::workflows::Model, error::Error};

/// Rows on a page when none is asked for.
const DEFAULT_PAGE: u64 = 50;
/// Rows on a page at most.
const MAX_PAGE: u64 = 500;
/// Stands around each tag in the column for filters; no tag has it.
pub(super) const MARK: char = '\u{1f}';

/// What a request asks for, to tell a repeat from another one.
pub(super) fn fingerprint(id: &str, draft: &Draft) -> String {
    let Draft {
        name,
        description,
        tags,
        settings,
        params,
        run_mode,
        extra,
        graph,
        note,
    } = draft;
    let mut hash = blake3::Hasher::new();
    let run_mode = run_mode.as_deref().unwrap_or_default();
    let tags = tags_text(tags);
    for part in [
        id,
        name,
        description,
        &tags,
        settings,
        run_mode,
        extra,
        &graph.text,
        note,
    ] {
        hash.update(&part.len().to_be_bytes()).update(part.as_bytes());
    }
    hash.update(&params.encode_to_vec());
    hash.finalize().to_hex().to_string()
}
/// The state of a workflow, for whoever wants to save over exactly that.
pub(super) fn etag(row: &Model) -> String {
    short_hash(&format!("{}/{}", row.workflow_key, row.revision))
}
fn short_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().chars().take(16).collect()
}
/// Tags as their column has them.
pub(super) fn tags_text(tags: &[String]) -> String {
    serde_json::Value::from(tags.to_vec()).to_string()
}
/// Tags of their column.
pub(super) fn read_tags(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_default()
}
/// What filters look through: each tag between marks, then name and description.
pub(super) fn search_text(name: &str, description: &str, tags: &[String]) -> String {
    let mut text = String::from(MARK);
    for tag in tags {
        text.push_str(tag);
        text.push(MARK);
    }
    text.push_str(name);
    text.push('\n');
    text.extend(description.chars().filter(|c| *c != MARK));
    text.to_lowercase()
}
/// A filter for texts that contain one.
pub(super) fn contains(text: &str) -> LikeExpr {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    LikeExpr::new(format!("%{escaped}%")).escape('\\')
}
/// How many rows a page shall have.
///
/// # Errors
/// The size is negative.
pub(super) fn page_limit(size: i32) -> Result<u64, Error> {
    match u64::try_from(size) {
        Ok(0) => Ok(DEFAULT_PAGE),
        Ok(size) => Ok(size.min(MAX_PAGE)),
        Err(_) => Err(Error::InvalidField {
            field: "page_size",
            wrong: "must not be negative".to_owned(),
        }),
    }
}
/// The token after a row of a list with these filters.
pub(super) fn write_token(at: i64, key: &str, filter: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{at}|{key}|{}", short_hash(filter)))
}
/// The row that a token stands for.
///
/// # Errors
/// It is not of this list.
pub(super) fn read_token(token: &str, filter: &str) -> Result<(i64, String), Error> {
    let text = URL_SAFE_NO_PAD
        .decode(token)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or(Error::InvalidPageToken)?;
    let mut parts = text.split('|');
    match (
        parts.next().and_then(|at| at.parse().ok()),
        parts.next(),
        parts.next(),
    ) {
        (Some(at), Some(key), Some(hash)) if hash == short_hash(filter) => Ok((at, key.to_owned())),
        _ => Err(Error::InvalidPageToken),
    }
}
/// The message of a workflow; with a graph when there is one.
///
/// # Errors
/// The row is damaged.
pub fn to_proto(row: Model, graph: Option<String>) -> Result<Workflow, Error> {
    let etag = etag(&row);
    let Model {
        workflow_key: _,
        user_id: _,
        workflow_id,
        name,
        description,
        tags,
        search: _,
        settings,
        params,
        run_mode,
        extra,
        version,
        revision: _,
        node_count,
        created_at,
        updated_at,
        deleted_at: _,
        create_key: _,
        create_hash: _,
    } = row;
    Ok(Workflow {
        workflow_id,
        name,
        description,
        tags: read_tags(&tags),
        settings_json: settings,
        params: Some(MapValue::decode(params.as_slice()).map_err(|_| Error::DamagedLog)?),
        run_mode,
        extra_json: extra,
        version,
        etag,
        graph_json: graph,
        node_count,
        created_at: Some(time::proto_from_micros(created_at)),
        updated_at: Some(time::proto_from_micros(updated_at)),
    })
}
