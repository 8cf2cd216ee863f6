//! Which text of an artifact is saved (generations specification 13.8). Pure.
//!
//! A named handle: its text, when there is any, beside media too. `*`: only when the artifact has no media, the first
//! output if it is text, else all outputs as JSON.

use atelier_proto::value::{self, BytesForm, Map, Value};

use super::index::Filled;
use super::{Artifact, Content, Place};

/// The handle that means whatever there is, and the handle of the slot of JSON.
pub const ANY: &str = "*";

/// The place of the text or JSON of an artifact.
pub fn place(artifact: &Artifact, has_media: bool, filled: &Filled) -> Option<Place> {
    let (handle, kind, content) = found(artifact, has_media)?;
    let content = filled
        .get(handle, 0)
        .map_or(content, |row| Content::Filled(Box::new(row)));
    Some(Place {
        handle: handle.to_owned(),
        element: 0,
        kind: kind.to_owned(),
        content,
    })
}

fn found(artifact: &Artifact, has_media: bool) -> Option<(&str, &'static str, Content)> {
    let Artifact {
        outputs, text_handle, ..
    } = artifact;
    if text_handle != ANY {
        let text = text_of(outputs.get(text_handle)?)?;
        return Some((text_handle, "text", Content::Text(text.to_owned())));
    }
    if has_media {
        return None;
    }
    let (handle, first) = outputs.iter().find(|(_, value)| !value.is_null())?;
    if let Some(text) = text_of(first) {
        return Some((handle, "text", Content::Text(text.to_owned())));
    }
    let kept: Map = outputs
        .iter()
        .filter(|(_, value)| says_something(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if kept.is_empty() {
        return None;
    }
    Some((
        ANY,
        "json",
        Content::Json(value::to_json(&Value::map(kept), BytesForm::Tagged).to_string()),
    ))
}

fn text_of(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

fn says_something(value: &Value) -> bool {
    !value.is_null() && value.as_str() != Some("")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"out": "hi"}), "out", false, Some(("out", "hi")))]
    #[case(json!({"out": "hi"}), "out", true, Some(("out", "hi")))]
    #[case(json!({"out": "hi"}), "", false, None)]
    #[case(json!({"out": ""}), "out", false, None)]
    #[case(json!({"out": 3}), "out", false, None)]
    #[case(json!({"a": null, "out": "hi"}), "*", false, Some(("out", "hi")))]
    #[case(json!({"out": "hi"}), "*", true, None)]
    #[case(json!({"items": [1, 2], "no": null}), "*", false, Some(("*", "{\"items\":[1,2]}")))]
    #[case(json!({"out": ""}), "*", false, None)]
    #[case(json!({}), "*", false, None)]
    fn the_text_of_an_artifact(
        #[case] outputs: serde_json::Value,
        #[case] text_handle: &str,
        #[case] has_media: bool,
        #[case] expected: Option<(&str, &str)>,
    ) {
        let outputs = value::map_from_json(outputs).unwrap();
        let artifact = Artifact {
            outputs,
            text_handle: text_handle.to_owned(),
            ..Artifact::default()
        };
        let found = place(&artifact, has_media, &Filled::default()).map(|place| match place.content {
            Content::Text(text) | Content::Json(text) => (place.handle, text),
            Content::Filled(_) | Content::Named(_) | Content::Bytes(_) => {
                unreachable!("only texts are found")
            }
        });
        assert_eq!(
            found,
            expected.map(|(handle, text)| (handle.to_owned(), text.to_owned()))
        );
    }
}
