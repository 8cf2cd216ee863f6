//! What a sound says of itself.

use async_trait::async_trait;
use atelier_proto::value::Map;

use super::codec;
use crate::{
    node::{Context, Executor, NodeError},
    nodes::{
        args::{count, map},
        code::{Types, factory},
        media_io::{need, work},
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![("nodetool.audio.GetAudioInfo", factory(Info))]
}

#[derive(Clone, Copy)]
struct Info;
#[async_trait]
impl Executor for Info {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let bytes = need(ctx, &inputs, "audio").await?;
        work(ctx, move |stop| {
            let sound = codec::decode("audio", &bytes, stop)?;
            Ok(map([
                ("duration", sound.seconds().into()),
                ("sample_rate", i64::from(sound.rate).into()),
                ("channels", count(sound.channels.len())),
                ("format", codec::format(&bytes).into()),
                ("size_bytes", count(bytes.len())),
            ]))
        })
        .await
    }
}
