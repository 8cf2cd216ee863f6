//! Constants. They check what the workflow states and give it.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};
use chrono::NaiveDate;

use super::{
    args::{Args, map, missing, one},
    check::check,
    code::{Plain, Routed, Types, factory},
};
use crate::node::{Context, Executor, NodeError};

/// Types whose property `value` goes out on `output`, with its type.
const VALUES: &[(&str, &str)] = &[
    ("nodetool.constant.ASRModelConstant", "asr_model"),
    ("nodetool.constant.Audio", "audio"),
    ("nodetool.constant.AudioList", "list[audio]"),
    ("nodetool.constant.Bool", "bool"),
    ("nodetool.constant.DataFrame", "dataframe"),
    ("nodetool.constant.Dict", "dict"),
    ("nodetool.constant.Document", "document"),
    ("nodetool.constant.EmbeddingModelConstant", "embedding_model"),
    ("nodetool.constant.Float", "float"),
    ("nodetool.constant.Image", "image"),
    ("nodetool.constant.ImageList", "list[image]"),
    ("nodetool.constant.ImageModelConstant", "image_model"),
    ("nodetool.constant.Integer", "int"),
    ("nodetool.constant.JSON", "json"),
    ("nodetool.constant.LanguageModelConstant", "language_model"),
    ("nodetool.constant.List", "list"),
    ("nodetool.constant.Model3D", "model_3d"),
    ("nodetool.constant.Select", "str"),
    ("nodetool.constant.String", "str"),
    ("nodetool.constant.TTSModelConstant", "tts_model"),
    ("nodetool.constant.TextList", "list[str]"),
    ("nodetool.constant.Timeline", "timeline"),
    ("nodetool.constant.Video", "video"),
    ("nodetool.constant.VideoList", "list[video]"),
    ("nodetool.constant.VideoModelConstant", "video_model"),
];

/// All types of this family.
pub(super) fn types() -> Types {
    let mut types: Types = VALUES
        .iter()
        .map(|(name, ty)| (*name, factory(Constant { ty })))
        .collect();
    types.push(("nodetool.constant.Constant", factory(Routed(|_| Ok(Map::new())))));
    types.push(("nodetool.constant.Date", factory(Plain(date))));
    types.push(("nodetool.constant.DateTime", factory(Plain(date_time))));
    types.push(("nodetool.constant.ImageSize", factory(Routed(image_size))));
    types.push(("nodetool.constant.Sketch", factory(Routed(sketch))));
    types
}

#[derive(Clone, Copy)]
struct Constant {
    ty: &'static str,
}
#[async_trait]
impl Executor for Constant {
    async fn process(&mut self, inputs: Map, _ctx: &Context) -> Result<Map, NodeError> {
        let Some(value) = inputs.get("value") else {
            return Err(missing("value", "a constant needs its value"));
        };
        Ok(one(
            "output",
            check("the property `value`", self.ty, value.clone())?,
        ))
    }
}

/// One field of a date, within its limits.
fn field(args: Args<'_>, name: &'static str, default: i64, min: i64, max: i64) -> Result<i64, NodeError> {
    let number = args.int(name, default)?;
    if (min..=max).contains(&number) {
        return Ok(number);
    }
    Err(NodeError::new(format!(
        "the property `{name}` must be between {min} and {max}, got {number}"
    ))
    .code("input.value"))
}
fn day(args: Args<'_>) -> Result<Vec<(&'static str, Value)>, NodeError> {
    let year = field(args, "year", 1900, 1, 9999)?;
    let month = field(args, "month", 1, 1, 12)?;
    let day = field(args, "day", 1, 1, 31)?;
    let parts = (
        i32::try_from(year).ok(),
        u32::try_from(month).ok(),
        u32::try_from(day).ok(),
    );
    let exists = matches!(parts, (Some(year), Some(month), Some(day))
        if NaiveDate::from_ymd_opt(year, month, day).is_some());
    if !exists {
        let text =
            format!("the property `day` names a day that does not exist: {year:04}-{month:02}-{day:02}");
        return Err(NodeError::new(text).code("input.value"));
    }
    Ok(vec![
        ("year", year.into()),
        ("month", month.into()),
        ("day", day.into()),
    ])
}
fn fields(ty: &str, fields: Vec<(&'static str, Value)>) -> Value {
    let mut map = one("type", ty);
    map.extend(fields.into_iter().map(|(name, value)| (name.to_owned(), value)));
    map.into()
}
fn date(args: Args<'_>) -> Result<Value, NodeError> {
    Ok(fields("date", day(args)?))
}
fn date_time(args: Args<'_>) -> Result<Value, NodeError> {
    let mut all = day(args)?;
    all.push(("hour", field(args, "hour", 0, 0, 23)?.into()));
    all.push(("minute", field(args, "minute", 0, 0, 59)?.into()));
    all.push(("second", field(args, "second", 0, 0, 59)?.into()));
    all.push(("millisecond", field(args, "millisecond", 0, 0, 999)?.into()));
    all.push(("tzinfo", args.text_or("tzinfo", "UTC").into()));
    all.push(("utc_offset", field(args, "utc_offset", 0, -720, 840)?.into()));
    Ok(fields("datetime", all))
}
fn image_size(args: Args<'_>) -> Result<Map, NodeError> {
    let size = args.value("value");
    if size.is_null() {
        return Err(missing("value", "a size needs a width and a height"));
    }
    let size = check("the property `value`", "image_size", size)?;
    let side = |name: &str| {
        size.get(name)
            .and_then(|side| side.as_i64())
            .unwrap_or_default()
            .into()
    };
    let (width, height) = (side("width"), side("height"));
    Ok(map([("image_size", size), ("width", width), ("height", height)]))
}
fn sketch(args: Args<'_>) -> Result<Map, NodeError> {
    let mut out = one("output", args.value("value"));
    for name in ["image", "mask", "layers"] {
        let value = args.value(name);
        let value = if name == "layers" {
            check("the property `layers`", "list", value)
        } else {
            check(&format!("the property `{name}`"), "image", value)
        }?;
        if !value.is_null() {
            out.insert(name.to_owned(), value);
        }
    }
    Ok(out)
}
