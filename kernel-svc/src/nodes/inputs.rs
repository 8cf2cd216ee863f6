//! The inputs of a run. Each checks the value it is given against its type and its limits, and hands it on.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};

use super::{
    args::{Args, map, one, text_of},
    check::{check, reference},
    code::{Routed, Types, factory},
};
use crate::node::{Context, Executor, NodeError};

/// Types whose value goes out on `output` as it came in, with the type of the value.
const VALUES: &[(&str, &str)] = &[
    ("nodetool.input.ASRModelInput", "asr_model"),
    ("nodetool.input.AnyInput", "any"),
    ("nodetool.input.AssetFolderInput", "folder"),
    ("nodetool.input.AudioInput", "audio"),
    ("nodetool.input.AudioListInput", "list[audio]"),
    ("nodetool.input.BooleanInput", "bool"),
    ("nodetool.input.ColorInput", "color"),
    ("nodetool.input.DataframeInput", "dataframe"),
    ("nodetool.input.DocumentInput", "document"),
    ("nodetool.input.EmbeddingModelInput", "embedding_model"),
    ("nodetool.input.FilePathInput", "path"),
    ("nodetool.input.FloatInput", "float"),
    ("nodetool.input.FolderPathInput", "path"),
    ("nodetool.input.HuggingFaceModelInput", "hf.model"),
    ("nodetool.input.ImageInput", "image"),
    ("nodetool.input.ImageListInput", "list[image]"),
    ("nodetool.input.ImageModelInput", "image_model"),
    ("nodetool.input.ImageSizeInput", "image_size"),
    ("nodetool.input.IntegerInput", "int"),
    ("nodetool.input.LanguageModelInput", "language_model"),
    ("nodetool.input.MessageInput", "message"),
    ("nodetool.input.MessageListInput", "list[message]"),
    ("nodetool.input.Model3DInput", "model_3d"),
    ("nodetool.input.SelectInput", "str"),
    ("nodetool.input.StringInput", "str"),
    ("nodetool.input.StringListInput", "list[str]"),
    ("nodetool.input.TTSModelInput", "tts_model"),
    ("nodetool.input.TextListInput", "list[str]"),
    ("nodetool.input.VideoInput", "video"),
    ("nodetool.input.VideoListInput", "list[video]"),
    ("nodetool.input.VideoModelInput", "video_model"),
];

/// All types of this family.
pub(super) fn types() -> Types {
    let mut types: Types = VALUES
        .iter()
        .map(|(name, ty)| (*name, factory(Input { ty })))
        .collect();
    types.push(("nodetool.input.DocumentFileInput", factory(DocumentFile)));
    types.push(("nodetool.input.MessageDeconstructor", factory(Routed(take_apart))));
    types.push(("nodetool.input.RealtimeAudioInput", factory(RealtimeAudio)));
    types
}

/// A value of one type.
#[derive(Clone, Copy)]
struct Input {
    ty: &'static str,
}
#[async_trait]
impl Executor for Input {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let value = check(&who(ctx), self.ty, Args(&inputs).value("value"))?;
        within_limits(ctx, &value)?;
        Ok(one("output", value))
    }
}
/// How an input is called in an error: the name that a caller of the workflow uses.
fn who(ctx: &Context) -> String {
    let property = ctx
        .properties
        .get("name")
        .and_then(Value::as_str)
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let name = property.or(ctx.node_name.as_deref()).unwrap_or(&ctx.node_id);
    format!("the input `{name}`")
}
/// Limits that the workflow states: `min`, `max`, `max_length`, `options`. Those of the type's own defaults are for
/// editors. Limits that contradict each other are none.
fn within_limits(ctx: &Context, value: &Value) -> Result<(), NodeError> {
    let stated = |name: &str| ctx.properties.get(name).and_then(Value::as_f64);
    let fault = |text: String| Err(NodeError::new(format!("{} {text}", who(ctx))).code("input.value"));
    match value {
        Value::Int(_) | Value::Float(_) => {
            let number = value.as_f64().unwrap_or_default();
            let (min, max) = (stated("min"), stated("max"));
            let usable = min.zip(max).is_none_or(|(min, max)| min < max);
            match (min, max) {
                (Some(min), _) if usable && number < min => {
                    fault(format!("must be at least {min}, got {}", text_of(value)))
                }
                (_, Some(max)) if usable && number > max => {
                    fault(format!("must be at most {max}, got {}", text_of(value)))
                }
                _ => Ok(()),
            }
        }
        Value::Str(text) if !text.is_empty() => {
            let length = text.chars().count();
            let longest = ctx
                .properties
                .get("max_length")
                .and_then(Value::as_i64)
                .filter(|longest| *longest > 0);
            if let Some(longest) = longest
                && i64::try_from(length).is_ok_and(|length| length > longest)
            {
                return fault(format!("takes at most {longest} characters, got {length}"));
            }
            let options = ctx
                .properties
                .get("options")
                .and_then(Value::as_list)
                .unwrap_or_default();
            if !options.is_empty() && !options.contains(value) {
                let options = options.iter().map(text_of).collect::<Vec<_>>().join(", ");
                return fault(format!("must be one of: {options}; got {text:?}"));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A document by path: the reference and the path.
#[derive(Clone, Copy)]
struct DocumentFile;
#[async_trait]
impl Executor for DocumentFile {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let value = check(&who(ctx), "str", Args(&inputs).value("value"))?;
        let path = text_of(&value);
        let address = if path.is_empty() || path.contains("://") {
            path.clone()
        } else {
            format!("file://{path}")
        };
        Ok(map([
            ("document", reference("document", &address)),
            ("path", path.into()),
        ]))
    }
}

/// Pieces of audio that are pushed while the run goes on.
#[derive(Clone, Copy)]
struct RealtimeAudio;
#[async_trait]
impl Executor for RealtimeAudio {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let value = Args(&inputs).value("value");
        match &value {
            Value::Null | Value::Map(_) | Value::Media(_) | Value::Bytes(_) => Ok(one("chunk", value)),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) | Value::List(_) => {
                check(&who(ctx), "chunk", value).map(|value| one("chunk", value))
            }
        }
    }
}

/// The parts of a chat message; absent ones are left out, the text is always there.
fn take_apart(args: Args<'_>) -> Result<Map, NodeError> {
    let message = check("the input `value`", "message", args.value("value"))?;
    let field = |name: &str| message.get(name).filter(|value| !value.is_null());
    let mut out = Map::new();
    for name in ["id", "thread_id", "role"] {
        out.extend(field(name).map(|value| (name.to_owned(), text_of(&value).into())));
    }
    let parts = match field("content") {
        Some(Value::List(parts)) => parts.as_ref().clone(),
        Some(other) => vec![other],
        None => Vec::new(),
    };
    let texts: Vec<String> = parts.iter().filter_map(part_text).collect();
    out.insert("text".to_owned(), texts.join("\n").into());
    for kind in ["image", "audio"] {
        out.extend(
            parts
                .iter()
                .find_map(|part| part_media(part, kind))
                .map(|media| (kind.to_owned(), media)),
        );
    }
    if let Some(id) = field("model")
        .map(|model| text_of(&model))
        .filter(|id| !id.is_empty())
    {
        let provider = field("provider")
            .map(|provider| text_of(&provider))
            .unwrap_or_default();
        let model = map([
            ("type", "language_model".into()),
            ("provider", provider.into()),
            ("id", id.into()),
        ]);
        out.insert("model".to_owned(), model.into());
    }
    Ok(out)
}
fn part_text(part: &Value) -> Option<String> {
    match part {
        Value::Str(text) => Some(text.to_string()),
        _ => part
            .get("text")
            .and_then(|text| text.as_str().map(ToOwned::to_owned)),
    }
}
fn part_media(part: &Value, kind: &str) -> Option<Value> {
    let inner = part.get(kind).unwrap_or_else(|| part.clone());
    inner
        .as_media()
        .is_some_and(|media| media.kind == kind)
        .then_some(inner)
}
