//! Inputs of a node whose code runs elsewhere: values and ends in order of arrival, and what the run knows of
//! work that it does not see.

use std::sync::Arc;

use super::Inputs;
use crate::run::{
    activity::Activity,
    inbox::{Envelope, Item, Taken},
};

/// What arrived at an input.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// A value.
    Value(Arc<str>, Envelope),
    /// Nothing follows.
    End(Arc<str>),
}
/// Says as long as it lives that something may come from outside. It is no share of those who are busy: the run still gives
/// room to producers that wait for it, and for whose values the code outside may be waiting.
pub(crate) struct Outside(Arc<Activity>);
impl Drop for Outside {
    fn drop(&mut self) {
        self.0.come_back();
    }
}
impl Inputs<'_> {
    /// Says that somebody outside of the run works for this node.
    pub(crate) fn outside(&self) -> Outside {
        self.core.activity.go_outside();
        Outside(Arc::clone(&self.core.activity))
    }
    /// How many iterations the run knows.
    pub(crate) fn roots(&self) -> usize {
        self.core.plan.roots.len()
    }
    /// The next value or end of any input that is wanted; `None` when all have ended. `told` holds, by input, whether its
    /// end was given. Nothing counts as consumed: whoever works outside says what its outputs belong to.
    ///
    /// Cancel safe.
    pub(crate) async fn arrival(&mut self, told: &mut [bool], wanted: &[bool]) -> Option<Arrival> {
        let (among, all) = (self.node.facts.handles.len(), wanted.iter().all(|wanted| *wanted));
        loop {
            let end = self.inbox.view(|view| {
                let untold =
                    |(at, told): &(usize, &mut bool)| !**told && (view.closed() || view.is_done(*at));
                told.iter_mut().enumerate().find(untold)
            });
            if let Some((at, told)) = end {
                *told = true;
                return Some(Arrival::End(self.name(at)));
            }
            let taken = if all {
                self.inbox.take_any(among)
            } else {
                self.take_wanted(wanted)
            };
            match taken {
                Taken::Item(at, Item::Value(envelope)) => {
                    return Some(Arrival::Value(self.name(at), envelope));
                }
                Taken::Item(..) => {}
                Taken::Empty(version) => self.inbox.wait(version).await,
                Taken::End => return None,
            }
        }
    }
    /// Takes from the first input that is wanted and has something.
    fn take_wanted(&self, wanted: &[bool]) -> Taken {
        // Read before the inputs are looked at, so that no change in between is missed.
        let version = self.inbox.view(|view| view.version());
        let wanted = wanted.iter().enumerate().filter(|(_, wanted)| **wanted);
        for (at, _) in wanted {
            if let item @ Taken::Item(..) = self.inbox.take(at) {
                return item;
            }
        }
        Taken::Empty(version)
    }
    fn name(&self, at: usize) -> Arc<str> {
        let facts = self.node.facts.handles.get(at);
        facts.map(|facts| Arc::clone(&facts.name)).unwrap_or_default()
    }
}
