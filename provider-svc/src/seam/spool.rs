//! Writes that the ledger could not be told, kept in a local file until it can (generations specification 3.6).
//!
//! An entry is on disk before anybody goes on. Entries are delivered in order, also after a restart on the same folder.
//! The spool is bounded: when it is full new calls are refused, and nothing is ever dropped from it.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use atelier_common::identity::Caller;
use atelier_common::tasks::Tasks;
use atelier_proto::tracker::v1::{
    AnnotateGenerationRequest, BindAttemptRequest, CloseGenerationRequest, ObserveGenerationRequest,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message as _;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::metrics;

/// Most entries that may wait.
const MAX_ENTRIES: usize = 10_000;
/// Most bytes that may wait.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A write that its driver owes the ledger.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "most of what waits are closes")]
pub enum Write {
    /// A request id.
    Bind(BindAttemptRequest),
    /// Facets.
    Observe(ObserveGenerationRequest),
    /// An outcome.
    Close(CloseGenerationRequest),
    /// What a late driver knows.
    Annotate(AnnotateGenerationRequest),
}
impl Write {
    /// The row.
    #[must_use]
    pub fn generation_id(&self) -> &str {
        match self {
            Self::Bind(request) => &request.generation_id,
            Self::Observe(request) => &request.generation_id,
            Self::Close(request) => &request.generation_id,
            Self::Annotate(request) => &request.generation_id,
        }
    }

    fn encode(&self) -> (&'static str, Vec<u8>) {
        match self {
            Self::Bind(request) => ("bind", request.encode_to_vec()),
            Self::Observe(request) => ("observe", request.encode_to_vec()),
            Self::Close(request) => ("close", request.encode_to_vec()),
            Self::Annotate(request) => ("annotate", request.encode_to_vec()),
        }
    }

    fn decode(kind: &str, bytes: &[u8]) -> Option<Self> {
        match kind {
            "bind" => BindAttemptRequest::decode(bytes).ok().map(Self::Bind),
            "observe" => ObserveGenerationRequest::decode(bytes).ok().map(Self::Observe),
            "close" => CloseGenerationRequest::decode(bytes).ok().map(Self::Close),
            "annotate" => AnnotateGenerationRequest::decode(bytes).ok().map(Self::Annotate),
            _ => None,
        }
    }
}

/// A write that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its number in the file.
    pub number: u64,
    /// Whose row it is.
    pub caller: Caller,
    /// The write.
    pub write: Write,
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
enum Line {
    Write {
        number: u64,
        user: String,
        scopes: Vec<String>,
        kind: String,
        body: String,
    },
    Done {
        number: u64,
    },
}

/// The spool of one data folder. Clones are the same spool.
#[derive(Clone)]
pub struct Spool {
    inner: Arc<Inner>,
}
struct Inner {
    state: Mutex<State>,
    filled: Notify,
    tasks: Tasks,
}
struct State {
    file: File,
    bytes: u64,
    next: u64,
    waiting: VecDeque<Entry>,
}

impl Spool {
    /// Opens the spool of a folder and reads what waits in it.
    ///
    /// # Errors
    /// When the file cannot be made or read. A last line that was cut by a crash was never promised and is left out.
    pub fn open(folder: &Path, tasks: Tasks) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join("provider-spool.jsonl");
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let mut waiting = VecDeque::new();
        let mut next = 1;
        for line in text.lines() {
            match read(line) {
                Some(Line::Done { number }) => waiting.retain(|entry: &Entry| entry.number != number),
                Some(Line::Write {
                    number,
                    user,
                    scopes,
                    kind,
                    body,
                }) => {
                    next = next.max(number + 1);
                    let write = STANDARD
                        .decode(body)
                        .ok()
                        .and_then(|bytes| Write::decode(&kind, &bytes));
                    if let Some(write) = write {
                        waiting.push_back(Entry {
                            number,
                            caller: Caller {
                                user_id: user,
                                scopes,
                            },
                            write,
                        });
                    }
                }
                None => tracing::warn!("a line of the spool cannot be read"),
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        if !waiting.is_empty() {
            tracing::info!(
                entries = waiting.len(),
                "writes wait for the ledger since the last start"
            );
        }
        metrics::spool_entries(waiting.len());
        let bytes = file.seek(SeekFrom::End(0))?;
        let state = State {
            file,
            bytes,
            next,
            waiting,
        };
        Ok(Self {
            inner: Arc::new(Inner {
                state: Mutex::new(state),
                filled: Notify::new(),
                tasks,
            }),
        })
    }

    /// Whether there is no room for the outcomes of further calls.
    #[must_use]
    pub fn full(&self) -> bool {
        let state = self.lock();
        state.waiting.len() >= MAX_ENTRIES || state.bytes >= MAX_BYTES
    }

    /// How many writes wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a write of this row waits; later ones must wait behind it.
    #[must_use]
    pub fn holds(&self, generation_id: &str) -> bool {
        self.lock()
            .waiting
            .iter()
            .any(|entry| entry.write.generation_id() == generation_id)
    }

    /// Keeps a write. On disk when this returns; when the disk fails it is kept in memory and said so.
    pub async fn keep(&self, caller: Caller, write: Write) {
        let spool = self.clone();
        let kept = self
            .inner
            .tasks
            .spawn_blocking("spool", move || spool.append(caller, write))
            .await;
        if !matches!(kept, Ok(Ok(()))) {
            tracing::error!("the spool cannot be written, an outcome is in memory only");
        }
        self.inner.filled.notify_one();
    }

    fn append(&self, caller: Caller, write: Write) -> io::Result<()> {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        let (kind, body) = write.encode();
        let line = Line::Write {
            number,
            user: caller.user_id.clone(),
            scopes: caller.scopes.clone(),
            kind: kind.to_owned(),
            body: STANDARD.encode(body),
        };
        state.waiting.push_back(Entry {
            number,
            caller,
            write,
        });
        metrics::spool_entries(state.waiting.len());
        state.line(&line)
    }

    /// The first write that waits.
    #[must_use]
    pub fn first(&self) -> Option<Entry> {
        self.lock().waiting.front().cloned()
    }

    /// Takes out a write that was delivered. When none is left the file is emptied.
    pub async fn delivered(&self, number: u64) {
        let spool = self.clone();
        let told = self.inner.tasks.spawn_blocking("spool", move || {
            let mut state = spool.lock();
            state.waiting.retain(|entry| entry.number != number);
            metrics::spool_entries(state.waiting.len());
            if state.waiting.is_empty() {
                state.bytes = 0;
                state.file.set_len(0)?;
                return state.file.sync_data();
            }
            state.line(&Line::Done { number })
        });
        if !matches!(told.await, Ok(Ok(()))) {
            // It is delivered again after a restart, which the ledger takes as a repeat.
            tracing::warn!("the spool cannot be written");
        }
    }

    /// Waits until something was kept. Cancel safe.
    pub async fn filled(&self) {
        self.inner.filled.notified().await;
    }

    /// Wakes who waits for something to be kept, so that the spool is looked at again.
    pub fn kick(&self) {
        if !self.is_empty() {
            self.inner.filled.notify_one();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn line(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        self.file.write_all(text.as_bytes())?;
        self.bytes += u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.file.sync_data()
    }
}

fn read(line: &str) -> Option<Line> {
    serde_json::from_str(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(id: &str) -> Write {
        Write::Close(CloseGenerationRequest {
            generation_id: id.to_owned(),
            ..CloseGenerationRequest::default()
        })
    }

    #[tokio::test]
    async fn what_waits_survives_a_restart_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let caller = Caller::new("u1", ["run"]);
        let spool = Spool::open(folder.path(), Tasks::new()).expect("opens");
        for id in ["a", "b", "c"] {
            spool.keep(caller.clone(), close(id)).await;
        }
        spool.delivered(1).await;
        drop(spool);
        // A crash in the middle of a line.
        let path = folder.path().join("provider-spool.jsonl");
        let mut text = std::fs::read_to_string(&path).expect("a file");
        text.push_str("{\"is\":\"write\",\"numb");
        std::fs::write(&path, text).expect("writes");
        let spool = Spool::open(folder.path(), Tasks::new()).expect("opens again");
        assert!(spool.holds("b") && spool.holds("c") && !spool.holds("a"));
        let first = spool.first().expect("waits");
        assert_eq!(
            (first.number, first.caller, first.write),
            (2, caller.clone(), close("b"))
        );
        spool.keep(caller, close("d")).await;
        for number in 2..=4 {
            assert_eq!(spool.first().map(|entry| entry.number), Some(number));
            spool.delivered(number).await;
        }
        assert!(spool.is_empty());
        assert_eq!(std::fs::metadata(&path).expect("a file").len(), 0);
    }

    #[tokio::test]
    async fn a_full_spool_says_so_and_keeps_everything() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Spool::open(folder.path(), Tasks::new()).expect("opens");
        let large = CloseGenerationRequest {
            error: Some("x".repeat(50 << 20)),
            ..CloseGenerationRequest::default()
        };
        spool.keep(Caller::local(), Write::Close(large)).await;
        assert!(spool.full());
        spool.keep(Caller::local(), close("after")).await;
        assert_eq!(spool.len(), 2);
    }
}
