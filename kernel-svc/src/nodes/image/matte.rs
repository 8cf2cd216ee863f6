//! Masks, alpha and keys: what is seen of a picture.
//!
//! A mask is read by its brightness times its alpha; one of another size is stretched over the picture.

use std::borrow::Cow;

use image::{Rgba, RgbaImage, imageops::FilterType};

use super::{
    Job, edit,
    filter::between,
    looks::grey,
    pixels::{byte, from_fn, hsv, lerp, luma, part, parts, pixel, sized, smooth},
};
use crate::{
    node::NodeError,
    nodes::{code::Types, media_io::Stop},
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("lib.image.Mask", edit(mask)),
        ("lib.image.channel.Merge", edit(merge)),
        ("lib.image.channel.Shuffle", edit(shuffle)),
        ("lib.image.keyer.ChromaKey", edit(chroma_key)),
        ("lib.image.keyer.LumaKey", edit(luma_key)),
        ("lib.image.mask.Apply", edit(apply)),
        ("lib.image.mask.FromImage", edit(from_image)),
        ("lib.image.mask.Invert", edit(invert)),
        ("nodetool.image.Channels", edit(channels)),
    ]
}

/// A picture in the size of another.
///
/// # Errors
/// There would be too many pixels between the two steps of stretching it. The error names the input.
pub(super) fn fitted<'a>(
    name: &str,
    image: &'a RgbaImage,
    (width, height): (u32, u32),
) -> Result<Cow<'a, RgbaImage>, NodeError> {
    if image.dimensions() == (width, height) {
        return Ok(Cow::Borrowed(image));
    }
    sized(name, image.width(), height)?;
    let stretched = image::imageops::resize(image, width, height, FilterType::Triangle);
    Ok(Cow::Owned(stretched))
}
fn strength(mask: &RgbaImage, x: u32, y: u32) -> f32 {
    let parts = parts(*mask.get_pixel(x, y));
    grey(parts) * parts[3]
}
/// What was made where the mask is white, and what was before where it is black.
pub(super) fn within(
    before: &RgbaImage,
    made: RgbaImage,
    mask: &RgbaImage,
    stop: &Stop,
) -> Result<RgbaImage, NodeError> {
    let mask = fitted("mask", mask, before.dimensions())?;
    between(before, &made, stop, |x, y| strength(&mask, x, y))
}
/// The first picture where the mask is white, the second one elsewhere.
fn mask(job: &Job) -> Result<RgbaImage, NodeError> {
    let (first, second, mask) = (
        job.picture("image1")?,
        job.picture("image2")?,
        job.picture("mask")?,
    );
    let (second, mask) = (
        fitted("image2", second, first.dimensions())?,
        fitted("mask", mask, first.dimensions())?,
    );
    between(&second, first, &job.stop, |x, y| strength(&mask, x, y))
}
/// Takes the alpha of a picture from a channel of another; channel 4 is its brightness.
fn merge(job: &Job) -> Result<RgbaImage, NodeError> {
    let channel = usize::try_from(job.params.int("alpha_channel")?).unwrap_or_default();
    let image = job.image()?;
    let alpha = fitted("alpha", job.picture("alpha")?, image.dimensions())?;
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let (Rgba([red, green, blue, _]), from) = (*image.get_pixel(x, y), *alpha.get_pixel(x, y));
        let value = from.0.get(channel).copied();
        Rgba([red, green, blue, value.unwrap_or_else(|| byte(grey(parts(from))))])
    })
}
fn shuffle(job: &Job) -> Result<RgbaImage, NodeError> {
    let from = |name: &str| {
        job.params
            .int(name)
            .map(|at| usize::try_from(at).unwrap_or_default())
    };
    let places = [from("r_from")?, from("g_from")?, from("b_from")?, from("a_from")?];
    let image = job.image()?;
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let old = image.get_pixel(x, y).0;
        Rgba(places.map(|place| old.get(place).copied().unwrap_or_default()))
    })
}
/// One channel as a grey picture.
fn channels(job: &Job) -> Result<RgbaImage, NodeError> {
    let channel = job.params.choice("channel")?;
    let image = job.image()?;
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let here = *image.get_pixel(x, y);
        let [red, green, blue, alpha] = here.0;
        let value = match channel.as_str() {
            "red" => red,
            "green" => green,
            "blue" => blue,
            "alpha" => alpha,
            _ => byte(grey(parts(here))),
        };
        Rgba([value, value, value, u8::MAX])
    })
}
/// Alpha by a mask; the picture's own alpha counts as well.
fn apply(job: &Job) -> Result<RgbaImage, NodeError> {
    let inverted = job.params.int("invert")? != 0;
    let image = job.image()?;
    let mask = fitted("mask", job.picture("mask")?, image.dimensions())?;
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let strength = strength(&mask, x, y);
        let Rgba([red, green, blue, alpha]) = *image.get_pixel(x, y);
        let seen = if inverted { 1.0 - strength } else { strength };
        Rgba([red, green, blue, byte(part(alpha) * seen)])
    })
}
/// A mask from a channel: 0 alpha, 1 brightness, 2 red, 3 green, 4 blue, 5 saturation.
fn from_image(job: &Job) -> Result<RgbaImage, NodeError> {
    let (mode, inverted) = (job.params.int("mode")?, job.params.int("invert")? != 0);
    let image = job.image()?;
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let [red, green, blue, alpha] = parts(*image.get_pixel(x, y));
        let value = match mode {
            0 => alpha,
            2 => red,
            3 => green,
            4 => blue,
            5 => hsv([red, green, blue])[1],
            _ => luma([red, green, blue]),
        };
        let value = if inverted { 1.0 - value } else { value };
        pixel([value, value, value, 1.0])
    })
}
fn invert(job: &Job) -> Result<RgbaImage, NodeError> {
    super::pixels::curve(job.image()?, &job.stop, |_, value| 1.0 - value)
}
/// Blue and red differences of a colour: what remains of it without brightness.
fn chroma([red, green, blue]: [f32; 3]) -> (f32, f32) {
    let light = 0.299 * red + 0.587 * green + 0.114 * blue;
    ((blue - light) * 0.564, (red - light) * 0.713)
}
/// Makes what is near a colour see-through, and takes its shine from the rest.
fn chroma_key(job: &Job) -> Result<RgbaImage, NodeError> {
    let (tolerance, softness, spill) = (job.f("tolerance")?, job.f("softness")?, job.f("spill")?);
    let [kr, kg, kb, _] = job.color("key_color")?;
    let (key_b, key_r) = chroma([kr, kg, kb]);
    // The channel that is strongest in the key shines onto the rest.
    let strongest = if kg >= kr && kg >= kb {
        1
    } else if kb >= kr {
        2
    } else {
        0
    };
    let image = job.image()?;
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let [red, green, blue, alpha] = parts(*image.get_pixel(x, y));
        let (b, r) = chroma([red, green, blue]);
        let seen = smooth(tolerance, tolerance + softness, (b - key_b).hypot(r - key_r));
        let mut color = [red, green, blue];
        let others: f32 = (0..3)
            .filter(|at| *at != strongest)
            .map(|at| color[at])
            .sum::<f32>()
            / 2.0;
        if color[strongest] > others {
            color[strongest] = lerp(color[strongest], others, spill);
        }
        pixel([color[0], color[1], color[2], alpha * seen])
    })
}
/// Keeps what is between two brightnesses.
fn luma_key(job: &Job) -> Result<RgbaImage, NodeError> {
    let (low, high, softness) = (job.f("low")?, job.f("high")?, job.f("softness")?);
    let image = job.image()?;
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let [red, green, blue, alpha] = parts(*image.get_pixel(x, y));
        let light = luma([red, green, blue]);
        // At the ends of the scale there is nothing to be soft towards.
        let above = if low <= 0.0 {
            1.0
        } else {
            smooth(low - softness, low, light)
        };
        let below = if high >= 1.0 {
            1.0
        } else {
            1.0 - smooth(high, high + softness, light)
        };
        pixel([red, green, blue, alpha * above * below])
    })
}
