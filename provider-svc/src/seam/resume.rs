//! Taking up the job of a driver that is gone: its polling goes on here, its result is stored once, its row is closed
//! (generations specification 7). Nothing is submitted.
//!
//! The outputs have keys of the row, so what the other one stored already is found and not stored again; the row's epoch
//! keeps the other one out should it come back.

use std::sync::Arc;
use std::time::Duration;

use atelier_common::identity::Caller;
use atelier_proto::ids::GenerationId;
use atelier_proto::money::Money;
use atelier_proto::tracker::v1::{Generation, GenerationStatus, ResumeOrder};
use tokio::time::Instant;
use tracing::Instrument;

use crate::metrics;
use crate::seam::calling::cancel;
use crate::seam::feed::feed;
use crate::seam::ledger::Row;
use crate::seam::permit::SeamPermit;
use crate::seam::plan::{Left, Plan};
use crate::seam::receipt::{Attempt, Receipt, ReceiptCell, Stated};
use crate::seam::registry::Driving;
use crate::seam::run::{Running, Seam, Start};

impl Seam {
    /// Takes up a job, or has it already. False when it cannot be done here: the order is given again then, here or
    /// elsewhere.
    pub fn take_up(&self, order: ResumeOrder) -> bool {
        let ResumeOrder {
            generation,
            plan,
            age,
        } = order;
        let Some(generation) = generation else {
            return false;
        };
        let Ok(id) = generation.generation_id.parse::<GenerationId>() else {
            return false;
        };
        if self.inner.registry.drives(id) {
            return true;
        }
        if self.inner.tasks.stopping() {
            return false;
        }
        let Some(token) = token(&generation) else {
            return false;
        };
        let Ok(provider) = self.inner.directory.get(&generation.provider) else {
            return false;
        };
        if !provider.resumable() || provider.missing().is_some() {
            return false;
        }
        let Some(left) = Left::read(&plan) else {
            tracing::warn!(generation_id = %id, "what another process left of a call cannot be read");
            return false;
        };
        let age = age
            .and_then(|age| Duration::try_from(age).ok())
            .unwrap_or_default();
        let caller = Caller::new(generation.user_id.clone(), ["*"]);
        let plan = Plan::resumed(caller, &generation, provider, left, age, &self.inner.catalog);
        let Some(plan) = plan else { return false };
        // Entered before anybody is told, so that a cancel finds it.
        let driving = self.inner.registry.enter(id, &generation.user_id);
        let running = self.taken(plan, generation, &driving, age);
        let span = tracing::info_span!("generation", otel.name = "resume", generation_id = %id);
        tracing::info!(parent: &span, age_seconds = age.as_secs(), "takes up the job of a driver that is gone");
        metrics::resumed(running.plan.provider.id());
        let seam = self.clone();
        let work = async move {
            if GenerationStatus::try_from(running.opened.status) == Ok(GenerationStatus::Cancelled) {
                seam.call_off(&running, &token).await;
                drop(driving);
            } else {
                seam.drive(running, driving, Start::Resumed(token)).await;
            }
        };
        let _follower = self
            .inner
            .tasks
            .spawn("generation", Box::pin(work.instrument(span)));
        true
    }

    fn taken(&self, plan: Plan, generation: Generation, driving: &Driving, age: Duration) -> Running {
        let stop = driving.stop().clone();
        let row =
            Row::new(self.inner.ledger.clone(), plan.caller.clone(), &generation).stopping(stop.clone());
        let attempts = generation.attempts.iter().map(|attempt| Attempt {
            request_id: attempt.provider_request_id.clone(),
            charge: attempt
                .cost
                .as_ref()
                .and_then(|cost| Money::try_from(cost).ok())
                .map(Stated::of),
        });
        let receipt = Receipt {
            attempts: attempts.collect(),
            total: None,
        };
        // Nobody reads along: who asked finds the row.
        let (feed, _) = feed();
        Running {
            cell: ReceiptCell::bound_by(Arc::new(row.clone())).knowing(receipt),
            row,
            opened: generation,
            feed,
            stop,
            started: Instant::now().checked_sub(age).unwrap_or_else(Instant::now),
            plan,
        }
    }

    /// The row was cancelled, and its driver died before the provider could be told.
    async fn call_off(&self, running: &Running, token: &str) {
        let answer = cancel(&SeamPermit::grant(), running, token).await;
        running
            .row
            .annotate(None, Vec::new(), Some(answer.as_str()))
            .await;
    }
}

/// The token of the latest submission.
fn token(generation: &Generation) -> Option<String> {
    generation
        .attempts
        .last()
        .and_then(|attempt| attempt.resume_token.clone())
}
