//! A repeat of a request whose key is known: it waits for the first call, or is told its stored outcome. Nothing is sent
//! to a provider (generations specification 2.3).

use std::time::Duration;

use atelier_proto::ids::GenerationId;
use atelier_proto::provider::v1::GenerationResult;
use atelier_proto::tracker::v1::{Generation, GenerationStatus};
use atelier_proto::value::Value;

use crate::error::Error;
use crate::provider::Medium;
use crate::seam::assets::reference;
use crate::seam::feed::Feed;
use crate::seam::outcome::Outcome;
use crate::seam::plan::Plan;
use crate::seam::registry::Known;
use crate::seam::run::{Seam, deliver, prediction};

/// Pause between looks at a row that another process drives.
const LOOK: Duration = Duration::from_secs(1);
/// Largest text that is read back from its asset.
const MAX_TEXT: usize = 16 * 1024 * 1024;

impl Seam {
    /// Tells the feed the outcome of the call that has the key, when it has one. Ends when nobody listens.
    pub(super) async fn join(&self, plan: &Plan, generation: Generation, feed: &Feed) {
        feed.send(prediction(&generation, true));
        if plan.background {
            feed.finish(None);
            return;
        }
        let gone = feed.gone().clone();
        let waited = gone
            .run_until_cancelled(Box::pin(self.await_outcome(plan, generation)))
            .await;
        if let Some(outcome) = waited {
            deliver(feed, outcome, true);
        }
    }

    async fn await_outcome(&self, plan: &Plan, mut generation: Generation) -> Outcome {
        let user = &plan.caller.user_id;
        let id = generation
            .generation_id
            .parse::<GenerationId>()
            .unwrap_or(plan.id);
        loop {
            if status_of(&generation) != GenerationStatus::Running {
                return self.stored(plan, id, generation).await;
            }
            if let Some(outcome) = self.inner.registry.wait(id, user).await {
                let heavy = outcome
                    .result
                    .as_ref()
                    .is_some_and(|result| result.output.is_none());
                return if heavy {
                    self.stored(plan, id, outcome.generation).await
                } else {
                    outcome
                };
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = self.inner.tasks.stopped() => {
                    return Outcome { generation, result: None, error: Some(Error::Draining) };
                }
            }
            match self
                .inner
                .ledger
                .get(&plan.caller, &generation.generation_id)
                .await
            {
                Ok(row) => generation = row,
                Err(Error::LedgerUnavailable) => {}
                Err(error) => {
                    return Outcome {
                        generation,
                        result: None,
                        error: Some(error),
                    };
                }
            }
        }
    }

    /// The outcome of a settled row.
    async fn stored(&self, plan: &Plan, id: GenerationId, generation: Generation) -> Outcome {
        let error = match status_of(&generation) {
            GenerationStatus::Completed => None,
            GenerationStatus::Cancelled => Some(Error::Cancelled(id)),
            GenerationStatus::Interrupted | GenerationStatus::Unspecified | GenerationStatus::Running => {
                Some(Error::Interrupted(id))
            }
            GenerationStatus::Failed => Some(Error::Replayed {
                id,
                error_code: generation.error_code.clone().unwrap_or_default(),
                message: generation.error.clone().unwrap_or_default(),
            }),
        };
        if error.is_some() {
            return Outcome {
                generation,
                result: None,
                error,
            };
        }
        let kept = match self.inner.registry.look(id, &plan.caller.user_id) {
            Some(Known::Settled(outcome)) => outcome.result.filter(|result| result.output.is_some()),
            Some(Known::Running) | None => None,
        };
        let result = match kept {
            Some(result) => result,
            None => self.rebuilt(plan, &generation).await,
        };
        Outcome {
            generation,
            result: Some(result),
            error: None,
        }
    }

    /// The result, put together again from the assets of the row.
    async fn rebuilt(&self, plan: &Plan, generation: &Generation) -> GenerationResult {
        let mut result = GenerationResult {
            duration: generation.duration,
            ..GenerationResult::default()
        };
        let mut outputs = Vec::new();
        for asset_id in &generation.asset_ids {
            let asset = match self.inner.assets.get(&plan.caller, asset_id).await {
                Ok(asset) => asset,
                Err(status) => {
                    result.persist_error = Some(status.message().to_owned());
                    continue;
                }
            };
            let output = if plan.capability.medium() == Medium::Text {
                match self.inner.assets.download(&plan.caller, asset_id, MAX_TEXT).await {
                    Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
                    Err(status) => {
                        result.persist_error = Some(status.message().to_owned());
                        continue;
                    }
                }
            } else {
                Value::media(reference(&asset))
            };
            outputs.push(output);
            result.assets.push(asset);
        }
        let output = match outputs.as_slice() {
            [] => {
                result
                    .persist_error
                    .get_or_insert_with(|| "the output of the first call was not stored".to_owned());
                Value::Null
            }
            [one] => one.clone(),
            many => Value::list(many.to_vec()),
        };
        result.output = Some((&output).into());
        result
    }
}

fn status_of(generation: &Generation) -> GenerationStatus {
    GenerationStatus::try_from(generation.status).unwrap_or_default()
}
