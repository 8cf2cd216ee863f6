//! The runs that a connection watches. Each is read from the kernel's log by a task of the connection; one connection
//! reads a run once at a time, so no frame reaches it twice.

use std::collections::HashMap;
use std::sync::Arc;

use atelier_common::identity::Caller;
use atelier_proto::kernel::v1::WatchStarted;
use atelier_proto::reason;
use atelier_proto::value::{Map, Value};
use futures_util::StreamExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::queue::{Closed, Queue};
use super::refusal::text_of;
use crate::app::App;
use crate::error::Error;
use crate::metrics::{Counted, WATCHERS};
use crate::watch::{Cursor, Item, watch};
use crate::wire::frame::{Class, frame, job_update};
use crate::wire::words;

/// What is sent once the run is found.
pub(crate) struct Opening {
    /// Whether to tell where the reader stands.
    pub(crate) resumed: bool,
    /// The reply to the command.
    pub(crate) ack: Option<Map>,
    /// The workflow that the client named, for replies about runs that are not there.
    pub(crate) workflow_id: Option<String>,
}

struct Watched {
    stop: CancellationToken,
    /// Turns true when all frames of the run are queued.
    done: watch::Receiver<bool>,
    /// The client polls with `reconnect_job` and must not get everything again each time.
    polls: bool,
}

/// The runs that a connection watches. Dropping it ends all of them; the runs themselves go on.
#[derive(Default)]
pub(crate) struct Attachments {
    runs: HashMap<String, Watched>,
    tasks: JoinSet<()>,
}

impl Attachments {
    /// Whether some run is still being watched.
    pub(crate) fn busy(&self) -> bool {
        self.runs.values().any(|watched| !*watched.done.borrow())
    }

    /// Whether this run is being watched and its client polls.
    pub(crate) fn polls(&self, job_id: &str) -> bool {
        self.runs
            .get(job_id)
            .is_some_and(|watched| watched.polls && !*watched.done.borrow())
    }

    /// Waits for the last frame of a run that is being watched; none when it is not.
    pub(crate) fn end_of(&self, job_id: &str) -> Option<watch::Receiver<bool>> {
        self.runs
            .get(job_id)
            .map(|watched| watched.done.clone())
            .filter(|done| !*done.borrow())
    }

    /// Watches a run from a number on, in the place of an earlier reading of it.
    pub(crate) fn attach(
        &mut self,
        connection: (&App, &Caller, &Arc<Queue>),
        job_id: &str,
        after_seq: i64,
        polls: bool,
        opening: Opening,
    ) {
        let (app, caller, queue) = connection;
        while self.tasks.try_join_next().is_some() {}
        self.runs.retain(|_, watched| !*watched.done.borrow());
        if let Some(earlier) = self.runs.remove(job_id) {
            earlier.stop.cancel();
        }
        let stop = CancellationToken::new();
        let (finished, done) = watch::channel(false);
        self.runs.insert(
            job_id.to_owned(),
            Watched {
                stop: stop.clone(),
                done,
                polls,
            },
        );
        let reader = Reader {
            app: app.clone(),
            caller: caller.clone(),
            queue: Arc::clone(queue),
            cursor: Cursor {
                job_id: job_id.to_owned(),
                after_seq,
                replay_only: false,
            },
        };
        self.tasks.spawn(async move {
            let _counted = Counted::new(WATCHERS);
            // Stopped by a later reading or by the end of the connection; a frame is queued whole or not at all.
            let _ = stop.run_until_cancelled(reader.read(opening)).await;
            finished.send_replace(true);
        });
    }
}

struct Reader {
    app: App,
    caller: Caller,
    queue: Arc<Queue>,
    cursor: Cursor,
}

impl Reader {
    async fn read(self, opening: Opening) -> Result<(), Closed> {
        let Self {
            app,
            caller,
            queue,
            cursor,
        } = self;
        let job_id = cursor.job_id.clone();
        let user_id = caller.user_id.clone();
        let Opening {
            resumed,
            mut ack,
            workflow_id,
        } = opening;
        let mut items = std::pin::pin!(watch(app, caller, cursor));
        // What was there before the reader came is a replay: it is literal, nothing of it is given up.
        let mut replay_until = 0;
        while let Some(item) = items.next().await {
            match item {
                Ok(Item::Started(started)) => {
                    replay_until = started.last_seq;
                    if resumed {
                        queue.keep(resumed_frame(&job_id, &started)).await?;
                    }
                    if let Some(ack) = ack.take() {
                        queue.keep(ack).await?;
                    }
                }
                Ok(Item::Event(event)) => {
                    if let Some(frame) = frame(*event, &user_id) {
                        let live = frame.seq.is_some_and(|seq| seq > replay_until);
                        queue
                            .push(frame.body, if live { frame.class } else { Class::Keep })
                            .await?;
                    }
                }
                Err(error) => {
                    return queue.keep(broken(&job_id, workflow_id.as_deref(), &error)).await;
                }
            }
        }
        Ok(())
    }
}

fn resumed_frame(job_id: &str, started: &WatchStarted) -> Map {
    let WatchStarted {
        status,
        last_seq,
        replay_count,
        replay_incomplete,
        workflow_id,
    } = started;
    let status = if words::is_terminal(*status) {
        "finished"
    } else {
        "running"
    };
    Map::from_iter([
        ("type".to_owned(), "job_resumed".into()),
        ("job_id".to_owned(), job_id.into()),
        (
            "workflow_id".to_owned(),
            workflow_id.as_deref().map_or(Value::Null, Into::into),
        ),
        ("status".to_owned(), status.into()),
        ("last_seq".to_owned(), (*last_seq).into()),
        ("replay_count".to_owned(), (*replay_count).into()),
        ("replay_incomplete".to_owned(), (*replay_incomplete).into()),
    ])
}

/// What a reader is told when there is nothing to read: no such run, or its events are out of reach. A missing and a
/// foreign run look the same.
fn broken(job_id: &str, workflow_id: Option<&str>, error: &Error) -> Map {
    if let Error::Service(status) = error
        && reason::reason_of(status) == reason::JOB_NOT_FOUND
    {
        let text = format!("Job {job_id} not found");
        return job_update(job_id, workflow_id, "failed", Some((&text, Some("NOT_FOUND"))));
    }
    let text = text_of(error);
    Map::from_iter([
        ("type".to_owned(), "error".into()),
        ("message".to_owned(), text.as_str().into()),
        ("error".to_owned(), text.as_str().into()),
        ("job_id".to_owned(), job_id.into()),
        (
            "workflow_id".to_owned(),
            workflow_id.map_or(Value::Null, Into::into),
        ),
    ])
}

/// `job_resumed` for a client that polls: it has everything already.
pub(crate) fn nothing_to_replay(job_id: &str, workflow_id: Option<&str>, last_seq: i64) -> Map {
    let workflow_id = workflow_id.map(ToOwned::to_owned);
    resumed_frame(
        job_id,
        &WatchStarted {
            last_seq,
            workflow_id,
            ..WatchStarted::default()
        },
    )
}
