//! Drives one invocation for the node that waits for it: hands it to its worker, again if it must, sends what the worker
//! asks for, and gives what arrives, one by one.

use std::{collections::VecDeque, sync::Arc};

use atelier_proto::{
    CHUNK_BYTES,
    kernel::v1::{
        ConnectResponse, Invocation, InvocationCancel, InvocationInput, InvocationMode, MediaPart, Output,
        connect_response::Message as Said,
    },
    value::{Map, MediaRef, Value},
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::{
    sync::{Notify, mpsc::Permit},
    time::{Instant, sleep_until},
};
use tonic::Status;

use super::{
    calls::{Spec, Step},
    frame::Frame,
    hub::{Hub, Link, message},
    inputs::Streamed,
    media::Media,
};
use crate::{
    event::Note,
    node::{Context, NodeError},
};

/// Largest inputs that are handed to a worker, in bytes; media count as references.
const MAX_INPUTS: usize = 32 * 1024 * 1024;

/// What a worker gives out.
#[derive(Debug)]
pub(super) enum Given {
    Result(Map),
    Values(Map, Option<Bytes>),
    Forward {
        output: String,
        value: Value,
        lineage: Bytes,
    },
    Drop {
        output: String,
        lineage: Bytes,
    },
    Complete(String),
    Note(Note),
    /// Nothing, but more inputs may be wanted than before.
    Room,
    End,
}
/// What a driver waited for.
enum Event<'a> {
    Cancelled,
    Fetched(i64, Result<Bytes, String>),
    /// There is room on the stream; `None`: it is closed.
    Room(Option<Permit<'a, Result<ConnectResponse, Status>>>),
    Woken,
}
type Fetching = BoxFuture<'static, (i64, Result<Bytes, String>)>;

/// One invocation. Dropped, the worker is told to forget it.
pub(super) struct Driver {
    hub: Arc<Hub>,
    number: u64,
    changed: Arc<Notify>,
    ctx: Context,
    invocation: Invocation,
    media: Media,
    pub streamed: Streamed,
    link: Option<Link>,
    /// Messages for the present stream, in order. Bounded by what causes them: one for a start, a cancel and a receipt
    /// each, and the window of inputs.
    outbox: VecDeque<ConnectResponse>,
    /// Bytes that are being sent to answer a fetch.
    sending: Option<(i64, Bytes)>,
    fetching: Option<Fetching>,
    attempt: i32,
    /// What was given last is accepted when the next is asked for.
    given: bool,
    cancelled: bool,
}
impl Drop for Driver {
    fn drop(&mut self) {
        self.hub.close(self.number);
    }
}
impl Driver {
    /// Asks for a worker for an invocation.
    ///
    /// # Errors
    /// The inputs are too large.
    pub fn open(
        hub: Arc<Hub>,
        spec: Spec,
        mode: InvocationMode,
        inputs: &Map,
        stream_inputs: Vec<String>,
        ctx: &Context,
    ) -> Result<Self, NodeError> {
        let mut media = Media::default();
        let inputs = media.refer_all(inputs);
        let weight: usize = inputs.values().map(Value::weight).sum();
        if weight > MAX_INPUTS {
            let text =
                format!("the inputs have about {weight} bytes, more than a worker is given ({MAX_INPUTS})");
            return Err(NodeError::new(text).code("worker.too_large"));
        }
        let outputs = ctx.outputs.iter().map(|(name, ty)| Output {
            name: name.to_string(),
            r#type: ty.to_string(),
            stream: false,
        });
        let invocation = Invocation {
            invocation_id: String::new(),
            job_id: ctx.job_id.to_string(),
            node_id: ctx.node_id.to_string(),
            node_type: ctx.node_type.to_string(),
            invocation_key: ctx.invocation.to_string(),
            attempt: 0,
            mode: mode.into(),
            inputs: Some((&inputs).into()),
            stream_inputs,
            outputs: outputs.collect(),
            workflow_id: ctx.workflow_id.as_ref().map(ToString::to_string),
            accepted_yields: 0,
        };
        let (number, changed) = hub.open(spec);
        Ok(Self {
            hub,
            number,
            changed,
            ctx: ctx.clone(),
            invocation,
            media,
            streamed: Streamed::default(),
            link: None,
            outbox: VecDeque::new(),
            sending: None,
            fetching: None,
            attempt: 0,
            given: false,
            cancelled: false,
        })
    }
    /// A value, or the end, of a streamed input.
    pub fn feed(&mut self, input: &str, value: Option<&Value>, lineage: Bytes) {
        let value = value.map(|value| self.media.refer(value));
        let weight = value.as_ref().map_or(0, Value::weight);
        let message_of = InvocationInput {
            invocation_id: String::new(),
            number: 0,
            input: input.to_owned(),
            value: value.as_ref().map(Into::into),
            lineage,
        };
        if !self.streamed.push(message_of, weight) {
            self.hub.outgrown(self.number);
        }
        self.send_inputs();
    }
    /// Puts the inputs that are due into the outbox.
    fn send_inputs(&mut self) {
        if self.link.is_none() {
            return;
        }
        while let Some(input) = self.streamed.due() {
            let input = InvocationInput {
                invocation_id: self.invocation.invocation_id.clone(),
                ..input
            };
            self.outbox.push_back(message(Said::Input(input)));
        }
    }
    /// What comes next. After the last thing the worker is told that its outcome was accepted.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// The node failed, its worker is lost, or the run was cancelled while no worker had it.
    pub async fn next(&mut self) -> Result<Given, NodeError> {
        self.accept();
        loop {
            match self
                .hub
                .step(self.number, self.fetching.is_some() || self.sending.is_some())
            {
                Ok(step) => {
                    if let Some(given) = self.act(step)? {
                        return Ok(given);
                    }
                }
                Err(until) => self.wait(until).await,
            }
        }
    }
    /// Lends the slot of the invocation to others, or takes it back.
    pub fn lend_slot(&self, lent: bool) {
        self.hub.lend(self.number, lent);
    }
    /// What was given last is accepted.
    fn accept(&mut self) {
        if std::mem::take(&mut self.given)
            && let Some(receipt) = self.hub.accept(self.number, self.attempt)
        {
            self.say(Said::FrameReceipt(receipt));
        }
    }
    /// Accepts the last frame and tells the worker so.
    pub async fn finish(&mut self) {
        self.accept();
        // Lost, the worker hears it when it next connects.
        let limit = self.hub.timing.heartbeat;
        let _ = tokio::time::timeout(limit, async {
            while let Some(next) = self.outbox.pop_front()
                && let Some(link) = &self.link
            {
                let _ = link.out.send(Ok(next)).await;
            }
        })
        .await;
    }
    fn say(&mut self, said: Said) {
        if self.link.is_some() {
            self.outbox.push_back(message(said));
        }
    }
    /// Sends what is due, waits for a change, and hears a cancel. Cancel safe.
    async fn wait(&mut self, until: Option<Instant>) {
        let (changed, cancel) = (Arc::clone(&self.changed), self.ctx.cancel.clone());
        let due = !self.outbox.is_empty() || self.sending.is_some();
        let out = self.link.as_ref().filter(|_| due).map(|link| link.out.clone());
        let room = async {
            match &out {
                Some(out) => out.reserve().await.ok(),
                None => std::future::pending().await,
            }
        };
        let fetching = &mut self.fetching;
        let fetched = async {
            match fetching {
                Some(fetching) => fetching.await,
                None => std::future::pending().await,
            }
        };
        let late = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            biased;
            () = cancel.cancelled(), if !self.cancelled => Event::Cancelled,
            (fetch_id, bytes) = fetched => Event::Fetched(fetch_id, bytes),
            permit = room => Event::Room(permit),
            () = changed.notified() => Event::Woken,
            () = late => Event::Woken,
        };
        match event {
            Event::Cancelled => self.cancel(),
            Event::Fetched(fetch_id, bytes) => {
                self.fetching = None;
                self.answer(fetch_id, bytes);
            }
            Event::Room(Some(permit)) => {
                if let Some(next) = self.next_message() {
                    permit.send(Ok(next));
                }
            }
            Event::Room(None) => self.link = None,
            Event::Woken => {}
        }
    }
    /// The message, or the part of what is being sent, that is due.
    fn next_message(&mut self) -> Option<ConnectResponse> {
        if let Some(next) = self.outbox.pop_front() {
            return Some(next);
        }
        let (fetch_id, mut bytes) = self.sending.take()?;
        let data = bytes.split_to(bytes.len().min(CHUNK_BYTES));
        let last = bytes.is_empty();
        if last {
            self.hub.fetched(self.number, fetch_id);
        } else {
            self.sending = Some((fetch_id, bytes));
        }
        Some(message(Said::MediaPart(MediaPart {
            invocation_id: self.invocation.invocation_id.clone(),
            fetch_id,
            data,
            last,
            error: None,
        })))
    }
    fn cancel(&mut self) {
        self.cancelled = true;
        if self.hub.cancel(self.number) {
            self.say_cancel();
        }
    }
    fn say_cancel(&mut self) {
        let invocation_id = self.invocation.invocation_id.clone();
        self.say(Said::Cancel(InvocationCancel {
            invocation_id,
            forgotten: false,
        }));
    }
    fn answer(&mut self, fetch_id: i64, bytes: Result<Bytes, String>) {
        match bytes {
            Ok(bytes) => self.sending = Some((fetch_id, bytes)),
            Err(error) => {
                self.hub.fetched(self.number, fetch_id);
                let invocation_id = self.invocation.invocation_id.clone();
                self.say(Said::MediaPart(MediaPart {
                    invocation_id,
                    fetch_id,
                    last: true,
                    error: Some(error),
                    ..MediaPart::default()
                }));
            }
        }
    }
    fn act(&mut self, step: Step) -> Result<Option<Given>, NodeError> {
        match step {
            Step::Start {
                id,
                attempt,
                accepted,
                link,
            } => {
                self.relink(Some(link));
                self.media.restart();
                self.attempt = attempt;
                self.invocation.invocation_id = id.to_string();
                self.invocation.attempt = attempt;
                self.invocation.accepted_yields = accepted;
                self.say(Said::Invocation(self.invocation.clone()));
                self.streamed.start_over();
                self.resume();
                return Ok(Some(Given::Room));
            }
            Step::Resume(link) => {
                self.relink(Some(link));
                self.streamed.send_again();
                self.resume();
            }
            Step::Detached => self.relink(None),
            Step::Read(numbers) => {
                self.streamed.read(&numbers);
                self.send_inputs();
                return Ok(Some(Given::Room));
            }
            Step::Fetch { fetch_id, media } => self.fetch(fetch_id, media),
            Step::Failed(error) => return Err(error),
            Step::Frame { attempt, frame } => {
                self.given = attempt == self.attempt;
                return self.take(frame);
            }
        }
        Ok(None)
    }
    fn relink(&mut self, link: Option<Link>) {
        self.link = link;
        self.outbox.clear();
        (self.sending, self.fetching) = (None, None);
    }
    /// What a new stream must know besides the invocation itself.
    fn resume(&mut self) {
        if self.cancelled {
            self.say_cancel();
        }
        self.send_inputs();
    }
    fn fetch(&mut self, fetch_id: i64, media: MediaRef) {
        if let Some(known) = self.media.inline(&media) {
            self.answer(fetch_id, known.map_err(|error| error.message));
            return;
        }
        let ctx = self.ctx.clone();
        self.fetching = Some(Box::pin(async move {
            let services = Arc::clone(&ctx.services);
            let bytes = services.media_bytes(&ctx, &media).await;
            (fetch_id, bytes.map_err(|error| error.message))
        }));
    }
    fn take(&mut self, frame: Frame) -> Result<Option<Given>, NodeError> {
        let given = match frame {
            Frame::Nothing => {
                self.accept();
                return Ok(None);
            }
            Frame::Repeated(values) => {
                // Whoever read them has them; what is wrong with them now is of no matter.
                let _ = self.media.resolve_all(&values);
                self.accept();
                return Ok(None);
            }
            Frame::Media { upload, data } => {
                self.media.part(upload, &data)?;
                self.accept();
                return Ok(None);
            }
            Frame::Result(outputs) => Given::Result(self.media.resolve_all(&outputs)?),
            Frame::Values(values, lineage) => Given::Values(self.media.resolve_all(&values)?, lineage),
            Frame::Forward {
                output,
                value,
                lineage,
            } => {
                let values: Map = [(output.clone(), value)].into_iter().collect();
                let value = self.media.resolve_all(&values)?.shift_remove(&output);
                Given::Forward {
                    output,
                    value: value.unwrap_or_default(),
                    lineage,
                }
            }
            Frame::Drop { output, lineage } => Given::Drop { output, lineage },
            Frame::Complete(output) => Given::Complete(output),
            Frame::Note(note) => Given::Note(note),
            Frame::End => Given::End,
            Frame::Failure(error) => return Err(error),
        };
        Ok(Some(given))
    }
}
