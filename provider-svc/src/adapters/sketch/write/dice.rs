//! The dice of one answer.

/// A small deterministic generator (splitmix64); `rand` promises no stable streams between versions.
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(text: &str, seed: u64) -> Self {
        let digest = blake3::hash(text.trim().as_bytes());
        let start = digest
            .as_bytes()
            .iter()
            .take(8)
            .fold(0u64, |sum, byte| (sum << 8) | u64::from(*byte));
        Self(start ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(super) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number below `bound`; 0 when the bound is 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.roll() % bound).unwrap_or(0)
    }

    pub(super) fn pick(&mut self, options: &[&'static str]) -> &'static str {
        let at = self.below(options.len());
        options.get(at).copied().unwrap_or_default()
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let other = self.below(at + 1);
            items.swap(at, other);
        }
    }
}
