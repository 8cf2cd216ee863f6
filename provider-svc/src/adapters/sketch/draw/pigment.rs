//! What a medium makes of a colour.

use super::canvas::Canvas;
use super::colour::{Tone, tone};
use super::words::Medium;

/// Bare paper of a woodcut.
pub(super) const PRINT_PAPER: Tone = tone(0.93, 0.03, 85.0);
/// Bare paper of a watercolour.
pub(super) const WET_PAPER: Tone = tone(0.975, 0.01, 85.0);

impl Canvas {
    /// What a medium makes of a colour.
    pub(super) fn pigment(&self, t: Tone) -> Tone {
        match self.medium {
            Medium::Gouache => t,
            Medium::Watercolour => Tone {
                l: 0.30 + t.l * 0.68,
                c: t.c * 0.95,
                ..t
            },
            Medium::Ink => {
                let kept = if t.c > 0.15 { t.c * 0.85 } else { 0.012 };
                let h = if t.c > 0.15 { t.h } else { 85.0 };
                Tone {
                    l: 0.40 + t.l * 0.58,
                    c: kept,
                    h,
                    ..t
                }
            }
            Medium::Oil => Tone {
                c: t.c * 1.2,
                l: t.l * 0.96,
                ..t
            },
            Medium::Pixel => Tone {
                l: (t.l * 14.0).round() / 14.0,
                c: t.c * 1.15,
                h: (t.h / 15.0).round() * 15.0,
                ..t
            },
            Medium::Blueprint => Tone {
                l: 0.27 + t.l * 0.16,
                c: 0.105,
                h: 255.0,
                ..t
            },
            Medium::Neon => Tone {
                l: 0.07 + t.l * 0.17,
                c: 0.02 + t.c * 0.45,
                h: t.h,
                ..t
            },
            Medium::Woodcut => {
                if t.c > 0.15 {
                    tone(0.62, 0.15, self.hue + 180.0).faded(t.a)
                } else if t.l < 0.42 {
                    tone(0.23, 0.02, self.hue).faded(t.a)
                } else if t.l < 0.68 {
                    tone(0.74, 0.05, self.hue).faded(t.a)
                } else {
                    PRINT_PAPER.faded(t.a)
                }
            }
            Medium::Photo => Tone { c: t.c * 0.72, ..t },
        }
    }

    /// A lit pane stays bright in media that darken everything.
    pub(super) fn pigment_lamp(&self, t: Tone) -> Tone {
        match self.medium {
            Medium::Neon => tone(0.85, 0.15, t.h),
            Medium::Blueprint => tone(0.9, 0.04, 230.0),
            Medium::Ink => tone(0.88, 0.13, 88.0),
            Medium::Gouache
            | Medium::Watercolour
            | Medium::Oil
            | Medium::Pixel
            | Medium::Woodcut
            | Medium::Photo => self.pigment(t),
        }
    }

    /// The colour of an outline around an area, for media that have outlines.
    pub(super) fn outline(&self, t: Tone) -> Tone {
        match self.medium {
            Medium::Ink => tone(0.22, 0.02, 270.0),
            Medium::Woodcut => tone(0.20, 0.02, self.hue),
            Medium::Blueprint => tone(0.93, 0.03, 230.0),
            Medium::Neon => tone(0.80, 0.19, t.h + t.l * 90.0),
            Medium::Watercolour => self.pigment(t).lit(-0.14).vivid(1.2),
            Medium::Gouache | Medium::Oil | Medium::Pixel | Medium::Photo => self.pigment(t).lit(-0.12),
        }
    }
}
