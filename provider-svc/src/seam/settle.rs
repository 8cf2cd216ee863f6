//! Closing the row with what became of the call (K11 to K13), and saying so when somebody else closed it first.

use atelier_proto::money::Money;
use atelier_proto::provider::v1::GenerationResult;
use atelier_proto::time::{proto_duration, proto_from_micros};
use atelier_proto::tracker::v1::{
    Charge, Facets, Generation, GenerationStatus, OutputStatus, ProviderStatus, Receipt, SubmissionStatus,
};

use crate::error::Error;
use crate::provider::{CancelAnswer, Class, Failure, Finished};
use crate::seam::ledger::Close;
use crate::seam::outcome::Outcome;
use crate::seam::persist::persist;
use crate::seam::plan::charge;
use crate::seam::receipt::Stated;
use crate::seam::registry::StopCause;
use crate::seam::run::{Running, Seam};

/// Longest error that a row keeps, in characters.
const MAX_ERROR: usize = 4_000;

impl Seam {
    /// The provider succeeded: outputs are stored, then the row is closed.
    pub(super) async fn completed(&self, running: &Running, finished: Finished) -> Outcome {
        let plan = &running.plan;
        if finished.outputs.is_empty() {
            let failure = Failure::new(Class::ProviderPermanent, "the provider gave no output");
            return self.failed(running, failure.because("no_output")).await;
        }
        if plan.persist {
            running.row.observe(facets(OutputStatus::Saving)).await;
        }
        let usage = finished.usage;
        let quantities = plan.quantities.clone().with_result(&finished);
        let quote = self
            .inner
            .catalog
            .price(plan.provider.id(), &plan.model, &quantities);
        let persisted = persist(
            &self.inner.assets,
            plan,
            finished,
            &self.inner.save_pauses,
            &running.stop,
        )
        .await;
        if running.stop.cause().is_some() {
            return self.stopped_with(running, None, persisted.asset_ids()).await;
        }
        let output_status = match (plan.persist, &persisted.error) {
            (false, _) => OutputStatus::None,
            (true, None) => OutputStatus::Ready,
            (true, Some(_)) => OutputStatus::Unavailable,
        };
        let close = Close {
            status: GenerationStatus::Completed,
            receipt: receipt(running),
            catalog_charge: quote.as_ref().ok().map(charge),
            unpriced_reason: quote.as_ref().err().map(ToString::to_string),
            asset_ids: persisted.asset_ids(),
            persisted: match output_status {
                OutputStatus::None => "none",
                OutputStatus::Unavailable => "lost",
                OutputStatus::Ready
                | OutputStatus::Unspecified
                | OutputStatus::Pending
                | OutputStatus::Saving
                | OutputStatus::Retrying => "assets",
            },
            duration: running.started.elapsed(),
            facets: facets(output_status),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            ..Close::default()
        };
        let local = self.settled(running, &close);
        let closed = running.row.close(close).await;
        let generation = closed.generation.unwrap_or(local);
        if closed.lost_race && status_of(&generation) != GenerationStatus::Completed {
            return self.lost(running, generation, persisted.asset_ids()).await;
        }
        let result = GenerationResult {
            output: Some((&persisted.output()).into()),
            assets: persisted.assets,
            receipt: receipt(running),
            duration: Some(proto_duration(running.started.elapsed())),
            persist_error: persisted.error,
            ledger_pending: closed.pending,
        };
        Outcome {
            generation,
            result: Some(result),
            error: None,
        }
    }

    /// The provider failed, or could not be asked.
    pub(super) async fn failed(&self, running: &Running, failure: Failure) -> Outcome {
        if running.stop.cause().is_some() {
            return self.stopped(running, None).await;
        }
        let submission = if !failure.sent {
            SubmissionStatus::Accepted
        } else if failure.reason == Some("submit_outcome_unknown") {
            SubmissionStatus::Unknown
        } else {
            SubmissionStatus::Submitted
        };
        let provider = if failure.sent {
            ProviderStatus::Failed
        } else {
            ProviderStatus::Unspecified
        };
        let close = Close {
            status: GenerationStatus::Failed,
            receipt: receipt(running),
            unpriced_reason: Some(unpriced(&failure).to_owned()),
            persisted: "none",
            error: Some(failure.message.chars().take(MAX_ERROR).collect()),
            error_code: Some(failure.error_code()),
            duration: running.started.elapsed(),
            facets: Facets {
                submission: submission.into(),
                provider: provider.into(),
                output: OutputStatus::None.into(),
            },
            ..Close::default()
        };
        let local = self.settled(running, &close);
        let closed = running.row.close(close).await;
        let generation = closed.generation.unwrap_or(local);
        if closed.lost_race && status_of(&generation) != GenerationStatus::Failed {
            return self.lost(running, generation, Vec::new()).await;
        }
        Outcome {
            generation,
            result: None,
            error: Some(Error::Failed {
                id: running.plan.id,
                failure,
            }),
        }
    }

    /// The call was told to stop.
    pub(super) async fn stopped(&self, running: &Running, answer: Option<CancelAnswer>) -> Outcome {
        self.stopped_with(running, answer, Vec::new()).await
    }

    async fn stopped_with(
        &self,
        running: &Running,
        answer: Option<CancelAnswer>,
        asset_ids: Vec<String>,
    ) -> Outcome {
        let cause = running.stop.cause().unwrap_or(StopCause::RowCancelled);
        let mut generation = None;
        let mut interrupted = false;
        match cause {
            StopCause::RowCancelled => {}
            StopCause::Fenced | StopCause::Released => interrupted = true,
            StopCause::Disconnected => {
                let close = Close {
                    status: GenerationStatus::Cancelled,
                    receipt: receipt(running),
                    error: Some("the caller is gone".to_owned()),
                    error_code: Some("CANCELLED"),
                    asset_ids: asset_ids.clone(),
                    persisted: if asset_ids.is_empty() { "none" } else { "assets" },
                    duration: running.started.elapsed(),
                    ..Close::default()
                };
                let local = self.settled(running, &close);
                generation = Some(running.row.close(close).await.generation.unwrap_or(local));
            }
        }
        // A row that is left to another driver is open: its facts were told when they were learned.
        let told = match cause {
            StopCause::Released => None,
            StopCause::RowCancelled | StopCause::Disconnected | StopCause::Fenced => {
                running
                    .row
                    .annotate(receipt(running), asset_ids, answer.map(CancelAnswer::as_str))
                    .await
            }
        };
        let read = match told {
            Some(told) => Some(told),
            None => running.row.read().await,
        };
        let generation = read.or(generation).unwrap_or_else(|| {
            let status = GenerationStatus::Cancelled;
            self.settled(
                running,
                &Close {
                    status,
                    duration: running.started.elapsed(),
                    ..Close::default()
                },
            )
        });
        let id = running.plan.id;
        let error = if interrupted && status_of(&generation) != GenerationStatus::Cancelled {
            Error::Interrupted(id)
        } else {
            Error::Cancelled(id)
        };
        Outcome {
            generation,
            result: None,
            error: Some(error),
        }
    }

    /// Somebody else closed the row first. What we know is added to it, and the caller is told who won.
    async fn lost(&self, running: &Running, generation: Generation, asset_ids: Vec<String>) -> Outcome {
        let told = running.row.annotate(receipt(running), asset_ids, None).await;
        let generation = told.unwrap_or(generation);
        let id = running.plan.id;
        let error = match status_of(&generation) {
            GenerationStatus::Cancelled => Error::Cancelled(id),
            GenerationStatus::Failed => Error::Replayed {
                id,
                error_code: generation.error_code.clone().unwrap_or_default(),
                message: generation.error.clone().unwrap_or_default(),
            },
            GenerationStatus::Interrupted
            | GenerationStatus::Running
            | GenerationStatus::Completed
            | GenerationStatus::Unspecified => Error::Interrupted(id),
        };
        Outcome {
            generation,
            result: None,
            error: Some(error),
        }
    }

    /// The row as it will be once the ledger knows of it.
    fn settled(&self, running: &Running, close: &Close) -> Generation {
        let mut generation = running.opened.clone();
        let stated = close.receipt.as_ref().and_then(|receipt| receipt.charge.as_ref());
        let (charge, source) = match (stated, &close.catalog_charge) {
            (Some(stated), _) => (Some(stated), "provider"),
            (None, catalog) => (catalog.as_ref(), "model-catalog"),
        };
        if let Some(Charge {
            cost,
            billing_unit,
            quantity,
            unit_price,
            breakdown: _,
        }) = charge.cloned()
        {
            generation.cost = cost;
            generation.billing_unit = billing_unit;
            generation.quantity = quantity;
            generation.unit_price = unit_price;
            generation.price_source = Some(source.to_owned());
        }
        generation.status = close.status.into();
        generation.provider_request_id = running.cell.read().request_id().map(ToOwned::to_owned);
        generation.assets_known = close.status == GenerationStatus::Completed;
        generation.asset_ids.clone_from(&close.asset_ids);
        generation.error.clone_from(&close.error);
        generation.error_code = close.error_code.map(ToOwned::to_owned);
        generation.completed_at = Some(proto_from_micros(self.inner.clock.now().timestamp_micros()));
        generation.duration = Some(proto_duration(close.duration));
        generation.facets = Some(close.facets);
        generation.input_tokens = close.input_tokens;
        generation.output_tokens = close.output_tokens;
        generation
    }
}

/// What the provider told, as the ledger has it; `None` when it told nothing.
pub(super) fn receipt(running: &Running) -> Option<Receipt> {
    let receipt = running.cell.read();
    let told = Receipt {
        provider_request_id: receipt.request_id().map(ToOwned::to_owned),
        charge: receipt.charge().map(|stated| stated_charge(&stated)),
    };
    (told.provider_request_id.is_some() || told.charge.is_some()).then_some(told)
}

pub(in crate::seam) fn stated_charge(stated: &Stated) -> Charge {
    let Stated {
        cost,
        billing_unit,
        quantity,
        unit_price,
        breakdown,
        total: _,
    } = stated;
    let cost = Money::new(cost.amount, cost.currency.clone());
    Charge {
        cost: Some((&cost).into()),
        billing_unit: billing_unit.clone(),
        quantity: quantity.map(|quantity| quantity.normalize().to_string()),
        unit_price: unit_price.map(|price| price.normalize().to_string()),
        breakdown: breakdown.clone(),
    }
}

/// Why a failed call has no price, unless the provider states one.
fn unpriced(failure: &Failure) -> &'static str {
    match (failure.sent, failure.maybe_billed) {
        (false, _) => "not_sent",
        (true, true) => "failed_charge_unknown",
        (true, false) => "not_charged_unconfirmed",
    }
}

fn facets(output: OutputStatus) -> Facets {
    Facets {
        submission: SubmissionStatus::Submitted.into(),
        provider: ProviderStatus::Succeeded.into(),
        output: output.into(),
    }
}

fn status_of(generation: &Generation) -> GenerationStatus {
    GenerationStatus::try_from(generation.status).unwrap_or_default()
}
