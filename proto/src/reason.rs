//! Every error reason of atelier, once, and the details that carry them over gRPC.
//!
//! A `Status` of ours always has an `ErrorInfo` with one of these reasons; [`reason_of`] reads it back.

use std::collections::HashMap;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident;)*) => { $($(#[$doc])* pub const $name: &str = stringify!($name);)* };
}
reasons! {
    /// No such generation of the caller.
    GENERATION_NOT_FOUND;
    /// No such asset of the caller.
    ASSET_NOT_FOUND;
    /// No such run of the caller.
    JOB_NOT_FOUND;
    /// No such workflow of the caller.
    WORKFLOW_NOT_FOUND;
    /// The workflow has no such version.
    VERSION_NOT_FOUND;
    /// The workflow id was used for another workflow.
    WORKFLOW_ID_USED;
    /// The workflow is not what the caller took it for: somebody saved it meanwhile.
    WORKFLOW_CHANGED;
    /// The caller has as many workflows as may be.
    TOO_MANY_WORKFLOWS;
    /// No such node type.
    NODE_TYPE_NOT_FOUND;
    /// A field of the request is wrong; the details name it.
    INVALID_FIELD;
    /// The page token is not of this list.
    INVALID_PAGE_TOKEN;
    /// The prefix of an id fits several.
    AMBIGUOUS_ID;
    /// The idempotency key was used with another request.
    IDEMPOTENCY_CONFLICT;
    /// The job id was used with another request.
    JOB_ID_USED;
    /// The run does not go on.
    JOB_NOT_RUNNING;
    /// No such question of the run, or it is answered.
    ESCALATION_NOT_FOUND;
    /// The run is not suspended.
    JOB_NOT_SUSPENDED;
    /// The input of the run was finished before.
    INPUT_FINISHED;
    /// A node failed, or ended, before it answered.
    NODE_FAILED;
    /// The graph is not an object with nodes and edges.
    MALFORMED_GRAPH;
    /// Another driver has the row.
    FENCED;
    /// The attempt has another request id.
    ATTEMPT_BOUND;
    /// Outputs are still being saved.
    OUTPUTS_OPEN;
    /// The row is not in the status that the call needs.
    NOT_RUNNING;
    /// Somebody is looking for the bill of the row already.
    RECONCILE_IN_PROGRESS;
    /// The call would go over a budget; nothing was sent.
    BUDGET_EXCEEDED;
    /// The call has no known price and a budget does not let it pass; nothing was sent.
    UNPRICED_DENIED;
    /// No such budget of the caller.
    BUDGET_NOT_FOUND;
    /// The budget was set by an admin, and only an admin can change it.
    BUDGET_MANAGED;
    /// Only an admin may ask this.
    ADMIN_ONLY;
    /// As many background calls of the run go on as may.
    BACKGROUND_LIMIT;
    /// The ledger cannot be reached; nothing was sent.
    LEDGER_UNAVAILABLE;
    /// The store of assets cannot be reached.
    STORE_UNAVAILABLE;
    /// The database cannot be reached.
    DATABASE_UNAVAILABLE;
    /// The asset is larger than allowed.
    ASSET_TOO_LARGE;
    /// The range lies outside the asset.
    RANGE_NOT_SATISFIABLE;
    /// No such provider.
    UNKNOWN_PROVIDER;
    /// The provider has no such model.
    UNKNOWN_MODEL;
    /// No provider can do this.
    UNKNOWN_CAPABILITY;
    /// The provider needs a key that is not there.
    MISSING_CREDENTIAL;
    /// The provider refused or failed; the metadata name the class.
    PROVIDER_ERROR;
    /// The provider refused the content.
    CONTENT_FILTERED;
    /// The provider could not be reached; nothing was sent.
    PROVIDER_UNREACHABLE;
    /// The request may or may not have arrived.
    SUBMISSION_UNKNOWN;
    /// Too late.
    TIMEOUT;
    /// The provider's answer had no usable output.
    OUTPUT_UNDECODABLE;
    /// The generation was cancelled.
    CANCELLED;
    /// The driver is gone and the outcome is unknown.
    INTERRUPTED;
    /// A worker said something that is not allowed at that point.
    WORKER_PROTOCOL;
    /// The instance of the worker has a newer stream.
    WORKER_REPLACED;
    /// The service is going down.
    DRAINING;
    /// No caller, or not a valid one.
    UNAUTHENTICATED;
    /// The service has too much to do.
    OVERLOADED;
    /// A bug of ours.
    INTERNAL;
}

/// The parts of a status of ours.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The gRPC code.
    pub code: Code,
    /// One of the reasons above.
    pub reason: &'static str,
    /// The message: lower case, no secrets.
    pub message: String,
    /// Who says so, for instance `tracker.atelier`.
    pub domain: &'static str,
    /// Whatever varies in the message.
    pub metadata: HashMap<String, String>,
    /// Bad fields: name and what is wrong.
    pub fields: Vec<(String, String)>,
    /// Wait this long before trying again.
    pub retry_after: Option<std::time::Duration>,
}
impl Problem {
    /// A problem without details.
    #[must_use]
    pub fn new(code: Code, reason: &'static str, domain: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            domain,
            message: message.into(),
            metadata: HashMap::new(),
            fields: Vec::new(),
            retry_after: None,
        }
    }
    /// Adds a fact.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.metadata.insert(key.to_owned(), value.to_string());
        self
    }
    /// Names a bad field.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, wrong: impl Into<String>) -> Self {
        self.fields.push((name.into(), wrong.into()));
        self
    }
}
/// Longest message of a status, in bytes. Status texts travel in headers, which are small: a long one ends the connection.
const MAX_MESSAGE: usize = 1_500;
/// Longest fact or description in the details, in bytes.
const MAX_DETAIL: usize = 256;
/// Most facts, and most bad fields, in the details.
const MAX_DETAILS: usize = 16;

/// A text that fits a header: no control characters, and cut between characters.
fn bounded(text: &str, limit: usize) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut out = String::new();
    for c in clean {
        if out.len() + c.len_utf8() > limit {
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}

impl From<Problem> for Status {
    fn from(problem: Problem) -> Self {
        let Problem {
            code,
            reason,
            message,
            domain,
            metadata,
            fields,
            retry_after,
        } = problem;
        let facts = metadata.into_iter().take(MAX_DETAILS);
        let metadata: HashMap<String, String> = facts
            .map(|(key, value)| (key, bounded(&value, MAX_DETAIL)))
            .collect();
        let mut details = ErrorDetails::new();
        details.set_error_info(reason, domain, metadata);
        for (name, wrong) in fields.into_iter().take(MAX_DETAILS) {
            details.add_bad_request_violation(bounded(&name, MAX_DETAIL), bounded(&wrong, MAX_DETAIL));
        }
        if let Some(after) = retry_after {
            details.set_retry_info(Some(after));
        }
        Self::with_error_details(code, bounded(&message, MAX_MESSAGE), details)
    }
}
/// The reason of a status of ours, or the empty text.
#[must_use]
pub fn reason_of(status: &Status) -> String {
    status
        .get_details_error_info()
        .map(|info| info.reason)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_071_an_error_of_any_length_and_kind_fits_a_header() {
        let text = format!("line one\nline\0two 🎨 {}", "漢".repeat(100_000));
        let problem =
            Problem::new(Code::Internal, INTERNAL, "test.atelier", text.as_str()).with("what", &text);
        let status: Status = (0..100)
            .fold(problem, |problem, _| problem.field("prompt", text.as_str()))
            .into();
        assert_eq!(status.code(), Code::Internal);
        assert!(status.message().starts_with("line one line two 🎨 漢"));
        assert!(status.message().ends_with('…') && status.message().len() < 2_048);
        // Percent-encoding triples what is not ASCII, base64 adds a third: together they stay below the 16 KiB of headers.
        assert!(status.message().len() * 3 + status.details().len() * 4 / 3 < 16 * 1024);
        assert_eq!(reason_of(&status), INTERNAL);
    }
}
