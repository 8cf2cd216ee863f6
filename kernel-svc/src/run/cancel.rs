//! Running node code under a cancel: it may go on for a grace period, then it is dropped. Panics become node
//! errors.

use std::{any::Any, future::Future, panic::AssertUnwindSafe, time::Duration};

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

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("node code panicked: {}", text.as_deref().unwrap_or("no message"))
}
