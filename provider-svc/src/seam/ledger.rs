//! The ledger as the seam uses it: one [`Row`] per call, with the writes of its driver.
//!
//! Opening is all or nothing. Every write after that is owed: when the ledger cannot be told it goes to the spool, and
//! the call goes on, because money is out.

mod row;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use atelier_common::backoff;
use atelier_common::channel::{MAX_MESSAGE_BYTES, Transport};
use atelier_common::identity::{Caller, Signer};
use atelier_proto::ids::InstanceId;
use atelier_proto::reason;
use atelier_proto::tracker::v1::generation_service_client::GenerationServiceClient;
use atelier_proto::tracker::v1::{
    BindAttemptRequest, CancelGenerationRequest, CancelGenerationResponse, ClaimReconciliationRequest,
    ClaimReconciliationResponse, Generation, GenerationFilter, GenerationStatus, GetGenerationRequest,
    ListGenerationsRequest, OpenGenerationRequest, ReportReconciliationRequest, ReportReconciliationResponse,
};
use tonic::{Code, Request, Response, Status};

use crate::error::Error;
use crate::seam::spool::{Entry, Spool, Write};
use crate::settings::LedgerMode;

pub use row::{Close, Row};

/// Rows of a run that are looked at at a time.
const ROWS: i32 = 500;
/// Tries to deliver a write that the ledger calls its own bug, before it is given up.
const MAX_INTERNAL: u32 = 20;

/// The client of the ledger.
#[derive(Clone)]
pub struct Ledger {
    transport: Transport,
    signer: Signer,
    instance: InstanceId,
    spool: Spool,
    mode: LedgerMode,
    timeout: Duration,
    warned: Arc<AtomicBool>,
}

/// What came of opening a row.
pub enum Opened {
    /// It is ours to drive.
    Created(Row, Generation),
    /// The key was known: nothing is to be paid again.
    Joined(Generation),
}

/// Why a write did not reach the row.
#[derive(Debug, Clone)]
pub(crate) enum WriteError {
    /// The ledger cannot be told.
    Unavailable(Status),
    /// Another driver has the row.
    Fenced,
    /// It was refused.
    Refused(Status),
}
impl From<Status> for WriteError {
    fn from(status: Status) -> Self {
        match status.code() {
            Code::Aborted if reason::reason_of(&status) == reason::FENCED => Self::Fenced,
            // The ledger said no; asking again changes nothing, and a call may not go unrecorded because of it.
            Code::ResourceExhausted
                if [reason::BUDGET_EXCEEDED, reason::BACKGROUND_LIMIT]
                    .contains(&reason::reason_of(&status).as_str()) =>
            {
                Self::Refused(status)
            }
            Code::Unavailable
            | Code::DeadlineExceeded
            | Code::Cancelled
            | Code::Unknown
            | Code::Internal
            | Code::Aborted
            | Code::ResourceExhausted => Self::Unavailable(status),
            Code::Ok
            | Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::DataLoss
            | Code::Unauthenticated => Self::Refused(status),
        }
    }
}

impl Ledger {
    /// A client over a transport.
    #[must_use]
    pub fn new(
        transport: Transport,
        signer: Signer,
        instance: InstanceId,
        spool: Spool,
        mode: LedgerMode,
        timeout: Duration,
    ) -> Self {
        Self {
            transport,
            signer,
            instance,
            spool,
            mode,
            timeout,
            warned: Arc::default(),
        }
    }

    /// The generated client.
    pub(crate) fn client(&self) -> GenerationServiceClient<Transport> {
        GenerationServiceClient::new(self.transport.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// This process, as the ledger knows it.
    #[must_use]
    pub fn instance(&self) -> InstanceId {
        self.instance
    }

    /// Writes that wait.
    #[must_use]
    pub fn spool(&self) -> &Spool {
        &self.spool
    }

    pub(crate) fn request<T>(&self, message: T, caller: &Caller) -> Request<T> {
        let mut request = self.signer.request(message, caller);
        request.set_timeout(self.timeout);
        request
    }

    /// A request whose messages go on for as long as the stream does, so without a limit of time.
    pub(crate) fn stream_request<T>(&self, messages: T, caller: &Caller) -> Request<T> {
        self.signer.request(messages, caller)
    }

    async fn within<T>(&self, call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, Status> {
        match tokio::time::timeout(self.timeout, call).await {
            Ok(answer) => answer.map(Response::into_inner),
            Err(_) => Err(Status::deadline_exceeded("the ledger did not answer in time")),
        }
    }

    /// Opens a row, durable before this returns. Where a row is required it is tried again, as the answer may be what got
    /// lost: a row that is there by then is ours when its id is new, and nobody else would ever close it.
    ///
    /// # Errors
    /// [`Error::LedgerUnavailable`], [`Error::SpoolFull`], and the ledger's refusals.
    pub async fn open(
        &self,
        caller: &Caller,
        mut request: OpenGenerationRequest,
        id_is_new: bool,
    ) -> Result<Opened, Error> {
        if self.spool.full() {
            return Err(Error::SpoolFull);
        }
        request.instance_id = self.instance.to_string();
        let unrecorded = row::unrecorded(&request, caller);
        let say = || async {
            let request = self.request(request.clone(), caller);
            self.within(Box::pin(self.client().open_generation(request)))
                .await
                .map_err(WriteError::from)
        };
        let mut repeated = false;
        let lost = |error: &WriteError| {
            let again = self.mode == LedgerMode::Required && matches!(error, WriteError::Unavailable(_));
            repeated |= again;
            again
        };
        match backoff::retry(backoff::fixed(row::PAUSES), say, lost).await {
            Ok(answer) => {
                let generation = answer.generation.unwrap_or_default();
                let ours = repeated
                    && id_is_new
                    && generation.generation_id == request.generation_id
                    && generation.status() == GenerationStatus::Running;
                if !answer.created && !ours {
                    return Ok(Opened::Joined(generation));
                }
                let row = Row::new(self.clone(), caller.clone(), &generation);
                Ok(Opened::Created(row, generation))
            }
            Err(WriteError::Unavailable(status)) => {
                if self.mode == LedgerMode::Required {
                    tracing::warn!(code = ?status.code(), "the ledger cannot be reached, a call is refused");
                    return Err(Error::LedgerUnavailable);
                }
                if !self.warned.swap(true, Ordering::Relaxed) {
                    tracing::warn!(code = ?status.code(), "the ledger cannot be reached, calls go unrecorded");
                }
                Ok(Opened::Created(
                    Row::unrecorded(self.clone(), caller.clone(), &unrecorded),
                    unrecorded,
                ))
            }
            Err(WriteError::Fenced) => Err(Error::LedgerUnavailable),
            Err(WriteError::Refused(status)) => Err(Error::Ledger(status)),
        }
    }

    /// Cancels a row of the caller.
    ///
    /// # Errors
    /// What the ledger says.
    pub async fn cancel(
        &self,
        caller: &Caller,
        generation_id: &str,
    ) -> Result<CancelGenerationResponse, Error> {
        let request = CancelGenerationRequest {
            generation_id: generation_id.to_owned(),
        };
        let answer = self
            .within(Box::pin(
                self.client().cancel_generation(self.request(request, caller)),
            ))
            .await;
        answer.map_err(|status| match WriteError::from(status) {
            WriteError::Refused(status) => Error::Ledger(status),
            WriteError::Unavailable(_) | WriteError::Fenced => Error::LedgerUnavailable,
        })
    }

    /// Reads a row of the caller.
    ///
    /// # Errors
    /// What the ledger says.
    pub async fn get(&self, caller: &Caller, generation_id: &str) -> Result<Generation, Error> {
        let request = GetGenerationRequest {
            generation_id: generation_id.to_owned(),
        };
        let answer = self
            .within(Box::pin(
                self.client().get_generation(self.request(request, caller)),
            ))
            .await;
        match answer.map_err(WriteError::from) {
            Ok(answer) => answer.generation.ok_or(Error::LedgerUnavailable),
            Err(WriteError::Refused(status)) => Err(Error::Ledger(status)),
            Err(WriteError::Unavailable(_) | WriteError::Fenced) => Err(Error::LedgerUnavailable),
        }
    }

    /// Rows of a run of the caller that go on, a page of them.
    ///
    /// # Errors
    /// What the ledger says.
    pub async fn running_of(&self, caller: &Caller, job_id: &str) -> Result<Vec<Generation>, Error> {
        let request = ListGenerationsRequest {
            filter: Some(GenerationFilter {
                status: Some(GenerationStatus::Running.into()),
                job_id: Some(job_id.to_owned()),
                ..GenerationFilter::default()
            }),
            page_size: ROWS,
            page_token: String::new(),
        };
        let answer = self
            .within(Box::pin(
                self.client().list_generations(self.request(request, caller)),
            ))
            .await;
        match answer.map_err(WriteError::from) {
            Ok(answer) => Ok(answer.generations),
            Err(WriteError::Refused(status)) => Err(Error::Ledger(status)),
            Err(WriteError::Unavailable(_) | WriteError::Fenced) => Err(Error::LedgerUnavailable),
        }
    }

    /// Takes the claim on the bill of a row of the caller.
    ///
    /// # Errors
    /// What the ledger says.
    pub async fn claim_bill(
        &self,
        caller: &Caller,
        generation_id: &str,
    ) -> Result<ClaimReconciliationResponse, Error> {
        let request = ClaimReconciliationRequest {
            generation_id: generation_id.to_owned(),
        };
        let request = self.request(request, caller);
        let mut client = self.client();
        let answer = self.within(Box::pin(client.claim_reconciliation(request)));
        answer.await.map_err(said)
    }

    /// Reports what a look at a bill found.
    ///
    /// # Errors
    /// What the ledger says.
    pub async fn report(
        &self,
        caller: &Caller,
        report: ReportReconciliationRequest,
    ) -> Result<ReportReconciliationResponse, Error> {
        let say = || async {
            let request = self.request(report.clone(), caller);
            let mut client = self.client();
            let answer = self.within(Box::pin(client.report_reconciliation(request)));
            answer.await.map_err(WriteError::from)
        };
        let away = |error: &WriteError| matches!(error, WriteError::Unavailable(_));
        match backoff::retry(backoff::fixed(row::PAUSES), say, away).await {
            Ok(answer) => Ok(answer),
            Err(WriteError::Refused(status)) => Err(Error::Ledger(status)),
            Err(WriteError::Unavailable(_) | WriteError::Fenced) => Err(Error::LedgerUnavailable),
        }
    }

    /// Tells the ledger a write, without the spool.
    async fn send(&self, caller: &Caller, write: &Write) -> Result<Told, WriteError> {
        let mut client = self.client();
        let told = match write.clone() {
            Write::Bind(request) => {
                let answer = self
                    .within(Box::pin(client.bind_attempt(self.request(request, caller))))
                    .await?;
                Told {
                    cancelled: answer.cancelled,
                    ..Told::default()
                }
            }
            Write::Observe(request) => {
                let answer = self
                    .within(Box::pin(client.observe_generation(self.request(request, caller))))
                    .await?;
                Told {
                    cancelled: answer.cancelled,
                    ..Told::default()
                }
            }
            Write::Close(request) => {
                let answer = self
                    .within(Box::pin(client.close_generation(self.request(request, caller))))
                    .await?;
                Told {
                    lost_race: answer.lost_race,
                    generation: answer.generation,
                    ..Told::default()
                }
            }
            Write::Annotate(request) => {
                let answer = self
                    .within(Box::pin(
                        client.annotate_generation(self.request(request, caller)),
                    ))
                    .await?;
                Told {
                    generation: answer.generation,
                    ..Told::default()
                }
            }
        };
        Ok(told)
    }

    /// Tells the ledger a write, or keeps it when that cannot be done or when an earlier one of the row waits. `None`
    /// when it was kept.
    async fn tell(&self, caller: &Caller, write: Write) -> Result<Option<Told>, WriteError> {
        if self.spool.holds(write.generation_id()) {
            self.spool.keep(caller.clone(), write).await;
            return Ok(None);
        }
        match self.send(caller, &write).await {
            Ok(told) => Ok(Some(told)),
            Err(WriteError::Unavailable(status)) => {
                tracing::warn!(
                    generation_id = write.generation_id(),
                    code = ?status.code(),
                    "the ledger cannot be told, the write is kept"
                );
                self.spool.keep(caller.clone(), write).await;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Delivers what waits, in order, until nothing does or the ledger is away. True when nothing is left.
    pub async fn deliver(&self) -> bool {
        let mut internal = 0;
        while let Some(entry) = self.spool.first() {
            match self.send(&entry.caller, &entry.write).await {
                Ok(_) => {}
                Err(WriteError::Unavailable(status))
                    if status.code() == Code::Internal && internal < MAX_INTERNAL =>
                {
                    internal += 1;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
                Err(WriteError::Unavailable(status)) if status.code() != Code::Internal => return false,
                Err(WriteError::Fenced) => self.deliver_evidence(&entry).await,
                Err(WriteError::Unavailable(status) | WriteError::Refused(status)) => tracing::error!(
                    generation_id = entry.write.generation_id(),
                    code = ?status.code(),
                    "the ledger refuses a kept write, it is given up"
                ),
            }
            internal = 0;
            self.spool.delivered(entry.number).await;
        }
        true
    }

    /// An outcome of a row that was taken from us is told as evidence.
    async fn deliver_evidence(&self, entry: &Entry) {
        if let Write::Close(request) = &entry.write {
            let mut request = request.clone();
            request.evidence = true;
            if self.send(&entry.caller, &Write::Close(request)).await.is_err() {
                tracing::warn!(
                    generation_id = entry.write.generation_id(),
                    "the ledger refuses a late outcome"
                );
            }
        }
    }
}

/// What the ledger answered to a write.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    pub(crate) cancelled: bool,
    pub(crate) lost_race: bool,
    pub(crate) generation: Option<Generation>,
}

/// What the ledger said, as the seam's error.
fn said(status: Status) -> Error {
    match WriteError::from(status) {
        WriteError::Refused(status) => Error::Ledger(status),
        WriteError::Unavailable(_) | WriteError::Fenced => Error::LedgerUnavailable,
    }
}

/// A bind request for a row.
fn bind_request(
    row: &Row,
    request_id: &str,
    resume_token: Option<&str>,
    attempt: usize,
) -> BindAttemptRequest {
    BindAttemptRequest {
        generation_id: row.id_text().to_owned(),
        driver: Some(row.driver()),
        provider_request_id: Some(request_id.to_owned()),
        resume_token: resume_token.map(ToOwned::to_owned),
        charge: None,
        kind: (attempt > 1).then(|| "retry".to_owned()),
    }
}
