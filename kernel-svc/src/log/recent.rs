//! What was used last, within a bound. For few entries that weigh much: each look walks over them.

use std::collections::VecDeque;

/// Entries with their weights; those that were not used for the longest time go first.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    /// The one that was used last is last.
    entries: VecDeque<(K, V, usize)>,
    weight: usize,
    limit: usize,
}
impl<K: PartialEq, V> Recent<K, V> {
    /// Holds so much; one entry that is heavier is held alone.
    pub fn new(limit: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            weight: 0,
            limit,
        }
    }
    /// The newest entry whose key is wanted.
    pub fn find(&mut self, wanted: impl Fn(&K) -> bool) -> Option<&V> {
        let at = self.entries.iter().rposition(|(key, ..)| wanted(key))?;
        let entry = self.entries.remove(at)?;
        self.entries.push_back(entry);
        self.entries.back().map(|(_, value, _)| value)
    }
    /// Takes an entry in; one with the same key goes.
    pub fn keep(&mut self, key: K, value: V, weight: usize) {
        if let Some(at) = self.entries.iter().position(|(held, ..)| *held == key) {
            self.remove(at);
        }
        while !self.entries.is_empty() && self.weight + weight > self.limit {
            self.remove(0);
        }
        self.weight += weight;
        self.entries.push_back((key, value, weight));
    }
    fn remove(&mut self, at: usize) {
        if let Some((_, _, weight)) = self.entries.remove(at) {
            self.weight -= weight;
        }
    }
    /// What the entries weigh together.
    pub fn weight(&self) -> usize {
        self.weight
    }
    /// The entries.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, value, _)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_the_longest_time_goes() {
        let mut recent = Recent::new(10);
        recent.keep("a", 1, 4);
        recent.keep("b", 2, 4);
        assert_eq!(recent.find(|key| *key == "a"), Some(&1));
        recent.keep("c", 3, 4);
        assert_eq!(recent.find(|key| *key == "b"), None);
        assert_eq!(recent.find(|key| *key == "a"), Some(&1));
        assert_eq!(recent.weight(), 8);
        recent.keep("a", 4, 2);
        assert_eq!(recent.find(|key| *key == "a"), Some(&4));
        assert_eq!(recent.weight(), 6);
        recent.keep("large", 5, 100);
        assert_eq!((recent.values().count(), recent.weight()), (1, 100));
    }
}
