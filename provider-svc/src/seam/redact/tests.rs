use atelier_proto::value::from_json;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn bytes(length: usize) -> Value {
    Value::Bytes(Bytes::from(vec![0xff; length]))
}

fn one(key: &str, inner: Value) -> serde_json::Value {
    let out = redact(&Map::from([(key.to_owned(), inner)]));
    to_json(&out[key], BytesForm::Tagged)
}

fn mime_lines(data: &[u8]) -> String {
    let text = STANDARD.encode(data);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(76)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    lines.join("\n")
}

#[test]
fn g_165_every_row_of_the_redaction_table() {
    let blob = |n: usize| json!({"bytes": n});
    // 1 to 5: bytes and data URLs.
    assert_eq!(one("image", bytes(1_234)), blob(1_234));
    assert_eq!(
        one("images", Value::list(vec![bytes(3), bytes(4)])),
        json!([{"bytes": 3}, {"bytes": 4}])
    );
    assert_eq!(one("seed", "data:image/png;base64,AAAA".into()), blob(3));
    assert_eq!(
        one("svg", "data:image/svg+xml,%3Csvg%20xmlns%3D%22a%22%2F%3E".into()),
        blob(16)
    );
    assert_eq!(one("ref", "  DATA:text/plain,hello%20world".into()), blob(11));
    // 6 to 9: base64.
    let mask = STANDARD.encode([7_u8; 300]);
    assert_eq!(mask.len(), 400);
    assert_eq!(one("mask", mask.into()), blob(300));
    let short = STANDARD.encode([7_u8; 189]);
    assert_eq!(short.len(), 252);
    assert_eq!(one("mask", short.clone().into()), json!(short));
    let url_safe = URL_SAFE_NO_PAD.encode([0xfb_u8; 1_000]);
    assert_eq!(url_safe.len(), 1_334);
    assert_eq!(one("clip", url_safe.into()), blob(1_000));
    let lines = mime_lines(&[7; 1_000]);
    assert!((1_350..1_360).contains(&lines.len()));
    assert_eq!(one("clip", lines.into()), blob(1_000));
    // 10: a buffer as JSON makes it.
    assert_eq!(
        one(
            "audio",
            from_json(json!({"type": "Buffer", "data": [82, 73, 70, 70]}))
        ),
        blob(4)
    );
    // 11: long texts.
    let long = "x ".repeat(2_500);
    assert_eq!(one("prompt", long.clone().into()), json!(long));
    assert_eq!(
        one("notes", long.into()),
        json!({"truncated": true, "length": 5_000})
    );
    assert_eq!(one("notes", "x".repeat(5_000).into()), blob(3_750));
    // 12: nesting.
    let deeper = Map::from([
        ("raw".to_owned(), bytes(2)),
        ("n".to_owned(), 7.into()),
        ("ok".to_owned(), true.into()),
    ]);
    let bag = Map::from([
        (
            "nested".to_owned(),
            Value::map(Map::from([("deeper".to_owned(), Value::map(deeper))])),
        ),
        ("nothing".to_owned(), Value::Null),
    ]);
    let expected = json!({"nested": {"deeper": {"raw": {"bytes": 2}, "n": 7, "ok": true}}, "nothing": null});
    assert_eq!(to_json(&Value::map(redact(&bag)), BytesForm::Tagged), expected);
    // 13: secrets.
    assert_eq!(one("api_key", "sk-1".into()), json!("[redacted]"));
    assert_eq!(one("Authorization", "Bearer x".into()), json!("[redacted]"));
    assert_eq!(one("max_tokens", 512.into()), json!(512));
    // 14: signed addresses.
    let signed = "https://h.example/x.png?X-Amz-Signature=ab&X-Amz-Expires=60";
    assert_eq!(
        one("image_url", signed.into()),
        json!("https://h.example/x.png?redacted")
    );
    let plain = "https://h.example/x.png?width=3";
    assert_eq!(one("image_url", plain.into()), json!(plain));
    // 15: depth.
    let mut nested = bytes(9);
    for _ in 0..20 {
        nested = Value::map(Map::from([("a".to_owned(), nested)]));
    }
    let mut inner = one("a", nested);
    let mut depth = 1;
    while let Some(next) = inner.get("a") {
        inner = next.clone();
        depth += 1;
    }
    assert_eq!((depth, inner), (17, json!({"truncated": true, "depth": 16})));
    // 16: numbers that JSON has not.
    assert_eq!(one("strength", f64::NAN.into()), json!(null));
    // 17: a short list of integers.
    assert_eq!(one("size", from_json(json!([1024, 768]))), json!([1024, 768]));
    // 18: nothing.
    assert_eq!(redact(&Map::new()), Map::new());
}

#[test]
fn g_165_references_keep_their_names_and_lose_their_bytes() {
    let media = MediaRef {
        kind: "image".to_owned(),
        uri: "asset://a1.png".to_owned(),
        ..MediaRef::default()
    };
    assert_eq!(
        redact(&Map::from([("i".to_owned(), Value::media(media.clone()))]))["i"],
        Value::media(media.clone())
    );
    let inline = MediaRef {
        data: Some(Bytes::from_static(b"12345")),
        ..media
    };
    let out = one("i", Value::media(inline));
    assert_eq!(
        out,
        json!({"type": "image", "uri": "asset://a1.png", "data": {"bytes": 5}})
    );
    let by_url = MediaRef {
        kind: "image".to_owned(),
        uri: "data:image/png;base64,AAAA".to_owned(),
        ..MediaRef::default()
    };
    assert_eq!(
        one("i", Value::media(by_url)),
        json!({"type": "image", "uri": {"bytes": 3}})
    );
}

#[test]
fn integers_that_are_bytes_and_bags_that_are_too_large() {
    let numbers = Value::list((0..256).map(|n| Value::Int(n % 200)).collect());
    assert_eq!(one("raw", numbers), json!({"bytes": 256}));
    let numbered: Map = (0..300).map(|n| (n.to_string(), Value::Int(9))).collect();
    assert_eq!(one("raw", Value::map(numbered)), json!({"bytes": 300}));
    let long = "word ".repeat(3_900);
    let bag: Map = (0..6)
        .map(|n| {
            (
                format!("k{n}"),
                Value::map(Map::from([("text".to_owned(), long.as_str().into())])),
            )
        })
        .collect();
    let out = redact(&bag);
    assert!(
        to_json(&Value::map(out.clone()), BytesForm::Tagged)
            .to_string()
            .len()
            <= MAX_BAG + 64
    );
    assert_eq!(
        out.values()
            .filter(|inner| inner.get("truncated").is_some())
            .count(),
        3
    );
}

#[test]
fn p_115_messages_of_providers_lose_keys_media_and_signatures() {
    let png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe";
    let message =
        format!("bad key sk-secret-1, or \"sk-...9\": {png} at https://c.example/a?sig=9 for my-own-secret");
    let out = scrub(&message, &["my-own-secret"]);
    for leak in ["sk-secret", "sk-...9", "iVBORw0", "sig=9", "my-own"] {
        assert!(!out.contains(leak), "{leak} in {out}");
    }
    assert!(out.starts_with("bad key [redacted]"), "{out}");
    assert_eq!(scrub("ask-me about task-9", &[]), "ask-me about task-9");
}

proptest! {
    #[test]
    fn no_bytes_survive(data in proptest::collection::vec(any::<u8>(), 200..2_000), key in "[a-z]{1,6}") {
        let bag = Map::from([(key, Value::list(vec![Value::Bytes(data.clone().into()), STANDARD.encode(&data).into()]))]);
        let text = to_json(&Value::map(redact(&bag)), BytesForm::Tagged).to_string();
        prop_assert!(!text.contains(&STANDARD.encode(&data)[..100]));
        prop_assert!(text.len() < 100);
    }
}
