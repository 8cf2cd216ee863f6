//! Slots: at most so many runs of one user at once; the others wait in order and are told their place.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch;

use crate::error::Error;

/// Place of a run: 0 means that it has a slot, from 1 on it waits.
type Place = usize;

/// Hands out slots.
#[derive(Debug, Clone)]
pub struct Admission {
    users: Arc<Mutex<HashMap<String, User>>>,
    slots: usize,
    waiting: usize,
}
#[derive(Debug, Default)]
struct User {
    running: usize,
    waiting: VecDeque<(u64, watch::Sender<Place>)>,
    next: u64,
}
/// A run's place. Dropped, it frees the slot or leaves the queue.
#[derive(Debug)]
pub struct Ticket {
    admission: Admission,
    user: String,
    number: u64,
    place: watch::Receiver<Place>,
}
impl Admission {
    /// So many slots for each user, and so many that may wait.
    #[must_use]
    pub fn new(slots: usize, waiting: usize) -> Self {
        Self {
            users: Arc::default(),
            slots: slots.max(1),
            waiting,
        }
    }
    /// Asks for a slot. Of callers that come at once a few more than may wait can be let in.
    ///
    /// # Errors
    /// [`Error::QueueFull`].
    pub fn enter(&self, user: &str) -> Result<Ticket, Error> {
        let waits = {
            let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
            let (running, waiting) = users
                .get(user)
                .map_or((0, 0), |entry| (entry.running, entry.waiting.len()));
            (running >= self.slots).then_some(waiting)
        };
        match waits {
            Some(waiting) if waiting >= self.waiting => Err(Error::QueueFull(waiting)),
            Some(_) | None => Ok(self.queue(user)),
        }
    }
    fn queue(&self, user: &str) -> Ticket {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = users.entry(user.to_owned()).or_default();
        let free = entry.running < self.slots;
        let number = entry.next;
        entry.next += 1;
        let (sender, place) = watch::channel(if free { 0 } else { entry.waiting.len() + 1 });
        if free {
            entry.running += 1
        } else {
            entry.waiting.push_back((number, sender))
        }
        Ticket {
            admission: self.clone(),
            user: user.to_owned(),
            number,
            place,
        }
    }
    /// Asks for a slot for a run that was admitted before: it may wait, and no queue is too full for it.
    #[must_use]
    pub fn enter_again(&self, user: &str) -> Ticket {
        self.queue(user)
    }
    fn leave(&self, user: &str, number: u64) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = users.get_mut(user) else { return };
        if let Some(at) = entry.waiting.iter().position(|(waiting, _)| *waiting == number) {
            entry.waiting.remove(at);
        } else {
            entry.running = entry.running.saturating_sub(1);
            if let Some((_, next)) = entry.waiting.pop_front() {
                entry.running += 1;
                next.send_replace(0);
            }
        }
        for (place, (_, waiting)) in entry.waiting.iter().enumerate() {
            waiting.send_if_modified(|at| std::mem::replace(at, place + 1) != place + 1);
        }
        if entry.running == 0 && entry.waiting.is_empty() {
            users.remove(user);
        }
    }
}
impl Ticket {
    /// A place that takes no slot.
    #[must_use]
    pub fn free() -> Self {
        let (_, place) = watch::channel(0);
        Self {
            admission: Admission::new(1, 0),
            user: String::new(),
            number: 0,
            place,
        }
    }
    /// The place: 0 with a slot.
    #[must_use]
    pub fn place(&self) -> Place {
        *self.place.borrow()
    }
    /// Waits until the place changed, and tells it. Cancel safe.
    pub async fn changed(&mut self) -> Place {
        // The sender is dropped only after it said 0.
        let _ = self.place.changed().await;
        *self.place.borrow_and_update()
    }
}
impl Drop for Ticket {
    fn drop(&mut self) {
        self.admission.leave(&self.user, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn w_034_w_035_the_next_in_line_gets_the_slot_and_the_others_move_up() {
        let admission = Admission::new(2, 10);
        let first = admission.enter("u").expect("slot");
        let _second = admission.enter("u").expect("slot");
        let mut third = admission.enter("u").expect("waits");
        let fourth = admission.enter("u").expect("waits");
        let mut fifth = admission.enter("u").expect("waits");
        assert_eq!(
            (first.place(), third.place(), fourth.place(), fifth.place()),
            (0, 1, 2, 3)
        );
        assert_eq!(admission.enter("other").expect("slot").place(), 0);
        drop(fourth);
        assert_eq!(fifth.changed().await, 2);
        drop(first);
        assert_eq!(third.changed().await, 0);
        assert_eq!(fifth.changed().await, 1);
    }
    #[test]
    fn without_a_queue_free_slots_are_given_all_the_same() {
        let admission = Admission::new(1, 0);
        let _running = admission.enter("u").expect("slot");
        assert!(matches!(admission.enter("u"), Err(Error::QueueFull(0))));
    }
    #[test]
    fn a_full_queue_refuses() {
        let admission = Admission::new(1, 1);
        let _running = admission.enter("u").expect("slot");
        let _waiting = admission.enter("u").expect("waits");
        assert!(matches!(admission.enter("u"), Err(Error::QueueFull(1))));
    }
}
