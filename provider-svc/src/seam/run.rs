//! A call from the request to the settled row, in the order that the generations specification 3.1 fixes.

use std::sync::Arc;
use std::time::Duration;

use atelier_common::clock::Clock;
use atelier_common::identity::Caller;
use atelier_common::tasks::Tasks;
use atelier_proto::ids::GenerationId;
use atelier_proto::provider::v1::run_generation_response::Event;
use atelier_proto::provider::v1::{CancelGenerationResponse, Prediction, RunGenerationRequest};
use atelier_proto::tracker::v1::Generation;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;
use tracing::Instrument;

use crate::error::Error;
use crate::metrics;
use crate::pricing::Catalog;
use crate::seam::assets::Assets;
use crate::seam::calling::Ending;
use crate::seam::directory::Directory;
use crate::seam::feed::Feed;
use crate::seam::ledger::{Ledger, Opened, Row};
use crate::seam::outcome::Outcome;
use crate::seam::permit::SeamPermit;
use crate::seam::plan::Plan;
use crate::seam::receipt::ReceiptCell;
use crate::seam::registry::{Driving, Registry, Stop, StopCause};

/// The seam of one process. Clones are the same seam.
#[derive(Clone)]
pub struct Seam {
    pub(super) inner: Arc<Inner>,
}

/// What the seam works with.
pub struct Inner {
    /// The providers.
    pub directory: Directory,
    /// The prices.
    pub catalog: Arc<Catalog>,
    /// The ledger.
    pub ledger: Ledger,
    /// The asset store.
    pub assets: Assets,
    /// The calls that run here.
    pub registry: Registry,
    /// Where calls run; they outlive who asked for them.
    pub tasks: Tasks,
    /// The time.
    pub clock: Clock,
    /// Pauses between tries to store an output.
    pub save_pauses: Vec<Duration>,
    /// Looks at bills that may go on at once.
    pub looks: Semaphore,
    /// Over how long looks that are due together are spread.
    pub bill_spread: Duration,
}

/// Where a call begins.
pub(super) enum Start {
    /// With its request.
    Fresh,
    /// With the polling of a job that another process submitted, by this token.
    Resumed(String),
}

/// A call while it runs.
pub(super) struct Running {
    pub(super) plan: Plan,
    pub(super) row: Row,
    pub(super) opened: Generation,
    pub(super) cell: ReceiptCell,
    pub(super) feed: Feed,
    pub(super) stop: Stop,
    pub(super) started: Instant,
}

impl Seam {
    /// A seam over its parts.
    #[must_use]
    pub fn new(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The ledger that it writes to.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.inner.ledger
    }

    /// The calls that run here.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// The providers.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.inner.directory
    }

    /// The prices.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.inner.catalog
    }

    /// Opens a row for a request, or joins the one that its key names, and returns. What follows is told to the feed by
    /// a task that nobody's going away can stop. Dropped while it waits here, the call goes on all the same.
    ///
    /// # Errors
    /// Everything that can be wrong before there is a row.
    pub async fn start(
        &self,
        caller: Caller,
        request: RunGenerationRequest,
        feed: Feed,
    ) -> Result<(), Error> {
        let plan = Plan::new(caller, request, &self.inner.directory, &self.inner.catalog)?;
        if self.inner.tasks.stopping() {
            return Err(Error::Draining);
        }
        let (opened, wait) = oneshot::channel();
        let seam = self.clone();
        let span = tracing::info_span!(
            "generation",
            otel.name = format!("{} {}", plan.capability.as_str(), plan.model),
            gen_ai.operation.name = plan.capability.as_str(),
            gen_ai.provider.name = plan.provider.id(),
            gen_ai.request.model = plan.model,
            generation_id = %plan.id,
        );
        let work = Box::pin(seam.follow(plan, feed, opened).instrument(span));
        let _follower = self.inner.tasks.spawn("generation", work);
        wait.await.unwrap_or(Err(Error::Died))
    }

    /// Cancels a call of the caller: the row first, then the call itself when it runs here.
    ///
    /// # Errors
    /// What the ledger says; not for calls that are settled, unknown or somebody else's.
    pub async fn cancel(
        &self,
        caller: &Caller,
        generation_id: &str,
    ) -> Result<CancelGenerationResponse, Error> {
        let answer = self.inner.ledger.cancel(caller, generation_id).await?;
        let id = generation_id.parse::<GenerationId>().ok();
        let aborted = answer.cancelled
            && id.is_some_and(|id| {
                self.inner
                    .registry
                    .trip(id, &caller.user_id, StopCause::RowCancelled)
            });
        Ok(CancelGenerationResponse {
            cancelled: answer.cancelled,
            status: answer.status,
            error: answer.error,
            aborted,
        })
    }

    /// Cancels all calls of a run of the caller that go on.
    ///
    /// # Errors
    /// What the ledger says.
    pub async fn cancel_job(&self, caller: &Caller, job_id: &str) -> Result<CancelGenerationResponse, Error> {
        let mut whole = CancelGenerationResponse::default();
        // A cancelled row is no longer running, so the first page is all that there is to look at, until it brings nothing.
        loop {
            let mut any = false;
            for generation in self.inner.ledger.running_of(caller, job_id).await? {
                let answer = self.cancel(caller, &generation.generation_id).await?;
                any |= answer.cancelled;
                whole.aborted |= answer.aborted;
            }
            if !any {
                return Ok(whole);
            }
            whole.cancelled = true;
            whole.status = "cancelled".to_owned();
        }
    }

    async fn follow(self, plan: Plan, feed: Feed, opened: oneshot::Sender<Result<(), Error>>) {
        let request = plan.open_request();
        // K3: no row, no call.
        let (row, generation) = match self
            .inner
            .ledger
            .open(&plan.caller, request, plan.id_is_new)
            .await
        {
            Err(error) => {
                let _ = opened.send(Err(error));
                return;
            }
            Ok(Opened::Joined(generation)) => {
                let _ = opened.send(Ok(()));
                self.join(&plan, generation, &feed).await;
                return;
            }
            Ok(Opened::Created(row, generation)) => (row, generation),
        };
        // K4: whoever cancels from here on finds the call.
        let driving = self.inner.registry.enter(plan.id, &plan.caller.user_id);
        let row = row.stopping(driving.stop().clone());
        feed.send(prediction(&generation, false));
        let _ = opened.send(Ok(()));
        if plan.background {
            feed.finish(None);
        }
        let running = Running {
            plan,
            cell: ReceiptCell::bound_by(Arc::new(row.clone())),
            row,
            opened: generation,
            feed,
            stop: driving.stop().clone(),
            started: Instant::now(),
        };
        self.drive(running, driving, Start::Fresh).await;
    }

    /// K5 to K13 of a call whose row is open.
    pub(super) async fn drive(&self, running: Running, driving: Driving, start: Start) {
        let _counted = metrics::InFlight::enter();
        let stop = running.stop.clone();
        let gone = running.feed.gone().clone();
        let ends_with_reader = running.plan.cancel_on_disconnect && !running.plan.background;
        let watch = async move {
            gone.cancelled().await;
            if ends_with_reader {
                stop.trip(StopCause::Disconnected);
            }
            std::future::pending::<std::convert::Infallible>().await
        };
        let outcome = tokio::select! {
            outcome = self.steps(&running, start) => outcome,
            never = watch => match never {},
        };
        let took = running.started.elapsed();
        let word = match &outcome.error {
            None => "completed",
            Some(Error::Cancelled(_)) => "cancelled",
            Some(_) => "failed",
        };
        metrics::call(
            running.plan.provider.id(),
            running.plan.capability.as_str(),
            word,
            took,
        );
        // K13: waiters first, then the one who asked.
        driving.settle(outcome.light());
        deliver(&running.feed, outcome, false);
    }

    async fn steps(&self, running: &Running, start: Start) -> Outcome {
        let permit = SeamPermit::grant();
        let ending = match start {
            Start::Fresh => self.call(&permit, running).await,
            Start::Resumed(token) => self.resumed(&permit, running, &token).await,
        };
        match ending {
            Ending::Finished(finished) => self.completed(running, finished).await,
            Ending::Failed(failure) => self.failed(running, failure).await,
            Ending::Stopped(answer) => self.stopped(running, answer).await,
        }
    }
}

/// The row, as a message.
pub(super) fn prediction(generation: &Generation, joined: bool) -> Event {
    Event::Prediction(Prediction {
        generation: Some(generation.clone()),
        joined,
    })
}

/// The end of a call, as messages.
pub(super) fn deliver(feed: &Feed, outcome: Outcome, joined: bool) {
    let Outcome {
        generation,
        result,
        error,
    } = outcome;
    if let Some(result) = result.filter(|_| error.is_none()) {
        feed.send(Event::Result(result));
    }
    feed.send(prediction(&generation, joined));
    feed.finish(error.map(Into::into));
}
