//! The canvas: a sheet and the way in which a medium puts areas, lines and light on it.
//!
//! What a medium makes of colours is in `pigment`, its marks in `texture`, what it does to a whole sheet in `backdrop`
//! and `finish`.

use super::brief::Brief;
use super::colour::{Tone, tone};
use super::numbers::{Dice, float};
use super::paths::{Spot, circle, rect};
use super::pigment::PRINT_PAPER;
use super::texture::texture;
use super::words::Medium;
use tiny_skia::{
    FillRule, FilterQuality, GradientStop, LineCap, LineJoin, LinearGradient, Paint, Path, Pattern, Pixmap,
    Point, RadialGradient, Shader, SpreadMode, Stroke, Transform,
};

/// A sheet, the medium that marks it and the dice that place things. Lengths are relative to `unit`, the shorter side.
pub(super) struct Canvas {
    pub(super) map: Pixmap,
    pub(super) w: f32,
    pub(super) h: f32,
    pub(super) unit: f32,
    pub(super) medium: Medium,
    pub(super) hue: f32,
    pub(super) dice: Dice,
    /// Marks that a medium leaves in every area: hatching, brush strokes, grain of paper.
    texture: Option<Pixmap>,
}

impl Canvas {
    pub(super) fn new(brief: &Brief, map: Pixmap) -> Self {
        let (w, h) = (float(map.width()), float(map.height()));
        let unit = w.min(h);
        let dice = Dice::new(brief.dice_seed);
        let texture = texture(brief.medium, unit, dice.clone());
        Self {
            map,
            w,
            h,
            unit,
            medium: brief.medium,
            hue: brief.hue,
            dice,
            texture,
        }
    }
}

/// Chance: lengths and places.
impl Canvas {
    /// A length between two shares of the shorter side.
    pub(super) fn length(&mut self, low: f32, high: f32) -> f32 {
        self.unit * self.dice.range(low, high)
    }

    /// A place between two shares of the width.
    pub(super) fn across(&mut self, low: f32, high: f32) -> f32 {
        self.w * self.dice.range(low, high)
    }

    /// A place between two shares of the height.
    pub(super) fn down(&mut self, low: f32, high: f32) -> f32 {
        self.h * self.dice.range(low, high)
    }

    /// A place anywhere above `floor`.
    pub(super) fn anywhere(&mut self, floor: f32) -> Spot {
        (self.dice.unit() * self.w, self.dice.unit() * floor)
    }
}

/// Paint as it is: the colours are those given, whatever the medium.
impl Canvas {
    pub(super) fn paint<'a>(&self, shader: Shader<'a>) -> Paint<'a> {
        Paint {
            shader,
            anti_alias: self.medium != Medium::Pixel,
            ..Paint::default()
        }
    }

    pub(super) fn put(&mut self, path: &Path, shader: Shader<'_>) {
        let paint = self.paint(shader);
        self.map
            .fill_path(path, &paint, FillRule::Winding, Transform::identity(), None);
    }

    /// A flat area without an outline.
    pub(super) fn flat(&mut self, path: Option<Path>, t: Tone) {
        if let Some(path) = path {
            self.flood(&path, t, t);
        }
    }

    /// Fills a path with a vertical blend, no outline.
    pub(super) fn flood(&mut self, path: &Path, top: Tone, low: Tone) {
        if top == low {
            self.put(path, Shader::SolidColor(top.colour()));
            return;
        }
        let bounds = path.bounds();
        let stops = (0u8..=4).map(|i| {
            let t = f32::from(i) / 4.0;
            GradientStop::new(t, top.toward(low, t).colour())
        });
        let from = Point::from_xy(0.0, bounds.top());
        let to = Point::from_xy(0.0, bounds.bottom().max(bounds.top() + 1.0));
        let blend = LinearGradient::new(from, to, stops.collect(), SpreadMode::Pad, Transform::identity());
        self.put(path, blend.unwrap_or(Shader::SolidColor(low.colour())));
    }

    /// Lays the texture of the medium over an area, turned by some degrees.
    pub(super) fn grain(&mut self, path: &Path, opacity: f32, turn: f32) {
        if let Some(texture) = &self.texture {
            let turn = Transform::from_rotate(turn);
            let (repeat, smooth) = (SpreadMode::Repeat, FilterQuality::Bilinear);
            let paint = Paint {
                shader: Pattern::new(texture.as_ref(), repeat, smooth, opacity, turn),
                ..Paint::default()
            };
            self.map
                .fill_path(path, &paint, FillRule::Winding, Transform::identity(), None);
        }
    }

    pub(super) fn pen(&mut self, path: &Path, t: Tone, width: f32) {
        let paint = self.paint(Shader::SolidColor(t.colour()));
        let stroke = Stroke {
            width: width.max(0.6),
            line_cap: LineCap::Round,
            line_join: LineJoin::Round,
            ..Stroke::default()
        };
        self.map
            .stroke_path(path, &paint, &stroke, Transform::identity(), None);
    }

    /// A glowing line.
    fn tube(&mut self, path: &Path, t: Tone, width: f32) {
        self.pen(path, t.faded(0.10), width * 6.0);
        self.pen(path, t.faded(0.22), width * 3.0);
        self.pen(path, t.lit(0.08), width);
    }
}

/// In the way of the medium.
impl Canvas {
    /// An area of one colour.
    pub(super) fn area(&mut self, path: Option<Path>, t: Tone) {
        self.shaded(path, t, t);
    }

    /// An area of one colour that is lighter by `above` at its top and by `below` at its bottom.
    pub(super) fn lit(&mut self, path: Option<Path>, t: Tone, above: f32, below: f32) {
        self.shaded(path, t.lit(above), t.lit(below));
    }

    /// An area that blends from top to bottom.
    pub(super) fn shaded(&mut self, path: Option<Path>, top: Tone, low: Tone) {
        let Some(path) = path else { return };
        let (a, b) = (self.pigment(top), self.pigment(low));
        let size = path.bounds().width().max(path.bounds().height());
        // Small things get thin lines, or they would drown in their outline.
        let weight = (size / self.unit * 2.2).clamp(0.3, 1.0) * self.unit;
        match self.medium {
            Medium::Gouache | Medium::Pixel | Medium::Photo => self.flood(&path, a, b),
            Medium::Watercolour => {
                self.flood(&path, a.faded(a.a * 0.72), b.faded(b.a * 0.86));
                if size > self.unit * 0.05 {
                    self.bleed(&path, a, b);
                }
                let edge = self.outline(low).faded(0.40 * a.a);
                self.pen(&path, edge, weight * 0.0028);
            }
            Medium::Oil => {
                self.flood(&path, a, b);
                let turn = self.dice.range(-40.0, 40.0);
                if size > self.unit * 0.03 {
                    self.grain(&path, 0.8 * a.a, turn);
                }
            }
            Medium::Ink => {
                self.flood(&path, a, b);
                let dark = 1.0 - (top.l + low.l) / 2.0;
                if a.a > 0.6 && size > self.unit * 0.02 {
                    self.hatch(&path, dark);
                }
                if a.a > 0.6 {
                    self.pen(&path, self.outline(top), weight * 0.0052);
                }
            }
            Medium::Woodcut => {
                self.flood(&path, a, a);
                if a.a > 0.6 {
                    if (0.42..0.9).contains(&top.l) && size > self.unit * 0.08 {
                        let turn = self.dice.range(-6.0, 6.0);
                        self.grain(&path, 0.85, turn);
                    }
                    let line = if top.l < 0.42 {
                        PRINT_PAPER
                    } else {
                        self.outline(top)
                    };
                    self.pen(&path, line, weight * 0.009);
                }
            }
            Medium::Blueprint => {
                self.flood(&path, a, a);
                if a.a > 0.4 {
                    self.pen(&path, self.outline(top).faded(0.9), weight * 0.0042);
                }
            }
            Medium::Neon => {
                self.flood(&path, a, b);
                if a.a > 0.4 {
                    self.tube(&path, self.outline(top), weight * 0.0045);
                }
            }
        }
    }

    /// The grain of wet paper, and a second wash that does not quite meet the first.
    fn bleed(&mut self, path: &Path, a: Tone, b: Tone) {
        let turn = self.dice.range(0.0, 90.0);
        self.grain(path, 0.75 * a.a, turn);
        let slip = self.unit * 0.007;
        let moved = Transform::from_translate(self.dice.range(-slip, slip), self.dice.range(0.0, slip));
        if let Some(second) = path.clone().transform(moved) {
            self.flood(&second, a.faded(a.a * 0.22), b.faded(b.a * 0.30));
        }
    }

    /// Hatching, crossed where it is very dark.
    fn hatch(&mut self, path: &Path, dark: f32) {
        if dark > 0.38 {
            self.grain(path, (dark * 1.1).min(0.9), if dark > 0.6 { 20.0 } else { -8.0 });
        }
        if dark > 0.68 {
            self.grain(path, 0.7, 72.0);
        }
    }

    /// A line; widths are shares of the shorter side.
    pub(super) fn line(&mut self, path: Option<Path>, t: Tone, width: f32) {
        let Some(path) = path else { return };
        let width = width * self.unit;
        match self.medium {
            Medium::Neon => self.tube(&path, self.outline(t), width.min(self.unit * 0.006)),
            Medium::Blueprint => self.pen(&path, self.outline(t).faded(0.85), width.min(self.unit * 0.005)),
            Medium::Ink if t.l < 0.6 => {
                self.pen(&path, self.outline(t).faded(t.a), width.min(self.unit * 0.01))
            }
            Medium::Ink
            | Medium::Gouache
            | Medium::Watercolour
            | Medium::Oil
            | Medium::Pixel
            | Medium::Woodcut
            | Medium::Photo => self.pen(&path, self.pigment(t), width),
        }
    }

    /// Light around a lamp, a sun or a moon.
    pub(super) fn glow(&mut self, x: f32, y: f32, r: f32, t: Tone, strength: f32) {
        if !self.medium.has_soft_light() {
            return;
        }
        let t = if self.medium == Medium::Neon {
            tone(0.7, 0.2, t.h)
        } else {
            t
        };
        let centre = Point::from_xy(x, y);
        let stops = [(0.0, strength), (0.35, strength * 0.4), (1.0, 0.0)]
            .map(|(at, a)| GradientStop::new(at, t.faded(a).colour()));
        let (reach, none) = (r.max(0.5), Transform::identity());
        let shader = RadialGradient::new(centre, centre, reach, stops.to_vec(), SpreadMode::Pad, none);
        if let (Some(shader), Some(path)) = (shader, circle(x, y, r)) {
            let paint = Paint {
                shader,
                ..Paint::default()
            };
            self.map.fill_path(&path, &paint, FillRule::Winding, none, None);
        }
    }

    /// A small dark or bright mark, the same in all media but the ones drawn with light lines.
    pub(super) fn mark(&mut self, path: Option<Path>, t: Tone) {
        let t = if self.medium.is_light_on_dark() {
            tone(if t.l < 0.5 { 0.95 } else { 0.3 }, 0.04, 220.0)
        } else {
            t
        };
        self.flat(path, t);
    }

    /// A strip from edge to edge.
    pub(super) fn strip(&self, top: f32, height: f32) -> Option<Path> {
        rect(-1.0, top, self.w + 2.0, height)
    }
}
