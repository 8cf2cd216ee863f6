//! Holds a call to the deadline its caller set (`grpc-timeout`), streams included, and answers DEADLINE_EXCEEDED.
//!
//! tonic itself enforces it only until the head of the answer, and calls it CANCELLED.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep};
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

use super::body::trailers;
use super::{Answer, refusal};

const TIMEOUT: &str = "grpc-timeout";
/// How much earlier than asked a call ends, so that this layer answers before tonic does.
const MARGIN: Duration = Duration::from_millis(5);

#[derive(Clone, Copy)]
pub(super) struct Deadline;

impl<S> Layer<S> for Deadline {
    type Service = Timed<S>;

    fn layer(&self, inner: S) -> Timed<S> {
        Timed { inner }
    }
}

#[derive(Clone)]
pub(super) struct Timed<S> {
    inner: S,
}

fn expired() -> Status {
    Status::deadline_exceeded("deadline exceeded")
}

impl<S> Service<Request<Body>> for Timed<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        let timeout = timeout(request.headers());
        let future = self.inner.call(request);
        let Some(timeout) = timeout else {
            return Box::pin(future);
        };
        let deadline = Instant::now() + timeout.saturating_sub(MARGIN.min(timeout / 10));
        Box::pin(async move {
            match tokio::time::timeout_at(deadline, future).await {
                Ok(response) => Ok(response?.map(|body| Body::new(Bounded::new(body, deadline)))),
                Err(_) => Ok(refusal(expired())),
            }
        })
    }
}

/// Reads `grpc-timeout`: up to eight digits and a unit. What is malformed counts as absent.
fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(TIMEOUT)?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

/// A body that ends at the deadline.
struct Bounded {
    body: Option<Body>,
    sleep: Pin<Box<Sleep>>,
}

impl Bounded {
    fn new(body: Body, deadline: Instant) -> Self {
        Self {
            body: Some(body),
            sleep: Box::pin(tokio::time::sleep_until(deadline)),
        }
    }
}

impl HttpBody for Bounded {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        match this.sleep.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                this.body = None;
                Poll::Ready(Some(Ok(trailers(&expired()))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        // Unknown, because the deadline may cut it.
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_header_of_the_protocol() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(TIMEOUT, text.parse().unwrap());
            timeout(&headers)
        };
        assert_eq!(read("300m"), Some(Duration::from_millis(300)));
        assert_eq!(read("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for bad in ["", "m", "5", "5x", "-5m", "123456789m", "5é"] {
            assert!(
                read(bad).is_none_or(|duration| bad == "m" && duration.is_zero()),
                "{bad}"
            );
        }
    }
}
