//! Media in and out of node code: the bytes of an input, results with their bytes, and threads for heavy work.
//!
//! What does not live here: formats (`image/`, `audio/`, `video/`), and saving, which the relay does.

use std::sync::Arc;

use atelier_common::tasks::Tasks;
use atelier_proto::value::{Map, MediaRef, Value};
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{
    args::{Args, missing, wrong},
    catalog, media_paths,
};
use crate::node::{Context, NodeError, NodeMeta};

/// Largest input that is read, in bytes.
pub(super) const MAX_INPUT: usize = 256 * 1024 * 1024;
/// Largest result, in bytes. Results travel as one message to whoever saves them, with room for the rest of it.
pub(super) const MAX_RESULT: usize = 48 * 1024 * 1024;
/// Heavy work of all runs at once. Full: a node waits for its turn, and a cancel frees it.
const HEAVY: usize = 3;
static TURNS: Semaphore = Semaphore::const_new(HEAVY);

/// Tells work on another thread that nobody waits for it any more.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(CancellationToken);
impl Stop {
    /// # Errors
    /// Cancelled.
    pub fn check(&self) -> Result<(), NodeError> {
        if self.0.is_cancelled() {
            Err(NodeError::cancelled())
        } else {
            Ok(())
        }
    }
}

/// Runs what takes long where it holds nobody up. It ends early when the run is cancelled or nobody waits for it.
pub(super) async fn work<T: Send + 'static>(
    ctx: &Context,
    what: impl FnOnce(&Stop) -> Result<T, NodeError> + Send + 'static,
) -> Result<T, NodeError> {
    let token = ctx.cancel.child_token();
    let guard = token.clone().drop_guard();
    let turn = token.run_until_cancelled(TURNS.acquire()).await;
    let turn = turn
        .ok_or_else(NodeError::cancelled)?
        .map_err(|_| NodeError::cancelled())?;
    let stop = Stop(token.clone());
    // The turn goes along, so that work that nobody waits for counts until it has noticed.
    let running = Tasks::new().spawn_blocking("media work", move || {
        let _turn = turn;
        stop.check()?;
        what(&stop)
    });
    let done = token.run_until_cancelled(running).await;
    drop(guard);
    done.ok_or_else(NodeError::cancelled)?
        .map_err(|_| NodeError::new(format!("the work of {} broke off", ctx.node_type)))?
}

/// The bytes of a media input: a reference, an address or a path below the workspace. `None` when it leads nowhere.
pub(super) async fn read(ctx: &Context, name: &str, value: &Value) -> Result<Option<Bytes>, NodeError> {
    let bytes = match value {
        Value::Null => return Ok(None),
        Value::Bytes(bytes) => bytes.clone(),
        Value::Str(text) => match address(ctx, name, text).await? {
            Some(bytes) => bytes,
            None => return Ok(None),
        },
        Value::Media(media) => match (&media.data, &media.asset_id) {
            (Some(data), _) => data.clone(),
            (None, Some(_)) => fetched(ctx, name, media).await?,
            (None, None) => match address(ctx, name, &media.uri).await? {
                Some(bytes) => bytes,
                None => return Ok(None),
            },
        },
        // A default of a type that is no reference here, or bytes as a list of numbers.
        Value::Map(map) if Args(map).text("uri").is_empty() && Args(map).value("data").is_null() => {
            return Ok(None);
        }
        other => return Err(wrong(name, "media", other)),
    };
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() > MAX_INPUT {
        return Err(value_fault(
            name,
            &format!("must have at most {MAX_INPUT} bytes, got {}", bytes.len()),
        ));
    }
    Ok(Some(bytes))
}
/// The bytes of a media input that must be there.
pub(super) async fn need(ctx: &Context, inputs: &Map, name: &str) -> Result<Bytes, NodeError> {
    let value = Args(inputs).value(name);
    read(ctx, name, &value)
        .await?
        .ok_or_else(|| missing(name, "there is nothing to work on"))
}
async fn address(ctx: &Context, name: &str, uri: &str) -> Result<Option<Bytes>, NodeError> {
    if uri.is_empty() || uri.starts_with("memory://") {
        return Ok(None);
    }
    if let Some(path) = uri
        .strip_prefix("file://")
        .or((!uri.contains(':')).then_some(uri))
    {
        let path = media_paths::existing(ctx, name, path)?;
        return media_paths::read(name, &path).await.map(Some);
    }
    if uri.starts_with("http://") || uri.starts_with("https://") {
        let fetched = super::http::fetch(ctx, uri).await;
        return fetched.map(Some).map_err(|error| unread(name, error));
    }
    let media = MediaRef {
        uri: uri.to_owned(),
        ..MediaRef::default()
    };
    fetched(ctx, name, &media).await.map(Some)
}
async fn fetched(ctx: &Context, name: &str, media: &MediaRef) -> Result<Bytes, NodeError> {
    let fetched = ctx.services.media_bytes(ctx, media).await;
    fetched.map_err(|error| unread(name, error))
}
fn unread(name: &str, mut error: NodeError) -> NodeError {
    error.message = format!("the input `{name}` cannot be read: {}", error.message);
    error
}

/// Media with their bytes.
///
/// # Errors
/// They are too large to be handed on.
pub(super) fn made(kind: &str, mime_type: &str, bytes: Vec<u8>) -> Result<Value, NodeError> {
    if bytes.len() > MAX_RESULT {
        let message = format!(
            "the {kind} has {} bytes, more than {MAX_RESULT} that can be handed on",
            bytes.len()
        );
        return Err(NodeError::new(message).code("output.size"));
    }
    Ok(MediaRef {
        kind: kind.to_owned(),
        data: Some(bytes.into()),
        mime_type: Some(mime_type.to_owned()),
        ..MediaRef::default()
    }
    .into())
}

/// A value that an input cannot have.
pub(super) fn value_fault(name: &str, must: &str) -> NodeError {
    NodeError::new(format!("the input `{name}` {must}")).code("input.value")
}

/// Inputs with the defaults and limits that the type states.
#[derive(Clone)]
pub(super) struct Params {
    pub inputs: Arc<Map>,
    meta: Option<&'static NodeMeta>,
}
/// Inputs whose upper limit is for sliders: what can be done is bounded by the number of pixels, samples or bytes.
const OPEN: &[&str] = &[
    "left",
    "top",
    "right",
    "bottom",
    "width",
    "height",
    "target_width",
    "target_height",
    "canvas_width",
    "canvas_height",
    "border",
    "scale",
];
impl Params {
    pub fn new(ctx: &Context, inputs: Map) -> Self {
        Self {
            inputs: Arc::new(inputs),
            meta: catalog::meta(&ctx.node_type),
        }
    }
    pub fn args(&self) -> Args<'_> {
        Args(&self.inputs)
    }
    /// The value, or the default of the type.
    pub fn value(&self, name: &str) -> Value {
        let value = self.args().value(name);
        if !value.is_null() {
            return value;
        }
        let input = self
            .meta
            .and_then(|meta| meta.inputs.iter().find(|input| input.name == name));
        input.and_then(|input| input.default.clone()).unwrap_or_default()
    }
    /// A number within the limits of the type.
    pub fn f64(&self, name: &str) -> Result<f64, NodeError> {
        let value = self.value(name);
        let one = Map::from_iter([(name.to_owned(), value)]);
        let number = Args(&one).number(name, 0.0)?;
        self.within(name, number)?;
        Ok(number)
    }
    /// A number within the limits of the type.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "pixels and samples are computed in single precision"
    )]
    pub fn f(&self, name: &str) -> Result<f32, NodeError> {
        self.f64(name).map(|number| number as f32)
    }
    /// A whole number within the limits of the type.
    pub fn int(&self, name: &str) -> Result<i64, NodeError> {
        let value = self.value(name);
        let one = Map::from_iter([(name.to_owned(), value)]);
        let number = Args(&one).int(name, 0)?;
        #[expect(clippy::cast_precision_loss, reason = "for a comparison with small limits")]
        self.within(name, number as f64)?;
        Ok(number)
    }
    /// A size, within the limits of the type.
    pub fn size(&self, name: &str) -> Result<u32, NodeError> {
        let number = self.int(name)?;
        u32::try_from(number).map_err(|_| value_fault(name, &format!("must be a size, got {number}")))
    }
    pub fn flag(&self, name: &str) -> bool {
        self.value(name).truthy()
    }
    pub fn text(&self, name: &str) -> String {
        super::args::text_of(&self.value(name))
    }
    /// One of the values that the type lists.
    pub fn choice(&self, name: &str) -> Result<String, NodeError> {
        let text = self.text(name);
        let input = self
            .meta
            .and_then(|meta| meta.inputs.iter().find(|input| input.name == name));
        let known: Vec<&str> = input
            .iter()
            .flat_map(|input| &input.values)
            .filter_map(Value::as_str)
            .collect();
        if known.is_empty() || known.contains(&text.as_str()) {
            return Ok(text);
        }
        let text: String = text.chars().take(40).collect();
        Err(value_fault(
            name,
            &format!("must be one of: {}; got {text:?}", known.join(", ")),
        ))
    }
    fn within(&self, name: &str, number: f64) -> Result<(), NodeError> {
        let input = self
            .meta
            .and_then(|meta| meta.inputs.iter().find(|input| input.name == name));
        let Some(input) = input else { return Ok(()) };
        let max = input.max.filter(|_| !OPEN.contains(&name));
        if input.min.is_some_and(|min| number < min) || max.is_some_and(|max| number > max) {
            let must = match (input.min, max) {
                (Some(min), Some(max)) => format!("must be between {min} and {max}, got {number}"),
                (Some(min), None) => format!("must be at least {min}, got {number}"),
                (None, Some(max)) => format!("must be at most {max}, got {number}"),
                (None, None) => return Ok(()),
            };
            return Err(value_fault(name, &must));
        }
        Ok(())
    }
}
