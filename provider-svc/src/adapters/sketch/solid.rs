//! 3D models of the offline provider: a crystal by a prompt and a seed, as binary glTF.

use serde_json::json;

/// Corners of the girdle: fewest and how many more at most.
const CORNERS: (u32, u32) = (5, 6);

/// Makes a crystal; the seed and the prompt choose its corners, its height and its colour.
///
/// # Errors
/// The file could not be written; a bug of ours.
pub fn crystal(prompt: &str, seed: u64) -> Result<Vec<u8>, String> {
    let digest = blake3::hash(format!("{seed}:{}", prompt.trim().to_lowercase()).as_bytes());
    let mut bytes = digest.as_bytes().iter().copied();
    let mut share = || f32::from(bytes.next().unwrap_or(128)) / 255.0;
    let corners = CORNERS.0 + u32::from(digest.as_bytes().first().copied().unwrap_or(0)) % CORNERS.1;
    let (height, depth) = (0.8 + share(), 0.5 + share());
    let colour = [0.2 + 0.8 * share(), 0.2 + 0.8 * share(), 0.2 + 0.8 * share(), 1.0];
    let girdle: Vec<[f32; 3]> = (0..corners)
        .map(|corner| {
            let turn = std::f32::consts::TAU * ratio(corner, corners);
            let radius = 0.7 + 0.3 * share();
            [radius * turn.cos(), 0.0, radius * turn.sin()]
        })
        .collect();
    let (top, bottom) = ([0.0, height, 0.0], [0.0, -depth, 0.0]);
    // Each face has its own corners, so that it is flat.
    let next = girdle.iter().cycle().skip(1);
    let mut points = Vec::new();
    for (one, other) in girdle.iter().zip(next) {
        points.extend([*one, top, *other, *one, *other, bottom]);
    }
    glb(&points, colour)
}

#[expect(clippy::cast_precision_loss, reason = "a handful of corners")]
fn ratio(part: u32, whole: u32) -> f32 {
    part as f32 / whole.max(1) as f32
}

/// Triangles in one colour as a binary glTF file.
fn glb(points: &[[f32; 3]], colour: [f32; 4]) -> Result<Vec<u8>, String> {
    let mut buffer = Vec::new();
    for point in points {
        point
            .iter()
            .for_each(|part| buffer.extend_from_slice(&part.to_le_bytes()));
    }
    for face in points.chunks_exact(3) {
        if let [a, b, c] = face {
            for _ in 0..3 {
                normal(a, b, c)
                    .iter()
                    .for_each(|part| buffer.extend_from_slice(&part.to_le_bytes()));
            }
        }
    }
    let half = buffer.len() / 2;
    let fold = |pick: fn(f32, f32) -> f32| {
        let first = points.first().copied().unwrap_or_default();
        points.iter().fold(first, |[x, y, z], [px, py, pz]| {
            [pick(x, *px), pick(y, *py), pick(z, *pz)]
        })
    };
    let accessor =
        |view: u32| json!({"bufferView": view, "componentType": 5126, "count": points.len(), "type": "VEC3"});
    let mut positions = accessor(0);
    if let Some(object) = positions.as_object_mut() {
        object.insert("min".to_owned(), json!(fold(f32::min)));
        object.insert("max".to_owned(), json!(fold(f32::max)));
    }
    let scene = json!({
        "asset": {"version": "2.0", "generator": "atelier sketch"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0, "name": "crystal"}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0, "NORMAL": 1}, "material": 0}]}],
        "materials": [{"pbrMetallicRoughness": {"baseColorFactor": colour, "metallicFactor": 0.1, "roughnessFactor": 0.4}}],
        "buffers": [{"byteLength": buffer.len()}],
        "bufferViews": [
            {"buffer": 0, "byteOffset": 0, "byteLength": half, "target": 34962},
            {"buffer": 0, "byteOffset": half, "byteLength": half, "target": 34962},
        ],
        "accessors": [positions, accessor(1)],
    });
    let mut text = scene.to_string().into_bytes();
    text.resize(text.len().next_multiple_of(4), b' ');
    let length = |bytes: usize| u32::try_from(bytes).map_err(|_| "the model is too large".to_owned());
    let mut file = b"glTF".to_vec();
    for word in [
        2,
        length(12 + 8 + text.len() + 8 + buffer.len())?,
        length(text.len())?,
    ] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.extend_from_slice(b"JSON");
    file.extend_from_slice(&text);
    file.extend_from_slice(&length(buffer.len())?.to_le_bytes());
    file.extend_from_slice(b"BIN\0");
    file.extend_from_slice(&buffer);
    Ok(file)
}

/// The direction that a face looks in.
fn normal([ax, ay, az]: &[f32; 3], [bx, by, bz]: &[f32; 3], [cx, cy, cz]: &[f32; 3]) -> [f32; 3] {
    let (u, v) = ([bx - ax, by - ay, bz - az], [cx - ax, cy - ay, cz - az]);
    let ([ux, uy, uz], [vx, vy, vz]) = (u, v);
    let cross = [uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx];
    let length = cross
        .iter()
        .map(|part| part * part)
        .sum::<f32>()
        .sqrt()
        .max(f32::EPSILON);
    cross.map(|part| part / length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crystal_is_a_whole_file_and_follows_its_seed() {
        let file = crystal("a ruby", 3).unwrap();
        let word =
            |at: usize| usize::try_from(u32::from_le_bytes(file[at..at + 4].try_into().unwrap())).unwrap();
        assert_eq!(
            (&file[..4], word(4), word(8)),
            (b"glTF".as_slice(), 2, file.len())
        );
        let scene: serde_json::Value = serde_json::from_slice(&file[20..20 + word(12)]).unwrap();
        let binary = 20 + word(12);
        assert_eq!(&file[binary + 4..binary + 8], b"BIN\0");
        assert_eq!(scene["buffers"][0]["byteLength"], word(binary));
        assert_eq!(
            scene["accessors"][0]["count"].as_u64().unwrap() * 24,
            word(binary) as u64
        );
        assert_eq!(file, crystal("a ruby", 3).unwrap());
        assert_ne!(file, crystal("a ruby", 4).unwrap());
    }
}
