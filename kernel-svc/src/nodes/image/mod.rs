//! Pictures: changed, drawn, taken apart, put together, loaded and saved, all without a provider.
//!
//! What lives here: one function a type, by subject, on pictures of 8 bits a channel (red, green, blue, alpha that is not
//! premultiplied). What does not: types that ask a provider's model (`models/`), and vector graphics (`svg`).

mod color;
mod compose;
mod convolve;
mod draw;
mod effects;
mod enhance;
mod filter;
mod grading;
mod looks;
mod matte;
mod pixels;
mod size;
mod text;
mod warp;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_faults;
#[cfg(test)]
mod tests_files;

use async_trait::async_trait;
use atelier_proto::value::Map;
use bytes::Bytes;
use image::RgbaImage;
use indexmap::IndexMap;

pub(super) use pixels::{MAX_PIXELS, byte, color, converted, decode, encode, real, sized};
pub(super) use text::Style;

use super::{
    args::{missing, one},
    catalog,
    code::{Types, factory},
    media_io::{Params, Stop, read, value_fault, work},
};
use crate::node::{Context, Executor, Factory, NodeError};

/// All types of this family.
pub(super) fn types() -> Types {
    [
        color::types(),
        grading::types(),
        looks::types(),
        draw::types(),
        text::types(),
        effects::types(),
        enhance::types(),
        filter::types(),
        matte::types(),
        warp::types(),
        size::types(),
        compose::types(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// How many of the largest pictures one invocation may work on.
const MOST_TOGETHER: u64 = 4;

/// What one invocation works on.
pub(super) struct Job {
    pub params: Params,
    pub stop: Stop,
    pictures: IndexMap<String, RgbaImage>,
}
impl Job {
    /// A picture that must be there.
    fn picture(&self, name: &str) -> Result<&RgbaImage, NodeError> {
        self.pictures
            .get(name)
            .ok_or_else(|| missing(name, "there is no picture to work on"))
    }
    fn image(&self) -> Result<&RgbaImage, NodeError> {
        self.picture("image")
    }
    fn optional(&self, name: &str) -> Option<&RgbaImage> {
        self.pictures.get(name)
    }
    fn f(&self, name: &str) -> Result<f32, NodeError> {
        self.params.f(name)
    }
    fn color(&self, name: &str) -> Result<[f32; 4], NodeError> {
        color(name, &self.params.value(name))
    }
}

/// Pictures in, a picture out.
pub(super) type Op = fn(&Job) -> Result<RgbaImage, NodeError>;

/// A node that makes one picture, on a thread for heavy work.
#[derive(Clone, Copy)]
struct Edit {
    op: Op,
    /// Where the input `mask` is black the picture stays as it was.
    masked: bool,
}
fn edit(op: Op) -> Factory {
    factory(Edit { op, masked: false })
}
fn masked(op: Op) -> Factory {
    factory(Edit { op, masked: true })
}
#[async_trait]
impl Executor for Edit {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let Self { op, masked } = *self;
        let bytes = pictures(ctx, &inputs).await?;
        let params = Params::new(ctx, inputs);
        let output = work(ctx, move |stop| {
            let job = decoded(params, bytes, stop)?;
            let mut made = op(&job)?;
            if masked && let Some(mask) = job.optional("mask") {
                made = matte::within(job.image()?, made, mask, stop)?;
            }
            stop.check()?;
            encode(&made)
        });
        Ok(one("output", output.await?))
    }
}
/// Bytes of all inputs of the type that are pictures, and of undeclared ones on a type that takes any.
async fn pictures(ctx: &Context, inputs: &Map) -> Result<IndexMap<String, Bytes>, NodeError> {
    let meta = catalog::meta(&ctx.node_type);
    let mut bytes = IndexMap::new();
    for (name, value) in inputs {
        let declared = meta.and_then(|meta| meta.inputs.iter().find(|input| input.name == *name));
        let wanted = match declared {
            Some(input) => input.ty == "image",
            None => {
                meta.is_some_and(|meta| meta.dynamic_inputs)
                    && value.as_media().is_some_and(|media| media.kind == "image")
            }
        };
        if wanted && let Some(read) = read(ctx, name, value).await? {
            bytes.insert(name.clone(), read);
        }
    }
    Ok(bytes)
}
fn decoded(params: Params, bytes: IndexMap<String, Bytes>, stop: &Stop) -> Result<Job, NodeError> {
    let (mut pictures, mut pixels) = (IndexMap::new(), 0_u64);
    for (name, bytes) in bytes {
        stop.check()?;
        let picture = decode(&name, &bytes)?;
        pixels += u64::from(picture.width()) * u64::from(picture.height());
        // All of them are held at once.
        if pixels > MOST_TOGETHER * MAX_PIXELS {
            let must = format!(
                "is one too many: all pictures together have more than {MOST_TOGETHER} x {MAX_PIXELS} pixels"
            );
            return Err(value_fault(&name, &must));
        }
        pictures.insert(name, picture);
    }
    Ok(Job {
        params,
        stop: stop.clone(),
        pictures,
    })
}
