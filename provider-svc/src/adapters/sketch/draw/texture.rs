//! The tile of marks that a medium repeats inside of areas.

use super::colour::{Tone, tone};
use super::numbers::{Dice, float, whole};
use super::paths::{oval, polygon, rect, rounded};
use super::words::Medium;
use tiny_skia::{FillRule, Paint, Path, Pixmap, Shader, Transform};

/// Makes the tile that a medium repeats inside of areas.
pub(super) fn texture(medium: Medium, unit: f32, mut dice: Dice) -> Option<Pixmap> {
    let side = match medium {
        Medium::Ink => (unit * 0.020).max(4.0),
        Medium::Woodcut => (unit * 0.022).max(5.0),
        Medium::Oil => (unit * 0.25).max(24.0),
        Medium::Watercolour => (unit * 0.30).max(24.0),
        Medium::Gouache | Medium::Pixel | Medium::Blueprint | Medium::Neon | Medium::Photo => return None,
    };
    let mut tile = Pixmap::new(whole(side).max(1), whole(side).max(1))?;
    let side = float(tile.width());
    let mut mark = |path: Option<Path>, t: Tone| {
        if let Some(path) = path {
            let paint = Paint {
                shader: Shader::SolidColor(t.colour()),
                ..Paint::default()
            };
            // Also at the opposite edges, so that the tile has no seam.
            for (dx, dy) in [(0.0, 0.0), (side, 0.0), (-side, 0.0), (0.0, side), (0.0, -side)] {
                tile.fill_path(
                    &path,
                    &paint,
                    FillRule::Winding,
                    Transform::from_translate(dx, dy),
                    None,
                );
            }
        }
    };
    match medium {
        Medium::Ink => mark(
            rect(0.0, side * 0.35, side, side * 0.2),
            tone(0.25, 0.02, 270.0).faded(0.8),
        ),
        Medium::Woodcut => mark(
            polygon(&[
                (0.0, side * 0.4),
                (side * 0.5, side * 0.25),
                (side, side * 0.4),
                (side * 0.5, side * 0.6),
            ]),
            tone(0.22, 0.02, 60.0),
        ),
        Medium::Oil => {
            for _ in 0..90 {
                let (x, y) = (dice.unit() * side, dice.unit() * side);
                let (length, width) = (dice.range(0.10, 0.3) * side, dice.range(0.008, 0.022) * side);
                let light = dice.chance(0.5);
                let t = if light {
                    tone(0.97, 0.02, 90.0)
                } else {
                    tone(0.12, 0.03, 280.0)
                };
                mark(
                    rounded(x, y, length, width, width / 2.0),
                    t.faded(dice.range(0.05, 0.14)),
                );
            }
        }
        Medium::Watercolour => {
            for _ in 0..110 {
                let (x, y) = (dice.unit() * side, dice.unit() * side);
                let r = dice.range(0.004, 0.035) * side;
                let t = if dice.chance(0.6) {
                    tone(0.99, 0.005, 90.0)
                } else {
                    tone(0.35, 0.03, 250.0)
                };
                mark(oval(x, y, r * 1.3, r), t.faded(dice.range(0.04, 0.12)));
            }
        }
        Medium::Gouache | Medium::Pixel | Medium::Blueprint | Medium::Neon | Medium::Photo => {}
    }
    Some(tile)
}
