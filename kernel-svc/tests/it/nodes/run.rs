//! Nodes that read their own stream.

use std::{collections::HashMap, sync::Arc, time::Duration};

use atelier_kernel::{
    node::{Context, NodeError},
    run::{Envelope, Group, Inputs, Lineage, Outputs},
};
use atelier_proto::value::{Map, Value};

use super::{Log, fail, map, num, pred, text};

pub async fn run(
    ty: &str,
    log: &Arc<Log>,
    inputs: &mut Inputs<'_>,
    outputs: &mut Outputs<'_>,
    ctx: &Context,
) -> Result<(), NodeError> {
    let own: Map = inputs.properties().clone();
    match ty.rsplit_once('.').map_or(ty, |(_, name)| name) {
        "Cap" => {
            while let Some(envelope) = inputs.next("value").await {
                log.yields().await;
                log.seen
                    .lock()
                    .unwrap()
                    .entry(ctx.node_id.to_string())
                    .or_default()
                    .push(envelope.value);
            }
        }
        name @ ("Collect" | "Count" | "SumAll" | "Last") => {
            while let Some(group) = inputs.next_group("input_item").await {
                log.yields().await;
                if let Some(value) = aggregate(name, &group) {
                    outputs.finish_group(&group, "output", value).await?;
                }
            }
        }
        "Filter" => {
            while let Some(envelope) = inputs.next("value").await {
                log.yields().await;
                if pred(&own, Some(&envelope.value)) {
                    outputs.forward("output", &envelope).await?;
                } else {
                    outputs.drop("output", &envelope);
                }
            }
        }
        "Take" => take(&own, inputs, outputs).await?,
        "Running" => {
            let mut sum = 0;
            while let Some(envelope) = inputs.next("value").await {
                sum += num(Some(&envelope.value), 0);
                outputs.emit("output", sum.into()).await?;
            }
        }
        "Replay" => {
            let mut all = Vec::new();
            while let Some(envelope) = inputs.next("value").await {
                all.push(envelope);
            }
            for envelope in &all {
                outputs.forward("output", envelope).await?;
            }
        }
        "NullForward" => {
            while let Some(envelope) = inputs.next("value").await {
                outputs.forward_value("output", &envelope, Value::Null).await?;
            }
        }
        "SlowForward" => {
            while let Some(envelope) = inputs.next("value").await {
                tokio::time::sleep(Duration::from_millis(5)).await;
                outputs.forward("output", &envelope).await?;
            }
        }
        "Bare" => {
            while let Some(envelope) = inputs.next("value").await {
                outputs.emit("", envelope.value.clone()).await?;
                outputs.emit("", envelope.value).await?;
            }
        }
        "Accumulate" => {
            let mut sum = 0;
            while let Some((_, envelope)) = inputs.any().await {
                sum += num(Some(&envelope.value), 0);
            }
            outputs.emit("output", sum.into()).await?;
        }
        "StreamFail" => {
            while let Some(envelope) = inputs.next("value").await {
                if own.get("on") == Some(&envelope.value) {
                    return Err(fail(format!("fail:{}", text(Some(&envelope.value)))));
                }
                outputs.forward("output", &envelope).await?;
            }
        }
        "LateEmit" => {
            outputs.complete("output");
            while let Some(envelope) = inputs.next("value").await {
                outputs.forward("output", &envelope).await?;
            }
        }
        "Zip" => zip(inputs, outputs).await?,
        "Cross" => cross(&own, inputs, outputs).await?,
        "Endless" => ctx.cancel.cancelled().await,
        "BFirst" => {
            let mut count = 0;
            for handle in ["b", "a"] {
                while inputs.next(handle).await.is_some() {
                    count += 1;
                }
            }
            outputs.emit("output", count.into()).await?;
        }
        "TwoSlots" => {
            outputs.emit("output", 1.into()).await?;
            outputs.complete("output");
            ctx.cancel.cancelled().await;
        }
        "Hold" => {
            while inputs.next("value").await.is_some() {}
            outputs.emit("output", 1.into()).await?;
        }
        other => panic!("{other} does not read a stream"),
    }
    Ok(())
}

fn aggregate(name: &str, group: &Group) -> Option<Value> {
    let values = || group.items.iter().map(|envelope| envelope.value.clone());
    match name {
        "Collect" => Some(Value::list(values().collect())),
        "Count" => Some(i64::try_from(group.items.len()).unwrap().into()),
        "SumAll" => Some(values().map(|value| num(Some(&value), 0)).sum::<i64>().into()),
        _ => values().last(),
    }
}

async fn take(own: &Map, inputs: &mut Inputs<'_>, outputs: &mut Outputs<'_>) -> Result<(), NodeError> {
    let mut left = num(own.get("n"), 1);
    if left == 0 {
        outputs.complete("output");
    }
    while let Some(envelope) = inputs.next("value").await {
        if left == 0 {
            continue;
        }
        outputs.forward("output", &envelope).await?;
        left -= 1;
        if left == 0 {
            outputs.complete("output");
        }
    }
    Ok(())
}

/// The parent and the index of the one root that an input has beyond what both share.
fn split(inputs: &Inputs<'_>, handle: &str, envelope: &Envelope) -> Result<(Lineage, u32), NodeError> {
    let own = inputs.scope(handle);
    let shared = inputs.invocation_scope();
    let extra: Vec<_> = own.0.iter().filter(|root| !shared.0.contains(root)).collect();
    let [root] = extra.as_slice() else {
        return Err(fail(format!("zip: {handle} needs one iteration of its own")));
    };
    let index = envelope
        .lineage
        .index(**root)
        .ok_or_else(|| fail(format!("zip: {handle} lacks its item")))?;
    Ok((envelope.lineage.project(shared).unwrap_or_default(), index))
}

async fn zip(inputs: &mut Inputs<'_>, outputs: &mut Outputs<'_>) -> Result<(), NodeError> {
    for handle in ["left", "right"] {
        let own = inputs.scope(handle);
        if own
            .0
            .iter()
            .filter(|root| !inputs.invocation_scope().0.contains(root))
            .count()
            != 1
        {
            return Err(fail(format!("zip: {handle} needs one iteration of its own")));
        }
    }
    let mut waiting: HashMap<(Lineage, u32), (bool, Value)> = HashMap::new();
    while let Some((handle, envelope)) = inputs.any().await {
        let left = &*handle == "left";
        let (parent, index) = split(inputs, &handle, &envelope)?;
        match waiting.remove(&(parent.clone(), index)) {
            Some((other_left, other)) if other_left != left => {
                let (l, r) = if left {
                    (envelope.value, other)
                } else {
                    (other, envelope.value)
                };
                let pair = map([("left", l), ("right", r), ("index", i64::from(index).into())]);
                outputs.emit_group(pair, Some(&parent)).await?;
            }
            _ => {
                waiting.insert((parent, index), (left, envelope.value));
            }
        }
    }
    Ok(())
}

async fn cross(own: &Map, inputs: &mut Inputs<'_>, outputs: &mut Outputs<'_>) -> Result<(), NodeError> {
    let limit = num(own.get("max_output_count"), 1024);
    let shared = inputs.invocation_scope().clone();
    let mut sides: [Vec<(Lineage, Value)>; 2] = [Vec::new(), Vec::new()];
    while let Some((handle, envelope)) = inputs.any().await {
        let parent = envelope.lineage.project(&shared).unwrap_or_default();
        sides[usize::from(&*handle == "right")].push((parent, envelope.value));
    }
    let [left, right] = sides;
    let mut parents: Vec<Lineage> = Vec::new();
    for (parent, _) in &left {
        if !parents.contains(parent) {
            parents.push(parent.clone());
        }
    }
    let mut count = 0;
    for parent in parents {
        for (_, l) in left.iter().filter(|(own, _)| *own == parent) {
            for (_, r) in right.iter().filter(|(own, _)| *own == parent) {
                if count == limit {
                    return Err(fail("fail:cross limit"));
                }
                count += 1;
                outputs
                    .emit_group(map([("left", l.clone()), ("right", r.clone())]), Some(&parent))
                    .await?;
            }
        }
    }
    Ok(())
}
