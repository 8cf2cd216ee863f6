//! Mode 1: the loop runtime (kernel specification 6). A run of the loop for each value that comes in, all of
//! them at the same time; the node's own code is never called.
//!
//! A run emits `value` and `index` of an iteration and waits for the feedback of exactly that iteration. It
//! ends with `done`, or without it when its feedback will never come: the body said so, the body has ended, or
//! the whole run stands still.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use atelier_proto::{
    kernel::v1::NodeStatus,
    value::{Map, Value},
};

use crate::{
    graph::{
        facts::{Root, Scope},
        loops::{CONDITION, DONE, INDEX, INITIAL, MAX_ITERATIONS, NEXT, VALUE},
    },
    node::NodeError,
    run::{
        actor::Actor,
        inbox::{Inbox, Item, Taken},
        lineage::Lineage,
    },
};

/// Iterations when the property does not say how many.
const DEFAULT_ITERATIONS: u32 = 10;
/// The most iterations of a run: a loop that never ends must not spend for ever.
const MOST_ITERATIONS: f64 = 1_000.0;

/// The property `max_iterations` as a number of iterations, at least one.
pub(crate) fn clamp(value: Option<&Value>) -> u32 {
    let number = match value {
        Some(Value::Str(text)) if text.trim().is_empty() => Some(0.0),
        Some(Value::Str(text)) => text.trim().parse().ok(),
        Some(Value::Bool(flag)) => Some(f64::from(u8::from(*flag))),
        Some(other) => other.as_f64(),
        None => None,
    };
    let Some(number) = number.filter(|number: &f64| !number.is_nan()) else {
        return DEFAULT_ITERATIONS;
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between one and a thousand"
    )]
    let whole = number.floor().clamp(1.0, MOST_ITERATIONS) as u32;
    whole
}

/// One run of the loop, waiting for the feedback of an iteration.
struct Run {
    iteration: u32,
    next: Option<Value>,
    again: Option<bool>,
}

/// What the node needs to know of itself.
struct Shape {
    initial: Option<usize>,
    next: Option<usize>,
    condition: Option<usize>,
    /// The iterations that the loop runs in, and those of its body.
    outer: Scope,
    root: Root,
    most: u32,
}

/// All runs of a loop.
struct Looping {
    shape: Shape,
    runs: HashMap<Lineage, Run>,
    started: HashSet<Lineage>,
    /// Ends of outer items that are passed on when no run is left under them.
    closed: Vec<(Lineage, Root)>,
    told_limit: bool,
    told: HashSet<&'static str>,
}

impl Actor {
    pub(crate) async fn looping(&mut self) -> Result<(), NodeError> {
        let Some(shape) = self.shape() else {
            return Err(NodeError::new("the graph of the loop was not analysed"));
        };
        let inbox = Arc::clone(&self.inbox);
        let mut looping = Looping {
            shape,
            runs: HashMap::new(),
            started: HashSet::new(),
            closed: Vec::new(),
            told_limit: false,
            told: HashSet::new(),
        };
        if looping.shape.initial.is_none() {
            let value = self.node.statics.get(INITIAL).cloned().unwrap_or_default();
            self.start_run(&mut looping, Lineage::default(), value).await?;
        }
        let handles = self.node.facts.handles.len();
        let mut completed = false;
        loop {
            if self.cancel.is_cancelled() {
                return Err(NodeError::cancelled());
            }
            match inbox.take_any(handles) {
                Taken::Item(at, item) => self.feed(&mut looping, at, item).await?,
                Taken::Empty(version) => {
                    if !completed && self.is_over(&mut looping, &inbox) {
                        completed = true;
                        [VALUE, INDEX, DONE]
                            .into_iter()
                            .for_each(|name| self.emitter.complete(name));
                        continue;
                    }
                    self.core.loops.waits(self.at, looping.runs.len());
                    inbox.wait(version).await;
                    self.core.loops.waits(self.at, 0);
                    if inbox.take_quiet() {
                        self.give_up(&mut looping, |_| true);
                    }
                }
                Taken::End => return Ok(()),
            }
        }
    }
    fn shape(&self) -> Option<Shape> {
        let facts = &self.node.facts;
        let place = |name: &str| facts.handles.iter().position(|handle| &*handle.name == name);
        let value = self.emitter.slots.iter().find(|slot| &*slot.name == VALUE)?;
        Some(Shape {
            initial: place(INITIAL),
            next: place(NEXT),
            condition: place(CONDITION),
            outer: value.scope.parent(),
            root: value.root?,
            most: clamp(self.node.statics.get(MAX_ITERATIONS)),
        })
    }
    /// Whether no run goes on and none can start. Runs whose feedback has ended are given up before.
    fn is_over(&self, looping: &mut Looping, inbox: &Inbox) -> bool {
        let shape = &looping.shape;
        let ended = |handle: Option<usize>| handle.is_some_and(|at| inbox.view(|view| view.is_done(at)));
        let (next, condition) = (ended(shape.next), ended(shape.condition));
        if next || condition {
            self.give_up(looping, |run| {
                (next && run.next.is_none()) || (condition && run.again.is_none())
            });
        }
        looping.runs.is_empty() && looping.shape.initial.is_none_or(|at| ended(Some(at)))
    }
    async fn feed(&mut self, looping: &mut Looping, at: usize, item: Item) -> Result<(), NodeError> {
        let (shape, is_initial) = (&looping.shape, looping.shape.initial == Some(at));
        match item {
            Item::Value(envelope) => {
                let Some(key) = envelope.lineage.project(&shape.outer) else {
                    return self.incomplete(looping, at).await;
                };
                if is_initial {
                    return self.start_run(looping, key, envelope.value).await;
                }
                let iteration = envelope.lineage.index(shape.root);
                self.answer(looping, at, (key, iteration), envelope.value).await
            }
            Item::Done(lineage) => {
                let key = lineage.project(&shape.outer);
                let iteration = lineage.index(shape.root);
                if let (false, Some(key), Some(iteration)) = (is_initial, key, iteration) {
                    let condition = shape.condition == Some(at);
                    let lost = |run: &Run| {
                        let given = if condition {
                            run.again.is_some()
                        } else {
                            run.next.is_some()
                        };
                        run.iteration == iteration && !given
                    };
                    if looping.runs.get(&key).is_some_and(lost) {
                        looping.runs.remove(&key);
                        self.end_run(looping, &key, false);
                    }
                } else if let (true, Some(key)) = (is_initial, lineage.project(&shape.outer)) {
                    self.emitter.skip(&key, true);
                }
                Ok(())
            }
            Item::ScopeClosed { parent, root } => {
                if is_initial {
                    if looping.runs.keys().any(|key| key.is_under(&parent)) {
                        looping.closed.push((parent, root));
                    } else {
                        self.emitter.scope_closed(&parent, root);
                    }
                }
                Ok(())
            }
        }
    }
    /// A value that does not say which item it belongs to.
    async fn incomplete(&mut self, looping: &mut Looping, at: usize) -> Result<(), NodeError> {
        let name = self
            .node
            .facts
            .handles
            .get(at)
            .map(|handle| handle.name.to_string());
        let text = format!(
            "a value at input {} of node {} does not say which item of its iteration it belongs to",
            name.unwrap_or_default(),
            self.node.node.id
        );
        if self.core.options.strict {
            return Err(NodeError::new(text).code("corr.incomplete_lineage"));
        }
        self.tell(looping, "incomplete", text).await;
        Ok(())
    }
    /// Warns in the log of the node, once for each kind of thing.
    async fn tell(&self, looping: &mut Looping, kind: &'static str, text: String) {
        if looping.told.insert(kind) {
            self.core.warn(&self.node, text).await;
        }
    }
    async fn start_run(
        &mut self,
        looping: &mut Looping,
        key: Lineage,
        value: Value,
    ) -> Result<(), NodeError> {
        if !looping.started.insert(key.clone()) {
            let text = format!(
                "input {INITIAL} of node {} got a second value for a run that had started; it is ignored",
                self.node.node.id
            );
            self.tell(looping, INITIAL, text).await;
            return Ok(());
        }
        self.emitter.open(&key);
        self.iterate(looping, key, 0, value).await
    }
    /// Sends an iteration into the body.
    async fn iterate(
        &mut self,
        looping: &mut Looping,
        key: Lineage,
        iteration: u32,
        value: Value,
    ) -> Result<(), NodeError> {
        let lineage = key.with(looping.shape.root, iteration);
        let run = Run {
            iteration,
            next: None,
            again: looping.shape.condition.is_none().then_some(true),
        };
        looping.runs.insert(key, run);
        self.put(VALUE, value, &lineage, true).await?;
        self.put(INDEX, i64::from(iteration).into(), &lineage, true).await
    }
    async fn put(
        &mut self,
        output: &str,
        value: Value,
        lineage: &Lineage,
        append: bool,
    ) -> Result<(), NodeError> {
        let place = self.emitter.place(output);
        let values: Map = [(output.to_owned(), value)].into_iter().collect();
        self.emitter
            .send(&values, &[(place, lineage.clone())], append)
            .await
    }
    /// Takes the feedback of an iteration, and goes on when it is complete.
    async fn answer(
        &mut self,
        looping: &mut Looping,
        at: usize,
        (key, iteration): (Lineage, Option<u32>),
        value: Value,
    ) -> Result<(), NodeError> {
        let condition = looping.shape.condition == Some(at);
        let waits = |run: &&mut Run| {
            let given = if condition {
                run.again.is_some()
            } else {
                run.next.is_some()
            };
            Some(run.iteration) == iteration && !given
        };
        let Some(run) = looping.runs.get_mut(&key).filter(waits) else {
            let name = if condition { CONDITION } else { NEXT };
            let text = format!(
                "input {name} of node {} got a value for an iteration that it does not wait for; it is dropped",
                self.node.node.id
            );
            self.tell(looping, name, text).await;
            return Ok(());
        };
        if condition {
            run.again = Some(value.truthy());
        } else {
            run.next = Some(value);
        }
        let (Some(again), true) = (run.again, run.next.is_some()) else {
            return Ok(());
        };
        let Some(Run { iteration, next, .. }) = looping.runs.remove(&key) else {
            return Ok(());
        };
        let value = next.unwrap_or_default();
        if again && iteration + 1 < looping.shape.most {
            return self.iterate(looping, key, iteration + 1, value).await;
        }
        if again && looping.shape.condition.is_some() && !std::mem::replace(&mut looping.told_limit, true) {
            let text = format!(
                "the loop stopped at its limit of {} iterations while its condition still held",
                looping.shape.most
            );
            self.update(NodeStatus::Warning, None, Some(text), None).await;
        }
        self.put(DONE, value, &key, false).await?;
        self.end_run(looping, &key, true);
        Ok(())
    }
    /// Ends the runs that will get no feedback. Not an error: the body may have left the loop another way.
    fn give_up(&self, looping: &mut Looping, lost: impl Fn(&Run) -> bool) {
        let keys = looping.runs.iter().filter(|(_, run)| lost(run));
        let keys: Vec<Lineage> = keys.map(|(key, _)| key.clone()).collect();
        for key in keys {
            looping.runs.remove(&key);
            self.end_run(looping, &key, false);
        }
    }
    /// What follows a run: its iterations are closed under its key, which brings nothing if there is no result.
    fn end_run(&self, looping: &mut Looping, key: &Lineage, result: bool) {
        if !key.is_empty() {
            self.emitter.scope_closed(key, looping.shape.root);
            if !result {
                self.emitter.skip(key, false);
            }
        }
        self.pass_ends(looping, key);
    }
    /// A run has ended: perhaps it was the last one under an outer item that is closed.
    fn pass_ends(&self, looping: &mut Looping, ended: &Lineage) {
        let Looping { runs, closed, .. } = looping;
        closed.retain(|(parent, root)| {
            let busy = !ended.is_under(parent) || runs.keys().any(|key| key.is_under(parent));
            if !busy {
                self.emitter.scope_closed(parent, *root);
            }
            busy
        });
    }
}
