//! The words of a prompt that choose subject, medium, light, props, trees and colours.

/// How a picture is made; chosen by words such as "watercolour".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Medium {
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

impl Medium {
    /// Made of lines and flat areas, where mist, blushes and reflections would look wrong.
    pub(super) fn is_line_art(self) -> bool {
        matches!(self, Self::Ink | Self::Woodcut | Self::Blueprint)
    }

    /// Whether light can fade out into its surroundings.
    pub(super) fn has_soft_light(self) -> bool {
        !self.is_line_art() && self != Self::Pixel
    }

    /// Drawn with light lines on a dark ground.
    pub(super) fn is_light_on_dark(self) -> bool {
        matches!(self, Self::Neon | Self::Blueprint)
    }
}

/// What a picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
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

impl Subject {
    /// Whether the picture is of things rather than of land and air.
    pub(super) fn is_thing(self) -> bool {
        matches!(
            self,
            Self::Garden | Self::Character(_) | Self::Bauhaus | Self::Planet | Self::Table
        )
    }
}

/// Who looks out of a portrait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Being {
    Cat,
    Bear,
    Robot,
    Person,
    Owl,
}

/// Hour and weather.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Light {
    Day,
    Dusk,
    Night,
    Mist,
}

/// What a forest is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tree {
    Conifer,
    Broadleaf,
    Birch,
}

/// Something small that a prompt names beside its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prop {
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

/// Of several media the first in this order is taken, wherever it stands in the prompt.
pub(super) const MEDIA: &[(Medium, &str)] = &[
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

/// Of several lights the first in this order is taken.
pub(super) const LIGHTS: &[(Light, &str)] = &[
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

pub(super) const PROPS: &[(Prop, &str)] = &[
    (Prop::Lighthouse, "lighthouse keeper beacon"),
    (Prop::Boat, "boat ship sail sailing yacht sailor harbour harbor"),
    (Prop::House, "house cottage cabin hut farm barn village home"),
    (Prop::Birds, "bird gull seagull swallow crane geese"),
    (Prop::Balloon, "balloon airship zeppelin"),
    (Prop::Rain, "rain rainy storm stormy thunder drizzle"),
    (Prop::Snow, "snow snowy winter blizzard snowfall"),
];

pub(super) const TREES: &[(Tree, &str)] = &[
    (Tree::Conifer, "pine fir spruce conifer"),
    (Tree::Broadleaf, "oak maple beech apple"),
    (Tree::Birch, "birch aspen"),
];

/// Words for colours and their hue in degrees.
pub(super) const HUES: &[(f32, &str)] = &[
    (25.0, "red crimson scarlet ruby"),
    (55.0, "orange amber copper rust terracotta"),
    (92.0, "yellow gold honey"),
    (145.0, "green emerald moss olive"),
    (195.0, "teal turquoise cyan aqua"),
    (255.0, "blue indigo navy azure cobalt"),
    (305.0, "purple violet lavender heather lilac"),
    (355.0, "pink magenta rose coral"),
];

/// Whether a word of the prompt is one of the names, also in the plural.
pub(super) fn named(words: &[&str], names: &str) -> bool {
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
pub(super) fn subject_of(words: &[&str]) -> Option<Subject> {
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

/// The value of the first row of a table that a word of the prompt names.
pub(super) fn pick<T: Copy>(words: &[&str], table: &[(T, &str)]) -> Option<T> {
    table
        .iter()
        .find(|(_, names)| named(words, names))
        .map(|(value, _)| *value)
}
