//! Files that go into a call and come out of it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::{args::Generate, assets, client::Client, print};

/// Largest picture that goes into a request, in bytes.
const MAX_PICTURE: u64 = 20 * 1024 * 1024;
/// Letters of the prompt in the name of a file.
const MAX_SLUG: usize = 40;

/// A picture of a file, as a reference that has it inside.
///
/// # Errors
/// It cannot be read, is too large, or is no picture.
pub(super) async fn reference(file: &Path) -> anyhow::Result<Value> {
    let name = file.display();
    let cannot = || format!("cannot read {name}");
    let size = tokio::fs::metadata(file).await.with_context(cannot)?.len();
    anyhow::ensure!(
        size <= MAX_PICTURE,
        "{name} has {size} bytes; a picture has at most {MAX_PICTURE}"
    );
    let bytes = tokio::fs::read(file).await.with_context(cannot)?;
    let mime = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        _ => anyhow::bail!("{name} is no picture that is known here"),
    };
    Ok(
        json!({"type": "image", "uri": format!("data:{mime};base64,{}", STANDARD.encode(&bytes)), "mime_type": mime}),
    )
}

/// Writes a text to the named file.
///
/// # Errors
/// It cannot be written.
pub(super) async fn write_text(command: &Generate, id: &str, text: &str) -> anyhow::Result<Value> {
    let path = name(command, id, "txt", None);
    tokio::fs::write(&path, text)
        .await
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(json!({"path": path.display().to_string(), "bytes": text.len()}))
}

/// Writes every asset of a result, and says where.
///
/// # Errors
/// The server refused; a file cannot be written; the result has no asset.
pub(super) async fn write(
    client: &Client,
    command: &Generate,
    generation: &str,
    result: &Value,
) -> anyhow::Result<Vec<Value>> {
    let made = result
        .get("assets")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    anyhow::ensure!(!made.is_empty(), "the server kept nothing of what was made");
    let many = made.len() > 1;
    anyhow::ensure!(
        !(many && command.out.as_deref() == Some(Path::new("-"))),
        "-o -: several things were made, and stdout takes one"
    );
    let mut written = Vec::new();
    for (index, asset) in made.iter().enumerate() {
        let id = print::text(asset, "id");
        if command.out.as_deref() == Some(Path::new("-")) {
            assets::print_bytes(client, &id).await?;
            continue;
        }
        let own = print::text(asset, "name");
        let path = name(command, generation, ending(&own), many.then_some(index + 1));
        assets::save(client, &id, &path).await?;
        written.push(json!({
            "path": path.display().to_string(),
            "bytes": asset.get("size_bytes"),
            "asset_id": id,
        }));
    }
    Ok(written)
}

/// The name of a file: as named, or out of the prompt and the end of the id, so that it is nobody else's.
fn name(command: &Generate, generation: &str, ending: &str, number: Option<usize>) -> PathBuf {
    let own = command.out.clone().unwrap_or_else(|| {
        let words = command.prompt.as_deref().unwrap_or_default();
        let tail = generation.rsplit('-').next().unwrap_or_default();
        PathBuf::from(format!("atelier-{}-{tail}", slug(words)))
    });
    let stem = own
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    let named = command.out.as_ref().and_then(|out| out.extension());
    let ending = named.map_or_else(
        || ending.to_owned(),
        |ending| ending.to_string_lossy().into_owned(),
    );
    let file = match number {
        Some(number) => format!("{stem}-{number}.{ending}"),
        None => format!("{stem}.{ending}"),
    };
    own.with_file_name(file)
}

fn slug(prompt: &str) -> String {
    let words: String = prompt
        .chars()
        .map(|letter| {
            if letter.is_alphanumeric() {
                letter.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .take(MAX_SLUG)
        .collect();
    let parts: Vec<&str> = words.split('-').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        "made".to_owned()
    } else {
        parts.join("-")
    }
}

/// The ending of an asset's name, which the store gives by what the bytes are.
fn ending(asset: &str) -> &str {
    let ending = Path::new(asset).extension();
    ending.and_then(|ending| ending.to_str()).unwrap_or("bin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_of_the_prompt() {
        assert_eq!(slug("A fox, in the snow!"), "a-fox-in-the-snow");
        assert_eq!(slug("…"), "made");
        assert_eq!((ending("video_1.avi"), ending("x")), ("avi", "bin"));
    }
}
