//! Talking to the provider: submit, bind, poll, fetch, and stopping on the way (K6 to K10).

use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use atelier_common::backoff;
use atelier_proto::tracker::v1::{Facets, OutputStatus, ProviderStatus, SubmissionStatus};
use futures_util::FutureExt;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::error::Error;
use crate::metrics;
use crate::provider::{Call, CancelAnswer, Class, Failure, Finished, Polled, SeamPermit, Submitted};
use crate::seam::inputs::resolve;
use crate::seam::outcome::Outcome;
use crate::seam::registry::StopCause;
use crate::seam::run::{Running, Seam, deliver};

/// Pauses between polls when the provider gives no hint; the last one goes on.
const POLL_PAUSES: &[u64] = &[1, 2, 3, 5, 8, 10, 15];
/// Pauses between tries to fetch a result that is paid for.
pub(crate) const FETCH_PAUSES: &[Duration] = &[
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
];
/// How long a provider may take to answer a cancel.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// How the provider's part of a call ended.
#[derive(Debug)]
pub enum Ending {
    /// With a result.
    Finished(Finished),
    /// With a failure.
    Failed(Failure),
    /// It was told to stop; the provider's answer to our cancel, when it was asked.
    Stopped(Option<CancelAnswer>),
}

impl Seam {
    /// K6 to K10. Not cancel safe: it runs in a task of its own.
    pub(super) async fn call(&self, permit: &SeamPermit, running: &Running) -> Ending {
        let plan = &running.plan;
        // K5: what the request names is fetched before anything is paid.
        let params = if plan.provider.wants_bytes() {
            match resolve(&self.inner.assets, &plan.caller, &plan.params).await {
                Ok(params) => params,
                Err(failure) => return Ending::Failed(failure),
            }
        } else {
            plan.params.clone()
        };
        // K6: the last moment at which a cancel costs nothing.
        match running.row.mark_submitting().await {
            Ok(true) => {}
            Ok(false) => {
                running.stop.trip(StopCause::RowCancelled);
                return Ending::Stopped(None);
            }
            Err(error) => return Ending::Failed(unsent(&error)),
        }
        if running.stop.cause().is_some() {
            return Ending::Stopped(None);
        }
        let call = Call {
            generation_id: plan.id,
            model: plan.model.clone(),
            capability: plan.capability,
            params,
            cancel: running.stop.token().clone(),
        };
        let deadline = Instant::now() + plan.deadline;
        // K7: the paid request.
        metrics::submit(plan.provider.id());
        let submit = running
            .cell
            .scope(plan.provider.submit(permit, &call, &running.feed));
        let submit = guarded(submit);
        let submitted = match timeout_at(deadline, self.telling(running, submit)).await {
            // The request may have arrived, and may be billed.
            Err(_) => return Ending::Failed(late().because("submit_outcome_unknown")),
            Ok(Err(_)) if running.stop.cause().is_some() => {
                return Ending::Stopped(Some(CancelAnswer::Unsupported));
            }
            Ok(Err(failure)) => return Ending::Failed(failure),
            Ok(Ok(submitted)) => submitted,
        };
        match submitted {
            Submitted::Finished(_) if running.stop.cause().is_some() => {
                Ending::Stopped(Some(CancelAnswer::Unsupported))
            }
            Submitted::Finished(finished) => Ending::Finished(finished),
            Submitted::Accepted {
                request_id,
                resume_token,
            } => {
                // K8: the id is bound before anything else is asked.
                running.cell.record(Some(&request_id), None).await;
                let attempt = running.cell.read().attempts.len();
                // A token that only this process can use would be a promise that no other can keep.
                let token = plan.provider.resumable().then_some(resume_token.as_str());
                running.row.bind_attempt(attempt, &request_id, token).await;
                if token.is_some() {
                    running.stop.can_be_left();
                }
                self.polling(permit, running, &resume_token, deadline).await
            }
        }
    }

    /// K9 and K10 of a job that another process submitted.
    pub(super) async fn resumed(&self, permit: &SeamPermit, running: &Running, resume: &str) -> Ending {
        running.stop.can_be_left();
        let deadline = Instant::now() + running.plan.deadline;
        self.polling(permit, running, resume, deadline).await
    }

    /// K9 and K10 of a job that can be polled.
    async fn polling(
        &self,
        permit: &SeamPermit,
        running: &Running,
        resume: &str,
        deadline: Instant,
    ) -> Ending {
        let provider = &running.plan.provider;
        let strange = Mutex::default();
        let waiting = running
            .cell
            .scope(self.until_done(permit, running, resume, &strange));
        let stopped = running.stop.token().cancelled();
        let done = tokio::select! {
            biased;
            () = stopped => {
                let answer = match running.stop.cause() {
                    // The job goes on, with another driver.
                    Some(StopCause::Fenced | StopCause::Released) => None,
                    Some(StopCause::RowCancelled | StopCause::Disconnected) | None => {
                        Some(cancel(permit, running, resume).await)
                    }
                };
                return Ending::Stopped(answer);
            }
            done = waiting => done,
            () = sleep_until(deadline) => {
                cancel(permit, running, resume).await;
                let word = strange.lock().unwrap_or_else(PoisonError::into_inner).take();
                return Ending::Failed(word.map_or_else(late, |word| {
                    Failure::new(Class::Unknown, format!("the provider's last word was {word:?}"))
                }));
            }
        };
        let result = match done {
            Ok(result) => result,
            Err(failure) => return Ending::Failed(failure),
        };
        running
            .row
            .observe(facets(ProviderStatus::Succeeded, OutputStatus::Pending))
            .await;
        let fetch = || guarded(running.cell.scope(provider.fetch(permit, &result)));
        let fetched = backoff::retry(backoff::fixed(FETCH_PAUSES), fetch, may_pass);
        match timeout_at(deadline, fetched).await {
            Err(_) => Ending::Failed(late()),
            Ok(Err(failure)) => Ending::Failed(failure),
            Ok(Ok(finished)) => Ending::Finished(finished),
        }
    }

    /// Polls until the provider has a last word. An error of a poll says nothing of the job. Cancel safe.
    async fn until_done(
        &self,
        permit: &SeamPermit,
        running: &Running,
        resume: &str,
        strange: &Mutex<Option<String>>,
    ) -> Result<String, Failure> {
        let provider = &running.plan.provider;
        let mut schedule = POLL_PAUSES.iter().copied();
        let mut told = ProviderStatus::Unspecified;
        loop {
            let polled = guarded(provider.poll(permit, resume, &running.feed)).await;
            if polled.is_ok() {
                *strange.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
            let (status, hint) = match polled {
                Ok(Polled::Done(result)) => return Ok(result),
                Ok(Polled::Failed(failure)) => return Err(failure),
                Ok(Polled::Cancelled) => {
                    return Err(Failure::new(Class::Cancelled, "the provider cancelled the job"));
                }
                Ok(Polled::Lost) => {
                    return Err(
                        Failure::new(Class::ProviderPermanent, "the provider lost the job").because("lost"),
                    );
                }
                Ok(Polled::Queued { poll_after }) => (ProviderStatus::Queued, poll_after),
                Ok(Polled::Running { poll_after }) => (ProviderStatus::Running, poll_after),
                Ok(Polled::Strange { word, poll_after }) => {
                    tracing::warn!(provider = provider.id(), word, "a state that is not known");
                    *strange.lock().unwrap_or_else(PoisonError::into_inner) = Some(word);
                    (told, poll_after)
                }
                Err(failure) => {
                    tracing::debug!(class = failure.class.as_str(), "a poll failed, the job goes on");
                    (told, failure.retry_after)
                }
            };
            if status != told {
                told = status;
                running
                    .row
                    .observe(facets(status, OutputStatus::Unspecified))
                    .await;
            }
            let pause = hint.unwrap_or_else(|| {
                backoff::jittered(Duration::from_secs(schedule.next().unwrap_or(15)), 0.2)
            });
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    }

    /// Runs a submit to its end. When the call is cancelled meanwhile, who asked is told at once.
    async fn telling<T>(&self, running: &Running, submit: impl Future<Output = T>) -> T {
        tokio::pin!(submit);
        tokio::select! {
            biased;
            done = &mut submit => return done,
            () = running.stop.token().cancelled() => {}
        }
        if running.stop.cause() == Some(StopCause::RowCancelled)
            && let Some(generation) = running.row.read().await
        {
            let error = Some(Error::Cancelled(running.plan.id));
            deliver(
                &running.feed,
                Outcome {
                    generation,
                    result: None,
                    error,
                },
                false,
            );
        }
        submit.await
    }
}

/// Asks the provider once to stop a job.
pub(super) async fn cancel(permit: &SeamPermit, running: &Running, resume: &str) -> CancelAnswer {
    let provider = &running.plan.provider;
    let asked = running.cell.scope(provider.cancel(permit, resume));
    let answered = AssertUnwindSafe(tokio::time::timeout(CANCEL_LIMIT, asked)).catch_unwind();
    let answer = match answered.await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) | Err(_) => CancelAnswer::Error,
    };
    metrics::cancel(provider.id(), answer.as_str());
    answer
}

/// A panic of an adapter is a failure of its call, and loses no receipt.
pub(super) async fn guarded<T>(call: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("an adapter panicked");
        Err(Failure::new(
            Class::ProviderPermanent,
            "the adapter of the provider broke off",
        ))
    })
}

/// Whether a result may still come when it is fetched again.
pub(crate) fn may_pass(failure: &Failure) -> bool {
    matches!(failure.class, Class::ProviderTransient | Class::RateLimit)
}

fn late() -> Failure {
    Failure::new(Class::Timeout, "the provider was not done in time")
}

fn unsent(error: &Error) -> Failure {
    Failure::new(Class::ProviderTransient, error.to_string())
        .because("ledger_unavailable")
        .unsent()
}

fn facets(provider: ProviderStatus, output: OutputStatus) -> Facets {
    Facets {
        submission: SubmissionStatus::Submitted.into(),
        provider: provider.into(),
        output: output.into(),
    }
}
