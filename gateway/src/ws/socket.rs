//! The life of one connection: what comes in is handled in order, what goes out waits in the queue, and a peer that is
//! gone is found by pings of the protocol. Runs outlive it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use atelier_common::identity::Caller;
use atelier_proto::value::{Map, Value};
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::time::{Instant, MissedTickBehavior};

use super::attach::{Attachments, Opening};
use super::commands::{self, Request};
use super::queue::{Closed, Closing, Queue};
use super::rate::Rate;
use super::{control, decode};
use crate::app::App;
use crate::metrics::{Counted, SOCKETS};

/// What this server can do, for clients that ask.
const FEATURES: &[&str] = &[
    "generation_events",
    "job_seq",
    "reconnect",
    "durable_replay",
    "disposition",
];
/// How long a closing connection may take to say so.
const FAREWELL: Duration = Duration::from_secs(5);
/// Pings of the protocol that a peer may miss.
const MISSES: u32 = 2;
/// How often a connection of a process that goes down is looked at.
const DRAIN_CHECK: Duration = Duration::from_millis(250);

/// One connection.
pub(crate) struct Connection {
    pub(crate) app: App,
    pub(crate) caller: Caller,
    pub(crate) queue: Arc<Queue>,
    pub(crate) runs: Attachments,
}

impl Connection {
    /// Queues a frame.
    ///
    /// # Errors
    /// The connection is closing.
    pub(crate) async fn send(&self, frame: Map) -> Result<(), Closed> {
        self.queue.keep(frame).await
    }

    /// Queues the reply to a command, which has no type and the id of its request.
    ///
    /// # Errors
    /// The connection is closing.
    pub(crate) async fn reply(&self, request: &Request, mut reply: Map) -> Result<(), Closed> {
        if let Some(id) = &request.request_id {
            reply.insert("request_id".to_owned(), id.as_str().into());
        }
        self.queue.keep(reply).await
    }

    /// Watches a run.
    pub(crate) fn attach(&mut self, job_id: &str, after_seq: i64, polls: bool, opening: Opening) {
        let connection = (&self.app, &self.caller, &self.queue);
        self.runs.attach(connection, job_id, after_seq, polls, opening);
    }
}

/// The map of these fields.
pub(crate) fn fields(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Map {
    fields
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

/// Serves a connection until it ends.
pub(crate) async fn serve(app: App, caller: Caller, socket: WebSocket) {
    let _counted = Counted::new(SOCKETS);
    let queue = Arc::new(Queue::new(&app.settings.ws));
    let misses = Arc::new(AtomicU32::new(0));
    let (sink, stream) = socket.split();
    let writer = write(app.clone(), Arc::clone(&queue), Arc::clone(&misses), sink);
    let reader = read(app, caller, Arc::clone(&queue), misses, stream);
    tokio::pin!(writer, reader);
    tokio::select! {
        () = &mut writer => {}
        () = &mut reader => {
            // What waits is sent, for a while; a peer that is gone ends it at once.
            if queue.closing().is_some() {
                let _ = tokio::time::timeout(FAREWELL, &mut writer).await;
            }
        }
    }
}

async fn read(
    app: App,
    caller: Caller,
    queue: Arc<Queue>,
    misses: Arc<AtomicU32>,
    mut stream: SplitStream<WebSocket>,
) {
    let mut connection = Connection {
        app: app.clone(),
        caller,
        queue: Arc::clone(&queue),
        runs: Attachments::default(),
    };
    if greet(&connection).await.is_err() {
        return;
    }
    let mut rate = Rate::new(app.settings.ws.rate);
    let stop = app.tasks.token();
    let mut check = tokio::time::interval(DRAIN_CHECK);
    check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            message = stream.next() => message,
            _ = check.tick(), if stop.is_cancelled() => {
                if connection.runs.busy() {
                    continue;
                }
                return queue.close(Closing::DRAINING);
            }
            // Looks again with the check switched on.
            () = stop.cancelled(), if !stop.is_cancelled() => continue,
        };
        misses.store(0, Ordering::Relaxed);
        let inbound = match message {
            None | Some(Ok(Message::Close(_))) => return,
            Some(Err(error)) => {
                return refuse_message(&queue, is_too_large(&error), app.settings.ws.max_message_bytes).await;
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Ok(Message::Text(text))) if rate.allows() => decode::text(&text),
            Some(Ok(Message::Binary(bytes))) if rate.allows() => decode::binary(&bytes),
            Some(Ok(Message::Text(_) | Message::Binary(_))) => return queue.close(Closing::RATE),
        };
        let handled = match inbound {
            Ok(inbound) => commands::handle(&mut connection, inbound).await,
            Err(wrong) => {
                let reply = fields([("error", "invalid_frame".into()), ("message", wrong.into())]);
                connection.send(reply).await
            }
        };
        if handled.is_err() {
            return;
        }
    }
}

async fn greet(connection: &Connection) -> Result<(), Closed> {
    let features = FEATURES.iter().map(|feature| Value::from(*feature)).collect();
    let keys = [
        ("type", Value::from("sdk_execution_target")),
        ("runner_id", connection.app.instance.as_str().into()),
        ("protocol", "1".into()),
        ("features", Value::list(features)),
    ];
    connection.send(fields(keys)).await
}

/// A message that the protocol's layer did not take. One that is too large is refused by its header, before it is read;
/// what follows it cannot be told apart from it, so the connection ends.
async fn refuse_message(queue: &Queue, too_large: bool, limit: usize) {
    if too_large {
        let text = format!("The frame is larger than {limit} bytes");
        let frame = fields([("error", "invalid_frame".into()), ("message", text.into())]);
        if queue.keep(frame).await.is_ok() {
            queue.close(Closing::TOO_LARGE);
        }
    }
}

/// Whether a message was refused for its size; the library says it only in words.
fn is_too_large(error: &axum::Error) -> bool {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = source {
        let text = error.to_string();
        if text.contains("too long") || text.contains("too big") {
            return true;
        }
        source = error.source();
    }
    false
}

/// Sends what waits, and pings. Ends when the connection does.
async fn write(app: App, queue: Arc<Queue>, misses: Arc<AtomicU32>, mut sink: SplitSink<WebSocket, Message>) {
    let limits = &app.settings.ws;
    let mut ping = tokio::time::interval_at(Instant::now() + limits.ping, limits.ping);
    let mut probe = tokio::time::interval_at(Instant::now() + limits.protocol_ping, limits.protocol_ping);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    probe.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let closing = loop {
        let message = tokio::select! {
            next = queue.next() => match next {
                Ok(message) => message,
                Err(closing) => break closing,
            },
            _ = ping.tick() => {
                // A full queue has other worries than a ping.
                if queue.try_keep(control::stamped(&app.clock, "ping")).is_err() {
                    break Closing::SLOW;
                }
                continue;
            }
            _ = probe.tick() => {
                if misses.fetch_add(1, Ordering::Relaxed) >= MISSES {
                    tracing::info!("a peer of a socket is gone");
                    return;
                }
                Message::Ping(Bytes::new())
            }
        };
        tokio::select! {
            sent = sink.send(message) => if sent.is_err() { return },
            () = queue.until_cut() => break Closing::SLOW,
        }
    };
    let frame = CloseFrame {
        code: closing.code,
        reason: closing.reason.into(),
    };
    // A client that does not read does not get to see why.
    let _ = tokio::time::timeout(FAREWELL, sink.send(Message::Close(Some(frame)))).await;
}
