//! Brightness, contrast, hue and saturation.

use image::{Rgba, RgbaImage};

use super::{
    Job, edit, masked,
    pixels::{curve, each, from_fn, from_hsv, hsv, lerp, luma, smooth},
};
use crate::{node::NodeError, nodes::code::Types};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("lib.image.color.BrightnessContrast", masked(brightness_contrast)),
        ("lib.image.color.ChannelSplit", edit(channel_split)),
        ("lib.image.color.Exposure", masked(exposure)),
        ("lib.image.color.Grade", edit(grade)),
        ("lib.image.color.HSB", masked(hsb)),
        ("lib.image.color.Invert", masked(invert)),
        ("lib.image.color.Posterize", masked(posterize)),
    ]
}

/// What older files scale by: an input that the type no longer has, 1 when it is not given.
fn factor(job: &Job) -> Result<f32, NodeError> {
    let factor = job.params.args().number("factor", 1.0)?;
    if !(0.0..=100.0).contains(&factor) {
        let must = format!("must be between 0 and 100, got {factor}");
        return Err(crate::nodes::media_io::value_fault("factor", &must));
    }
    job.params.f("factor").map(|read| {
        if job.params.args().value("factor").is_null() {
            1.0
        } else {
            read
        }
    })
}
fn brightness_contrast(job: &Job) -> Result<RgbaImage, NodeError> {
    let (brightness, contrast, factor) = (job.f("brightness")?, job.f("contrast")?, factor(job)?);
    curve(job.image()?, &job.stop, |_, value| {
        (value * factor - 0.5) * contrast + 0.5 + brightness
    })
}
/// One channel as a grey picture.
fn channel_split(job: &Job) -> Result<RgbaImage, NodeError> {
    let channel = usize::try_from(job.params.int("mode")?).unwrap_or_default();
    let image = job.image()?;
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let value = image.get_pixel(x, y).0.get(channel).copied().unwrap_or_default();
        Rgba([value, value, value, u8::MAX])
    })
}
fn exposure(job: &Job) -> Result<RgbaImage, NodeError> {
    let gain = job.f("stops")?.exp2();
    curve(job.image()?, &job.stop, |_, value| value * gain)
}
fn hsb(job: &Job) -> Result<RgbaImage, NodeError> {
    let (turn, saturation, brightness) = (
        job.f("hue")? / 360.0,
        job.f("saturation")? * factor(job)?,
        job.f("brightness")?,
    );
    each(job.image()?, &job.stop, |color| {
        let [hue, strength, value] = hsv(color);
        from_hsv([
            hue + turn,
            (strength * saturation).min(1.0),
            (value * brightness).min(1.0),
        ])
    })
}
fn invert(job: &Job) -> Result<RgbaImage, NodeError> {
    let amount = job.f("amount")?;
    curve(job.image()?, &job.stop, |_, value| {
        lerp(value, 1.0 - value, amount)
    })
}
fn posterize(job: &Job) -> Result<RgbaImage, NodeError> {
    let steps = job.f("levels")? - 1.0;
    curve(job.image()?, &job.stop, |_, value| {
        (value * steps).round() / steps
    })
}
/// Several adjustments at once, in this order: balance, light, contrast, colour.
fn grade(job: &Job) -> Result<RgbaImage, NodeError> {
    let (brightness, contrast) = (job.f("brightness")?, job.f("contrast")?);
    let (saturation, turn) = (job.f("saturation")?, job.f("hue")? / 360.0);
    let (temperature, tint) = (job.f("temperature")?, job.f("tint")?);
    let (shadows, highlights) = (job.f("shadows")?, job.f("highlights")?);
    each(job.image()?, &job.stop, |color| {
        let color = balanced(color, temperature, tint);
        let light = tones(luma(color), shadows, highlights);
        let color = color.map(|value| (value + light - 0.5) * contrast + 0.5 + brightness);
        let color = turned(color.map(|value| value.clamp(0.0, 1.0)), turn);
        saturated(color, saturation)
    })
}
/// Warmer is more red and less blue; a tint is more magenta and less green.
pub(super) fn balanced([red, green, blue]: [f32; 3], temperature: f32, tint: f32) -> [f32; 3] {
    [
        red + 0.2 * temperature + 0.1 * tint,
        green - 0.2 * tint,
        blue - 0.2 * temperature + 0.1 * tint,
    ]
}
/// What is added to dark and to light places.
pub(super) fn tones(light: f32, shadows: f32, highlights: f32) -> f32 {
    0.25 * (shadows * (1.0 - smooth(0.0, 0.5, light)) + highlights * smooth(0.5, 1.0, light))
}
/// Away from grey, or towards it.
pub(super) fn saturated(color: [f32; 3], amount: f32) -> [f32; 3] {
    let grey = luma(color);
    color.map(|value| lerp(grey, value, amount))
}
/// Hue, in turns; the brightness stays.
pub(super) fn turned(color: [f32; 3], turn: f32) -> [f32; 3] {
    if turn == 0.0 {
        return color;
    }
    let [hue, saturation, value] = hsv(color);
    from_hsv([hue + turn, saturation, value])
}
