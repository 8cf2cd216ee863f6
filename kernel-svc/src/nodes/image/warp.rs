//! Pictures moved, turned and bent. Places between pixels are blended; outside there is nothing, the border, or the picture
//! again.

use image::{Rgba, RgbaImage};

use super::{
    Job, edit,
    matte::fitted,
    pixels::{from_fn, over, parts, pixel, real, sized},
};
use crate::{
    node::NodeError,
    nodes::{code::Types, media_io::value_fault},
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("lib.image.warp.Affine", edit(affine)),
        ("lib.image.warp.CornerPin", edit(corner_pin)),
        ("lib.image.warp.Displace", edit(displace)),
        ("lib.image.warp.Offset", edit(offset)),
        ("lib.image.warp.Pad", edit(pad)),
        ("lib.image.warp.PolarRemap", edit(polar_remap)),
        ("lib.image.warp.Spherize", edit(spherize)),
        ("lib.image.warp.Tile", edit(tile)),
    ]
}

/// What is beyond the border.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    /// Nothing: see-through.
    Empty,
    /// The border, repeated.
    Clamp,
    /// The picture again.
    Repeat,
    /// The picture again, mirrored.
    Mirror,
}
/// 0 border, 1 repeat, 2 mirror.
fn edge(job: &Job) -> Result<Edge, NodeError> {
    Ok(match job.params.int("wrap")? {
        1 => Edge::Repeat,
        2 => Edge::Mirror,
        _ => Edge::Clamp,
    })
}
fn place(at: i64, side: u32, edge: Edge) -> Option<u32> {
    let side = i64::from(side);
    let found = match edge {
        Edge::Empty if !(0..side).contains(&at) => return None,
        Edge::Empty | Edge::Clamp => at.clamp(0, side - 1),
        Edge::Repeat => at.rem_euclid(side),
        Edge::Mirror => {
            let at = at.rem_euclid(2 * side);
            if at < side { at } else { 2 * side - 1 - at }
        }
    };
    u32::try_from(found).ok()
}
/// The colour at a place, in pixels from the middle of the first one.
pub(super) fn sample(image: &RgbaImage, x: f32, y: f32, edge: Edge) -> [f32; 4] {
    if !x.is_finite() || !y.is_finite() || x.abs() > 1.0e9 || y.abs() > 1.0e9 {
        return [0.0; 4];
    }
    let (left, top) = (x.floor(), y.floor());
    let (across, down) = (x - left, y - top);
    #[expect(clippy::cast_possible_truncation, reason = "checked to be small")]
    let (left, top) = (left as i64, top as i64);
    let mut sum = [0.0_f32; 4];
    for (dx, dy, weight) in [
        (0, 0, (1.0 - across) * (1.0 - down)),
        (1, 0, across * (1.0 - down)),
        (0, 1, (1.0 - across) * down),
        (1, 1, across * down),
    ] {
        if weight <= 0.0 {
            continue;
        }
        if let (Some(x), Some(y)) = (
            place(left + dx, image.width(), edge),
            place(top + dy, image.height(), edge),
        ) {
            let [red, green, blue, alpha] = parts(*image.get_pixel(x, y));
            let weight = weight * alpha;
            sum = [
                sum[0] + red * weight,
                sum[1] + green * weight,
                sum[2] + blue * weight,
                sum[3] + weight,
            ];
        }
    }
    let [red, green, blue, alpha] = sum;
    if alpha <= 0.0 {
        return [0.0; 4];
    }
    [red / alpha, green / alpha, blue / alpha, alpha]
}
/// A picture by where each of its pixels comes from.
fn remap(
    job: &Job,
    image: &RgbaImage,
    size: (u32, u32),
    edge: Edge,
    from: impl Fn(f32, f32) -> (f32, f32),
) -> Result<RgbaImage, NodeError> {
    from_fn(size, &job.stop, |x, y| {
        let (x, y) = from(real(x), real(y));
        pixel(sample(image, x, y, edge))
    })
}

/// `x' = m00·x + m01·y + tx`, `y' = m10·x + m11·y + ty`, in pixels.
fn affine(job: &Job) -> Result<RgbaImage, NodeError> {
    let (a, b, tx) = (job.f("m00")?, job.f("m01")?, job.f("tx")?);
    let (c, d, ty) = (job.f("m10")?, job.f("m11")?, job.f("ty")?);
    let image = job.image()?;
    let side = |name: &str, own: u32| {
        job.params
            .size(name)
            .map(|side| if side == 0 { own } else { side })
    };
    let (width, height) = (
        side("target_width", image.width())?,
        side("target_height", image.height())?,
    );
    let size = sized("target_width", width, height)?;
    let scale = a * d - b * c;
    if !scale.is_finite() || scale.abs() < 1.0e-9 {
        return Err(value_fault(
            "m00",
            "and the other numbers of the matrix leave nothing of the picture",
        ));
    }
    remap(job, image, size, Edge::Empty, |x, y| {
        let (x, y) = (x - tx, y - ty);
        ((d * x - b * y) / scale, (a * y - c * x) / scale)
    })
}
/// A projection; places are parts of the size, 0 to 1.
fn corner_pin(job: &Job) -> Result<RgbaImage, NodeError> {
    let h = |name: &str| job.params.f64(name);
    let m = [
        h("h00")?,
        h("h01")?,
        h("h02")?,
        h("h10")?,
        h("h11")?,
        h("h12")?,
        h("h20")?,
        h("h21")?,
        1.0,
    ];
    let [a, b, c, d, e, f, g, k, i] = m;
    let scale = a * (e * i - f * k) - b * (d * i - f * g) + c * (d * k - e * g);
    if !scale.is_finite() || scale.abs() < 1.0e-12 {
        return Err(value_fault(
            "h00",
            "and the other numbers of the projection leave nothing of the picture",
        ));
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "single precision is enough for places"
    )]
    let back = [
        e * i - f * k,
        c * k - b * i,
        b * f - c * e,
        f * g - d * i,
        a * i - c * g,
        c * d - a * f,
        d * k - e * g,
        b * g - a * k,
        a * e - b * d,
    ]
    .map(|number| number as f32);
    let image = job.image()?;
    let (width, height) = (real(image.width()), real(image.height()));
    remap(job, image, image.dimensions(), Edge::Empty, |x, y| {
        let (u, v) = ((x + 0.5) / width, (y + 0.5) / height);
        let depth = back[6] * u + back[7] * v + back[8];
        let across = (back[0] * u + back[1] * v + back[2]) / depth;
        let down = (back[3] * u + back[4] * v + back[5]) / depth;
        (across * width - 0.5, down * height - 0.5)
    })
}
/// Moves each pixel by the red (across) and green (down) of another picture; middle grey moves nothing.
fn displace(job: &Job) -> Result<RgbaImage, NodeError> {
    let image = job.image()?;
    let map = fitted("displacement", job.picture("displacement")?, image.dimensions())?;
    let across = job.f("amount_x")? * real(image.width());
    let down = job.f("amount_y")? * real(image.height());
    from_fn(image.dimensions(), &job.stop, |x, y| {
        let Rgba([red, green, _, _]) = *map.get_pixel(x, y);
        // 128 is the middle, exactly.
        let shift = |value: u8| (f32::from(value) - 128.0) / 127.0;
        pixel(sample(
            image,
            real(x) + shift(red) * across,
            real(y) + shift(green) * down,
            Edge::Clamp,
        ))
    })
}
fn offset(job: &Job) -> Result<RgbaImage, NodeError> {
    let image = job.image()?;
    let (dx, dy) = (
        job.f("dx")? * real(image.width()),
        job.f("dy")? * real(image.height()),
    );
    remap(job, image, image.dimensions(), edge(job)?, |x, y| {
        (x - dx, y - dy)
    })
}
/// Borders in parts of the size, in a colour.
fn pad(job: &Job) -> Result<RgbaImage, NodeError> {
    let image = job.image()?;
    let (width, height) = image.dimensions();
    let border = |name: &str, side: u32| -> Result<u32, NodeError> {
        let pixels = (job.f(name)?.min(64.0) * real(side)).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive and bounded"
        )]
        Ok(pixels as u32)
    };
    let (left, right) = (border("left", width)?, border("right", width)?);
    let (top, bottom) = (border("top", height)?, border("bottom", height)?);
    let size = sized(
        "left",
        width.saturating_add(left).saturating_add(right),
        height.saturating_add(top).saturating_add(bottom),
    )?;
    let color = job.color("color")?;
    from_fn(size, &job.stop, |x, y| {
        let inside = x
            .checked_sub(left)
            .zip(y.checked_sub(top))
            .filter(|(x, y)| *x < width && *y < height);
        pixel(inside.map_or(color, |(x, y)| over(color, parts(*image.get_pixel(x, y)))))
    })
}
/// 0: around the middle becomes across, from the middle becomes down. 1: the other way round.
fn polar_remap(job: &Job) -> Result<RgbaImage, NodeError> {
    let mode = job.params.int("mode")?;
    let image = job.image()?;
    let (width, height) = (real(image.width()), real(image.height()));
    let (middle_x, middle_y) = ((width - 1.0) / 2.0, (height - 1.0) / 2.0);
    let turn = std::f32::consts::TAU;
    remap(job, image, image.dimensions(), Edge::Clamp, |x, y| {
        if mode == 0 {
            let (angle, away) = ((x + 0.5) / width * turn, (y + 0.5) / height);
            (
                middle_x + angle.cos() * away * width / 2.0,
                middle_y + angle.sin() * away * height / 2.0,
            )
        } else {
            let (dx, dy) = ((x - middle_x) / (width / 2.0), (y - middle_y) / (height / 2.0));
            let angle = dy.atan2(dx).rem_euclid(turn) / turn;
            (angle * width - 0.5, dx.hypot(dy) * height - 0.5)
        }
    })
}
/// Bulges the middle, or draws it in when negative.
fn spherize(job: &Job) -> Result<RgbaImage, NodeError> {
    let amount = job.f("amount")?;
    let image = job.image()?;
    let (half_x, half_y) = (real(image.width()) / 2.0, real(image.height()) / 2.0);
    remap(job, image, image.dimensions(), Edge::Clamp, |x, y| {
        let (dx, dy) = ((x + 0.5 - half_x) / half_x, (y + 0.5 - half_y) / half_y);
        let away = dx.hypot(dy);
        if away >= 1.0 || away <= 0.0 {
            return (x, y);
        }
        let bent = away.powf(1.0 + amount.max(0.0))
            * if amount < 0.0 {
                away.powf(amount / 2.0)
            } else {
                1.0
            };
        let scale = bent.min(1.0) / away;
        (
            half_x + dx * scale * half_x - 0.5,
            half_y + dy * scale * half_y - 0.5,
        )
    })
}
/// The picture so many times across and down, in the same size.
fn tile(job: &Job) -> Result<RgbaImage, NodeError> {
    let (across, down) = (job.f("tiles_x")?, job.f("tiles_y")?);
    let image = job.image()?;
    remap(job, image, image.dimensions(), edge(job)?, |x, y| {
        ((x + 0.5) * across - 0.5, (y + 0.5) * down - 0.5)
    })
}
