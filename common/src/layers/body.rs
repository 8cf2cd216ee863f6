//! A body that is watched: what it says at its end, in which surroundings it is polled, and that its panics stay in it.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::body::Body;
use tonic::{Code, Status};

/// Hears of the end of a call, once. Dropped unheard when the client went away first.
pub(super) trait End: Send + 'static {
    /// Polls the body below in the surroundings of the call.
    fn within<R>(&mut self, poll: impl FnOnce() -> R) -> R {
        poll()
    }

    /// The call ended with this code.
    fn ended(&mut self, _code: Code) {}
}

/// The code in headers or trailers; OK is what absence means at the end of a body.
pub(super) fn code_of(headers: &HeaderMap) -> Option<Code> {
    headers
        .get(Status::GRPC_STATUS)
        .map(|code| Code::from_bytes(code.as_bytes()))
}

pub(super) struct Watched<E: End> {
    body: Body,
    end: E,
    done: bool,
}

impl<E: End + Unpin> Watched<E> {
    /// Watches a response's body, or hears of its end at once when the head was all.
    pub(super) fn response(response: http::Response<Body>, mut end: E) -> http::Response<Body> {
        let (parts, body) = response.into_parts();
        if let Some(code) = code_of(&parts.headers) {
            end.ended(code);
            return http::Response::from_parts(parts, body);
        }
        let body = Body::new(Self {
            body,
            end,
            done: false,
        });
        http::Response::from_parts(parts, body)
    }

    fn finish(&mut self, code: Code) {
        if !std::mem::replace(&mut self.done, true) {
            self.end.ended(code);
        }
    }
}

impl<E: End> Drop for Watched<E> {
    fn drop(&mut self) {
        if !self.done {
            // The client went away before the end.
            self.end.ended(Code::Cancelled);
        }
    }
}

impl<E: End + Unpin> HttpBody for Watched<E> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let body = Pin::new(&mut this.body);
        let polled = this.end.within(|| body.poll_frame(cx));
        match &polled {
            Poll::Ready(None) => this.finish(Code::Ok),
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(trailers) = frame.trailers_ref() {
                    this.finish(code_of(trailers).unwrap_or(Code::Ok));
                }
            }
            Poll::Ready(Some(Err(status))) => this.finish(status.code()),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A body whose panics become the status INTERNAL in its trailers.
pub(super) struct Guarded {
    body: Option<Body>,
}

impl Guarded {
    pub(super) fn new(body: Body) -> Self {
        Self { body: Some(body) }
    }
}

impl HttpBody for Guarded {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        match std::panic::catch_unwind(AssertUnwindSafe(|| Pin::new(body).poll_frame(cx))) {
            Ok(polled) => polled,
            Err(panic) => {
                // It must not be polled again, nor dropped twice should its drop panic too.
                let broken = this.body.take();
                let _ = std::panic::catch_unwind(AssertUnwindSafe(|| drop(broken)));
                Poll::Ready(Some(Ok(trailers(&super::panic::internal(panic.as_ref())))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

/// A last frame that says the status.
pub(super) fn trailers(status: &Status) -> Frame<Bytes> {
    let mut headers = HeaderMap::new();
    if status.add_header(&mut headers).is_err() {
        headers.insert(Status::GRPC_STATUS, http::HeaderValue::from(13));
    }
    Frame::trailers(headers)
}
