//! Pages of assets, newest first. A token is a place in the list, bound to the caller and the filters.

use atelier_common::identity::Caller;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sea_orm::{ColumnTrait, Condition, Order, QueryFilter, QueryOrder, QuerySelect};
use serde::{Deserialize, Serialize};

use super::rows::{self, Rows};
use crate::entity::asset::{Column, Model};
use crate::error::Error;

/// Rows of a page when the request does not say.
const DEFAULT_PAGE: u64 = 50;
/// Most rows of a page.
const MAX_PAGE: u64 = 500;
/// A page ends early when its metadata are larger than this, so that it fits into a message.
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// Which assets. All parts are joined by AND.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Filter {
    /// Only of this run.
    pub job_id: Option<String>,
    /// Only of this node.
    pub node_id: Option<String>,
    /// Only of this kind (`image`) or media type (`image/png`).
    pub content_type: Option<String>,
    /// Only created at or after, in microseconds.
    pub since: Option<i64>,
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its rows.
    pub rows: Vec<Model>,
    /// Token of the next page.
    pub next: Option<String>,
}

/// Where a page ended, and which list it was of.
#[derive(Debug, Serialize, Deserialize)]
struct Token {
    #[serde(rename = "t")]
    created_at: i64,
    #[serde(rename = "i")]
    id: String,
    #[serde(rename = "f")]
    list: String,
}

impl Filter {
    /// A short name of this list of this caller.
    fn fingerprint(&self, caller: &Caller) -> Result<String, Error> {
        let bytes = serde_json::to_vec(&(&caller.user_id, self)).map_err(Error::Row)?;
        Ok(blake3::hash(&bytes).to_hex().chars().take(16).collect())
    }
}

impl Rows {
    /// A page of the caller's assets. `size` 0 means 50, more than 500 means 500. Cancel safe.
    ///
    /// # Errors
    /// `Invalid` for a negative size, `PageToken` for the token of another list, `Database`.
    pub async fn list(
        &self,
        caller: &Caller,
        filter: &Filter,
        size: i32,
        token: &str,
    ) -> Result<Page, Error> {
        let size = match u64::try_from(size) {
            Ok(0) => DEFAULT_PAGE,
            Ok(size) => size.min(MAX_PAGE),
            Err(_) => return Err(Error::invalid("page_size", "must not be negative")),
        };
        let list = filter.fingerprint(caller)?;
        let mut found = rows::of(caller);
        if let Some(after) = read_token(token, &list)? {
            let place = Condition::any().add(Column::CreatedAt.lt(after.created_at)).add(
                Condition::all()
                    .add(Column::CreatedAt.eq(after.created_at))
                    .add(Column::Id.lt(after.id)),
            );
            found = found.filter(place);
        }
        if let Some(job_id) = &filter.job_id {
            found = found.filter(Column::JobId.eq(job_id));
        }
        if let Some(node_id) = &filter.node_id {
            found = found.filter(Column::NodeId.eq(node_id));
        }
        if let Some(content_type) = &filter.content_type {
            let column = if content_type.contains('/') {
                Column::ContentType
            } else {
                Column::Kind
            };
            found = found.filter(column.eq(content_type.to_ascii_lowercase()));
        }
        if let Some(since) = filter.since {
            found = found.filter(Column::CreatedAt.gte(since));
        }
        let found = found
            .order_by(Column::CreatedAt, Order::Desc)
            .order_by(Column::Id, Order::Desc)
            .limit(size + 1);
        page(
            found.all(self.db().read()).await?,
            usize::try_from(size).unwrap_or(usize::MAX),
            &list,
        )
    }
}

fn page(mut rows: Vec<Model>, size: usize, list: &str) -> Result<Page, Error> {
    let mut weight = 0_usize;
    let fits = rows
        .iter()
        .take_while(|row| {
            let first = weight == 0;
            weight = weight.saturating_add(row.metadata.len() + row.generation_ids.len() + 1);
            first || weight <= MAX_PAGE_BYTES
        })
        .count();
    let end = fits.min(size);
    let more = rows.len() > end;
    rows.truncate(end);
    let next = match rows.last().filter(|_| more) {
        Some(last) => Some(write_token(last, list)?),
        None => None,
    };
    Ok(Page { rows, next })
}

fn write_token(last: &Model, list: &str) -> Result<String, Error> {
    let token = Token {
        created_at: last.created_at,
        id: last.id.clone(),
        list: list.to_owned(),
    };
    Ok(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).map_err(Error::Row)?))
}

fn read_token(text: &str, list: &str) -> Result<Option<Token>, Error> {
    if text.is_empty() {
        return Ok(None);
    }
    let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| Error::PageToken)?;
    let token: Token = serde_json::from_slice(&json).map_err(|_| Error::PageToken)?;
    // The id goes into a query: only what we wrote ourselves.
    let ours = token.list == list && token.id.parse::<uuid::Uuid>().is_ok();
    if ours {
        Ok(Some(token))
    } else {
        Err(Error::PageToken)
    }
}
