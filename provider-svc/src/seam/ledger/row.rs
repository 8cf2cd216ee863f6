//! One open row and the writes of its driver.

use std::time::Duration;

use async_trait::async_trait;
use atelier_common::backoff;
use atelier_common::identity::Caller;
use atelier_proto::tracker::v1::{
    AnnotateGenerationRequest, Charge, CloseGenerationRequest, Driver, Facets, Generation, GenerationStatus,
    MarkSubmittingRequest, ObserveGenerationRequest, OpenGenerationRequest, OutputStatus, ProviderStatus,
    Receipt, SubmissionStatus,
};

use super::{Ledger, Told, WriteError, bind_request};
use crate::error::Error;
use crate::seam::receipt::{Binder, Stated};
use crate::seam::registry::{Stop, StopCause};
use crate::seam::settle::stated_charge;
use crate::seam::spool::Write;

/// Pauses between tries to open a row, and to say that the paid request is about to leave; nothing is sent before that.
pub(super) const PAUSES: &[Duration] = &[
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(3),
];

/// An open row that this process drives. Dropped unclosed, the sweep will find it and call it interrupted.
#[derive(Clone)]
pub struct Row {
    ledger: Ledger,
    caller: Caller,
    id: String,
    epoch: i64,
    recorded: bool,
    stop: Stop,
}

/// An outcome to close a row with.
#[derive(Debug, Clone, Default)]
pub struct Close {
    /// completed, failed or cancelled.
    pub status: GenerationStatus,
    /// What the provider told.
    pub receipt: Option<Receipt>,
    /// What the catalog makes of the result.
    pub catalog_charge: Option<Charge>,
    /// Why there is no price.
    pub unpriced_reason: Option<String>,
    /// Assets that were stored.
    pub asset_ids: Vec<String>,
    /// `assets`, `lost` or `none`.
    pub persisted: &'static str,
    /// Why it failed.
    pub error: Option<String>,
    /// Machine-readable reason.
    pub error_code: Option<&'static str>,
    /// How long it took.
    pub duration: Duration,
    /// Final facets.
    pub facets: Facets,
    /// Input tokens.
    pub input_tokens: Option<i64>,
    /// Output tokens.
    pub output_tokens: Option<i64>,
}

/// How a close ended.
pub struct Closed {
    /// The row as it is.
    pub generation: Option<Generation>,
    /// True when somebody else had closed it with another status.
    pub lost_race: bool,
    /// True when the ledger could not be told yet.
    pub pending: bool,
}

impl Row {
    pub(in crate::seam) fn new(ledger: Ledger, caller: Caller, generation: &Generation) -> Self {
        let (id, epoch) = (generation.generation_id.clone(), generation.owner_epoch);
        Self {
            ledger,
            caller,
            id,
            epoch,
            recorded: true,
            stop: Stop::default(),
        }
    }

    pub(super) fn unrecorded(ledger: Ledger, caller: Caller, generation: &Generation) -> Self {
        Self {
            recorded: false,
            ..Self::new(ledger, caller, generation)
        }
    }

    /// The same row, which trips this signal when the ledger says that the call is to stop.
    #[must_use]
    pub fn stopping(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// The id, as the contract has it.
    #[must_use]
    pub fn id_text(&self) -> &str {
        &self.id
    }

    pub(super) fn driver(&self) -> Driver {
        Driver {
            instance_id: self.ledger.instance().to_string(),
            epoch: self.epoch,
        }
    }

    /// Says that the paid request is about to leave. False when a cancel came first: then nothing may be sent.
    ///
    /// # Errors
    /// [`Error::LedgerUnavailable`] when it cannot be said, and the ledger's refusals.
    pub async fn mark_submitting(&self) -> Result<bool, Error> {
        if !self.recorded {
            return Ok(true);
        }
        let say = || async {
            let request = MarkSubmittingRequest {
                generation_id: self.id.clone(),
                driver: Some(self.driver()),
            };
            let request = self.ledger.request(request, &self.caller);
            self.ledger
                .within(Box::pin(self.ledger.client().mark_submitting(request)))
                .await
                .map_err(WriteError::from)
        };
        let retriable = |error: &WriteError| matches!(error, WriteError::Unavailable(_));
        match backoff::retry(backoff::fixed(PAUSES), say, retriable).await {
            Ok(answer) => Ok(!answer.cancelled),
            Err(WriteError::Unavailable(_)) => Err(Error::LedgerUnavailable),
            Err(WriteError::Fenced) => {
                self.stop.trip(StopCause::Fenced);
                Ok(false)
            }
            Err(WriteError::Refused(status)) => Err(Error::Ledger(status)),
        }
    }

    /// Binds a request id, durable or kept when this returns.
    pub async fn bind_attempt(&self, attempt: usize, request_id: &str, resume_token: Option<&str>) {
        let request = bind_request(self, request_id, resume_token, attempt);
        self.write(Write::Bind(request)).await;
    }

    /// Records a change of the facets.
    pub async fn observe(&self, facets: Facets) {
        let request = ObserveGenerationRequest {
            generation_id: self.id.clone(),
            driver: Some(self.driver()),
            facets: Some(facets),
        };
        self.write(Write::Observe(request)).await;
    }

    /// Adds what is known of a row that is settled.
    pub async fn annotate(
        &self,
        receipt: Option<Receipt>,
        asset_ids: Vec<String>,
        provider_cancel: Option<&str>,
    ) -> Option<Generation> {
        if receipt.is_none() && asset_ids.is_empty() && provider_cancel.is_none() {
            return None;
        }
        let request = AnnotateGenerationRequest {
            generation_id: self.id.clone(),
            receipt,
            asset_ids,
            provider_cancel: provider_cancel.map(ToOwned::to_owned),
        };
        self.write(Write::Annotate(request))
            .await
            .and_then(|told| told.generation)
    }

    /// Closes the row, or keeps the outcome until it can be told.
    pub async fn close(&self, close: Close) -> Closed {
        if !self.recorded {
            return Closed {
                generation: None,
                lost_race: false,
                pending: false,
            };
        }
        let mut request = self.close_request(close);
        let mut answer = self
            .ledger
            .tell(&self.caller, Write::Close(request.clone()))
            .await;
        if matches!(answer, Err(WriteError::Fenced)) {
            // The row was taken from us. What we know may still replace an unknown outcome.
            request.evidence = true;
            answer = self.ledger.tell(&self.caller, Write::Close(request)).await;
        }
        match answer {
            Ok(Some(told)) => Closed {
                generation: told.generation,
                lost_race: told.lost_race,
                pending: false,
            },
            Ok(None) => Closed {
                generation: None,
                lost_race: false,
                pending: true,
            },
            Err(error) => {
                tracing::error!(generation_id = self.id, ?error, "the ledger refuses an outcome");
                let generation = self.ledger.get(&self.caller, &self.id).await.ok();
                Closed {
                    generation,
                    lost_race: true,
                    pending: false,
                }
            }
        }
    }

    fn close_request(&self, close: Close) -> CloseGenerationRequest {
        CloseGenerationRequest {
            generation_id: self.id.clone(),
            driver: Some(self.driver()),
            status: close.status.into(),
            receipt: close.receipt,
            catalog_charge: close.catalog_charge,
            unpriced_reason: close.unpriced_reason,
            asset_ids: close.asset_ids,
            persisted: close.persisted.to_owned(),
            error: close.error,
            error_code: close.error_code.map(ToOwned::to_owned),
            duration: Some(atelier_proto::time::proto_duration(close.duration)),
            facets: Some(close.facets),
            input_tokens: close.input_tokens,
            output_tokens: close.output_tokens,
            evidence: false,
        }
    }

    /// The row as it is; `None` when it cannot be read.
    pub async fn read(&self) -> Option<Generation> {
        if self.recorded {
            self.ledger.get(&self.caller, &self.id).await.ok()
        } else {
            None
        }
    }

    async fn write(&self, write: Write) -> Option<Told> {
        if !self.recorded {
            return None;
        }
        match self.ledger.tell(&self.caller, write).await {
            Ok(told) => {
                if told.as_ref().is_some_and(|told| told.cancelled) {
                    self.stop.trip(StopCause::RowCancelled);
                }
                told
            }
            Err(WriteError::Fenced) => {
                tracing::warn!(generation_id = self.id, "another driver has the row");
                self.stop.trip(StopCause::Fenced);
                None
            }
            Err(WriteError::Unavailable(status) | WriteError::Refused(status)) => {
                tracing::warn!(generation_id = self.id, code = ?status.code(), "the ledger refuses a write");
                None
            }
        }
    }
}

#[async_trait]
impl Binder for Row {
    async fn bind(&self, attempt: usize, request_id: &str) {
        self.bind_attempt(attempt, request_id, None).await;
    }

    async fn charged(&self, request_id: &str, charge: &Stated) {
        let mut request = bind_request(self, request_id, None, 1);
        request.charge = Some(stated_charge(charge));
        self.write(Write::Bind(request)).await;
    }

    fn generation_id(&self) -> &str {
        &self.id
    }
}

/// The row of a call that no ledger knows.
pub(super) fn unrecorded(request: &OpenGenerationRequest, caller: &Caller) -> Generation {
    Generation {
        generation_id: request.generation_id.clone(),
        user_id: caller.user_id.clone(),
        status: GenerationStatus::Running.into(),
        provider: request.provider.clone(),
        model: request.model.clone(),
        capability: request.capability.clone(),
        origin: request.origin.clone(),
        parameters: request.parameters.clone(),
        estimated_cost: request.estimate.as_ref().and_then(|charge| charge.cost.clone()),
        facets: Some(Facets {
            submission: SubmissionStatus::Accepted.into(),
            provider: ProviderStatus::Unspecified.into(),
            output: OutputStatus::Pending.into(),
        }),
        background: request.background,
        version: 1,
        ..Generation::default()
    }
}
