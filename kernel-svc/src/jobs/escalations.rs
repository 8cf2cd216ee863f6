//! The questions of supervised runs that wait for an answer from outside, and who answers them for the engine.
//!
//! An answer is a row first, like everything that comes in: any replica takes it, the one that drives the run reads it, and
//! one that takes the run up gives it again, to the same question.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use atelier_common::identity::Caller;
use atelier_proto::{
    kernel::v1::{SupervisorAction, Verdict as ProtoVerdict, VerdictScope},
    value::Map,
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use prost::Message;
use tokio::{sync::oneshot, time::Instant};

use super::{
    Jobs,
    drive::Drive,
    inputs::{Kind, LOOK, New, Target},
};
use crate::{
    entity::inputs::Model,
    error::Error,
    run::supervise::{Action, Escalation, Scope, Supervisor, SupervisorError, Verdict},
};

/// Longest reason that is taken, in characters.
const MAX_REASON: usize = 2_000;
/// Answers that wait for their question at most, in a run that was taken up.
const MAX_EARLY: usize = 100;
/// Codes of refusals, as they are recorded.
const UNKNOWN: &str = "verdict.unknown";
const INVALID: &str = "verdict.invalid";
/// Fields of an answer that can be wrong.
const FIELDS: [&str; 4] = [
    "verdict.action",
    "verdict.scope",
    "verdict.outputs",
    "verdict.reason",
];

/// What became of an answer: taken, or why not.
type Taken = Result<(), Error>;

/// The questions of one drive of a run. Clones are the same.
#[derive(Clone)]
pub(super) struct Questions {
    state: Arc<Mutex<State>>,
    /// Whether questions of an earlier drive may be asked again.
    taken_up: bool,
}
#[derive(Default)]
struct State {
    /// One at a time.
    open: Option<Open>,
    /// Ids of all that were asked; bounded by what a run may ask.
    asked: HashSet<String>,
    /// Answers to questions that an earlier process asked, until they are asked again.
    early: HashMap<String, Early>,
}
struct Open {
    escalation: Arc<Escalation>,
    answer: oneshot::Sender<Verdict>,
}
struct Early {
    verdict: ProtoVerdict,
    taken: oneshot::Sender<Taken>,
}
/// What became of an answer, or what will tell it.
enum Answered {
    Now(Taken),
    Later(oneshot::Receiver<Taken>),
}
impl Questions {
    pub(super) fn new(taken_up: bool) -> Self {
        Self {
            state: Arc::default(),
            taken_up,
        }
    }
    /// Who supervises the run from outside.
    pub(super) fn supervisor(&self) -> Arc<dyn Supervisor> {
        Arc::new(self.clone())
    }
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Gives an answer to its question. One that is not allowed leaves the question open.
    fn answer(&self, escalation_id: &str, verdict: ProtoVerdict) -> Answered {
        let unknown = || Error::EscalationNotFound(escalation_id.to_owned());
        let mut state = self.lock();
        let fits = |open: &mut Open| open.escalation.id == escalation_id;
        if let Some(open) = state.open.take_if(fits) {
            return Answered::Now(match read(verdict, &open.escalation.allowed) {
                // The engine may have given up in this instant.
                Ok(verdict) => open.answer.send(verdict).map_err(|_| unknown()),
                Err(wrong) => {
                    state.open = Some(open);
                    Err(wrong)
                }
            });
        }
        let late = state.asked.contains(escalation_id) || state.early.contains_key(escalation_id);
        if late || !self.taken_up || state.early.len() >= MAX_EARLY {
            return Answered::Now(Err(unknown()));
        }
        let (taken, told) = oneshot::channel();
        state
            .early
            .insert(escalation_id.to_owned(), Early { verdict, taken });
        Answered::Later(told)
    }
    /// Opens a question, unless its answer is there.
    fn open(&self, escalation: &Arc<Escalation>) -> Result<Verdict, oneshot::Receiver<Verdict>> {
        let mut state = self.lock();
        state.asked.insert(escalation.id.clone());
        if let Some(Early { verdict, taken }) = state.early.remove(&escalation.id) {
            let read = read(verdict, &escalation.allowed);
            let (verdict, told) = match read {
                Ok(verdict) => (Some(verdict), Ok(())),
                Err(wrong) => (None, Err(wrong)),
            };
            // Nobody may wait for that any more.
            let _ = taken.send(told);
            if let Some(verdict) = verdict {
                return Ok(verdict);
            }
        }
        let (answer, answered) = oneshot::channel();
        let escalation = Arc::clone(escalation);
        state.open = Some(Open { escalation, answer });
        Err(answered)
    }
}
#[async_trait]
impl Supervisor for Questions {
    async fn decide(&self, escalation: Arc<Escalation>) -> Result<Verdict, SupervisorError> {
        let answered = match self.open(&escalation) {
            Ok(verdict) => return Ok(verdict),
            Err(answered) => answered,
        };
        let _waits = Waits {
            questions: self,
            id: &escalation.id,
        };
        answered
            .await
            .map_err(|_| SupervisorError("nobody can answer any more".to_owned()))
    }
}
/// The engine waits for an answer: when it stops, the question is closed.
struct Waits<'a> {
    questions: &'a Questions,
    id: &'a str,
}
impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let own = |open: &mut Open| open.escalation.id == self.id;
        drop(self.questions.lock().open.take_if(own));
    }
}

impl Drive {
    /// Gives the answers that came in to the questions of the run, from the first one on: one that was taken up may ask again
    /// what was answered before. Beside [`feed`](Self::feed), since values that wait for room may wait for an answer.
    pub(super) async fn take_verdicts(&self, questions: Option<&Questions>) -> Infallible {
        let Some(questions) = questions else {
            return std::future::pending().await;
        };
        let mut last = 0;
        let mut later = FuturesUnordered::new();
        loop {
            let rows = self.inputs_after(last, true).await;
            if rows.is_empty() {
                tokio::select! {
                    () = self.verdict.notified() => {}
                    () = tokio::time::sleep(LOOK) => {}
                    Some(()) = later.next(), if !later.is_empty() => {}
                }
                continue;
            }
            for row in rows {
                last = row.n;
                if row.error.is_some() {
                    continue;
                }
                let verdict = row.payload.as_deref().unwrap_or_default();
                let verdict = ProtoVerdict::decode(verdict).unwrap_or_default();
                match questions.answer(&row.name, verdict) {
                    Answered::Now(taken) => self.tell_verdict(&row, taken).await,
                    Answered::Later(told) => later.push(async move {
                        // Not told at all: the run has ended, and the question was not asked again.
                        if let Ok(taken) = told.await {
                            self.tell_verdict(&row, taken).await;
                        }
                    }),
                }
            }
        }
    }
    async fn tell_verdict(&self, row: &Model, taken: Taken) {
        let said = |error| match error {
            Error::InvalidField { field, wrong } => format!("{INVALID} {field}: {wrong}"),
            other => format!("{UNKNOWN} {other}"),
        };
        self.tell(row, taken.map(|()| None).map_err(said)).await;
    }
}

impl Jobs {
    /// Answers a question of a supervised run, whichever process drives it. The answer is durable then; what the run says to it
    /// is waited for, but not for ever: a run that is about to be taken up asks again what it asked before.
    ///
    /// # Errors
    /// [`Error::JobNotFound`], [`Error::JobNotRunning`], [`Error::EscalationNotFound`], [`Error::InputsFull`];
    /// [`Error::InvalidField`] when the answer is not allowed: the question stays open.
    pub async fn decide(
        &self,
        caller: &Caller,
        job_id: &str,
        escalation_id: &str,
        verdict: Option<ProtoVerdict>,
    ) -> Result<(), Error> {
        let Target { key, id, patience } = self.target(caller, job_id, "", Kind::Verdict).await?;
        let Some(verdict) = verdict else {
            return Err(invalid("verdict", "is missing"));
        };
        let new = New {
            id: &id,
            kind: Kind::Verdict,
            name: escalation_id,
            handle: None,
            payload: Some(verdict.encode_to_vec()),
            finish: false,
        };
        let n = self.record(&key, new).await?.n;
        let until = Some(Instant::now() + patience);
        let refusal = self.outcome(&key, job_id, n, until).await?;
        match refusal.and_then(|row| row.error) {
            Some(said) => Err(refused(escalation_id, &said)),
            None => Ok(()),
        }
    }
}
/// What the run said to an answer, as an error of the call.
fn refused(escalation_id: &str, said: &str) -> Error {
    let invalid = said.strip_prefix(INVALID).and_then(|said| {
        let (field, wrong) = said.trim_start().split_once(": ")?;
        let field = FIELDS.into_iter().find(|known| *known == field)?;
        Some(invalid(field, wrong))
    });
    invalid.unwrap_or_else(|| Error::EscalationNotFound(escalation_id.to_owned()))
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
