//! Which rows of a user a list or a sum is about. Every part is joined by AND; the user is always one, but for an admin who
//! asks for the sums of all.

use sea_orm::{ColumnTrait, Condition};

use crate::entity::generations::Column;
use crate::entity::words::{ReconcileState, Status};

/// Which rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Owner of the rows.
    pub user_id: String,
    /// Everybody's rows instead. Only an admin's request has this.
    pub all_users: bool,
    /// Only this status.
    pub status: Option<Status>,
    /// Only this provider.
    pub provider: Option<String>,
    /// Only this model.
    pub model: Option<String>,
    /// Only this capability.
    pub capability: Option<String>,
    /// Only this run.
    pub job_id: Option<String>,
    /// Only this node.
    pub node_id: Option<String>,
    /// Only this chat thread.
    pub thread_id: Option<String>,
    /// Only this workflow.
    pub workflow_id: Option<String>,
    /// Only this project; the empty text means rows of no project.
    pub project_id: Option<String>,
    /// Only this surface.
    pub surface: Option<i32>,
    /// Only rows whose caller went on, or only the others.
    pub background: Option<bool>,
    /// Only rows whose cost is known, or only the others.
    pub has_cost: Option<bool>,
    /// Only this state of the reconciliation.
    pub reconcile_state: Option<ReconcileState>,
    /// Created at or after, in microseconds.
    pub since: Option<i64>,
    /// Created before, in microseconds.
    pub until: Option<i64>,
}

impl Filter {
    /// The WHERE.
    #[must_use]
    pub fn condition(&self) -> Condition {
        let Self {
            user_id,
            all_users,
            status,
            provider,
            model,
            capability,
            job_id,
            node_id,
            thread_id,
            workflow_id,
            project_id,
            surface,
            background,
            has_cost,
            reconcile_state,
            since,
            until,
        } = self;
        let text = |column: Column, value: &Option<String>| value.as_deref().map(|value| column.eq(value));
        Condition::all()
            .add_option((!all_users).then(|| Column::UserId.eq(user_id.as_str())))
            .add_option(status.map(|status| Column::Status.eq(status)))
            .add_option(text(Column::Provider, provider))
            .add_option(text(Column::Model, model))
            .add_option(text(Column::Capability, capability))
            .add_option(text(Column::JobId, job_id))
            .add_option(text(Column::NodeId, node_id))
            .add_option(text(Column::ThreadId, thread_id))
            .add_option(text(Column::WorkflowId, workflow_id))
            .add_option(project_id.as_deref().map(|project_id| match project_id {
                "" => Column::ProjectId.is_null(),
                id => Column::ProjectId.eq(id),
            }))
            .add_option(background.map(|background| Column::Background.eq(background)))
            .add_option(has_cost.map(|known| {
                if known {
                    Column::Cost.is_not_null()
                } else {
                    Column::Cost.is_null()
                }
            }))
            .add_option(reconcile_state.map(|state| Column::ReconcileState.eq(state)))
            .add_option(surface.map(|surface| Column::Surface.eq(surface)))
            .add_option(since.map(|since| Column::CreatedAt.gte(since)))
            .add_option(until.map(|until| Column::CreatedAt.lt(until)))
    }

    /// A digest that tells this filter, with its user, from every other.
    #[must_use]
    pub fn digest(&self) -> blake3::Hash {
        // The debug form quotes every text, so no two filters look the same.
        blake3::hash(format!("{self:?}").as_bytes())
    }
}
