//! The node types of the corpus and of the tables. Values are plain; every call is noted in a [`Log`].

mod meta;
mod run;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use atelier_kernel::{
    node::{Context, Executor, NodeError, NodeErrorKind, Offers, Registry},
    run::{Frames, Inputs, Outputs},
};
use atelier_proto::value::{BytesForm, Map, Value, to_json};
pub use meta::metas;

/// One call of a node's code.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// Merged inputs; `None` for a node that reads its own stream.
    pub inputs: Option<Map>,
    /// The items it was called for, as text.
    pub lineage: String,
    /// What it returned, of nodes whose artifacts are not told.
    pub result: Option<Map>,
    pub failed: bool,
    pub invocation: String,
}

/// What the nodes of one run did.
#[derive(Debug, Default)]
pub struct Log {
    pub calls: Mutex<HashMap<String, Vec<Call>>>,
    pub initialized: Mutex<Vec<String>>,
    pub finalized: Mutex<Vec<String>>,
    /// Envelopes that `test.Cap` saw: value and lineage as text.
    pub seen: Mutex<HashMap<String, Vec<Value>>>,
    /// Random yields before and after everything, from this seed.
    pub jitter: Option<AtomicU64>,
}
impl Log {
    pub fn with_jitter(seed: u64) -> Self {
        Self {
            jitter: Some(AtomicU64::new(seed)),
            ..Self::default()
        }
    }
    pub async fn yields(&self) {
        let Some(state) = &self.jitter else { return };
        let mut seed = state
            .load(Ordering::Relaxed)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state.store(seed, Ordering::Relaxed);
        seed >>= 33;
        for _ in 0..seed % 5 {
            tokio::task::yield_now().await;
        }
    }
    pub fn calls(&self, node: &str) -> Vec<Call> {
        self.calls.lock().unwrap().get(node).cloned().unwrap_or_default()
    }
    fn begin(&self, ctx: &Context, inputs: Option<&Map>) {
        let text = ctx.invocation.rsplit_once('#').map_or("", |(key, _)| key);
        let mut roots: Vec<&str> = text.split(',').filter(|root| !root.is_empty()).collect();
        roots.sort_unstable();
        let call = Call {
            inputs: inputs.cloned(),
            lineage: roots.join(","),
            invocation: ctx.invocation.to_string(),
            ..Call::default()
        };
        self.calls
            .lock()
            .unwrap()
            .entry(ctx.node_id.to_string())
            .or_default()
            .push(call);
    }
    /// Notes a call of a node that is not of these types.
    pub fn note(&self, ctx: &Context, inputs: &Map) {
        self.begin(ctx, Some(inputs));
    }
    fn end(&self, ctx: &Context, outcome: Result<Option<&Map>, ()>) {
        let mut calls = self.calls.lock().unwrap();
        let Some(call) = calls.get_mut(&*ctx.node_id).and_then(|calls| calls.last_mut()) else {
            return;
        };
        match outcome {
            Ok(result) => call.result = result.cloned(),
            Err(()) => call.failed = true,
        }
    }
}

/// The code of a node.
pub struct Node {
    ty: String,
    log: Arc<Log>,
}

pub fn registry(log: &Arc<Log>) -> Registry {
    with_tests(Registry::default(), log)
}
/// A registry with the test types besides its own.
pub fn with_tests(mut registry: Registry, log: &Arc<Log>) -> Registry {
    for meta in metas() {
        let (ty, log) = (meta.node_type.clone(), Arc::clone(log));
        let make = move || {
            Box::new(Node {
                ty: ty.clone(),
                log: Arc::clone(&log),
            }) as Box<dyn Executor>
        };
        registry.register(meta.clone(), Arc::new(make));
    }
    registry
}

pub fn map<const N: usize>(entries: [(&str, Value); N]) -> Map {
    entries
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
/// Canonical text: compact JSON with sorted keys.
pub fn canonical(value: &Value) -> String {
    canonical_json(&to_json(value, BytesForm::Tagged))
}
pub fn canonical_json(json: &serde_json::Value) -> String {
    match json {
        serde_json::Value::Object(object) => {
            let mut keys: Vec<_> = object.keys().collect();
            keys.sort();
            let parts: Vec<String> = keys
                .iter()
                .map(|key| format!("{}:{}", serde_json::json!(key), canonical_json(&object[*key])))
                .collect();
            format!("{{{}}}", parts.join(","))
        }
        serde_json::Value::Array(values) => {
            format!(
                "[{}]",
                values.iter().map(canonical_json).collect::<Vec<_>>().join(",")
            )
        }
        other => other.to_string(),
    }
}
pub fn text(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::Str(text)) => text.to_string(),
        Some(other) => canonical(other),
    }
}
pub fn num(value: Option<&Value>, default: i64) -> i64 {
    value.and_then(Value::as_i64).unwrap_or(default)
}
pub fn pred(inputs: &Map, value: Option<&Value>) -> bool {
    let number = value.and_then(|value| match value {
        Value::Int(number) => Some(*number),
        _ => None,
    });
    match inputs.get("pred").and_then(Value::as_str).unwrap_or("even") {
        "odd" => number.is_some_and(|number| number.rem_euclid(2) == 1),
        "gt" => number.is_some_and(|number| number > num(inputs.get("limit"), 0)),
        "always" => true,
        "never" => false,
        _ => number.is_some_and(|number| number.rem_euclid(2) == 0),
    }
}
pub fn fail(text: impl Into<String>) -> NodeError {
    NodeError::new(text)
}
fn maybe(name: &str, value: Option<&Value>) -> Map {
    value
        .map(|value| (name.to_owned(), value.clone()))
        .into_iter()
        .collect()
}

/// Buffered nodes and inputs of the run.
fn process(ty: &str, inputs: &Map) -> Result<Map, NodeError> {
    let value = inputs.get("value");
    let get = |name: &str| inputs.get(name);
    Ok(match ty.rsplit_once('.').map_or(ty, |(_, name)| name) {
        "Double" => map([("output", (2 * num(value, 0)).into())]),
        "Pair" => {
            let object = value.and_then(Value::as_map).cloned().unwrap_or_default();
            object
                .into_iter()
                .filter(|(name, _)| name == "a" || name == "b")
                .collect()
        }
        "Nothing" | "Empty" => Map::new(),
        "Bad" => return Err(fail("bad input")),
        "Relay" => {
            let mut out = maybe("value", value);
            out.extend(maybe("text", get("text")));
            out
        }
        "Add" => map([("output", (num(get("a"), 0) + num(get("b"), 0)).into())]),
        "Mul" => map([("output", (num(get("a"), 1) * num(get("b"), 1)).into())]),
        "Concat" => map([("output", format!("{}{}", text(get("a")), text(get("b"))).into())]),
        "Join" => map([("output", format!("{}+{}", text(get("l")), text(get("r"))).into())]),
        "Echo" => {
            let own = inputs.iter().filter(|(name, _)| !name.starts_with('_'));
            map([(
                "output",
                Value::map(own.map(|(name, value)| (name.clone(), value.clone())).collect()),
            )])
        }
        "Split" | "SplitLive" => {
            let mut out = maybe("a", value);
            out.extend(maybe("b", value));
            out
        }
        "Gate" => maybe(if pred(inputs, value) { "yes" } else { "no" }, value),
        "NullOut" => map([("output", Value::Null)]),
        "FailOn" => {
            if get("on").is_none() || get("on") == value {
                return Err(fail(format!("fail:{}", text(value))));
            }
            maybe("output", value)
        }
        "Range" => map([(
            "output",
            Value::list((0..num(value, 0)).map(Value::from).collect()),
        )]),
        "Twice" => {
            let value = value.cloned().unwrap_or_default();
            map([("output", Value::list(vec![value.clone(), value]))])
        }
        "Len" => {
            let length = value
                .and_then(Value::as_list)
                .map_or(-1, |list| i64::try_from(list.len()).unwrap());
            map([("output", length.into())])
        }
        "Gather" | "GatherInt" => match get("items") {
            Some(Value::List(list)) => {
                let mut sorted = list.to_vec();
                sorted.sort_by_key(canonical);
                map([("output", sorted.into())])
            }
            other => maybe("output", other),
        },
        "ControlOut" => maybe("__control_output__", value),
        "Less" => map([("output", (num(value, 0) < num(get("limit"), 0)).into())]),
        "Append" => map([("output", format!("{}a", text(value)).into())]),
        "Controlled" => maybe("result", get("x")),
        "BadForwardList" => maybe("output", get("items")),
        "Narrow" => maybe("output", get("outer")),
        "Panic" => panic!("on purpose"),
        "Variants" => map([("image", Value::list((0..4).map(Value::from).collect()))]),
        "Suspend" => {
            let kind = NodeErrorKind::Suspended {
                state: map([("step", 2.into())]),
                metadata: map([("p", 1.into())]),
            };
            return Err(NodeError { kind, ..fail("r") });
        }
        "Refuse" => {
            if get("on") == value {
                return Err(NodeError {
                    kind: NodeErrorKind::Refused,
                    ..fail("policy")
                });
            }
            maybe("output", value)
        }
        "LoseItem" => {
            if get("on") == value {
                return Err(NodeError {
                    kind: NodeErrorKind::Item,
                    ..fail("no paint")
                });
            }
            maybe("output", value)
        }
        "MissingRuntime" => {
            return Err(fail("no runtime").code("missing_runtime_package"));
        }
        _ => maybe("output", value),
    })
}

/// Frames of streamed nodes; an error ends them.
fn frames(ty: &str, inputs: &Map) -> Vec<Result<Map, NodeError>> {
    let get = |name: &str| inputs.get(name);
    let count = |default: i64| 0..num(get("n"), default);
    match ty.rsplit_once('.').map_or(ty, |(_, name)| name) {
        "ForEach" => {
            let items = match get("input_list") {
                None => Vec::new(),
                Some(Value::List(list)) => list.to_vec(),
                Some(other) => vec![other.clone()],
            };
            let frame = |(at, item): (i64, Value)| Ok(map([("output", item), ("index", (100 + at).into())]));
            (0..).zip(items).map(frame).collect()
        }
        "StreamN" => count(0)
            .map(|k| Ok(map([("output", (num(get("base"), 0) + k).into())])))
            .collect(),
        "Chunks" => {
            let prefix = get("prefix")
                .filter(|prefix| !prefix.is_null())
                .map_or_else(|| "c".to_owned(), |prefix| text(Some(prefix)));
            count(2)
                .map(|k| Ok(map([("chunk", format!("{prefix}{k}").into())])))
                .collect()
        }
        "ChunkNums" => count(2)
            .map(|k| Ok(map([("chunk", (num(get("base"), 10) + k).into())])))
            .collect(),
        "Trigger" => vec![Ok(map([("value", "streamed".into())]))],
        "BigStream" => {
            let size: usize = num(get("bytes"), 0).try_into().unwrap();
            let bytes = bytes::Bytes::from(vec![0; size]);
            count(0)
                .map(|_| Ok(map([("output", Value::Bytes(bytes.clone()))])))
                .collect()
        }
        "Raw" => count(0).map(|k| Ok(map([("output", k.into())]))).collect(),
        "Frames" | "PlainFrames" | "ArtifactFrames" => get("frames")
            .and_then(Value::as_list)
            .unwrap_or_default()
            .iter()
            .map(|frame| frame.as_map().cloned().ok_or_else(|| fail("fail:frames")))
            .collect(),
        "Controller" => {
            let events = get("events").and_then(Value::as_list).unwrap_or_default();
            events
                .iter()
                .map(|event| Ok(map([("__control__", event.clone())])))
                .collect()
        }
        other => panic!("no frames for {other}"),
    }
}

fn is_streamed(ty: &str) -> bool {
    metas_flag(ty, |meta| meta.streaming_output == Some(true)) && !ty.starts_with("nodetool.input.")
}
fn metas_flag(ty: &str, holds: impl Fn(&atelier_kernel::node::NodeMeta) -> bool) -> bool {
    metas().iter().any(|meta| meta.node_type == ty && holds(meta))
}

#[async_trait]
impl Executor for Node {
    fn offers(&self) -> Offers {
        let run = metas_flag(&self.ty, |meta| meta.streaming_input == Some(true))
            && !self.ty.ends_with("LegacyStream");
        Offers {
            stream: is_streamed(&self.ty),
            run,
        }
    }
    async fn initialize(&mut self, ctx: &Context) -> Result<(), NodeError> {
        self.log.initialized.lock().unwrap().push(ctx.node_id.to_string());
        if self.ty == "test.BadInit" {
            Err(fail("no init"))
        } else {
            Ok(())
        }
    }
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        self.log.yields().await;
        self.log.begin(ctx, Some(&inputs));
        match self.ty.as_str() {
            "test.Slow" => {
                tokio::time::sleep(Duration::from_millis(
                    num(inputs.get("ms"), 50).try_into().unwrap(),
                ))
                .await
            }
            "test.Resumable" => {
                if !ctx.is_resuming() {
                    self.log.end(ctx, Err(()));
                    assert!(ctx.saved_state().is_err());
                    return process("test.Suspend", &inputs);
                }
                let outcome = ctx
                    .saved_state()
                    .map(|state| map([("output", state["step"].clone())]));
                self.log.end(ctx, outcome.as_ref().map(Some).map_err(|_| ()));
                return outcome;
            }
            "test.Caller" => {
                // Calls a node with 1, 2, … and gives what it answered.
                let (mut said, target) = (Vec::new(), text(inputs.get("target")));
                for number in 1..=num(inputs.get("times"), 1) {
                    let properties = map([("x", number.into()), ("value", number.into())]);
                    said.push(match ctx.controls.call(&target, properties).await {
                        Ok(outputs) => outputs.into(),
                        Err(wrong) => Value::from(wrong),
                    });
                }
                let outputs = map([("output", Value::list(said))]);
                self.log.end(ctx, Ok(Some(&outputs)));
                return Ok(outputs);
            }
            "test.Big" => {
                let size = num(inputs.get("bytes"), 0).try_into().unwrap();
                let bytes = bytes::Bytes::from(vec![0; size]);
                return Ok(map([("output", Value::Bytes(bytes))]));
            }
            "test.Block" => std::thread::sleep(Duration::from_millis(
                num(inputs.get("ms"), 50).try_into().unwrap(),
            )),
            "test.Stubborn" => std::future::pending::<()>().await,
            "test.PaidSlow" => {
                ctx.generation_ids.lock().unwrap().push("g1".to_owned());
                ctx.cancel.cancelled().await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            _ => {}
        }
        let outcome = process(&self.ty, &inputs);
        self.log.end(ctx, outcome.as_ref().map(Some).map_err(|_| ()));
        self.log.yields().await;
        outcome
    }
    async fn stream(&mut self, inputs: Map, out: &mut Frames<'_>, ctx: &Context) -> Result<(), NodeError> {
        self.log.yields().await;
        self.log.begin(ctx, Some(&inputs));
        for frame in frames(&self.ty, &inputs) {
            match frame {
                Ok(frame) => out.send(frame).await?,
                Err(error) => {
                    self.log.end(ctx, Err(()));
                    return Err(error);
                }
            }
            if let Some(ms) = inputs.get("ms").and_then(Value::as_i64) {
                tokio::time::sleep(Duration::from_millis(ms.try_into().unwrap())).await;
            }
            self.log.yields().await;
        }
        Ok(())
    }
    async fn run(
        &mut self,
        inputs: &mut Inputs<'_>,
        outputs: &mut Outputs<'_>,
        ctx: &Context,
    ) -> Result<(), NodeError> {
        self.log.begin(ctx, None);
        let outcome = run::run(&self.ty, &self.log, inputs, outputs, ctx).await;
        if outcome.is_err() {
            self.log.end(ctx, Err(()));
        }
        outcome
    }
    async fn finalize(&mut self, ctx: &Context) {
        self.log.finalized.lock().unwrap().push(ctx.node_id.to_string());
        assert!(self.ty != "test.BadFinalize", "finalize fails on purpose");
        if self.ty == "test.EndlessFinalize" || self.ty == "nodetool.input.EndlessFinalize" {
            std::future::pending::<()>().await;
        }
    }
}
