//! One stream of a worker: its greeting, what it says afterwards, signs of life both ways, and its end.

use std::sync::Arc;

use atelier_common::tasks::Tasks;
use atelier_proto::{
    kernel::v1::{
        ConnectRequest, ConnectResponse, InputReceipt, MediaFetch, MediaPart, WorkerHeartbeat,
        connect_request::Message as Heard, connect_response::Message as Said,
    },
    reason::{self, Problem},
    value::MediaRef,
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use tonic::{Code, Status, Streaming};

use super::{
    Scope,
    hub::{End, Hub, Link, WorkerKey, message},
};
use crate::metrics::WORKERS;

type Out = mpsc::Sender<Result<ConnectResponse, Status>>;

const DOMAIN: &str = "kernel.atelier";

/// A message that is not allowed at that point.
pub(super) fn violation(text: impl Into<String>) -> Status {
    Problem::new(Code::InvalidArgument, reason::WORKER_PROTOCOL, DOMAIN, text).into()
}
/// Too much of something.
pub(super) fn overloaded(text: &str) -> Status {
    Problem::new(Code::ResourceExhausted, reason::OVERLOADED, DOMAIN, text).into()
}
fn replaced() -> Status {
    let text = "the instance of the worker has a newer stream";
    Problem::new(Code::Aborted, reason::WORKER_REPLACED, DOMAIN, text).into()
}
fn draining() -> Status {
    Problem::new(
        Code::Unavailable,
        reason::DRAINING,
        DOMAIN,
        "the kernel is going down",
    )
    .into()
}
/// Serves one stream to its end.
pub(super) async fn serve(
    hub: Arc<Hub>,
    scope: Scope,
    mut inbound: Streaming<ConnectRequest>,
    out: Out,
    tasks: Tasks,
) {
    let limit = hub.timing.timeout();
    let stop = tasks.token();
    let first = stop.run_until_cancelled(timeout(limit, inbound.message())).await;
    let greeted = match first {
        None => Err(draining()),
        Some(Ok(Ok(Some(ConnectRequest {
            message: Some(Heard::Hello(hello)),
        })))) => hub.attach(scope, hello, out.clone()),
        Some(Ok(Ok(Some(_)))) => Err(violation("the first message must be hello")),
        Some(Ok(Ok(None))) => return,
        Some(Ok(Err(status))) => Err(status),
        Some(Err(_)) => Err(violation("no hello came in time")),
    };
    let (key, link) = match greeted {
        Ok(greeted) => greeted,
        Err(status) => {
            let _ = out.send(Err(status)).await;
            return;
        }
    };
    tracing::info!(instance = &*key.instance, "a worker is connected");
    metrics::gauge!(WORKERS).increment(1.0);
    let session = Session {
        hub: Arc::clone(&hub),
        key: key.clone(),
        link: link.clone(),
        heard: Instant::now(),
        full_since: None,
    };
    let ended = session.listen(inbound, &tasks).await;
    metrics::gauge!(WORKERS).decrement(1.0);
    tracing::info!(instance = &*key.instance, code = ?ended.as_ref().err().map(Status::code), "a worker is away");
    if hub.detach(&key, link.session) {
        let (tasks, grace) = (tasks.clone(), hub.timing.grace);
        let forgetting = async move {
            tokio::time::sleep(grace).await;
            hub.forget(&key, link.session);
        };
        drop(tasks.spawn_background("worker-grace", forgetting));
    }
    if let Err(status) = ended {
        // The peer may be gone, or not reading: the stream ends all the same when the sender is dropped.
        let _ = timeout(limit, out.send(Err(status))).await;
    }
}
struct Session {
    hub: Arc<Hub>,
    key: WorkerKey,
    link: Link,
    /// When the worker last said something.
    heard: Instant,
    /// Since when there is no room for as much as a heartbeat.
    full_since: Option<Instant>,
}
impl Session {
    /// Hears what the worker says until either side ends the stream. An error is what the worker is told.
    async fn listen(mut self, mut inbound: Streaming<ConnectRequest>, tasks: &Tasks) -> Result<(), Status> {
        let (stop, mut stopping) = (tasks.token(), false);
        let mut end = self.link.end.subscribe();
        let mut tick = interval(self.hub.timing.heartbeat);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                over = ended(&mut end) => return match over {
                    End::Replaced => Err(replaced()),
                    End::Drained if stopping => Err(draining()),
                    End::Drained | End::No => Ok(()),
                },
                () = stop.cancelled(), if !stopping => {
                    stopping = true;
                    self.hub.goodbye(&self.key);
                }
                _ = tick.tick() => self.beat()?,
                heard = inbound.message() => match heard? {
                    Some(ConnectRequest { message }) => {
                        self.heard = Instant::now();
                        if let Some(heard) = message {
                            self.hear(heard).await?;
                        }
                    }
                    None => return Ok(()),
                },
            }
        }
    }
    /// Gives a sign of life, and looks for one.
    fn beat(&mut self) -> Result<(), Status> {
        let limit = self.hub.timing.timeout();
        let said = self.link.try_say(Said::Heartbeat(WorkerHeartbeat {}));
        self.full_since = (!said).then(|| self.full_since.unwrap_or_else(Instant::now));
        let silent = self.heard.elapsed() > limit;
        let deaf = self.full_since.is_some_and(|since| since.elapsed() > limit);
        if silent || deaf {
            let what = if silent { "said" } else { "read" };
            let text = format!("the worker has {what} nothing for {limit:?}");
            return Err(Problem::new(Code::DeadlineExceeded, reason::TIMEOUT, DOMAIN, text).into());
        }
        Ok(())
    }
    async fn hear(&mut self, heard: Heard) -> Result<(), Status> {
        let answer = match heard {
            Heard::Hello(_) => return Err(violation("hello: came twice")),
            Heard::Declaration(declaration) => {
                Some(Said::Declared(self.hub.declare(&self.key, declaration)?))
            }
            Heard::Frame(frame) => self.hub.frame(&self.key, frame).map_err(violation)?,
            Heard::InputReceipt(InputReceipt {
                invocation_id,
                numbers,
            }) => {
                self.hub
                    .read(&self.key, &invocation_id, &numbers)
                    .map_err(violation)?;
                None
            }
            Heard::MediaFetch(fetch) => self.fetch(fetch),
            Heard::Heartbeat(_) => None,
            Heard::Goodbye(_) => {
                self.hub.goodbye(&self.key);
                None
            }
        };
        let Some(answer) = answer else { return Ok(()) };
        // The stream may be full of media for a moment; one that stays full is not read.
        match timeout(self.hub.timing.timeout(), self.link.out.send(Ok(message(answer)))).await {
            Ok(_) => Ok(()),
            Err(_) => Err(overloaded("the worker does not read what it is told")),
        }
    }
    fn fetch(&self, fetch: MediaFetch) -> Option<Said> {
        let MediaFetch {
            invocation_id,
            fetch_id,
            media,
        } = fetch;
        match MediaRef::try_from(media.unwrap_or_default()) {
            Ok(media) => self.hub.fetch(&self.key, invocation_id, fetch_id, media),
            Err(error) => Some(Said::MediaPart(MediaPart {
                invocation_id,
                fetch_id,
                last: true,
                error: Some(error.to_string()),
                ..MediaPart::default()
            })),
        }
    }
}
/// Waits until the stream is to end, and says why. Cancel safe.
async fn ended(end: &mut watch::Receiver<End>) -> End {
    match end.wait_for(|end| *end != End::No).await {
        Ok(end) => *end,
        // The sender lives in the session's own link.
        Err(_) => End::Drained,
    }
}
