//! From a call to the client that watches it.
//!
//! The call never waits here. Progress is dropped when the client is slow; pieces of text and audio wait for the reader and
//! cost no more memory than the result that is held anyway, texts put together with the piece before; what says how the
//! row is, is always kept. When the reader is gone everything is thrown away.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use atelier_proto::provider::v1::run_generation_response::Event;
use atelier_proto::provider::v1::{Chunk, Progress, RunGenerationResponse};
use atelier_proto::value::MediaRef;
use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::metrics;
use crate::provider::Emit;

/// Events that may wait for a reader before progress is dropped and pieces are put together.
const BOUND: usize = 128;

/// The writing end. Clones write into the same feed.
#[derive(Clone)]
pub struct Feed {
    shared: Arc<Shared>,
}
struct Shared {
    state: Mutex<State>,
    changed: Notify,
    gone: CancellationToken,
}
#[derive(Default)]
struct State {
    queue: VecDeque<Event>,
    end: Option<Option<Status>>,
}
/// The reading end. Dropping it tells the writer that nobody reads.
struct Reader {
    shared: Arc<Shared>,
}
impl Reader {
    /// The next event, or the end. Cancel safe.
    async fn next(&self) -> Result<Event, Option<Status>> {
        loop {
            {
                let mut state = self.shared.lock();
                if let Some(event) = state.queue.pop_front() {
                    return Ok(event);
                }
                if let Some(end) = state.end.take() {
                    return Err(end);
                }
            }
            // One reader, and a notice that comes before the wait is kept for it.
            self.shared.changed.notified().await;
        }
    }
}
impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.gone.cancel();
        self.shared.lock().queue.clear();
    }
}

/// A feed and the stream that a client reads.
pub fn feed() -> (
    Feed,
    impl Stream<Item = Result<RunGenerationResponse, Status>> + Send + 'static,
) {
    let shared = Arc::new(Shared {
        state: Mutex::default(),
        changed: Notify::new(),
        gone: CancellationToken::new(),
    });
    let reader = Reader {
        shared: shared.clone(),
    };
    let stream = futures_util::stream::unfold(Some(reader), |reader| async move {
        let reader = reader?;
        match reader.next().await {
            Ok(event) => Some((Ok(RunGenerationResponse { event: Some(event) }), Some(reader))),
            Err(end) => end.map(|status| (Err(status), None)),
        }
    });
    (Feed { shared }, stream)
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed {
    /// Tripped when the reader is gone.
    #[must_use]
    pub fn gone(&self) -> &CancellationToken {
        &self.shared.gone
    }

    /// An event that must arrive.
    pub fn send(&self, event: Event) {
        self.push(|state| state.queue.push_back(event));
    }

    /// Ends the stream, with an error or without. Only the first end counts, and nothing is sent after it.
    pub fn finish(&self, status: Option<Status>) {
        self.push(|state| {
            state.end.get_or_insert(status);
        });
    }

    fn push(&self, write: impl FnOnce(&mut State)) {
        let mut state = self.shared.lock();
        if self.shared.gone.is_cancelled() || state.end.is_some() {
            return;
        }
        write(&mut state);
        drop(state);
        self.shared.changed.notify_one();
    }

    fn chunk(&self, chunk: Chunk) {
        self.push(|state| {
            let full = state.queue.len() >= BOUND;
            if full
                && let Some(Event::Chunk(last)) = state.queue.back_mut()
                && last.content_type == chunk.content_type
                && last.thinking == chunk.thinking
                && !last.done
                && chunk.data.is_empty()
            {
                last.text.push_str(&chunk.text);
                last.done = chunk.done;
                return;
            }
            state.queue.push_back(Event::Chunk(chunk));
        });
    }
}

impl Emit for Feed {
    fn progress(&self, done: i64, total: i64, preview: Option<MediaRef>) {
        self.push(|state| {
            let waiting = state
                .queue
                .iter()
                .filter(|event| matches!(event, Event::Progress(_)))
                .count();
            if state.queue.len() >= BOUND || waiting >= BOUND / 8 {
                metrics::progress_dropped();
                return;
            }
            let preview = preview.as_ref().map(Into::into);
            state.queue.push_back(Event::Progress(Progress {
                progress: done,
                total,
                preview,
            }));
        });
    }

    fn text(&self, piece: &str, thinking: bool) {
        let chunk = Chunk {
            content_type: "text".to_owned(),
            text: piece.to_owned(),
            thinking,
            ..Chunk::default()
        };
        self.chunk(chunk);
    }

    fn audio(&self, piece: Bytes) {
        self.chunk(Chunk {
            content_type: "audio".to_owned(),
            data: piece,
            ..Chunk::default()
        });
    }

    fn end(&self, content_type: &str) {
        self.chunk(Chunk {
            content_type: content_type.to_owned(),
            done: true,
            ..Chunk::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;

    #[tokio::test]
    async fn a_slow_reader_gets_every_letter_and_loses_only_progress() {
        let (feed, stream) = feed();
        for n in 0..1_000 {
            feed.text("ab", false);
            feed.progress(n, 1_000, None);
        }
        feed.end("text");
        feed.finish(None);
        let events: Vec<_> = stream
            .map(|event| event.expect("no error").event.expect("an event"))
            .collect()
            .await;
        assert!(events.len() <= BOUND + 2, "{}", events.len());
        let text: String = events
            .iter()
            .filter_map(|event| {
                if let Event::Chunk(chunk) = event {
                    Some(chunk.text.as_str())
                } else {
                    None
                }
            })
            .collect();
        assert_eq!(text.len(), 2_000);
        assert!(matches!(events.last(), Some(Event::Chunk(chunk)) if chunk.done));
    }

    #[tokio::test]
    async fn a_reader_that_is_gone_costs_nothing_and_an_error_ends_the_stream() {
        let (writer, stream) = feed();
        drop(stream);
        assert!(writer.gone().is_cancelled());
        writer.text("x", false);
        assert!(writer.shared.lock().queue.is_empty());
        let (writer, stream) = feed();
        let mut stream = Box::pin(stream);
        writer.text("x", false);
        writer.finish(Some(Status::cancelled("stop")));
        writer.text("y", false);
        assert!(stream.next().await.expect("a piece").is_ok());
        assert!(stream.next().await.expect("an error").is_err());
        assert!(stream.next().await.is_none());
    }
}
