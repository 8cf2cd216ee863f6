//! The questions of supervised runs that wait for an answer from outside, and who answers them for the engine.

use std::sync::Arc;

use async_trait::async_trait;
use atelier_common::identity::Caller;
use atelier_proto::{
    kernel::v1::{SupervisorAction, Verdict as ProtoVerdict, VerdictScope},
    value::Map,
};
use dashmap::{DashMap, mapref::entry::Entry};
use tokio::sync::oneshot;

use super::Jobs;
use crate::{
    error::Error,
    run::supervise::{Action, Escalation, Scope, Supervisor, SupervisorError, Verdict},
};

/// Longest reason that is taken, in characters.
const MAX_REASON: usize = 2_000;

/// Questions that wait, by key of their run: one at a time in each.
#[derive(Clone, Default)]
pub(super) struct Escalations(Arc<DashMap<String, Waiting>>);

struct Waiting {
    escalation: Arc<Escalation>,
    answer: oneshot::Sender<Verdict>,
}

/// Supervises one run by asking whoever watches it.
pub(super) struct Outside {
    escalations: Escalations,
    job_key: String,
}
impl Escalations {
    /// Who supervises a run from outside.
    pub fn supervisor(&self, job_key: &str) -> Arc<dyn Supervisor> {
        Arc::new(Outside {
            escalations: self.clone(),
            job_key: job_key.to_owned(),
        })
    }
    /// Answers the question of a run.
    ///
    /// # Errors
    /// [`Error::EscalationNotFound`]: the run does not wait for this answer. [`Error::InvalidField`]: the answer is not
    /// one of those that were offered; the question stays open.
    fn answer(&self, job_key: &str, escalation_id: &str, verdict: ProtoVerdict) -> Result<(), Error> {
        let unknown = || Error::EscalationNotFound(escalation_id.to_owned());
        let Entry::Occupied(entry) = self.0.entry(job_key.to_owned()) else {
            return Err(unknown());
        };
        if entry.get().escalation.id != escalation_id {
            return Err(unknown());
        }
        let verdict = read(verdict, &entry.get().escalation.allowed)?;
        // The engine may have given up in this instant.
        entry.remove().answer.send(verdict).map_err(|_| unknown())
    }
}
#[async_trait]
impl Supervisor for Outside {
    async fn decide(&self, escalation: Arc<Escalation>) -> Result<Verdict, SupervisorError> {
        let (answer, answered) = oneshot::channel();
        let id = escalation.id.clone();
        let waiting = Waiting { escalation, answer };
        self.escalations.0.insert(self.job_key.clone(), waiting);
        let _open = Open { outside: self, id };
        answered
            .await
            .map_err(|_| SupervisorError("nobody can answer any more".to_owned()))
    }
}
/// An open question: closed when the engine stops waiting.
struct Open<'a> {
    outside: &'a Outside,
    id: String,
}
impl Drop for Open<'_> {
    fn drop(&mut self) {
        let Outside {
            escalations: Escalations(waiting),
            job_key,
        } = self.outside;
        waiting.remove_if(job_key, |_, waiting| waiting.escalation.id == self.id);
    }
}

impl Jobs {
    /// Answers a question of a supervised run that this process drives.
    ///
    /// # Errors
    /// [`Error::JobNotFound`], [`Error::JobNotRunning`], [`Error::EscalationNotFound`]; [`Error::InvalidField`] when the
    /// answer is not allowed: the question stays open.
    pub async fn decide(
        &self,
        caller: &Caller,
        job_id: &str,
        escalation_id: &str,
        verdict: Option<ProtoVerdict>,
    ) -> Result<(), Error> {
        let row = self.store().get(caller, job_id).await?;
        let Some(verdict) = verdict else {
            return Err(invalid("verdict", "is missing"));
        };
        if !self.drives(&row.job_key) {
            return Err(Error::JobNotRunning(job_id.to_owned()));
        }
        self.escalations.answer(&row.job_key, escalation_id, verdict)
    }
}
fn invalid(field: &'static str, wrong: impl Into<String>) -> Error {
    Error::InvalidField {
        field,
        wrong: wrong.into(),
    }
}
/// The engine's form of an answer, if it is one of those offered.
fn read(verdict: ProtoVerdict, allowed: &[Action]) -> Result<Verdict, Error> {
    let action = match verdict.action() {
        SupervisorAction::Unspecified => None,
        SupervisorAction::Retry => Some(Action::Retry),
        SupervisorAction::Substitute => Some(Action::Substitute),
        SupervisorAction::Skip => Some(Action::Skip),
        SupervisorAction::EndStream => Some(Action::EndStream),
        SupervisorAction::Fail => Some(Action::Fail),
    };
    let Some(action) = action.filter(|action| allowed.contains(action)) else {
        let names: Vec<&str> = allowed.iter().map(|action| action.as_str()).collect();
        return Err(invalid(
            "verdict.action",
            format!("must be one of {}", names.join(", ")),
        ));
    };
    let scope = match verdict.scope() {
        VerdictScope::Unspecified | VerdictScope::Invocation => Scope::Invocation,
        VerdictScope::Signature if !matches!(action, Action::Skip | Action::Fail) => {
            return Err(invalid(
                "verdict.scope",
                "only skip and fail hold for a signature",
            ));
        }
        VerdictScope::Signature => Scope::Signature,
    };
    if verdict.outputs.is_some() && action != Action::Substitute {
        return Err(invalid("verdict.outputs", "are for substitute alone"));
    }
    let outputs = verdict.outputs.map(Map::try_from).transpose();
    let outputs = outputs.map_err(|error| invalid("verdict.outputs", error.to_string()))?;
    if verdict
        .reason
        .as_ref()
        .is_some_and(|reason| reason.chars().count() > MAX_REASON)
    {
        let wrong = format!("must have at most {MAX_REASON} characters");
        return Err(invalid("verdict.reason", wrong));
    }
    Ok(Verdict {
        scope,
        outputs,
        reason: verdict.reason.filter(|reason| !reason.is_empty()),
        ..Verdict::new(action)
    })
}
