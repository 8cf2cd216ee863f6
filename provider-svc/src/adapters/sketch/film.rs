//! Films of the offline provider: a camera that moves over one picture, as motion JPEG in an AVI file.
//!
//! What lives here: cutting the frames and writing the container. What does not: the picture (`draw`, `derive`).

use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageEncoder, RgbaImage, imageops};

/// Frames a second.
pub const RATE: u32 = 8;
/// Shortest and longest film, in seconds.
pub const SECONDS: (u32, u32) = (1, 10);
/// Longest side of a frame, in pixels.
pub const MAX_SIDE: u32 = 512;
const QUALITY: u8 = 80;

/// How many times as long as its other side a side of a picture is that is filmed as a whole.
const LONGEST: u32 = 8;

/// Width and height of the frames for a size that was asked for: even, and no longer than [`MAX_SIDE`].
#[must_use]
pub fn frame_size((width, height): (u32, u32)) -> (u32, u32) {
    let longer = width.max(height).max(1);
    let side = |pixels: u32| {
        let scaled = if longer > MAX_SIDE {
            pixels * MAX_SIDE / longer
        } else {
            pixels
        };
        (scaled & !1).max(16)
    };
    (side(width), side(height))
}

/// Films a picture for so many seconds. The seed chooses where the camera goes.
///
/// # Errors
/// A frame could not be encoded; a bug of ours.
pub fn film(picture: &RgbaImage, size: (u32, u32), seconds: u32, seed: u64) -> Result<Vec<u8>, String> {
    let (width, height) = size;
    let count = seconds.clamp(SECONDS.0, SECONDS.1) * RATE;
    // Of a strip only the middle: scaled up as a whole it would be as long as it is thin.
    let (own_width, own_height) = picture.dimensions();
    let wide = own_width.min(own_height.saturating_mul(LONGEST));
    let high = own_height.min(own_width.saturating_mul(LONGEST));
    let (left, top) = ((own_width - wide) / 2, (own_height - high) / 2);
    let picture = imageops::crop_imm(picture, left, top, wide, high).to_image();
    // The picture is a fifth larger than the frame on its tighter side: that is the way of the camera.
    let picture = DynamicImage::ImageRgba8(picture).resize_to_fill(
        width + width / 5,
        height + height / 5,
        imageops::FilterType::Triangle,
    );
    let picture = picture.to_rgb8();
    let (room_x, room_y) = (
        picture.width().saturating_sub(width),
        picture.height().saturating_sub(height),
    );
    let mut frames = Vec::new();
    for at in 0..count {
        let along = |room: u32| room * at / count.saturating_sub(1).max(1);
        let (x, y) = match seed % 4 {
            0 => (along(room_x), along(room_y)),
            1 => (room_x - along(room_x), along(room_y)),
            2 => (along(room_x), room_y - along(room_y)),
            _ => (room_x - along(room_x), room_y - along(room_y)),
        };
        let frame = imageops::crop_imm(&picture, x, y, width, height).to_image();
        let mut jpeg = Vec::new();
        JpegEncoder::new_with_quality(&mut jpeg, QUALITY)
            .write_image(&frame, width, height, image::ExtendedColorType::Rgb8)
            .map_err(|error| format!("cannot encode a frame: {error}"))?;
        frames.push(jpeg);
    }
    avi(&frames, size)
}

/// An AVI file with one stream of motion JPEG and an index.
fn avi(frames: &[Vec<u8>], (width, height): (u32, u32)) -> Result<Vec<u8>, String> {
    let number = |length: usize| u32::try_from(length).map_err(|_| "the film is too long".to_owned());
    let count = number(frames.len())?;
    let largest = number(frames.iter().map(Vec::len).max().unwrap_or(0))?;
    let mut movi = b"movi".to_vec();
    let mut index = Vec::new();
    for frame in frames {
        // Offsets count from the word `movi`.
        let offset = number(movi.len())?;
        words(&mut index, &[0x6364_3030, 0x10, offset, number(frame.len())?]);
        chunk(&mut movi, b"00dc", frame)?;
    }
    let mut main = Vec::new();
    words(
        &mut main,
        &[
            1_000_000 / RATE,
            largest * RATE,
            0,
            0x10,
            count,
            0,
            1,
            largest,
            width,
            height,
            0,
            0,
            0,
            0,
        ],
    );
    let mut stream = b"vidsMJPG".to_vec();
    words(&mut stream, &[0, 0, 0, 1, RATE, 0, count, largest, u32::MAX, 0]);
    for edge in [0, 0, width, height] {
        stream.extend_from_slice(&u16::try_from(edge).unwrap_or(u16::MAX).to_le_bytes());
    }
    let mut format = Vec::new();
    words(&mut format, &[40, width, height]);
    for part in [1_u16, 24] {
        format.extend_from_slice(&part.to_le_bytes());
    }
    format.extend_from_slice(b"MJPG");
    words(&mut format, &[width * height * 3, 0, 0, 0, 0]);

    let mut streams = b"strl".to_vec();
    chunk(&mut streams, b"strh", &stream)?;
    chunk(&mut streams, b"strf", &format)?;
    let mut head = b"hdrl".to_vec();
    chunk(&mut head, b"avih", &main)?;
    chunk(&mut head, b"LIST", &streams)?;
    let mut body = b"AVI ".to_vec();
    chunk(&mut body, b"LIST", &head)?;
    chunk(&mut body, b"LIST", &movi)?;
    chunk(&mut body, b"idx1", &index)?;
    let mut file = Vec::new();
    chunk(&mut file, b"RIFF", &body)?;
    Ok(file)
}

fn words(out: &mut Vec<u8>, words: &[u32]) {
    words
        .iter()
        .for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

/// A chunk: its name, its length, its bytes, and a zero when the length is odd.
fn chunk(out: &mut Vec<u8>, name: &[u8; 4], bytes: &[u8]) -> Result<(), String> {
    let length = u32::try_from(bytes.len()).map_err(|_| "the film is too long".to_owned())?;
    out.extend_from_slice(name);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
    if bytes.len() % 2 == 1 {
        out.push(0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> RgbaImage {
        RgbaImage::from_fn(120, 90, |x, y| {
            image::Rgba([
                u8::try_from(x * 2).unwrap_or(255),
                u8::try_from(y * 2).unwrap_or(255),
                90,
                255,
            ])
        })
    }
    fn word(bytes: &[u8], at: usize) -> usize {
        usize::try_from(u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())).unwrap()
    }

    #[test]
    fn a_film_has_its_frames_and_the_camera_moves() {
        let file = film(&picture(), (96, 64), 2, 0).unwrap();
        assert_eq!(
            (&file[..4], &file[8..12]),
            (b"RIFF".as_slice(), b"AVI ".as_slice())
        );
        assert_eq!(word(&file, 4) + 8, file.len());
        let index = file.windows(4).rposition(|four| four == b"idx1").unwrap();
        let movi = file.windows(4).position(|four| four == b"movi").unwrap();
        let count = word(&file, index + 4) / 16;
        assert_eq!(count, 16);
        let frames: Vec<_> = (0..count)
            .map(|at| {
                let entry = index + 8 + at * 16;
                let (offset, length) = (word(&file, entry + 8), word(&file, entry + 12));
                let from = movi + offset + 8;
                image::load_from_memory(&file[from..from + length])
                    .unwrap()
                    .to_rgb8()
            })
            .collect();
        assert!(frames.iter().all(|frame| frame.dimensions() == (96, 64)));
        assert_ne!(frames.first(), frames.last());
        assert_eq!(file, film(&picture(), (96, 64), 2, 0).unwrap());
    }

    #[test]
    fn frames_are_even_and_not_large() {
        assert_eq!(frame_size((1920, 1080)), (512, 288));
        assert_eq!(frame_size((101, 51)), (100, 50));
        assert_eq!(frame_size((1, 4000)), (16, 512));
    }
}
