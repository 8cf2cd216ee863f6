//! Numbers: conversions that cannot fail, and the dice.

use super::paths::Spot;

/// Pixel counts stay below 2^24, so this is exact.
#[expect(clippy::cast_precision_loss, reason = "sides are at most 4096")]
pub(super) fn float(value: u32) -> f32 {
    value as f32
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate"
)]
pub(super) fn whole(value: f32) -> u32 {
    value.round() as u32
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate"
)]
pub(super) fn byte(value: f32) -> u8 {
    value.round() as u8
}

pub(super) fn usize_of(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

pub(super) fn u32_of(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The number at share `t` of the way from one to another.
pub(super) fn lerp(from: f32, to: f32, t: f32) -> f32 {
    from + (to - from) * t
}

/// Steps through `0..count` as (index, fraction from 0 to 1).
pub(super) fn steps(count: u16) -> impl Iterator<Item = (u16, f32)> {
    let last = f32::from(count.saturating_sub(1).max(1));
    (0..count).map(move |i| (i, f32::from(i) / last))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate"
)]
pub(super) fn whole_u16(value: f32) -> u16 {
    value.round() as u16
}

/// A small deterministic generator (splitmix64); `rand` promises no stable streams between versions.
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to, not including, 1.
    pub(super) fn unit(&mut self) -> f32 {
        let bits = u16::try_from(self.roll() >> 48).unwrap_or(0);
        f32::from(bits) / 65536.0
    }

    /// A number between two others.
    pub(super) fn range(&mut self, low: f32, high: f32) -> f32 {
        lerp(low, high, self.unit())
    }

    pub(super) fn chance(&mut self, odds: f32) -> bool {
        self.unit() < odds
    }

    /// A whole number from `low` to `high`, both included.
    pub(super) fn count(&mut self, low: u16, high: u16) -> u16 {
        let span = u64::from(high.saturating_sub(low)) + 1;
        low.saturating_add(u16::try_from(self.roll() % span).unwrap_or(0))
    }

    /// One of the points from index `low` to `high`, both included.
    pub(super) fn point(&mut self, points: &[Spot], low: u16, high: u16) -> Option<Spot> {
        points.get(usize::from(self.count(low, high))).copied()
    }

    /// Left (-1) or right (1).
    pub(super) fn sign(&mut self) -> f32 {
        if self.chance(0.5) { 1.0 } else { -1.0 }
    }
}
