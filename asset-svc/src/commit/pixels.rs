//! Raw pixels as a PNG, without compression: what a node holds in memory becomes a file that anybody can open. Pure.

/// The media type of raw pixels: four bytes each, rows from the top.
pub const RAW_RGBA: &str = "image/x-raw-rgba";

const SIGNATURE: [u8; 8] = [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n'];
/// Largest piece of deflate data that is stored as it is.
const STORED: usize = 0xffff;

/// A PNG of these pixels; `None` when there are not `4 × width × height` bytes of them.
#[must_use]
pub fn png(width: u32, height: u32, rgba: &[u8]) -> Option<Vec<u8>> {
    let row = usize::try_from(width).ok()?.checked_mul(4)?;
    let expected = row.checked_mul(usize::try_from(height).ok()?)?;
    if expected == 0 || rgba.len() != expected {
        return None;
    }
    let mut lines = Vec::with_capacity(rgba.len() + rgba.len() / row);
    for line in rgba.chunks(row) {
        lines.push(0);
        lines.extend_from_slice(line);
    }
    let mut header = Vec::with_capacity(13);
    header.extend_from_slice(&width.to_be_bytes());
    header.extend_from_slice(&height.to_be_bytes());
    header.extend_from_slice(&[8, 6, 0, 0, 0]);
    let mut out = SIGNATURE.to_vec();
    chunk(&mut out, *b"IHDR", &header)?;
    chunk(&mut out, *b"IDAT", &zlib(&lines)?)?;
    chunk(&mut out, *b"IEND", &[])?;
    Some(out)
}

fn chunk(out: &mut Vec<u8>, name: [u8; 4], data: &[u8]) -> Option<()> {
    out.extend_from_slice(&u32::try_from(data.len()).ok()?.to_be_bytes());
    out.extend_from_slice(&name);
    out.extend_from_slice(data);
    let mut crc = u32::MAX;
    for byte in name.iter().chain(data) {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ 0xedb8_8320
            } else {
                crc >> 1
            };
        }
    }
    out.extend_from_slice(&(!crc).to_be_bytes());
    Some(())
}

fn zlib(data: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![0x78, 0x01];
    let mut pieces = data.chunks(STORED).peekable();
    while let Some(piece) = pieces.next() {
        let length = u16::try_from(piece.len()).ok()?;
        out.push(u8::from(pieces.peek().is_none()));
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(piece);
    }
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in data {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    out.extend_from_slice(&((high << 16) | low).to_be_bytes());
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w_114_a_png_of_raw_pixels() {
        let pixels: Vec<u8> = (0..16).collect();
        let png = png(2, 2, &pixels).unwrap();
        assert!(png.starts_with(&SIGNATURE));
        assert_eq!(png.get(16..24), Some([0, 0, 0, 2, 0, 0, 0, 2].as_slice()));
        assert!(png.windows(9).any(|part| part == [0, 0, 1, 2, 3, 4, 5, 6, 7]));
        assert!(png.ends_with(&[0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82]));
    }

    #[test]
    fn pixels_that_do_not_fill_the_picture_are_refused() {
        assert_eq!(png(2, 2, &[0; 15]), None);
        assert_eq!(png(0, 2, &[]), None);
        assert_eq!(png(u32::MAX, u32::MAX, &[0; 4]), None);
    }
}
