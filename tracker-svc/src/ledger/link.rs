//! Adds assets to a row, as an ordered set: any status → the same.

use sea_orm::{Condition, ConnectionTrait, Set};

use super::row::{Changes, Row, load, lock, read_ids, union, write, write_ids};
use crate::error::Error;
use crate::time::LedgerTime;

/// Assets to link.
#[derive(Debug, Clone)]
pub struct Link {
    /// Owner of the row.
    pub user_id: String,
    /// The row.
    pub id: String,
    /// The assets, in order.
    pub asset_ids: Vec<String>,
}

/// Links; the row as it is then.
///
/// # Errors
/// `NotFound`.
pub(super) async fn link<C: ConnectionTrait>(tx: &C, time: &LedgerTime, link: &Link) -> Result<Row, Error> {
    let row = lock(tx, &link.user_id, &link.id).await?;
    let (assets, grown) = union(read_ids(row.asset_ids.as_deref())?, &link.asset_ids);
    if grown {
        let changes = Changes {
            asset_ids: Set(Some(write_ids(&assets))),
            ..Default::default()
        };
        write(tx, time, (&row).into(), changes, Vec::new(), Condition::all()).await?;
    }
    load(tx, &link.user_id, &link.id).await
}
