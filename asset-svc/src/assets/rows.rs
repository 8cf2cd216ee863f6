//! Rows of assets: scoped reads, and writes that may be repeated.

use atelier_common::db::{Db, DbError, GroupCommit};
use atelier_common::identity::Caller;
use atelier_common::tasks::Tasks;
use atelier_proto::ids::AssetId;
use atelier_proto::value::{self, BytesForm, Map, Value};
use futures_util::FutureExt;
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait,
    IntoActiveModel, QueryFilter, Select, SqlErr, TryInsertResult,
};

use crate::entity::asset::{Column, Entity, Model};
use crate::error::Error;

/// Most writes in one transaction.
const MAX_BATCH: usize = 64;
/// How often slots are tried to be filled when another process fills them at the same time.
const ATTEMPTS: u32 = 3;

/// Where in a run's results an asset stands, for one user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The run.
    pub job_id: String,
    /// The node.
    pub node_id: String,
    /// Which artifact of the node in the run.
    pub index: i64,
    /// The output handle.
    pub handle: String,
    /// Position below the handle.
    pub element: i32,
}

/// One slot that is to be filled.
#[derive(Debug, Clone)]
pub struct Fill {
    /// An asset without a slot that takes it, if it still can.
    pub take: Option<Model>,
    /// The row that is made when there is none to take. It carries the slot.
    pub make: Model,
}

/// A write of the queue.
#[derive(Debug, Clone)]
enum Write {
    /// A row, unless one with its idempotency key is there.
    Create(Box<Model>),
    /// All slots of an artifact that are not filled yet.
    Fill(Vec<Fill>),
}

/// The rows of all users.
#[derive(Clone)]
pub struct Rows {
    db: Db,
    queue: GroupCommit<Write, Vec<Model>, Error>,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rows")
    }
}

/// The assets of one user: where every read begins.
#[must_use]
pub fn of(caller: &Caller) -> Select<Entity> {
    Entity::find().filter(Column::UserId.eq(&caller.user_id))
}

impl Rows {
    /// Rows of a migrated database.
    #[must_use]
    pub fn new(db: Db, tasks: &Tasks) -> Self {
        let queue = GroupCommit::new(db.clone(), tasks, "assets", MAX_BATCH, |tx, writes| {
            apply(tx, writes).boxed()
        });
        Self { db, queue }
    }

    /// The database.
    #[must_use]
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// One asset of the caller. Cancel safe.
    ///
    /// # Errors
    /// `NotFound` for ids of nobody, of somebody else, and for what is no id; `Database`.
    pub async fn get(&self, caller: &Caller, asset_id: &str) -> Result<Model, Error> {
        let id: AssetId = asset_id.parse().map_err(|_| Error::NotFound)?;
        of(caller)
            .filter(Column::Id.eq(id.to_string()))
            .one(self.db.read())
            .await?
            .ok_or(Error::NotFound)
    }

    /// Those of these assets that are the caller's. Cancel safe.
    ///
    /// # Errors
    /// `Database`.
    pub async fn get_many(&self, caller: &Caller, ids: Vec<String>) -> Result<Vec<Model>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        Ok(of(caller)
            .filter(Column::Id.is_in(ids))
            .all(self.db.read())
            .await?)
    }

    /// The asset that was uploaded with a key. Cancel safe.
    ///
    /// # Errors
    /// `Database`.
    pub async fn by_key(&self, caller: &Caller, key: &str) -> Result<Option<Model>, Error> {
        Ok(of(caller)
            .filter(Column::IdempotencyKey.eq(key))
            .one(self.db.read())
            .await?)
    }

    /// The assets of one artifact. Cancel safe.
    ///
    /// # Errors
    /// `Database`.
    pub async fn of_artifact(
        &self,
        caller: &Caller,
        job_id: &str,
        node_id: &str,
        index: i64,
    ) -> Result<Vec<Model>, Error> {
        let found = of(caller)
            .filter(Column::SlotJobId.eq(job_id))
            .filter(Column::SlotNodeId.eq(node_id))
            .filter(Column::SlotIndex.eq(index));
        Ok(found.all(self.db.read()).await?)
    }

    /// Makes a row; when one with its idempotency key is there already, answers with that one. Dropped while waiting,
    /// the row may be made.
    ///
    /// # Errors
    /// `Database`.
    pub async fn create(&self, row: Model) -> Result<Model, Error> {
        let made = self.queue.submit(Write::Create(Box::new(row))).await?;
        made.into_iter()
            .next()
            .ok_or(Error::Bug("a created row is missing"))
    }

    /// Fills slots, all or none, and answers with the assets that stand in them, in the same order. A slot that somebody
    /// else has filled keeps what it has. Dropped while waiting, the slots may be filled.
    ///
    /// # Errors
    /// `Database`.
    pub async fn fill(&self, fills: Vec<Fill>) -> Result<Vec<Model>, Error> {
        if fills.is_empty() {
            return Ok(Vec::new());
        }
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            match self.queue.submit(Write::Fill(fills.clone())).await {
                Err(Error::Database(error)) if left > 0 && may_pass(&error) => {
                    tracing::debug!(error = &error as &dyn std::error::Error, "slots are filled again");
                }
                filled => return filled,
            }
        }
    }
}

/// Whether a transaction lost against another process that filled the same slots, and will see them next time.
fn may_pass(error: &DbError) -> bool {
    let lost = |error: &DbErr| matches!(error.sql_err(), Some(SqlErr::UniqueConstraintViolation(_)));
    error.answered() && (error.transient() || matches!(error, DbError::Operation(error) if lost(error)))
}

async fn apply(tx: &DatabaseTransaction, writes: Vec<Write>) -> Result<Vec<Vec<Model>>, Error> {
    let mut answers = Vec::with_capacity(writes.len());
    for write in writes {
        answers.push(match write {
            Write::Create(row) => vec![create(tx, *row).await?],
            Write::Fill(fills) => {
                let mut filled = Vec::with_capacity(fills.len());
                for one in fills {
                    filled.push(fill(tx, one).await?);
                }
                filled
            }
        });
    }
    Ok(answers)
}

/// Inserts unless a unique index says no; false then.
async fn insert(tx: &impl ConnectionTrait, row: Model) -> Result<bool, Error> {
    // Every column is set: the model comes from here and not from the database.
    let row = row.into_active_model().reset_all();
    let inserted = Entity::insert(row)
        .on_conflict(OnConflict::new().do_nothing().to_owned())
        .try_insert()
        .exec_without_returning(tx)
        .await?;
    Ok(matches!(inserted, TryInsertResult::Inserted(rows) if rows > 0))
}

async fn create(tx: &impl ConnectionTrait, row: Model) -> Result<Model, Error> {
    if insert(tx, row.clone()).await? {
        return Ok(row);
    }
    let first = Entity::find()
        .filter(Column::UserId.eq(&row.user_id))
        .filter(Column::IdempotencyKey.eq(row.idempotency_key))
        .one(tx)
        .await?;
    first.ok_or(Error::Bug("a row was refused and no other has its key"))
}

async fn fill(tx: &impl ConnectionTrait, fill: Fill) -> Result<Model, Error> {
    let Fill { take, make } = fill;
    if let Some(taken) = take {
        // To give a slot is an UPDATE, which a filled one would break; the INSERT below steps around it.
        if let Some(row) = in_slot(tx, &make).await? {
            return Ok(row);
        }
        if let Some(row) = give_slot(tx, taken, &make).await? {
            return Ok(row);
        }
    }
    if insert(tx, make.clone()).await? {
        return Ok(make);
    }
    in_slot(tx, &make)
        .await?
        .ok_or(Error::Bug("a row was refused and its slot is empty"))
}

fn slot_condition(row: &Model) -> Condition {
    Condition::all()
        .add(Column::UserId.eq(&row.user_id))
        .add(Column::SlotJobId.eq(row.slot_job_id.clone()))
        .add(Column::SlotNodeId.eq(row.slot_node_id.clone()))
        .add(Column::SlotIndex.eq(row.slot_index))
        .add(Column::SlotHandle.eq(row.slot_handle.clone()))
        .add(Column::SlotElement.eq(row.slot_element))
}

async fn in_slot(tx: &impl ConnectionTrait, row: &Model) -> Result<Option<Model>, Error> {
    Ok(Entity::find().filter(slot_condition(row)).one(tx).await?)
}

/// Gives an asset its slot, once; `None` when it has got another one in the meantime.
async fn give_slot(tx: &impl ConnectionTrait, asset: Model, slot: &Model) -> Result<Option<Model>, Error> {
    let row = Model {
        job_id: slot.job_id.clone(),
        node_id: slot.node_id.clone(),
        workflow_id: asset.workflow_id.clone().or_else(|| slot.workflow_id.clone()),
        slot_job_id: slot.slot_job_id.clone(),
        slot_node_id: slot.slot_node_id.clone(),
        slot_index: slot.slot_index,
        slot_handle: slot.slot_handle.clone(),
        slot_element: slot.slot_element,
        generation_ids: slot.generation_ids.clone(),
        metadata: slot.metadata.clone(),
        ..asset
    };
    let given = Entity::update_many()
        .col_expr(Column::JobId, Expr::value(row.job_id.clone()))
        .col_expr(Column::NodeId, Expr::value(row.node_id.clone()))
        .col_expr(Column::WorkflowId, Expr::value(row.workflow_id.clone()))
        .col_expr(Column::SlotJobId, Expr::value(row.slot_job_id.clone()))
        .col_expr(Column::SlotNodeId, Expr::value(row.slot_node_id.clone()))
        .col_expr(Column::SlotIndex, Expr::value(row.slot_index))
        .col_expr(Column::SlotHandle, Expr::value(row.slot_handle.clone()))
        .col_expr(Column::SlotElement, Expr::value(row.slot_element))
        .col_expr(Column::GenerationIds, Expr::value(row.generation_ids.clone()))
        .col_expr(Column::Metadata, Expr::value(row.metadata.clone()))
        .filter(Column::Id.eq(&row.id))
        .filter(Column::UserId.eq(&row.user_id))
        .filter(Column::SlotIndex.is_null())
        .exec(tx)
        .await?
        .rows_affected
        == 1;
    Ok(given.then_some(row))
}

/// Generation ids as a column holds them.
///
/// # Errors
/// `Row`, which cannot be for texts.
pub fn ids_to_column(ids: &[String]) -> Result<String, Error> {
    serde_json::to_string(ids).map_err(Error::Row)
}

/// Generation ids of a row.
///
/// # Errors
/// `Row` when the column is broken.
pub fn ids_of(row: &Model) -> Result<Vec<String>, Error> {
    serde_json::from_str(&row.generation_ids).map_err(Error::Row)
}

/// Metadata as a column holds them.
#[must_use]
pub fn metadata_to_column(metadata: &Map) -> String {
    value::to_json(&Value::map(metadata.clone()), BytesForm::Tagged).to_string()
}

/// Metadata of a row.
///
/// # Errors
/// `Row` when the column is broken.
pub fn metadata_of(row: &Model) -> Result<Map, Error> {
    let json = serde_json::from_str(&row.metadata).map_err(Error::Row)?;
    Ok(value::map_from_json(json).unwrap_or_default())
}
