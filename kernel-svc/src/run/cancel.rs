//! Running node code under a cancel: it may go on for a grace period, then it is dropped. Panics become node
//! errors.

use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::node::NodeError;

/// Runs node code. It is polled before the token, so that code which does not wait never touches the token's
/// lock.
pub(crate) async fn call<T>(
    cancel: &CancellationToken,
    grace: Duration,
    code: impl Future<Output = Result<T, NodeError>>,
) -> Result<T, NodeError> {
    let code = AssertUnwindSafe(code).catch_unwind();
    tokio::pin!(code);
    let mut code = poll_fn(|cx| timed(code.as_mut(), cx));
    let ended = tokio::select! {
        biased;
        ended = &mut code => Some(ended),
        () = cancel.cancelled() => timeout(grace, &mut code).await.ok(),
    };
    match ended {
        Some(Ok(outcome)) => outcome,
        Some(Err(panic)) => Err(NodeError::new(panic_text(panic.as_ref())).code("node.panicked")),
        None => Err(NodeError::cancelled()),
    }
}

/// Lets node code clean up: for so long, or for the grace period once the run is cancelled. A panic is swallowed. False: it
/// took longer, and was dropped.
pub(crate) async fn clean_up(
    cancel: &CancellationToken,
    (limit, grace): (Duration, Duration),
    code: impl Future<Output = ()>,
) -> bool {
    let code = AssertUnwindSafe(code).catch_unwind();
    tokio::pin!(code);
    // A cancel may come while it goes on.
    match timeout(limit, cancel.run_until_cancelled(&mut code)).await {
        Ok(Some(_)) => true,
        Ok(None) => timeout(grace, code).await.is_ok(),
        Err(_) => false,
    }
}

/// How long code may keep its thread before it is warned about. Other nodes run on the same few threads.
const LONGEST_POLL: Duration = Duration::from_secs(1);

/// Polls code, and warns when it keeps its thread for long; the span around it names the node.
fn timed<F: Future>(code: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
    let start = Instant::now();
    let outcome = code.poll(cx);
    let kept = start.elapsed();
    if kept > LONGEST_POLL {
        let millis = u64::try_from(kept.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(
            millis,
            "node code kept its thread; work that blocks belongs into spawn_blocking"
        );
    }
    outcome
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("node code panicked: {}", text.as_deref().unwrap_or("no message"))
}
