//! What one attempt of an invocation did that cannot be undone: calls that may be billed, assets. It listens to the
//! notes of the node.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use atelier_proto::{
    tracker::v1::{Generation, GenerationStatus},
    value::Map,
};
use rust_decimal::Decimal;

/// Calls of one attempt that are followed; with more the spend is not known.
const MAX_CALLS: usize = 1_000;
/// Assets that are named.
const MAX_ASSETS: usize = 100;

/// The account of the running attempt.
#[derive(Debug, Default)]
pub(crate) struct Account(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Calls by id; `None` until the cost is settled.
    calls: HashMap<String, Option<Decimal>>,
    assets: Vec<String>,
    candidate: Option<Map>,
    overflown: bool,
}

/// What an attempt came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spent {
    /// In US dollars; `None`: not known.
    pub usd: Option<Decimal>,
    pub assets: Vec<String>,
    /// What the node proposed as its outputs.
    pub candidate: Option<Map>,
}
impl Spent {
    /// Whether certainly nothing was paid or made.
    pub fn is_nothing(&self) -> bool {
        self.usd == Some(Decimal::ZERO) && self.assets.is_empty()
    }
}

impl Account {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// A new attempt begins.
    pub fn begin(&self) {
        *self.lock() = State::default();
    }
    /// The outputs that the node has at hand should it fail.
    pub fn propose(&self, outputs: Map) {
        self.lock().candidate = Some(outputs);
    }
    /// A call was opened or settled.
    pub fn note(&self, generation: &Generation) {
        let settled = match generation.status() {
            GenerationStatus::Completed | GenerationStatus::Failed => usd(generation),
            // A cancelled or lost call may still be billed.
            GenerationStatus::Unspecified
            | GenerationStatus::Running
            | GenerationStatus::Cancelled
            | GenerationStatus::Interrupted => None,
        };
        let mut state = self.lock();
        for asset in &generation.asset_ids {
            if state.assets.len() < MAX_ASSETS && !state.assets.contains(asset) {
                state.assets.push(asset.clone());
            }
        }
        if state.calls.len() >= MAX_CALLS && !state.calls.contains_key(&generation.generation_id) {
            state.overflown = true;
            return;
        }
        state.calls.insert(generation.generation_id.clone(), settled);
    }
    /// What the attempt came to. `opened` are calls that it made for certain.
    pub fn spent(&self, opened: &[String]) -> Spent {
        let state = self.lock();
        let known = !state.overflown && opened.iter().all(|id| state.calls.contains_key(id));
        let usd = known.then(|| state.calls.values().copied().sum::<Option<Decimal>>());
        Spent {
            usd: usd.flatten(),
            assets: state.assets.clone(),
            candidate: state.candidate.clone(),
        }
    }
}

/// The cost of a row in US dollars; `None` while unknown, or in another currency.
fn usd(generation: &Generation) -> Option<Decimal> {
    let cost = generation.cost.as_ref().filter(|cost| cost.currency == "USD")?;
    cost.amount.parse().ok()
}
