//! Writing: hashing and storing what arrives piece by piece, in bounded memory.

use bytes::{Bytes, BytesMut};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};

use super::{Blob, Blobs};
use crate::error::Error;
use crate::sniff::{self, Sniffed};

/// What is held in memory before it goes to the store; smaller blobs go there in one piece.
const PART_BYTES: usize = 8 * 1024 * 1024;

/// A blob that is being written. Dropped before [`finish`](Self::finish), it leaves nothing behind.
#[must_use = "a writer that is not finished stores nothing"]
#[derive(Debug)]
pub struct Writer {
    blobs: Blobs,
    limit: u64,
    hasher: Box<blake3::Hasher>,
    size: u64,
    head: Vec<u8>,
    buffer: BytesMut,
    staged: Option<Staged>,
}

/// Parts that are in the store already, under a temporary name.
#[derive(Debug)]
struct Staged {
    upload: Box<dyn MultipartUpload>,
    location: Path,
}

impl Writer {
    pub(super) fn new(blobs: Blobs, limit: u64) -> Self {
        Self {
            blobs,
            limit,
            hasher: Box::default(),
            size: 0,
            head: Vec::new(),
            buffer: BytesMut::new(),
            staged: None,
        }
    }

    /// Takes the next bytes. Not cancel safe: drop the writer when this was dropped.
    ///
    /// # Errors
    /// `TooLarge` when there are more than the limit, `Store` when the store fails.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.size = self
            .size
            .saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if self.size > self.limit {
            return Err(Error::TooLarge { limit: self.limit });
        }
        self.hasher.update(bytes);
        let room = sniff::PREFIX_BYTES.saturating_sub(self.head.len());
        self.head.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        self.buffer.extend_from_slice(bytes);
        while self.buffer.len() >= PART_BYTES {
            let part = self.buffer.split_to(PART_BYTES).freeze();
            self.put_part(part).await?;
        }
        Ok(())
    }

    /// Completes the blob and gives it its name. When a blob of the same bytes is there, that one is used.
    /// Not cancel safe, but repeating the whole write is harmless.
    ///
    /// # Errors
    /// `Store` when the store fails; nothing is left under the name then, or all of it.
    pub async fn finish(mut self) -> Result<Blob, Error> {
        let sniffed = sniff::sniff(
            &self.head,
            usize::try_from(self.size).is_ok_and(|size| size == self.head.len()),
        );
        let digest = self.hasher.finalize().to_hex().to_string();
        let blob = Blob {
            object: object_name(&digest, sniffed),
            digest,
            size: self.size,
            sniffed,
        };
        let last = self.buffer.split().freeze();
        if self.staged.is_some() && !last.is_empty() {
            self.put_part(last.clone()).await?;
        }
        let location = self.blobs.location(&blob.object);
        if self.blobs.holds(&location, blob.size).await? {
            if let Some(staged) = self.staged.take() {
                staged.abort().await;
            }
        } else if let Some(mut staged) = self.staged.take() {
            staged.upload.complete().await?;
            self.blobs.publish(&staged.location, &location).await?;
        } else {
            self.blobs.put(&location, last).await?;
        }
        Ok(blob)
    }

    async fn put_part(&mut self, part: Bytes) -> Result<(), Error> {
        let staged = match &mut self.staged {
            Some(staged) => staged,
            none => {
                let location = self.blobs.temporary();
                let upload = self.blobs.store.put_multipart(&location).await?;
                none.insert(Staged { upload, location })
            }
        };
        staged.upload.put_part(PutPayload::from_bytes(part)).await?;
        Ok(())
    }
}

impl Staged {
    async fn abort(mut self) {
        if let Err(error) = self.upload.abort().await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "upload could not be aborted"
            );
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(staged) = self.staged.take()
            && tokio::runtime::Handle::try_current().is_ok()
        {
            self.blobs.cleaner.0.spawn("abort upload", staged.abort());
        }
    }
}

impl Blobs {
    /// Whether a whole blob is there under this name.
    async fn holds(&self, location: &Path, size: u64) -> Result<bool, Error> {
        match self.store.head(location).await {
            Ok(meta) => Ok(meta.size == size),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Stores a small blob. A folder takes it under a temporary name first, other stores are atomic by themselves.
    async fn put(&self, location: &Path, bytes: Bytes) -> Result<(), Error> {
        let payload = PutPayload::from_bytes(bytes);
        if self.folder.is_none() {
            self.store.put(location, payload).await?;
            return Ok(());
        }
        let temporary = self.temporary();
        self.store.put(&temporary, payload).await?;
        self.publish(&temporary, location).await
    }

    /// Gives complete bytes their name. Two at once are harmless: both carry the same bytes.
    async fn publish(&self, temporary: &Path, location: &Path) -> Result<(), Error> {
        let renamed = self.store.rename(temporary, location).await;
        if renamed.is_err()
            && let Err(error) = self.store.delete(temporary).await
        {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "temporary object could not be removed"
            );
        }
        Ok(renamed?)
    }
}

fn object_name(digest: &str, sniffed: Sniffed) -> String {
    let folder = digest.get(..2).unwrap_or("00");
    format!("{folder}/{digest}.{}", sniffed.ending)
}
