//! Triggers, and the wait.
//!
//! A trigger gives the event that its run was started with, and else the events that are sent to it while the
//! run goes on (values pushed to it by name); one that gets none for a while suspends the run. What listens to
//! web requests, files and buttons lives outside of the run and sends the events.

use std::time::Duration;

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};
use chrono::{DateTime, Utc};
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    args::{Args, map, one, size, text_of, wrong},
    code::{Generator, Sink, Streamed, Types, factory},
};
use crate::{
    node::{Context, Executor, NodeError, NodeErrorKind, Offers, TriggerEvent},
    run::{Frames, Inputs, Outputs},
};

/// The longest time that a node may be asked to wait: a year.
const LONGEST: f64 = 366.0 * 24.0 * 3_600.0;
/// The shortest interval, in seconds: anything faster is a loop.
const SHORTEST_INTERVAL: f64 = 0.01;

/// All types of this family.
pub(super) fn types() -> Types {
    let trigger = |source: &'static str, event_type: &'static str, whole: &'static str| {
        factory(Trigger {
            source,
            event_type,
            whole,
        })
    };
    vec![
        ("nodetool.triggers.FileWatchTrigger", trigger("", "", "path")),
        ("nodetool.triggers.IntervalTrigger", factory(Streamed(Interval))),
        (
            "nodetool.triggers.ManualTrigger",
            factory(Manual(Trigger {
                source: "manual",
                event_type: "manual",
                whole: "data",
            })),
        ),
        ("nodetool.triggers.Wait", factory(Wait)),
        (
            "nodetool.triggers.WebhookTrigger",
            trigger("webhook", "webhook", "body"),
        ),
    ]
}

fn seconds(args: Args<'_>, name: &str, default: f64) -> Result<f64, NodeError> {
    Ok(args.number(name, default)?.clamp(0.0, LONGEST))
}
/// Sleeps, unless the run is cancelled.
async fn pause(ctx: &Context, length: Duration) -> Result<(), NodeError> {
    tokio::select! {
        biased;
        () = ctx.cancel.cancelled() => Err(NodeError::cancelled()),
        () = sleep(length) => Ok(()),
    }
}

/// Gives the events that are sent to it.
#[derive(Clone, Copy)]
struct Trigger {
    /// What the outputs `source` and `event_type` say when the event does not.
    source: &'static str,
    event_type: &'static str,
    /// The output of an event that names none of them.
    whole: &'static str,
}
impl Trigger {
    /// The outputs of an event.
    fn outputs(self, mut event: Map, ctx: &Context) -> Map {
        let known = |name: &str| ctx.outputs.contains_key(name);
        let named = event.keys().any(|name| known(name));
        if !named && known(self.whole) && !event.is_empty() {
            // A bare value comes under `data`.
            let bare = (event.len() == 1).then(|| event.get("data").cloned()).flatten();
            event = one(self.whole, bare.unwrap_or_else(|| Value::map(event)));
        }
        event.retain(|name, _| known(name));
        let own = [
            ("timestamp", Value::from(ctx.clock.now().to_rfc3339())),
            ("source", self.source.into()),
            ("event_type", self.event_type.into()),
        ];
        for (name, value) in own {
            let given = event.get(name).is_some_and(|value| !value.is_null());
            if known(name) && !given {
                event.insert(name.to_owned(), value);
            }
        }
        event
    }
    async fn emit(
        self,
        event: &TriggerEvent,
        outputs: &mut Outputs<'_>,
        ctx: &Context,
    ) -> Result<(), NodeError> {
        outputs
            .emit_group(self.outputs(event.payload.clone(), ctx), None)
            .await
    }
}
/// How many events a trigger gives; none: as many as come.
fn most(args: Args<'_>) -> Result<usize, NodeError> {
    let most = size(args.int("max_events", 0)?);
    Ok(if most == 0 { usize::MAX } else { most })
}
/// How long a trigger waits for an event.
fn patience(args: Args<'_>) -> Result<Option<Duration>, NodeError> {
    let given = seconds(args, "timeout_seconds", 0.0)?;
    Ok((given > 0.0).then(|| Duration::from_secs_f64(given)))
}

#[async_trait]
impl Executor for Trigger {
    fn offers(&self) -> Offers {
        Offers {
            stream: true,
            ..Offers::default()
        }
    }
    async fn process(&mut self, _inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let event = ctx.next_event(None).await?;
        Ok(event.map(|event| self.outputs(event, ctx)).unwrap_or_default())
    }
    async fn stream(&mut self, inputs: Map, frames: &mut Frames<'_>, ctx: &Context) -> Result<(), NodeError> {
        let args = Args(&inputs);
        let patience = patience(args)?;
        for _ in 0..most(args)? {
            let Some(event) = ctx.next_event(patience).await? else {
                break;
            };
            frames.send(self.outputs(event, ctx)).await?;
        }
        Ok(())
    }
    async fn emit_trigger_event(
        &mut self,
        event: &TriggerEvent,
        outputs: &mut Outputs<'_>,
        ctx: &Context,
    ) -> Result<(), NodeError> {
        self.emit(event, outputs, ctx).await
    }
}

/// The same for a type that reads its own stream.
#[derive(Clone, Copy)]
struct Manual(Trigger);
#[async_trait]
impl Executor for Manual {
    fn offers(&self) -> Offers {
        Offers {
            run: true,
            ..Offers::default()
        }
    }
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        self.0.process(inputs, ctx).await
    }
    async fn run(
        &mut self,
        inputs: &mut Inputs<'_>,
        outputs: &mut Outputs<'_>,
        ctx: &Context,
    ) -> Result<(), NodeError> {
        let args = Args(inputs.properties());
        let patience = patience(args)?;
        for _ in 0..most(args)? {
            let Some(event) = ctx.next_event(patience).await? else {
                break;
            };
            outputs.emit_group(self.0.outputs(event, ctx), None).await?;
        }
        Ok(())
    }
    async fn emit_trigger_event(
        &mut self,
        event: &TriggerEvent,
        outputs: &mut Outputs<'_>,
        ctx: &Context,
    ) -> Result<(), NodeError> {
        self.0.emit(event, outputs, ctx).await
    }
}

/// A tick every so many seconds.
#[derive(Clone, Copy)]
struct Interval;
#[async_trait]
impl Generator for Interval {
    async fn generate(&self, inputs: Map, frames: &mut dyn Sink, ctx: &Context) -> Result<(), NodeError> {
        let args = Args(&inputs);
        let every = seconds(args, "interval_seconds", 60.0)?;
        if every < SHORTEST_INTERVAL {
            let text = format!("the input `interval_seconds` must be at least {SHORTEST_INTERVAL}");
            return Err(NodeError::new(text).code("input.range"));
        }
        let (interval, most) = (Duration::from_secs_f64(every), most(args)?);
        let keeps_time = args.flag("include_drift_compensation", true);
        pause(
            ctx,
            Duration::from_secs_f64(seconds(args, "initial_delay_seconds", 0.0)?),
        )
        .await?;
        let start = Instant::now();
        let mut due = if args.flag("emit_on_start", true) {
            start
        } else {
            start + interval
        };
        for tick in 1..=most {
            tokio::select! {
                biased;
                () = ctx.cancel.cancelled() => return Err(NodeError::cancelled()),
                () = sleep_until(due) => {}
            }
            let frame = map([
                ("tick", i64::try_from(tick).unwrap_or(i64::MAX).into()),
                ("elapsed_seconds", start.elapsed().as_secs_f64().into()),
                ("interval_seconds", every.into()),
                ("timestamp", ctx.clock.now().to_rfc3339().into()),
                ("source", "interval".into()),
                ("event_type", "tick".into()),
            ]);
            frames.frame(frame).await?;
            // Ticks that a slow consumer has missed are left out, not made up for in a burst.
            let now = Instant::now();
            due = if keeps_time {
                (due + interval).max(now)
            } else {
                now + interval
            };
        }
        Ok(())
    }
}

/// Hands its input on after a while. A long wait may suspend the run; it goes on for what is left of it.
#[derive(Clone, Copy)]
struct Wait;
#[async_trait]
impl Executor for Wait {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let args = Args(&inputs);
        let length = Duration::from_secs_f64(seconds(args, "timeout_seconds", 0.0)?);
        let now = ctx.clock.now();
        let saved = ctx.saved_state().ok();
        let started = saved.map_or(Ok(now), |state| instant(state, "started_at"))?;
        let passed = (now - started).to_std().unwrap_or_default();
        let left = length.saturating_sub(passed);
        // Whoever resumes it early has a reason: an answer that was merged into the state.
        let answer = saved.and_then(|state| state.get("data")).cloned();
        if let Some(longest) = ctx
            .longest_wait
            .filter(|longest| answer.is_none() && left > *longest)
        {
            return Err(suspended(ctx, args, started, left, longest));
        }
        if answer.is_none() && !left.is_zero() {
            pause(ctx, left).await?;
        }
        let ended = ctx.clock.now();
        let waited = (ended - started).to_std().unwrap_or_default();
        Ok(map([
            ("data", answer.unwrap_or_else(|| args.value("input"))),
            ("resumed_at", ended.to_rfc3339().into()),
            ("waited_seconds", waited.as_secs_f64().into()),
        ]))
    }
}
fn suspended(
    ctx: &Context,
    args: Args<'_>,
    started: DateTime<Utc>,
    left: Duration,
    longest: Duration,
) -> NodeError {
    let now = ctx.clock.now();
    let due = chrono::Duration::from_std(left).map_or(now, |left| now + left);
    tracing::debug!(node_id = %ctx.node_id, ?left, ?longest, "a wait suspends the run");
    let state = map([
        ("started_at", started.to_rfc3339().into()),
        ("suspended_at", now.to_rfc3339().into()),
        ("resume_at", due.to_rfc3339().into()),
        ("input", args.value("input")),
    ]);
    let metadata = map([("wait", true.into()), ("resume_at", due.to_rfc3339().into())]);
    NodeError {
        kind: NodeErrorKind::Suspended { state, metadata },
        ..NodeError::new(format!("waits until {}", due.to_rfc3339()))
    }
}
fn instant(state: &Map, name: &str) -> Result<DateTime<Utc>, NodeError> {
    let value = state.get(name).cloned().unwrap_or_default();
    let read = DateTime::parse_from_rfc3339(&text_of(&value));
    read.map(|at| at.to_utc())
        .map_err(|_| wrong(name, "datetime", &value))
}
