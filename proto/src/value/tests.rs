use proptest::prelude::*;

use super::*;
use crate::common::v1;

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (-1.0e12..1.0e12f64).prop_map(|number| Value::Float(number + 0.5)),
        "[a-z ]{0,12}".prop_map(Value::from),
        proptest::collection::vec(any::<u8>(), 0..16).prop_map(|bytes| Value::Bytes(bytes.into())),
    ]
}
fn value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::list),
            proptest::collection::vec(("[a-z]{1,6}", inner), 0..6).prop_map(|entries| Value::map(
                entries.into_iter().filter(|(key, _)| key != "type").collect()
            )),
        ]
    })
}
proptest! {
    #[test]
    fn every_mapping_brings_a_value_back(value in value()) {
        let proto: v1::Value = (&value).into();
        prop_assert_eq!(&Value::try_from(proto).expect("proto"), &value);
        prop_assert_eq!(&from_json(to_json(&value, BytesForm::Tagged)), &value);
        prop_assert_eq!(&from_msgpack(to_msgpack(&value)).expect("msgpack"), &value);
    }
}
#[test]
fn references_are_read_from_objects_and_written_back() {
    let json = serde_json::json!({"type": "image", "uri": "", "data": "AAEC", "width": 3});
    let value = from_json(json);
    let media = value.as_media().expect("media");
    assert_eq!(media.data.as_deref(), Some(&[0u8, 1, 2][..]));
    assert_eq!(media.extra.get("width"), Some(&Value::Int(3)));
    assert_eq!(from_json(to_json(&value, BytesForm::Tagged)), value);
    assert_eq!(from_json(to_json(&value, BytesForm::Integers)), value);
    assert_eq!(from_msgpack(to_msgpack(&value)).expect("msgpack"), value);
}
#[test]
fn an_object_with_a_type_but_no_bytes_or_place_stays_a_map() {
    let model = serde_json::json!({"type": "image_model", "provider": "sketch", "id": "sketch-image"});
    assert!(from_json(model).as_map().is_some());
    assert!(from_json(serde_json::json!({"type": "image"})).as_map().is_some());
}
#[test]
fn absent_null_and_kinds_of_numbers_stay_apart() {
    let value = from_json(serde_json::json!({"a": null, "b": 1, "c": 1.0}));
    assert_eq!(value.get("a"), Some(Value::Null));
    assert_eq!(value.get("z"), None);
    assert_eq!(value.get("b"), Some(Value::Int(1)));
    assert_eq!(value.get("c"), Some(Value::Float(1.0)));
}
