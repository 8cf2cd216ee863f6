//! Enums of the contracts as the lower-case words of the wire, and back.

use atelier_proto::common::v1::Surface;
use atelier_proto::kernel::v1::{
    AssetPersistence, DecidedBy, Disposition, EdgeStatus, EventDetail, JobStatus, NodeStatus, Severity,
    SupervisorAction, VerdictScope,
};
use atelier_proto::tracker::v1::{
    BudgetKind, BudgetPeriod, CostGroup, GenerationStatus, OutputStatus, ProviderStatus, SubmissionStatus,
    UnpricedPolicy,
};

/// The word of a run's state; an unknown one reads as running, which a later frame corrects.
pub(crate) fn job_status(status: i32) -> &'static str {
    match JobStatus::try_from(status).unwrap_or_default() {
        JobStatus::Queued => "queued",
        JobStatus::Unspecified | JobStatus::Running => "running",
        JobStatus::Completed => "completed",
        JobStatus::Failed => "failed",
        JobStatus::Cancelled => "cancelled",
        JobStatus::Suspended => "suspended",
    }
}

/// Whether a run in this state is over.
pub(crate) fn is_terminal(status: i32) -> bool {
    match JobStatus::try_from(status).unwrap_or_default() {
        JobStatus::Completed | JobStatus::Failed | JobStatus::Cancelled => true,
        JobStatus::Unspecified | JobStatus::Queued | JobStatus::Running | JobStatus::Suspended => false,
    }
}

/// The state of a run that a word names.
pub(crate) fn parse_job_status(word: &str) -> Option<JobStatus> {
    Some(match word {
        "queued" => JobStatus::Queued,
        "running" => JobStatus::Running,
        "completed" => JobStatus::Completed,
        "failed" => JobStatus::Failed,
        "cancelled" => JobStatus::Cancelled,
        "suspended" => JobStatus::Suspended,
        _ => return None,
    })
}

/// The word of what is done about a failed invocation; an unknown one reads as fail.
pub(crate) fn supervisor_action(action: i32) -> &'static str {
    match SupervisorAction::try_from(action).unwrap_or_default() {
        SupervisorAction::Retry => "retry",
        SupervisorAction::Substitute => "substitute",
        SupervisorAction::Skip => "skip",
        SupervisorAction::EndStream => "end_stream",
        SupervisorAction::Unspecified | SupervisorAction::Fail => "fail",
    }
}

/// What is done about a failed invocation, by its word.
pub(crate) fn parse_supervisor_action(word: &str) -> Option<SupervisorAction> {
    Some(match word {
        "retry" => SupervisorAction::Retry,
        "substitute" => SupervisorAction::Substitute,
        "skip" => SupervisorAction::Skip,
        "end_stream" => SupervisorAction::EndStream,
        "fail" => SupervisorAction::Fail,
        _ => return None,
    })
}

/// The word of what a verdict holds for.
pub(crate) fn verdict_scope(scope: i32) -> &'static str {
    match VerdictScope::try_from(scope).unwrap_or_default() {
        VerdictScope::Unspecified | VerdictScope::Invocation => "invocation",
        VerdictScope::Signature => "signature",
    }
}

/// What a verdict holds for, by its word.
pub(crate) fn parse_verdict_scope(word: &str) -> Option<VerdictScope> {
    Some(match word {
        "invocation" => VerdictScope::Invocation,
        "signature" => VerdictScope::Signature,
        _ => return None,
    })
}

/// The word of who decided.
pub(crate) fn decided_by(decided_by: i32) -> &'static str {
    match DecidedBy::try_from(decided_by).unwrap_or_default() {
        DecidedBy::Unspecified | DecidedBy::Default => "default",
        DecidedBy::Agent => "agent",
        DecidedBy::Sticky => "sticky",
        DecidedBy::Bounds => "bounds",
        DecidedBy::Kernel => "kernel",
    }
}

/// The word of a node's state.
pub(crate) fn node_status(status: i32) -> &'static str {
    match NodeStatus::try_from(status).unwrap_or_default() {
        NodeStatus::Unspecified | NodeStatus::Running => "running",
        NodeStatus::Completed => "completed",
        NodeStatus::Error => "error",
        NodeStatus::Suspended => "suspended",
        NodeStatus::Warning => "warning",
    }
}

/// The word of an edge's state.
pub(crate) fn edge_status(status: i32) -> &'static str {
    match EdgeStatus::try_from(status).unwrap_or_default() {
        EdgeStatus::Unspecified | EdgeStatus::Active => "active",
        EdgeStatus::Completed => "completed",
        EdgeStatus::Drained => "drained",
    }
}

/// The word of a disposition; absent means append.
pub(crate) fn disposition(disposition: i32) -> Option<&'static str> {
    match Disposition::try_from(disposition).unwrap_or_default() {
        Disposition::Unspecified => None,
        Disposition::Append => Some("append"),
        Disposition::Replace => Some("replace"),
    }
}

/// The word of a severity.
pub(crate) fn severity(severity: i32) -> &'static str {
    match Severity::try_from(severity).unwrap_or_default() {
        Severity::Unspecified | Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// How much subscribers are told.
pub(crate) fn parse_event_detail(word: &str) -> Option<EventDetail> {
    Some(match word {
        "full" => EventDetail::Full,
        "outputs" => EventDetail::Outputs,
        "terminal" => EventDetail::Terminal,
        _ => return None,
    })
}

/// Whether media are saved.
pub(crate) fn parse_asset_persistence(word: &str) -> Option<AssetPersistence> {
    Some(match word {
        "auto" => AssetPersistence::Auto,
        "temporary" => AssetPersistence::Temporary,
        _ => return None,
    })
}

/// The word of a row's status.
pub(crate) fn generation_status(status: i32) -> &'static str {
    match GenerationStatus::try_from(status).unwrap_or_default() {
        GenerationStatus::Unspecified | GenerationStatus::Running => "running",
        GenerationStatus::Completed => "completed",
        GenerationStatus::Failed => "failed",
        GenerationStatus::Cancelled => "cancelled",
        GenerationStatus::Interrupted => "interrupted",
    }
}

/// The status of a row that a word names.
pub(crate) fn parse_generation_status(word: &str) -> Option<GenerationStatus> {
    Some(match word {
        "running" => GenerationStatus::Running,
        "completed" => GenerationStatus::Completed,
        "failed" => GenerationStatus::Failed,
        "cancelled" => GenerationStatus::Cancelled,
        "interrupted" => GenerationStatus::Interrupted,
        _ => return None,
    })
}

/// How far a submission got.
pub(crate) fn submission(status: i32) -> Option<&'static str> {
    match SubmissionStatus::try_from(status).unwrap_or_default() {
        SubmissionStatus::Unspecified => None,
        SubmissionStatus::Accepted => Some("accepted"),
        SubmissionStatus::Submitting => Some("submitting"),
        SubmissionStatus::Submitted => Some("submitted"),
        SubmissionStatus::Unknown => Some("unknown"),
    }
}

/// What the provider says of its job.
pub(crate) fn provider(status: i32) -> Option<&'static str> {
    match ProviderStatus::try_from(status).unwrap_or_default() {
        ProviderStatus::Unspecified => None,
        ProviderStatus::Queued => Some("queued"),
        ProviderStatus::Running => Some("running"),
        ProviderStatus::Succeeded => Some("succeeded"),
        ProviderStatus::Failed => Some("failed"),
        ProviderStatus::Cancelled => Some("cancelled"),
    }
}

/// How far the outputs got.
pub(crate) fn output(status: i32) -> Option<&'static str> {
    match OutputStatus::try_from(status).unwrap_or_default() {
        OutputStatus::Unspecified => None,
        OutputStatus::Pending => Some("pending"),
        OutputStatus::Saving => Some("saving"),
        OutputStatus::Ready => Some("ready"),
        OutputStatus::Retrying => Some("retrying"),
        OutputStatus::Unavailable => Some("unavailable"),
        OutputStatus::None => Some("none"),
    }
}

/// The surface that asked.
pub(crate) fn surface(surface: i32) -> Option<&'static str> {
    match Surface::try_from(surface).unwrap_or_default() {
        Surface::Unspecified => None,
        Surface::Workflow => Some("workflow"),
        Surface::Capability => Some("capability"),
        Surface::Chat => Some("chat"),
        Surface::Rpc => Some("rpc"),
        Surface::Cli => Some("cli"),
        Surface::App => Some("app"),
    }
}

/// What costs are grouped by.
pub(crate) fn parse_cost_group(word: &str) -> Option<CostGroup> {
    Some(match word {
        "provider" => CostGroup::Provider,
        "model" => CostGroup::Model,
        "capability" => CostGroup::Capability,
        "job" => CostGroup::Job,
        "day" => CostGroup::Day,
        "node" => CostGroup::Node,
        "project" => CostGroup::Project,
        "surface" => CostGroup::Surface,
        "user" => CostGroup::User,
        _ => return None,
    })
}

/// Which calls a budget bounds.
pub(crate) fn budget_kind(kind: i32) -> &'static str {
    match BudgetKind::try_from(kind).unwrap_or_default() {
        BudgetKind::Unspecified | BudgetKind::User => "user",
        BudgetKind::Project => "project",
        BudgetKind::Workflow => "workflow",
        BudgetKind::Run => "run",
        BudgetKind::Provider => "provider",
    }
}

/// Which calls a budget is to bound.
pub(crate) fn parse_budget_kind(word: &str) -> Option<BudgetKind> {
    Some(match word {
        "user" => BudgetKind::User,
        "project" => BudgetKind::Project,
        "workflow" => BudgetKind::Workflow,
        "run" => BudgetKind::Run,
        "provider" => BudgetKind::Provider,
        _ => return None,
    })
}

/// When a budget starts over.
pub(crate) fn budget_period(period: i32) -> &'static str {
    match BudgetPeriod::try_from(period).unwrap_or_default() {
        BudgetPeriod::Day => "day",
        BudgetPeriod::Month => "month",
        BudgetPeriod::Unspecified | BudgetPeriod::Total => "total",
    }
}

/// When a budget is to start over.
pub(crate) fn parse_budget_period(word: &str) -> Option<BudgetPeriod> {
    Some(match word {
        "day" => BudgetPeriod::Day,
        "month" => BudgetPeriod::Month,
        "total" => BudgetPeriod::Total,
        _ => return None,
    })
}

/// What happens to calls without a price.
pub(crate) fn unpriced_policy(policy: i32) -> &'static str {
    match UnpricedPolicy::try_from(policy).unwrap_or_default() {
        UnpricedPolicy::Unspecified | UnpricedPolicy::Allow => "allow",
        UnpricedPolicy::Deny => "deny",
        UnpricedPolicy::Assume => "assume",
    }
}

/// What is to happen to calls without a price.
pub(crate) fn parse_unpriced_policy(word: &str) -> Option<UnpricedPolicy> {
    Some(match word {
        "allow" => UnpricedPolicy::Allow,
        "deny" => UnpricedPolicy::Deny,
        "assume" => UnpricedPolicy::Assume,
        _ => return None,
    })
}
