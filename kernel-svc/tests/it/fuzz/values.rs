//! Values through every codec and back, and damaged bytes into every decoder.

use atelier_proto::{
    common::v1,
    value::{
        BytesForm, MEDIA_KINDS, Map, MediaRef, Value, from_json, from_msgpack, is_value_too_deep, to_json,
        to_msgpack,
    },
};
use prost::Message;

use super::{fuzz, random::Random};

fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 8 } else { 12 }) {
        0 => Value::Null,
        1 => Value::Bool(random.one_in(2)),
        2 => Value::Int(i64::from_ne_bytes(random.next().to_ne_bytes())),
        3 => Value::Int(*random.pick(&[i64::MIN, i64::MAX, 0, -1, 1 << 53, (1 << 53) + 1])),
        4 => Value::Float(*random.pick(&[0.0, -0.0, 1.0, 0.1, f64::MAX, f64::MIN_POSITIVE, 1e300, -2.0])),
        5 => {
            let bytes: Vec<u8> = (0..random.below(40))
                .map(|_| u8::try_from(random.below(256)).unwrap())
                .collect();
            Value::Bytes(bytes.into())
        }
        6 | 7 => random.text().into(),
        8 => Value::list((0..random.below(6)).map(|_| value(random, depth - 1)).collect()),
        9 => media(random, depth),
        10 => {
            let levels = random.below(12);
            (0..levels).fold(Value::Null, |inner, _| Value::list(vec![inner]))
        }
        _ => map(random, depth).into(),
    }
}
fn map(random: &mut Random, depth: usize) -> Map {
    (0..random.below(6))
        .map(|_| {
            let key = if random.one_in(4) {
                (*random.pick(&["type", "uri", "data", "asset_id", "bytes", "$type", "value"])).to_owned()
            } else {
                random.text()
            };
            (key, value(random, depth - 1))
        })
        .collect()
}
fn media(random: &mut Random, depth: usize) -> Value {
    let known = ["type", "uri", "data", "asset_id", "mime_type"];
    let mut extra = map(random, depth);
    extra.retain(|key, _| !known.contains(&key.as_str()));
    let data: Option<Vec<u8>> = random.one_in(2).then(|| vec![7; random.below(20)]);
    Value::media(MediaRef {
        kind: (*random.pick(MEDIA_KINDS)).to_owned(),
        uri: random.text(),
        asset_id: random.one_in(2).then(|| random.text()),
        data: data.map(Into::into),
        mime_type: random.one_in(2).then(|| "image/png".to_owned()),
        extra,
    })
}
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(6) {
        let place = random.below(bytes.len());
        match random.below(4) {
            0 if !bytes.is_empty() => bytes[place] = u8::try_from(random.below(256)).unwrap(),
            1 if !bytes.is_empty() => {
                bytes.remove(place);
            }
            2 => {
                let piece = *random.pick(&[0xff_u8, 0x7f, 0x0a, 0x91, 0xdd, 0x00, 0xc6]);
                let many = vec![piece; 1 + random.below(400)];
                bytes.splice(place..place, many);
            }
            _ => bytes.truncate(place),
        }
    }
}

#[test]
fn values_survive_the_contract() {
    fuzz("values", |random| {
        let value = value(random, 4);
        let message = v1::Value::from(&value);
        let mut bytes = message.encode_to_vec();
        let back = v1::Value::decode(bytes.as_slice()).expect("our own bytes");
        assert_eq!(Value::try_from(back).expect("our own value"), value);
        // What clients see need not be equal, but once it went through it stays as it is.
        let json = to_json(&value, BytesForm::Tagged);
        let read = from_json(json.clone());
        assert_eq!(from_json(to_json(&read, BytesForm::Tagged)), read, "{json}");
        let _ = to_json(&value, BytesForm::Integers);
        if let Ok(read) = from_msgpack(to_msgpack(&value)) {
            let again = from_msgpack(to_msgpack(&read)).expect("our own value");
            assert_eq!(again, read);
        }
        damage(&mut bytes, random);
        if let Ok(message) = v1::Value::decode(bytes.as_slice())
            && let Ok(value) = Value::try_from(message)
        {
            let again = Value::try_from(v1::Value::from(&value)).expect("our own value");
            assert!(again == value || format!("{value:?}").contains("NaN"));
        }
    });
}

#[test]
fn deep_values_neither_overflow_nor_hang() {
    for depth in [30, 100, 300] {
        let deep = (0..depth).fold(Value::Null, |inner, at| {
            if at % 2 == 0 {
                Value::list(vec![inner])
            } else {
                Value::map([("in".to_owned(), inner)].into_iter().collect())
            }
        });
        assert!(deep.weight() > depth);
        // What is let through can be read again, and what could not is not let through.
        assert_eq!(is_value_too_deep(&deep), depth >= 100);
        let message = v1::Value::from(&deep);
        let bytes = message.encode_to_vec();
        // The decoder has a limit of its own; beyond it the bytes are refused.
        let _ = v1::Value::decode(bytes.as_slice()).map(Value::try_from);
        let _ = from_msgpack(to_msgpack(&deep));
        let _ = to_json(&deep, BytesForm::Tagged);
        let _ = format!("{:?}", deep.clone() == deep);
    }
}
