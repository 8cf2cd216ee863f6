//! The bytes that a reference carries itself, and the asset that it names. Pure: nothing is fetched from anywhere.

use atelier_common::tasks::Tasks;
use atelier_proto::ids::AssetId;
use atelier_proto::value::MediaRef;
use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;

use super::pixels;
use crate::error::Error;
use crate::sniff;

/// The scheme of stored assets.
pub const SCHEME: &str = "asset://";

/// Bytes of a reference and the media type that it states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inline {
    /// The bytes.
    pub bytes: Bytes,
    /// What the reference says they are.
    pub stated: Option<String>,
}

/// The id of the asset that a reference names, by `asset_id` or by an `asset://` address.
#[must_use]
pub fn named_asset(media: &MediaRef) -> Option<String> {
    let of_uri = || {
        let rest = media.uri.strip_prefix(SCHEME)?;
        rest.split(['.', '/', '?', '#']).next()
    };
    let id: AssetId = media
        .asset_id
        .as_deref()
        .filter(|id| !id.is_empty())
        .or_else(of_uri)?
        .parse()
        .ok()?;
    Some(id.to_string())
}

/// The bytes of several references, of those that are wanted. Pixels, and texts that stand for bytes, are worked on beside
/// the threads that serve everybody.
///
/// # Errors
/// When that work broke off.
pub async fn all(tasks: &Tasks, wanted: Vec<Option<MediaRef>>) -> Result<Vec<Option<Inline>>, Error> {
    let read = |wanted: &[Option<MediaRef>]| -> Vec<Option<Inline>> {
        let read = |media: &Option<MediaRef>| media.as_ref().and_then(inline);
        wanted.iter().map(read).collect()
    };
    if !wanted.iter().flatten().any(takes_work) {
        return Ok(read(&wanted));
    }
    Ok(tasks
        .spawn_blocking("inline media", move || read(&wanted))
        .await?)
}

/// Whether getting at the bytes of a reference takes more than a look.
fn takes_work(media: &MediaRef) -> bool {
    match &media.data {
        Some(data) if !data.is_empty() => media
            .mime_type
            .as_deref()
            .is_none_or(|said| said == pixels::RAW_RGBA),
        Some(_) | None => media
            .uri
            .get(..5)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")),
    }
}

/// The bytes that a reference carries, in `data` or in a `data:` address. Raw pixels become a PNG.
#[must_use]
pub fn inline(media: &MediaRef) -> Option<Inline> {
    let said = media.mime_type.clone().or_else(|| {
        let extra = |key| {
            media
                .extra
                .get(key)
                .and_then(|value| value.as_str().map(ToOwned::to_owned))
        };
        extra("mimeType").or_else(|| extra("content_type"))
    });
    let by_kind = || sniff::default_of_kind(&media.kind).map(ToOwned::to_owned);
    if let Some(data) = media.data.as_ref().filter(|data| !data.is_empty()) {
        if said.as_deref() == Some(pixels::RAW_RGBA) {
            let side = |key| {
                media
                    .extra
                    .get(key)
                    .and_then(|value| u32::try_from(value.as_i64()?).ok())
            };
            let png = pixels::png(side("width")?, side("height")?, data)?;
            return Some(Inline {
                bytes: png.into(),
                stated: Some("image/png".to_owned()),
            });
        }
        return Some(Inline {
            bytes: data.clone(),
            stated: said.or_else(by_kind),
        });
    }
    let (bytes, stated) = data_uri(&media.uri)?;
    Some(Inline {
        bytes,
        stated: stated.or(said).or_else(by_kind),
    })
}

/// Content and media type of a `data:` address; `None` when it is none, or a broken one.
fn data_uri(uri: &str) -> Option<(Bytes, Option<String>)> {
    let rest = uri
        .get(..5)
        .filter(|scheme| scheme.eq_ignore_ascii_case("data:"))
        .and_then(|_| uri.get(5..))?;
    let (head, payload) = rest.split_once(',')?;
    let mut parts = head.split(';');
    let stated = parts
        .next()
        .map(str::trim)
        .filter(|mime| !mime.is_empty())
        .map(ToOwned::to_owned);
    let bytes = if parts.any(|part| part.trim().eq_ignore_ascii_case("base64")) {
        from_base64(payload)?
    } else {
        from_percent(payload)?
    };
    (!bytes.is_empty()).then_some((bytes.into(), stated))
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let alphabet = if text.contains(['-', '_']) {
        &URL_SAFE
    } else {
        &STANDARD
    };
    let engine = GeneralPurpose::new(alphabet, config);
    if text.contains(['\r', '\n', ' ', '%']) {
        let plain = String::from_utf8(from_percent(text)?).ok()?;
        let plain: String = plain.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        return engine.decode(plain).ok();
    }
    engine.decode(text).ok()
}

fn from_percent(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
            let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
            out.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            out.push(byte);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn media(uri: &str) -> MediaRef {
        MediaRef {
            kind: "image".into(),
            uri: uri.into(),
            ..MediaRef::default()
        }
    }

    #[rstest]
    #[case("data:image/png;base64,aGVsbG8=", Some(("hello", "image/png")))]
    #[case("DATA:image/png;BASE64,aGVsbG8", Some(("hello", "image/png")))]
    #[case("data:image/png;base64,aGVs\nbG8%3D", Some(("hello", "image/png")))]
    #[case("data:text/plain;charset=utf-8,hello%20world", Some(("hello world", "text/plain")))]
    #[case("data:,hello", Some(("hello", "image/png")))]
    #[case("data:image/png;base64,%%%", None)]
    #[case("data:image/png;base64", None)]
    #[case("http://169.254.169.254/latest", None)]
    #[case("file:///etc/hostname", None)]
    #[case("дата", None)]
    #[case("", None)]
    fn only_data_addresses_carry_bytes(#[case] uri: &str, #[case] expected: Option<(&str, &str)>) {
        let found = inline(&media(uri));
        let found = found.map(|found| {
            (
                String::from_utf8(found.bytes.to_vec()).unwrap(),
                found.stated.unwrap(),
            )
        });
        assert_eq!(
            found,
            expected.map(|(text, mime)| (text.to_owned(), mime.to_owned()))
        );
    }

    #[rstest]
    #[case("asset://01890000-0000-7000-8000-000000000001.png", true)]
    #[case("asset://01890000-0000-7000-8000-000000000001", true)]
    #[case("asset://nothing.png", false)]
    #[case("https://h/01890000-0000-7000-8000-000000000001.png", false)]
    fn an_address_names_an_asset(#[case] uri: &str, #[case] names: bool) {
        let expected = names.then(|| "01890000-0000-7000-8000-000000000001".to_owned());
        assert_eq!(named_asset(&media(uri)), expected);
    }

    #[tokio::test]
    async fn pixels_are_worked_on_beside_the_threads_that_serve_everybody() {
        let side = |side: i64| side.into();
        let raw = MediaRef {
            kind: "image".to_owned(),
            data: Some(vec![7; 4 * 1024 * 1024].into()),
            mime_type: Some(pixels::RAW_RGBA.to_owned()),
            extra: [
                ("width".to_owned(), side(1024)),
                ("height".to_owned(), side(1024)),
            ]
            .into_iter()
            .collect(),
            ..MediaRef::default()
        };
        let tasks = Tasks::new();
        let mut all = Box::pin(all(&tasks, vec![Some(raw), None]));
        assert!(futures_util::poll!(&mut all).is_pending(), "this thread did it");
        let found = all.await.unwrap();
        assert_eq!(found[0].as_ref().unwrap().stated.as_deref(), Some("image/png"));
        assert!(found[1].is_none());
    }
}
