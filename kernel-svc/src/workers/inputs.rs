//! The inputs that are streamed to one invocation: numbered, sent ahead of the node by a window for each input (a node may
//! read one to its end before it looks at another), and kept as long as they fit, so that another worker can start over.

use std::collections::{HashMap, VecDeque};

use atelier_proto::kernel::v1::InvocationInput;

use super::INPUT_WINDOW;

/// Inputs that are kept although the node has read them: number, and bytes.
const MAX_KEPT: usize = 4_096;
const MAX_KEPT_BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Due,
    Sent,
    Read,
}
#[derive(Debug)]
struct Kept {
    input: InvocationInput,
    weight: usize,
    stage: Stage,
}
/// Inputs of one invocation.
#[derive(Debug, Default)]
pub(super) struct Streamed {
    kept: VecDeque<Kept>,
    bytes: usize,
    /// Number of the first one that is kept.
    first: i64,
    /// Those that were taken and not read, and those of them that were sent, by input.
    unread: HashMap<String, i64>,
    ahead: HashMap<String, i64>,
    /// All before it were sent; where looking for the next one begins.
    sent: usize,
    outgrown: bool,
}
impl Streamed {
    /// Whether the node may be given more of an input.
    pub fn wants(&self, input: &str) -> bool {
        self.unread.get(input).is_none_or(|unread| *unread < INPUT_WINDOW)
    }
    /// Adds one; false the first time that not all can be kept.
    pub fn push(&mut self, input: InvocationInput, weight: usize) -> bool {
        let number = self.first + i64::try_from(self.kept.len()).unwrap_or(i64::MAX);
        *self.unread.entry(input.input.clone()).or_default() += 1;
        self.bytes += weight;
        self.kept.push_back(Kept {
            input: InvocationInput { number, ..input },
            weight,
            stage: Stage::Due,
        });
        let before = self.outgrown;
        self.outgrown |= self.kept.len() > MAX_KEPT || self.bytes > MAX_KEPT_BYTES;
        self.trim();
        before || !self.outgrown
    }
    /// Lets go what the node has read, once not all can be kept.
    fn trim(&mut self) {
        while self.outgrown && self.kept.front().is_some_and(|kept| kept.stage == Stage::Read) {
            if let Some(kept) = self.kept.pop_front() {
                self.bytes -= kept.weight;
                self.first += 1;
                self.sent = self.sent.saturating_sub(1);
            }
        }
    }
    /// The next one to send.
    pub fn due(&mut self) -> Option<InvocationInput> {
        let mut holes = false;
        for (at, kept) in self.kept.iter_mut().enumerate().skip(self.sent) {
            if kept.stage == Stage::Due {
                let ahead = self.ahead.entry(kept.input.input.clone()).or_default();
                if *ahead < INPUT_WINDOW {
                    *ahead += 1;
                    kept.stage = Stage::Sent;
                    if !holes {
                        self.sent = at + 1;
                    }
                    return Some(kept.input.clone());
                }
                holes = true;
            }
            if !holes {
                self.sent = at + 1;
            }
        }
        None
    }
    /// The node has read these. What a worker says beyond what was sent is not believed.
    pub fn read(&mut self, numbers: &[i64]) {
        for number in numbers {
            let at = usize::try_from(number.saturating_sub(self.first));
            let Some(kept) = at.ok().and_then(|at| self.kept.get_mut(at)) else {
                continue;
            };
            if kept.stage == Stage::Sent {
                kept.stage = Stage::Read;
                for count in [&mut self.unread, &mut self.ahead] {
                    if let Some(count) = count.get_mut(&kept.input.input) {
                        *count -= 1;
                    }
                }
            }
        }
        self.trim();
    }
    /// What was sent and not read is sent again.
    pub fn send_again(&mut self) {
        self.ahead.clear();
        self.sent = 0;
        let sent = self.kept.iter_mut().filter(|kept| kept.stage == Stage::Sent);
        sent.for_each(|kept| kept.stage = Stage::Due);
    }
    /// All that is kept is sent to another worker.
    pub fn start_over(&mut self) {
        self.unread.clear();
        for kept in &mut self.kept {
            kept.stage = Stage::Due;
            *self.unread.entry(kept.input.input.clone()).or_default() += 1;
        }
        self.send_again();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str) -> InvocationInput {
        InvocationInput {
            input: name.to_owned(),
            ..InvocationInput::default()
        }
    }
    fn due(streamed: &mut Streamed) -> Vec<i64> {
        std::iter::from_fn(|| streamed.due())
            .map(|input| input.number)
            .collect()
    }
    #[test]
    fn each_input_has_a_window_of_its_own() {
        let mut streamed = Streamed::default();
        for _ in 0..INPUT_WINDOW {
            assert!(streamed.wants("a") && streamed.push(input("a"), 1));
        }
        assert!(!streamed.wants("a") && streamed.wants("b"));
        assert_eq!(due(&mut streamed), (0..INPUT_WINDOW).collect::<Vec<_>>());
        assert!(streamed.push(input("b"), 1));
        assert_eq!(due(&mut streamed), [INPUT_WINDOW]);
        streamed.read(&[5, 5, 5_000, -1, i64::MIN]);
        assert!(streamed.wants("a"), "one was read");
        assert!(
            streamed.push(input("a"), 1) && !streamed.wants("a"),
            "and only one"
        );
    }
    #[test]
    fn a_new_stream_gets_what_was_not_read_and_another_worker_gets_all_within_the_window() {
        let mut streamed = Streamed::default();
        for _ in 0..3 {
            streamed.push(input("a"), 1);
        }
        due(&mut streamed);
        streamed.read(&[0]);
        streamed.send_again();
        assert_eq!(due(&mut streamed), [1, 2]);
        for _ in 0..INPUT_WINDOW {
            streamed.push(input("a"), 1);
            let sent = due(&mut streamed);
            streamed.read(&sent);
        }
        streamed.push(input("b"), 1);
        streamed.start_over();
        let sent = due(&mut streamed);
        let last = INPUT_WINDOW + 3;
        assert_eq!(sent, (0..INPUT_WINDOW).chain([last]).collect::<Vec<_>>());
        streamed.read(&[0]);
        assert_eq!(due(&mut streamed), [INPUT_WINDOW]);
    }
    #[test]
    fn what_does_not_fit_is_let_go_once_it_was_read_and_told_once() {
        let mut streamed = Streamed::default();
        assert!(!streamed.push(input("a"), MAX_KEPT_BYTES + 1));
        assert!(streamed.push(input("a"), 1));
        assert_eq!(due(&mut streamed), [0, 1]);
        streamed.read(&[0]);
        streamed.start_over();
        assert_eq!(due(&mut streamed), [1], "the first one is gone");
    }
}
