//! A run's events for one reader: replayed after a number, then live, until the run is over. A connection to the kernel
//! that breaks is made again at the number that was reached, so its reader sees each event once and in order.

use std::time::Duration;

use atelier_common::identity::Caller;
use atelier_proto::kernel::v1::watch_job_response::Message;
use atelier_proto::kernel::v1::{JobEvent, JobStatus, WatchJobRequest, WatchStarted};
use futures_util::{Stream, StreamExt};
use tonic::{Code, Status, Streaming};

use crate::app::App;
use crate::error::Error;
use crate::wire::{frame, words};

/// Times in a row that a broken connection is made again.
const ATTEMPTS: u32 = 8;

/// What a reader gets.
#[derive(Debug)]
pub(crate) enum Item {
    /// Where the reader stands; once, first.
    Started(WatchStarted),
    /// An event.
    Event(Box<JobEvent>),
}

/// Which events a reader wants.
#[derive(Debug, Clone)]
pub(crate) struct Cursor {
    /// The run.
    pub(crate) job_id: String,
    /// Only events with a higher number.
    pub(crate) after_seq: i64,
    /// End at the newest event instead of waiting for more.
    pub(crate) replay_only: bool,
}

/// Reads a run's events.
pub(crate) fn watch(
    app: App,
    caller: Caller,
    cursor: Cursor,
) -> impl Stream<Item = Result<Item, Error>> + Send {
    async_stream::stream! {
        let Cursor { job_id, mut after_seq, replay_only } = cursor;
        let (mut begun, mut failures) = (false, 0_u32);
        loop {
            let request = WatchJobRequest { job_id: job_id.clone(), after_seq, replay_only };
            let broken = match open(&app, &caller, request).await {
                Err(error) => error,
                Ok(mut events) => {
                    // Whether the run may still say something.
                    let mut open_end = true;
                    let broken = loop {
                        match events.next().await {
                            None => break None,
                            Some(Err(status)) => break Some(Error::from(status)),
                            Some(Ok(response)) => match response.message {
                                Some(Message::Started(started)) => {
                                    open_end = !words::is_terminal(started.status)
                                        && started.status != i32::from(JobStatus::Suspended);
                                    if !begun {
                                        begun = true;
                                        yield Ok(Item::Started(started));
                                    }
                                }
                                Some(Message::Event(event)) => {
                                    failures = 0;
                                    if event.seq <= after_seq {
                                        continue;
                                    }
                                    after_seq = event.seq;
                                    let (over, pauses) = (frame::ends(&event), pauses(&event));
                                    yield Ok(Item::Event(Box::new(event)));
                                    if over {
                                        return;
                                    }
                                    open_end = !pauses;
                                }
                                None => {}
                            },
                        }
                    };
                    match broken {
                        None if replay_only || !open_end => return,
                        None => Status::unavailable("the events broke off").into(),
                        Some(error) => error,
                    }
                }
            };
            failures += 1;
            if !begun || failures > ATTEMPTS || !retriable(&broken) {
                yield Err(broken);
                return;
            }
            let pause = Duration::from_millis(100).saturating_mul(2_u32.saturating_pow(failures.min(6)));
            if app.tasks.token().run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                yield Err(Error::Draining);
                return;
            }
        }
    }
}

async fn open(
    app: &App,
    caller: &Caller,
    request: WatchJobRequest,
) -> Result<Streaming<atelier_proto::kernel::v1::WatchJobResponse>, Error> {
    let mut jobs = app.clients.jobs();
    app.clients
        .answer(jobs.watch_job(app.clients.request(caller, request)))
        .await
}

/// A suspended run says nothing more until somebody resumes it.
fn pauses(event: &JobEvent) -> bool {
    use atelier_proto::kernel::v1::job_event::Event;
    matches!(&event.event, Some(Event::JobUpdate(update)) if update.status == i32::from(JobStatus::Suspended))
}

/// A peer that restarts shows itself as unavailable, cancelled or unknown, depending on the moment.
fn retriable(broken: &Error) -> bool {
    match broken {
        Error::Service(status) => {
            matches!(status.code(), Code::Unavailable | Code::Cancelled | Code::Unknown)
        }
        Error::Unanswered => true,
        Error::Field { .. }
        | Error::Http { .. }
        | Error::Forbidden(_)
        | Error::Unauthenticated
        | Error::Draining => false,
    }
}
