//! What every transition needs: reading a row for writing, the fence, and the one way to write it.

use sea_orm::sea_query::{Expr, ExprTrait, InsertStatement, Query};
use sea_orm::{
    ActiveModelTrait, ActiveValue, ColumnTrait, Condition, ConnectionTrait, EntityName, EntityTrait,
    Iterable, QueryFilter, QueryOrder, QuerySelect,
};

use crate::entity::attempts;
use crate::entity::generations::{self, ActiveModel, Column, Entity, Model};
use crate::entity::words::Status;
use crate::error::Error;
use crate::time::LedgerTime;

/// A row with its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The row.
    pub generation: Model,
    /// Its submissions, in order.
    pub attempts: Vec<attempts::Model>,
}

/// Who drives a row, and since which change of driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// The instance.
    pub instance_id: String,
    /// Its fencing number.
    pub epoch: i64,
}

impl Driver {
    /// Whether the row is this driver's.
    #[must_use]
    pub fn drives(&self, row: &Model) -> bool {
        row.owner_instance == self.instance_id && row.owner_epoch == self.epoch
    }

    /// Refuses a driver that lost the row: to another one, or to the sweep.
    pub(super) fn fence(&self, row: &Model) -> Result<(), Error> {
        if self.drives(row) && row.status != Status::Interrupted {
            Ok(())
        } else {
            Err(self.fenced())
        }
    }

    pub(super) fn fenced(&self) -> Error {
        Error::Fenced {
            instance: self.instance_id.clone(),
            epoch: self.epoch,
        }
    }

    /// The fence, inside a statement.
    pub(super) fn guard(&self) -> Condition {
        Condition::all()
            .add(Column::OwnerInstance.eq(self.instance_id.as_str()))
            .add(Column::OwnerEpoch.eq(self.epoch))
    }
}

/// Reads a row of the user and keeps others from writing it until the transaction ends.
pub(super) async fn lock<C: ConnectionTrait>(tx: &C, user_id: &str, id: &str) -> Result<Model, Error> {
    Entity::of(user_id)
        .filter(Column::Id.eq(id))
        .lock_exclusive()
        .one(tx)
        .await?
        .ok_or(Error::NotFound)
}

/// The row with its attempts, as it stands in this transaction.
pub(crate) async fn load<C: ConnectionTrait>(tx: &C, user_id: &str, id: &str) -> Result<Row, Error> {
    let generation = Entity::of(user_id)
        .filter(Column::Id.eq(id))
        .one(tx)
        .await?
        .ok_or(Error::NotFound)?;
    Ok(Row {
        attempts: attempts_of(tx, id).await?,
        generation,
    })
}

/// The attempts of a row, in order.
pub(super) async fn attempts_of<C: ConnectionTrait>(tx: &C, id: &str) -> Result<Vec<attempts::Model>, Error> {
    Ok(attempts::Entity::find()
        .filter(attempts::Column::GenerationId.eq(id))
        .order_by_asc(attempts::Column::AttemptNumber)
        .all(tx)
        .await?)
}

/// A row by its name: no statement names one without its user.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) user_id: &'a str,
    pub(super) id: &'a str,
}

impl<'a> From<&'a Model> for Named<'a> {
    fn from(row: &'a Model) -> Self {
        Self {
            user_id: &row.user_id,
            id: &row.id,
        }
    }
}

/// Columns that a statement computes.
pub(super) type Computed = Vec<(Column, Expr)>;

/// Writes a row in one statement: the changes, one version more, and only where `guard` holds. The row as it is then, or
/// `None` when the guard did not hold.
pub(super) async fn write<C: ConnectionTrait>(
    tx: &C,
    time: &LedgerTime,
    row: Named<'_>,
    changes: ActiveModel,
    computed: Computed,
    guard: Condition,
) -> Result<Option<Model>, Error> {
    let mut update = Entity::update_many()
        .set(changes)
        .col_expr(Column::Version, Expr::col(Column::Version).add(1))
        .col_expr(Column::UpdatedAt, time.now());
    for (column, value) in computed {
        update = update.col_expr(column, value);
    }
    let done = update
        .filter(Column::Id.eq(row.id))
        .filter(Column::UserId.eq(row.user_id))
        .filter(guard)
        .exec_with_returning(tx)
        .await?;
    Ok(done.into_iter().next())
}

/// Notes that the driver has heard of the cancel. No change that anybody sees, so the version stays.
pub(super) async fn cancel_told<C: ConnectionTrait>(tx: &C, row: &Model) -> Result<(), Error> {
    if row.cancel_pending {
        Entity::update_many()
            .col_expr(Column::CancelPending, Expr::value(false))
            .filter(Column::Id.eq(row.id.as_str()))
            .exec(tx)
            .await?;
    }
    Ok(())
}

/// An INSERT of what is set in `model`, with further columns that the statement computes.
pub(crate) fn insert_with<A: ActiveModelTrait>(
    model: &A,
    computed: impl IntoIterator<Item = (<A::Entity as EntityTrait>::Column, Expr)>,
) -> Result<InsertStatement, Error> {
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for column in <A::Entity as EntityTrait>::Column::iter() {
        if let ActiveValue::Set(value) | ActiveValue::Unchanged(value) = model.get(column) {
            columns.push(column);
            values.push(Expr::value(value));
        }
    }
    for (column, value) in computed {
        columns.push(column);
        values.push(value);
    }
    let mut insert = Query::insert();
    insert
        .into_table(A::Entity::default().table_ref())
        .columns(columns);
    insert
        .values(values)
        .map_err(|_| Error::Corrupt("columns of an insert"))?;
    Ok(insert)
}

/// Reads the ledger's clock. For what a JSON column keeps; everything else takes the time inside its statement.
pub(crate) async fn clock<C: ConnectionTrait>(tx: &C, time: &LedgerTime) -> Result<i64, Error> {
    let statement = sea_orm::Statement::from_string(
        tx.get_database_backend(),
        format!("SELECT CAST({} AS BIGINT) AS at", time.sql()),
    );
    let row = tx
        .query_one_raw(statement)
        .await?
        .ok_or(Error::Corrupt("clock"))?;
    Ok(row.try_get("", "at")?)
}

/// The ids of a list column.
pub(crate) fn read_ids(text: Option<&str>) -> Result<Vec<String>, Error> {
    text.map_or_else(
        || Ok(Vec::new()),
        |text| serde_json::from_str(text).map_err(|_| Error::Corrupt("asset_ids")),
    )
}

/// The ordered union of two lists, and whether it is more than the first.
pub(super) fn union(mut have: Vec<String>, more: &[String]) -> (Vec<String>, bool) {
    let before = have.len();
    for id in more {
        if !have.contains(id) {
            have.push(id.clone());
        }
    }
    let grown = have.len() > before;
    (have, grown)
}

/// The text of a list column.
pub(super) fn write_ids(ids: &[String]) -> String {
    serde_json::Value::from(ids.to_vec()).to_string()
}

pub(super) use generations::ActiveModel as Changes;
