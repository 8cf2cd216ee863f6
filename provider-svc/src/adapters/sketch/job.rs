//! A job of the offline provider: what it says while it runs, and how it ended.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use atelier_proto::value::MediaRef;
use bytes::Bytes;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::request::Request;
use crate::provider::{Failure, Finished};

/// Something that a job says on its way.
#[derive(Debug, Clone)]
pub(super) enum Said {
    /// How far it is.
    Progress {
        done: i64,
        total: i64,
        preview: Option<MediaRef>,
    },
    /// A piece of text.
    Text(String),
    /// A piece of a sound file.
    Audio(Bytes),
    /// The last piece of a kind.
    End(&'static str),
}

/// A job.
pub(super) struct Job {
    pub(super) request: Request,
    state: Mutex<State>,
    changed: Notify,
    polled: AtomicBool,
    stop: CancellationToken,
}
#[derive(Default)]
struct State {
    said: VecDeque<Said>,
    end: Option<Result<Finished, Failure>>,
}

impl Job {
    pub(super) fn new(request: Request) -> Self {
        Self {
            request,
            state: Mutex::default(),
            changed: Notify::new(),
            polled: AtomicBool::new(false),
            stop: CancellationToken::new(),
        }
    }

    pub(super) fn say(&self, said: Said) {
        self.lock().said.push_back(said);
        self.changed.notify_one();
    }

    pub(super) fn finish(&self, end: Result<Finished, Failure>) {
        self.lock().end = Some(end);
        self.changed.notify_one();
    }

    /// What was said since the last time, and the end.
    pub(super) fn drain(&self) -> (VecDeque<Said>, Option<Result<Finished, Failure>>) {
        let mut state = self.lock();
        (std::mem::take(&mut state.said), state.end.clone())
    }

    /// True once: the first poll answers at once, as that of a real provider does.
    pub(super) fn first_poll(&self) -> bool {
        !self.polled.swap(true, Ordering::Relaxed)
    }

    /// Waits until something was said. Cancel safe.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(super) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
