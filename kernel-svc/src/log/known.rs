//! Which results a run has, by hash: 16 bytes for each, however large they are.

use std::collections::HashSet;

/// 128 bits that stand for some texts. The same in every process and version: checkpoints hold them.
#[must_use]
pub fn mark(parts: &[&str]) -> u128 {
    let mut hash = blake3::Hasher::new();
    for part in parts {
        let len = u64::try_from(part.len()).unwrap_or(u64::MAX);
        hash.update(&len.to_le_bytes()).update(part.as_bytes());
    }
    let mut bits = [0; 16];
    hash.finalize_xof().fill(&mut bits);
    u128::from_le_bytes(bits)
}

/// The keys of what an earlier process of a run left. Empty for a new run.
#[derive(Debug, Default)]
pub struct Known {
    /// Committed artifacts, by node and key of the commit.
    pub(super) committed: HashSet<u128>,
    /// Kept frames and results, by node and key.
    pub(super) kept: HashSet<u128>,
}
impl Known {
    /// Whether an artifact was committed; the [`mark`] of its node and key.
    #[must_use]
    pub fn is_committed(&self, mark: u128) -> bool {
        self.committed.contains(&mark)
    }
    /// Whether nothing was left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.committed.is_empty() && self.kept.is_empty()
    }
}
