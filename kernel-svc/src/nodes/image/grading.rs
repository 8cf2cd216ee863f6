//! Grading of colours, the way films are.

use image::RgbaImage;

use super::{
    Job,
    color::{balanced, saturated, tones, turned},
    edit,
    pixels::{curve, each, from_hsv, hsv, lerp, luma, smooth},
};
use crate::{node::NodeError, nodes::code::Types};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("lib.image.color_grading.CDL", edit(cdl)),
        ("lib.image.color_grading.ColorBalance", edit(color_balance)),
        ("lib.image.color_grading.Curves", edit(curves)),
        ("lib.image.color_grading.Exposure", edit(exposure)),
        ("lib.image.color_grading.HSLAdjust", edit(hsl_adjust)),
        ("lib.image.color_grading.LiftGammaGain", edit(lift_gamma_gain)),
        (
            "lib.image.color_grading.SaturationVibrance",
            edit(saturation_vibrance),
        ),
        ("lib.image.color_grading.SplitToning", edit(split_toning)),
    ]
}

fn rgb(job: &Job, prefix: &str) -> Result<[f32; 3], NodeError> {
    Ok([
        job.f(&format!("{prefix}_r"))?,
        job.f(&format!("{prefix}_g"))?,
        job.f(&format!("{prefix}_b"))?,
    ])
}
/// Applies a function of a channel's value and its setting.
fn zip3(color: [f32; 3], a: [f32; 3], f: impl Fn(f32, f32) -> f32) -> [f32; 3] {
    let ([red, green, blue], [a, b, c]) = (color, a);
    [f(red, a), f(green, b), f(blue, c)]
}
/// Slope, offset and power of each channel, then saturation (ASC CDL).
fn cdl(job: &Job) -> Result<RgbaImage, NodeError> {
    let (slope, offset, power) = (rgb(job, "slope")?, rgb(job, "offset")?, rgb(job, "power")?);
    let saturation = job.f("saturation")?;
    each(job.image()?, &job.stop, |color| {
        let color = zip3(
            zip3(color, slope, |value, slope| value * slope),
            offset,
            |value, offset| value + offset,
        );
        let color = zip3(color, power, |value, power| value.clamp(0.0, 1.0).powf(power));
        saturated(color, saturation)
    })
}
fn color_balance(job: &Job) -> Result<RgbaImage, NodeError> {
    let (temperature, tint) = (job.f("temperature")?, job.f("tint")?);
    each(job.image()?, &job.stop, |color| {
        balanced(color, temperature, tint)
    })
}
/// A hump of height 1 around a place, and of nothing half a unit away.
fn hump(value: f32, place: f32) -> f32 {
    let away = ((value - place) * 2.0).clamp(-1.0, 1.0);
    (1.0 - away * away).powi(2)
}
fn curves(job: &Job) -> Result<RgbaImage, NodeError> {
    let (black, white) = (job.f("black_point")?, job.f("white_point")?);
    let (shadows, midtones, highlights) = (job.f("shadows")?, job.f("midtones")?, job.f("highlights")?);
    let own = [
        job.f("red_midtones")?,
        job.f("green_midtones")?,
        job.f("blue_midtones")?,
    ];
    let span = (white - black).max(1.0 / 255.0);
    curve(job.image()?, &job.stop, |channel, value| {
        let value = ((value - black) / span).clamp(0.0, 1.0);
        let middle = midtones + own.get(channel).copied().unwrap_or_default();
        value
            + shadows * hump(value, 0.25) * 0.5
            + middle * hump(value, 0.5) * 0.5
            + highlights * hump(value, 0.75) * 0.5
    })
}
fn exposure(job: &Job) -> Result<RgbaImage, NodeError> {
    let (gain, contrast) = (job.f("exposure")?.exp2(), 1.0 + job.f("contrast")?);
    let (highlights, shadows) = (job.f("highlights")?, job.f("shadows")?);
    let (whites, blacks) = (job.f("whites")?, job.f("blacks")?);
    each(job.image()?, &job.stop, |color| {
        let color = color.map(|value| ((value * gain) - 0.5) * contrast + 0.5);
        let light = luma(color).clamp(0.0, 1.0);
        let ends = 0.25 * (whites * smooth(0.75, 1.0, light) + blacks * (1.0 - smooth(0.0, 0.25, light)));
        let shift = tones(light, shadows, highlights) + ends;
        color.map(|value| value + shift)
    })
}
/// Middle and half width of a range of hues, in degrees.
fn range(name: &str) -> Option<(f32, f32)> {
    Some(match name {
        "reds" => (0.0, 30.0),
        "oranges" => (30.0, 20.0),
        "yellows" => (60.0, 25.0),
        "greens" => (120.0, 45.0),
        "cyans" => (180.0, 30.0),
        "blues" => (230.0, 35.0),
        "purples" => (275.0, 25.0),
        "magentas" => (315.0, 30.0),
        _ => return None,
    })
}
/// Hue by up to half a turn, saturation and brightness of one range of hues.
fn hsl_adjust(job: &Job) -> Result<RgbaImage, NodeError> {
    let range = range(&job.params.choice("color_range")?);
    let (turn, saturation, light) = (
        job.f("hue_shift")? / 2.0,
        job.f("saturation")?,
        job.f("luminance")?,
    );
    each(job.image()?, &job.stop, |color| {
        let [hue, strength, _] = hsv(color);
        let weight = range.map_or(1.0, |(middle, half)| {
            let away = (hue * 360.0 - middle + 180.0).rem_euclid(360.0) - 180.0;
            // Greys have no hue.
            (1.0 - smooth(half, half * 1.5, away.abs())) * smooth(0.0, 0.1, strength)
        });
        let changed = saturated(turned(color, turn * weight), 1.0 + saturation * weight);
        changed.map(|value| value + 0.5 * light * weight)
    })
}
fn lift_gamma_gain(job: &Job) -> Result<RgbaImage, NodeError> {
    let (lift, gamma, gain) = (rgb(job, "lift")?, rgb(job, "gamma")?, rgb(job, "gain")?);
    let (all_lift, all_gamma, all_gain) = (
        job.f("lift_master")?,
        job.f("gamma_master")?,
        job.f("gain_master")?,
    );
    each(job.image()?, &job.stop, |color| {
        let color = zip3(color, lift, |value, lift| {
            value + (lift + all_lift) * (1.0 - value)
        });
        let color = zip3(color, gain, |value, gain| value * gain * all_gain);
        zip3(color, gamma, |value, gamma| {
            value.clamp(0.0, 1.0).powf(1.0 / (gamma * all_gamma))
        })
    })
}
/// Vibrance saturates most what is least saturated.
fn saturation_vibrance(job: &Job) -> Result<RgbaImage, NodeError> {
    let (saturation, vibrance) = (job.f("saturation")?, job.f("vibrance")?);
    each(job.image()?, &job.stop, |color| {
        let [_, strength, _] = hsv(color);
        saturated(color, (1.0 + saturation) * (1.0 + vibrance * (1.0 - strength)))
    })
}
fn split_toning(job: &Job) -> Result<RgbaImage, NodeError> {
    let shadow = (job.f("shadow_hue")? / 360.0, job.f("shadow_saturation")?);
    let light = (job.f("highlight_hue")? / 360.0, job.f("highlight_saturation")?);
    let balance = job.f("balance")?;
    let (dark_tone, light_tone) = (from_hsv([shadow.0, 1.0, 1.0]), from_hsv([light.0, 1.0, 1.0]));
    each(job.image()?, &job.stop, |color| {
        toned(color, (dark_tone, shadow.1), (light_tone, light.1), balance)
    })
}
/// Tints dark and light places; the brightness stays about the same.
pub(super) fn toned(
    color: [f32; 3],
    dark: ([f32; 3], f32),
    light: ([f32; 3], f32),
    balance: f32,
) -> [f32; 3] {
    let brightness = luma(color);
    let part = smooth(0.0, 1.0, (brightness + 0.5 * balance).clamp(0.0, 1.0));
    let tint = |color: [f32; 3], (tone, amount): ([f32; 3], f32), part: f32| {
        let middle = luma(tone);
        zip3(color, tone, |value, tone| {
            value + (tone - middle) * amount * part * 0.5
        })
    };
    tint(tint(color, dark, 1.0 - part), light, part)
}
/// A film look in parts of its strength.
pub(super) fn mixed(from: [f32; 3], to: [f32; 3], part: f32) -> [f32; 3] {
    zip3(from, to, |from, to| lerp(from, to, part))
}
