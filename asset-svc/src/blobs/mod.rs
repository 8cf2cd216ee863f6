//! Bytes by their digest, in a store that a URL names.
//!
//! A blob is called `<aa>/<digest>.<ext>`: BLAKE3 in hex, its first two digits as folder, the ending that the bytes ask for,
//! so that a person can open the file. Bytes arrive under `tmp/` and get their name by a rename when they are complete and
//! on disk; nobody ever sees half a blob under its name. Equal bytes are kept once. Who a blob belongs to is not known
//! here: that is a row of an asset.

mod read;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use atelier_common::tasks::Tasks;
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use url::Url;
use uuid::Uuid;

use crate::error::Error;
use crate::sniff::Sniffed;

pub use read::Bytestream;
pub use write::Writer;

/// Folder of bytes that have no name yet.
const TEMPORARY: &str = "tmp";

/// Bytes that are in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// BLAKE3, lower-case hex.
    pub digest: String,
    /// Name in the store.
    pub object: String,
    /// How many bytes.
    pub size: u64,
    /// What the bytes show.
    pub sniffed: Sniffed,
}

/// The store. Clones are the same store.
#[derive(Debug, Clone)]
pub struct Blobs {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    folder: Option<PathBuf>,
    cleaner: Cleaner,
}

/// Runs what has to be cleaned up after a writer was dropped.
#[derive(Clone)]
struct Cleaner(Tasks);

impl std::fmt::Debug for Cleaner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cleaner")
    }
}

impl Blobs {
    /// Opens the store of a URL: `file:///folder`, `memory:///`, or `s3://bucket/prefix`. A folder is created; everything
    /// that is written to it is flushed to the disk with its directory.
    ///
    /// # Errors
    /// `Store` when the URL is of no known store or the folder cannot be made.
    pub fn open(url: &Url, options: &[(String, String)], tasks: Tasks) -> Result<Self, Error> {
        let cleaner = Cleaner(tasks);
        if url.scheme() == "file" {
            let folder = url.to_file_path().map_err(|()| Error::StoreUrl)?;
            std::fs::create_dir_all(folder.join(TEMPORARY)).map_err(Error::Folder)?;
            let folder = folder.canonicalize().map_err(Error::Folder)?;
            let store = LocalFileSystem::new_with_prefix(&folder)?.with_fsync(true);
            return Ok(Self {
                store: Arc::new(store),
                prefix: Path::default(),
                folder: Some(folder),
                cleaner,
            });
        }
        if url.scheme() == "memory" {
            return Ok(Self::with_store(Arc::new(InMemory::new()), cleaner.0));
        }
        atelier_common::egress::install_crypto();
        let options = options.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let (store, prefix) = object_store::parse_url_opts(url, options)?;
        Ok(Self {
            store: Arc::from(store),
            prefix,
            folder: None,
            cleaner,
        })
    }

    /// Uses a store that is open already.
    #[must_use]
    pub fn with_store(store: Arc<dyn ObjectStore>, tasks: Tasks) -> Self {
        Self {
            store,
            prefix: Path::default(),
            folder: None,
            cleaner: Cleaner(tasks),
        }
    }

    /// Makes every operation go through `wrap`, which gets the store.
    #[must_use]
    pub fn wrapped(self, wrap: impl FnOnce(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>) -> Self {
        Self {
            store: wrap(self.store),
            ..self
        }
    }

    /// Starts a blob of at most `limit` bytes.
    pub fn writer(&self, limit: u64) -> Writer {
        Writer::new(self.clone(), limit)
    }

    /// The file of a blob, absolute, when the store is a folder.
    #[must_use]
    pub fn file_path(&self, object: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(object))
    }

    /// Whether the store answers.
    ///
    /// # Errors
    /// `Store` when it does not.
    pub async fn check(&self) -> Result<(), Error> {
        match self.store.head(&self.location("check")).await {
            Ok(_) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Where work goes that would hold up others.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.cleaner.0
    }

    /// Removes bytes without a name that were last written before an instant, or all of them, and says how many.
    ///
    /// # Errors
    /// `Store` when the store does not answer.
    pub async fn remove_leftovers(&self, before: Option<DateTime<Utc>>) -> Result<usize, Error> {
        let old = move |at: DateTime<Utc>| before.is_none_or(|before| at < before);
        if let Some(folder) = &self.folder {
            // Staged files have names that a listing of the store leaves out.
            let folder = folder.join(TEMPORARY);
            let removed = self
                .cleaner
                .0
                .spawn_blocking("leftovers", move || remove_files(&folder, old));
            return removed.await?.map_err(Error::Folder);
        }
        let leftovers: Vec<Path> = self
            .store
            .list(Some(&self.location(TEMPORARY)))
            .try_filter_map(|meta| async move { Ok(old(meta.last_modified).then_some(meta.location)) })
            .try_collect()
            .await?;
        for location in &leftovers {
            self.store.delete(location).await?;
        }
        Ok(leftovers.len())
    }

    fn location(&self, object: &str) -> Path {
        object
            .split('/')
            .fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn temporary(&self) -> Path {
        self.location(TEMPORARY).join(Uuid::now_v7().simple().to_string())
    }
}

fn remove_files(folder: &std::path::Path, old: impl Fn(DateTime<Utc>) -> bool) -> std::io::Result<usize> {
    let mut removed = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // Given its name, or removed by another replica, in the meantime.
        let meta = match entry.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            meta => meta?,
        };
        if meta.is_file() && meta.modified().is_ok_and(|at| old(at.into())) {
            match std::fs::remove_file(entry.path()) {
                Ok(()) => removed += 1,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(removed)
}
