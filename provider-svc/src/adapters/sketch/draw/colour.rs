//! Colours in OKLCH and their way to sRGB. What a medium makes of a colour is in `pigment`.

use super::numbers::lerp;
use tiny_skia::Color;

/// A colour in OKLCH, where equal steps look equal: lightness 0–1, chroma 0–0.3, hue in degrees, opacity 0–1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tone {
    pub(super) l: f32,
    pub(super) c: f32,
    pub(super) h: f32,
    pub(super) a: f32,
}

pub(super) const fn tone(l: f32, c: f32, h: f32) -> Tone {
    Tone { l, c, h, a: 1.0 }
}

impl Tone {
    pub(super) fn lit(self, by: f32) -> Self {
        Self {
            l: (self.l + by).clamp(0.03, 0.99),
            ..self
        }
    }

    pub(super) fn vivid(self, factor: f32) -> Self {
        Self {
            c: self.c * factor,
            ..self
        }
    }

    pub(super) fn turned(self, degrees: f32) -> Self {
        Self {
            h: self.h + degrees,
            ..self
        }
    }

    pub(super) fn faded(self, a: f32) -> Self {
        Self { a, ..self }
    }

    /// Mixes on the straight line between two colours, so complementary hues pass through grey and not the rainbow.
    pub(super) fn toward(self, other: Self, t: f32) -> Self {
        let plane = |t: Self| (t.c * t.h.to_radians().cos(), t.c * t.h.to_radians().sin());
        let ((ax, ay), (bx, by)) = (plane(self), plane(other));
        let (x, y) = (lerp(ax, bx, t), lerp(ay, by, t));
        Self {
            l: lerp(self.l, other.l, t),
            c: x.hypot(y),
            h: y.atan2(x).to_degrees(),
            a: lerp(self.a, other.a, t),
        }
    }

    /// To sRGB; colours outside of it lose chroma, not hue.
    pub(super) fn colour(self) -> Color {
        let mut c = self.c;
        for _ in 0..6 {
            if let Some([r, g, b]) = oklch_to_srgb(self.l, c, self.h) {
                return Color::from_rgba(r, g, b, self.a.clamp(0.0, 1.0)).unwrap_or(Color::BLACK);
            }
            c *= 0.8;
        }
        let l = self.l.clamp(0.0, 1.0);
        Color::from_rgba(l, l, l, self.a.clamp(0.0, 1.0)).unwrap_or(Color::BLACK)
    }
}

fn oklch_to_srgb(l: f32, c: f32, h: f32) -> Option<[f32; 3]> {
    let (a, b) = (c * h.to_radians().cos(), c * h.to_radians().sin());
    let long = (l + 0.396_337_78 * a + 0.215_803_76 * b).powi(3);
    let mid = (l - 0.105_561_346 * a - 0.063_854_17 * b).powi(3);
    let short = (l - 0.089_484_18 * a - 1.291_485_5 * b).powi(3);
    let linear = [
        4.076_741_7 * long - 3.307_711_6 * mid + 0.230_969_94 * short,
        -1.268_438 * long + 2.609_757_4 * mid - 0.341_319_38 * short,
        -0.004_196_086 * long - 0.703_418_6 * mid + 1.707_614_7 * short,
    ];
    if linear.iter().any(|v| !(-0.002..=1.002).contains(v)) {
        return None;
    }
    Some(linear.map(|v| {
        let v = v.clamp(0.0, 1.0);
        let coded = if v <= 0.003_130_8 {
            12.92 * v
        } else {
            1.055 * v.powf(1.0 / 2.4) - 0.055
        };
        coded.clamp(0.0, 1.0)
    }))
}
