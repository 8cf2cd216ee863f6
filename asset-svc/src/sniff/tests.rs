use rstest::rstest;

use super::*;

#[rstest]
#[case(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png", "png")]
#[case(b"\xff\xd8\xff\xe0\0\x10JFIF\0", "image/jpeg", "jpg")]
#[case(b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav", "wav")]
#[case(b"glTF\x02\0\0\0\x0c\0\0\0", "model/gltf-binary", "glb")]
#[case(b"\0\0\0\x18ftypisom\0\0\0\0", "video/mp4", "mp4")]
#[case(b"\xff\xf3\x40\xc0\0\0\0\0", "audio/mpeg", "mp3")]
#[case(
    b"<?xml version=\"1.0\"?><!-- x --><svg xmlns=\"a\"/>",
    "image/svg+xml",
    "svg"
)]
#[case(b"<svg:svg xmlns:svg=\"a\"/>", "image/svg+xml", "svg")]
#[case(b"  <!DOCTYPE HTML><p>", "text/html", "html")]
#[case(b"<script>alert(1)</script>", "text/html", "html")]
#[case(b"<ScRiPt/x>", "text/html", "html")]
#[case(b"<?xml version=\"1.0\"?><note/>", "application/xml", "xml")]
#[case(b"{\"items\":[1,2]}", "application/json", "json")]
#[case(b"{not json}", "text/plain", "txt")]
#[case(b"BM is how this text begins", "text/plain", "txt")]
#[case(b"MZ likewise", "text/plain", "txt")]
#[case(b"%PDF-1.7\n", "application/pdf", "pdf")]
#[case(b"\0\x01\x02\x03", "application/octet-stream", "bin")]
#[case(b"", "application/octet-stream", "bin")]
fn the_bytes_say_what_they_are(#[case] bytes: &[u8], #[case] content_type: &str, #[case] ending: &str) {
    let sniffed = sniff(bytes, true);
    assert_eq!((sniffed.content_type, sniffed.ending), (content_type, ending));
}

#[rstest]
#[case(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/jpeg", "image/png")]
#[case(b"a,b\n1,2", "text/csv; charset=utf-8", "text/csv")]
#[case(b"hello", "text/html", "text/plain")]
#[case(b"hello", "image/png", "text/plain")]
#[case(b"hello", "image/svg+xml", "text/plain")]
#[case(b"\0\x01\x02\x03", "text/html", "application/octet-stream")]
#[case(b"\0\x01\x02\x03", "application/xhtml+xml", "application/octet-stream")]
#[case(b"\0\x01\x02\x03", "text/javascript", "application/octet-stream")]
#[case(b"\0\x01\x02\x03", "video/mp4", "video/mp4")]
#[case(b"\0\x01\x02\x03", "not a type", "application/octet-stream")]
#[case(b"\0\x01\x02\x03", "audio/x-wav", "audio/wav")]
fn a_stated_type_is_believed_only_where_the_bytes_allow(
    #[case] bytes: &[u8],
    #[case] stated: &str,
    #[case] expected: &str,
) {
    assert_eq!(content_type(sniff(bytes, true), Some(stated)), expected);
}

#[test]
fn long_text_may_be_cut_inside_a_character() {
    let text = "ä".repeat(PREFIX_BYTES);
    let shifted = format!("x{text}");
    assert_eq!(sniff(shifted.as_bytes(), true).content_type, TEXT);
    let json = format!("[\"{text}\"]");
    assert_eq!(sniff(json.as_bytes(), true).content_type, JSON);
    assert_eq!(
        sniff(b"abc\xc3", true).content_type,
        UNKNOWN,
        "a cut text is no text"
    );
}
