//! A store that counts, and fails when it is told to.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart,
};

/// What the store was asked, and what it shall refuse.
#[derive(Debug, Default)]
pub struct Watch {
    /// Puts that succeed before one fails; negative: none fails.
    until_failure: AtomicI64,
    /// Whether the put that fails has been done all the same.
    pub fail_late: std::sync::atomic::AtomicBool,
    /// Whole objects that were put.
    pub puts: AtomicUsize,
    /// Parts that were put.
    pub parts: AtomicUsize,
    /// Largest payload.
    pub largest: AtomicUsize,
}

impl Watch {
    pub fn new() -> Arc<Self> {
        let watch = Self::default();
        watch.until_failure.store(-1, Ordering::SeqCst);
        Arc::new(watch)
    }

    /// The `nth` put from here on fails, counted from 1; only that one.
    pub fn fail_put(&self, nth: i64) {
        self.until_failure.store(nth - 1, Ordering::SeqCst);
    }

    pub fn puts(&self) -> usize {
        self.puts.load(Ordering::SeqCst)
    }

    fn due(&self) -> bool {
        let left = self.until_failure.fetch_sub(1, Ordering::SeqCst);
        if left < 0 {
            self.until_failure.store(-1, Ordering::SeqCst);
        }
        left == 0
    }

    fn saw(&self, payload: &PutPayload) {
        self.largest.fetch_max(payload.content_length(), Ordering::SeqCst);
    }
}

/// The store around another one.
#[derive(Debug)]
pub struct Watched {
    pub inner: Arc<dyn ObjectStore>,
    pub watch: Arc<Watch>,
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watched({})", self.inner)
    }
}

fn broken() -> Error {
    Error::Generic {
        store: "watched",
        source: "told to fail".into(),
    }
}

#[tonic::async_trait]
impl ObjectStore for Watched {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let due = self.watch.due();
        if due && !self.watch.fail_late.load(Ordering::SeqCst) {
            return Err(broken());
        }
        self.watch.saw(&payload);
        self.watch.puts.fetch_add(1, Ordering::SeqCst);
        let result = self.inner.put_opts(location, payload, opts).await?;
        if due { Err(broken()) } else { Ok(result) }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let inner = self.inner.put_multipart_opts(location, opts).await?;
        Ok(Box::new(WatchedUpload {
            inner,
            watch: Arc::clone(&self.watch),
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct WatchedUpload {
    inner: Box<dyn MultipartUpload>,
    watch: Arc<Watch>,
}

#[tonic::async_trait]
impl MultipartUpload for WatchedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.watch.saw(&data);
        self.watch.parts.fetch_add(1, Ordering::SeqCst);
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}
