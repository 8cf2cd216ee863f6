//! Pictures in another size: cut, scaled, turned, with more room around.

use std::borrow::Cow;

use image::{RgbaImage, imageops};

use super::{
    Job, edit,
    pixels::{real, sized},
    warp::{Edge, sample},
};
use crate::{
    node::NodeError,
    nodes::{code::Types, media_io::value_fault},
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.image.CanvasResize", edit(canvas_resize)),
        ("nodetool.image.Crop", edit(crop)),
        ("nodetool.image.Fit", edit(fit)),
        ("nodetool.image.Resize", edit(resize)),
        ("nodetool.image.RotateAndFlip", edit(rotate_and_flip)),
        ("nodetool.image.Scale", edit(scale)),
    ]
}

/// A number of pixels, at least one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to what a side may have"
)]
fn pixels(number: f32) -> u32 {
    number.round().clamp(1.0, 1.0e6) as u32
}
/// A picture scaled; smaller ones are averaged.
pub(super) fn scaled(name: &str, image: &RgbaImage, width: u32, height: u32) -> Result<RgbaImage, NodeError> {
    let (width, height) = sized(name, width, height)?;
    // Between its two steps a picture is as wide as before and as high as it will be.
    sized(name, image.width(), height)?;
    if (width, height) == image.dimensions() {
        return Ok(image.clone());
    }
    // Colours of what cannot be seen must not shine into the rest.
    let clear = image.pixels().any(|pixel| pixel.0[3] < u8::MAX);
    let image = if clear {
        Cow::Owned(weighted(image, true))
    } else {
        Cow::Borrowed(image)
    };
    let out = imageops::resize(image.as_ref(), width, height, imageops::FilterType::CatmullRom);
    Ok(if clear { weighted(&out, false) } else { out })
}
/// Colours multiplied by alpha, or divided.
fn weighted(image: &RgbaImage, multiply: bool) -> RgbaImage {
    let mut out = image.clone();
    for pixel in out.pixels_mut() {
        let [red, green, blue, alpha] = pixel.0;
        let weight = u32::from(alpha);
        let of = |value: u8| {
            let value = u32::from(value);
            let new = if multiply {
                (value * weight + 127) / 255
            } else {
                (value * 255 + weight / 2) / weight.max(1)
            };
            u8::try_from(new).unwrap_or(u8::MAX)
        };
        pixel.0 = [of(red), of(green), of(blue), alpha];
    }
    out
}
/// What is between the sides, as far as the picture goes.
fn crop(job: &Job) -> Result<RgbaImage, NodeError> {
    let image = job.image()?;
    let side = |name: &str, most: u32| job.params.size(name).map(|at| at.min(most));
    let (left, right) = (side("left", image.width())?, side("right", image.width())?);
    let (top, bottom) = (side("top", image.height())?, side("bottom", image.height())?);
    if right <= left || bottom <= top {
        let what = if right <= left { "right" } else { "bottom" };
        let must = format!(
            "leaves nothing of the picture of {}x{}",
            image.width(),
            image.height()
        );
        return Err(value_fault(what, &must));
    }
    Ok(imageops::crop_imm(image, left, top, right - left, bottom - top).to_image())
}
/// To a size; a side of 0 follows from the other one.
fn resize(job: &Job) -> Result<RgbaImage, NodeError> {
    let image = job.image()?;
    let (width, height) = (job.params.size("width")?, job.params.size("height")?);
    let (own_width, own_height) = (real(image.width()), real(image.height()));
    let (width, height) = match (width, height) {
        (0, 0) => image.dimensions(),
        (0, height) => (pixels(real(height) * own_width / own_height), height),
        (width, 0) => (width, pixels(real(width) * own_height / own_width)),
        both => both,
    };
    scaled("width", image, width, height)
}
fn scale(job: &Job) -> Result<RgbaImage, NodeError> {
    let (image, scale) = (job.image()?, job.f("scale")?);
    if scale <= 0.0 {
        return Err(value_fault("scale", &format!("must be above 0, got {scale}")));
    }
    scaled(
        "scale",
        image,
        pixels(real(image.width()) * scale),
        pixels(real(image.height()) * scale),
    )
}
/// Fills a size; what is too much on one side is cut off evenly.
fn fit(job: &Job) -> Result<RgbaImage, NodeError> {
    let image = job.image()?;
    let (width, height) = sized("width", job.params.size("width")?, job.params.size("height")?)?;
    let scale = (real(width) / real(image.width())).max(real(height) / real(image.height()));
    let part = |wanted: u32, own: u32| pixels(real(wanted) / scale).min(own);
    let (cut_width, cut_height) = (part(width, image.width()), part(height, image.height()));
    let (left, top) = ((image.width() - cut_width) / 2, (image.height() - cut_height) / 2);
    let cut = imageops::crop_imm(image, left, top, cut_width, cut_height).to_image();
    scaled("width", &cut, width, height)
}
/// More room, or less, around the picture in its own size; the new room is see-through.
fn canvas_resize(job: &Job) -> Result<RgbaImage, NodeError> {
    let image = job.image()?;
    let (own_width, own_height) = image.dimensions();
    let (width, height, left, top) = match job.params.choice("mode")?.as_str() {
        "padding" => {
            let percent = job.params.choice("padding_unit")? == "percent";
            let room = |name: &str, side: u32| -> Result<u32, NodeError> {
                let room = job.f(name)?;
                let room = if percent { room / 100.0 * real(side) } else { room };
                Ok(if room < 0.5 { 0 } else { pixels(room) })
            };
            let (left, right) = (room("left", own_width)?, room("right", own_width)?);
            let (top, bottom) = (room("top", own_height)?, room("bottom", own_height)?);
            let width = own_width.saturating_add(left).saturating_add(right);
            let height = own_height.saturating_add(top).saturating_add(bottom);
            (width, height, i64::from(left), i64::from(top))
        }
        mode => {
            let (width, height) = if mode == "scale" {
                let scale = job.f("scale")?;
                (pixels(real(own_width) * scale), pixels(real(own_height) * scale))
            } else {
                (job.params.size("width")?, job.params.size("height")?)
            };
            let middle = |new: u32, own: u32| (i64::from(new) - i64::from(own)).div_euclid(2);
            (
                width,
                height,
                middle(width, own_width),
                middle(height, own_height),
            )
        }
    };
    let (width, height) = sized("width", width, height)?;
    let mut out = RgbaImage::new(width, height);
    imageops::replace(&mut out, image, left, top);
    Ok(out)
}
/// Flipped, then turned clockwise; the picture grows so that all of it is seen.
fn rotate_and_flip(job: &Job) -> Result<RgbaImage, NodeError> {
    let angle = job.f("angle")?.rem_euclid(360.0);
    let mut image = job.image()?.clone();
    if job.params.flag("flip_horizontal") {
        imageops::flip_horizontal_in_place(&mut image);
    }
    if job.params.flag("flip_vertical") {
        imageops::flip_vertical_in_place(&mut image);
    }
    let quarter = |turns: f32| (angle - turns * 90.0).abs() < 1.0e-3;
    if quarter(0.0) || quarter(4.0) {
        return Ok(image);
    }
    if quarter(1.0) {
        return Ok(imageops::rotate90(&image));
    }
    if quarter(2.0) {
        imageops::rotate180_in_place(&mut image);
        return Ok(image);
    }
    if quarter(3.0) {
        return Ok(imageops::rotate270(&image));
    }
    let (sin, cos) = angle.to_radians().sin_cos();
    let (width, height) = (real(image.width()), real(image.height()));
    let new_width = pixels((width * cos.abs() + height * sin.abs() - 1.0e-3).ceil());
    let new_height = pixels((width * sin.abs() + height * cos.abs() - 1.0e-3).ceil());
    let (new_width, new_height) = sized("angle", new_width, new_height)?;
    super::pixels::from_fn((new_width, new_height), &job.stop, |x, y| {
        let (dx, dy) = (
            real(x) + 0.5 - real(new_width) / 2.0,
            real(y) + 0.5 - real(new_height) / 2.0,
        );
        let (from_x, from_y) = (cos * dx + sin * dy, cos * dy - sin * dx);
        let colour = sample(
            &image,
            from_x + width / 2.0 - 0.5,
            from_y + height / 2.0 - 0.5,
            Edge::Empty,
        );
        super::pixels::pixel(colour)
    })
}
