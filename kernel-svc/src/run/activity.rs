//! Who is busy in a run: tells when everybody waits for somebody else.
//!
//! A waiter gives up its share when it parks; whoever wakes it takes the share back on its behalf, under the
//! lock of the inbox, so that there is no instant at which a woken waiter counts for nobody.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use tokio::sync::Notify;

/// Counts the busy parts of a run.
#[derive(Debug, Default)]
pub struct Activity {
    busy: AtomicI64,
    /// Inputs from outside that may still bring something.
    open: AtomicI64,
    /// Nodes whose code runs elsewhere: it may give something out at any time, or wait like everybody else.
    outside: AtomicI64,
    wakes: AtomicU64,
    idle: Notify,
}
impl Activity {
    /// Someone starts, or was woken.
    pub fn begin(&self) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        self.busy.fetch_add(1, Ordering::SeqCst);
    }
    /// Someone ends, or parks.
    pub fn end(&self) {
        if self.busy.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.idle.notify_one();
        }
    }
    /// An input from outside opens.
    pub fn open_input(&self) {
        self.open.fetch_add(1, Ordering::SeqCst);
    }
    /// An input from outside is finished.
    pub fn close_input(&self) {
        if self.open.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.idle.notify_one();
        }
    }
    /// Somebody outside of the run works for a node, as far as the run knows.
    pub fn go_outside(&self) {
        self.outside.fetch_add(1, Ordering::SeqCst);
    }
    /// Nobody does any more.
    pub fn come_back(&self) {
        if self.outside.fetch_sub(1, Ordering::SeqCst) == 1 && self.is_idle() {
            self.idle.notify_one();
        }
    }
    /// Whether something may come from code that runs elsewhere.
    pub fn waits_outside(&self) -> bool {
        self.outside.load(Ordering::SeqCst) > 0
    }
    /// Whether nobody is busy.
    pub fn is_idle(&self) -> bool {
        self.busy.load(Ordering::SeqCst) <= 0
    }
    /// Whether nobody is busy and nothing can come from outside.
    pub fn is_stuck(&self) -> bool {
        self.is_idle() && self.open.load(Ordering::SeqCst) <= 0 && !self.waits_outside()
    }
    /// How often anybody was woken; unchanged means that nothing happened in between.
    pub fn wakes(&self) -> u64 {
        self.wakes.load(Ordering::SeqCst)
    }
    /// Waits until nobody is busy, perhaps.
    ///
    /// Cancel safe.
    pub async fn idle(&self) {
        self.idle.notified().await;
    }
}
