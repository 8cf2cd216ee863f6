//! The two types that may take values of unrelated iterations (kernel specification 4.8).

use std::collections::HashMap;

use async_trait::async_trait;
use atelier_proto::{
    kernel::v1::Severity,
    value::{Map, Value},
};
use indexmap::IndexMap;

use crate::{
    event::Note,
    node::{Context, Executor, NodeError, Offers},
    nodes::{
        args::{Args, count, map, size},
        code::{Types, factory},
    },
    run::{Inputs, Lineage, Outputs},
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.control.Cross", factory(Cross)),
        ("nodetool.control.Zip", factory(Zip)),
    ]
}

/// Called as a whole, a join gives the two values it got.
fn pair(inputs: &Map) -> Map {
    let sides = inputs
        .iter()
        .filter(|(name, _)| matches!(name.as_str(), "left" | "right"));
    sides.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Pairs values of equal index under the same parent, as soon as both are there.
#[derive(Clone, Copy)]
struct Zip;
#[async_trait]
impl Executor for Zip {
    fn offers(&self) -> Offers {
        Offers {
            stream: false,
            run: true,
        }
    }
    async fn process(&mut self, inputs: Map, _ctx: &Context) -> Result<Map, NodeError> {
        Ok(pair(&inputs))
    }
    async fn run(
        &mut self,
        inputs: &mut Inputs<'_>,
        outputs: &mut Outputs<'_>,
        ctx: &Context,
    ) -> Result<(), NodeError> {
        let most = size(Args(inputs.properties()).int("max_unmatched_pairs", 1024)?);
        let mut waiting: HashMap<(Lineage, u32), (bool, Value)> = HashMap::new();
        let mut made = 0;
        while let Some((handle, item)) = inputs.any().await {
            let is_left = match &*handle {
                "left" => true,
                "right" => false,
                _ => continue,
            };
            let scope = inputs.invocation_scope();
            let mut own = item.lineage.beyond(scope);
            let (Some(token), None) = (own.next(), own.next()) else {
                let text = format!(
                    "the input `{handle}` must come from exactly one iteration that the other does not"
                );
                return Err(NodeError::new(text).code("join.iterations"));
            };
            let parent = item.lineage.project(scope).unwrap_or_default();
            let key = (parent, token.index);
            match waiting.remove(&key) {
                Some((other_left, other)) if other_left != is_left => {
                    let (left, right) = if is_left {
                        (item.value, other)
                    } else {
                        (other, item.value)
                    };
                    let values = map([("left", left), ("right", right), ("index", count(made))]);
                    outputs.emit_group(values, Some(&key.0)).await?;
                    made += 1;
                }
                _ => {
                    if waiting.len() >= most.max(1) {
                        let text =
                            format!("more than {most} values wait for their partner (`max_unmatched_pairs`)");
                        return Err(NodeError::new(text).code("join.unmatched"));
                    }
                    waiting.insert(key, (is_left, item.value));
                }
            }
        }
        if !waiting.is_empty() {
            let content = format!("{} values had no partner and were left out", waiting.len());
            ctx.note(Note::Log {
                content,
                severity: Severity::Warning,
            })
            .await;
        }
        Ok(())
    }
}

/// Pairs every left value with every right one under the same parent, after both inputs have ended.
#[derive(Clone, Copy)]
struct Cross;
#[async_trait]
impl Executor for Cross {
    fn offers(&self) -> Offers {
        Offers {
            stream: false,
            run: true,
        }
    }
    async fn process(&mut self, inputs: Map, _ctx: &Context) -> Result<Map, NodeError> {
        Ok(pair(&inputs))
    }
    async fn run(
        &mut self,
        inputs: &mut Inputs<'_>,
        outputs: &mut Outputs<'_>,
        _ctx: &Context,
    ) -> Result<(), NodeError> {
        let most = size(Args(inputs.properties()).int("max_output_count", 1024)?);
        let mut left: IndexMap<Lineage, Vec<Value>> = IndexMap::new();
        let mut right: HashMap<Lineage, Vec<Value>> = HashMap::new();
        while let Some((handle, item)) = inputs.any().await {
            let parent = item
                .lineage
                .project(inputs.invocation_scope())
                .unwrap_or_default();
            match &*handle {
                "left" => left.entry(parent).or_default().push(item.value),
                "right" => right.entry(parent).or_default().push(item.value),
                _ => {}
            }
        }
        let mut made = 0_usize;
        for (parent, lefts) in left {
            let rights = right.remove(&parent).unwrap_or_default();
            for one in &lefts {
                for other in &rights {
                    if made >= most {
                        let text = format!("more than {most} pairs (`max_output_count`)");
                        return Err(NodeError::new(text).code("join.too_many"));
                    }
                    made += 1;
                    let values = map([("left", one.clone()), ("right", other.clone())]);
                    outputs.emit_group(values, Some(&parent)).await?;
                }
            }
        }
        Ok(())
    }
}
