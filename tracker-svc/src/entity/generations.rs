//! The ledger: one row per generation.

use sea_orm::entity::prelude::*;

use super::words::{OutputState, PriceSource, ProviderState, ReconcileState, Status, Submission};

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "generations")]
pub struct Model {
    /// UUID in its canonical text form.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Owner of the row; in the WHERE of every statement for a user.
    pub user_id: String,
    /// What became of it.
    pub status: Status,
    /// How far the latest submission got.
    pub submission: Submission,
    /// What the provider says.
    pub provider_state: ProviderState,
    /// How far the outputs got.
    pub output: OutputState,
    /// Canonical id of the provider.
    pub provider: String,
    /// The provider's own name of the model.
    pub model: String,
    /// What was asked.
    pub capability: String,
    /// Number of the surface in the contract.
    pub surface: i32,
    /// Chat thread of the origin.
    pub thread_id: Option<String>,
    /// Tool call of the origin.
    pub tool_call_id: Option<String>,
    /// The client's correlation id.
    pub request_id: Option<String>,
    /// Run of the origin.
    pub job_id: Option<String>,
    /// Node of the origin.
    pub node_id: Option<String>,
    /// Type of that node.
    pub node_type: Option<String>,
    /// The kernel's invocation key.
    pub invocation_id: Option<String>,
    /// Workflow of the origin.
    pub workflow_id: Option<String>,
    /// Project it is booked on.
    pub project_id: Option<String>,
    /// The row inside of whose call it was made.
    pub parent_generation_id: Option<String>,
    /// Unique per user.
    pub idempotency_key: Option<String>,
    /// SHA-256 of the canonical request, lower-case hex.
    pub input_fingerprint: String,
    /// Whether the caller went on without waiting.
    pub background: bool,
    /// Redacted parameters, a JSON object.
    pub parameters: String,
    /// Cost in billionths; null while unknown.
    pub cost: Option<i64>,
    /// Currency of the cost.
    pub currency: Option<String>,
    /// What was counted.
    pub billing_unit: Option<String>,
    /// How many, a decimal.
    pub quantity: Option<String>,
    /// Price of one, a decimal.
    pub unit_price: Option<String>,
    /// What the catalog said before the call, in billionths; never overwritten.
    pub estimated_cost: Option<i64>,
    /// Currency of the estimate.
    pub estimated_currency: Option<String>,
    /// Where the cost comes from.
    pub price_source: Option<PriceSource>,
    /// Input tokens.
    pub input_tokens: Option<i64>,
    /// Output tokens.
    pub output_tokens: Option<i64>,
    /// The latest attempt's request id.
    pub provider_request_id: Option<String>,
    /// A JSON list; null while open or never produced.
    pub asset_ids: Option<String>,
    /// Why it failed, sanitised.
    pub error: Option<String>,
    /// Machine-readable reason.
    pub error_code: Option<String>,
    /// Where the reconciliation stands.
    pub reconcile_state: ReconcileState,
    /// Automatic attempts so far.
    pub reconcile_attempts: i32,
    /// When the next one is due.
    pub reconcile_next_at: Option<i64>,
    /// When it was done or given up.
    pub reconciled_at: Option<i64>,
    /// What the last look at the bill said.
    pub reconcile_error: Option<String>,
    /// Who looks for the bill; null while nobody does.
    pub reconcile_claim: Option<String>,
    /// When the claim ends.
    pub reconcile_lease_until: Option<i64>,
    /// The key that may not read the bill.
    pub reconcile_denied_for: Option<String>,
    /// Instance that drives the row.
    pub owner_instance: String,
    /// Fencing number of the driver.
    pub owner_epoch: i64,
    /// What another driver needs to finish the call, opaque JSON.
    pub plan: Option<String>,
    /// Whether the driver has still to hear that it was given the row.
    pub resume_pending: bool,
    /// How often the row was given to another driver.
    pub adoptions: i32,
    /// When a cancel was first asked for.
    pub cancel_requested_at: Option<i64>,
    /// Whether the driver has still to hear of the cancel.
    pub cancel_pending: bool,
    /// Why the sweep closed it.
    pub interrupted_reason: Option<String>,
    /// Further facts, a JSON object with a closed set of keys.
    pub metadata: String,
    /// Rises by one with every write.
    pub version: i64,
    /// When it was opened.
    pub created_at: i64,
    /// When it was first submitted.
    pub started_at: i64,
    /// When it left running.
    pub completed_at: Option<i64>,
    /// When it was last written.
    pub updated_at: i64,
    /// How long the call took, in microseconds, by the driver's clock.
    pub duration: Option<i64>,
}

/// None: a row and its attempts are read by two statements.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Entity {
    /// The rows of one user: where every read for a user starts.
    pub fn of(user_id: &str) -> Select<Self> {
        Self::find().filter(Column::UserId.eq(user_id))
    }
}
