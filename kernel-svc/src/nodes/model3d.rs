//! 3D models in glTF: what they are made of, their two forms, and where they stand. Meshes are not touched.
//!
//! What does not live here: files (`media_files`), and models that a provider makes.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value, from_json};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde_json::{Value as Json, json};

use super::{
    args::{map, one},
    code::{Types, factory},
    media_io::{Params, made, need, value_fault, work},
};
use crate::node::{Context, Executor, NodeError};

/// All types of this family.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.model3d.FormatConverter", factory(Change(convert))),
        ("nodetool.model3d.GetModel3DMetadata", factory(Change(metadata))),
        ("nodetool.model3d.Transform3D", factory(Change(transform))),
    ]
}

/// A model in, a value out.
#[derive(Clone, Copy)]
struct Change(fn(Model, &Params) -> Result<Value, NodeError>);
#[async_trait]
impl Executor for Change {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let change = self.0;
        let bytes = need(ctx, &inputs, "model").await?;
        let params = Params::new(ctx, inputs);
        let output = work(ctx, move |_| change(Model::read(bytes)?, &params));
        Ok(one("output", output.await?))
    }
}

/// A model: its description, and the bytes that come with it in one file.
struct Model {
    json: Json,
    binary: Option<Bytes>,
    packed: bool,
    size: usize,
}
fn wrong(why: &str) -> NodeError {
    value_fault("model", why)
}
impl Model {
    fn read(bytes: Bytes) -> Result<Self, NodeError> {
        let size = bytes.len();
        let broken = || wrong("is no 3D model that can be read: glb and gltf can");
        if !bytes.starts_with(b"glTF") {
            let json: Json = serde_json::from_slice(&bytes).map_err(|_| broken())?;
            if !json["asset"].is_object() {
                return Err(broken());
            }
            return Ok(Self {
                json,
                binary: None,
                packed: false,
                size,
            });
        }
        let number = |at: usize| {
            let four = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
            usize::try_from(u32::from_le_bytes(four)).ok()
        };
        let (mut json, mut binary, mut at) = (None, None, 12_usize);
        if number(4) != Some(2) {
            return Err(wrong("is a 3D model of a version that cannot be read: 2 can"));
        }
        while let (Some(length), Some(kind)) = (number(at), bytes.get(at + 4..at + 8)) {
            let end = (at + 8)
                .checked_add(length)
                .filter(|end| *end <= bytes.len())
                .ok_or_else(broken)?;
            match kind {
                b"JSON" if json.is_none() => {
                    json = Some(
                        serde_json::from_slice(bytes.get(at + 8..end).unwrap_or_default())
                            .map_err(|_| broken())?,
                    );
                }
                b"BIN\0" if binary.is_none() => binary = Some(bytes.slice(at + 8..end)),
                _ => {}
            }
            at = end;
        }
        Ok(Self {
            json: json.filter(Json::is_object).ok_or_else(broken)?,
            binary,
            packed: true,
            size,
        })
    }
    /// One file with everything in it.
    fn glb(&self) -> Result<Value, NodeError> {
        let mut text = serde_json::to_vec(&self.json).map_err(|_| wrong("cannot be written"))?;
        text.resize(text.len().next_multiple_of(4), b' ');
        let mut binary = self.binary.as_deref().unwrap_or_default().to_vec();
        binary.resize(binary.len().next_multiple_of(4), 0);
        let part = if binary.is_empty() { 0 } else { 8 + binary.len() };
        let size = |bytes: usize| {
            u32::try_from(bytes)
                .map(u32::to_le_bytes)
                .map_err(|_| wrong("is too large"))
        };
        let mut out = b"glTF\x02\0\0\0".to_vec();
        out.extend(size(12 + 8 + text.len() + part)?);
        out.extend(size(text.len())?);
        out.extend(b"JSON");
        out.extend(text);
        if !binary.is_empty() {
            out.extend(size(binary.len())?);
            out.extend(b"BIN\0");
            out.extend(binary);
        }
        made("model_3d", "model/gltf-binary", out)
    }
    /// A text with the bytes written into it.
    fn gltf(mut self) -> Result<Value, NodeError> {
        if let Some(binary) = self.binary.take()
            && let Some(buffer) = self
                .json
                .get_mut("buffers")
                .and_then(|buffers| buffers.get_mut(0))
                .and_then(Json::as_object_mut)
                .filter(|buffer| !buffer.contains_key("uri"))
        {
            let uri = format!("data:application/octet-stream;base64,{}", STANDARD.encode(binary));
            buffer.insert("uri".to_owned(), uri.into());
        }
        let text = serde_json::to_vec(&self.json).map_err(|_| wrong("cannot be written"))?;
        made("model_3d", "model/gltf+json", text)
    }
    /// In the form in which it came.
    fn written(self) -> Result<Value, NodeError> {
        if self.packed { self.glb() } else { self.gltf() }
    }
    fn all<'a>(&'a self, name: &str) -> &'a [Json] {
        self.json[name].as_array().map(Vec::as_slice).unwrap_or_default()
    }
}
fn convert(mut model: Model, params: &Params) -> Result<Value, NodeError> {
    if params.choice("output_format")? == "gltf" {
        return model.gltf();
    }
    let uri = model.json["buffers"][0]["uri"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if model.binary.is_none()
        && let Some((_, text)) = uri
            .strip_prefix("data:")
            .and_then(|uri| uri.split_once("base64,"))
    {
        let binary = STANDARD
            .decode(text)
            .map_err(|_| wrong("has a buffer that is not base64"))?;
        model.binary = Some(binary.into());
        if let Some(buffer) = model.json["buffers"].get_mut(0).and_then(Json::as_object_mut) {
            buffer.shift_remove("uri");
        }
    }
    model.glb()
}
/// How many of everything, and the box around all positions before anything is moved.
fn metadata(model: Model, _params: &Params) -> Result<Value, NodeError> {
    let accessor = |at: &Json| {
        at.as_u64()
            .and_then(|at| model.all("accessors").get(usize::try_from(at).ok()?))
    };
    let count = |at: &Json| {
        accessor(at)
            .and_then(|accessor| accessor["count"].as_i64())
            .unwrap_or_default()
    };
    let (mut vertices, mut triangles) = (0_i64, 0_i64);
    let (mut low, mut high) = ([f64::MAX; 3], [f64::MIN; 3]);
    for primitive in model
        .all("meshes")
        .iter()
        .filter_map(|mesh| mesh["primitives"].as_array())
        .flatten()
    {
        let positions = &primitive["attributes"]["POSITION"];
        vertices = vertices.saturating_add(count(positions));
        // 4 is the mode of triangles, and the one when none is stated.
        if primitive["mode"].as_i64().unwrap_or(4) == 4 {
            let corners = if primitive["indices"].is_null() {
                count(positions)
            } else {
                count(&primitive["indices"])
            };
            triangles = triangles.saturating_add(corners / 3);
        }
        let ends = accessor(positions).map(|accessor| (&accessor["min"], &accessor["max"]));
        for axis in 0..3 {
            if let Some((least, most)) =
                ends.and_then(|(least, most)| least[axis].as_f64().zip(most[axis].as_f64()))
            {
                low[axis] = low[axis].min(least);
                high[axis] = high[axis].max(most);
            }
        }
    }
    let bounds = if low.iter().zip(high).all(|(low, high)| *low <= high) {
        from_json(json!({"min": low, "max": high}))
    } else {
        Value::Null
    };
    let many = |name: &str| super::args::count(model.all(name).len());
    Ok(map([
        ("format", if model.packed { "glb" } else { "gltf" }.into()),
        ("size_bytes", super::args::count(model.size)),
        (
            "version",
            model.json["asset"]["version"].as_str().unwrap_or_default().into(),
        ),
        (
            "generator",
            model.json["asset"]["generator"]
                .as_str()
                .unwrap_or_default()
                .into(),
        ),
        ("scenes", many("scenes")),
        ("nodes", many("nodes")),
        ("meshes", many("meshes")),
        ("materials", many("materials")),
        ("textures", many("textures")),
        ("animations", many("animations")),
        ("vertices", vertices.into()),
        ("triangles", triangles.into()),
        ("bounds", bounds),
    ])
    .into())
}
/// Puts a node above each scene: scaled, then turned around x, y and z, then moved.
fn transform(mut model: Model, params: &Params) -> Result<Value, NodeError> {
    let three = |name: &str| -> Result<[f64; 3], NodeError> {
        Ok([
            params.f64(&format!("{name}_x"))?,
            params.f64(&format!("{name}_y"))?,
            params.f64(&format!("{name}_z"))?,
        ])
    };
    let (place, turn, uniform) = (
        three("translate")?,
        three("rotate")?,
        params.f64("uniform_scale")?,
    );
    let scale = three("scale")?.map(|scale| scale * uniform);
    if scale.contains(&0.0) {
        return Err(value_fault("uniform_scale", "and the other scales must not be 0"));
    }
    let [x, y, z] = turn.map(|degrees| (degrees.to_radians() / 2.0).sin_cos());
    // The product of the turns around z, y and x.
    let rotation = [
        x.0 * y.1 * z.1 - x.1 * y.0 * z.0,
        x.1 * y.0 * z.1 + x.0 * y.1 * z.0,
        x.1 * y.1 * z.0 - x.0 * y.0 * z.1,
        x.1 * y.1 * z.1 + x.0 * y.0 * z.0,
    ];
    let mut nodes = model.all("nodes").to_vec();
    let Some(scenes) = model.json["scenes"].as_array_mut() else {
        return Err(wrong("has no scene that could be moved"));
    };
    for scene in scenes.iter_mut().filter_map(Json::as_object_mut) {
        let roots = scene.get_mut("nodes").map(Json::take).unwrap_or_default();
        let mut root =
            json!({"name": "transform", "translation": place, "rotation": rotation, "scale": scale});
        if roots.as_array().is_some_and(|roots| !roots.is_empty()) {
            root["children"] = roots;
        }
        scene.insert("nodes".to_owned(), json!([nodes.len()]));
        nodes.push(root);
    }
    model.json["nodes"] = Json::Array(nodes);
    model.written()
}

#[cfg(test)]
mod tests {
    use atelier_proto::value::{BytesForm, MediaRef, to_json};

    use super::*;
    use crate::nodes::media_testing::node;

    fn model(bytes: Vec<u8>) -> Value {
        Value::media(MediaRef {
            kind: "model_3d".to_owned(),
            data: Some(bytes.into()),
            ..MediaRef::default()
        })
    }
    fn triangle() -> Value {
        let json = json!({"asset": {"version": "2.0", "generator": "hand"}, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
            "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
            "accessors": [{"count": 3, "min": [0, 0, 0], "max": [1, 2, 0], "componentType": 5126, "type": "VEC3"}],
            "buffers": [{"byteLength": 4, "uri": "data:application/octet-stream;base64,AQIDBA=="}]});
        model(json.to_string().into_bytes())
    }
    fn json_of(value: &Value) -> Json {
        let bytes = value
            .as_media()
            .and_then(|media| media.data.clone())
            .expect("bytes");
        Model::read(bytes).expect("a model").json
    }

    #[tokio::test]
    async fn a_model_tells_of_itself_in_both_forms() {
        let out = node(
            "nodetool.model3d.FormatConverter",
            json!({}),
            &[("model", &triangle())],
        )
        .await
        .expect("a model");
        let packed = out["output"].clone();
        let bytes = packed
            .as_media()
            .and_then(|media| media.data.clone())
            .expect("bytes");
        assert_eq!((&bytes[..4], bytes.len() % 4), (&b"glTF"[..], 0));
        assert_eq!(
            Model::read(bytes).expect("a model").binary.expect("bytes"),
            Bytes::from_static(&[1, 2, 3, 4])
        );
        let again = node(
            "nodetool.model3d.FormatConverter",
            json!({"output_format": "gltf"}),
            &[("model", &packed)],
        )
        .await;
        assert_eq!(json_of(&again.expect("a model")["output"]), json_of(&triangle()));
        let out = node(
            "nodetool.model3d.GetModel3DMetadata",
            json!({}),
            &[("model", &packed)],
        )
        .await
        .expect("facts");
        let facts = to_json(&out["output"], BytesForm::Tagged);
        assert_eq!(
            (&facts["format"], &facts["vertices"], &facts["triangles"]),
            (&json!("glb"), &json!(3), &json!(1))
        );
        assert_eq!(
            facts["bounds"],
            json!({"min": [0.0, 0.0, 0.0], "max": [1.0, 2.0, 0.0]})
        );
    }

    #[tokio::test]
    async fn a_model_is_moved_by_a_node_above_it() {
        let params = json!({"translate_x": 1, "rotate_z": 180, "uniform_scale": 2});
        let out = node("nodetool.model3d.Transform3D", params, &[("model", &triangle())])
            .await
            .expect("a model");
        let json = json_of(&out["output"]);
        assert_eq!(json["scenes"][0]["nodes"], json!([1]));
        let root = &json["nodes"][1];
        assert_eq!(
            (&root["children"], &root["translation"]),
            (&json!([0]), &json!([1.0, 0.0, 0.0]))
        );
        assert_eq!(root["scale"], json!([2.0, 2.0, 2.0]));
        assert!((root["rotation"][2].as_f64().expect("a number") - 1.0).abs() < 1.0e-9);
    }

    #[tokio::test]
    async fn broken_models_are_named() {
        for bytes in [
            &b"solid cube"[..],
            b"glTF\x02\0\0\0\xff\0\0\0\xff\0\0\0JSON{",
            b"glTF",
            b"{}",
        ] {
            let out = node(
                "nodetool.model3d.GetModel3DMetadata",
                json!({}),
                &[("model", &model(bytes.to_vec()))],
            )
            .await;
            assert!(
                out.expect_err("a fault")
                    .message
                    .starts_with("the input `model` is"),
                "{bytes:?}"
            );
        }
    }
}
