//! The words that columns hold, their order, and their forms on the wire.

use atelier_proto::tracker::v1;
use sea_orm::{DeriveActiveEnum, EnumIter};

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "Text")]
pub enum Status {
    /// Open.
    #[sea_orm(string_value = "running")]
    Running,
    /// The provider succeeded.
    #[sea_orm(string_value = "completed")]
    Completed,
    /// An authoritative negative outcome.
    #[sea_orm(string_value = "failed")]
    Failed,
    /// Cancelled before an outcome was recorded.
    #[sea_orm(string_value = "cancelled")]
    Cancelled,
    /// The driver is gone, the outcome is unknown.
    #[sea_orm(string_value = "interrupted")]
    Interrupted,
}
impl Status {
    /// The word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
    /// Reads the wire's number; `None` when unspecified or unknown.
    #[must_use]
    pub fn from_proto(number: i32) -> Option<Self> {
        match v1::GenerationStatus::try_from(number).ok()? {
            v1::GenerationStatus::Unspecified => None,
            v1::GenerationStatus::Running => Some(Self::Running),
            v1::GenerationStatus::Completed => Some(Self::Completed),
            v1::GenerationStatus::Failed => Some(Self::Failed),
            v1::GenerationStatus::Cancelled => Some(Self::Cancelled),
            v1::GenerationStatus::Interrupted => Some(Self::Interrupted),
        }
    }
    /// The wire's form.
    #[must_use]
    pub const fn to_proto(self) -> v1::GenerationStatus {
        match self {
            Self::Running => v1::GenerationStatus::Running,
            Self::Completed => v1::GenerationStatus::Completed,
            Self::Failed => v1::GenerationStatus::Failed,
            Self::Cancelled => v1::GenerationStatus::Cancelled,
            Self::Interrupted => v1::GenerationStatus::Interrupted,
        }
    }
}

/// How far a submission got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "Text")]
pub enum Submission {
    /// Nothing was sent.
    #[sea_orm(string_value = "accepted")]
    Accepted,
    /// The paid request is on its way.
    #[sea_orm(string_value = "submitting")]
    Submitting,
    /// It may or may not have arrived.
    #[sea_orm(string_value = "submission_unknown")]
    Unknown,
    /// The provider has it.
    #[sea_orm(string_value = "submitted")]
    Submitted,
}
impl Submission {
    /// Reads the wire's number; `None` when unspecified or unknown.
    #[must_use]
    pub fn from_proto(number: i32) -> Option<Self> {
        match v1::SubmissionStatus::try_from(number).ok()? {
            v1::SubmissionStatus::Unspecified => None,
            v1::SubmissionStatus::Accepted => Some(Self::Accepted),
            v1::SubmissionStatus::Submitting => Some(Self::Submitting),
            v1::SubmissionStatus::Submitted => Some(Self::Submitted),
            v1::SubmissionStatus::Unknown => Some(Self::Unknown),
        }
    }
    /// The wire's form.
    #[must_use]
    pub const fn to_proto(self) -> v1::SubmissionStatus {
        match self {
            Self::Accepted => v1::SubmissionStatus::Accepted,
            Self::Submitting => v1::SubmissionStatus::Submitting,
            Self::Unknown => v1::SubmissionStatus::Unknown,
            Self::Submitted => v1::SubmissionStatus::Submitted,
        }
    }
    const fn rank(self) -> u8 {
        match self {
            Self::Accepted => 0,
            Self::Submitting => 1,
            Self::Unknown => 2,
            Self::Submitted => 3,
        }
    }
    /// Where it stands after `told`: only forward, but for the one step back that is allowed when the transport proves
    /// that no byte was sent.
    #[must_use]
    pub fn moved(self, told: Option<Self>) -> Self {
        match told {
            Some(Self::Accepted) if self == Self::Submitting => Self::Accepted,
            Some(told) if told.rank() > self.rank() => told,
            Some(_) | None => self,
        }
    }
}

/// What the provider says of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "Text")]
pub enum ProviderState {
    /// Nothing is known.
    #[sea_orm(string_value = "unknown")]
    Unknown,
    /// Waiting there.
    #[sea_orm(string_value = "queued")]
    Queued,
    /// Running there.
    #[sea_orm(string_value = "running")]
    Running,
    /// It succeeded.
    #[sea_orm(string_value = "succeeded")]
    Succeeded,
    /// It failed.
    #[sea_orm(string_value = "failed")]
    Failed,
    /// The provider cancelled it.
    #[sea_orm(string_value = "cancelled")]
    Cancelled,
}
impl ProviderState {
    /// Reads the wire's number; `None` when unspecified or unknown.
    #[must_use]
    pub fn from_proto(number: i32) -> Option<Self> {
        match v1::ProviderStatus::try_from(number).ok()? {
            v1::ProviderStatus::Unspecified => None,
            v1::ProviderStatus::Queued => Some(Self::Queued),
            v1::ProviderStatus::Running => Some(Self::Running),
            v1::ProviderStatus::Succeeded => Some(Self::Succeeded),
            v1::ProviderStatus::Failed => Some(Self::Failed),
            v1::ProviderStatus::Cancelled => Some(Self::Cancelled),
        }
    }
    /// The wire's form.
    #[must_use]
    pub const fn to_proto(self) -> v1::ProviderStatus {
        match self {
            Self::Unknown => v1::ProviderStatus::Unspecified,
            Self::Queued => v1::ProviderStatus::Queued,
            Self::Running => v1::ProviderStatus::Running,
            Self::Succeeded => v1::ProviderStatus::Succeeded,
            Self::Failed => v1::ProviderStatus::Failed,
            Self::Cancelled => v1::ProviderStatus::Cancelled,
        }
    }
    const fn rank(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Queued => 1,
            Self::Running => 2,
            Self::Succeeded | Self::Failed | Self::Cancelled => 3,
        }
    }
    /// Where it stands after `told`: only forward.
    #[must_use]
    pub fn moved(self, told: Option<Self>) -> Self {
        told.filter(|told| told.rank() > self.rank()).unwrap_or(self)
    }
}

/// How far the outputs got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "Text")]
pub enum OutputState {
    /// No output yet.
    #[sea_orm(string_value = "pending")]
    Pending,
    /// Being stored.
    #[sea_orm(string_value = "saving")]
    Saving,
    /// Storing failed and is tried again.
    #[sea_orm(string_value = "retrying")]
    Retrying,
    /// Stored.
    #[sea_orm(string_value = "ready")]
    Ready,
    /// Lost, or undecodable.
    #[sea_orm(string_value = "unavailable")]
    Unavailable,
    /// The request asked for no storing.
    #[sea_orm(string_value = "none")]
    NotAsked,
}
impl OutputState {
    /// Reads the wire's number; `None` when unspecified or unknown.
    #[must_use]
    pub fn from_proto(number: i32) -> Option<Self> {
        match v1::OutputStatus::try_from(number).ok()? {
            v1::OutputStatus::Unspecified => None,
            v1::OutputStatus::Pending => Some(Self::Pending),
            v1::OutputStatus::Saving => Some(Self::Saving),
            v1::OutputStatus::Ready => Some(Self::Ready),
            v1::OutputStatus::Retrying => Some(Self::Retrying),
            v1::OutputStatus::Unavailable => Some(Self::Unavailable),
            v1::OutputStatus::None => Some(Self::NotAsked),
        }
    }
    /// The wire's form.
    #[must_use]
    pub const fn to_proto(self) -> v1::OutputStatus {
        match self {
            Self::Pending => v1::OutputStatus::Pending,
            Self::Saving => v1::OutputStatus::Saving,
            Self::Retrying => v1::OutputStatus::Retrying,
            Self::Ready => v1::OutputStatus::Ready,
            Self::Unavailable => v1::OutputStatus::Unavailable,
            Self::NotAsked => v1::OutputStatus::None,
        }
    }
    const fn rank(self) -> u8 {
        match self {
            Self::Pending => 0,
            Self::Saving => 1,
            Self::Retrying => 2,
            Self::Ready | Self::Unavailable | Self::NotAsked => 3,
        }
    }
    /// Where it stands after `told`: only forward.
    #[must_use]
    pub fn moved(self, told: Option<Self>) -> Self {
        told.filter(|told| told.rank() > self.rank()).unwrap_or(self)
    }
    /// Whether outputs are still on their way into the store.
    #[must_use]
    pub const fn open(self) -> bool {
        matches!(self, Self::Saving | Self::Retrying)
    }
}

/// Where a cost comes from, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "Text")]
pub enum PriceSource {
    /// Computed from a list of prices.
    #[sea_orm(string_value = "model-catalog")]
    Catalog,
    /// Stated by a node.
    #[sea_orm(string_value = "node")]
    Node,
    /// Stated by the provider during the call.
    #[sea_orm(string_value = "provider")]
    Provider,
    /// Read from the provider's bill.
    #[sea_orm(string_value = "provider-billing")]
    Billing,
}
impl PriceSource {
    /// The word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Catalog => "model-catalog",
            Self::Node => "node",
            Self::Provider => "provider",
            Self::Billing => "provider-billing",
        }
    }
}

/// Where the reconciliation of a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "Text")]
pub enum ReconcileState {
    /// Nothing to reconcile.
    #[sea_orm(string_value = "none")]
    Nothing,
    /// Waiting for its due time.
    #[sea_orm(string_value = "queued")]
    Queued,
    /// The bill replaced the estimate.
    #[sea_orm(string_value = "done")]
    Done,
    /// The provider has no bill to read.
    #[sea_orm(string_value = "unavailable")]
    Unavailable,
    /// The provider refused our key.
    #[sea_orm(string_value = "denied")]
    Denied,
    /// Every automatic attempt was in vain.
    #[sea_orm(string_value = "exhausted")]
    Exhausted,
}
impl ReconcileState {
    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::Nothing),
            "queued" => Some(Self::Queued),
            "done" => Some(Self::Done),
            "unavailable" => Some(Self::Unavailable),
            "denied" => Some(Self::Denied),
            "exhausted" => Some(Self::Exhausted),
            _ => None,
        }
    }
    /// The word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Queued => "queued",
            Self::Done => "done",
            Self::Unavailable => "unavailable",
            Self::Denied => "denied",
            Self::Exhausted => "exhausted",
        }
    }
}

/// Why an attempt was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "Text")]
pub enum AttemptKind {
    /// The first.
    #[sea_orm(string_value = "main")]
    Main,
    /// Another try.
    #[sea_orm(string_value = "retry")]
    Retry,
    /// The cheap first pass of a job of two.
    #[sea_orm(string_value = "preview")]
    Preview,
    /// The second pass of a job of two.
    #[sea_orm(string_value = "refine")]
    Refine,
    /// Sent again under the same idempotency key.
    #[sea_orm(string_value = "resubmit")]
    Resubmit,
}
impl AttemptKind {
    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "main" => Some(Self::Main),
            "retry" => Some(Self::Retry),
            "preview" => Some(Self::Preview),
            "refine" => Some(Self::Refine),
            "resubmit" => Some(Self::Resubmit),
            _ => None,
        }
    }
    /// The word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Retry => "retry",
            Self::Preview => "preview",
            Self::Refine => "refine",
            Self::Resubmit => "resubmit",
        }
    }
}
