//! Reading: a range of a blob as a stream of small pieces.

use std::io::SeekFrom;
use std::ops::Range;

use atelier_proto::CHUNK_BYTES;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use object_store::{GetOptions, GetResultPayload, ObjectStore};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

use super::Blobs;
use crate::error::Error;

/// Pieces of at most [`CHUNK_BYTES`], in order.
pub type Bytestream = BoxStream<'static, Result<Bytes, Error>>;

impl Blobs {
    /// Reads a range that lies within the blob. Nothing but the piece on its way is held in memory.
    ///
    /// # Errors
    /// `Store` when the store fails or has no such blob; the stream may end in one too.
    pub async fn read(&self, object: &str, range: Range<u64>) -> Result<Bytestream, Error> {
        if range.is_empty() {
            return Ok(stream::empty().boxed());
        }
        let options = GetOptions::new().with_range(Some(range.clone()));
        let got = self.store.get_opts(&self.location(object), options).await?;
        match got.payload {
            GetResultPayload::File(file, _) => {
                let mut file = tokio::fs::File::from_std(file);
                file.seek(SeekFrom::Start(range.start))
                    .await
                    .map_err(Error::Folder)?;
                let part = file.take(range.end - range.start);
                Ok(ReaderStream::with_capacity(part, CHUNK_BYTES)
                    .map_err(Error::Folder)
                    .boxed())
            }
            GetResultPayload::Stream(pieces) => Ok(pieces
                .map_err(Error::from)
                .map_ok(|piece| stream::iter(chunks(piece)).map(Ok))
                .try_flatten()
                .boxed()),
        }
    }
}

/// Cuts a piece into pieces of the size that a message takes.
fn chunks(mut piece: Bytes) -> impl Iterator<Item = Bytes> {
    std::iter::from_fn(move || (!piece.is_empty()).then(|| piece.split_to(piece.len().min(CHUNK_BYTES))))
}
