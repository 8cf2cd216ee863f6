//! Looking for bills: what a call cost in the end, asked of its provider after the row is settled (generations
//! specification 6). Which rows are due, and what a bill changes, is the ledger's.

use std::time::Duration;

use atelier_common::backoff;
use atelier_common::identity::Caller;
use atelier_proto::provider::v1::ReconcileGenerationResponse;
use atelier_proto::time::micros_from_proto;
use atelier_proto::tracker::v1::{
    Attempt, AttemptBill, ClaimReconciliationResponse, Generation, ReconcileOrder, ReconcileOutcome,
    ReportReconciliationRequest,
};
use chrono::DateTime;
use tokio::time::Instant;
use tracing::Instrument;

use crate::error::Error;
use crate::metrics;
use crate::provider::{Bill, Class, Failure, Job, Provider, SeamPermit};
use crate::seam::calling::guarded;
use crate::seam::receipt::Stated;
use crate::seam::run::Seam;
use crate::seam::settle::stated_charge;

/// How long one look may take.
pub const LIMIT: Duration = Duration::from_secs(20);
/// A claim holds for a minute; a look that could not begin in this time of it is left to the next claim.
const PATIENCE: Duration = Duration::from_secs(35);

/// What a look found.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    bills: Vec<(i32, Stated)>,
    outcome: ReconcileOutcome,
    said: Option<String>,
}

impl Seam {
    /// Looks for the bill of a row whose turn it is, and reports it. Returns at once.
    pub fn look_for_bill(&self, order: ReconcileOrder) {
        let Some(generation) = order.generation else {
            return;
        };
        let seam = self.clone();
        let come = Instant::now();
        let span = tracing::info_span!(
            "reconcile",
            generation_id = generation.generation_id,
            gen_ai.provider.name = generation.provider,
        );
        let work = async move {
            // Looks that are due together do not all arrive at the provider together.
            tokio::time::sleep(backoff::jittered(seam.inner.bill_spread, 1.0)).await;
            let Ok(_turn) = seam.inner.looks.acquire().await else {
                return;
            };
            if come.elapsed() > PATIENCE {
                return;
            }
            let caller = Caller::new(generation.user_id.clone(), ["*"]);
            let found = seam.look(&generation).await;
            let report = seam.report(&generation, order.claim, false, found);
            if let Err(error) = seam.inner.ledger.report(&caller, report).await {
                // The claim runs out and the look is repeated.
                tracing::warn!(%error, "the ledger could not be told of a bill");
            }
        };
        let _looking = self
            .inner
            .tasks
            .spawn("reconcile", Box::pin(work.instrument(span)));
    }

    /// Looks for the bill of a settled row of the caller, because they ask.
    ///
    /// # Errors
    /// What the ledger says: no such row, somebody is looking already.
    pub async fn reconcile(
        &self,
        caller: &Caller,
        generation_id: &str,
    ) -> Result<ReconcileGenerationResponse, Error> {
        let ClaimReconciliationResponse {
            order,
            reason,
            generation,
        } = self.inner.ledger.claim_bill(caller, generation_id).await?;
        let claimed = order.and_then(|order| Some((order.generation?, order.claim)));
        let Some((before, claim)) = claimed else {
            let cost = generation.as_ref().and_then(|generation| generation.cost.clone());
            return Ok(ReconcileGenerationResponse {
                before: cost.clone(),
                after: cost,
                reconciled: false,
                reason,
                generation,
            });
        };
        let found = self.look(&before).await;
        let said = found.said.clone();
        let report = self.report(&before, claim, true, found);
        let answer = self.inner.ledger.report(caller, report).await?;
        let after = answer.generation.unwrap_or_else(|| before.clone());
        let state = after
            .reconciliation
            .as_ref()
            .map(|reconciliation| reconciliation.state.clone())
            .unwrap_or_default();
        let reconciled = answer.accepted && said.is_none() && state == "done";
        Ok(ReconcileGenerationResponse {
            before: before.cost,
            after: after.cost.clone(),
            reconciled,
            reason: (!reconciled)
                .then(|| said.unwrap_or_else(|| "somebody else looked meanwhile".to_owned())),
            generation: Some(after),
        })
    }

    /// Asks the provider for every submission that it knows of.
    async fn look(&self, generation: &Generation) -> Found {
        let Ok(provider) = self.inner.directory.get(&generation.provider) else {
            return Found::nothing(ReconcileOutcome::Unsupported, "nobody knows the provider here");
        };
        if let Some(missing) = provider.missing() {
            return Found::nothing(ReconcileOutcome::Denied, missing);
        }
        let permit = SeamPermit::grant();
        let looked = tokio::time::timeout(LIMIT, each(&permit, provider.as_ref(), generation)).await;
        let found = looked.unwrap_or_else(|_| {
            Found::nothing(ReconcileOutcome::Error, "the provider did not answer in time")
        });
        metrics::reconcile(provider.id(), word(found.outcome));
        found
    }

    fn report(
        &self,
        generation: &Generation,
        claim: String,
        manual: bool,
        found: Found,
    ) -> ReportReconciliationRequest {
        let Found { bills, outcome, said } = found;
        let bill = |(attempt_number, stated): (i32, Stated)| AttemptBill {
            attempt_number,
            charge: Some(stated_charge(&stated)),
        };
        let credential = match outcome {
            ReconcileOutcome::Denied => self
                .inner
                .directory
                .get(&generation.provider)
                .ok()
                .map(|provider| provider.credential()),
            ReconcileOutcome::Unspecified
            | ReconcileOutcome::Billed
            | ReconcileOutcome::NotYet
            | ReconcileOutcome::Unsupported
            | ReconcileOutcome::Error => None,
        };
        ReportReconciliationRequest {
            generation_id: generation.generation_id.clone(),
            claim,
            manual,
            outcome: outcome.into(),
            bills: bills.into_iter().map(bill).collect(),
            error: said,
            credential,
        }
    }
}

impl Found {
    fn nothing(outcome: ReconcileOutcome, said: impl Into<String>) -> Self {
        Self {
            bills: Vec::new(),
            outcome,
            said: Some(said.into()),
        }
    }
}

/// What there is for each submission; the row is billed when every one of them is. The first word against it counts.
async fn each(permit: &SeamPermit, provider: &dyn Provider, generation: &Generation) -> Found {
    let mut found = Found {
        bills: Vec::new(),
        outcome: ReconcileOutcome::Billed,
        said: None,
    };
    let submitted_at = generation
        .started_at
        .as_ref()
        .map(micros_from_proto)
        .and_then(DateTime::from_timestamp_micros)
        .unwrap_or_default();
    let known = generation.attempts.iter().filter_map(|attempt| {
        let Attempt {
            attempt_number,
            provider_request_id,
            resume_token,
            ..
        } = attempt;
        let job = Job {
            request_id: provider_request_id.clone()?,
            resume_token: resume_token.clone(),
            submitted_at,
        };
        Some((*attempt_number, job))
    });
    for (number, job) in known {
        let against = match guarded(provider.reconcile(permit, &job)).await {
            Ok(Bill::Stated(stated)) => {
                found.bills.push((number, stated));
                continue;
            }
            Ok(Bill::NotYet(said)) => (ReconcileOutcome::NotYet, said.to_owned()),
            Ok(Bill::Unsupported) => (
                ReconcileOutcome::Unsupported,
                "the provider states no bills".to_owned(),
            ),
            Ok(Bill::Denied(said)) => (ReconcileOutcome::Denied, said),
            Err(Failure {
                class: Class::Auth,
                message,
                ..
            }) => (ReconcileOutcome::Denied, message),
            Err(failure) => (ReconcileOutcome::Error, failure.message),
        };
        if found.said.is_none() {
            found.outcome = against.0;
            found.said = Some(against.1);
        }
    }
    found
}

fn word(outcome: ReconcileOutcome) -> &'static str {
    match outcome {
        ReconcileOutcome::Billed => "billed",
        ReconcileOutcome::NotYet => "not_yet",
        ReconcileOutcome::Unsupported => "unsupported",
        ReconcileOutcome::Denied => "denied",
        ReconcileOutcome::Error | ReconcileOutcome::Unspecified => "error",
    }
}
