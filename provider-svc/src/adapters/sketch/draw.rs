//! Pictures of the offline provider: a prompt and a seed in, a PNG out.
//!
//! What lives here: choosing a scene, a light and a medium from the words of a prompt, painting it with plain vector
//! shapes, and lettering the prompt below it. The same prompt, seed and size give the same bytes on one machine.
//! What does not: clamping of sizes, pricing, waiting and anything async (that is the adapter beside this file),
//! sound (`speak`) and text (`write`).
//!
//! The order to read: [`draw`] → [`Brief`] (what the prompt asks for) → [`Canvas`] (how a medium puts a shape on
//! paper) → the `scene_…` functions → [`Caption`].

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};
use std::f32::consts::{PI, TAU};
use tiny_skia::{
    Color, FillRule, FilterQuality, GradientStop, LineCap, LineJoin, LinearGradient, Paint, Path,
    PathBuilder, Pattern, Pixmap, PixmapPaint, Point, PremultipliedColorU8, RadialGradient, Rect, Shader,
    SpreadMode, Stroke, Transform,
};

/// The longest side that [`draw`] accepts, in pixels.
pub const MAX_SIDE: u32 = 4096;

/// Why a picture could not be made.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// A side is zero or longer than [`MAX_SIDE`]; the caller asks for another size.
    #[error("cannot draw a picture of {width}x{height} pixels, a side is between 1 and {MAX_SIDE}")]
    Size {
        /// The width asked for.
        width: u32,
        /// The height asked for.
        height: u32,
    },
    /// The finished picture could not be written as PNG; a bug of ours.
    #[error("cannot encode the picture: {0}")]
    Encode(String),
}

/// Draws a picture for a prompt and returns it as PNG.
///
/// Sizes are in pixels. Equal arguments give equal bytes; another seed gives another composition of the same subject
/// in the same family of colours.
///
/// # Errors
/// [`DrawError::Size`] when a side is 0 or above [`MAX_SIDE`], [`DrawError::Encode`] when PNG encoding fails.
pub fn draw(prompt: &str, seed: u64, width: u32, height: u32) -> Result<Vec<u8>, DrawError> {
    let mut map = sheet(width, height)?;
    let brief = Brief::read(prompt, seed);
    let caption = Caption::lay_out(prompt, seed, width, height);
    paint(&brief, &mut map, height.saturating_sub(caption.height));
    caption.write_on(&mut map, &brief);
    encode(&map)
}

/// Draws the unfinished picture that [`draw`] would give for the same arguments, an eighth of its size.
///
/// `fraction` is the progress between 0 and 1: the nearer to 1, the finer the blocks and the less noise. The result has
/// the proportions of the picture, at least 32 pixels on its longer side unless the picture is smaller.
///
/// # Errors
/// The same as [`draw`].
pub fn preview(
    prompt: &str,
    seed: u64,
    width: u32,
    height: u32,
    fraction: f32,
) -> Result<Vec<u8>, DrawError> {
    check(width, height)?;
    let longer = width.max(height);
    let wanted = (longer / 8).max(32).min(longer);
    let scaled = |side: u32| (side * wanted / longer).max(1);
    let (small_w, small_h) = (scaled(width), scaled(height));
    let brief = Brief::read(prompt, seed);
    let band = scaled(Caption::lay_out(prompt, seed, width, height).height).min(small_h / 2);

    // Painted at twice the size and averaged down, so that thin lines survive.
    let mut map = sheet(small_w * 2, small_h * 2)?;
    paint(&brief, &mut map, (small_h - band) * 2);
    let band_top = (small_h - band) * 2;
    fill_rows(&mut map, band_top, brief.band());

    let left = 1.0 - if fraction.is_finite() { fraction.clamp(0.0, 1.0) } else { 0.0 };
    let block = 2 + whole(left * 14.0);
    let mut grain = Dice::new(brief.dice_seed ^ 0x6e6f_6973);
    let mut out = sheet(small_w, small_h)?;
    let noise = left * 0.55;
    let row = usize_of(small_w);
    for (at, pixel) in out.pixels_mut().iter_mut().enumerate() {
        let (x, y) = (u32_of(at % row) * 2, u32_of(at / row) * 2);
        let (bx, by) = (x / block * block, y / block * block);
        let mean = block_mean(&map, bx, by, block);
        let speck = grain.unit() * 255.0;
        let mix = |channel: f32| byte(channel * (1.0 - noise) + speck * noise);
        if let Some(colour) = PremultipliedColorU8::from_rgba(mix(mean.0), mix(mean.1), mix(mean.2), 255) {
            *pixel = colour;
        }
    }
    encode(&out)
}

fn check(width: u32, height: u32) -> Result<(), DrawError> {
    let fits = |side: u32| (1..=MAX_SIDE).contains(&side);
    if fits(width) && fits(height) { Ok(()) } else { Err(DrawError::Size { width, height }) }
}

fn sheet(width: u32, height: u32) -> Result<Pixmap, DrawError> {
    check(width, height)?;
    Pixmap::new(width, height).ok_or(DrawError::Size { width, height })
}

fn encode(map: &Pixmap) -> Result<Vec<u8>, DrawError> {
    map.encode_png().map_err(|error| DrawError::Encode(error.to_string()))
}

/// Paints the scene of a brief on the upper `view` rows of a sheet.
fn paint(brief: &Brief, map: &mut Pixmap, view: u32) {
    let (width, view) = (map.width(), view.max(1));
    let block = if brief.medium == Medium::Pixel { (width.min(view) / 80).max(1) } else { 1 };
    let Some(inner) = Pixmap::new(width.div_ceil(block), view.div_ceil(block)) else { return };
    let mut canvas = Canvas::new(brief, inner);
    canvas.scene(brief);
    canvas.finish();
    let scale = float(block);
    let place = Transform::from_scale(scale, scale);
    map.draw_pixmap(0, 0, canvas.map.as_ref(), &PixmapPaint::default(), place, None);
}

// ------------------------------------------------------------------------------------------------ numbers

/// Pixel counts stay below 2^24, so this is exact.
#[expect(clippy::cast_precision_loss, reason = "sides are at most 4096")]
fn float(value: u32) -> f32 {
    value as f32
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
fn whole(value: f32) -> u32 {
    value.round() as u32
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
fn byte(value: f32) -> u8 {
    value.round() as u8
}

fn usize_of(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

fn u32_of(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn lerp(from: f32, to: f32, t: f32) -> f32 {
    from + (to - from) * t
}

/// Steps through `0..count` as (index, fraction from 0 to 1).
fn steps(count: u16) -> impl Iterator<Item = (u16, f32)> {
    let last = f32::from(count.saturating_sub(1).max(1));
    (0..count).map(move |i| (i, f32::from(i) / last))
}

/// A small deterministic generator (splitmix64); `rand` promises no stable streams between versions.
#[derive(Debug, Clone)]
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
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
    fn unit(&mut self) -> f32 {
        let bits = u16::try_from(self.roll() >> 48).unwrap_or(0);
        f32::from(bits) / 65536.0
    }

    fn range(&mut self, low: f32, high: f32) -> f32 {
        lerp(low, high, self.unit())
    }

    fn chance(&mut self, odds: f32) -> bool {
        self.unit() < odds
    }

    /// A whole number from `low` to `high`, both included.
    fn count(&mut self, low: u16, high: u16) -> u16 {
        let span = u64::from(high.saturating_sub(low)) + 1;
        low.saturating_add(u16::try_from(self.roll() % span).unwrap_or(0))
    }

    fn sign(&mut self) -> f32 {
        if self.chance(0.5) { 1.0 } else { -1.0 }
    }
}

// ------------------------------------------------------------------------------------------------ colours

/// A colour in OKLCH, where equal steps look equal: lightness 0–1, chroma 0–0.3, hue in degrees, opacity 0–1.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tone {
    l: f32,
    c: f32,
    h: f32,
    a: f32,
}

const fn tone(l: f32, c: f32, h: f32) -> Tone {
    Tone { l, c, h, a: 1.0 }
}

impl Tone {
    fn lit(self, by: f32) -> Self {
        Self { l: (self.l + by).clamp(0.03, 0.99), ..self }
    }

    fn vivid(self, factor: f32) -> Self {
        Self { c: self.c * factor, ..self }
    }

    fn turned(self, degrees: f32) -> Self {
        Self { h: self.h + degrees, ..self }
    }

    fn faded(self, a: f32) -> Self {
        Self { a, ..self }
    }

    /// Mixes on the straight line between two colours, so complementary hues pass through grey and not the rainbow.
    fn toward(self, other: Self, t: f32) -> Self {
        let (ax, ay) = (self.c * self.h.to_radians().cos(), self.c * self.h.to_radians().sin());
        let (bx, by) = (other.c * other.h.to_radians().cos(), other.c * other.h.to_radians().sin());
        let (x, y) = (lerp(ax, bx, t), lerp(ay, by, t));
        Self { l: lerp(self.l, other.l, t), c: x.hypot(y), h: y.atan2(x).to_degrees(), a: lerp(self.a, other.a, t) }
    }

    /// To sRGB; colours outside of it lose chroma, not hue.
    fn colour(self) -> Color {
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
        let coded = if v <= 0.003_130_8 { 12.92 * v } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 };
        coded.clamp(0.0, 1.0)
    }))
}

// ------------------------------------------------------------------------------------------------ the brief

/// How a picture is made; chosen by words such as "watercolour".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Medium {
    Gouache,
    Watercolour,
    Ink,
    Oil,
    Pixel,
    Blueprint,
    Neon,
    Woodcut,
    Photo,
}

/// What a picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Waves,
    Ridges,
    Night,
    Skyline,
    Forest,
    Garden,
    Character(Being),
    Bauhaus,
    Planet,
    Dunes,
    Table,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Being {
    Cat,
    Bear,
    Robot,
    Person,
    Owl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Light {
    Day,
    Dusk,
    Night,
    Mist,
}

/// Something small that a prompt names beside its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prop {
    Lighthouse,
    Boat,
    House,
    Birds,
    Balloon,
    Rain,
    Snow,
}

const SUBJECTS: &[(Subject, &[&str])] = &[
    (Subject::Character(Being::Cat), &["cat", "kitten", "fox", "tiger", "lion", "lynx", "wolf"]),
    (Subject::Character(Being::Bear), &["bear", "dog", "puppy", "mouse", "rabbit", "panda", "hamster", "monkey"]),
    (Subject::Character(Being::Robot), &["robot", "android", "cyborg", "machine", "droid", "automaton"]),
    (Subject::Character(Being::Owl), &["owl", "penguin", "parrot", "chick", "raven", "crow"]),
    (
        Subject::Character(Being::Person),
        &[
            "portrait", "person", "man", "woman", "girl", "boy", "face", "king", "queen", "wizard", "knight",
            "child", "character", "sailor", "keeper", "captain", "chef", "dancer", "musician", "painter",
        ],
    ),
    (
        Subject::Planet,
        &["planet", "space", "galaxy", "rocket", "astronaut", "cosmos", "cosmic", "saturn", "mars", "nebula", "orbit"],
    ),
    (
        Subject::Waves,
        &[
            "sea", "wave", "water", "ocean", "lake", "river", "beach", "harbour", "harbor", "coast", "ship",
            "boat", "sail", "lighthouse", "island", "storm", "fish", "whale", "shore", "bay", "fjord",
        ],
    ),
    (
        Subject::Skyline,
        &[
            "city", "tower", "skyline", "street", "town", "building", "skyscraper", "cathedral", "castle",
            "urban", "downtown", "architecture", "bridge", "train", "station", "factory",
        ],
    ),
    (
        Subject::Forest,
        &["forest", "tree", "wood", "woodland", "jungle", "pine", "oak", "birch", "mushroom", "deer", "grove"],
    ),
    (
        Subject::Garden,
        &[
            "flower", "garden", "rose", "tulip", "petal", "bloom", "blossom", "daisy", "meadow", "bouquet",
            "bee", "butterfly", "spring", "lily", "poppy", "plant",
        ],
    ),
    (Subject::Dunes, &["desert", "dune", "sand", "canyon", "cactus", "camel", "savanna", "oasis", "sahara"]),
    (
        Subject::Table,
        &[
            "coffee", "tea", "cup", "mug", "bowl", "fruit", "apple", "bread", "cake", "kitchen", "vase", "lemon",
            "orange", "breakfast", "table", "bottle", "soup", "pear", "teapot", "still",
        ],
    ),
    (
        Subject::Ridges,
        &[
            "mountain", "moor", "hill", "valley", "ridge", "peak", "alps", "cliff", "landscape", "fell", "glen",
            "volcano", "field", "heather", "farm", "village", "cottage", "balloon",
        ],
    ),
    (Subject::Night, &["night", "star", "moon", "midnight", "constellation", "aurora", "starry"]),
    (
        Subject::Bauhaus,
        &["poster", "abstract", "geometric", "bauhaus", "logo", "pattern", "shape", "cubist", "minimal", "icon"],
    ),
];

const MEDIA: &[(Medium, &[&str])] = &[
    (Medium::Watercolour, &["watercolour", "watercolor", "aquarelle", "wash"]),
    (Medium::Pixel, &["pixel", "8bit", "16bit", "retro", "sprite"]),
    (Medium::Blueprint, &["blueprint", "technical", "schematic", "diagram", "cyanotype"]),
    (Medium::Neon, &["neon", "synthwave", "cyberpunk", "vaporwave", "glowing"]),
    (Medium::Woodcut, &["woodcut", "linocut", "engraving", "etching", "woodblock"]),
    (Medium::Ink, &["ink", "pen", "pencil", "drawing", "sketch", "charcoal", "line", "comic", "manga"]),
    (Medium::Oil, &["oil", "impasto", "impressionist", "impressionism", "acrylic", "canvas"]),
    (Medium::Photo, &["photo", "photograph", "photography", "photorealistic", "cinematic", "35mm", "film"]),
];

const LIGHTS: &[(Light, &[&str])] = &[
    (Light::Night, &["night", "moon", "moonlit", "star", "starry", "midnight", "dark", "aurora", "moonlight"]),
    (Light::Dusk, &["dusk", "sunset", "dawn", "sunrise", "evening", "golden", "twilight", "autumn", "warm"]),
    (Light::Mist, &["mist", "misty", "fog", "foggy", "haze", "hazy", "rain", "rainy", "storm", "winter", "snow"]),
    (Light::Day, &["day", "noon", "sunny", "morning", "summer", "bright", "spring"]),
];

const PROPS: &[(Prop, &[&str])] = &[
    (Prop::Lighthouse, &["lighthouse", "keeper", "beacon"]),
    (Prop::Boat, &["boat", "ship", "sail", "sailing", "yacht", "sailor", "harbour", "harbor"]),
    (Prop::House, &["house", "cottage", "cabin", "hut", "farm", "barn", "village", "home"]),
    (Prop::Birds, &["bird", "gull", "seagull", "swallow", "crane", "geese"]),
    (Prop::Balloon, &["balloon", "airship", "zeppelin"]),
    (Prop::Rain, &["rain", "rainy", "storm", "stormy", "drizzle"]),
    (Prop::Snow, &["snow", "snowy", "winter", "blizzard", "snowfall"]),
];

/// Words for colours and their hue in degrees.
const HUES: &[(f32, &[&str])] = &[
    (25.0, &["red", "crimson", "scarlet", "ruby"]),
    (55.0, &["orange", "amber", "copper", "rust", "terracotta"]),
    (92.0, &["yellow", "gold", "golden", "honey"]),
    (145.0, &["green", "emerald", "moss", "olive"]),
    (195.0, &["teal", "turquoise", "cyan", "aqua"]),
    (255.0, &["blue", "indigo", "navy", "azure", "cobalt"]),
    (305.0, &["purple", "violet", "lavender", "heather", "lilac"]),
    (355.0, &["pink", "magenta", "rose", "coral"]),
];

/// What the words of a prompt ask for, and the numbers that make one prompt look unlike another.
#[derive(Debug, Clone)]
struct Brief {
    subject: Subject,
    medium: Medium,
    light: Light,
    props: Vec<Prop>,
    /// Hue of the large areas, in degrees.
    hue: f32,
    /// Hue of what lies far away.
    far_hue: f32,
    /// Hue of the small bright things.
    accent_hue: f32,
    /// The moon belongs in the sky also when the prompt doesn't say which light there is.
    dice_seed: u64,
}

impl Brief {
    fn read(prompt: &str, seed: u64) -> Self {
        let digest = blake3::hash(prompt.trim().as_bytes());
        let mut kind = Dice::new(first_u64(digest.as_bytes()));
        let lower = prompt.to_lowercase();
        let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();

        let hashed = [
            Subject::Ridges,
            Subject::Waves,
            Subject::Bauhaus,
            Subject::Planet,
            Subject::Garden,
            Subject::Forest,
            Subject::Dunes,
            Subject::Skyline,
            Subject::Table,
            Subject::Night,
        ];
        let at = usize::from(kind.count(0, 9));
        let fallback = hashed.get(at).copied().unwrap_or(Subject::Ridges);
        let medium = pick(&words, MEDIA).unwrap_or(Medium::Gouache);
        let subject = pick(&words, SUBJECTS).unwrap_or(fallback);
        let roll = kind.unit();
        let by_hash = match roll {
            r if r < 0.45 => Light::Day,
            r if r < 0.75 => Light::Dusk,
            r if r < 0.88 => Light::Mist,
            _ => Light::Night,
        };
        let light = if subject == Subject::Night { Light::Night } else { pick(&words, LIGHTS).unwrap_or(by_hash) };
        let props = PROPS.iter().filter(|(_, names)| named(&words, names)).map(|(prop, _)| *prop).collect();

        let spread = kind.range(-1.0, 1.0);
        let habit = match subject {
            Subject::Waves => 225.0 + spread * 45.0,
            Subject::Forest => 158.0 + spread * 45.0,
            Subject::Dunes => 58.0 + spread * 28.0,
            Subject::Night => 275.0 + spread * 45.0,
            Subject::Ridges
            | Subject::Skyline
            | Subject::Garden
            | Subject::Character(_)
            | Subject::Bauhaus
            | Subject::Planet
            | Subject::Table => 180.0 + spread * 180.0,
        };
        let hue = HUES
            .iter()
            .find(|(_, names)| named(&words, names))
            .map_or(habit, |(hue, _)| hue + spread * 10.0);
        let scheme = kind.count(0, 3);
        let accent_turn = match scheme {
            0 => 180.0,
            1 => 150.0,
            2 => 120.0,
            _ => -150.0,
        };
        let far_turn = kind.range(18.0, 60.0) * kind.sign();
        let mut hasher = blake3::Hasher::new();
        hasher.update(digest.as_bytes()).update(&seed.to_le_bytes());
        let dice_seed = first_u64(hasher.finalize().as_bytes());
        // A seed moves the hue a little, so that a series of one prompt isn't monotonous.
        let drift = Dice::new(dice_seed).range(-12.0, 12.0);
        Self {
            subject,
            medium,
            light,
            props,
            hue: hue + drift,
            far_hue: hue + far_turn + drift,
            accent_hue: hue + accent_turn - drift,
            dice_seed,
        }
    }

    /// The colour behind the caption.
    fn band(&self) -> Tone {
        match self.medium {
            Medium::Blueprint => tone(0.24, 0.09, 255.0),
            Medium::Ink | Medium::Woodcut => tone(0.19, 0.012, self.hue),
            Medium::Gouache
            | Medium::Watercolour
            | Medium::Oil
            | Medium::Pixel
            | Medium::Neon
            | Medium::Photo => tone(0.19, 0.035, self.hue),
        }
    }

    fn has(&self, prop: Prop) -> bool {
        self.props.contains(&prop)
    }

    fn is_dark(&self) -> bool {
        self.light == Light::Night
    }

    /// Sky colours from the zenith to the horizon.
    fn sky(&self) -> [Tone; 3] {
        let (h, far) = (self.hue, self.far_hue);
        match self.light {
            Light::Day => [tone(0.70, 0.105, far), tone(0.82, 0.075, far), tone(0.94, 0.045, far + 25.0)],
            Light::Dusk => [tone(0.42, 0.105, far), tone(0.66, 0.125, far).toward(tone(0.7, 0.13, 20.0), 0.55), tone(0.88, 0.11, 75.0)],
            Light::Night => [tone(0.15, 0.05, h), tone(0.24, 0.075, h), tone(0.40, 0.095, far)],
            Light::Mist => [tone(0.74, 0.03, far), tone(0.84, 0.025, far), tone(0.93, 0.02, h)],
        }
    }

    /// Ground colours: 0 is far away and hazy, 1 near and deep.
    fn layer(&self, t: f32) -> Tone {
        let horizon = self.sky()[2];
        let (far, near) = match self.light {
            Light::Day => (horizon.toward(tone(0.72, 0.09, self.far_hue), 0.75), tone(0.30, 0.085, self.hue)),
            Light::Dusk => (horizon.toward(tone(0.60, 0.11, self.far_hue), 0.7), tone(0.22, 0.075, self.hue)),
            Light::Night => (tone(0.36, 0.085, self.far_hue), tone(0.11, 0.035, self.hue)),
            Light::Mist => (tone(0.86, 0.025, self.far_hue), tone(0.38, 0.045, self.hue)),
        };
        far.toward(near, t)
    }

    fn accent(&self, turn: f32) -> Tone {
        tone(if self.is_dark() { 0.74 } else { 0.68 }, 0.165, self.accent_hue + turn)
    }

    fn lamp(&self) -> Tone {
        tone(0.90, 0.13, 88.0)
    }
}

fn first_u64(digest: &[u8; 32]) -> u64 {
    digest.iter().take(8).fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
}

/// Whether a word of the prompt is one of the names, also in the plural.
fn named(words: &[&str], names: &[&str]) -> bool {
    position(words, names).is_some()
}

fn position(words: &[&str], names: &[&str]) -> Option<usize> {
    words.iter().position(|word| {
        let stem = word.strip_suffix('s').unwrap_or(word);
        let long_stem = word.strip_suffix("es").unwrap_or(word);
        names.iter().any(|name| name == word || *name == stem || *name == long_stem)
    })
}

fn pick<T: Copy>(words: &[&str], table: &[(T, &[&str])]) -> Option<T> {
    table.iter().find(|(_, names)| named(words, names)).map(|(value, _)| *value)
}

// ------------------------------------------------------------------------------------------------ paths

fn circle(x: f32, y: f32, r: f32) -> Option<Path> {
    PathBuilder::from_circle(x, y, r.max(0.2))
}

fn rect(x: f32, y: f32, w: f32, h: f32) -> Option<Path> {
    Rect::from_xywh(x, y, w.max(0.2), h.max(0.2)).map(PathBuilder::from_rect)
}

fn oval(x: f32, y: f32, rx: f32, ry: f32) -> Option<Path> {
    Rect::from_xywh(x - rx, y - ry, (rx * 2.0).max(0.2), (ry * 2.0).max(0.2)).and_then(PathBuilder::from_oval)
}

fn polygon(points: &[(f32, f32)]) -> Option<Path> {
    let mut path = PathBuilder::new();
    let mut rest = points.iter();
    let first = rest.next()?;
    path.move_to(first.0, first.1);
    for point in rest {
        path.line_to(point.0, point.1);
    }
    path.close();
    path.finish()
}

fn polyline(points: &[(f32, f32)]) -> Option<Path> {
    let mut path = PathBuilder::new();
    run_through(&mut path, points, true)?;
    path.finish()
}

/// A smooth curve through the middles of the points.
fn run_through(path: &mut PathBuilder, points: &[(f32, f32)], start: bool) -> Option<()> {
    let first = points.first()?;
    if start {
        path.move_to(first.0, first.1);
    } else {
        path.line_to(first.0, first.1);
    }
    for pair in points.windows(2) {
        if let [a, b] = pair {
            path.quad_to(a.0, a.1, (a.0 + b.0) / 2.0, (a.1 + b.1) / 2.0);
        }
    }
    let last = points.last()?;
    path.line_to(last.0, last.1);
    Some(())
}

/// Everything below a line of points, down to `floor`.
fn ground(points: &[(f32, f32)], floor: f32, smooth: bool) -> Option<Path> {
    let (first, last) = (points.first()?, points.last()?);
    let mut path = PathBuilder::new();
    path.move_to(first.0, floor);
    if smooth {
        run_through(&mut path, points, false)?;
    } else {
        for point in points {
            path.line_to(point.0, point.1);
        }
    }
    path.line_to(last.0, floor);
    path.close();
    path.finish()
}

fn rounded(x: f32, y: f32, w: f32, h: f32, r: f32) -> Option<Path> {
    let r = r.min(w / 2.0).min(h / 2.0);
    let mut path = PathBuilder::new();
    path.move_to(x + r, y);
    path.line_to(x + w - r, y);
    path.quad_to(x + w, y, x + w, y + r);
    path.line_to(x + w, y + h - r);
    path.quad_to(x + w, y + h, x + w - r, y + h);
    path.line_to(x + r, y + h);
    path.quad_to(x, y + h, x, y + h - r);
    path.line_to(x, y + r);
    path.quad_to(x, y, x + r, y);
    path.close();
    path.finish()
}

/// A slice of a disc from one angle to another, in radians.
fn wedge(x: f32, y: f32, r: f32, from: f32, to: f32) -> Option<Path> {
    let mut points = vec![(x, y)];
    points.extend(steps(33).map(|(_, t)| {
        let angle = lerp(from, to, t);
        (x + r * angle.cos(), y + r * angle.sin())
    }));
    polygon(&points)
}

/// A petal or leaf from its root, `length` long, pointing to `angle`.
fn petal(x: f32, y: f32, length: f32, width: f32, angle: f32) -> Option<Path> {
    let (dx, dy) = (angle.cos(), angle.sin());
    let at = |along: f32, across: f32| (x + dx * along - dy * across, y + dy * along + dx * across);
    let tip = at(length, 0.0);
    let (a, b) = (at(length * 0.25, width), at(length * 0.9, width * 0.9));
    let (c, d) = (at(length * 0.9, -width * 0.9), at(length * 0.25, -width));
    let mut path = PathBuilder::new();
    path.move_to(x, y);
    path.cubic_to(a.0, a.1, b.0, b.1, tip.0, tip.1);
    path.cubic_to(c.0, c.1, d.0, d.1, x, y);
    path.close();
    path.finish()
}

// ------------------------------------------------------------------------------------------------ the canvas

/// A sheet, the medium that marks it and the dice that place things. Lengths are relative to `unit`, the shorter side.
struct Canvas {
    map: Pixmap,
    w: f32,
    h: f32,
    unit: f32,
    medium: Medium,
    hue: f32,
    dice: Dice,
    /// Marks that a medium leaves in every area: hatching, brush strokes, grain of paper.
    texture: Option<Pixmap>,
}

impl Canvas {
    fn new(brief: &Brief, map: Pixmap) -> Self {
        let (w, h) = (float(map.width()), float(map.height()));
        let unit = w.min(h);
        let dice = Dice::new(brief.dice_seed);
        let texture = texture(brief.medium, unit, dice.clone());
        Self { map, w, h, unit, medium: brief.medium, hue: brief.hue, dice, texture }
    }

    /// What a medium makes of a colour.
    fn pigment(&self, t: Tone) -> Tone {
        match self.medium {
            Medium::Gouache => t,
            Medium::Watercolour => Tone { l: 0.30 + t.l * 0.68, c: t.c * 0.95, ..t },
            Medium::Ink => {
                let kept = if t.c > 0.15 { t.c * 0.85 } else { 0.012 };
                let h = if t.c > 0.15 { t.h } else { 85.0 };
                Tone { l: 0.40 + t.l * 0.58, c: kept, h, ..t }
            }
            Medium::Oil => Tone { c: t.c * 1.2, l: t.l * 0.96, ..t },
            Medium::Pixel => {
                Tone { l: (t.l * 14.0).round() / 14.0, c: t.c * 1.15, h: (t.h / 15.0).round() * 15.0, ..t }
            }
            Medium::Blueprint => Tone { l: 0.27 + t.l * 0.16, c: 0.105, h: 255.0, ..t },
            Medium::Neon => Tone { l: 0.07 + t.l * 0.17, c: 0.02 + t.c * 0.45, h: t.h, ..t },
            Medium::Woodcut => {
                if t.c > 0.15 {
                    tone(0.62, 0.15, self.hue + 180.0).faded(t.a)
                } else if t.l < 0.42 {
                    tone(0.23, 0.02, self.hue).faded(t.a)
                } else if t.l < 0.68 {
                    tone(0.74, 0.05, self.hue).faded(t.a)
                } else {
                    tone(0.93, 0.03, 85.0).faded(t.a)
                }
            }
            Medium::Photo => Tone { c: t.c * 0.72, ..t },
        }
    }

    /// The colour of an outline around an area, for media that have outlines.
    fn outline(&self, t: Tone) -> Tone {
        match self.medium {
            Medium::Ink => tone(0.22, 0.02, 270.0),
            Medium::Woodcut => tone(0.20, 0.02, self.hue),
            Medium::Blueprint => tone(0.93, 0.03, 230.0),
            Medium::Neon => tone(0.80, 0.19, t.h + t.l * 90.0),
            Medium::Watercolour => self.pigment(t).lit(-0.14).vivid(1.2),
            Medium::Gouache | Medium::Oil | Medium::Pixel | Medium::Photo => self.pigment(t).lit(-0.12),
        }
    }

    fn ink_paint<'a>(&self, shader: Shader<'a>) -> Paint<'a> {
        Paint { shader, anti_alias: self.medium != Medium::Pixel, ..Paint::default() }
    }

    /// Fills a path with a vertical blend, no outline.
    fn flood(&mut self, path: &Path, top: Tone, low: Tone) {
        let bounds = path.bounds();
        let shader = if top == low {
            Shader::SolidColor(top.colour())
        } else {
            let stops = (0u8..=4).map(|i| {
                let t = f32::from(i) / 4.0;
                GradientStop::new(t, top.toward(low, t).colour())
            });
            let (from, to) = (Point::from_xy(0.0, bounds.top()), Point::from_xy(0.0, bounds.bottom().max(bounds.top() + 1.0)));
            LinearGradient::new(from, to, stops.collect(), SpreadMode::Pad, Transform::identity())
                .unwrap_or(Shader::SolidColor(low.colour()))
        };
        let paint = self.ink_paint(shader);
        self.map.fill_path(path, &paint, FillRule::Winding, Transform::identity(), None);
    }

    /// Lays the texture of the medium over an area.
    fn grain(&mut self, path: &Path, opacity: f32, transform: Transform) {
        if let Some(texture) = &self.texture {
            let shader =
                Pattern::new(texture.as_ref(), SpreadMode::Repeat, FilterQuality::Bilinear, opacity, transform);
            let paint = Paint { shader, ..Paint::default() };
            self.map.fill_path(path, &paint, FillRule::Winding, Transform::identity(), None);
        }
    }

    fn pen(&mut self, path: &Path, t: Tone, width: f32) {
        let paint = self.ink_paint(Shader::SolidColor(t.colour()));
        let stroke = Stroke {
            width: width.max(0.6),
            line_cap: LineCap::Round,
            line_join: LineJoin::Round,
            ..Stroke::default()
        };
        self.map.stroke_path(path, &paint, &stroke, Transform::identity(), None);
    }

    /// An area of one colour, in the way of the medium.
    fn area(&mut self, path: Option<Path>, t: Tone) {
        self.shaded(path, t, t);
    }

    /// An area that blends from top to bottom, in the way of the medium.
    fn shaded(&mut self, path: Option<Path>, top: Tone, low: Tone) {
        let Some(path) = path else { return };
        let (a, b) = (self.pigment(top), self.pigment(low));
        let bounds = path.bounds();
        let size = bounds.width().max(bounds.height());
        // Small things get thin lines, or they would drown in their outline.
        let weight = (size / self.unit * 2.2).clamp(0.3, 1.0) * self.unit;
        match self.medium {
            Medium::Gouache | Medium::Pixel | Medium::Photo => self.flood(&path, a, b),
            Medium::Watercolour => {
                self.flood(&path, a.faded(a.a * 0.72), b.faded(b.a * 0.86));
                if size > self.unit * 0.05 {
                    let turn = Transform::from_rotate(self.dice.range(0.0, 90.0));
                    self.grain(&path, 0.75 * a.a, turn);
                    let slip = self.unit * 0.007;
                    let moved = Transform::from_translate(self.dice.range(-slip, slip), self.dice.range(0.0, slip));
                    if let Some(second) = path.clone().transform(moved) {
                        self.flood(&second, a.faded(a.a * 0.22), b.faded(b.a * 0.30));
                    }
                }
                let edge = self.outline(low).faded(0.40 * a.a);
                self.pen(&path, edge, weight * 0.0028);
            }
            Medium::Oil => {
                self.flood(&path, a, b);
                let turn = Transform::from_rotate(self.dice.range(-40.0, 40.0));
                if size > self.unit * 0.03 {
                    self.grain(&path, 0.8 * a.a, turn);
                }
            }
            Medium::Ink => {
                self.flood(&path, a, b);
                let dark = 1.0 - (top.l + low.l) / 2.0;
                if dark > 0.38 && a.a > 0.6 && size > self.unit * 0.02 {
                    self.grain(&path, (dark * 1.1).min(0.9), Transform::from_rotate(if dark > 0.6 { 20.0 } else { -8.0 }));
                    if dark > 0.68 {
                        self.grain(&path, 0.7, Transform::from_rotate(72.0));
                    }
                }
                if a.a > 0.6 {
                    self.pen(&path, self.outline(top), weight * 0.0052);
                }
            }
            Medium::Woodcut => {
                self.flood(&path, a, a);
                if a.a > 0.6 {
                    if (0.42..0.9).contains(&top.l) && size > self.unit * 0.08 {
                        self.grain(&path, 0.85, Transform::from_rotate(self.dice.range(-6.0, 6.0)));
                    }
                    let paper = tone(0.93, 0.03, 85.0);
                    let line = if top.l < 0.42 { paper } else { self.outline(top) };
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

    /// A glowing line.
    fn tube(&mut self, path: &Path, t: Tone, width: f32) {
        self.pen(path, t.faded(0.10), width * 6.0);
        self.pen(path, t.faded(0.22), width * 3.0);
        self.pen(path, t.lit(0.08), width);
    }

    /// A line; widths are shares of the shorter side.
    fn line(&mut self, path: Option<Path>, t: Tone, width: f32) {
        let Some(path) = path else { return };
        let width = width * self.unit;
        match self.medium {
            Medium::Neon => self.tube(&path, self.outline(t), width.min(self.unit * 0.006)),
            Medium::Blueprint => self.pen(&path, self.outline(t).faded(0.85), width.min(self.unit * 0.005)),
            Medium::Ink if t.l < 0.6 => self.pen(&path, self.outline(t).faded(t.a), width.min(self.unit * 0.01)),
            Medium::Ink
            | Medium::Gouache
            | Medium::Watercolour
            | Medium::Oil
            | Medium::Pixel
            | Medium::Woodcut
            | Medium::Photo => {
                let mixed = self.pigment(t);
                self.pen(&path, mixed, width);
            }
        }
    }

    /// Light around a lamp, a sun or a moon.
    fn glow(&mut self, x: f32, y: f32, r: f32, t: Tone, strength: f32) {
        if matches!(self.medium, Medium::Ink | Medium::Woodcut | Medium::Blueprint | Medium::Pixel) {
            return;
        }
        let t = if self.medium == Medium::Neon { tone(0.7, 0.2, t.h) } else { t };
        let centre = Point::from_xy(x, y);
        let stops = vec![
            GradientStop::new(0.0, t.faded(strength).colour()),
            GradientStop::new(0.35, t.faded(strength * 0.4).colour()),
            GradientStop::new(1.0, t.faded(0.0).colour()),
        ];
        let shader = RadialGradient::new(centre, centre, r.max(0.5), stops, SpreadMode::Pad, Transform::identity());
        if let (Some(shader), Some(path)) = (shader, circle(x, y, r)) {
            let paint = Paint { shader, ..Paint::default() };
            self.map.fill_path(&path, &paint, FillRule::Winding, Transform::identity(), None);
        }
    }

    /// Fills the sheet with a blend of three tones.
    fn backdrop(&mut self, tones: [Tone; 3]) {
        let Some(path) = rect(0.0, 0.0, self.w, self.h) else { return };
        let [a, b, c] = tones.map(|t| self.pigment(t));
        match self.medium {
            Medium::Woodcut => self.flood(&path, tone(0.93, 0.03, 85.0), tone(0.93, 0.03, 85.0)),
            Medium::Ink => self.flood(&path, tone(0.965, 0.015, 90.0), tone(0.93, 0.02, 85.0)),
            Medium::Blueprint => self.flood(&path, tone(0.33, 0.11, 255.0), tone(0.30, 0.105, 257.0)),
            Medium::Watercolour => {
                self.flood(&path, tone(0.975, 0.01, 85.0), tone(0.975, 0.01, 85.0));
                self.flood(&path, a.faded(0.85), c.faded(0.55));
                self.blooms(a, b);
                self.grain(&path, 0.8, Transform::identity());
            }
            Medium::Gouache | Medium::Oil | Medium::Pixel | Medium::Neon | Medium::Photo => {
                let stops = [a, a.toward(b, 0.5), b, b.toward(c, 0.5), c];
                let stops = stops.iter().zip([0.0, 0.22, 0.45, 0.66, 0.86]);
                let stops = stops.map(|(t, at)| GradientStop::new(at, t.colour())).collect();
                let end = Point::from_xy(0.0, self.h * 0.75);
                let blend =
                    LinearGradient::new(Point::zero(), end, stops, SpreadMode::Pad, Transform::identity());
                let paint = self.ink_paint(blend.unwrap_or(Shader::SolidColor(b.colour())));
                self.map.fill_path(&path, &paint, FillRule::Winding, Transform::identity(), None);
                if self.medium == Medium::Oil {
                    self.grain(&path, 0.9, Transform::from_rotate(-14.0));
                }
            }
        }
    }

    /// Wet-in-wet clouds of pigment.
    fn blooms(&mut self, a: Tone, b: Tone) {
        for _ in 0..14 {
            let (x, y) = (self.dice.unit() * self.w, self.dice.unit() * self.h * 0.6);
            let r = self.dice.range(0.12, 0.4) * self.unit;
            let t = if self.dice.chance(0.4) { tone(0.98, 0.01, 85.0) } else { a.toward(b, self.dice.unit()) };
            self.glow(x, y, r, t, 0.35);
        }
    }

    /// What a medium does to the whole picture at the end.
    fn finish(&mut self) {
        match self.medium {
            Medium::Photo => {
                self.vignette(0.55);
                self.speckle(9.0);
            }
            Medium::Oil => self.vignette(0.25),
            Medium::Blueprint => self.grid(),
            Medium::Neon => self.scanlines(),
            Medium::Ink | Medium::Woodcut | Medium::Watercolour | Medium::Gouache | Medium::Pixel => {}
        }
    }

    fn vignette(&mut self, strength: f32) {
        let centre = Point::from_xy(self.w / 2.0, self.h / 2.0);
        let dark = tone(0.08, 0.02, self.hue);
        let stops = vec![
            GradientStop::new(0.0, dark.faded(0.0).colour()),
            GradientStop::new(0.55, dark.faded(0.0).colour()),
            GradientStop::new(1.0, dark.faded(strength).colour()),
        ];
        let r = self.w.hypot(self.h) / 2.0;
        let shader = RadialGradient::new(centre, centre, r, stops, SpreadMode::Pad, Transform::identity());
        if let (Some(shader), Some(all)) = (shader, Rect::from_xywh(0.0, 0.0, self.w, self.h)) {
            let paint = Paint { shader, ..Paint::default() };
            self.map.fill_rect(all, &paint, Transform::identity(), None);
        }
    }

    /// Film grain: a tile of noise, so that a large picture costs no more dice than a small one.
    fn speckle(&mut self, strength: f32) {
        let Some(mut tile) = Pixmap::new(64, 64) else { return };
        for pixel in tile.pixels_mut() {
            let speck = self.dice.range(-1.0, 1.0);
            let alpha = byte(speck.abs() * strength * 2.0);
            let white = if speck > 0.0 { alpha } else { 0 };
            if let Some(colour) = PremultipliedColorU8::from_rgba(white, white, white, alpha) {
                *pixel = colour;
            }
        }
        let scale = (self.unit / 512.0).max(1.0);
        let place = Transform::from_scale(scale, scale);
        let shader = Pattern::new(tile.as_ref(), SpreadMode::Repeat, FilterQuality::Nearest, 1.0, place);
        if let Some(all) = Rect::from_xywh(0.0, 0.0, self.w, self.h) {
            self.map.fill_rect(all, &Paint { shader, ..Paint::default() }, Transform::identity(), None);
        }
    }

    fn grid(&mut self) {
        let cell = (self.unit / 20.0).max(4.0);
        let line = tone(0.9, 0.04, 235.0);
        for axis in [true, false] {
            let reach = if axis { self.w } else { self.h };
            let mut at = cell;
            let mut count = 1u32;
            while at < reach {
                let strong = count.is_multiple_of(5);
                let path = if axis { rect(at, 0.0, 0.6, self.h) } else { rect(0.0, at, self.w, 0.6) };
                if let Some(path) = path {
                    let t = line.faded(if strong { 0.30 } else { 0.13 });
                    self.flood(&path, t, t);
                }
                at += cell;
                count += 1;
            }
        }
        let inset = self.unit * 0.035;
        if let Some(frame) = rect(inset, inset, self.w - inset * 2.0, self.h - inset * 2.0) {
            self.pen(&frame, line.faded(0.8), self.unit * 0.004);
        }
    }

    fn scanlines(&mut self) {
        let gap = (self.unit / 128.0).max(2.0);
        let mut y = 0.0;
        let t = tone(0.03, 0.0, 0.0).faded(0.16);
        while y < self.h {
            if let Some(path) = rect(0.0, y, self.w, gap * 0.4) {
                self.flood(&path, t, t);
            }
            y += gap;
        }
    }
}

/// Makes the tile that a medium repeats inside of areas.
fn texture(medium: Medium, unit: f32, mut dice: Dice) -> Option<Pixmap> {
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
            let paint = Paint { shader: Shader::SolidColor(t.colour()), ..Paint::default() };
            // Also at the opposite edges, so that the tile has no seam.
            for (dx, dy) in [(0.0, 0.0), (side, 0.0), (-side, 0.0), (0.0, side), (0.0, -side)] {
                tile.fill_path(&path, &paint, FillRule::Winding, Transform::from_translate(dx, dy), None);
            }
        }
    };
    match medium {
        Medium::Ink => mark(rect(0.0, side * 0.35, side, side * 0.2), tone(0.25, 0.02, 270.0).faded(0.8)),
        Medium::Woodcut => mark(
            polygon(&[(0.0, side * 0.4), (side * 0.5, side * 0.25), (side, side * 0.4), (side * 0.5, side * 0.6)]),
            tone(0.22, 0.02, 60.0),
        ),
        Medium::Oil => {
            for _ in 0..90 {
                let (x, y) = (dice.unit() * side, dice.unit() * side);
                let (length, width) = (dice.range(0.10, 0.3) * side, dice.range(0.008, 0.022) * side);
                let light = dice.chance(0.5);
                let t = if light { tone(0.97, 0.02, 90.0) } else { tone(0.12, 0.03, 280.0) };
                mark(rounded(x, y, length, width, width / 2.0), t.faded(dice.range(0.05, 0.14)));
            }
        }
        Medium::Watercolour => {
            for _ in 0..110 {
                let (x, y) = (dice.unit() * side, dice.unit() * side);
                let r = dice.range(0.004, 0.035) * side;
                let t = if dice.chance(0.6) { tone(0.99, 0.005, 90.0) } else { tone(0.35, 0.03, 250.0) };
                mark(oval(x, y, r * 1.3, r), t.faded(dice.range(0.04, 0.12)));
            }
        }
        Medium::Gouache | Medium::Pixel | Medium::Blueprint | Medium::Neon | Medium::Photo => {}
    }
    Some(tile)
}
