//! Sends the bytes of an asset, whole or a range.

use std::ops::Range;

use atelier_common::identity::Caller;
use atelier_proto::asset::v1::download_asset_response::Part;
use atelier_proto::asset::v1::{DownloadAssetRequest, DownloadAssetResponse, DownloadHeader};
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use tonic::Status;

use super::convert;
use crate::commit::Committer;
use crate::error::Error;
use crate::metrics::DOWNLOADED;

/// The header and the bytes. They are read as fast as the client takes them; dropping the stream stops it.
pub async fn send(
    committer: &Committer,
    caller: &Caller,
    request: DownloadAssetRequest,
) -> Result<BoxStream<'static, Result<DownloadAssetResponse, Status>>, Error> {
    let DownloadAssetRequest {
        asset_id,
        offset,
        length,
    } = request;
    let row = committer.rows.get(caller, &asset_id).await?;
    let size = u64::try_from(row.size_bytes).map_err(|_| Error::Bug("a size is negative"))?;
    let range = range(size, offset, length)?;
    let asset = convert::asset(&row, &committer.blobs)?;
    let bytes = committer.blobs.read(&row.object, range.clone()).await?;
    metrics::counter!(DOWNLOADED).increment(range.end - range.start);
    let number = |number: u64| i64::try_from(number).map_err(|_| Error::Bug("a range is too large"));
    let (offset, length) = (number(range.start)?, number(range.end - range.start)?);
    let header = Part::Header(DownloadHeader {
        asset: Some(asset),
        offset,
        length,
    });
    let parts = stream::iter([Ok(header)]).chain(bytes.map_ok(Part::Chunk).map_err(Status::from));
    Ok(parts
        .map_ok(|part| DownloadAssetResponse { part: Some(part) })
        .boxed())
}

/// The bytes that are meant: a negative offset counts from the end, a length is cut at the end.
fn range(size: u64, offset: Option<i64>, length: Option<i64>) -> Result<Range<u64>, Error> {
    let offset = offset.unwrap_or(0);
    let start = if offset < 0 {
        size.saturating_sub(offset.unsigned_abs())
    } else {
        offset.unsigned_abs()
    };
    if start > size || (start == size && size > 0) {
        return Err(Error::Range { size });
    }
    let length = match length {
        None => u64::MAX,
        Some(length) => {
            u64::try_from(length).map_err(|_| Error::invalid("length", "must not be negative"))?
        }
    };
    Ok(start..start.saturating_add(length).min(size))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(10, None, None, Some(0..10))]
    #[case(10, Some(3), None, Some(3..10))]
    #[case(10, Some(3), Some(2), Some(3..5))]
    #[case(10, Some(3), Some(99), Some(3..10))]
    #[case(10, Some(3), Some(0), Some(3..3))]
    #[case(10, Some(-3), None, Some(7..10))]
    #[case(10, Some(-3), Some(1), Some(7..8))]
    #[case(10, Some(-99), None, Some(0..10))]
    #[case(10, Some(i64::MIN), Some(i64::MAX), Some(0..10))]
    #[case(10, Some(10), None, None)]
    #[case(10, Some(i64::MAX), None, None)]
    #[case(0, None, None, Some(0..0))]
    #[case(0, Some(1), None, None)]
    #[case(10, None, Some(-1), None)]
    fn ranges(
        #[case] size: u64,
        #[case] offset: Option<i64>,
        #[case] length: Option<i64>,
        #[case] expected: Option<Range<u64>>,
    ) {
        assert_eq!(range(size, offset, length).ok(), expected);
    }
}
