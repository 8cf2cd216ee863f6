//! Reads: one row, and pages of rows.

use std::collections::{HashMap, HashSet};

use atelier_common::db::Db;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, Condition, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect, Select};
use uuid::Uuid;

use crate::entity::attempts;
use crate::entity::generations::{Column, Entity, Model};
use crate::error::Error;
use crate::filter::Filter;
use crate::ledger::{Row, load};

/// Rows of a page when nothing is said.
pub const DEFAULT_PAGE: u64 = 50;
/// Rows of a page at most.
pub const LARGEST_PAGE: u64 = 500;
/// Rows of a look-up at most: a correlation id has one or a few.
const LOOKUP_ROWS: u64 = 10_000;
/// Shortest prefix of an id that is looked up.
const SHORTEST_PREFIX: usize = 8;
/// Digits of a digest in a token.
const DIGEST: usize = 16;

/// The queries. Clones are the same.
#[derive(Clone)]
pub struct Queries {
    db: Db,
}

/// Rows, and where the next page begins.
#[derive(Debug, Clone)]
pub struct Page {
    /// The rows, newest first.
    pub rows: Vec<Row>,
    /// Token of the next page; empty at the end.
    pub next_page_token: String,
}

impl Queries {
    /// Queries over this database.
    #[must_use]
    pub fn new(db: Db) -> Self {
        Self { db }
    }

    /// One row of the user, by its id or a unique prefix of eight characters or more.
    ///
    /// # Errors
    /// `NotFound`, the same for foreign and missing; `Ambiguous` when a prefix fits several rows of the user.
    pub async fn get(&self, user_id: &str, id: &str) -> Result<Row, Error> {
        if let Ok(id) = Uuid::parse_str(id) {
            return load(self.db.read(), user_id, &id.to_string()).await;
        }
        let (low, high) = prefix_range(id).ok_or(Error::NotFound)?;
        let found = Entity::of(user_id)
            .filter(Column::Id.between(low, high))
            .limit(2)
            .all(self.db.read())
            .await?;
        match found.as_slice() {
            [] => Err(Error::NotFound),
            [one] => load(self.db.read(), user_id, &one.id).await,
            [..] => Err(Error::Ambiguous(id.to_owned())),
        }
    }

    /// The user's rows with these correlation ids, newest first, and the ids that none has, in their order.
    ///
    /// # Errors
    /// The database's.
    pub async fn lookup(
        &self,
        user_id: &str,
        request_ids: Vec<String>,
    ) -> Result<(Vec<Row>, Vec<String>), Error> {
        let rows = Entity::of(user_id)
            .filter(Column::RequestId.is_in(request_ids.iter().map(String::as_str)))
            .order_by(Column::CreatedAt, Order::Desc)
            .order_by(Column::Id, Order::Desc)
            .limit(LOOKUP_ROWS)
            .all(self.db.read())
            .await?;
        let known: HashSet<&str> = rows.iter().filter_map(|row| row.request_id.as_deref()).collect();
        let mut unmatched = request_ids;
        unmatched.retain(|id| !known.contains(id.as_str()));
        Ok((self.with_attempts(rows).await?, unmatched))
    }

    /// A page of rows, newest first; rows of one instant by their id.
    ///
    /// # Errors
    /// `Invalid` for a negative size; `PageToken` for a token of another list.
    pub async fn list(&self, filter: &Filter, page_size: i32, page_token: &str) -> Result<Page, Error> {
        let size = page_size_of(page_size)?;
        let after = match page_token {
            "" => None,
            token => Some(read_token(filter, token).ok_or(Error::PageToken)?),
        };
        let mut rows = page(filter, after, size + 1).all(self.db.read()).await?;
        let more = u64::try_from(rows.len()).unwrap_or(u64::MAX) > size;
        if more {
            rows.pop();
        }
        let next_page_token = match rows.last() {
            Some(last) if more => write_token(filter, last)?,
            Some(_) | None => String::new(),
        };
        Ok(Page {
            rows: self.with_attempts(rows).await?,
            next_page_token,
        })
    }

    async fn with_attempts(&self, rows: Vec<Model>) -> Result<Vec<Row>, Error> {
        let mut by_row: HashMap<String, Vec<attempts::Model>> = HashMap::new();
        if !rows.is_empty() {
            let all = attempts::Entity::find()
                .filter(attempts::Column::GenerationId.is_in(rows.iter().map(|row| row.id.as_str())))
                .order_by_asc(attempts::Column::AttemptNumber)
                .all(self.db.read())
                .await?;
            for attempt in all {
                by_row
                    .entry(attempt.generation_id.clone())
                    .or_default()
                    .push(attempt);
            }
        }
        let row = |generation: Model| Row {
            attempts: by_row.remove(&generation.id).unwrap_or_default(),
            generation,
        };
        Ok(rows.into_iter().map(row).collect())
    }
}

/// The statement of a page: at most `limit` rows, newest first, after the instant and id of the last one before.
#[must_use]
pub fn page(filter: &Filter, after: Option<(i64, Uuid)>, limit: u64) -> Select<Entity> {
    use sea_orm::sea_query::ExprTrait;

    // Both engines look a pair up in an index as a pair.
    let older = after.map(|(created_at, id)| {
        Expr::tuple([Expr::col(Column::CreatedAt), Expr::col(Column::Id)]).lt(Expr::tuple([
            Expr::value(created_at),
            Expr::value(id.to_string()),
        ]))
    });
    Entity::find()
        .filter(filter.condition())
        .filter(Condition::all().add_option(older))
        .order_by(Column::CreatedAt, Order::Desc)
        .order_by(Column::Id, Order::Desc)
        .limit(limit)
}

/// The size of a page for what was asked for.
pub(crate) fn page_size_of(asked: i32) -> Result<u64, Error> {
    match u64::try_from(asked) {
        Err(_) => Err(Error::invalid("page_size", "must not be negative")),
        Ok(0) => Ok(DEFAULT_PAGE),
        Ok(size) => Ok(size.min(LARGEST_PAGE)),
    }
}

/// The least and the greatest id with this prefix; `None` when no id can have it.
fn prefix_range(prefix: &str) -> Option<(String, String)> {
    let lowest = Uuid::nil().to_string();
    let prefix = prefix.to_ascii_lowercase();
    let tail = lowest.get(prefix.len()..)?;
    let fits = prefix.chars().zip(lowest.chars()).all(|(c, model)| match model {
        '-' => c == '-',
        _ => c.is_ascii_hexdigit(),
    });
    (prefix.len() >= SHORTEST_PREFIX && fits).then(|| {
        (
            format!("{prefix}{tail}"),
            format!("{prefix}{}", tail.replace('0', "f")),
        )
    })
}

/// Instant, id, and a digest over both and the filter, so that an edited or foreign token does not pass.
fn write_token(filter: &Filter, last: &Model) -> Result<String, Error> {
    let id = Uuid::parse_str(&last.id).map_err(|_| Error::Corrupt("id"))?;
    let mut bytes = Vec::with_capacity(24 + DIGEST);
    bytes.extend_from_slice(&last.created_at.to_be_bytes());
    bytes.extend_from_slice(id.as_bytes());
    let sealed = seal(filter, &bytes);
    bytes.extend(sealed);
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn read_token(filter: &Filter, token: &str) -> Option<(i64, Uuid)> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (at, rest) = bytes.split_first_chunk::<8>()?;
    let (id, sealed) = rest.split_first_chunk::<16>()?;
    let body = bytes.get(..24)?;
    let genuine = sealed.iter().copied().eq(seal(filter, body));
    genuine.then(|| (i64::from_be_bytes(*at), Uuid::from_bytes(*id)))
}

fn seal(filter: &Filter, body: &[u8]) -> impl Iterator<Item = u8> + use<> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(filter.digest().as_bytes()).update(body);
    let digest: [u8; 32] = hasher.finalize().into();
    digest.into_iter().take(DIGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_spans_the_ids_that_begin_with_it() {
        let (low, high) = prefix_range("0199C2F0-6a").expect("a prefix");
        assert_eq!(low, "0199c2f0-6a00-0000-0000-000000000000");
        assert_eq!(high, "0199c2f0-6aff-ffff-ffff-ffffffffffff");
        for bad in ["0199c2f", "0199c2f06", "0199c2fz", "%%%%%%%%", "", "é199c2f0-6"] {
            assert_eq!(prefix_range(bad), None, "{bad}");
        }
    }

    #[test]
    fn g_132_page_sizes_are_clamped() {
        assert_eq!(page_size_of(0).expect("size"), 50);
        assert_eq!(page_size_of(7).expect("size"), 7);
        assert_eq!(page_size_of(501).expect("size"), 500);
        assert!(page_size_of(-1).is_err());
    }
}
