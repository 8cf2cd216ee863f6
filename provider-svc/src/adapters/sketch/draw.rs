//! Pictures of the offline provider: a prompt and a seed in, a PNG out.
//!
//! What lives here: choosing a scene, a light and a medium from the words of a prompt, painting it with plain vector
//! shapes, and lettering the prompt below it. The same prompt, seed and size give the same bytes on one machine.
//! What does not: clamping of sizes, pricing, waiting and anything async (that is the adapter beside this file),
//! sound (`speak`) and text (`write`).
//!
//! The order to read: `draw` → `Brief` (what the prompt asks for) → `Canvas` (how a medium puts a shape on
//! paper) → the `scene_…` functions → `Caption`.

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
    #[error("cannot encode the picture")]
    Encode(#[source] Box<dyn std::error::Error + Send + Sync>),
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

    let left = 1.0
        - if fraction.is_finite() {
            fraction.clamp(0.0, 1.0)
        } else {
            0.0
        };
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
    if fits(width) && fits(height) {
        Ok(())
    } else {
        Err(DrawError::Size { width, height })
    }
}

fn sheet(width: u32, height: u32) -> Result<Pixmap, DrawError> {
    check(width, height)?;
    Pixmap::new(width, height).ok_or(DrawError::Size { width, height })
}

fn encode(map: &Pixmap) -> Result<Vec<u8>, DrawError> {
    map.encode_png()
        .map_err(|error| DrawError::Encode(Box::new(error)))
}

/// Paints the scene of a brief on the upper `view` rows of a sheet.
fn paint(brief: &Brief, map: &mut Pixmap, view: u32) {
    let (width, view) = (map.width(), view.max(1));
    let block = if brief.medium == Medium::Pixel {
        (width.min(view) / 80).max(1)
    } else {
        1
    };
    let Some(inner) = Pixmap::new(width.div_ceil(block), view.div_ceil(block)) else {
        return;
    };
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

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate"
)]
fn whole(value: f32) -> u32 {
    value.round() as u32
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate"
)]
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
        Self {
            l: (self.l + by).clamp(0.03, 0.99),
            ..self
        }
    }

    fn vivid(self, factor: f32) -> Self {
        Self {
            c: self.c * factor,
            ..self
        }
    }

    fn turned(self, degrees: f32) -> Self {
        Self {
            h: self.h + degrees,
            ..self
        }
    }

    fn faded(self, a: f32) -> Self {
        Self { a, ..self }
    }

    /// Mixes on the straight line between two colours, so complementary hues pass through grey and not the rainbow.
    fn toward(self, other: Self, t: f32) -> Self {
        let (ax, ay) = (
            self.c * self.h.to_radians().cos(),
            self.c * self.h.to_radians().sin(),
        );
        let (bx, by) = (
            other.c * other.h.to_radians().cos(),
            other.c * other.h.to_radians().sin(),
        );
        let (x, y) = (lerp(ax, bx, t), lerp(ay, by, t));
        Self {
            l: lerp(self.l, other.l, t),
            c: x.hypot(y),
            h: y.atan2(x).to_degrees(),
            a: lerp(self.a, other.a, t),
        }
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
        let coded = if v <= 0.003_130_8 {
            12.92 * v
        } else {
            1.055 * v.powf(1.0 / 2.4) - 0.055
        };
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

const SUBJECTS: &[(Subject, &str)] = &[
    (
        Subject::Character(Being::Cat),
        "cat kitten fox tiger lion lynx wolf",
    ),
    (
        Subject::Character(Being::Bear),
        "bear dog puppy mouse rabbit panda hamster monkey",
    ),
    (
        Subject::Character(Being::Robot),
        "robot android cyborg machine droid automaton",
    ),
    (
        Subject::Character(Being::Owl),
        "owl penguin parrot chick raven crow",
    ),
    (
        Subject::Character(Being::Person),
        "portrait person man woman girl boy face king queen wizard knight child character sailor \
         keeper captain chef dancer musician painter",
    ),
    (
        Subject::Planet,
        "planet space galaxy rocket astronaut cosmos cosmic saturn mars nebula orbit",
    ),
    (
        Subject::Waves,
        "sea wave water ocean lake river beach harbour harbor coast ship boat sail lighthouse \
         island storm fish whale shore bay fjord",
    ),
    (
        Subject::Skyline,
        "city tower skyline street town building skyscraper cathedral castle urban downtown \
         architecture bridge train station factory",
    ),
    (
        Subject::Forest,
        "forest tree wood woodland jungle pine oak birch mushroom deer grove",
    ),
    (
        Subject::Garden,
        "flower garden rose tulip petal bloom blossom daisy meadow bouquet bee butterfly spring \
         lily poppy plant",
    ),
    (
        Subject::Dunes,
        "desert dune sand canyon cactus camel savanna oasis sahara",
    ),
    (
        Subject::Table,
        "coffee tea cup mug bowl fruit apple bread cake kitchen vase lemon orange breakfast table \
         bottle soup pear teapot still",
    ),
    (
        Subject::Ridges,
        "mountain moor hill valley ridge peak alps cliff landscape fell glen volcano field \
         heather farm village cottage balloon",
    ),
    (
        Subject::Night,
        "night star moon midnight constellation aurora starry",
    ),
    (
        Subject::Bauhaus,
        "poster abstract geometric bauhaus logo pattern shape cubist minimal icon",
    ),
];

const MEDIA: &[(Medium, &str)] = &[
    (Medium::Watercolour, "watercolour watercolor aquarelle wash"),
    (Medium::Pixel, "pixel 8bit 16bit retro sprite"),
    (
        Medium::Blueprint,
        "blueprint technical schematic diagram cyanotype",
    ),
    (Medium::Neon, "neon synthwave cyberpunk vaporwave glowing"),
    (Medium::Woodcut, "woodcut linocut engraving etching woodblock"),
    (
        Medium::Ink,
        "ink pen pencil drawing sketch charcoal line comic manga",
    ),
    (
        Medium::Oil,
        "oil impasto impressionist impressionism acrylic canvas",
    ),
    (
        Medium::Photo,
        "photo photograph photography photorealistic cinematic 35mm film",
    ),
];

const LIGHTS: &[(Light, &str)] = &[
    (
        Light::Night,
        "night moon moonlit star starry midnight dark aurora moonlight starlight",
    ),
    (
        Light::Dusk,
        "dusk sunset dawn sunrise evening golden twilight autumn warm",
    ),
    (
        Light::Mist,
        "mist misty fog foggy haze hazy rain rainy storm stormy thunder winter snow",
    ),
    (Light::Day, "day noon sunny morning summer bright spring"),
];

const PROPS: &[(Prop, &str)] = &[
    (Prop::Lighthouse, "lighthouse keeper beacon"),
    (Prop::Boat, "boat ship sail sailing yacht sailor harbour harbor"),
    (Prop::House, "house cottage cabin hut farm barn village home"),
    (Prop::Birds, "bird gull seagull swallow crane geese"),
    (Prop::Balloon, "balloon airship zeppelin"),
    (Prop::Rain, "rain rainy storm stormy thunder drizzle"),
    (Prop::Snow, "snow snowy winter blizzard snowfall"),
];

const TREES: &[(u16, &str)] = &[
    (0, "pine fir spruce conifer"),
    (1, "oak maple beech apple"),
    (2, "birch aspen"),
];

/// Words for colours and their hue in degrees.
const HUES: &[(f32, &str)] = &[
    (25.0, "red crimson scarlet ruby"),
    (55.0, "orange amber copper rust terracotta"),
    (92.0, "yellow gold honey"),
    (145.0, "green emerald moss olive"),
    (195.0, "teal turquoise cyan aqua"),
    (255.0, "blue indigo navy azure cobalt"),
    (305.0, "purple violet lavender heather lilac"),
    (355.0, "pink magenta rose coral"),
];

/// What the words of a prompt ask for, and the numbers that make one prompt look unlike another.
#[derive(Debug, Clone)]
struct Brief {
    subject: Subject,
    medium: Medium,
    light: Light,
    props: Vec<Prop>,
    /// Conifers, broad leaves or birches, if named.
    trees: Option<u16>,
    /// Hue of the large areas, in degrees.
    hue: f32,
    /// Hue of what lies far away.
    far_hue: f32,
    /// Hue of the small bright things.
    accent_hue: f32,
    /// Starts the dice that place things; from prompt and seed.
    dice_seed: u64,
}

impl Brief {
    fn read(prompt: &str, seed: u64) -> Self {
        let digest = blake3::hash(prompt.trim().as_bytes());
        let mut kind = Dice::new(first_u64(digest.as_bytes()));
        let lower = prompt.to_lowercase();
        let words: Vec<&str> = lower
            .split(|c: char| !c.is_alphanumeric())
            .filter(|w| !w.is_empty())
            .collect();

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
        let subject = subject_of(&words).unwrap_or(fallback);
        let roll = kind.unit();
        let by_hash = match roll {
            r if r < 0.45 => Light::Day,
            r if r < 0.75 => Light::Dusk,
            r if r < 0.90 => Light::Mist,
            _ if matches!(subject, Subject::Dunes | Subject::Garden | Subject::Forest) => Light::Day,
            _ => Light::Night,
        };
        let light = if subject == Subject::Night {
            Light::Night
        } else {
            pick(&words, LIGHTS).unwrap_or(by_hash)
        };
        let props = PROPS
            .iter()
            .filter(|(_, names)| named(&words, names))
            .map(|(prop, _)| *prop)
            .collect();

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
        let wished = pick(&words, HUES).map(|hue| hue + spread * 10.0);
        // A named colour belongs to the things of a picture, and to its air where the land is the thing.
        let of_things = matches!(
            subject,
            Subject::Garden | Subject::Character(_) | Subject::Bauhaus | Subject::Planet | Subject::Table
        );
        let hue = wished.filter(|_| !of_things).unwrap_or(habit);
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
        // Where the composition can vary less, the colours vary more.
        let reach = if of_things { 32.0 } else { 12.0 };
        let drift = Dice::new(dice_seed).range(-reach, reach);
        Self {
            subject,
            medium,
            light,
            props,
            trees: pick(&words, TREES),
            hue: hue + drift,
            far_hue: hue + far_turn + drift,
            accent_hue: wished.filter(|_| of_things).unwrap_or(hue + accent_turn - drift),
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
            Light::Day => [
                tone(0.70, 0.105, far),
                tone(0.82, 0.075, far),
                tone(0.94, 0.045, far + 25.0),
            ],
            Light::Dusk => {
                let violet = 300.0 + 42.0 * far.to_radians().sin();
                let rose = tone(0.69, 0.135, 8.0 + 26.0 * h.to_radians().cos());
                [tone(0.44, 0.115, violet), rose, tone(0.88, 0.11, 74.0)]
            }
            Light::Night => [tone(0.18, 0.065, h), tone(0.28, 0.09, h), tone(0.47, 0.11, far)],
            Light::Mist => [tone(0.74, 0.03, far), tone(0.84, 0.025, far), tone(0.93, 0.02, h)],
        }
    }

    /// Ground colours: 0 is far away and hazy, 1 near and deep.
    fn layer(&self, t: f32) -> Tone {
        let horizon = self.sky()[2];
        let (far, near) = match self.light {
            Light::Day => (
                horizon.toward(tone(0.72, 0.09, self.far_hue), 0.75),
                tone(0.30, 0.085, self.hue),
            ),
            Light::Dusk => (
                horizon.toward(tone(0.60, 0.11, self.far_hue), 0.7),
                tone(0.22, 0.075, self.hue),
            ),
            Light::Night => (tone(0.44, 0.10, self.far_hue), tone(0.15, 0.05, self.hue)),
            Light::Mist => (tone(0.86, 0.025, self.far_hue), tone(0.38, 0.045, self.hue)),
        };
        far.toward(near, t)
    }

    fn accent(&self, turn: f32) -> Tone {
        tone(
            if self.is_dark() { 0.74 } else { 0.68 },
            0.165,
            self.accent_hue + turn,
        )
    }

    fn lamp(&self) -> Tone {
        tone(0.90, 0.13, 88.0)
    }
}

fn first_u64(digest: &[u8; 32]) -> u64 {
    digest
        .iter()
        .take(8)
        .fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
}

/// Whether a word of the prompt is one of the names, also in the plural.
fn named(words: &[&str], names: &str) -> bool {
    position(words, names).is_some()
}

fn position(words: &[&str], names: &str) -> Option<usize> {
    words.iter().position(|word| {
        let stem = word.strip_suffix('s').unwrap_or(word);
        let long_stem = word.strip_suffix("es").unwrap_or(word);
        names
            .split(' ')
            .any(|name| name == *word || name == stem || name == long_stem)
    })
}

/// A being is the subject wherever it stands, shapes and a plain night are when nothing else is named, and of scenes
/// the first named.
fn subject_of(words: &[&str]) -> Option<Subject> {
    let rank = |subject: Subject, at: usize| match subject {
        Subject::Character(Being::Person) => (1, at),
        Subject::Character(_) => (0, at),
        Subject::Bauhaus => (3, at),
        // "sea at night" is a sea; a starry sky over a lake is a sky.
        Subject::Night if !named(words, "star starry constellation aurora") => (3, at),
        Subject::Waves
        | Subject::Ridges
        | Subject::Night
        | Subject::Skyline
        | Subject::Forest
        | Subject::Garden
        | Subject::Planet
        | Subject::Dunes
        | Subject::Table => (2, at),
    };
    let found = SUBJECTS
        .iter()
        .filter_map(|(subject, names)| Some((*subject, position(words, names)?)));
    found
        .min_by_key(|(subject, at)| rank(*subject, *at))
        .map(|(subject, _)| subject)
}

fn pick<T: Copy>(words: &[&str], table: &[(T, &str)]) -> Option<T> {
    table
        .iter()
        .find(|(_, names)| named(words, names))
        .map(|(value, _)| *value)
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

    /// What a medium makes of a colour.
    fn pigment(&self, t: Tone) -> Tone {
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
        Paint {
            shader,
            anti_alias: self.medium != Medium::Pixel,
            ..Paint::default()
        }
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
            let (from, to) = (
                Point::from_xy(0.0, bounds.top()),
                Point::from_xy(0.0, bounds.bottom().max(bounds.top() + 1.0)),
            );
            LinearGradient::new(from, to, stops.collect(), SpreadMode::Pad, Transform::identity())
                .unwrap_or(Shader::SolidColor(low.colour()))
        };
        let paint = self.ink_paint(shader);
        self.map
            .fill_path(path, &paint, FillRule::Winding, Transform::identity(), None);
    }

    /// Lays the texture of the medium over an area.
    fn grain(&mut self, path: &Path, opacity: f32, transform: Transform) {
        if let Some(texture) = &self.texture {
            let shader = Pattern::new(
                texture.as_ref(),
                SpreadMode::Repeat,
                FilterQuality::Bilinear,
                opacity,
                transform,
            );
            let paint = Paint {
                shader,
                ..Paint::default()
            };
            self.map
                .fill_path(path, &paint, FillRule::Winding, Transform::identity(), None);
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
        self.map
            .stroke_path(path, &paint, &stroke, Transform::identity(), None);
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
                    let moved =
                        Transform::from_translate(self.dice.range(-slip, slip), self.dice.range(0.0, slip));
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
                    self.grain(
                        &path,
                        (dark * 1.1).min(0.9),
                        Transform::from_rotate(if dark > 0.6 { 20.0 } else { -8.0 }),
                    );
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
                        let turn = self.dice.range(-6.0, 6.0);
                        self.grain(&path, 0.85, Transform::from_rotate(turn));
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
            Medium::Ink if t.l < 0.6 => {
                self.pen(&path, self.outline(t).faded(t.a), width.min(self.unit * 0.01))
            }
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
        if matches!(
            self.medium,
            Medium::Ink | Medium::Woodcut | Medium::Blueprint | Medium::Pixel
        ) {
            return;
        }
        let t = if self.medium == Medium::Neon {
            tone(0.7, 0.2, t.h)
        } else {
            t
        };
        let centre = Point::from_xy(x, y);
        let stops = vec![
            GradientStop::new(0.0, t.faded(strength).colour()),
            GradientStop::new(0.35, t.faded(strength * 0.4).colour()),
            GradientStop::new(1.0, t.faded(0.0).colour()),
        ];
        let shader = RadialGradient::new(
            centre,
            centre,
            r.max(0.5),
            stops,
            SpreadMode::Pad,
            Transform::identity(),
        );
        if let (Some(shader), Some(path)) = (shader, circle(x, y, r)) {
            let paint = Paint {
                shader,
                ..Paint::default()
            };
            self.map
                .fill_path(&path, &paint, FillRule::Winding, Transform::identity(), None);
        }
    }

    /// Fills the sheet with a blend of three tones.
    fn backdrop(&mut self, tones: [Tone; 3]) {
        let Some(path) = rect(0.0, 0.0, self.w, self.h) else {
            return;
        };
        let [a, b, c] = tones.map(|t| self.pigment(t));
        match self.medium {
            Medium::Woodcut => {
                let sky = if tones[0].l < 0.35 {
                    tone(0.23, 0.02, self.hue)
                } else {
                    tone(0.93, 0.03, 85.0)
                };
                self.flood(&path, sky, sky);
            }
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
                self.map
                    .fill_path(&path, &paint, FillRule::Winding, Transform::identity(), None);
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
            let t = if self.dice.chance(0.4) {
                tone(0.98, 0.01, 85.0)
            } else {
                a.toward(b, self.dice.unit())
            };
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
            Medium::Watercolour => self.margin(tone(0.975, 0.01, 85.0), 0.030),
            Medium::Woodcut => self.margin(tone(0.93, 0.03, 85.0), 0.024),
            Medium::Ink | Medium::Gouache | Medium::Pixel => {}
        }
    }

    /// A border of bare paper with an uneven edge.
    fn margin(&mut self, paper: Tone, share: f32) {
        let inset = self.unit * share;
        let mut edge: Vec<(f32, f32)> = Vec::new();
        let corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)];
        for pair in corners.windows(2) {
            if let [a, b] = pair {
                edge.extend(steps(28).map(|(_, t)| {
                    let mut wobble = || inset * self.dice.range(-0.16, 0.16);
                    let x = lerp(inset, self.w - inset, lerp(a.0, b.0, t)) + wobble();
                    let y = lerp(inset, self.h - inset, lerp(a.1, b.1, t)) + wobble();
                    (x, y)
                }));
            }
        }
        let (Some(hole), Some(all)) = (polygon(&edge), rect(-1.0, -1.0, self.w + 2.0, self.h + 2.0)) else {
            return;
        };
        let mut path = PathBuilder::new();
        path.push_path(&all);
        path.push_path(&hole);
        if let Some(path) = path.finish() {
            let paint = self.ink_paint(Shader::SolidColor(paper.colour()));
            self.map
                .fill_path(&path, &paint, FillRule::EvenOdd, Transform::identity(), None);
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
            let paint = Paint {
                shader,
                ..Paint::default()
            };
            self.map.fill_rect(all, &paint, Transform::identity(), None);
        }
    }

    /// Film grain: a tile of noise, so that a large picture costs no more dice than a small one.
    fn speckle(&mut self, strength: f32) {
        let Some(mut tile) = Pixmap::new(64, 64) else {
            return;
        };
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
        let shader = Pattern::new(
            tile.as_ref(),
            SpreadMode::Repeat,
            FilterQuality::Nearest,
            1.0,
            place,
        );
        if let Some(all) = Rect::from_xywh(0.0, 0.0, self.w, self.h) {
            self.map.fill_rect(
                all,
                &Paint {
                    shader,
                    ..Paint::default()
                },
                Transform::identity(),
                None,
            );
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
                let path = if axis {
                    rect(at, 0.0, 0.6, self.h)
                } else {
                    rect(0.0, at, self.w, 0.6)
                };
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

// ------------------------------------------------------------------------------------------------ scenes

impl Canvas {
    fn scene(&mut self, brief: &Brief) {
        match brief.subject {
            Subject::Waves => self.scene_waves(brief),
            Subject::Ridges => self.scene_ridges(brief),
            Subject::Night => self.scene_night(brief),
            Subject::Skyline => self.scene_skyline(brief),
            Subject::Forest => self.scene_forest(brief),
            Subject::Garden => self.scene_garden(brief),
            Subject::Character(being) => self.scene_character(brief, being),
            Subject::Bauhaus => self.scene_bauhaus(brief),
            Subject::Planet => self.scene_planet(brief),
            Subject::Dunes => self.scene_dunes(brief),
            Subject::Table => self.scene_table(brief),
        }
        if brief.has(Prop::Rain) {
            self.rain();
        }
        if brief.has(Prop::Snow) {
            self.snow();
        }
    }

    /// Sky with sun, or moon and stars, whose light sits above `horizon`.
    fn sky(&mut self, brief: &Brief, horizon: f32) {
        self.backdrop(brief.sky());
        let x = self.w * (0.5 + self.dice.sign() * self.dice.range(0.10, 0.32));
        let r = self.unit * self.dice.range(0.07, 0.12);
        match brief.light {
            Light::Night => {
                self.stars(horizon, 110);
                let y = horizon * self.dice.range(0.25, 0.5);
                self.moon(x, y, r * 0.85);
            }
            Light::Dusk => {
                let y = horizon * self.dice.range(0.62, 0.9);
                self.glow(x, y, r * 5.5, tone(0.88, 0.13, 65.0), 0.75);
                self.area(circle(x, y, r * 1.25), tone(0.86, 0.17, 52.0));
                self.clouds(brief, horizon);
            }
            Light::Day => {
                let y = horizon * self.dice.range(0.25, 0.55);
                self.glow(x, y, r * 4.5, tone(0.98, 0.05, 95.0), 0.8);
                self.area(circle(x, y, r), tone(0.96, 0.10, 95.0));
                self.clouds(brief, horizon);
            }
            Light::Mist => {
                let y = horizon * self.dice.range(0.3, 0.6);
                self.glow(x, y, r * 5.0, tone(0.98, 0.02, 90.0), 0.8);
                self.area(circle(x, y, r), tone(0.97, 0.02, 90.0).faded(0.85));
            }
        }
    }

    fn stars(&mut self, horizon: f32, count: u16) {
        for _ in 0..count {
            let (x, y) = (self.dice.unit() * self.w, self.dice.unit() * horizon);
            let r = self.unit * self.dice.range(0.0012, 0.0042);
            let t = tone(0.95, 0.04, self.dice.range(40.0, 280.0)).faded(self.dice.range(0.4, 1.0));
            if self.dice.chance(0.06) {
                self.glow(x, y, r * 7.0, t, 0.5);
                for (dx, dy) in [(r * 4.0, 0.0), (0.0, r * 4.0)] {
                    self.line(polyline(&[(x - dx, y - dy), (x + dx, y + dy)]), t, 0.0015);
                }
            }
            let t = if self.medium == Medium::Ink {
                tone(0.2, 0.0, 0.0)
            } else {
                t
            };
            if let Some(path) = circle(x, y, r) {
                let t = match self.medium {
                    Medium::Neon | Medium::Blueprint => tone(0.95, 0.03, 230.0),
                    Medium::Woodcut => tone(0.93, 0.03, 85.0),
                    Medium::Gouache
                    | Medium::Watercolour
                    | Medium::Ink
                    | Medium::Oil
                    | Medium::Pixel
                    | Medium::Photo => t,
                };
                self.flood(&path, t, t);
            }
        }
    }

    fn moon(&mut self, x: f32, y: f32, r: f32) {
        self.glow(x, y, r * 5.0, tone(0.93, 0.05, 95.0), 0.5);
        let face = tone(0.95, 0.045, 95.0);
        if self.dice.chance(0.55) {
            // A crescent: the disc, cut by an arc through its poles.
            let mut path = PathBuilder::new();
            let lean = self.dice.range(0.25, 0.6);
            let point = |angle: f32, rx: f32| {
                let (px, py) = (rx * angle.cos(), r * angle.sin());
                (
                    x + px * lean.cos() - py * lean.sin(),
                    y + px * lean.sin() + py * lean.cos(),
                )
            };
            let outer: Vec<_> = steps(25)
                .map(|(_, t)| point(lerp(PI / 2.0, PI * 1.5, t), r))
                .collect();
            let inner: Vec<_> = steps(25)
                .map(|(_, t)| point(lerp(PI * 1.5, PI / 2.0, t), r * 0.45))
                .collect();
            for (i, at) in outer.iter().chain(&inner).enumerate() {
                if i == 0 {
                    path.move_to(at.0, at.1)
                } else {
                    path.line_to(at.0, at.1)
                }
            }
            path.close();
            self.area(path.finish(), face);
        } else {
            self.area(circle(x, y, r), face);
            for (dx, dy, size) in [(-0.3, -0.2, 0.22), (0.25, 0.3, 0.28), (0.32, -0.35, 0.14)] {
                self.area(circle(x + r * dx, y + r * dy, r * size), face.lit(-0.09));
            }
        }
    }

    fn clouds(&mut self, brief: &Brief, horizon: f32) {
        let count = self.dice.count(1, 4);
        for _ in 0..count {
            let (x, y) = (self.dice.unit() * self.w, horizon * self.dice.range(0.12, 0.6));
            let width = self.unit * self.dice.range(0.14, 0.36);
            let t = brief.sky()[2].lit(0.05).faded(0.75);
            if self.dice.chance(0.5) {
                let thick = width * 0.11;
                for (dx, dy, w) in [(0.0, 0.0, 1.0), (0.22, -0.9, 0.55), (-0.2, 1.0, 0.5)] {
                    let left = x + width * dx - width * w / 2.0;
                    self.area(rounded(left, y + thick * dy, width * w, thick, thick / 2.0), t);
                }
            } else {
                let mut path = PathBuilder::new();
                let base = width * 0.16;
                for (dx, r) in [(-0.34, 0.12), (-0.12, 0.20), (0.14, 0.16), (0.34, 0.10)] {
                    path.push_circle(x + width * dx, y - width * r * 0.5, width * r);
                }
                if let Some(bar) = rounded(x - width * 0.46, y - base * 0.45, width * 0.92, base, base * 0.5)
                {
                    path.push_path(&bar);
                }
                self.cloud(path.finish(), t);
            }
        }
    }

    /// Overlapping circles: outlines inside of a cloud would be wrong, so only the fill is laid.
    fn cloud(&mut self, path: Option<Path>, t: Tone) {
        let Some(path) = path else { return };
        let t = self.pigment(t);
        if matches!(self.medium, Medium::Ink | Medium::Woodcut | Medium::Blueprint) {
            self.pen(&path, self.outline(t), self.unit * 0.01);
        }
        self.flood(&path, t, t);
    }

    fn birds(&mut self, horizon: f32, count: u16) {
        let (cx, cy) = (
            self.w * self.dice.range(0.25, 0.75),
            horizon * self.dice.range(0.25, 0.6),
        );
        let ink = if self.medium == Medium::Neon {
            tone(0.8, 0.2, self.hue)
        } else {
            tone(0.25, 0.03, self.hue)
        };
        for _ in 0..count {
            let (x, y) = (
                cx + self.unit * self.dice.range(-0.18, 0.18),
                cy + self.unit * self.dice.range(-0.09, 0.09),
            );
            let s = self.unit * self.dice.range(0.012, 0.028);
            let mut path = PathBuilder::new();
            path.move_to(x - s, y - s * 0.35);
            path.quad_to(x - s * 0.4, y - s * 0.7, x, y);
            path.quad_to(x + s * 0.4, y - s * 0.7, x + s, y - s * 0.35);
            self.line(path.finish(), ink, 0.0035);
        }
    }

    fn rain(&mut self) {
        for _ in 0..170 {
            let (x, y) = (self.dice.unit() * self.w * 1.1, self.dice.unit() * self.h);
            let length = self.unit * self.dice.range(0.03, 0.08);
            let drop = tone(0.92, 0.02, 240.0).faded(self.dice.range(0.15, 0.5));
            self.line(polyline(&[(x, y), (x - length * 0.25, y + length)]), drop, 0.0025);
        }
    }

    fn snow(&mut self) {
        for _ in 0..170 {
            let (x, y) = (self.dice.unit() * self.w, self.dice.unit() * self.h);
            let flake = tone(0.98, 0.01, 240.0).faded(self.dice.range(0.5, 0.95));
            if let Some(path) = circle(x, y, self.unit * self.dice.range(0.002, 0.0075)) {
                self.flood(&path, flake, flake);
            }
        }
    }

    /// A jagged or rolling line across the sheet; `rough` adds detail.
    fn skyline(&mut self, base: f32, height: f32, rough: f32) -> Vec<(f32, f32)> {
        let waves: Vec<(f32, f32, f32)> = (0u8..6)
            .map(|octave| {
                let k = 2f32.powi(i32::from(octave));
                let strength = if octave < 2 { 1.0 / k } else { rough / k };
                (self.dice.range(0.7, 1.3) * k, self.dice.range(0.0, TAU), strength)
            })
            .collect();
        // A wide sheet shows more of the land, not a stretched one.
        let span = self.w / self.unit.max(1.0);
        steps(129)
            .map(|(_, t)| {
                let sum: f32 = waves
                    .iter()
                    .map(|(k, phase, strength)| {
                        let wave = (t * span * k * 2.6 + phase).sin();
                        // Folding a sine gives peaks; leaving it gives hills.
                        lerp(wave, 1.0 - 2.0 * wave.abs(), rough.min(1.0)) * strength
                    })
                    .sum();
                (lerp(-0.02, 1.02, t) * self.w, base - height * sum * 0.5)
            })
            .collect()
    }

    fn scene_waves(&mut self, brief: &Brief) {
        let horizon = self.h * self.dice.range(0.36, 0.50);
        self.sky(brief, horizon);
        if self.dice.chance(0.6) && !brief.has(Prop::Lighthouse) {
            let far = self.skyline(horizon, self.unit * 0.07, 0.5);
            self.shaded(
                ground(&far, horizon + self.unit * 0.08, false),
                brief.layer(0.05),
                brief.layer(0.0),
            );
        }
        let floor = self.h + self.unit * 0.1;
        let sea = |t: f32| brief.layer(0.18 + t * 0.72).vivid(1.35);
        self.shaded(
            rect(-1.0, horizon, self.w + 2.0, floor - horizon),
            sea(0.0).lit(0.08),
            sea(0.2),
        );
        let layers = self.dice.count(6, 9);
        let named_boat = brief.has(Prop::Boat);
        let sails = named_boat || (self.dice.chance(0.5) && !brief.has(Prop::Lighthouse));
        let boat_x = self.w * self.dice.range(0.25, 0.75);
        let cliff_side = self.dice.sign();
        for (i, t) in steps(layers) {
            if brief.has(Prop::Lighthouse) && i == 2 {
                self.headland(brief, horizon, cliff_side);
            }
            if sails && i == 2 {
                let x = if brief.has(Prop::Lighthouse) {
                    self.w * (0.5 - cliff_side * 0.2)
                } else {
                    boat_x
                };
                let size = self.unit * if named_boat { 0.17 } else { 0.10 };
                self.boat(brief, x, lerp(horizon, self.h, 0.15), size);
            }
            let y = lerp(horizon, self.h, 0.05 + 0.95 * t.powf(1.35));
            let size = self.unit * lerp(0.012, 0.085, t);
            let length = self.unit * lerp(0.16, 0.62, t);
            let (phase, lean) = (self.dice.range(0.0, TAU), self.dice.range(0.3, 0.6));
            let dir = if self.dice.chance(0.8) { 1.0 } else { -1.0 };
            let count = 140u16;
            let points: Vec<(f32, f32)> = steps(count)
                .map(|(_, s)| {
                    let x = lerp(-0.1, 1.1, s) * self.w;
                    let a = x / length * TAU + phase;
                    let swell = (a * 0.37 + phase).sin() * 0.5;
                    // Crests are pointed and lean forward, troughs are wide.
                    let crest = 1.0 - (a / 2.0).sin().abs().powf(0.8) * 2.0;
                    (x + dir * lean * size * crest, y - size * (crest * 0.55 + swell))
                })
                .collect();
            let t_layer = sea(t);
            self.shaded(
                ground(&points, floor, false),
                t_layer.lit(0.07),
                t_layer.lit(-0.05),
            );
            self.line(
                polyline(&points),
                brief.sky()[2].lit(0.06).faded(0.35 + 0.4 * t),
                lerp(0.0018, 0.006, t),
            );
            if t > 0.3 {
                for (_, s) in steps(26) {
                    let at = points
                        .get(usize::from(whole_u16(s * f32::from(count - 1))))
                        .copied();
                    let (x, y) = at.unwrap_or((0.0, 0.0));
                    let r = self.unit * self.dice.range(0.001, 0.0055) * t;
                    let (dx, dy) = (
                        self.dice.range(-1.0, 1.0) * size,
                        self.dice.range(0.1, 0.5) * size,
                    );
                    let foam = brief.sky()[2].lit(0.05).faded(0.6);
                    if self.medium != Medium::Ink
                        && let Some(path) = circle(x + dx, y + dy, r)
                    {
                        let foam = self.pigment(foam);
                        self.flood(&path, foam, foam);
                    }
                }
            }
        }
        if brief.has(Prop::Balloon) {
            self.balloon(brief, self.w * 0.3, horizon * 0.45, self.unit * 0.10);
        }
        if brief.light != Light::Night && (brief.has(Prop::Birds) || self.dice.chance(0.6)) {
            let count = self.dice.count(3, 7);
            self.birds(horizon, count);
        }
    }

    fn headland(&mut self, brief: &Brief, horizon: f32, side: f32) {
        let edge = if side > 0.0 {
            self.w + self.unit * 0.05
        } else {
            -self.unit * 0.05
        };
        let unit = self.unit;
        let reach = |share: f32| edge - side * unit * share;
        let top = horizon - self.unit * 0.07;
        let rock = brief.layer(0.75);
        let shape = [
            (edge, horizon + self.unit * 0.16),
            (edge, top - self.unit * 0.02),
            (reach(0.22), top),
            (reach(0.40), top + self.unit * 0.005),
            (reach(0.47), top + self.unit * 0.05),
            (reach(0.54), top + self.unit * 0.08),
            (reach(0.58), horizon + self.unit * 0.16),
        ];
        self.shaded(polygon(&shape), rock.lit(0.06), rock.lit(-0.08));
        let x = reach(0.32);
        let tall = (self.unit * 0.36).min(top * 0.86);
        let (base, cap) = (tall * 0.13, tall * 0.085);
        let lamp_y = top - tall;
        let beam = brief.lamp().faded(if brief.is_dark() { 0.34 } else { 0.2 });
        for (dir, spread) in [(-side, 0.10), (side, 0.07)] {
            let far = x + dir * self.w;
            let beam_path = polygon(&[
                (x, lamp_y),
                (far, lamp_y - self.w * spread),
                (far, lamp_y + self.w * spread * 0.4),
            ]);
            if let Some(path) = beam_path
                && brief.light != Light::Day
                && !matches!(self.medium, Medium::Woodcut)
            {
                self.flood(&path, beam, beam);
            }
        }
        let white = tone(0.95, 0.015, 80.0);
        let at = |t: f32| (lerp(base, cap, t), lerp(top, lamp_y + tall * 0.07, t));
        for (i, t) in steps(5) {
            if i == 4 {
                continue;
            }
            let ((w0, y0), (w1, y1)) = (at(t), at(t + 0.25));
            let stripe = if i % 2 == 0 { white } else { tone(0.58, 0.19, 27.0) };
            self.area(
                polygon(&[(x - w0, y0 + 0.5), (x + w0, y0 + 0.5), (x + w1, y1), (x - w1, y1)]),
                stripe,
            );
        }
        let dark = tone(0.25, 0.03, self.hue);
        self.area(
            rect(x - cap * 1.45, lamp_y + tall * 0.055, cap * 2.9, tall * 0.025),
            dark,
        );
        self.area(
            rect(x - cap * 0.8, lamp_y - tall * 0.025, cap * 1.6, tall * 0.08),
            brief.lamp(),
        );
        self.area(
            polygon(&[
                (x - cap, lamp_y - tall * 0.025),
                (x + cap, lamp_y - tall * 0.025),
                (x, lamp_y - tall * 0.10),
            ]),
            tone(0.58, 0.19, 27.0),
        );
        self.glow(x, lamp_y + tall * 0.02, tall * 0.35, brief.lamp(), 0.8);
        self.house(brief, x + side * tall * 0.34, top + tall * 0.02, tall * 0.26);
    }

    fn boat(&mut self, brief: &Brief, x: f32, y: f32, s: f32) {
        let dir = self.dice.sign();
        let mut hull = PathBuilder::new();
        hull.move_to(x - s * 0.62, y - s * 0.16);
        hull.line_to(x + s * 0.66, y - s * 0.18);
        hull.quad_to(x + s * 0.42, y + s * 0.14, x + s * 0.3, y + s * 0.14);
        hull.line_to(x - s * 0.36, y + s * 0.14);
        hull.quad_to(x - s * 0.56, y + s * 0.10, x - s * 0.62, y - s * 0.16);
        hull.close();
        self.line(
            polyline(&[(x, y - s * 0.1), (x, y - s * 1.35)]),
            tone(0.3, 0.04, 50.0),
            s / self.unit * 0.045,
        );
        let sail = tone(0.96, 0.02, 85.0);
        self.area(
            polygon(&[
                (x + dir * s * 0.05, y - s * 1.3),
                (x + dir * s * 0.05, y - s * 0.26),
                (x + dir * s * 0.58, y - s * 0.26),
            ]),
            sail,
        );
        self.area(
            polygon(&[
                (x - dir * s * 0.05, y - s * 1.1),
                (x - dir * s * 0.05, y - s * 0.26),
                (x - dir * s * 0.42, y - s * 0.26),
            ]),
            brief.accent(0.0),
        );
        self.area(hull.finish(), tone(0.38, 0.09, brief.accent_hue + 20.0));
    }

    fn house(&mut self, brief: &Brief, x: f32, y: f32, s: f32) {
        let wall = if brief.is_dark() {
            tone(0.42, 0.03, 70.0)
        } else {
            tone(0.94, 0.02, 80.0)
        };
        self.area(
            rect(x + s * 0.22, y - s * 0.98, s * 0.12, s * 0.3),
            tone(0.45, 0.05, 40.0),
        );
        self.area(rect(x - s * 0.5, y - s * 0.55, s, s * 0.6), wall);
        self.area(
            polygon(&[
                (x - s * 0.6, y - s * 0.5),
                (x + s * 0.6, y - s * 0.5),
                (x + s * 0.42, y - s * 0.92),
                (x - s * 0.42, y - s * 0.92),
            ]),
            tone(0.50, 0.13, 35.0),
        );
        self.area(
            rect(x - s * 0.09, y - s * 0.32, s * 0.18, s * 0.37),
            tone(0.35, 0.06, 250.0),
        );
        for dx in [-0.32, 0.32] {
            self.area(
                rect(x + s * dx - s * 0.085, y - s * 0.38, s * 0.17, s * 0.17),
                brief.lamp(),
            );
        }
        if brief.light != Light::Day {
            self.glow(x, y - s * 0.3, s * 1.3, brief.lamp(), 0.4);
        }
    }

    fn balloon(&mut self, brief: &Brief, x: f32, y: f32, r: f32) {
        let skin = brief.accent(0.0);
        for dx in [-0.5, 0.5] {
            self.line(
                polyline(&[(x + r * dx, y + r * 0.85), (x + r * dx * 0.4, y + r * 1.5)]),
                tone(0.3, 0.03, 60.0),
                0.002,
            );
        }
        let envelope = |width: f32| {
            let mut path = PathBuilder::new();
            path.move_to(x, y - r);
            path.cubic_to(
                x + width * 1.35,
                y - r,
                x + width * 1.35,
                y + r * 0.35,
                x + width * 0.25,
                y + r * 1.15,
            );
            path.line_to(x - width * 0.25, y + r * 1.15);
            path.cubic_to(x - width * 1.35, y + r * 0.35, x - width * 1.35, y - r, x, y - r);
            path.close();
            path.finish()
        };
        for (i, share) in [1.0, 0.66, 0.3].into_iter().enumerate() {
            let t = if i % 2 == 0 { skin } else { tone(0.95, 0.04, 85.0) };
            self.area(envelope(r * share), t);
        }
        self.area(
            rounded(x - r * 0.2, y + r * 1.45, r * 0.4, r * 0.28, r * 0.06),
            tone(0.5, 0.08, 60.0),
        );
    }

    fn scene_ridges(&mut self, brief: &Brief) {
        let horizon = self.h * self.dice.range(0.42, 0.58);
        self.sky(brief, horizon);
        let layers = self.dice.count(5, 7);
        let rough = self.dice.range(0.15, 1.0);
        let house = brief.has(Prop::House) || self.dice.chance(0.25);
        if brief.has(Prop::Balloon) {
            let x = self.w * self.dice.range(0.25, 0.75);
            self.balloon(brief, x, horizon * 0.40, self.unit * 0.12);
            self.balloon(brief, x + self.unit * 0.26, horizon * 0.62, self.unit * 0.05);
        }
        for (i, t) in steps(layers) {
            let base = lerp(horizon - self.unit * 0.02, self.h * 0.93, t.powf(1.2));
            let height = self.unit * lerp(0.26, 0.09, t) * self.dice.range(0.7, 1.2);
            let points = self.skyline(base, height, rough * lerp(1.0, 0.25, t));
            let here = brief.layer(t);
            // Mist gathers at the foot of every ridge.
            let foot = here.toward(brief.sky()[2], if t > 0.95 { 0.0 } else { 0.55 });
            let depth = base + self.unit * 0.28;
            self.shaded(
                ground(
                    &points,
                    depth.max(self.h * if t > 0.95 { 1.05 } else { 0.0 }),
                    false,
                ),
                here,
                foot,
            );
            if let Some(rest) = rect(-1.0, depth, self.w + 2.0, self.h)
                && t < 0.95
            {
                let fill = self.pigment(foot);
                self.flood(&rest, fill, fill);
            }
            if rough > 0.6 && i == 0 && brief.light != Light::Night {
                self.snow_caps(&points);
            }
            if t > 0.45 && t < 0.95 {
                let count = self.dice.count(6, 16);
                for _ in 0..count {
                    let at = usize::from(self.dice.count(2, 126));
                    if let Some((x, y)) = points.get(at).copied() {
                        let s = self.unit * lerp(0.02, 0.085, t) * self.dice.range(0.7, 1.2);
                        self.conifer(x, y + s * 0.15, s, here.lit(-0.07).vivid(1.1));
                    }
                }
            }
            if house
                && i + 2 == layers
                && let Some((x, y)) = points.get(usize::from(self.dice.count(30, 98))).copied()
            {
                self.house(brief, x, y + self.unit * 0.02, self.unit * 0.11);
            }
            if t > 0.95 {
                self.grass(brief, &points);
            }
        }
        if brief.light != Light::Night && (brief.has(Prop::Birds) || self.dice.chance(0.55)) {
            let count = self.dice.count(3, 8);
            self.birds(horizon, count);
        }
    }

    fn snow_caps(&mut self, points: &[(f32, f32)]) {
        let top = points.iter().map(|p| p.1).fold(f32::MAX, f32::min);
        let low = points.iter().map(|p| p.1).fold(f32::MIN, f32::max);
        let line = lerp(top, low, 0.30);
        for run in points.split(|p| p.1 > line) {
            if let (Some(first), Some(last)) = (run.first(), run.last())
                && run.len() > 3
            {
                let mut cap = run.to_vec();
                let zig = f32::from(whole_u16((last.0 - first.0) / (self.unit * 0.03)).clamp(2, 40));
                let mut i = zig;
                while i > 0.0 {
                    let depth = if whole_u16(i).is_multiple_of(2) {
                        -0.004
                    } else {
                        0.022
                    };
                    cap.push((lerp(first.0, last.0, (i - 0.5) / zig), line + self.unit * depth));
                    i -= 1.0;
                }
                if let Some(path) = polygon(&cap) {
                    let t = tone(0.97, 0.01, 240.0).faded(0.85);
                    self.flood(&path, t, t);
                }
            }
        }
    }

    /// Blades and heads of flowers in the foreground.
    fn grass(&mut self, brief: &Brief, points: &[(f32, f32)]) {
        let near = brief.layer(1.0);
        for _ in 0..130 {
            let at = usize::from(self.dice.count(0, 128));
            let Some((x, top)) = points.get(at).copied() else {
                continue;
            };
            let x = x + self.unit * self.dice.range(-0.02, 0.02);
            let y = lerp(top, self.h, self.dice.unit());
            let s = self.unit * self.dice.range(0.02, 0.06);
            let lean = s * self.dice.range(-0.4, 0.4);
            let mut blade = PathBuilder::new();
            blade.move_to(x, y + s * 0.2);
            blade.quad_to(x, y - s * 0.5, x + lean, y - s);
            let lift = self.dice.range(0.0, 0.16);
            self.line(blade.finish(), near.lit(lift).vivid(1.4), 0.003);
            if self.dice.chance(0.4) && self.medium != Medium::Woodcut {
                let r = self.unit * self.dice.range(0.003, 0.008);
                self.area(circle(x + lean, y - s, r), brief.accent(lift * 200.0));
            }
        }
    }

    fn conifer(&mut self, x: f32, y: f32, s: f32, t: Tone) {
        self.area(rect(x - s * 0.05, y - s * 0.2, s * 0.1, s * 0.22), t.lit(-0.04));
        for (i, k) in steps(3) {
            let (top, low) = (
                y - s * (0.75 + 0.33 * f32::from(i)),
                y - s * (0.12 + 0.28 * f32::from(i)),
            );
            let half = s * lerp(0.34, 0.18, k);
            self.shaded(
                polygon(&[(x, top), (x + half, low), (x - half, low)]),
                t.lit(0.03),
                t,
            );
        }
    }

    fn scene_night(&mut self, brief: &Brief) {
        self.backdrop(brief.sky());
        let horizon = self.h * self.dice.range(0.68, 0.78);
        // The band of the galaxy.
        let (a, b) = (self.dice.range(-0.1, 0.3), self.dice.range(0.0, 0.35));
        let dir = self.dice.sign();
        for _ in 0..34 {
            let t = self.dice.unit();
            let x = self.w
                * if dir > 0.0 {
                    lerp(a, 1.0 - b, t)
                } else {
                    lerp(1.0 - a, b, t)
                };
            let y = horizon * lerp(0.95, 0.0, t) + self.unit * self.dice.range(-0.05, 0.05);
            let r = self.unit * self.dice.range(0.08, 0.20);
            let hue = brief.far_hue + self.dice.range(-30.0, 50.0);
            self.glow(x, y, r, tone(0.70, 0.11, hue), 0.16);
        }
        self.stars(horizon, 260);
        let (x, y) = (
            self.w * (0.5 - dir * self.dice.range(0.12, 0.3)),
            horizon * self.dice.range(0.22, 0.42),
        );
        let r = self.unit * self.dice.range(0.07, 0.11);
        self.moon(x, y, r);
        if self.dice.chance(0.7) {
            let (sx, sy) = (
                self.w * self.dice.range(0.2, 0.8),
                horizon * self.dice.range(0.1, 0.3),
            );
            let length = self.unit * 0.2;
            for (_, t) in steps(10) {
                let at = |t: f32| (sx + dir * length * t, sy + length * 0.4 * t);
                let t2 = tone(0.97, 0.03, 90.0).faded(0.12 + 0.8 * t);
                self.line(polyline(&[at(t * 0.9), at(t * 0.9 + 0.1)]), t2, 0.001 + 0.003 * t);
            }
        }
        let lake = self.dice.chance(0.5);
        for (_, t) in steps(3) {
            let base = lerp(horizon, self.h * if lake { 0.83 } else { 0.96 }, t);
            let rough = self.dice.range(0.3, 0.9) * (1.0 - t * 0.5);
            let points = self.skyline(base, self.unit * lerp(0.16, 0.08, t), rough);
            let here = brief.layer(0.3 + 0.65 * t);
            self.shaded(ground(&points, self.h * 1.05, false), here, here.lit(-0.03));
            if t > 0.4 {
                for _ in 0..9 {
                    if let Some((x, y)) = points.get(usize::from(self.dice.count(0, 128))).copied() {
                        let s = self.unit * self.dice.range(0.05, 0.13);
                        self.conifer(x, y + s * 0.2, s, here.lit(-0.02));
                    }
                }
                if brief.has(Prop::House) || t > 0.9 {
                    let at = points.get(usize::from(self.dice.count(40, 88))).copied();
                    let (x, y) = at.unwrap_or((self.w / 2.0, base));
                    self.house(brief, x, y + self.unit * 0.015, self.unit * 0.085);
                }
            }
        }
        if lake {
            let shore = self.h * 0.86;
            self.shaded(
                rect(-1.0, shore, self.w + 2.0, self.h - shore + 2.0),
                brief.layer(0.35),
                brief.layer(0.8),
            );
            for _ in 0..26 {
                let y = lerp(shore, self.h, self.dice.unit());
                let half = self.unit * self.dice.range(0.01, 0.06);
                let dx = x + self.unit * self.dice.range(-0.06, 0.06);
                self.line(
                    polyline(&[(dx - half, y), (dx + half, y)]),
                    tone(0.9, 0.05, 95.0).faded(0.5),
                    0.004,
                );
            }
        }
    }

    fn scene_skyline(&mut self, brief: &Brief) {
        let horizon = self.h * self.dice.range(0.72, 0.82);
        self.sky(brief, horizon * 0.8);
        let lit = match brief.light {
            Light::Night => 0.55,
            Light::Dusk => 0.38,
            Light::Mist => 0.25,
            Light::Day => 0.10,
        };
        let floor = if self.dice.chance(0.6) {
            self.h * 0.86
        } else {
            self.h * 0.97
        };
        for (row, t) in steps(3) {
            let here = brief.layer(0.22 + 0.62 * t);
            let mut x = -self.unit * 0.05 * self.dice.unit();
            while x < self.w {
                let wide = self.unit * self.dice.range(0.07, 0.15);
                let share = self.dice.unit();
                let tall = (self.unit * lerp(0.50, 0.24, t)).min(self.h * 0.7) * (0.45 + share * share * 0.9);
                let top = floor - tall - self.unit * (1.0 - t) * 0.10;
                let wall = here
                    .lit(self.dice.range(-0.03, 0.03))
                    .turned(self.dice.range(-14.0, 14.0));
                self.roof(x, wide, top, wall);
                self.shaded(rect(x, top, wide, self.h - top), wall.lit(0.05), wall.lit(-0.05));
                if row > 0 {
                    self.windows(brief, x, wide, top, floor, lit);
                }
                x += wide * self.dice.range(0.82, 1.12);
            }
        }
        if floor < self.h * 0.9 {
            let water = brief.layer(0.7).vivid(1.2);
            self.shaded(
                rect(-1.0, floor, self.w + 2.0, self.h - floor + 2.0),
                water.lit(0.09),
                water.lit(-0.08),
            );
            for _ in 0..70 {
                let (x, y) = (self.dice.unit() * self.w, lerp(floor, self.h, self.dice.unit()));
                let half = self.unit * self.dice.range(0.008, 0.04);
                let warm = self.dice.chance(lit + 0.1);
                let t = if warm { brief.lamp() } else { brief.sky()[1] };
                self.line(polyline(&[(x - half, y), (x + half, y)]), t.faded(0.5), 0.0035);
            }
        } else {
            self.shaded(
                rect(-1.0, floor - self.unit * 0.01, self.w + 2.0, self.h),
                brief.layer(0.95),
                brief.layer(1.0),
            );
            let mut x = self.unit * 0.04;
            while x < self.w {
                self.line(
                    polyline(&[(x, floor), (x, floor - self.unit * 0.09)]),
                    tone(0.2, 0.02, self.hue),
                    0.005,
                );
                self.area(
                    circle(x, floor - self.unit * 0.095, self.unit * 0.011),
                    brief.lamp(),
                );
                self.glow(x, floor - self.unit * 0.095, self.unit * 0.07, brief.lamp(), 0.5);
                x += self.unit * 0.22;
            }
        }
    }

    fn roof(&mut self, x: f32, wide: f32, top: f32, wall: Tone) {
        let mid = x + wide / 2.0;
        match self.dice.count(0, 5) {
            0 => self.area(
                polygon(&[(x, top + 1.0), (mid, top - wide * 0.6), (x + wide, top + 1.0)]),
                wall.lit(-0.05),
            ),
            1 => {
                self.line(
                    polyline(&[(mid, top), (mid, top - wide * 0.8)]),
                    wall.lit(-0.06),
                    0.004,
                );
                self.area(
                    circle(mid, top - wide * 0.8, self.unit * 0.007),
                    tone(0.65, 0.2, 27.0),
                );
            }
            2 => self.area(circle(mid, top, wide * 0.42), wall.lit(-0.04)),
            3 => self.area(
                rect(x + wide * 0.18, top - wide * 0.25, wide * 0.64, wide * 0.3),
                wall.lit(-0.02),
            ),
            4 => self.area(
                polygon(&[(x, top + 1.0), (x, top - wide * 0.45), (x + wide, top + 1.0)]),
                wall.lit(0.02),
            ),
            _ => {}
        }
    }

    fn windows(&mut self, brief: &Brief, x: f32, wide: f32, top: f32, floor: f32, lit: f32) {
        let columns = self.dice.count(2, 5);
        let cell = wide / (f32::from(columns) + 0.5);
        let tall = cell * self.dice.range(1.0, 1.6);
        let mut y = top + tall * 0.6;
        while y + tall * 0.6 < floor {
            for (i, _) in steps(columns) {
                let left = x + cell * (f32::from(i) + 0.45);
                let shines = self.dice.chance(lit);
                if !shines && self.dice.chance(0.25) {
                    continue;
                }
                let warm = brief.lamp().turned(self.dice.range(-25.0, 15.0));
                let t = if shines {
                    warm
                } else {
                    brief.layer(if brief.is_dark() { 0.65 } else { 0.3 }).faded(0.55)
                };
                let pane = if shines {
                    self.pigment_lamp(t)
                } else {
                    self.pigment(t)
                };
                if let Some(path) = rect(left, y, cell * 0.56, tall * 0.55) {
                    self.flood(&path, pane, pane);
                }
            }
            y += tall;
        }
    }

    /// A lit pane stays bright in media that darken everything.
    fn pigment_lamp(&self, t: Tone) -> Tone {
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

    fn scene_forest(&mut self, brief: &Brief) {
        let horizon = self.h * self.dice.range(0.55, 0.66);
        self.sky(brief, horizon * 0.8);
        let kind = brief.trees.unwrap_or(self.dice.count(0, 2));
        let far = self.skyline(horizon, self.unit * 0.12, 0.3);
        self.shaded(
            ground(&far, self.h * 1.05, true),
            brief.layer(0.12),
            brief.layer(0.05),
        );
        for (_, t) in steps(4) {
            let base = lerp(horizon + self.unit * 0.05, self.h * 0.97, t);
            let floor = self.skyline(base, self.unit * 0.035, 0.2);
            let here = brief.layer(0.25 + 0.7 * t).vivid(1.15);
            let mut x = -self.unit * self.dice.range(0.0, 0.12);
            let step = self.unit * lerp(0.11, 0.34, t);
            while x < self.w + self.unit * 0.1 {
                let s = self.unit * lerp(0.26, 0.80, t) * self.dice.range(0.75, 1.15);
                let y = base + self.unit * 0.03;
                // Near trees stand at the sides and leave the view open.
                let middle = ((x / self.w) - 0.5).abs() < 0.26;
                if t < 0.9 || !middle {
                    match kind {
                        0 => {
                            let lift = self.dice.range(-0.03, 0.05);
                            self.conifer(x, y, s * 0.62, here.lit(lift));
                        }
                        1 => self.broadleaf(brief, x, y, s * 0.62, here),
                        _ => self.birch(brief, x, y, s, t, here),
                    }
                }
                x += step * self.dice.range(0.7, 1.3);
            }
            self.shaded(
                ground(&floor, self.h * 1.05, true),
                here.lit(0.05),
                here.lit(-0.04),
            );
            if t < 0.9 && brief.light != Light::Night {
                let mist = brief.sky()[2].faded(0.20);
                if let Some(path) = rect(-1.0, base - self.unit * 0.10, self.w + 2.0, self.unit * 0.16)
                    && !matches!(
                        self.medium,
                        Medium::Ink | Medium::Woodcut | Medium::Blueprint | Medium::Neon
                    )
                {
                    self.flood(&path, mist.faded(0.0), mist);
                }
            }
        }
        if matches!(brief.light, Light::Day | Light::Dusk | Light::Mist) {
            self.shafts(brief);
        }
        let count = self.dice.count(5, 12);
        for _ in 0..count {
            let (x, y) = (self.dice.unit() * self.w, self.h * self.dice.range(0.86, 0.985));
            let s = self.unit * self.dice.range(0.02, 0.045);
            self.mushroom(brief, x, y, s);
        }
    }

    fn shafts(&mut self, brief: &Brief) {
        if matches!(
            self.medium,
            Medium::Ink | Medium::Woodcut | Medium::Blueprint | Medium::Pixel
        ) {
            return;
        }
        let side = self.dice.sign();
        for _ in 0..4 {
            let x = self.w * self.dice.range(0.1, 0.9);
            let wide = self.unit * self.dice.range(0.03, 0.09);
            let slide = side * self.h * 0.35;
            let t = brief.sky()[2].lit(0.04);
            let shaft = polygon(&[
                (x, 0.0),
                (x + wide, 0.0),
                (x + wide * 2.2 + slide, self.h),
                (x + slide, self.h),
            ]);
            if let Some(path) = shaft {
                self.flood(&path, t.faded(0.22), t.faded(0.02));
            }
        }
    }

    fn broadleaf(&mut self, brief: &Brief, x: f32, y: f32, s: f32, t: Tone) {
        let trunk = tone(t.l * 0.75, 0.04, 55.0);
        self.area(
            polygon(&[
                (x - s * 0.07, y),
                (x + s * 0.07, y),
                (x + s * 0.03, y - s * 0.75),
                (x - s * 0.03, y - s * 0.75),
            ]),
            trunk,
        );
        let turn = if brief.light == Light::Dusk {
            self.dice.range(-110.0, -40.0)
        } else {
            self.dice.range(-22.0, 18.0)
        };
        for (dx, dy, r) in [
            (-0.24, -0.72, 0.26),
            (0.24, -0.76, 0.26),
            (0.0, -1.0, 0.32),
            (-0.08, -0.78, 0.24),
        ] {
            let leaf = t
                .turned(turn)
                .vivid(1.2)
                .lit(-dy * 0.09 - 0.06 + self.dice.range(-0.02, 0.02));
            self.shaded(
                circle(x + s * dx, y + s * dy, s * r),
                leaf.lit(0.06),
                leaf.lit(-0.03),
            );
        }
    }

    fn birch(&mut self, brief: &Brief, x: f32, y: f32, s: f32, t: f32, here: Tone) {
        let bark = brief.sky()[2]
            .toward(tone(0.9, 0.015, 80.0), t)
            .toward(here, 0.32);
        let half = s * 0.028;
        let tall = s * 1.8;
        self.area(
            polygon(&[
                (x - half, y),
                (x + half, y),
                (x + half * 0.6, y - tall),
                (x - half * 0.6, y - tall),
            ]),
            bark,
        );
        let count = self.dice.count(5, 9);
        for _ in 0..count {
            let at = y - tall * self.dice.unit();
            let dx = half * self.dice.range(-0.9, 0.2);
            self.line(
                polyline(&[(x + dx, at), (x + dx + half * 0.8, at)]),
                tone(0.25, 0.02, 60.0).faded(0.8),
                half / self.unit * 0.35,
            );
        }
        for _ in 0..4 {
            let at = y - tall * self.dice.range(0.35, 0.95);
            let (dx, r) = (s * self.dice.range(-0.16, 0.16), s * self.dice.range(0.05, 0.12));
            self.line(
                polyline(&[(x, at + r), (x + dx, at)]),
                here.lit(-0.05),
                half / self.unit * 0.4,
            );
            let turn = self.dice.range(-50.0, 10.0);
            self.area(
                circle(x + dx, at - r * 0.3, r),
                here.lit(0.12).vivid(1.3).turned(turn),
            );
        }
    }

    fn mushroom(&mut self, brief: &Brief, x: f32, y: f32, s: f32) {
        self.area(
            rounded(x - s * 0.17, y - s * 0.7, s * 0.34, s * 0.75, s * 0.12),
            tone(0.92, 0.03, 85.0),
        );
        self.area(wedge(x, y - s * 0.6, s * 0.62, PI, TAU), brief.accent(0.0));
        for (dx, dy) in [(-0.25, -0.8), (0.12, -0.98), (0.34, -0.75)] {
            let dot = tone(0.96, 0.02, 85.0);
            if let Some(path) = circle(x + s * dx, y + s * dy, s * 0.075) {
                self.flood(&path, dot, dot);
            }
        }
    }

    fn scene_garden(&mut self, brief: &Brief) {
        let horizon = self.h * self.dice.range(0.55, 0.7);
        self.sky(brief, horizon * 0.7);
        let green = tone(
            if brief.is_dark() { 0.30 } else { 0.55 },
            0.10,
            self.dice.range(125.0, 165.0),
        );
        for _ in 0..16 {
            let (x, y) = (self.dice.unit() * self.w, self.dice.range(0.05, 0.95) * self.h);
            let r = self.unit * self.dice.range(0.02, 0.09);
            let t = brief.accent(self.dice.range(-60.0, 60.0)).lit(0.12);
            self.glow(x, y, r * 1.6, t, 0.35);
        }
        for (_, t) in steps(2) {
            let points = self.skyline(lerp(horizon, self.h * 0.86, t), self.unit * 0.09, 0.15);
            self.shaded(
                ground(&points, self.h * 1.05, true),
                green.lit(0.10 - 0.14 * t),
                green.lit(-0.04 - 0.14 * t),
            );
        }
        let kind = self.dice.count(0, 3);
        let rows = 3;
        for (_, row) in steps(rows) {
            let mut x = self.unit * self.dice.range(-0.05, 0.12);
            while x < self.w {
                let size = self.unit * lerp(0.055, 0.125, row) * self.dice.range(0.75, 1.2);
                let foot = self.h * lerp(0.84, 1.08, row);
                let head = foot - self.unit.min(self.h) * lerp(0.20, 0.50, row) * self.dice.range(0.7, 1.25);
                let hue_turn = self.dice.range(-28.0, 28.0) + if self.dice.chance(0.25) { 90.0 } else { 0.0 };
                let bloom = brief.accent(hue_turn).lit(self.dice.range(-0.05, 0.12));
                let bend = self.unit * self.dice.range(-0.06, 0.06);
                self.flower(kind, (x, foot), (x + bend, head), size, bloom, green);
                x += size * self.dice.range(1.5, 2.7);
            }
        }
    }

    fn flower(&mut self, kind: u16, foot: (f32, f32), head: (f32, f32), r: f32, bloom: Tone, green: Tone) {
        let stem = green.lit(-0.12);
        let bend = (foot.0, lerp(foot.1, head.1, 0.6));
        let mut path = PathBuilder::new();
        path.move_to(foot.0, foot.1);
        path.quad_to(bend.0, bend.1, head.0, head.1);
        self.line(path.finish(), stem, r / self.unit * 0.10);
        for (side, t) in [(1.0, 0.35), (-1.0, 0.55)] {
            let (x, y) = (lerp(foot.0, head.0, t * 0.6), lerp(foot.1, head.1, t));
            let angle = if side > 0.0 { -0.6 } else { PI + 0.6 };
            self.area(petal(x, y, r * 1.2, r * 0.26, angle), green.lit(0.02));
        }
        let (x, y) = head;
        let spin = self.dice.range(0.0, TAU);
        let ring = |canvas: &mut Self, count: u16, reach: f32, width: f32, t: Tone, turn: f32| {
            for i in 0..count {
                let angle = spin + turn + TAU * f32::from(i) / f32::from(count);
                canvas.area(petal(x, y, reach, width, angle), t);
            }
        };
        match kind {
            0 => {
                let count = self.dice.count(9, 13);
                ring(self, count, r, r * 0.24, bloom, 0.0);
                self.area(circle(x, y, r * 0.30), tone(0.82, 0.15, 85.0));
            }
            1 => {
                for (angle, t) in [(-2.15, -0.05), (-1.0, -0.05), (-1.57, 0.04)] {
                    self.shaded(
                        petal(x, y + r * 0.45, r * 1.55, r * 0.50, angle),
                        bloom.lit(t + 0.07),
                        bloom.lit(t - 0.06),
                    );
                }
            }
            2 => {
                for (reach, count, lift) in
                    [(1.0, 12, -0.08), (0.76, 10, 0.0), (0.52, 8, 0.07), (0.3, 6, 0.13)]
                {
                    ring(
                        self,
                        count,
                        r * reach,
                        r * reach * 0.28,
                        bloom.lit(lift),
                        reach * 2.0,
                    );
                }
            }
            _ => {
                ring(self, 5, r * 1.05, r * 0.52, bloom, 0.0);
                ring(self, 5, r * 0.6, r * 0.16, bloom.lit(-0.14), 0.0);
                self.area(circle(x, y, r * 0.17), tone(0.90, 0.13, 95.0));
            }
        }
    }

    fn scene_planet(&mut self, brief: &Brief) {
        let deep = [
            tone(0.13, 0.05, brief.hue),
            tone(0.18, 0.07, brief.hue),
            tone(0.26, 0.09, brief.far_hue),
        ];
        self.backdrop(deep);
        for _ in 0..20 {
            let (x, y) = (self.dice.unit() * self.w, self.dice.unit() * self.h);
            let hue = brief.far_hue + self.dice.range(-50.0, 50.0);
            let r = self.unit * self.dice.range(0.1, 0.36);
            self.glow(x, y, r, tone(0.55, 0.15, hue), 0.20);
        }
        self.stars(self.h, 210);
        let (x, y) = (
            self.w * self.dice.range(0.38, 0.62),
            self.h * self.dice.range(0.42, 0.56),
        );
        let r = self.unit * self.dice.range(0.21, 0.29);
        let skin = brief.accent(0.0);
        self.glow(x, y, r * 1.7, skin, 0.45);
        let tilt = self.dice.range(-0.5, 0.5);
        let ringed = self.dice.chance(0.75);
        let ring_half = |from: f32, to: f32| {
            let arc = |t: f32, k: f32| {
                let a = lerp(from, to, t);
                let (px, py) = (r * k * a.cos(), r * k * 0.30 * a.sin());
                (
                    x + px * tilt.cos() - py * tilt.sin(),
                    y + px * tilt.sin() + py * tilt.cos(),
                )
            };
            let mut points: Vec<_> = steps(49).map(|(_, t)| arc(t, 1.85)).collect();
            points.extend(steps(49).map(|(_, t)| arc(1.0 - t, 1.35)));
            polygon(&points)
        };
        let ring_tone = tone(0.86, 0.07, brief.accent_hue + 40.0).faded(0.85);
        if ringed {
            self.area(ring_half(PI, TAU), ring_tone.lit(-0.12));
        }
        self.shaded(circle(x, y, r), skin.lit(0.12), skin.lit(-0.28));
        // Bands: slices of the disc between two heights.
        for _ in 0..6 {
            let (from, thick) = (self.dice.range(-0.85, 0.75), self.dice.range(0.06, 0.2));
            let to = (from + thick).min(0.98);
            let lift = self.dice.range(-0.14, 0.14);
            let edge = |v: f32, side: f32| {
                let px = side * (1.0 - v * v).max(0.0).sqrt() * r * 0.995;
                let py = v * r;
                (
                    x + px * tilt.cos() - py * tilt.sin(),
                    y + px * tilt.sin() + py * tilt.cos(),
                )
            };
            let mut points: Vec<_> = steps(9).map(|(_, t)| edge(lerp(from, to, t), 1.0)).collect();
            points.extend(steps(9).map(|(_, t)| edge(lerp(to, from, t), -1.0)));
            let band = skin.lit(lift).turned(lift * 160.0).faded(0.5);
            if let Some(path) = polygon(&points) {
                let band = self.pigment(band);
                self.flood(&path, band, band);
            }
        }
        if ringed {
            self.area(ring_half(0.0, PI), ring_tone);
        }
        let moons = self.dice.count(1, 3);
        for _ in 0..moons {
            let a = self.dice.range(0.0, TAU);
            let far = r * self.dice.range(1.5, 2.2);
            let (mx, my) = (x + far * a.cos(), y + far * 0.7 * a.sin());
            let t = brief.accent(self.dice.range(60.0, 200.0));
            let size = r * self.dice.range(0.08, 0.2);
            self.shaded(circle(mx, my, size), t.lit(0.1), t.lit(-0.22));
        }
        let (x, y) = (
            self.w * self.dice.range(0.14, 0.28),
            self.h * self.dice.range(0.66, 0.8),
        );
        self.rocket(brief, x, y);
    }

    fn rocket(&mut self, brief: &Brief, x: f32, y: f32) {
        let s = self.unit * 0.12;
        let turn = 0.6f32;
        let at = |dx: f32, dy: f32| {
            let (px, py) = (dx * s, dy * s);
            (
                x + px * turn.cos() - py * turn.sin(),
                y + px * turn.sin() + py * turn.cos(),
            )
        };
        let flame: Vec<_> = [(-0.14, 0.55), (0.0, 1.3), (0.14, 0.55)]
            .into_iter()
            .map(|(a, b)| at(a, b))
            .collect();
        self.glow(
            at(0.0, 0.8).0,
            at(0.0, 0.8).1,
            s * 0.9,
            tone(0.8, 0.17, 60.0),
            0.7,
        );
        self.area(polygon(&flame), tone(0.82, 0.17, 65.0));
        for side in [-1.0, 1.0] {
            let fin: Vec<_> = [(0.2, 0.1), (0.48, 0.7), (0.15, 0.52)]
                .into_iter()
                .map(|(a, b)| at(a * side, b))
                .collect();
            self.area(polygon(&fin), brief.accent(30.0));
        }
        let mut hull = PathBuilder::new();
        let (nose, a, b, c, d) = (
            at(0.0, -1.0),
            at(0.42, -0.4),
            at(0.2, 0.6),
            at(-0.2, 0.6),
            at(-0.42, -0.4),
        );
        hull.move_to(nose.0, nose.1);
        hull.quad_to(a.0, a.1, b.0, b.1);
        hull.line_to(c.0, c.1);
        hull.quad_to(d.0, d.1, nose.0, nose.1);
        hull.close();
        self.area(hull.finish(), tone(0.93, 0.015, 240.0));
        let eye = at(0.0, -0.2);
        self.area(circle(eye.0, eye.1, s * 0.13), tone(0.62, 0.11, 230.0));
    }

    fn scene_dunes(&mut self, brief: &Brief) {
        let horizon = self.h * self.dice.range(0.42, 0.54);
        self.sky(brief, horizon);
        if self.dice.chance(0.5) {
            let mesa = self.skyline(horizon, self.unit * 0.10, 0.6);
            self.shaded(
                ground(&mesa, horizon + self.unit * 0.1, false),
                brief.layer(0.15),
                brief.layer(0.05),
            );
        }
        let sand = |t: f32| {
            let lit = if brief.is_dark() {
                tone(0.45, 0.07, brief.hue)
            } else {
                tone(0.85, 0.10, brief.hue + 12.0)
            };
            lit.toward(brief.layer(0.7), t * 0.35)
        };
        let layers = self.dice.count(4, 6);
        for (_, t) in steps(layers) {
            let base = lerp(horizon + self.unit * 0.02, self.h * 0.88, t);
            let peak = self.w * self.dice.range(0.15, 0.85);
            let tall = self.unit * lerp(0.07, 0.20, t);
            let crest = (peak, base - tall);
            let (left, right) = (
                -self.w * self.dice.range(0.1, 0.4),
                self.w * self.dice.range(1.1, 1.4),
            );
            let mut light = PathBuilder::new();
            light.move_to(left, base + tall * 0.3);
            light.cubic_to(
                lerp(left, peak, 0.6),
                base + tall * 0.25,
                lerp(left, peak, 0.8),
                crest.1,
                crest.0,
                crest.1,
            );
            light.cubic_to(
                lerp(peak, right, 0.25),
                crest.1 + tall * 0.2,
                lerp(peak, right, 0.5),
                base,
                right,
                base + tall * 0.3,
            );
            light.line_to(right, self.h * 1.1);
            light.line_to(left, self.h * 1.1);
            light.close();
            let here = sand(t);
            self.shaded(light.finish(), here.lit(0.05), here.lit(-0.10));
            // The lee side lies in shadow, its edge winding down from the crest.
            let sway = self.unit * self.dice.range(0.08, 0.2);
            let mut lee = PathBuilder::new();
            lee.move_to(crest.0, crest.1);
            lee.cubic_to(
                crest.0 + sway,
                crest.1 + tall * 0.6,
                crest.0 - sway,
                base + tall * 0.5,
                crest.0 + sway * 0.8,
                base + tall * 1.7,
            );
            lee.line_to(right, base + tall * 1.7);
            lee.line_to(right, base + tall * 0.3);
            lee.cubic_to(
                lerp(peak, right, 0.5),
                base,
                lerp(peak, right, 0.25),
                crest.1 + tall * 0.2,
                crest.0,
                crest.1,
            );
            lee.close();
            let shade = here.lit(-0.19).turned(-22.0);
            if let Some(path) = lee.finish() {
                self.shaded(Some(path), shade, here.lit(-0.10));
            }
            if t > 0.2 && self.dice.chance(0.75) {
                let x = self.w * self.dice.range(0.08, 0.92);
                self.cactus(brief, x, base + tall * 0.55, self.unit * lerp(0.08, 0.24, t));
            }
        }
        if brief.has(Prop::Balloon) {
            self.balloon(brief, self.w * 0.3, horizon * 0.45, self.unit * 0.10);
        }
    }

    fn cactus(&mut self, brief: &Brief, x: f32, y: f32, s: f32) {
        let green = tone(if brief.is_dark() { 0.32 } else { 0.46 }, 0.085, 150.0);
        let thick = s * 0.17;
        if let Some(shadow) = oval(x + s * 0.16, y, s * 0.4, s * 0.045) {
            let t = self.pigment(tone(0.25, 0.04, brief.hue)).faded(0.35);
            self.flood(&shadow, t, t);
        }
        let mut arm = |side: f32, low: f32, tall: f32| {
            let far = x + side * s * 0.30;
            self.area(
                rounded(
                    x.min(far) - thick * 0.3,
                    y - s * low,
                    s * 0.30 + thick * 0.6,
                    thick * 0.8,
                    thick * 0.4,
                ),
                green,
            );
            self.area(
                rounded(
                    far - thick * 0.4,
                    y - s * (low + tall) + thick * 0.5,
                    thick * 0.8,
                    s * tall + thick * 0.3,
                    thick * 0.4,
                ),
                green,
            );
        };
        arm(1.0, 0.48, 0.30);
        arm(-1.0, 0.36, 0.32);
        self.shaded(
            rounded(x - thick / 2.0, y - s, thick, s * 1.02, thick / 2.0),
            green.lit(0.05),
            green.lit(-0.05),
        );
        self.area(circle(x, y - s, thick * 0.28), brief.accent(0.0));
    }

    fn scene_table(&mut self, brief: &Brief) {
        let edge = self.h * self.dice.range(0.60, 0.68);
        let wall = if brief.is_dark() {
            tone(0.30, 0.06, brief.hue)
        } else {
            tone(0.86, 0.055, brief.hue)
        };
        self.backdrop([wall.lit(-0.04), wall, wall.lit(0.04)]);
        let (wx, ww) = (self.w * self.dice.range(0.08, 0.5), self.unit * 0.34);
        let wy = self.h * 0.08;
        let tall = (edge - wy) * 0.72;
        self.area(
            rect(wx - ww * 0.06, wy - ww * 0.06, ww * 1.12, tall + ww * 0.12),
            tone(0.95, 0.015, 80.0),
        );
        let sky = brief.sky();
        self.shaded(rect(wx, wy, ww, tall), sky[0], sky[2]);
        self.line(
            polyline(&[(wx + ww / 2.0, wy), (wx + ww / 2.0, wy + tall)]),
            tone(0.95, 0.015, 80.0),
            0.014,
        );
        self.line(
            polyline(&[(wx, wy + tall / 2.0), (wx + ww, wy + tall / 2.0)]),
            tone(0.95, 0.015, 80.0),
            0.014,
        );
        let wood = tone(0.60, 0.085, 58.0 + self.dice.range(-15.0, 15.0)).lit(if brief.is_dark() {
            -0.2
        } else {
            0.0
        });
        self.shaded(
            rect(-1.0, edge, self.w + 2.0, self.h - edge + 2.0),
            wood.lit(0.05),
            wood.lit(-0.13),
        );
        for _ in 0..7 {
            let y = lerp(edge, self.h, self.dice.unit());
            let x = self.w * self.dice.unit();
            let half = self.unit * self.dice.range(0.08, 0.3);
            self.line(
                polyline(&[(x - half, y), (x + half, y)]),
                wood.lit(-0.08).faded(0.6),
                0.003,
            );
        }
        let floor = lerp(edge, self.h, 0.42);
        let side = self.dice.sign();
        self.vase(
            brief,
            self.w / 2.0 - side * self.unit * 0.27,
            floor - self.unit * 0.06,
            self.unit * 0.34,
        );
        self.cup(
            brief,
            self.w / 2.0 + side * self.unit * 0.04,
            floor + self.unit * 0.02,
            self.unit * 0.25,
        );
        let count = self.dice.count(3, 5);
        for (i, t) in steps(count) {
            let x = self.w / 2.0 + side * self.unit * lerp(0.24, 0.44, t);
            let y = floor + self.unit * (0.01 + 0.05 * f32::from(i % 2));
            let r = self.unit * self.dice.range(0.05, 0.068);
            self.fruit(brief, x, y, r);
        }
    }

    fn shadow(&mut self, x: f32, y: f32, r: f32) {
        if let Some(path) = oval(x, y, r, r * 0.16) {
            let t = tone(0.15, 0.03, self.hue).faded(0.28);
            self.flood(&path, t, t);
        }
    }

    fn cup(&mut self, brief: &Brief, x: f32, y: f32, s: f32) {
        let glaze = brief.accent(0.0);
        self.shadow(x, y, s * 0.75);
        self.area(oval(x, y - s * 0.03, s * 0.66, s * 0.10), tone(0.95, 0.02, 80.0));
        self.line(
            circle(x + s * 0.47, y - s * 0.38, s * 0.17),
            glaze.lit(-0.05),
            s / self.unit * 0.085,
        );
        let mut bowl = PathBuilder::new();
        bowl.move_to(x - s * 0.45, y - s * 0.68);
        bowl.line_to(x + s * 0.45, y - s * 0.68);
        bowl.quad_to(x + s * 0.45, y - s * 0.05, x + s * 0.2, y - s * 0.03);
        bowl.line_to(x - s * 0.2, y - s * 0.03);
        bowl.quad_to(x - s * 0.45, y - s * 0.05, x - s * 0.45, y - s * 0.68);
        bowl.close();
        self.shaded(bowl.finish(), glaze.lit(0.06), glaze.lit(-0.14));
        self.area(oval(x, y - s * 0.68, s * 0.45, s * 0.11), glaze.lit(0.10));
        self.area(oval(x, y - s * 0.67, s * 0.38, s * 0.08), tone(0.35, 0.06, 50.0));
        for dx in [-0.16, 0.04, 0.22] {
            let sway = s * self.dice.range(0.06, 0.12);
            let (left, top) = (x + s * dx, y - s * self.dice.range(1.25, 1.5));
            let mut steam = PathBuilder::new();
            steam.move_to(left, y - s * 0.78);
            steam.cubic_to(
                left + sway,
                y - s * 0.95,
                left - sway,
                y - s * 1.1,
                left + sway * 0.4,
                top,
            );
            self.line(
                steam.finish(),
                tone(0.98, 0.005, 80.0).faded(0.6),
                s / self.unit * 0.04,
            );
        }
    }

    fn vase(&mut self, brief: &Brief, x: f32, y: f32, s: f32) {
        self.shadow(x, y, s * 0.34);
        let green = tone(0.5, 0.10, 145.0);
        let kind = self.dice.count(0, 3);
        for dx in [-0.34, 0.30, 0.0] {
            let head = (x + s * dx, y - s * self.dice.range(1.10, 1.32));
            let bloom = brief.accent(self.dice.range(90.0, 200.0));
            self.flower(
                kind,
                (x + s * dx * 0.2, y - s * 0.62),
                head,
                s * 0.19,
                bloom,
                green,
            );
        }
        let clay = tone(0.62, 0.09, brief.hue + 20.0);
        let mut body = PathBuilder::new();
        body.move_to(x - s * 0.13, y - s * 0.72);
        body.cubic_to(
            x - s * 0.10,
            y - s * 0.52,
            x - s * 0.36,
            y - s * 0.42,
            x - s * 0.27,
            y - s * 0.15,
        );
        body.quad_to(x - s * 0.24, y, x - s * 0.14, y);
        body.line_to(x + s * 0.14, y);
        body.quad_to(x + s * 0.24, y, x + s * 0.27, y - s * 0.15);
        body.cubic_to(
            x + s * 0.36,
            y - s * 0.42,
            x + s * 0.10,
            y - s * 0.52,
            x + s * 0.13,
            y - s * 0.72,
        );
        body.close();
        self.shaded(body.finish(), clay.lit(0.08), clay.lit(-0.14));
    }

    fn fruit(&mut self, brief: &Brief, x: f32, y: f32, r: f32) {
        let hue = [28.0, 55.0, 95.0, 130.0, brief.accent_hue]
            .get(usize::from(self.dice.count(0, 4)))
            .copied();
        let skin = tone(0.68, 0.165, hue.unwrap_or(28.0));
        self.shadow(x, y, r * 1.15);
        self.shaded(circle(x, y - r * 0.92, r), skin.lit(0.08), skin.lit(-0.14));
        self.line(
            polyline(&[(x, y - r * 1.8), (x + r * 0.15, y - r * 2.2)]),
            tone(0.35, 0.05, 60.0),
            0.005,
        );
        self.area(
            petal(x + r * 0.1, y - r * 2.0, r * 0.7, r * 0.18, -0.4),
            tone(0.52, 0.12, 145.0),
        );
        if let Some(shine) = oval(x - r * 0.38, y - r * 1.3, r * 0.2, r * 0.13)
            && !matches!(self.medium, Medium::Ink | Medium::Blueprint | Medium::Woodcut)
        {
            let t = tone(0.98, 0.01, 90.0).faded(0.5);
            self.flood(&shine, t, t);
        }
    }

    fn scene_character(&mut self, brief: &Brief, being: Being) {
        let wall = match brief.light {
            Light::Night => tone(0.28, 0.075, brief.hue),
            Light::Dusk => tone(0.74, 0.11, brief.hue),
            Light::Day => tone(0.84, 0.09, brief.hue),
            Light::Mist => tone(0.86, 0.035, brief.hue),
        };
        self.backdrop([wall.lit(-0.06), wall, wall.lit(0.05)]);
        let (cx, s) = (self.w / 2.0, self.unit);
        let cy = self.h * 0.47;
        match self.dice.count(0, 2) {
            0 => {
                for (i, _) in steps(18) {
                    let a = TAU * f32::from(i) / 18.0;
                    let ray = wedge(cx, cy, self.w.hypot(self.h), a, a + PI / 18.0);
                    if let Some(path) = ray
                        && self.medium != Medium::Woodcut
                    {
                        let t = self.pigment(wall.lit(0.05)).faded(0.6);
                        self.flood(&path, t, t);
                    }
                }
                self.area(circle(cx, cy, s * 0.38), brief.accent(0.0).lit(0.14).vivid(0.6));
            }
            1 => {
                self.area(circle(cx, cy, s * 0.43), wall.lit(0.07).turned(25.0));
                self.area(circle(cx, cy, s * 0.36), brief.accent(30.0).lit(0.12).vivid(0.7));
            }
            _ => {
                for _ in 0..22 {
                    let (x, y) = (self.dice.unit() * self.w, self.dice.unit() * self.h);
                    let dot = brief.accent(self.dice.range(-60.0, 60.0)).lit(0.1).faded(0.55);
                    let r = s * self.dice.range(0.012, 0.045);
                    self.area(circle(x, y, r), dot);
                }
                self.area(circle(cx, cy, s * 0.40), wall.lit(-0.10));
            }
        }
        let fur_hue = if self.dice.chance(0.6) {
            self.dice.range(35.0, 85.0)
        } else {
            brief.accent_hue + 60.0
        };
        let fur = tone(self.dice.range(0.55, 0.80), self.dice.range(0.05, 0.12), fur_hue);
        let cloth = brief.accent(self.dice.range(-30.0, 30.0)).lit(-0.10);
        let (tilt, look) = (
            self.dice.range(-0.03, 0.03) * s,
            self.dice.range(-0.012, 0.012) * s,
        );
        let hx = cx + tilt;
        let body = |half: f32, top: f32| {
            let mut path = PathBuilder::new();
            path.move_to(cx - s * half, self.h + s * 0.05);
            path.cubic_to(
                cx - s * half,
                cy + s * top * 0.9,
                cx - s * half * 0.6,
                cy + s * top,
                cx,
                cy + s * top,
            );
            path.cubic_to(
                cx + s * half * 0.6,
                cy + s * top,
                cx + s * half,
                cy + s * top * 0.9,
                cx + s * half,
                self.h + s * 0.05,
            );
            path.close();
            path.finish()
        };
        match being {
            Being::Robot => self.robot(brief, hx, cy, cloth, look),
            Being::Cat | Being::Bear | Being::Owl => {
                self.shaded(body(0.27, 0.16), fur.lit(-0.03), fur.lit(-0.14));
                self.animal(being, hx, cy, fur, look);
                self.area(
                    rounded(cx - s * 0.15, cy + s * 0.205, s * 0.30, s * 0.065, s * 0.03),
                    cloth,
                );
                self.area(
                    polygon(&[
                        (cx + s * 0.05, cy + s * 0.25),
                        (cx + s * 0.12, cy + s * 0.25),
                        (cx + s * 0.13, cy + s * 0.40),
                        (cx + s * 0.05, cy + s * 0.38),
                    ]),
                    cloth.lit(-0.05),
                );
            }
            Being::Person => {
                self.shaded(body(0.33, 0.20), cloth, cloth.lit(-0.14));
                self.person(brief, hx, cy, cloth, look);
            }
        }
    }

    fn eyes(&mut self, x: f32, y: f32, gap: f32, r: f32, look: f32, white: Option<Tone>) {
        for side in [-1.0, 1.0] {
            let ex = x + side * gap;
            if let Some(white) = white {
                self.area(circle(ex, y, r * 1.75), white);
            }
            self.mark(circle(ex + look, y, r), tone(0.20, 0.03, 270.0));
            self.mark(
                circle(ex + look - r * 0.3, y - r * 0.35, r * 0.32),
                tone(0.98, 0.0, 0.0),
            );
        }
    }

    /// A small dark or bright mark, the same in all media but the ones drawn with light lines.
    fn mark(&mut self, path: Option<Path>, t: Tone) {
        let Some(path) = path else { return };
        let light = matches!(self.medium, Medium::Neon | Medium::Blueprint);
        let t = if light {
            tone(if t.l < 0.5 { 0.95 } else { 0.3 }, 0.04, 220.0)
        } else {
            t
        };
        self.flood(&path, t, t);
    }

    fn animal(&mut self, being: Being, x: f32, cy: f32, fur: Tone, look: f32) {
        let s = self.unit;
        let y = cy - s * 0.02;
        let inner = tone(0.80, 0.085, 15.0);
        match being {
            Being::Bear => {
                for side in [-1.0, 1.0] {
                    self.area(
                        circle(x + side * s * 0.165, y - s * 0.17, s * 0.075),
                        fur.lit(-0.05),
                    );
                    self.area(circle(x + side * s * 0.165, y - s * 0.165, s * 0.042), inner);
                }
            }
            Being::Cat | Being::Owl | Being::Robot | Being::Person => {
                let tall = if being == Being::Owl { 0.26 } else { 0.33 };
                for side in [-1.0, 1.0] {
                    let at = |dx: f32, dy: f32| (x + side * s * dx, y + s * dy);
                    self.area(
                        polygon(&[at(0.06, -0.17), at(0.205, -tall), at(0.225, -0.03)]),
                        fur.lit(-0.03),
                    );
                    if being == Being::Cat {
                        self.area(
                            polygon(&[at(0.11, -0.185), at(0.188, -0.272), at(0.20, -0.10)]),
                            inner,
                        );
                    }
                }
            }
        }
        let (rx, ry) = (s * 0.235, s * 0.205);
        self.shaded(oval(x, y, rx, ry), fur.lit(0.05), fur.lit(-0.04));
        let pale = tone(0.94, 0.03, 80.0);
        match being {
            Being::Owl => {
                for side in [-1.0, 1.0] {
                    self.area(circle(x + side * s * 0.088, y - s * 0.01, s * 0.098), pale);
                }
                self.eyes(
                    x,
                    y - s * 0.01,
                    s * 0.088,
                    s * 0.038,
                    look,
                    Some(tone(0.86, 0.15, 88.0)),
                );
                self.area(
                    polygon(&[
                        (x - s * 0.03, y + s * 0.06),
                        (x + s * 0.03, y + s * 0.06),
                        (x, y + s * 0.125),
                    ]),
                    tone(0.76, 0.16, 65.0),
                );
                return;
            }
            Being::Cat => {
                for dx in [-0.045, 0.0, 0.045] {
                    let short = if dx == 0.0 { 0.0 } else { 0.025 };
                    self.line(
                        polyline(&[
                            (x + s * dx, y - s * 0.195),
                            (x + s * dx * 0.8, y - s * (0.125 + short)),
                        ]),
                        fur.lit(-0.18),
                        0.014,
                    );
                }
            }
            Being::Bear | Being::Robot | Being::Person => {}
        }
        self.area(oval(x, y + s * 0.082, s * 0.10, s * 0.072), pale);
        self.eyes(x, y - s * 0.025, s * 0.098, s * 0.029, look, None);
        for side in [-1.0, 1.0] {
            self.mark_soft(
                oval(x + side * s * 0.155, y + s * 0.055, s * 0.036, s * 0.022),
                tone(0.72, 0.14, 15.0),
            );
        }
        self.mark(
            oval(x, y + s * 0.048, s * 0.026, s * 0.018),
            tone(0.30, 0.05, 20.0),
        );
        let ink = tone(0.28, 0.04, 20.0);
        let mut mouth = PathBuilder::new();
        mouth.move_to(x - s * 0.045, y + s * 0.085);
        mouth.quad_to(x - s * 0.022, y + s * 0.118, x, y + s * 0.082);
        mouth.quad_to(x + s * 0.022, y + s * 0.118, x + s * 0.045, y + s * 0.085);
        self.line(mouth.finish(), ink, 0.007);
        if being == Being::Cat {
            for side in [-1.0, 1.0] {
                for dy in [0.055, 0.08, 0.105] {
                    let from = (x + side * s * 0.12, y + s * dy);
                    self.line(
                        polyline(&[from, (x + side * s * 0.29, y + s * (dy * 1.6 - 0.05))]),
                        tone(0.97, 0.01, 80.0).faded(0.9),
                        0.004,
                    );
                }
            }
        }
    }

    fn mark_soft(&mut self, path: Option<Path>, t: Tone) {
        if !matches!(self.medium, Medium::Ink | Medium::Blueprint | Medium::Woodcut) {
            self.mark(path, t.faded(0.6));
        }
    }

    fn robot(&mut self, brief: &Brief, x: f32, cy: f32, cloth: Tone, look: f32) {
        let s = self.unit;
        let steel = tone(0.78, 0.05, brief.accent_hue + 180.0);
        let y = cy - s * 0.03;
        self.area(
            rect(x - s * 0.045, y + s * 0.15, s * 0.09, s * 0.12),
            steel.lit(-0.22),
        );
        let top = cy + s * 0.21;
        for side in [-1.0, 1.0] {
            self.shaded(
                rounded(
                    x + side * s * 0.29 - s * 0.045,
                    top + s * 0.05,
                    s * 0.09,
                    self.h,
                    s * 0.045,
                ),
                steel,
                steel.lit(-0.16),
            );
        }
        self.shaded(
            rounded(x - s * 0.24, top, s * 0.48, self.h - top + s * 0.2, s * 0.07),
            cloth.lit(0.05),
            cloth.lit(-0.12),
        );
        self.area(
            rounded(x - s * 0.12, top + s * 0.07, s * 0.24, s * 0.13, s * 0.02),
            tone(0.25, 0.03, 250.0),
        );
        for (i, dx) in [-0.075, -0.025, 0.025, 0.075].into_iter().enumerate() {
            let hue = [27.0, 88.0, 150.0, 240.0].get(i).copied().unwrap_or(27.0);
            self.area(
                circle(x + s * dx, top + s * 0.135, s * 0.017),
                tone(0.75, 0.16, hue),
            );
        }
        self.line(
            polyline(&[(x, y - s * 0.18), (x, y - s * 0.28)]),
            steel.lit(-0.2),
            0.012,
        );
        self.glow(x, y - s * 0.29, s * 0.10, tone(0.75, 0.18, 27.0), 0.6);
        self.area(circle(x, y - s * 0.29, s * 0.026), tone(0.65, 0.2, 27.0));
        for side in [-1.0, 1.0] {
            self.area(
                rounded(
                    x + side * s * 0.235 - s * 0.03,
                    y - s * 0.06,
                    s * 0.06,
                    s * 0.13,
                    s * 0.02,
                ),
                steel.lit(-0.15),
            );
        }
        let round = s * self.dice.range(0.035, 0.13);
        self.shaded(
            rounded(x - s * 0.225, y - s * 0.19, s * 0.45, s * 0.37, round),
            steel.lit(0.08),
            steel.lit(-0.10),
        );
        self.area(
            rounded(x - s * 0.175, y - s * 0.115, s * 0.35, s * 0.215, s * 0.06),
            tone(0.22, 0.04, 260.0),
        );
        let glowing = tone(0.87, 0.15, brief.accent_hue + 120.0);
        for side in [-1.0, 1.0] {
            let ex = x + side * s * 0.085 + look;
            self.glow(ex, y - s * 0.02, s * 0.08, glowing, 0.6);
            self.mark_lamp(
                rounded(ex - s * 0.028, y - s * 0.06, s * 0.056, s * 0.08, s * 0.026),
                glowing,
            );
        }
        let mut smile = PathBuilder::new();
        smile.move_to(x - s * 0.05, y + s * 0.05);
        smile.quad_to(x, y + s * 0.095, x + s * 0.05, y + s * 0.05);
        if let Some(path) = smile.finish() {
            self.pen(&path, glowing, s * 0.011);
        }
    }

    fn mark_lamp(&mut self, path: Option<Path>, t: Tone) {
        if let Some(path) = path {
            self.flood(&path, t, t);
        }
    }

    fn person(&mut self, brief: &Brief, x: f32, cy: f32, cloth: Tone, look: f32) {
        let s = self.unit;
        let y = cy - s * 0.01;
        let skin = tone(self.dice.range(0.50, 0.86), 0.065, self.dice.range(45.0, 62.0));
        let hair = tone(
            self.dice.range(0.22, 0.55),
            self.dice.range(0.02, 0.11),
            self.dice.range(30.0, 75.0),
        );
        let style = self.dice.count(0, 3);
        if style == 1 {
            self.area(
                rounded(x - s * 0.20, y - s * 0.20, s * 0.40, s * 0.46, s * 0.18),
                hair.lit(-0.03),
            );
        }
        if style == 2 {
            self.area(circle(x, y - s * 0.245, s * 0.075), hair);
        }
        self.area(
            rounded(x - s * 0.06, y + s * 0.10, s * 0.12, s * 0.16, s * 0.03),
            skin.lit(-0.07),
        );
        self.area(
            polygon(&[
                (x - s * 0.09, y + s * 0.195),
                (x + s * 0.09, y + s * 0.195),
                (x, y + s * 0.30),
            ]),
            skin.lit(-0.05),
        );
        for side in [-1.0, 1.0] {
            self.area(
                circle(x + side * s * 0.165, y + s * 0.01, s * 0.034),
                skin.lit(-0.05),
            );
        }
        self.shaded(
            rounded(x - s * 0.165, y - s * 0.19, s * 0.33, s * 0.38, s * 0.16),
            skin.lit(0.03),
            skin.lit(-0.03),
        );
        let fringe = self.dice.sign();
        let mut cap = PathBuilder::new();
        cap.move_to(x - s * 0.185, y - s * 0.01);
        cap.cubic_to(
            x - s * 0.22,
            y - s * 0.29,
            x + s * 0.22,
            y - s * 0.29,
            x + s * 0.185,
            y - s * 0.01,
        );
        cap.quad_to(
            x + s * 0.15,
            y - s * 0.08,
            x + fringe * s * 0.05 + s * 0.05,
            y - s * 0.125,
        );
        cap.quad_to(x - s * 0.13, y - s * 0.10, x - s * 0.185, y - s * 0.01);
        cap.close();
        self.area(cap.finish(), hair);
        if style == 3 {
            self.area(
                rounded(x - s * 0.205, y - s * 0.135, s * 0.41, s * 0.055, s * 0.025),
                cloth.lit(-0.08),
            );
            self.area(wedge(x, y - s * 0.115, s * 0.185, PI, TAU), cloth.turned(20.0));
            self.area(circle(x, y - s * 0.31, s * 0.035), tone(0.94, 0.03, 80.0));
        }
        self.eyes(x, y + s * 0.005, s * 0.068, s * 0.0185, look, None);
        for side in [-1.0, 1.0] {
            let bx = x + side * s * 0.068;
            self.line(
                polyline(&[(bx - s * 0.027, y - s * 0.042), (bx + s * 0.027, y - s * 0.046)]),
                hair.lit(-0.05),
                0.009,
            );
            self.mark_soft(
                circle(x + side * s * 0.105, y + s * 0.062, s * 0.026),
                tone(0.70, 0.14, 20.0),
            );
        }
        let mut nose = PathBuilder::new();
        nose.move_to(x, y + s * 0.02);
        nose.quad_to(x + s * 0.022, y + s * 0.06, x - s * 0.004, y + s * 0.062);
        self.line(nose.finish(), skin.lit(-0.18), 0.007);
        let mut smile = PathBuilder::new();
        smile.move_to(x - s * 0.045, y + s * 0.098);
        smile.quad_to(x, y + s * 0.138, x + s * 0.045, y + s * 0.098);
        self.line(smile.finish(), tone(0.42, 0.12, 22.0), 0.009);
        if self.dice.chance(0.3) {
            for side in [-1.0, 1.0] {
                self.line(
                    circle(x + side * s * 0.068, y + s * 0.005, s * 0.048),
                    brief.accent(150.0).lit(-0.35),
                    0.007,
                );
            }
            self.line(
                polyline(&[(x - s * 0.02, y), (x + s * 0.02, y)]),
                brief.accent(150.0).lit(-0.35),
                0.007,
            );
        }
    }

    fn scene_bauhaus(&mut self, brief: &Brief) {
        let paper = if brief.is_dark() {
            tone(0.22, 0.03, brief.hue)
        } else {
            tone(0.94, 0.025, 85.0)
        };
        self.backdrop([paper, paper, paper]);
        let inks = [
            tone(0.60, 0.18, brief.accent_hue),
            tone(0.45, 0.12, brief.hue),
            tone(0.82, 0.13, brief.accent_hue + 60.0),
            tone(0.26, 0.03, brief.hue),
            tone(0.72, 0.09, brief.far_hue),
        ];
        if self.dice.chance(0.5) {
            self.tiles(&inks, paper)
        } else {
            self.composition(&inks, paper)
        }
    }

    fn tiles(&mut self, inks: &[Tone], paper: Tone) {
        let across = f32::from(self.dice.count(4, 5));
        let cell = self.unit / across;
        let (columns, rows) = (
            whole_u16((self.w / cell).ceil()),
            whole_u16((self.h / cell).ceil()),
        );
        for row in 0..rows {
            for column in 0..columns {
                let (x, y) = (f32::from(column) * cell, f32::from(row) * cell);
                let back = self.ink_of(inks, paper);
                let front = self.other_ink(inks, back);
                self.area(rect(x, y, cell + 0.5, cell + 0.5), back);
                let turn = f32::from(self.dice.count(0, 3)) * PI / 2.0;
                let (mx, my) = (x + cell / 2.0, y + cell / 2.0);
                let corner = (
                    mx + (turn + PI * 1.25).cos() * cell * 0.707,
                    my + (turn + PI * 1.25).sin() * cell * 0.707,
                );
                match self.dice.count(0, 6) {
                    0 | 1 => {
                        self.area(wedge(corner.0, corner.1, cell, turn, turn + PI / 2.0), front);
                        let third = self.other_ink(inks, front);
                        self.area(
                            wedge(corner.0, corner.1, cell * 0.5, turn, turn + PI / 2.0),
                            third,
                        );
                    }
                    2 => {
                        self.area(circle(mx, my, cell * 0.40), front);
                        let third = self.other_ink(inks, front);
                        self.area(circle(mx, my, cell * 0.17), third);
                    }
                    3 => self.area(wedge(mx, my, cell * 0.5, turn, turn + PI), front),
                    4 => {
                        for (i, _) in steps(4) {
                            self.area(
                                rect(x, y + cell * (f32::from(i) * 0.25 + 0.06), cell, cell * 0.12),
                                front,
                            );
                        }
                    }
                    5 => {
                        let across = (x + cell, y + cell);
                        let points = if turn < 2.0 {
                            [(x, y), (x + cell, y), across]
                        } else {
                            [(x, y), across, (x, y + cell)]
                        };
                        self.area(polygon(&points), front);
                    }
                    _ => {
                        for (i, _) in steps(9) {
                            let (a, b) = (f32::from(i % 3), f32::from(i / 3));
                            self.area(
                                circle(
                                    x + cell * (0.2 + a * 0.3),
                                    y + cell * (0.2 + b * 0.3),
                                    cell * 0.08,
                                ),
                                front,
                            );
                        }
                    }
                }
            }
        }
    }

    fn ink_of(&mut self, inks: &[Tone], fallback: Tone) -> Tone {
        let last = u16::try_from(inks.len()).unwrap_or(u16::MAX);
        inks.get(usize::from(self.dice.count(0, last)))
            .copied()
            .unwrap_or(fallback)
    }

    fn other_ink(&mut self, inks: &[Tone], not: Tone) -> Tone {
        let fresh: Vec<Tone> = inks.iter().copied().filter(|ink| *ink != not).collect();
        let last = u16::try_from(fresh.len().saturating_sub(1)).unwrap_or(0);
        fresh
            .get(usize::from(self.dice.count(0, last)))
            .copied()
            .unwrap_or(not)
    }

    fn composition(&mut self, inks: &[Tone], paper: Tone) {
        let s = self.unit;
        let (cx, cy) = (
            self.w * self.dice.range(0.36, 0.64),
            self.h * self.dice.range(0.36, 0.58),
        );
        let lean = self.dice.range(0.25, 0.75) * self.dice.sign();
        let bar = |x: f32, y: f32, length: f32, thick: f32, angle: f32| {
            let (dx, dy) = (angle.cos(), angle.sin());
            let at = |a: f32, b: f32| {
                (
                    x + dx * a * length - dy * b * thick,
                    y + dy * a * length + dx * b * thick,
                )
            };
            polygon(&[at(-0.5, -0.5), at(0.5, -0.5), at(0.5, 0.5), at(-0.5, 0.5)])
        };
        let ink = |i: usize| inks.get(i).copied().unwrap_or(paper);
        self.area(bar(cx, cy + s * 0.22, s * 3.0, s * 0.26, lean), ink(4));
        let r = s * self.dice.range(0.22, 0.30);
        self.area(circle(cx, cy, r), ink(0));
        self.area(wedge(cx, cy, s * 0.34, lean, lean + PI), ink(1));
        self.area(circle(cx, cy, s * 0.11), paper);
        for (i, _) in steps(5) {
            let shift = s * (0.05 + 0.045 * f32::from(i));
            self.area(
                bar(
                    cx - shift * lean.sin(),
                    cy - s * 0.38 + shift * lean.cos(),
                    s * (1.1 - 0.15 * f32::from(i)),
                    s * 0.016,
                    lean,
                ),
                ink(3),
            );
        }
        let side = self.dice.sign();
        let (tx, ty) = (cx + side * s * 0.27, cy + s * 0.20);
        self.area(
            polygon(&[
                (tx, ty - s * 0.16),
                (tx + s * 0.17, ty + s * 0.14),
                (tx - s * 0.17, ty + s * 0.14),
            ]),
            ink(2),
        );
        let (gx, gy) = (cx - side * s * 0.36, cy + s * 0.16);
        for (i, _) in steps(16) {
            let (a, b) = (f32::from(i % 4), f32::from(i / 4));
            self.area(
                circle(
                    gx + s * (a * 0.05 - 0.075),
                    gy + s * (b * 0.05 - 0.075),
                    s * 0.014,
                ),
                ink(3),
            );
        }
        let (ax, ay) = (cx + side * s * 0.30, cy - s * 0.26);
        for (i, _) in steps(3) {
            let r = s * (0.05 + 0.045 * f32::from(i));
            self.line(wedge(ax, ay, r, 0.0, TAU), ink(usize::from(i)), 0.014);
        }
        self.area(circle(ax, ay, s * 0.035), ink(0));
        for (i, _) in steps(4) {
            let block = s * 0.07;
            let x = cx - side * s * 0.42 + block * f32::from(i % 2);
            let y = cy - s * 0.36 + block * f32::from(i / 2);
            let t = if i % 3 == 0 { ink(3) } else { ink(2) };
            self.area(rect(x, y, block, block), t);
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate"
)]
fn whole_u16(value: f32) -> u16 {
    value.round() as u16
}

// ------------------------------------------------------------------------------------------------ the caption

/// Letters of one size, enlarged or reduced from the nearest raster of the font.
#[derive(Debug, Clone, Copy)]
struct Letters {
    raster: RasterHeight,
    weight: FontWeight,
    scale: f32,
}

impl Letters {
    /// The letters whose line height comes nearest to `wanted` pixels.
    fn near(wanted: f32, weight: FontWeight) -> Self {
        let sizes = [
            (8.0, RasterHeight::Size16, 0.5),
            (10.0, RasterHeight::Size20, 0.5),
            (12.0, RasterHeight::Size24, 0.5),
            (16.0, RasterHeight::Size16, 1.0),
            (20.0, RasterHeight::Size20, 1.0),
            (24.0, RasterHeight::Size24, 1.0),
            (32.0, RasterHeight::Size32, 1.0),
            (48.0, RasterHeight::Size24, 2.0),
            (64.0, RasterHeight::Size32, 2.0),
            (96.0, RasterHeight::Size32, 3.0),
        ];
        let mut best = (f32::MAX, RasterHeight::Size16, 1.0);
        for (size, raster, scale) in sizes {
            let miss = f32::abs(size - wanted);
            if miss < best.0 {
                best = (miss, raster, scale);
            }
        }
        Self {
            raster: best.1,
            weight,
            scale: best.2,
        }
    }

    fn advance(self) -> f32 {
        float(u32_of(get_raster_width(self.weight, self.raster))) * self.scale
    }

    fn line(self) -> f32 {
        float(u32_of(self.raster.val())) * self.scale
    }

    fn write(self, map: &mut Pixmap, x: f32, y: f32, text: &str, t: Tone) {
        let mut left = x;
        for letter in text.chars() {
            self.write_one(map, left, y, letter, t);
            left += self.advance();
        }
    }

    fn write_one(self, map: &mut Pixmap, x: f32, y: f32, letter: char, t: Tone) {
        let found = get_raster(letter, self.weight, self.raster);
        let Some(glyph) = found.or_else(|| get_raster('?', self.weight, self.raster)) else {
            return;
        };
        let rows = glyph.raster();
        let colour = t.colour();
        let ink = [
            colour.red() * 255.0,
            colour.green() * 255.0,
            colour.blue() * 255.0,
        ];
        let (wide, tall) = (whole(self.advance()), whole(self.line()));
        let (left, top, sheet_w) = (whole(x), whole(y), map.width());
        let pixels = map.pixels_mut();
        for dy in 0..tall {
            for dx in 0..wide {
                let cover = self.cover(rows, dx, dy);
                let (px, py) = (left + dx, top + dy);
                if cover <= 0.0 || px >= sheet_w {
                    continue;
                }
                let at = usize_of(py) * usize_of(sheet_w) + usize_of(px);
                if let Some(pixel) = pixels.get_mut(at) {
                    let mix = |under: u8, over: f32| byte(lerp(f32::from(under), over, cover));
                    let [r, g, b] = ink;
                    let mixed = PremultipliedColorU8::from_rgba(
                        mix(pixel.red(), r),
                        mix(pixel.green(), g),
                        mix(pixel.blue(), b),
                        255,
                    );
                    if let Some(mixed) = mixed {
                        *pixel = mixed;
                    }
                }
            }
        }
    }

    /// How much ink falls on a pixel of a letter, from 0 to 1.
    fn cover(self, rows: &[&[u8]], dx: u32, dy: u32) -> f32 {
        let at = |x: f32, y: f32| {
            if x < 0.0 || y < 0.0 {
                return 0.0;
            }
            let row = rows.get(usize_of(whole(y)));
            f32::from(
                row.and_then(|row| row.get(usize_of(whole(x))))
                    .copied()
                    .unwrap_or(0),
            ) / 255.0
        };
        let (x, y) = (float(dx), float(dy));
        if self.scale < 1.0 {
            let (x, y) = (x * 2.0, y * 2.0);
            let mean = (at(x, y) + at(x + 1.0, y) + at(x, y + 1.0) + at(x + 1.0, y + 1.0)) / 4.0;
            // Averaging pales thin strokes; this gives them their weight back.
            return (mean * 1.5).min(1.0);
        }
        if self.scale <= 1.0 {
            return at(x, y);
        }
        let (sx, sy) = ((x + 0.5) / self.scale - 0.5, (y + 0.5) / self.scale - 0.5);
        let (x0, y0) = (sx.floor(), sy.floor());
        let (fx, fy) = (sx - x0, sy - y0);
        let top = lerp(at(x0, y0), at(x0 + 1.0, y0), fx);
        let low = lerp(at(x0, y0 + 1.0), at(x0 + 1.0, y0 + 1.0), fx);
        // Steepening the slope keeps enlarged edges crisp.
        ((lerp(top, low, fy) - 0.5) * 1.6 + 0.5).clamp(0.0, 1.0)
    }
}

/// The band below a picture: the prompt in a few lines and the seed.
#[derive(Debug, Clone)]
struct Caption {
    lines: Vec<String>,
    mark: String,
    letters: Letters,
    small: Letters,
    pad: f32,
    height: u32,
}

impl Caption {
    fn lay_out(prompt: &str, seed: u64, width: u32, height: u32) -> Self {
        let (w, h) = (float(width), float(height));
        let wanted = ((w * h).sqrt() * 0.030 + 4.0).min(w * 0.075).min(h * 0.125);
        let letters = Letters::near(wanted, FontWeight::Regular);
        let small = Letters::near(wanted * 0.8, FontWeight::Regular);
        let pad = (letters.line() * 0.6).round().min(w * 0.06);
        let room = w - pad * 2.0;
        let columns = usize_of(whole((room / letters.advance()).floor()));
        let rows = if h < letters.line() * 6.0 {
            1
        } else if w < h * 0.6 || wanted < 9.0 {
            3
        } else {
            2
        };
        let rows = if h < letters.line() * 9.0 {
            rows.min(2)
        } else {
            rows
        };
        let mark = shorten_mark(seed, room * 0.5, small.advance());
        let taken = float(u32_of(mark.chars().count())) * small.advance() + letters.advance();
        let last = if mark.is_empty() {
            columns
        } else {
            usize_of(whole(((room - taken) / letters.advance()).floor()))
        };
        let text = printable(prompt);
        let lines = if columns < 3 {
            Vec::new()
        } else {
            wrap(&text, columns, last, rows)
        };
        let band = if lines.is_empty() && mark.is_empty() {
            0.0
        } else {
            letters.line() * float(u32_of(lines.len().max(1))) + pad * 1.3
        };
        Self {
            lines,
            mark,
            letters,
            small,
            pad,
            height: whole(band).min(height / 2),
        }
    }

    fn write_on(&self, map: &mut Pixmap, brief: &Brief) {
        if self.height == 0 {
            return;
        }
        let (w, top) = (float(map.width()), map.height() - self.height);
        fill_rows(map, top, brief.band());
        let rule = (float(self.height) * 0.035).clamp(1.0, 6.0);
        if let Some(line) = Rect::from_xywh(0.0, float(top), w, rule) {
            let paint = Paint {
                shader: Shader::SolidColor(brief.accent(0.0).colour()),
                anti_alias: false,
                ..Paint::default()
            };
            map.fill_rect(line, &paint, Transform::identity(), None);
        }
        let mut y = float(top) + self.pad * 0.65 + rule * 0.5;
        for line in &self.lines {
            self.letters
                .write(map, self.pad, y, line, tone(0.95, 0.012, 85.0));
            y += self.letters.line();
        }
        let x = w - self.pad - float(u32_of(self.mark.chars().count())) * self.small.advance();
        let last = y - self.letters.line() + (self.letters.line() - self.small.line()) * 0.62;
        let last = if self.lines.is_empty() { y } else { last };
        self.small.write(
            map,
            x.max(0.0),
            last,
            &self.mark,
            tone(0.70, 0.03, brief.accent_hue),
        );
    }
}

/// "seed 7", with the middle of a long number left out, or nothing where it doesn't fit.
fn shorten_mark(seed: u64, room: f32, advance: f32) -> String {
    let digits = seed.to_string();
    let (head, tail) = (
        digits.get(..4).unwrap_or(&digits),
        digits.get(digits.len().saturating_sub(4)..),
    );
    let short = format!("seed {head}..{}", tail.unwrap_or_default());
    let options = [
        format!("seed {digits}"),
        if digits.len() > 8 {
            short
        } else {
            format!("#{digits}")
        },
    ];
    let fits = |text: &String| float(u32_of(text.len())) * advance <= room;
    options.into_iter().find(fits).unwrap_or_default()
}

/// The prompt in characters that the font has.
fn printable(prompt: &str) -> String {
    let mut out = String::with_capacity(prompt.len());
    for c in prompt.chars() {
        match c {
            '\u{2018}' | '\u{2019}' | '\u{201a}' => out.push('\''),
            '\u{201c}'..='\u{201e}' => out.push('"'),
            '\u{2010}'..='\u{2015}' => out.push('-'),
            '\u{2026}' => out.push_str("..."),
            c if c.is_whitespace() => out.push(' '),
            c if get_raster(c, FontWeight::Regular, RasterHeight::Size16).is_some() => out.push(c),
            _ => out.push('?'),
        }
        // What no caption can hold isn't worth laying out.
        if out.len() > 4000 {
            break;
        }
    }
    out
}

/// Breaks a text into at most `rows` lines of `columns` letters; the last line has `last` letters. What is cut ends in
/// "...".
fn wrap(text: &str, columns: usize, last: usize, rows: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        words.extend(letters.chunks(columns.max(1)).map(|piece| piece.iter().collect()));
    }
    let len = |text: &str| text.chars().count();
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let gap = usize::from(!line.is_empty());
        if len(&line) + gap + len(&word) <= columns {
            if gap == 1 {
                line.push(' ');
            }
            line.push_str(&word);
            continue;
        }
        lines.push(std::mem::take(&mut line));
        if lines.len() == rows {
            let rest = words.peek().is_some() || !word.is_empty();
            return finish_lines(lines, last, rest);
        }
        line = word;
    }
    if !line.is_empty() {
        // The seed needs its place on the last line; a full one moves its last word down while there are rows.
        if len(&line) > last
            && lines.len() + 1 < rows
            && let Some((head, tail)) = line.rsplit_once(' ')
        {
            lines.push(head.to_owned());
            line = tail.to_owned();
        }
        lines.push(line);
    }
    finish_lines(lines, last, false)
}

fn finish_lines(mut lines: Vec<String>, last: usize, more: bool) -> Vec<String> {
    if let Some(line) = lines.last_mut()
        && (more || line.chars().count() > last)
    {
        let keep = last.saturating_sub(3);
        let mut kept: String = line.chars().take(keep).collect();
        if line.chars().count() > keep
            && let Some((head, _)) = kept.rsplit_once(' ')
            && head.chars().count() * 2 > keep
        {
            kept = head.to_owned();
        }
        *line = format!("{}...", kept.trim_end_matches([' ', ',', '.', ';']));
    }
    lines
}

/// Fills all rows from `top` down.
fn fill_rows(map: &mut Pixmap, top: u32, t: Tone) {
    let (w, h) = (float(map.width()), float(map.height()));
    if let Some(band) = Rect::from_xywh(0.0, float(top), w, (h - float(top)).max(0.5)) {
        let paint = Paint {
            shader: Shader::SolidColor(t.colour()),
            anti_alias: false,
            ..Paint::default()
        };
        map.fill_rect(band, &paint, Transform::identity(), None);
    }
}

/// The mean colour of a square block, as red, green, blue from 0 to 255. At most 16 samples are read.
fn block_mean(map: &Pixmap, x: u32, y: u32, block: u32) -> (f32, f32, f32) {
    let step = (block / 4).max(1);
    let (mut sum, mut count) = ((0.0, 0.0, 0.0), 0.0f32);
    let mut dy = 0;
    while dy < block {
        let mut dx = 0;
        while dx < block {
            if let Some(pixel) = map.pixel(x + dx, y + dy) {
                sum.0 += f32::from(pixel.red());
                sum.1 += f32::from(pixel.green());
                sum.2 += f32::from(pixel.blue());
                count += 1.0;
            }
            dx += step;
        }
        dy += step;
    }
    let count = count.max(1.0);
    (sum.0 / count, sum.1 / count, sum.2 / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(png: &[u8]) -> Pixmap {
        Pixmap::decode_png(png).unwrap()
    }

    /// The share of pixels that differ visibly between two pictures of one size.
    fn difference(a: &[u8], b: &[u8]) -> f32 {
        let (a, b) = (open(a), open(b));
        assert_eq!((a.width(), a.height()), (b.width(), b.height()));
        let far = |x: u8, y: u8| x.abs_diff(y) > 6;
        let pairs = a.pixels().iter().zip(b.pixels());
        let count = pairs
            .filter(|(p, q)| far(p.red(), q.red()) || far(p.green(), q.green()) || far(p.blue(), q.blue()))
            .count();
        float(u32_of(count)) / float(a.width() * a.height())
    }

    #[test]
    fn same_arguments_same_bytes() {
        for prompt in [
            "a lighthouse at dusk, watercolour",
            "cat, oil",
            "a photo of a city",
            "",
        ] {
            assert_eq!(
                draw(prompt, 7, 160, 160).unwrap(),
                draw(prompt, 7, 160, 160).unwrap()
            );
            assert_eq!(
                preview(prompt, 7, 512, 512, 0.4).unwrap(),
                preview(prompt, 7, 512, 512, 0.4).unwrap()
            );
        }
    }

    #[test]
    fn header_and_size_are_those_of_the_png_asked_for() {
        for (w, h) in [
            (1, 1),
            (1, 40),
            (40, 1),
            (64, 64),
            (65, 127),
            (640, 64),
            (64, 640),
            (300, 200),
        ] {
            for prompt in [
                "waves, ink",
                "ridges of a moor, woodcut",
                "night",
                "city, pixel art",
                "neon forest",
                "garden",
                "robot",
                "cat",
                "person",
                "poster",
                "planet",
                "desert, blueprint",
                "tea, oil",
                "lake in snow, watercolour",
            ] {
                let png = draw(prompt, 3, w, h).unwrap();
                assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
                let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
                assert_eq!((side(16), side(20)), (w, h), "{prompt}");
            }
        }
    }

    #[test]
    fn sides_are_bounded() {
        for (w, h) in [(0, 64), (64, 0), (MAX_SIDE + 1, 64), (64, u32::MAX)] {
            assert!(
                matches!(draw("x", 1, w, h), Err(DrawError::Size { width, height }) if (width, height) == (w, h))
            );
            assert!(matches!(preview("x", 1, w, h, 0.5), Err(DrawError::Size { .. })));
        }
        assert!(draw("x", 1, MAX_SIDE, 16).is_ok());
    }

    #[test]
    fn different_prompts_differ_in_a_third_of_their_pixels() {
        let prompts = [
            "a lighthouse at dusk, watercolour",
            "a lighthouse at dawn, watercolour",
            "a lighthouse at dusk, ink",
            "waves of the sea",
            "a mountain lake",
            "a portrait of a cat",
            "a portrait of a dog",
            "abstract poster",
            "geometric poster",
            "hello",
            "world",
        ];
        let pictures: Vec<Vec<u8>> = prompts
            .iter()
            .map(|prompt| draw(prompt, 1, 128, 128).unwrap())
            .collect();
        for (i, a) in pictures.iter().enumerate() {
            for (j, b) in pictures.iter().enumerate().skip(i + 1) {
                let share = difference(a, b);
                assert!(share > 0.3, "{} / {}: {share}", prompts[i], prompts[j]);
            }
        }
    }

    #[test]
    fn another_seed_is_another_composition() {
        for prompt in [
            "sea", "moor", "night", "city", "forest", "garden", "robot", "poster", "planet", "desert", "tea",
        ] {
            let share = difference(
                &draw(prompt, 1, 128, 128).unwrap(),
                &draw(prompt, 2, 128, 128).unwrap(),
            );
            assert!(share > 0.15, "{prompt}: {share}");
        }
    }

    #[test]
    fn words_choose_subject_and_medium() {
        for (prompt, subject, medium) in [
            ("Seas of fog in watercolor", Subject::Waves, Medium::Watercolour),
            ("a season in the city", Subject::Skyline, Medium::Gouache),
            ("a starry night over a lake", Subject::Night, Medium::Gouache),
            ("midnight at sea", Subject::Waves, Medium::Gouache),
            (
                "a poster of pine trees, linocut",
                Subject::Forest,
                Medium::Woodcut,
            ),
            (
                "a city with a black cat",
                Subject::Character(Being::Cat),
                Medium::Gouache,
            ),
        ] {
            let brief = Brief::read(prompt, 1);
            assert_eq!((brief.subject, brief.medium), (subject, medium), "{prompt}");
        }
    }

    #[test]
    fn previews_are_small_and_get_closer_to_the_end() {
        let png = preview("a mountain lake", 5, 1024, 512, 0.5).unwrap();
        assert_eq!((open(&png).width(), open(&png).height()), (128, 64));
        let end = preview("a mountain lake", 5, 512, 512, 1.0).unwrap();
        let at = |fraction| difference(&preview("a mountain lake", 5, 512, 512, fraction).unwrap(), &end);
        assert!(at(0.1) > at(0.95));
        assert!(preview("x", 1, 3, 1, f32::NAN).is_ok());
    }

    #[test]
    fn captions_are_wrapped_and_cut() {
        assert_eq!(wrap("one two three", 7, 7, 2), ["one two", "three"]);
        assert_eq!(wrap("one two three four", 7, 7, 2), ["one two", "thre..."]);
        assert_eq!(wrap("abcdefghij", 4, 4, 3), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 10, 10, 2), Vec::<String>::new());
        assert_eq!(printable("“caf\u{e9}” \u{65e5} a\nb…"), "\"caf\u{e9}\" ? a b...");
        assert_eq!(shorten_mark(7, 100.0, 5.0), "seed 7");
        assert_eq!(shorten_mark(u64::MAX, 100.0, 5.0), "seed 1844..1615");
        assert_eq!(shorten_mark(7, 9.0, 5.0), "");
    }
}
