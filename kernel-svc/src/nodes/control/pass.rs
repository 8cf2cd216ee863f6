//! Types that let a part of a stream through as it comes, and one that cuts it into lists.

use std::collections::HashSet;

use async_trait::async_trait;
use atelier_proto::{
    kernel::v1::Severity,
    value::{Map, Value},
};

use crate::{
    event::Note,
    node::{Context, Executor, NodeError, Offers},
    nodes::{
        args::{Args, count, json_of, map, one, size, text_of},
        code::{Types, factory},
    },
    run::{Envelope, Inputs, Outputs},
};

const INPUT: &str = "input_item";
/// Longest text of an item in the log.
const SHOWN: usize = 500;

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.control.Chunk", factory(Batches)),
        ("nodetool.control.Distinct", factory(Pass(Rule::Distinct))),
        ("nodetool.control.Drop", factory(Pass(Rule::Drop))),
        ("nodetool.control.FilterEqual", factory(Pass(Rule::Equal))),
        ("nodetool.control.Take", factory(Pass(Rule::Take))),
        ("nodetool.control.Tap", factory(Pass(Rule::Tap))),
    ]
}

/// Static values, and the first value of every connected input that is not the stream.
async fn settings(inputs: &mut Inputs<'_>) -> Map {
    let mut settings = inputs.properties().clone();
    let connected: Vec<_> = inputs
        .handles()
        .filter(|name| ***name != *INPUT)
        .cloned()
        .collect();
    for name in connected {
        if let Some(value) = inputs.first(&name).await {
            settings.insert(name.to_string(), value);
        }
    }
    settings
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    Take,
    Drop,
    Equal,
    Distinct,
    Tap,
}
impl Rule {
    /// Whether the place among the items that passed goes out too.
    fn numbers(self) -> bool {
        matches!(self, Self::Take | Self::Drop)
    }
}
/// Hands each item on, or says that it brings nothing.
#[derive(Clone, Copy)]
struct Pass(Rule);
#[async_trait]
impl Executor for Pass {
    fn offers(&self) -> Offers {
        Offers {
            stream: false,
            run: true,
        }
    }
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let args = Args(&inputs);
        let mut gate = Gate::new(self.0, args)?;
        let item = args.value(INPUT);
        Ok(if inputs.contains_key(INPUT) && gate.lets(&item, ctx).await {
            one("output", item)
        } else {
            Map::new()
        })
    }
    async fn run(
        &mut self,
        inputs: &mut Inputs<'_>,
        outputs: &mut Outputs<'_>,
        ctx: &Context,
    ) -> Result<(), NodeError> {
        let statics = settings(inputs).await;
        let mut gate = Gate::new(self.0, Args(&statics))?;
        let handles: &[&str] = if self.0.numbers() {
            &["output", "index"]
        } else {
            &["output"]
        };
        let mut passed = 0;
        let mut completed = false;
        loop {
            if gate.is_shut() && !completed {
                completed = true;
                handles.iter().for_each(|handle| outputs.complete(handle));
            }
            let Some(item) = inputs.next(INPUT).await else {
                return Ok(());
            };
            if completed {
                continue;
            }
            if !gate.lets(&item.value, ctx).await {
                handles.iter().for_each(|handle| outputs.drop(handle, &item));
                continue;
            }
            outputs.forward("output", &item).await?;
            if self.0.numbers() {
                outputs.emit_with("index", count(passed), &item.lineage).await?;
            }
            passed += 1;
        }
    }
}

/// What decides about the items.
struct Gate {
    rule: Rule,
    left: usize,
    wanted: Value,
    invert: bool,
    key: String,
    label: String,
    seen: HashSet<String>,
}
impl Gate {
    fn new(rule: Rule, args: Args<'_>) -> Result<Self, NodeError> {
        Ok(Self {
            rule,
            left: size(args.int("n", 1)?),
            wanted: args.value("value"),
            invert: args.flag("invert", false),
            key: args.text("key"),
            label: args.text_or("label", "tap"),
            seen: HashSet::new(),
        })
    }
    /// Whether nothing passes any more.
    fn is_shut(&self) -> bool {
        self.rule == Rule::Take && self.left == 0
    }
    async fn lets(&mut self, item: &Value, ctx: &Context) -> bool {
        match self.rule {
            Rule::Take | Rule::Drop => {
                let counted = self.left > 0;
                self.left = self.left.saturating_sub(1);
                counted == (self.rule == Rule::Take)
            }
            Rule::Equal => equal(item, &self.wanted) != self.invert,
            Rule::Distinct => {
                let of = if self.key.is_empty() {
                    item.clone()
                } else {
                    item.get(&self.key).unwrap_or_default()
                };
                self.seen.insert(json_of(&of).to_string())
            }
            Rule::Tap => {
                let text: String = text_of(item).chars().take(SHOWN).collect();
                let content = format!("{}: {text}", self.label);
                ctx.note(Note::Log {
                    content,
                    severity: Severity::Info,
                })
                .await;
                true
            }
        }
    }
}
/// Equal, where whole numbers and doubles of the same size are equal.
fn equal(left: &Value, right: &Value) -> bool {
    left == right
        || matches!((left.as_f64(), right.as_f64()), (Some(left), Some(right)) if left.total_cmp(&right).is_eq())
}

/// Lists of a fixed number of items, the last one perhaps shorter.
#[derive(Clone, Copy)]
struct Batches;
#[async_trait]
impl Executor for Batches {
    fn offers(&self) -> Offers {
        Offers {
            stream: false,
            run: true,
        }
    }
    async fn process(&mut self, inputs: Map, _ctx: &Context) -> Result<Map, NodeError> {
        Ok(one("output", Value::list(Args(&inputs).list(INPUT))))
    }
    async fn run(
        &mut self,
        inputs: &mut Inputs<'_>,
        outputs: &mut Outputs<'_>,
        _ctx: &Context,
    ) -> Result<(), NodeError> {
        let length = size(Args(&settings(inputs).await).int("size", 10)?).max(1);
        let mut batch: Vec<Envelope> = Vec::new();
        let mut made = 0;
        loop {
            let item = inputs.next(INPUT).await;
            let ended = item.is_none();
            batch.extend(item);
            if !batch.is_empty() && (ended || batch.len() >= length) {
                let items = std::mem::take(&mut batch)
                    .into_iter()
                    .map(|item| item.value)
                    .collect();
                outputs
                    .emit_group(
                        map([("output", Value::list(items)), ("index", count(made))]),
                        None,
                    )
                    .await?;
                made += 1;
            }
            if ended {
                return Ok(());
            }
        }
    }
}
