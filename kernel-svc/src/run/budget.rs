//! How much memory the values of a run may take while they wait: in inboxes, and in the buckets of nodes that
//! pair them. A producer that would exceed it waits until something is consumed.
//!
//! Sizes are estimates, and a value on several edges counts once for each. What a node holds while it works
//! counts too, and beyond the budget every inbox may hold one value, so that a run always moves on. Every inbox reserves in small
//! portions, so that nodes which have nothing to do with each other rarely touch a common counter.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
};

use atelier_proto::value::Value;
use tokio::sync::Notify;

use super::activity::Activity;

/// Values that are looked at to estimate the size of one; the rest of a list is taken to be like its beginning.
const LOOKS: usize = 64;
/// What an envelope takes besides its value, in bytes.
const ENVELOPE: i64 = 96;
/// The largest portion that an inbox reserves at a time, in bytes.
const PORTION: i64 = 16 * 1024;
/// How far a run may go beyond its budget when nobody can go on otherwise, for instance because a node gathers
/// more than the budget: times the budget.
const STRETCH: i64 = 4;
/// Values that may get room before a larger one which waited longer.
const MAX_PASSED: usize = 64;

/// How deep a value is looked into to estimate its size.
const DEPTH: usize = 16;
/// What a value takes that is not looked into, in bytes.
const PLAIN: usize = 16;

/// About how many bytes a value takes. The time for it does not grow with the value.
pub(crate) fn weigh(value: &Value) -> i64 {
    let mut looks = LOOKS;
    let bytes = i64::try_from(estimate(value, &mut looks, DEPTH)).unwrap_or(i64::MAX);
    bytes.min(i64::MAX / 8)
}
fn estimate(value: &Value, looks: &mut usize, depth: usize) -> usize {
    *looks = looks.saturating_sub(1);
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => PLAIN,
        Value::Str(text) => PLAIN.saturating_add(text.len()),
        Value::Bytes(bytes) => PLAIN.saturating_add(bytes.len()),
        Value::List(values) => {
            32_usize.saturating_add(sample(values.iter().map(|value| (0, value)), looks, depth))
        }
        Value::Map(map) => {
            let entries = map.iter().map(|(name, value)| (name.len() + 24, value));
            32_usize.saturating_add(sample(entries, looks, depth))
        }
        Value::Media(media) => {
            let data = media.data.as_ref().map_or(0, bytes::Bytes::len);
            let extra = media.extra.iter().map(|(name, value)| (name.len() + 24, value));
            let fixed = 160_usize.saturating_add(data).saturating_add(media.uri.len());
            fixed.saturating_add(sample(extra, looks, depth))
        }
    }
}
fn sample<'a>(
    entries: impl ExactSizeIterator<Item = (usize, &'a Value)>,
    looks: &mut usize,
    depth: usize,
) -> usize {
    let (length, mut seen, mut sum) = (entries.len(), 0_usize, 0_usize);
    let Some(depth) = depth.checked_sub(1) else {
        return PLAIN.saturating_mul(length);
    };
    for (name, value) in entries {
        if seen > 0 && *looks == 0 {
            break;
        }
        seen += 1;
        sum = sum
            .saturating_add(name)
            .saturating_add(estimate(value, looks, depth));
    }
    if seen == length {
        sum
    } else {
        (sum / seen.max(1)).saturating_mul(length)
    }
}

/// The budget of a run.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicI64,
    limit: AtomicI64,
    /// What was asked for; one value must not take more.
    most: i64,
    portion: i64,
    /// Producers that wait, the longest first, and how many they are.
    waiting: Mutex<VecDeque<Arc<Waiter>>>,
    blocked: AtomicUsize,
    activity: Arc<Activity>,
}
impl Budget {
    /// A budget that holds from [`enforce`](Self::enforce) on.
    pub fn new(most: usize, inboxes: usize, activity: Arc<Activity>) -> Self {
        let most = i64::try_from(most).unwrap_or(i64::MAX / 8).min(i64::MAX / 8);
        let inboxes = i64::try_from(inboxes.max(1)).unwrap_or(i64::MAX);
        Self {
            used: AtomicI64::new(0),
            limit: AtomicI64::new(i64::MAX),
            most,
            portion: (most / 16 / inboxes).clamp(1, PORTION),
            waiting: Mutex::default(),
            blocked: AtomicUsize::new(0),
            activity,
        }
    }
    /// The most that one value may take.
    pub fn most(&self) -> i64 {
        self.most
    }
    /// Producers wait from now on.
    pub fn enforce(&self) {
        self.limit.store(self.most, Ordering::SeqCst);
    }
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Waiter>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn fits(&self, bytes: i64) -> bool {
        let used = self.used.load(Ordering::SeqCst);
        used.saturating_add(bytes) <= self.limit.load(Ordering::SeqCst)
    }
    /// Wakes those producers for which there is room, the longest waiting first. Each has its room from then on.
    fn wake(&self) {
        if self.is_short() {
            self.wake_in(&mut self.lock());
        }
    }
    fn wake_in(&self, waiting: &mut VecDeque<Arc<Waiter>>) {
        let mut at = 0;
        while let Some(waiter) = waiting.get(at) {
            let own = waiter.account.has_own_room(waiter.wanted);
            // A value for which there is no room lets smaller ones pass, but not for ever.
            if own || ((at == 0 || may_pass(waiting)) && self.fits(waiter.wanted)) {
                waiter.account.add(waiter.bytes);
                waiter.granted.store(true, Ordering::Relaxed);
                self.blocked.fetch_sub(1, Ordering::SeqCst);
                self.activity.begin();
                waiter.woken.notify_one();
                waiting.remove(at);
                if let Some(first) = waiting.front().filter(|_| at > 0 && !own) {
                    first.passed.fetch_add(1, Ordering::Relaxed);
                }
            } else {
                at += 1;
            }
        }
    }
    /// Whether producers wait for room.
    pub fn is_short(&self) -> bool {
        self.blocked.load(Ordering::SeqCst) > 0
    }
    /// Gives more room, because producers wait and nobody can go on; false when nobody waits, or when the run
    /// has had all that it may have.
    pub fn stretch(&self) -> bool {
        let limit = self.limit.load(Ordering::SeqCst);
        let more = limit.saturating_mul(2).min(self.most.saturating_mul(STRETCH));
        if !self.is_short() || more <= limit {
            return false;
        }
        self.limit.store(more, Ordering::SeqCst);
        let mut waiting = self.lock();
        // Nobody moves: whoever fits may pass.
        if let Some(first) = waiting.front() {
            first.passed.store(0, Ordering::Relaxed);
        }
        self.wake_in(&mut waiting);
        true
    }
    /// What happened, when the run cannot go on with what it may have.
    pub fn shortage(&self) -> String {
        format!(
            "the values that wait in the run take about {} bytes, and nodes cannot go on without more; its budget is {} \
             bytes",
            self.used.load(Ordering::SeqCst),
            self.most
        )
    }
}

/// What one inbox, and the node behind it, holds.
#[derive(Debug)]
pub(crate) struct Account {
    budget: Arc<Budget>,
    own: AtomicI64,
    reserved: AtomicI64,
    /// Whether producers wait no longer.
    free: AtomicBool,
}
impl Account {
    pub fn new(budget: Arc<Budget>) -> Self {
        Self {
            budget,
            own: AtomicI64::new(0),
            reserved: AtomicI64::new(0),
            free: AtomicBool::new(false),
        }
    }
    /// Holds room for a value; waits until there is some.
    ///
    /// Cancel safe: dropped while waiting, nothing is held.
    pub async fn hold(self: &Arc<Self>, bytes: i64) -> Hold {
        let bytes = bytes.saturating_add(ENVELOPE);
        let wanted = bytes.min(self.budget.most);
        let waiting = if self.has_room(wanted, None) {
            None
        } else {
            let mut line = self.budget.lock();
            // Counted before the last look, so that whoever frees something after it sees this waiter.
            self.budget.blocked.fetch_add(1, Ordering::SeqCst);
            if self.has_room(wanted, Some(&line)) {
                self.budget.blocked.fetch_sub(1, Ordering::SeqCst);
                None
            } else {
                let waiter = Arc::new(Waiter {
                    account: Arc::clone(self),
                    wanted,
                    bytes,
                    woken: Notify::new(),
                    granted: AtomicBool::new(false),
                    passed: AtomicUsize::new(0),
                });
                line.push_back(Arc::clone(&waiter));
                self.budget.activity.end();
                Some(Waiting { waiter, done: false })
            }
        };
        match waiting {
            None => self.add(bytes),
            // Whoever wakes it has taken the room on its behalf.
            Some(mut waiting) => {
                waiting.waiter.woken.notified().await;
                waiting.done = true;
            }
        }
        Hold(Some((Arc::clone(self), bytes)))
    }
    /// Whether a value that comes now need not wait. One that needs room in the budget waits behind those that do.
    fn has_room(&self, bytes: i64, line: Option<&VecDeque<Arc<Waiter>>>) -> bool {
        let first = || match line {
            None => !self.budget.is_short(),
            Some(line) => {
                if let Some(first) = line.front() {
                    first.passed.fetch_add(1, Ordering::Relaxed);
                }
                may_pass(line)
            }
        };
        self.has_own_room(bytes) || (self.budget.fits(bytes) && first())
    }
    /// An inbox that holds nothing always takes one value: else producers at the beginning of a run could use the
    /// whole budget up, and nothing that they sent could move on.
    fn has_own_room(&self, bytes: i64) -> bool {
        let own = self.own.load(Ordering::SeqCst);
        own <= 0
            || own.saturating_add(bytes) <= self.reserved.load(Ordering::SeqCst)
            || self.free.load(Ordering::SeqCst)
    }
    fn add(&self, bytes: i64) {
        let own = self.own.fetch_add(bytes, Ordering::SeqCst) + bytes;
        let lacks = own - self.reserved.load(Ordering::SeqCst);
        if lacks > 0 {
            let more = lacks.max(self.budget.portion);
            self.reserved.fetch_add(more, Ordering::SeqCst);
            self.budget.used.fetch_add(more, Ordering::SeqCst);
        }
    }
    fn remove(&self, bytes: i64) {
        self.give_back(bytes);
        self.budget.wake();
    }
    fn give_back(&self, bytes: i64) {
        let mut own = self.own.fetch_sub(bytes, Ordering::SeqCst) - bytes;
        let mut reserved = self.reserved.load(Ordering::SeqCst);
        loop {
            let keeps = own.max(0) + self.budget.portion;
            if reserved <= keeps + self.budget.portion {
                return;
            }
            match self
                .reserved
                .compare_exchange(reserved, keeps, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) => {
                    self.budget.used.fetch_sub(reserved - keeps, Ordering::SeqCst);
                    return;
                }
                Err(now) => {
                    reserved = now;
                    own = self.own.load(Ordering::SeqCst);
                }
            }
        }
    }
    /// Producers of this inbox wait no longer.
    pub fn free(&self) {
        self.free.store(true, Ordering::SeqCst);
        self.budget.wake();
    }
}

/// Room that a value takes, until it is dropped. A copy of the value shares it, and takes none of its own.
#[derive(Debug, Default)]
pub(crate) struct Hold(Option<(Arc<Account>, i64)>);
impl Clone for Hold {
    fn clone(&self) -> Self {
        Self(None)
    }
}
impl Drop for Hold {
    fn drop(&mut self) {
        if let Some((account, bytes)) = self.0.take() {
            account.remove(bytes);
        }
    }
}

/// Whether the one that waits longest may be passed once more.
fn may_pass(line: &VecDeque<Arc<Waiter>>) -> bool {
    let passed = |first: &Arc<Waiter>| first.passed.load(Ordering::Relaxed);
    line.front().map_or(0, passed) < MAX_PASSED
}

/// A producer that waits for room.
#[derive(Debug)]
struct Waiter {
    account: Arc<Account>,
    wanted: i64,
    bytes: i64,
    woken: Notify,
    /// It has its room; set under the lock of the line.
    granted: AtomicBool,
    /// How often others got room first while it was the first in line.
    passed: AtomicUsize,
}
/// A producer waits; given up early it is busy again, and its room is the next one's.
struct Waiting {
    waiter: Arc<Waiter>,
    /// It has taken its room.
    done: bool,
}
impl Drop for Waiting {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let budget = &self.waiter.account.budget;
        let mut line = budget.lock();
        let before = line.len();
        line.retain(|other| !Arc::ptr_eq(other, &self.waiter));
        if line.len() < before {
            budget.blocked.fetch_sub(1, Ordering::SeqCst);
            budget.activity.begin();
        }
        if self.waiter.granted.load(Ordering::Relaxed) {
            self.waiter.account.give_back(self.waiter.bytes);
        }
        // Those behind it may have waited for its sake.
        budget.wake_in(&mut line);
    }
}

#[cfg(test)]
mod tests;
