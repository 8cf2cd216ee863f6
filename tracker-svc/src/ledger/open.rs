//! Opens a row: ∅ → running. One INSERT that does nothing when the id or the key is there; who was first has the row.

use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, FromQueryResult, QueryFilter, Set};

use super::background;
use super::row::{Changes, Row, insert_with, load, lock, write};
use crate::budgets::book::{Admitted, Book};
use crate::charge::Charge;
use crate::entity::generations::{Column, Entity, Model};
use crate::entity::words::{OutputState, ProviderState, ReconcileState, Status, Submission};
use crate::error::Error;
use crate::metadata::Metadata;
use crate::time::LedgerTime;

/// A row to open.
#[derive(Debug, Clone)]
pub struct Open {
    /// Owner of the row.
    pub user_id: String,
    /// Canonical text of its id.
    pub id: String,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// What is asked.
    pub capability: String,
    /// Who asked.
    pub origin: Origin,
    /// Redacted parameters, a JSON object.
    pub parameters: String,
    /// Unique per user.
    pub idempotency_key: Option<String>,
    /// SHA-256 of the canonical request.
    pub input_fingerprint: String,
    /// What the catalog says.
    pub estimate: Option<Charge>,
    /// What was wrong with the estimate.
    pub warning: Option<String>,
    /// Why there is no estimate.
    pub unpriced_reason: Option<String>,
    /// Whether the caller goes on.
    pub background: bool,
    /// The driver.
    pub instance_id: String,
    /// What another driver needs to finish the call, opaque JSON.
    pub plan: Option<String>,
    /// The row inside of whose call this one is made.
    pub parent: Option<String>,
}

/// Who asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Number of the surface in the contract.
    pub surface: i32,
    /// Chat thread.
    pub thread_id: Option<String>,
    /// Tool call.
    pub tool_call_id: Option<String>,
    /// The client's correlation id.
    pub request_id: Option<String>,
    /// Run.
    pub job_id: Option<String>,
    /// Node.
    pub node_id: Option<String>,
    /// Type of the node.
    pub node_type: Option<String>,
    /// Invocation key.
    pub invocation_id: Option<String>,
    /// Workflow.
    pub workflow_id: Option<String>,
    /// Project.
    pub project_id: Option<String>,
}

/// The open row, or the one that was there.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The row.
    pub row: Row,
    /// Whether this call opened it.
    pub created: bool,
}

/// Opens a row, and holds its estimate of the budgets that it falls under. A request that was seen before gets its row,
/// whatever budgets say by now: it spends nothing.
///
/// # Errors
/// `KeyConflict` when the key or the id belongs to another request; `Invalid` for a parent that is not there; `Exceeded`, `Unpriced`, `BackgroundLimit`.
pub(super) async fn open<C: ConnectionTrait>(
    tx: &C,
    time: &LedgerTime,
    book: &mut Book,
    open: &Open,
) -> Result<Opened, Error> {
    let admitted = match admit(tx, book, open).await {
        Ok(admitted) => admitted,
        Err(refusal @ (Error::Exceeded(_) | Error::Unpriced { .. } | Error::BackgroundLimit { .. })) => {
            return known(tx, open).await?.ok_or(refusal);
        }
        Err(error) => return Err(error),
    };
    let parent = match &open.parent {
        Some(parent) => Some(nesting(tx, &open.user_id, parent).await?),
        None => None,
    };
    let now = time.now();
    let times = [Column::CreatedAt, Column::StartedAt, Column::UpdatedAt];
    let mut insert = insert_with(&values(open), times.map(|column| (column, now.clone())))?;
    insert
        .on_conflict(OnConflict::new().do_nothing().to_owned())
        .returning_all();
    if let Some(row) = tx.query_one(&insert).await? {
        let generation = Model::from_query_result(&row, "")?;
        book.hold(&generation.id, admitted);
        if let Some(parent) = parent {
            delegate(tx, time, &parent, &generation.id).await?;
        }
        return Ok(Opened {
            row: Row {
                generation,
                attempts: Vec::new(),
            },
            created: true,
        });
    }
    // Nothing found means that the id is somebody else's.
    known(tx, open)
        .await?
        .ok_or(Error::KeyConflict { generation_id: None })
}

/// The row inside of whose call another one is made.
async fn nesting<C: ConnectionTrait>(tx: &C, user_id: &str, id: &str) -> Result<Model, Error> {
    match lock(tx, user_id, id).await {
        Err(Error::NotFound) => Err(Error::invalid(
            "parent_generation_id",
            "names no generation of the caller",
        )),
        row => row,
    }
}

/// Notes on the outer row that the inner one carries the charge.
async fn delegate<C: ConnectionTrait>(
    tx: &C,
    time: &LedgerTime,
    parent: &Model,
    child: &str,
) -> Result<(), Error> {
    let mut metadata = Metadata::read(&parent.metadata)?;
    metadata.set_delegated_to(child);
    let changes = Changes {
        metadata: Set(metadata.text()),
        ..Default::default()
    };
    // A row that is settled has its price already.
    let guard = Condition::all().add(Column::Status.eq(Status::Running));
    write(tx, time, parent.into(), changes, Vec::new(), guard).await?;
    Ok(())
}

/// Whether the call may be opened.
async fn admit<C: ConnectionTrait>(tx: &C, book: &Book, open: &Open) -> Result<Admitted, Error> {
    let admitted = book.admit(open)?;
    if open.background {
        book.something_left(&admitted)?;
        background::room(tx, open).await?;
    }
    Ok(admitted)
}

/// The row that has the key or the id, when it is of the same request.
async fn known<C: ConnectionTrait>(tx: &C, open: &Open) -> Result<Option<Opened>, Error> {
    let mut same = Condition::any().add(Column::Id.eq(open.id.as_str()));
    if let Some(key) = &open.idempotency_key {
        same = same.add(Column::IdempotencyKey.eq(key.as_str()));
    }
    let found = Entity::of(&open.user_id).filter(same).all(tx).await?;
    // The key decides before the id.
    let by_key = found
        .iter()
        .find(|row| open.idempotency_key.is_some() && row.idempotency_key == open.idempotency_key);
    let Some(row) = by_key.or(found.first()) else {
        return Ok(None);
    };
    if row.input_fingerprint != open.input_fingerprint || row.idempotency_key != open.idempotency_key {
        return Err(Error::KeyConflict {
            generation_id: Some(row.id.clone()),
        });
    }
    Ok(Some(Opened {
        row: load(tx, &open.user_id, &row.id).await?,
        created: false,
    }))
}

pub(super) fn values(open: &Open) -> Changes {
    let Open {
        user_id,
        id,
        provider,
        model,
        capability,
        origin,
        parameters,
        idempotency_key,
        input_fingerprint,
        estimate,
        warning,
        unpriced_reason,
        background,
        instance_id,
        plan,
        parent,
    } = open.clone();
    let mut metadata = Metadata::default();
    metadata.set_unpriced_reason(unpriced_reason.filter(|_| estimate.is_none()));
    if let Some(warning) = warning {
        metadata.add_price_warning(warning);
    }
    let (estimated_cost, estimated_currency) = estimate.map_or((None, None), |estimate| {
        (Some(estimate.cost), Some(estimate.currency))
    });
    Changes {
        id: Set(id),
        user_id: Set(user_id),
        status: Set(Status::Running),
        submission: Set(Submission::Accepted),
        provider_state: Set(ProviderState::Unknown),
        output: Set(OutputState::Pending),
        provider: Set(provider),
        model: Set(model),
        capability: Set(capability),
        surface: Set(origin.surface),
        thread_id: Set(origin.thread_id),
        tool_call_id: Set(origin.tool_call_id),
        request_id: Set(origin.request_id),
        job_id: Set(origin.job_id),
        node_id: Set(origin.node_id),
        node_type: Set(origin.node_type),
        invocation_id: Set(origin.invocation_id),
        workflow_id: Set(origin.workflow_id),
        project_id: Set(origin.project_id),
        parent_generation_id: Set(parent),
        idempotency_key: Set(idempotency_key),
        input_fingerprint: Set(input_fingerprint),
        background: Set(background),
        parameters: Set(parameters),
        estimated_cost: Set(estimated_cost),
        estimated_currency: Set(estimated_currency),
        reconcile_state: Set(ReconcileState::Nothing),
        reconcile_attempts: Set(0),
        owner_instance: Set(instance_id),
        owner_epoch: Set(1),
        plan: Set(plan),
        resume_pending: Set(false),
        adoptions: Set(0),
        cancel_pending: Set(false),
        metadata: Set(metadata.text()),
        version: Set(1),
        ..Default::default()
    }
}
