//! Some consecutive segments at a time, bounded by what they weigh and not by how many they are.

use atelier_common::db::Db;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};

use crate::{
    entity::segments::{Column, Entity, Model},
    error::Error,
};

/// Segments of a stretch at most.
const SEGMENTS: u64 = 64;
/// What they may weigh together, in bytes; one that is heavier comes alone.
const BYTES: i64 = 4 * 1024 * 1024;

/// The segments that begin at a number or after it: none at the end of the log.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn read(db: &Db, job_key: &str, from: i64) -> Result<Vec<Model>, Error> {
    let sizes: Vec<(i64, i64)> = Entity::find()
        .select_only()
        .column(Column::FirstSeq)
        .expr_as(Expr::cust("CAST(LENGTH(payload) AS BIGINT)"), "bytes")
        .filter(Column::JobKey.eq(job_key))
        .filter(Column::FirstSeq.gte(from))
        .order_by_asc(Column::FirstSeq)
        .limit(SEGMENTS)
        .into_tuple()
        .all(db.read())
        .await?;
    let mut bytes = 0;
    let fit = sizes.iter().take_while(|(_, size)| {
        bytes += size;
        bytes <= BYTES
    });
    let fit = fit.count().max(1);
    let Some((last, _)) = sizes.get(..fit).and_then(<[_]>::last) else {
        return Ok(Vec::new());
    };
    let rows = Entity::find()
        .filter(Column::JobKey.eq(job_key))
        .filter(Column::FirstSeq.between(from, *last))
        .order_by_asc(Column::FirstSeq)
        .all(db.read())
        .await?;
    Ok(rows)
}
