//! Pictures as bytes and back, pixel by pixel, and colours as texts.

use std::io::Cursor;

use atelier_proto::value::Value;
use image::{
    DynamicImage, ExtendedColorType, ImageDecoder, ImageEncoder, ImageReader, Limits, Rgba, RgbaImage,
    codecs::png::{CompressionType, FilterType, PngEncoder},
};

use crate::{
    node::NodeError,
    nodes::{
        args::text_of,
        media_io::{Stop, made, value_fault},
    },
};

/// Largest picture, in pixels: 256 MiB in memory.
pub(in crate::nodes) const MAX_PIXELS: u64 = 64 * 1024 * 1024;
/// Longest side, in pixels.
const MAX_SIDE: u32 = 32_768;
/// What a decoder may take besides, in bytes.
const MAX_ALLOC: u64 = 512 * 1024 * 1024;

/// A size that a picture may have.
///
/// # Errors
/// A side is zero, or there are too many pixels. The error names the input.
pub(in crate::nodes) fn sized(name: &str, width: u32, height: u32) -> Result<(u32, u32), NodeError> {
    if width == 0 || height == 0 {
        return Err(value_fault(
            name,
            &format!("gives a picture without pixels: {width}x{height}"),
        ));
    }
    if width > MAX_SIDE || height > MAX_SIDE || u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(value_fault(
            name,
            &format!(
                "gives a picture of {width}x{height}; at most {MAX_PIXELS} pixels and {MAX_SIDE} on a side can be worked on"
            ),
        ));
    }
    Ok((width, height))
}
fn unreadable(name: &str) -> NodeError {
    value_fault(
        name,
        "is no picture that can be read: png, jpeg, webp, gif and bmp can",
    )
}
/// A decoder whose size was checked, before anything of the picture is unpacked.
fn decoder<'a>(
    name: &str,
    bytes: &'a [u8],
) -> Result<(impl ImageDecoder + 'a, Option<image::ImageFormat>), NodeError> {
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|_| unreadable(name))?;
    let format = reader.format();
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_ALLOC);
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(|error| match error {
        image::ImageError::Limits(_) => value_fault(
            name,
            &format!("is a picture of more than {MAX_PIXELS} pixels, or {MAX_SIDE} on a side"),
        ),
        _ => unreadable(name),
    })?;
    let (width, height) = decoder.dimensions();
    sized(name, width, height)?;
    if decoder.total_bytes() > MAX_ALLOC {
        return Err(value_fault(
            name,
            &format!("is a picture that takes more than {MAX_ALLOC} bytes"),
        ));
    }
    Ok((decoder, format))
}
/// A picture, the way up that its camera says.
///
/// # Errors
/// The bytes are no picture, or it is too large. The error names the input.
pub(in crate::nodes) fn decode(name: &str, bytes: &[u8]) -> Result<RgbaImage, NodeError> {
    let (mut decoder, _) = decoder(name, bytes)?;
    let orientation = decoder.orientation();
    let mut picture = DynamicImage::from_decoder(decoder).map_err(|_| unreadable(name))?;
    if let Ok(orientation) = orientation {
        picture.apply_orientation(orientation);
    }
    Ok(picture.into_rgba8())
}
/// What a picture says of itself, without unpacking it.
pub(super) struct Facts {
    pub format: &'static str,
    pub mode: &'static str,
    pub channels: i64,
    pub width: u32,
    pub height: u32,
}
/// Format and size.
pub(super) fn facts(name: &str, bytes: &[u8]) -> Result<Facts, NodeError> {
    let (mut decoder, format) = decoder(name, bytes)?;
    let (width, height) = decoder.dimensions();
    let turned = decoder.orientation().is_ok_and(|turn| {
        use image::metadata::Orientation as Turn;
        matches!(
            turn,
            Turn::Rotate90 | Turn::Rotate270 | Turn::Rotate90FlipH | Turn::Rotate270FlipH
        )
    });
    let (width, height) = if turned { (height, width) } else { (width, height) };
    let (mode, channels) = match decoder.color_type().channel_count() {
        1 => ("L", 1),
        2 => ("LA", 2),
        3 => ("RGB", 3),
        _ => ("RGBA", 4),
    };
    let format = format.and_then(|format| format.extensions_str().first()).copied();
    Ok(Facts {
        format: match format {
            Some("jpg") => "JPEG",
            Some("png") => "PNG",
            Some("webp") => "WEBP",
            Some("gif") => "GIF",
            Some("bmp") => "BMP",
            _ => "",
        },
        mode,
        channels,
        width,
        height,
    })
}
/// A picture as a value: PNG, without alpha when it has none.
pub(in crate::nodes) fn encode(picture: &RgbaImage) -> Result<Value, NodeError> {
    made("image", "image/png", png(picture)?)
}
/// A picture as PNG. Equal pictures give equal bytes.
pub(super) fn png(picture: &RgbaImage) -> Result<Vec<u8>, NodeError> {
    let mut bytes = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut bytes, CompressionType::Fast, FilterType::Adaptive);
    let (width, height) = picture.dimensions();
    let written = if picture.pixels().all(|pixel| pixel.0[3] == u8::MAX) {
        encoder.write_image(&opaque(picture), width, height, ExtendedColorType::Rgb8)
    } else {
        encoder.write_image(picture, width, height, ExtendedColorType::Rgba8)
    };
    written.map_err(|error| NodeError::new(format!("the picture cannot be written: {error}")))?;
    Ok(bytes)
}
/// Red, green and blue in a row.
pub(super) fn opaque(picture: &RgbaImage) -> Vec<u8> {
    picture
        .pixels()
        .flat_map(|Rgba([red, green, blue, _])| [*red, *green, *blue])
        .collect()
}

/// A part of a channel, 0 to 1, as a byte.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
pub(in crate::nodes) fn byte(part: f32) -> u8 {
    (part.clamp(0.0, 1.0) * 255.0).round() as u8
}
/// A byte as a part of 1.
pub(in crate::nodes) fn part(byte: u8) -> f32 {
    f32::from(byte) / 255.0
}
/// A pixel in parts.
pub(super) fn parts(pixel: Rgba<u8>) -> [f32; 4] {
    pixel.0.map(part)
}
/// Parts as a pixel.
pub(super) fn pixel(parts: [f32; 4]) -> Rgba<u8> {
    Rgba(parts.map(byte))
}
/// A number of pixels for arithmetic.
#[expect(clippy::cast_precision_loss, reason = "sides are far below 2^24")]
pub(in crate::nodes) fn real(number: u32) -> f32 {
    number as f32
}
/// Rows between two looks at whether to stop.
const ROWS: u32 = 64;

/// A picture of a size from its pixels by place.
pub(super) fn from_fn(
    (width, height): (u32, u32),
    stop: &Stop,
    f: impl Fn(u32, u32) -> Rgba<u8>,
) -> Result<RgbaImage, NodeError> {
    let mut picture = RgbaImage::new(width, height);
    for (y, row) in (0_u32..).zip(picture.rows_mut()) {
        if y % ROWS == 0 {
            stop.check()?;
        }
        for (x, place) in (0_u32..).zip(row) {
            *place = f(x, y);
        }
    }
    Ok(picture)
}
/// Each colour anew; alpha stays.
pub(super) fn each(
    picture: &RgbaImage,
    stop: &Stop,
    f: impl Fn([f32; 3]) -> [f32; 3],
) -> Result<RgbaImage, NodeError> {
    from_fn(picture.dimensions(), stop, |x, y| {
        let [red, green, blue, alpha] = parts(*picture.get_pixel(x, y));
        let [red, green, blue] = f([red, green, blue]);
        pixel([red, green, blue, alpha])
    })
}
/// Each channel by itself, by a table; alpha stays.
pub(super) fn curve(
    picture: &RgbaImage,
    stop: &Stop,
    f: impl Fn(usize, f32) -> f32,
) -> Result<RgbaImage, NodeError> {
    let table =
        |channel: usize| -> Vec<u8> { (0..=u8::MAX).map(|value| byte(f(channel, part(value)))).collect() };
    let tables = [table(0), table(1), table(2)];
    let look = |channel: usize, value: u8| {
        tables
            .get(channel)
            .and_then(|table| table.get(usize::from(value)))
            .copied()
    };
    from_fn(picture.dimensions(), stop, |x, y| {
        let Rgba([red, green, blue, alpha]) = *picture.get_pixel(x, y);
        Rgba([
            look(0, red).unwrap_or(red),
            look(1, green).unwrap_or(green),
            look(2, blue).unwrap_or(blue),
            alpha,
        ])
    })
}
/// How bright a colour is (Rec. 709).
pub(super) fn luma([red, green, blue]: [f32; 3]) -> f32 {
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}
/// A value between two.
pub(super) fn lerp(from: f32, to: f32, part: f32) -> f32 {
    from + (to - from) * part
}
/// A smooth step from 0 to 1; a hard one when there is no room.
pub(super) fn smooth(low: f32, high: f32, value: f32) -> f32 {
    if high <= low {
        return if value >= low { 1.0 } else { 0.0 };
    }
    let part = ((value - low) / (high - low)).clamp(0.0, 1.0);
    part * part * (3.0 - 2.0 * part)
}
/// One picture over another.
pub(super) fn over(below: [f32; 4], above: [f32; 4]) -> [f32; 4] {
    let [r, g, b, alpha] = above;
    let [r0, g0, b0, alpha0] = below;
    let rest = alpha0 * (1.0 - alpha);
    let sum = alpha + rest;
    if sum <= 0.0 {
        return [0.0; 4];
    }
    let mix = |over: f32, under: f32| (over * alpha + under * rest) / sum;
    [mix(r, r0), mix(g, g0), mix(b, b0), sum]
}
/// Hue in turns, saturation and value of a colour.
pub(super) fn hsv([red, green, blue]: [f32; 3]) -> [f32; 3] {
    let (high, low) = (red.max(green).max(blue), red.min(green).min(blue));
    let span = high - low;
    let hue = if span <= 0.0 {
        0.0
    } else if high <= red {
        ((green - blue) / span).rem_euclid(6.0)
    } else if high <= green {
        (blue - red) / span + 2.0
    } else {
        (red - green) / span + 4.0
    };
    let saturation = if high <= 0.0 { 0.0 } else { span / high };
    [hue / 6.0, saturation, high]
}
/// A colour of a hue in turns, a saturation and a value.
pub(super) fn from_hsv([hue, saturation, value]: [f32; 3]) -> [f32; 3] {
    let channel = |shift: f32| {
        let place = (shift + hue.rem_euclid(1.0) * 6.0).rem_euclid(6.0);
        value - value * saturation * place.min(4.0 - place).clamp(0.0, 1.0)
    };
    [channel(5.0), channel(3.0), channel(1.0)]
}

/// A colour: `#rgb`, `#rrggbb`, with alpha, or one of a few names; `{"type": "color", "value": …}` as well.
///
/// # Errors
/// It is none of those. The error names the input.
pub(in crate::nodes) fn color(name: &str, value: &Value) -> Result<[f32; 4], NodeError> {
    let text = match value {
        Value::Map(map) => map.get("value").map(text_of).unwrap_or_default(),
        other => text_of(other),
    };
    let text = text.trim().to_ascii_lowercase();
    let hex = match text.as_str() {
        "" | "black" => "000000",
        "transparent" | "none" => "00000000",
        "white" => "ffffff",
        "red" => "ff0000",
        "green" => "008000",
        "lime" => "00ff00",
        "blue" => "0000ff",
        "yellow" => "ffff00",
        "cyan" => "00ffff",
        "magenta" => "ff00ff",
        "orange" => "ffa500",
        "gray" | "grey" => "808080",
        other => other.strip_prefix('#').unwrap_or(other),
    };
    let wrong = || {
        let shown: String = text.chars().take(40).collect();
        value_fault(name, &format!("must be a colour like #ff8800, got {shown:?}"))
    };
    let digits: Option<Vec<u8>> = hex
        .chars()
        .map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let bytes = match digits.as_deref() {
        Some([r, g, b]) => [r * 17, g * 17, b * 17, u8::MAX],
        Some([r, g, b, a]) => [r * 17, g * 17, b * 17, a * 17],
        Some([r, r1, g, g1, b, b1]) => [r * 16 + r1, g * 16 + g1, b * 16 + b1, u8::MAX],
        Some([r, r1, g, g1, b, b1, a, a1]) => [r * 16 + r1, g * 16 + g1, b * 16 + b1, a * 16 + a1],
        _ => return Err(wrong()),
    };
    Ok(bytes.map(part))
}
/// A picture in the format that a file's name asks for; `None` when it is that already.
pub(in crate::nodes) fn converted(
    name: &str,
    bytes: &[u8],
    filename: &str,
) -> Result<Option<Vec<u8>>, NodeError> {
    use image::ImageFormat as Format;
    let end = filename
        .rsplit_once('.')
        .map(|(_, end)| end.to_ascii_lowercase())
        .unwrap_or_default();
    let wanted = match end.as_str() {
        "png" => Format::Png,
        "jpg" | "jpeg" => Format::Jpeg,
        "webp" => Format::WebP,
        "gif" => Format::Gif,
        "bmp" => Format::Bmp,
        _ => {
            let shown: String = end.chars().take(20).collect();
            return Err(value_fault(
                "filename",
                &format!("must end with .png, .jpg, .webp, .gif or .bmp, got .{shown}"),
            ));
        }
    };
    if image::guess_format(bytes).is_ok_and(|format| format == wanted) {
        return Ok(None);
    }
    let picture = decode(name, bytes)?;
    if wanted == Format::Png {
        return png(&picture).map(Some);
    }
    let mut out = Cursor::new(Vec::new());
    let written = if matches!(wanted, Format::Jpeg | Format::Bmp) {
        DynamicImage::ImageRgba8(picture)
            .into_rgb8()
            .write_to(&mut out, wanted)
    } else {
        picture.write_to(&mut out, wanted)
    };
    written.map_err(|error| NodeError::new(format!("the picture cannot be written: {error}")))?;
    Ok(Some(out.into_inner()))
}
