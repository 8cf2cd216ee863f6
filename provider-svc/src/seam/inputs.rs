//! Media that a request names by asset: their bytes, for providers that want them in the request (K5).

use atelier_common::identity::Caller;
use atelier_proto::value::{Map, MediaRef, Value};
use futures_util::future::BoxFuture;

use crate::provider::{Class, Failure};
use crate::seam::assets::Assets;

/// Largest medium that goes into a request, in bytes.
const MAX_INPUT: usize = 64 * 1024 * 1024;

/// The parameters with the bytes of every asset that they name.
///
/// # Errors
/// A failure of a request that was not sent, when an asset cannot be read.
pub async fn resolve(assets: &Assets, caller: &Caller, params: &Map) -> Result<Map, Failure> {
    let mut out = Map::with_capacity(params.len());
    for (key, value) in params {
        out.insert(key.clone(), resolved(assets, caller, value.clone()).await?);
    }
    Ok(out)
}

fn resolved<'a>(
    assets: &'a Assets,
    caller: &'a Caller,
    value: Value,
) -> BoxFuture<'a, Result<Value, Failure>> {
    Box::pin(async move {
        match value {
            Value::Media(media) => reference(assets, caller, &media).await,
            Value::List(values) => {
                let mut out = Vec::with_capacity(values.len());
                for inner in values.iter() {
                    out.push(resolved(assets, caller, inner.clone()).await?);
                }
                Ok(Value::list(out))
            }
            Value::Map(entries) => Ok(Value::map(resolve(assets, caller, &entries).await?)),
            other => Ok(other),
        }
    })
}

async fn reference(assets: &Assets, caller: &Caller, media: &MediaRef) -> Result<Value, Failure> {
    let by_uri = media
        .uri
        .strip_prefix("asset://")
        .map(|rest| rest.split('.').next().unwrap_or(rest).to_owned());
    let Some(asset_id) = media.asset_id.clone().or(by_uri).filter(|_| media.data.is_none()) else {
        return Ok(Value::media(media.clone()));
    };
    let data = assets
        .download(caller, &asset_id, MAX_INPUT)
        .await
        .map_err(|status| {
            let message = format!("asset {asset_id} cannot be read: {}", status.message());
            Failure::new(Class::InvalidInput, message)
                .because("input_unavailable")
                .unsent()
        })?;
    Ok(Value::media(MediaRef {
        data: Some(data),
        ..media.clone()
    }))
}
