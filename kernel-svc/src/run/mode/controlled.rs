//! Mode 5: one invocation for each control event, over the latest data (kernel specification 5.3).

use std::sync::Arc;

use atelier_proto::value::{Map, Value};

use crate::{
    graph::control::{ControlEvent, event_of},
    node::NodeError,
    run::{
        actor::Actor,
        inbox::{Inbox, Item, Taken},
        lineage::Lineage,
        routing::Origin,
    },
};

impl Actor {
    pub(crate) async fn controlled(&mut self) -> Result<(), NodeError> {
        let core = Arc::clone(&self.core);
        let inbox = Arc::clone(&self.inbox);
        let control = self.node.facts.handles.len();
        wait_for_data(&inbox, control).await;
        let mut cache: Map = Map::new();
        let mut ordinal = 0;
        loop {
            if self.cancel.is_cancelled() {
                return Err(NodeError::cancelled());
            }
            let envelope = match inbox.take(control) {
                Taken::Item(_, Item::Value(envelope)) => envelope,
                Taken::Item(..) => continue,
                Taken::Empty(version) => {
                    inbox.wait(version).await;
                    continue;
                }
                Taken::End => return Ok(()),
            };
            match event_of(&envelope.value) {
                None => core
                    .waiters
                    .settle(envelope.event, Err("not a control event".to_owned())),
                Some(ControlEvent::Stop) => {
                    core.waiters.settle(envelope.event, Ok(Map::new()));
                    return Ok(());
                }
                Some(ControlEvent::Run(properties)) => {
                    self.drain(&inbox, &mut cache);
                    // Events of callers, and of several controllers, are named by their ids, so that no name depends on when they came.
                    let key = match envelope.event {
                        0 => format!("#{ordinal}"),
                        event => format!("!{event}"),
                    };
                    ordinal += u32::from(envelope.event == 0);
                    let outcome = self.run_event(&cache, &properties, key).await;
                    let answer = outcome.clone().map_err(|error| error.message);
                    core.waiters.settle(envelope.event, answer);
                    outcome?;
                }
            }
        }
    }
    /// Moves everything that arrived into the cache: the last value of an input, or all values of a list.
    fn drain(&self, inbox: &Inbox, cache: &mut Map) {
        for (at, facts) in self.node.facts.handles.iter().enumerate() {
            while let Taken::Item(_, item) = inbox.take(at) {
                let Item::Value(envelope) = item else { continue };
                if !facts.list {
                    cache.insert(facts.name.to_string(), envelope.value);
                    continue;
                }
                let list = cache
                    .entry(facts.name.to_string())
                    .or_insert_with(|| Value::list(Vec::new()));
                if let Value::List(values) = list {
                    Arc::make_mut(values).push(envelope.value);
                }
            }
        }
    }
    async fn run_event(&mut self, cache: &Map, properties: &Map, key: String) -> Result<Map, NodeError> {
        let mut inputs = (*self.node.statics).clone();
        let layers = cache.iter().chain(properties.iter());
        inputs.extend(layers.map(|(name, value)| (name.clone(), value.clone())));
        self.complete_inputs(&mut inputs)?;
        let name = self.begin_named(key);
        let returned = self.returned(&name).await;
        self.emitter.replaying = returned.is_some();
        let outputs = match returned {
            Some(outputs) => Some(outputs),
            None => self.process(inputs, &Lineage::default(), &name).await?,
        };
        let Some(mut outputs) = outputs else {
            self.emitter.skip(&Lineage::default(), true);
            return Ok(Map::new());
        };
        self.keep_control(&name, &outputs).await;
        let origin = Origin {
            lineage: &Lineage::default(),
            sources: &[],
            numbers: true,
        };
        self.emitter.route(&mut outputs, &origin, false).await?;
        self.emitter.commit(outputs.clone(), &name, None).await;
        self.emitter.replaying = false;
        Ok(outputs)
    }
}

/// Waits until every data input has brought something or has ended. Events that come earlier stay where they
/// are.
async fn wait_for_data(inbox: &Inbox, handles: usize) {
    loop {
        let look = inbox.view(|view| {
            let settled = |at| view.buffered(at) > 0 || !view.is_open(at);
            let ready = view.closed() || (0..handles).all(settled);
            (!ready).then(|| view.version())
        });
        let Some(version) = look else { return };
        inbox.wait(version).await;
    }
}
