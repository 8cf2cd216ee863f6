//! Where a run's questions are asked, one after the other, within their bounds.

use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use atelier_proto::value::Map;
use futures_util::FutureExt;
use tokio::{sync::Mutex as AsyncMutex, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    Supervisor,
    account::Spent,
    check::wrong,
    escalation::{Action, DecidedBy, Decision, Escalation, Scope, Verdict},
    redact::Redactor,
    signature::signature,
    view::{Recorder, RunView},
};
use crate::{
    event::Event,
    graph::{
        model::{CONTROL, CONTROL_OUTPUT},
        plan::{PlanNode, SlotPlan},
    },
    node::NodeError,
    run::{core::Core, lineage::Lineage},
};

/// Questions in a run.
const MAX_QUESTIONS: u32 = 10;
/// Times that the code of one node is called again for one key.
const MAX_RETRIES: u32 = 2;
/// How long one answer, and reaching the supervisor, may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interventions that a result lists.
const MAX_LISTED: usize = 1_000;

/// What a supervisor changed in a run: one decision that let a failure not stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intervention {
    /// The question.
    pub escalation_id: String,
    /// The node.
    pub node_id: Arc<str>,
    /// The items that the invocation belonged to, as text.
    pub invocation_key: String,
    /// What was done.
    pub action: Action,
    /// Who decided.
    pub decided_by: DecidedBy,
}

/// Asks the supervisor of a run.
pub(crate) struct Desk {
    supervisor: Arc<dyn Supervisor>,
    job_id: Arc<str>,
    redactor: Redactor,
    recorder: Arc<Recorder>,
    /// Held while a question is asked: decisions come one at a time.
    state: AsyncMutex<State>,
    interventions: Mutex<Vec<Intervention>>,
}
/// Bounded by the number of questions: only an answer adds to the maps.
#[derive(Default)]
struct State {
    /// Whether the supervisor could be reached; `None`: not tried yet.
    attached: Option<Result<(), String>>,
    questions: u32,
    retries: HashMap<(usize, String), u32>,
    sticky: HashMap<(usize, String), Verdict>,
}

/// A failed invocation as the run knows it.
pub(super) struct Draft<'a> {
    pub at: usize,
    pub node: &'a PlanNode,
    pub error: &'a NodeError,
    pub lineage: &'a Lineage,
    /// Name of the invocation: its items as text and its number.
    pub name: &'a str,
    pub inputs: Option<&'a Map>,
    pub attempt: u32,
    pub spent: Spent,
    pub allowed: Vec<Action>,
    pub emitted: bool,
}

impl Desk {
    /// A desk of a run whose nodes have these ids.
    pub fn new<'a>(
        supervisor: Arc<dyn Supervisor>,
        job_id: Arc<str>,
        secrets: Vec<Arc<str>>,
        nodes: impl Iterator<Item = &'a Arc<str>>,
    ) -> Self {
        Self {
            supervisor,
            job_id,
            redactor: Redactor::new(secrets),
            recorder: Arc::new(Recorder::new(nodes)),
            state: AsyncMutex::default(),
            interventions: Mutex::default(),
        }
    }
    /// What was changed so far.
    pub fn interventions(&self) -> Vec<Intervention> {
        self.interventions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
    /// Keeps what a node emits, for the view of later questions.
    pub fn saw(&self, at: usize, values: &Map, lineages: &[(usize, Lineage)], slots: &[SlotPlan]) {
        for (place, lineage) in lineages {
            let Some(slot) = slots.get(*place) else { continue };
            let reserved = [CONTROL, CONTROL_OUTPUT].contains(&&*slot.name);
            if let Some(value) = values.get(&*slot.name).filter(|_| !reserved) {
                self.recorder
                    .note(at, lineage, &slot.name, self.redactor.shown(&slot.name, value));
            }
        }
    }
    /// Asks what to do, and tells the question and the answer to the outside.
    pub(super) async fn settle(&self, core: &Core, draft: Draft<'_>, cancel: &CancellationToken) -> Decision {
        let Some(mut state) = cancel.run_until_cancelled(self.state.lock()).await else {
            return cancelled();
        };
        let (key, number) = draft.name.rsplit_once('#').unwrap_or((draft.name, ""));
        // Outside of iterations each invocation counts for itself.
        let tries = (draft.at, if key.is_empty() { number } else { key }.to_owned());
        let used_up = state
            .retries
            .get(&tries)
            .is_some_and(|count| *count >= MAX_RETRIES);
        let escalation = Arc::new(self.escalation(core, &draft, key, used_up));
        let event = |decision| Event::Supervision {
            node: Arc::clone(&draft.node.label),
            escalation: Arc::clone(&escalation),
            decision,
        };
        core.say(event(None)).await;
        let kind = escalation
            .failure_signature
            .clone()
            .map(|signature| (draft.at, signature));
        let asked = self.answer(&mut state, &escalation, kind.as_ref(), cancel);
        let (verdict, decided_by) = asked.await;
        let decision = self.judged(&draft, verdict, decided_by, &escalation.allowed, used_up);
        let verdict = &decision.verdict;
        match verdict.action {
            Action::Retry => *state.retries.entry(tries).or_default() += 1,
            Action::Skip | Action::Fail
                if verdict.scope == Scope::Signature && decision.decided_by == DecidedBy::Agent =>
            {
                state.sticky.extend(kind.map(|kind| (kind, verdict.clone())));
            }
            Action::Skip | Action::Fail | Action::Substitute | Action::EndStream => {}
        }
        self.list(&escalation, &decision);
        let shown = Decision {
            verdict: Verdict {
                outputs: verdict.outputs.as_ref().map(|outputs| self.redactor.map(outputs)),
                reason: verdict.reason.as_deref().map(|reason| self.redactor.text(reason)),
                ..verdict.clone()
            },
            ..decision
        };
        core.say(event(Some(shown))).await;
        decision
    }
    fn escalation(&self, core: &Core, draft: &Draft<'_>, key: &str, used_up: bool) -> Escalation {
        let detail = self.redactor.text(&draft.error.message);
        let code = draft.error.code.as_deref().map(|code| self.redactor.text(code));
        let lineage = draft.node.facts.scope.0.iter().filter_map(|root| {
            let name = usize::try_from(root.0)
                .ok()
                .and_then(|at| core.plan.roots.get(at))?;
            Some((Arc::clone(name), draft.lineage.index(*root)?))
        });
        let offered = |action: &Action| !(used_up && *action == Action::Retry);
        Escalation {
            id: self.question(draft, &detail),
            node_id: Arc::clone(&draft.node.label.id),
            node_type: Arc::clone(&draft.node.label.node_type),
            lineage: lineage.collect(),
            invocation_key: key.to_owned(),
            allowed: draft.allowed.iter().copied().filter(offered).collect(),
            failure_signature: signature(code.as_deref(), &detail),
            detail,
            code,
            candidate_output: draft
                .spent
                .candidate
                .as_ref()
                .map(|outputs| self.redactor.map(outputs)),
            inputs: draft
                .inputs
                .map(|inputs| self.redactor.map(inputs))
                .unwrap_or_default(),
            attempt: draft.attempt,
            spent_usd: draft.spent.usd,
            created_assets: draft.spent.assets.clone(),
            retry_safe: draft.node.node.meta.retry_safe,
            emitted: draft.emitted,
            view: RunView::new(&self.recorder, draft.lineage),
        }
    }
    /// The id of a question. The same failure of the same attempt asks the same question, also in another process that
    /// takes the run up: an answer that was given before is not asked for again.
    fn question(&self, draft: &Draft<'_>, detail: &str) -> String {
        let mut hash = blake3::Hasher::new();
        let attempt = draft.attempt.to_string();
        let code = draft.error.code.as_deref().unwrap_or_default();
        for part in [
            &*self.job_id,
            &*draft.node.label.id,
            draft.name,
            &attempt,
            code,
            detail,
        ] {
            hash.update(&part.len().to_be_bytes()).update(part.as_bytes());
        }
        let mut bytes = [0; 16];
        hash.finalize_xof().fill(&mut bytes);
        uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
    }
    /// The answer as it came, from whoever has to give one.
    async fn answer(
        &self,
        state: &mut State,
        escalation: &Arc<Escalation>,
        kind: Option<&(usize, String)>,
        cancel: &CancellationToken,
    ) -> (Verdict, DecidedBy) {
        let sticky = kind.and_then(|kind| state.sticky.get(kind));
        if let Some(verdict) = sticky.filter(|verdict| escalation.allowed.contains(&verdict.action)) {
            let again = Verdict {
                cost_usd: None,
                ..verdict.clone()
            };
            return (again, DecidedBy::Sticky);
        }
        if state.questions >= MAX_QUESTIONS {
            let text = format!("the run has asked {MAX_QUESTIONS} times");
            return (Verdict::fail(text), DecidedBy::Bounds);
        }
        state.questions += 1;
        let asked = timeout(
            PATIENCE,
            AssertUnwindSafe(self.ask(state, escalation)).catch_unwind(),
        );
        let verdict = match cancel.run_until_cancelled(asked).await {
            Some(Ok(Ok(Ok(verdict)))) => return (verdict, DecidedBy::Agent),
            Some(Ok(Ok(Err(why)))) => Verdict::fail(format!("the supervisor has no answer: {why}")),
            Some(Ok(Err(_))) => Verdict::fail("the supervisor panicked"),
            Some(Err(_)) => Verdict::fail(format!("no answer within {} seconds", PATIENCE.as_secs())),
            None => cancelled().verdict,
        };
        (verdict, DecidedBy::Default)
    }
    async fn ask(&self, state: &mut State, escalation: &Arc<Escalation>) -> Result<Verdict, String> {
        if state.attached.is_none() {
            // Should it hang or panic there, it is not tried again.
            state.attached = Some(Err("it could not be reached".to_owned()));
            let attached = self.supervisor.attach().await;
            state.attached = Some(attached.map_err(|error| error.0));
        }
        if let Some(Err(why)) = &state.attached {
            return Err(why.clone());
        }
        let verdict = self.supervisor.decide(Arc::clone(escalation)).await;
        verdict.map_err(|error| error.0)
    }
    /// The answer if it counts, else that the failure stands.
    fn judged(
        &self,
        draft: &Draft<'_>,
        mut verdict: Verdict,
        decided_by: DecidedBy,
        allowed: &[Action],
        used_up: bool,
    ) -> Decision {
        let overruled = |reason: String, decided_by| Decision {
            verdict: Verdict {
                cost_usd: verdict.cost_usd,
                ..Verdict::fail(reason)
            },
            decided_by,
        };
        let action = verdict.action;
        if !allowed.contains(&action) {
            return if used_up && draft.allowed.contains(&action) {
                overruled(format!("no more than {MAX_RETRIES} retries"), DecidedBy::Bounds)
            } else {
                overruled(
                    format!("{} is not allowed here", action.as_str()),
                    DecidedBy::Kernel,
                )
            };
        }
        if action == Action::Substitute {
            let outputs = verdict.outputs.take().or_else(|| draft.spent.candidate.clone());
            let outputs = outputs.unwrap_or_default();
            if let Some(wrong) = wrong(&draft.node.node.outputs, &outputs) {
                return overruled(wrong, DecidedBy::Kernel);
            }
            verdict.outputs = Some(outputs);
        } else {
            verdict.outputs = None;
        }
        Decision { verdict, decided_by }
    }
    fn list(&self, escalation: &Escalation, decision: &Decision) {
        if decision.verdict.action == Action::Fail {
            return;
        }
        let mut listed = self.interventions.lock().unwrap_or_else(PoisonError::into_inner);
        if listed.len() < MAX_LISTED {
            listed.push(Intervention {
                escalation_id: escalation.id.clone(),
                node_id: Arc::clone(&escalation.node_id),
                invocation_key: escalation.invocation_key.clone(),
                action: decision.verdict.action,
                decided_by: decision.decided_by,
            });
        }
    }
}

fn cancelled() -> Decision {
    Decision {
        verdict: Verdict::fail("the run was cancelled"),
        decided_by: DecidedBy::Default,
    }
}
