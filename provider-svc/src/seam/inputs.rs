//! Media that a request names by asset: their bytes, for providers that want them in the request (K5).

use std::collections::HashMap;

use atelier_common::identity::Caller;
use atelier_proto::value::{Map, MediaRef, Value};
use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::provider::{Class, Failure};
use crate::seam::assets::Assets;

/// Largest medium that goes into a request, in bytes.
const MAX_INPUT: usize = 64 * 1024 * 1024;
/// Largest sum of the different media of a request, in bytes.
const MAX_INPUTS: usize = 256 * 1024 * 1024;

/// The parameters with the bytes of every asset that they name.
///
/// # Errors
/// A failure of a request that was not sent, when an asset cannot be read.
pub async fn resolve(assets: &Assets, caller: &Caller, params: &Map) -> Result<Map, Failure> {
    let mut inputs = Inputs {
        assets,
        caller,
        known: HashMap::new(),
        room: MAX_INPUTS,
    };
    inputs.map(params).await
}

/// What a request has fetched so far: each asset once, whatever names it.
struct Inputs<'a> {
    assets: &'a Assets,
    caller: &'a Caller,
    known: HashMap<String, Bytes>,
    room: usize,
}

impl Inputs<'_> {
    async fn map(&mut self, entries: &Map) -> Result<Map, Failure> {
        let mut out = Map::with_capacity(entries.len());
        for (key, value) in entries {
            out.insert(key.clone(), self.value(value).await?);
        }
        Ok(out)
    }

    fn value<'b>(&'b mut self, value: &'b Value) -> BoxFuture<'b, Result<Value, Failure>> {
        Box::pin(async move {
            match value {
                Value::Media(media) => self.reference(media).await,
                Value::List(values) => {
                    let mut out = Vec::with_capacity(values.len());
                    for inner in values.iter() {
                        out.push(self.value(inner).await?);
                    }
                    Ok(Value::list(out))
                }
                Value::Map(entries) => Ok(Value::map(self.map(entries).await?)),
                other => Ok(other.clone()),
            }
        })
    }

    async fn reference(&mut self, media: &MediaRef) -> Result<Value, Failure> {
        let by_uri = media
            .uri
            .strip_prefix("asset://")
            .map(|rest| rest.split('.').next().unwrap_or(rest).to_owned());
        let Some(asset_id) = media.asset_id.clone().or(by_uri).filter(|_| media.data.is_none()) else {
            return Ok(Value::media(media.clone()));
        };
        Ok(Value::media(MediaRef {
            data: Some(self.bytes(asset_id).await?),
            ..media.clone()
        }))
    }

    async fn bytes(&mut self, asset_id: String) -> Result<Bytes, Failure> {
        if let Some(data) = self.known.get(&asset_id) {
            return Ok(data.clone());
        }
        let most = MAX_INPUT.min(self.room);
        let data = self
            .assets
            .download(self.caller, &asset_id, most)
            .await
            .map_err(|status| {
                let message = format!("asset {asset_id} cannot be read: {}", status.message());
                Failure::new(Class::InvalidInput, message)
                    .because("input_unavailable")
                    .unsent()
            })?;
        self.room = self.room.saturating_sub(data.len());
        self.known.insert(asset_id, data.clone());
        Ok(data)
    }
}
