//! What can go wrong in the kernel, by what the caller can do about it.

use atelier_proto::reason::{self, Problem};
use sea_orm::DbErr;
use tonic::{Code, Status};

/// An error of the kernel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such run of the caller.
    #[error("job {0} not found")]
    JobNotFound(String),
    /// No such workflow of the caller.
    #[error("workflow {0} not found")]
    WorkflowNotFound(String),
    /// The workflow has no such version.
    #[error("workflow {workflow} has no version {version}")]
    VersionNotFound {
        /// The workflow.
        workflow: String,
        /// The version.
        version: i64,
    },
    /// The workflow id was used for another workflow.
    #[error("workflow id {0} is already used for another workflow")]
    WorkflowIdUsed(String),
    /// The idempotency key was used with another request.
    #[error("idempotency key {0} was used with another request")]
    IdempotencyConflict(String),
    /// Somebody saved the workflow meanwhile.
    #[error("workflow {workflow} was saved meanwhile: it is at version {version} with etag {etag}")]
    WorkflowChanged {
        /// The workflow.
        workflow: String,
        /// Its newest version.
        version: i64,
        /// Its etag.
        etag: String,
    },
    /// As many workflows as may be.
    #[error("there are {0} workflows already, and no more may be saved")]
    TooManyWorkflows(u64),
    /// No such node type.
    #[error("node type {0} not found")]
    NodeTypeNotFound(String),
    /// A field of the request is wrong.
    #[error("{field}: {wrong}")]
    InvalidField {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        wrong: String,
    },
    /// The page token is not of this list.
    #[error("page_token: not a token of this list")]
    InvalidPageToken,
    /// The graph cannot be read at all.
    #[error("graph: {0}")]
    MalformedGraph(String),
    /// The job id was used for another request.
    #[error("job id {0} is already used for another request")]
    JobIdUsed(String),
    /// The run does not go on.
    #[error("job {0} is not running")]
    JobNotRunning(String),
    /// The run does not wait for this answer.
    #[error("escalation {0} not found")]
    EscalationNotFound(String),
    /// The run is not suspended.
    #[error("job {0} is not suspended")]
    JobNotSuspended(String),
    /// Too many inputs of the run wait to be taken.
    #[error("too many inputs are waiting ({0})")]
    InputsFull(u64),
    /// The input was finished before.
    #[error("input {0} is finished")]
    InputFinished(String),
    /// The node did not answer.
    #[error("node {node}: {message}")]
    NodeFailed {
        /// The node.
        node: String,
        /// Why.
        message: String,
    },
    /// Another instance drives the run.
    #[error("job {0} is driven by another instance")]
    Fenced(String),
    /// Too many runs wait already.
    #[error("too many runs are waiting ({0})")]
    QueueFull(usize),
    /// The service is going down.
    #[error("the kernel is going down")]
    Draining,
    /// The log cannot be decoded.
    #[error("the log of a job is damaged")]
    DamagedLog,
    /// The store cannot be reached.
    #[error("cannot reach the store of jobs")]
    Store(#[from] DbErr),
    /// The database layer failed.
    #[error("cannot reach the store of jobs")]
    Database(#[from] atelier_common::db::DbError),
    /// A task of ours died.
    #[error("a task of the kernel ended early")]
    Died,
}
impl Error {
    /// Whether the same may succeed a moment later.
    #[must_use]
    pub fn passes(&self) -> bool {
        match self {
            Self::Store(error) => atelier_common::db::transient(error),
            Self::Database(error) => error.transient(),
            _ => false,
        }
    }
    fn parts(&self) -> (Code, &'static str) {
        match self {
            Self::JobNotFound(_) => (Code::NotFound, reason::JOB_NOT_FOUND),
            Self::WorkflowNotFound(_) => (Code::NotFound, reason::WORKFLOW_NOT_FOUND),
            Self::VersionNotFound { .. } => (Code::NotFound, reason::VERSION_NOT_FOUND),
            Self::WorkflowIdUsed(_) => (Code::AlreadyExists, reason::WORKFLOW_ID_USED),
            Self::IdempotencyConflict(_) => (Code::AlreadyExists, reason::IDEMPOTENCY_CONFLICT),
            Self::WorkflowChanged { .. } => (Code::Aborted, reason::WORKFLOW_CHANGED),
            Self::TooManyWorkflows(_) => (Code::ResourceExhausted, reason::TOO_MANY_WORKFLOWS),
            Self::NodeTypeNotFound(_) => (Code::NotFound, reason::NODE_TYPE_NOT_FOUND),
            Self::InvalidField { .. } => (Code::InvalidArgument, reason::INVALID_FIELD),
            Self::InvalidPageToken => (Code::InvalidArgument, reason::INVALID_PAGE_TOKEN),
            Self::MalformedGraph(_) => (Code::InvalidArgument, reason::MALFORMED_GRAPH),
            Self::JobIdUsed(_) => (Code::AlreadyExists, reason::JOB_ID_USED),
            Self::JobNotRunning(_) => (Code::FailedPrecondition, reason::JOB_NOT_RUNNING),
            Self::EscalationNotFound(_) => (Code::NotFound, reason::ESCALATION_NOT_FOUND),
            Self::JobNotSuspended(_) => (Code::FailedPrecondition, reason::JOB_NOT_SUSPENDED),
            Self::InputFinished(_) => (Code::FailedPrecondition, reason::INPUT_FINISHED),
            Self::NodeFailed { .. } => (Code::Aborted, reason::NODE_FAILED),
            Self::Fenced(_) => (Code::Aborted, reason::FENCED),
            Self::QueueFull(_) | Self::InputsFull(_) => (Code::ResourceExhausted, reason::OVERLOADED),
            Self::Draining => (Code::Unavailable, reason::DRAINING),
            Self::Store(_) | Self::Database(_) => (Code::Unavailable, reason::DATABASE_UNAVAILABLE),
            Self::DamagedLog | Self::Died => (Code::Internal, reason::INTERNAL),
        }
    }
}
impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let (code, reason) = error.parts();
        if matches!(code, Code::Internal | Code::Unavailable) {
            tracing::error!(error = &error as &dyn std::error::Error, reason, "a call failed");
        }
        let mut problem = Problem::new(code, reason, "kernel.atelier", error.to_string());
        match &error {
            Error::JobNotFound(id)
            | Error::JobIdUsed(id)
            | Error::Fenced(id)
            | Error::JobNotRunning(id)
            | Error::JobNotSuspended(id) => problem = problem.with("job_id", id),
            Error::EscalationNotFound(id) => problem = problem.with("escalation_id", id),
            Error::InputFinished(input) => problem = problem.with("input", input),
            Error::NodeFailed { node, message: _ } => problem = problem.with("node_id", node),
            Error::WorkflowNotFound(id) | Error::WorkflowIdUsed(id) => {
                problem = problem.with("workflow_id", id)
            }
            Error::VersionNotFound { workflow, version } => {
                problem = problem.with("workflow_id", workflow).with("version", version);
            }
            Error::WorkflowChanged {
                workflow,
                version,
                etag,
            } => {
                problem = problem
                    .with("workflow_id", workflow)
                    .with("version", version)
                    .with("etag", etag);
            }
            Error::IdempotencyConflict(key) => problem = problem.with("idempotency_key", key),
            Error::TooManyWorkflows(count) => problem = problem.with("workflows", count),
            Error::NodeTypeNotFound(node_type) => problem = problem.with("node_type", node_type),
            Error::InvalidField { field, wrong } => problem = problem.field(*field, wrong.as_str()),
            Error::InvalidPageToken => problem = problem.field("page_token", "not a token of this list"),
            Error::MalformedGraph(wrong) => problem = problem.field("graph", wrong.as_str()),
            Error::QueueFull(waiting) => problem = problem.with("waiting", waiting),
            Error::InputsFull(waiting) => problem = problem.with("waiting", waiting),
            Error::Draining | Error::DamagedLog | Error::Store(_) | Error::Database(_) | Error::Died => {}
        }
        problem.into()
    }
}
