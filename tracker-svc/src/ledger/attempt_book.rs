//! The submissions of one generation: which of them a request id or a charge belongs to.
//!
//! A request id opens or fills the current attempt; another one opens the next. A charge belongs to the attempt it came
//! with; the row's charge is the exact sum when every attempt has one.

use sea_orm::sea_query::OnConflict;
use sea_orm::{ConnectionTrait, IntoActiveModel, Set};

use super::row::{attempts_of, insert_with};
use crate::charge::Charge;
use crate::entity::attempts::{ActiveModel, Column, Model};
use crate::entity::words::{AttemptKind, PriceSource, ProviderState, Status, Submission};
use crate::error::Error;
use crate::time::LedgerTime;

/// What a driver learned of a submission.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// The provider's id.
    pub request_id: Option<String>,
    /// What is needed to poll again.
    pub resume_token: Option<String>,
    /// What it cost.
    pub charge: Option<Charge>,
    /// Why the attempt was made.
    pub kind: Option<AttemptKind>,
}

/// The attempts of one row, with what changed.
#[derive(Debug)]
pub(crate) struct Book {
    generation_id: String,
    attempts: Vec<Model>,
    dirty: Vec<i32>,
}

impl Book {
    pub(crate) async fn load<C: ConnectionTrait>(tx: &C, generation_id: &str) -> Result<Self, Error> {
        let attempts = attempts_of(tx, generation_id).await?;
        Ok(Self {
            generation_id: generation_id.to_owned(),
            attempts,
            dirty: Vec::new(),
        })
    }

    pub(crate) fn attempts(&self) -> &[Model] {
        &self.attempts
    }

    /// The attempts as they are after a save.
    pub(super) fn into_attempts(self) -> Vec<Model> {
        self.attempts
    }

    pub(super) fn latest(&self) -> Option<&Model> {
        self.attempts.last()
    }

    /// Whether the provider knows of the generation under some id.
    pub(crate) fn has_request_id(&self) -> bool {
        self.attempts
            .iter()
            .any(|attempt| attempt.provider_request_id.is_some())
    }

    pub(super) fn changed(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Opens the next attempt; its number.
    pub(super) fn begin(&mut self, kind: AttemptKind, submission: Submission) -> i32 {
        let attempt_number = self
            .attempts
            .last()
            .map_or(1, |last| last.attempt_number.saturating_add(1));
        self.attempts.push(Model {
            generation_id: self.generation_id.clone(),
            attempt_number,
            kind,
            provider_request_id: None,
            resume_token: None,
            submission,
            provider_state: ProviderState::Unknown,
            cost: None,
            currency: None,
            billing_unit: None,
            quantity: None,
            unit_price: None,
            price_source: None,
            created_at: 0,
            updated_at: 0,
        });
        self.dirty.push(attempt_number);
        attempt_number
    }

    /// Takes up what a driver learned; the number of the attempt it belongs to, `None` when nothing was told.
    ///
    /// # Errors
    /// `AttemptBound` when the row has its outcome and this is yet another request id.
    pub(super) fn tell(&mut self, told: &Told, status: Status) -> Result<Option<i32>, Error> {
        let Told {
            request_id,
            resume_token,
            charge,
            kind,
        } = told;
        let number = match request_id {
            Some(id) => self.attempt_for(id, *kind, status)?,
            None if resume_token.is_none() && charge.is_none() => {
                return Ok(self.latest().map(|latest| latest.attempt_number));
            }
            None => match self.latest() {
                Some(latest) => latest.attempt_number,
                None => self.begin(kind.unwrap_or(AttemptKind::Main), Submission::Submitted),
            },
        };
        self.edit(number, |attempt| {
            if let Some(id) = request_id {
                attempt.provider_request_id = Some(id.clone());
                attempt.submission = attempt.submission.moved(Some(Submission::Submitted));
                attempt.provider_state = attempt.provider_state.moved(Some(ProviderState::Queued));
            }
            if let Some(kind) = kind {
                attempt.kind = *kind;
            }
            if resume_token.is_some() {
                attempt.resume_token.clone_from(resume_token);
            }
            if let Some(charge) = charge {
                bill(attempt, charge, PriceSource::Provider);
            }
        });
        Ok(Some(number))
    }

    /// Gives the total that was stated for the whole generation to its attempt, when there is exactly one.
    pub(super) fn bill_single(&mut self, charge: &Charge) {
        if let [only] = self.attempts.as_slice() {
            self.edit(only.attempt_number, |attempt| {
                bill(attempt, charge, PriceSource::Provider);
            });
        }
    }

    /// Gives a bill to the attempt with this number; false when there is none.
    pub(crate) fn bill_attempt(&mut self, number: i32, charge: &Charge) -> bool {
        let known = self
            .attempts
            .iter()
            .any(|attempt| attempt.attempt_number == number);
        self.edit(number, |attempt| bill(attempt, charge, PriceSource::Billing));
        known
    }

    /// Whether every attempt that the provider knows of has its bill.
    pub(crate) fn all_billed(&self) -> bool {
        self.attempts
            .iter()
            .filter(|attempt| attempt.provider_request_id.is_some())
            .all(|attempt| attempt.price_source == Some(PriceSource::Billing))
    }

    /// Moves the facets of the latest attempt.
    pub(super) fn observe(&mut self, submission: Option<Submission>, provider: Option<ProviderState>) {
        if let Some(latest) = self.latest() {
            self.edit(latest.attempt_number, |attempt| {
                attempt.submission = attempt.submission.moved(submission);
                attempt.provider_state = attempt.provider_state.moved(provider);
            });
        }
    }

    /// The first attempt leaves; again, when it was proved not to have left before.
    pub(super) async fn submit<C: ConnectionTrait>(
        tx: &C,
        time: &LedgerTime,
        generation_id: &str,
    ) -> Result<(), Error> {
        let mut book = Self {
            generation_id: generation_id.to_owned(),
            attempts: Vec::new(),
            dirty: Vec::new(),
        };
        book.begin(AttemptKind::Main, Submission::Submitting);
        book.save(tx, time).await
    }

    fn attempt_for(&mut self, id: &str, kind: Option<AttemptKind>, status: Status) -> Result<i32, Error> {
        if let Some(known) = self
            .attempts
            .iter()
            .find(|attempt| attempt.provider_request_id.as_deref() == Some(id))
        {
            return Ok(known.attempt_number);
        }
        match self.latest() {
            Some(latest) if latest.provider_request_id.is_none() => Ok(latest.attempt_number),
            None => Ok(self.begin(kind.unwrap_or(AttemptKind::Main), Submission::Submitted)),
            Some(_) if matches!(status, Status::Completed | Status::Failed) => Err(Error::AttemptBound),
            Some(_) => Ok(self.begin(kind.unwrap_or(AttemptKind::Retry), Submission::Submitted)),
        }
    }

    fn edit(&mut self, number: i32, change: impl FnOnce(&mut Model)) {
        if let Some(attempt) = self
            .attempts
            .iter_mut()
            .find(|attempt| attempt.attempt_number == number)
        {
            let before = attempt.clone();
            change(attempt);
            if *attempt != before && !self.dirty.contains(&number) {
                self.dirty.push(number);
            }
        }
    }

    /// Writes what changed.
    pub(crate) async fn save<C: ConnectionTrait>(&self, tx: &C, time: &LedgerTime) -> Result<(), Error> {
        for attempt in self
            .attempts
            .iter()
            .filter(|attempt| self.dirty.contains(&attempt.attempt_number))
        {
            let mut values = attempt.clone().into_active_model();
            values.created_at = sea_orm::NotSet;
            values.updated_at = sea_orm::NotSet;
            let mut insert = insert_with::<ActiveModel>(
                &values,
                [(Column::CreatedAt, time.now()), (Column::UpdatedAt, time.now())],
            )?;
            insert.on_conflict(
                OnConflict::columns([Column::GenerationId, Column::AttemptNumber])
                    .update_columns([
                        Column::Kind,
                        Column::ProviderRequestId,
                        Column::ResumeToken,
                        Column::Submission,
                        Column::ProviderState,
                        Column::Cost,
                        Column::Currency,
                        Column::BillingUnit,
                        Column::Quantity,
                        Column::UnitPrice,
                        Column::PriceSource,
                        Column::UpdatedAt,
                    ])
                    .to_owned(),
            );
            tx.execute(&insert).await?;
        }
        Ok(())
    }
}

fn bill(attempt: &mut Model, charge: &Charge, source: PriceSource) {
    if attempt.price_source.is_some_and(|have| have > source) {
        return;
    }
    let Charge {
        cost,
        currency,
        billing_unit,
        quantity,
        unit_price,
        breakdown: _,
    } = charge.clone();
    attempt.cost = Some(cost);
    attempt.currency = Some(currency);
    (attempt.billing_unit, attempt.quantity, attempt.unit_price) = (billing_unit, quantity, unit_price);
    attempt.price_source = Some(source);
}

/// The row's changes that carry a charge.
pub(crate) fn priced(changes: &mut super::row::Changes, charge: &Charge, source: PriceSource) {
    changes.cost = Set(Some(charge.cost));
    changes.currency = Set(Some(charge.currency.clone()));
    changes.billing_unit = Set(charge.billing_unit.clone());
    changes.quantity = Set(charge.quantity.clone());
    changes.unit_price = Set(charge.unit_price.clone());
    changes.price_source = Set(Some(source));
}
