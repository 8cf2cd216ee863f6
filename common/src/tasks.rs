//! The only place that spawns.
//!
//! A [`Tasks`] is a stop signal, a count of what is running, and a name for the log. Children stop with their parent and
//! the parent's drain waits for them. A task spawned here inherits the span and the trace of the code that spawned it.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Instrument;

use crate::trace;

/// Spawns tasks, tells them to stop and waits for them. Cheap to clone; clones are the same group.
#[derive(Clone)]
pub struct Tasks {
    inner: Arc<Inner>,
}

struct Inner {
    name: &'static str,
    own: TaskTracker,
    above: Vec<TaskTracker>,
    token: CancellationToken,
}

/// Keeps [`Tasks::drain`] waiting until it is dropped.
#[must_use = "dropping it at once holds nothing"]
pub struct Hold {
    _tokens: Vec<TaskTrackerToken>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

impl Tasks {
    /// Makes the root group of a process or a test.
    pub fn new() -> Self {
        let inner = Inner {
            name: "process",
            own: TaskTracker::new(),
            above: Vec::new(),
            token: CancellationToken::new(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Makes a group that stops with this one, can be stopped alone, and is waited for by this one's drain.
    pub fn child(&self, name: &'static str) -> Self {
        let mut above = self.inner.above.clone();
        above.push(self.inner.own.clone());
        let inner = Inner {
            name,
            own: TaskTracker::new(),
            above,
            token: self.inner.token.child_token(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The group's name, as it appears in the log.
    pub fn name(&self) -> &'static str {
        self.inner.name
    }

    /// Spawns a task that [`drain`](Self::drain) waits for. A panic is logged and then reported by the handle.
    /// Dropping the handle does not stop the task; it is not aborted by [`stop`](Self::stop) either, it has to listen
    /// to [`token`](Self::token).
    pub fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let hold = self.hold();
        // Made here and not in the task, where the span and the trace of the caller are out of sight.
        let watched = watched(name, future);
        self.inner.own.spawn(async move {
            let _hold = hold;
            watched.await
        })
    }

    /// Spawns a task that nobody waits for, for servants that end when their last handle is dropped.
    pub fn spawn_background<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // A tracker of its own: never drained, so never waited for.
        TaskTracker::new().spawn(watched(name, future))
    }

    /// Spawns blocking work on the threads meant for it; [`drain`](Self::drain) waits for it.
    pub fn spawn_blocking<F, T>(&self, name: &'static str, work: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let hold = self.hold();
        let span = tracing::Span::current();
        self.inner.own.spawn_blocking(move || {
            let _hold = hold;
            let _entered = span.entered();
            match std::panic::catch_unwind(AssertUnwindSafe(work)) {
                Ok(value) => value,
                Err(panic) => {
                    log_panic(name, panic.as_ref());
                    std::panic::resume_unwind(panic)
                }
            }
        })
    }

    /// Makes [`drain`](Self::drain) wait until the returned value is dropped.
    pub fn hold(&self) -> Hold {
        let mut tokens: Vec<_> = self.inner.above.iter().map(TaskTracker::token).collect();
        tokens.push(self.inner.own.token());
        Hold { _tokens: tokens }
    }

    /// The signal to stop. Children of it may be made freely.
    pub fn token(&self) -> CancellationToken {
        self.inner.token.clone()
    }

    /// Tells the group and its children to stop. Does not wait.
    pub fn stop(&self) {
        self.inner.token.cancel();
    }

    /// Whether the group was told to stop.
    pub fn stopping(&self) -> bool {
        self.inner.token.is_cancelled()
    }

    /// Waits until the group was told to stop. Cancel safe.
    pub async fn stopped(&self) {
        self.inner.token.cancelled().await;
    }

    /// Sleeps; false when the group was told to stop first. Cancel safe.
    pub async fn pause(&self, duration: Duration) -> bool {
        self.inner
            .token
            .run_until_cancelled(tokio::time::sleep(duration))
            .await
            .is_some()
    }

    /// Waits until every task of the group and its children has ended, at most for `limit`; false when some were still
    /// running then. Does not tell them to stop. Cancel safe.
    pub async fn drain(&self, limit: Duration) -> bool {
        self.inner.own.close();
        let done = tokio::time::timeout(limit, self.inner.own.wait()).await.is_ok();
        if !done {
            tracing::warn!(
                group = self.inner.name,
                tasks = self.inner.own.len(),
                "tasks still running after the drain limit"
            );
        }
        done
    }
}

fn watched<F>(name: &'static str, future: F) -> impl Future<Output = F::Output> + Send + 'static
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let future = async move {
        match AssertUnwindSafe(future).catch_unwind().await {
            Ok(value) => value,
            Err(panic) => {
                log_panic(name, panic.as_ref());
                std::panic::resume_unwind(panic)
            }
        }
    };
    trace::Context::inherit(future).in_current_span()
}

fn log_panic(task: &'static str, panic: &(dyn Any + Send)) {
    tracing::error!(task, panic = panic_text(panic), "task panicked");
}

/// The text of a panic, for the log.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&'static str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "no text"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn drain_waits_for_children_and_holds() {
        let root = Tasks::new();
        let child = root.child("child");
        let token = child.token();
        child.spawn("waits", async move { token.cancelled().await });
        assert!(!root.drain(Duration::from_millis(10)).await);
        root.stop();
        assert!(root.drain(Duration::from_secs(5)).await);
        let hold = root.hold();
        assert!(!root.drain(Duration::from_millis(10)).await);
        drop(hold);
        assert!(root.drain(Duration::from_secs(5)).await);
    }

    #[tokio::test]
    async fn a_panic_is_reported_and_does_not_stop_the_group() {
        let root = Tasks::new();
        let handle = root.spawn("bad", async { panic!("boom") });
        let error = handle.await.unwrap_err();
        assert!(error.is_panic());
        assert!(!root.stopping());
        assert!(root.drain(Duration::from_secs(5)).await);
    }

    #[tokio::test]
    async fn a_child_stops_alone() {
        let root = Tasks::new();
        let child = root.child("child");
        child.stop();
        assert!(child.stopping() && !root.stopping());
        assert!(!child.pause(Duration::from_secs(60)).await);
    }
}
