//! The price catalog: a file that is compiled in, an optional file that overrides it, and what makes one invalid.

use std::collections::HashMap;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer};

/// The catalogs that are compiled in, one file per provider.
const BUILT_IN: &[&str] = &[
    include_str!("catalog/elevenlabs.toml"),
    include_str!("catalog/fal_ai.toml"),
    include_str!("catalog/gemini.toml"),
    include_str!("catalog/kie.toml"),
    include_str!("catalog/meshy.toml"),
    include_str!("catalog/minimax.toml"),
    include_str!("catalog/openai.toml"),
    include_str!("catalog/replicate.toml"),
    include_str!("catalog/reve.toml"),
    include_str!("catalog/sketch.toml"),
    include_str!("catalog/together.toml"),
    include_str!("catalog/xai.toml"),
];
/// Name of the model whose entry is the price of a provider's credit.
const CREDIT: &str = "*";
/// A rung may differ from the base price by this factor at most; more means that a unit was mistaken.
const WIDEST: u32 = 50;

/// What one unit of a price is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Unit {
    /// One picture.
    #[serde(rename = "image")]
    Image,
    /// One generation, whatever it gives.
    #[serde(rename = "generation")]
    Generation,
    /// One task of the provider.
    #[serde(rename = "task")]
    Task,
    /// A megapixel of output.
    #[serde(rename = "megapixel")]
    Megapixel,
    /// The first megapixel at one price, each further at another.
    #[serde(rename = "megapixel_tiered")]
    MegapixelTiered,
    /// A second of video.
    #[serde(rename = "video_second")]
    VideoSecond,
    /// A second of the video that is worked on.
    #[serde(rename = "input_video_second")]
    InputVideoSecond,
    /// A second of audio.
    #[serde(rename = "audio_second")]
    AudioSecond,
    /// A second that the provider's machine computes.
    #[serde(rename = "compute_second")]
    ComputeSecond,
    /// A minute of audio.
    #[serde(rename = "audio_minute")]
    AudioMinute,
    /// A thousand characters.
    #[serde(rename = "1k_chars")]
    KiloChars,
    /// A million characters.
    #[serde(rename = "1m_chars")]
    MegaChars,
    /// A million tokens, input and output at their own prices.
    #[serde(rename = "1m_tokens")]
    MegaTokens,
    /// A credit of the provider.
    #[serde(rename = "credit")]
    Credit,
}

/// How megapixels are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rounding {
    /// As they are.
    #[default]
    Exact,
    /// Up to the next whole one.
    Ceil,
}

/// A price for one point of a model's ladder.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rung {
    /// Name of the rung.
    pub id: String,
    /// The resolution it is for; absent when the ladder has none.
    pub resolution: Option<String>,
    /// The quality it is for; absent when the ladder has none.
    pub quality: Option<String>,
    /// Whether it is with audio; absent when the ladder does not tell.
    pub audio: Option<bool>,
    /// Price of one unit.
    #[serde(deserialize_with = "decimal")]
    pub price: Decimal,
}

/// Shortest and longest clip, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clip {
    /// Shortest.
    #[serde(deserialize_with = "decimal")]
    pub min: Decimal,
    /// Longest.
    #[serde(deserialize_with = "decimal")]
    pub max: Decimal,
}

/// A price on top, or in the place, of the ladder's.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Surcharge {
    /// Every reference picture beyond the free ones.
    InputImage {
        /// Price of one.
        #[serde(deserialize_with = "decimal")]
        price: Decimal,
        /// How many are free.
        #[serde(default)]
        free: u32,
    },
    /// A rate that replaces the price when there is an input video: over its seconds and the output's.
    InputVideoSecond {
        /// The rate.
        #[serde(deserialize_with = "decimal")]
        price: Decimal,
    },
    /// Something that may be charged per request and cannot be told from the parameters: it is named beside the price
    /// and never added to it.
    PerRequest {
        /// Its price.
        #[serde(deserialize_with = "decimal")]
        price: Decimal,
        /// What it is for.
        spec: String,
    },
}

/// The price of a model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// What one unit is.
    pub unit: Unit,
    /// The currency.
    #[serde(default = "usd")]
    pub currency: String,
    /// Price of one unit, when there is no ladder.
    #[serde(default, deserialize_with = "maybe_decimal")]
    pub price: Option<Decimal>,
    /// Input tokens.
    #[serde(default, deserialize_with = "maybe_decimal")]
    pub input: Option<Decimal>,
    /// Cached input tokens; absent means like other input.
    #[serde(default, deserialize_with = "maybe_decimal")]
    pub cached: Option<Decimal>,
    /// Output tokens.
    #[serde(default, deserialize_with = "maybe_decimal")]
    pub output: Option<Decimal>,
    /// First megapixel of a tiered price.
    #[serde(default, deserialize_with = "maybe_decimal")]
    pub first: Option<Decimal>,
    /// Each further megapixel.
    #[serde(default, deserialize_with = "maybe_decimal")]
    pub extra: Option<Decimal>,
    /// Pixels of a megapixel; absent means 1 048 576.
    pub megapixel: Option<u32>,
    /// How megapixels are counted.
    #[serde(default)]
    pub rounding: Rounding,
    /// Lengths that are sold.
    pub clip: Option<Clip>,
    /// Name of the rung for what a request leaves open.
    pub base: Option<String>,
    /// The ladder.
    #[serde(default, rename = "rung")]
    pub rungs: Vec<Rung>,
    /// Prices on top.
    #[serde(default, rename = "surcharge")]
    pub surcharges: Vec<Surcharge>,
    /// The published price is known to be wrong: decline.
    #[serde(default)]
    pub quote_wrong: bool,
    /// The published price is that of the plainest use only: what is asked beyond it is not in the price.
    #[serde(default)]
    pub spec_gap: bool,
    /// The day on which the price was last compared with its source.
    pub verified_at: Option<String>,
    /// Where the price was read.
    pub source: String,
}

fn usd() -> String {
    "USD".to_owned()
}
fn decimal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Decimal, D::Error> {
    // Text only: a number of the file would have been a float on the way.
    String::deserialize(deserializer)?
        .parse()
        .map_err(serde::de::Error::custom)
}
fn maybe_decimal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Decimal>, D::Error> {
    decimal(deserializer).map(Some)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u32,
    #[serde(default)]
    version: String,
    #[serde(default, rename = "entry")]
    entries: Vec<Entry>,
}

/// Why a catalog is refused.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The file cannot be read as a catalog.
    #[error("the price catalog is malformed: {0}")]
    Malformed(#[from] toml::de::Error),
    /// The file is of a schema that is not known.
    #[error("the price catalog has schema {0}, 1 is known")]
    Schema(u32),
    /// An entry cannot be right.
    #[error("the price of {key} is refused: {wrong}")]
    Entry {
        /// The provider and the model.
        key: String,
        /// What is wrong.
        wrong: String,
    },
}

/// All prices.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    entries: HashMap<(String, String), Entry>,
    versions: Vec<String>,
}

impl Catalog {
    /// The catalogs that are compiled in, with the entries of an override file in front of them.
    ///
    /// # Errors
    /// [`CatalogError`] names the entry that is refused.
    pub fn load(overrides: Option<&str>) -> Result<Self, CatalogError> {
        let mut catalog = Self::default();
        for text in BUILT_IN.iter().copied().chain(overrides) {
            catalog.put_in_front(text)?;
        }
        Ok(catalog)
    }

    /// Puts the entries of a file in front of what is there: an entry of the same provider and model is replaced.
    ///
    /// # Errors
    /// [`CatalogError`] names the entry that is refused; nothing has changed then.
    pub fn put_in_front(&mut self, text: &str) -> Result<(), CatalogError> {
        let file = Self::parse(text)?;
        self.entries.extend(file.entries);
        self.versions.extend(file.versions);
        Ok(())
    }

    /// Reads and checks one file.
    ///
    /// # Errors
    /// [`CatalogError`] names the entry that is refused.
    pub fn parse(text: &str) -> Result<Self, CatalogError> {
        let file: File = toml::from_str(text)?;
        if file.schema != 1 {
            return Err(CatalogError::Schema(file.schema));
        }
        let mut catalog = Self {
            entries: HashMap::new(),
            versions: vec![file.version],
        };
        for entry in file.entries {
            check(&entry).map_err(|wrong| CatalogError::Entry {
                key: format!("{}/{}", entry.provider, entry.model),
                wrong,
            })?;
            catalog.insert(entry);
        }
        Ok(catalog)
    }

    fn insert(&mut self, entry: Entry) {
        let key = (entry.provider.clone(), entry.model.clone());
        if let Some(known) = self.entries.get(&key) {
            // Two prices for one thing: an estimate must not be too low.
            tracing::warn!(provider = %key.0, model = %key.1, "two prices in one catalog, the dearer is used");
            if known.headline() >= entry.headline() {
                return;
            }
        }
        self.entries.insert(key, entry);
    }

    /// The entry of a model.
    #[must_use]
    pub fn get(&self, provider: &str, model: &str) -> Option<&Entry> {
        self.entries.get(&(provider.to_owned(), model.to_owned()))
    }

    /// The price of one of a provider's credits, when it is known: the entry of the model `*`.
    #[must_use]
    pub fn credit(&self, provider: &str) -> Option<Decimal> {
        let entry = self.get(provider, CREDIT)?;
        entry
            .price
            .filter(|_| entry.unit == Unit::Credit && entry.currency == "USD")
    }

    /// Versions of the files that it was read from.
    #[must_use]
    pub fn versions(&self) -> &[String] {
        &self.versions
    }
}

impl Entry {
    /// The rung for what a request leaves open.
    #[must_use]
    pub fn base_rung(&self) -> Option<&Rung> {
        let base = self.base.as_deref();
        self.rungs
            .iter()
            .find(|rung| Some(rung.id.as_str()) == base)
            .or_else(|| self.rungs.first())
    }

    fn headline(&self) -> Decimal {
        let own = self.price.or(self.output).or(self.first);
        own.or_else(|| self.base_rung().map(|rung| rung.price))
            .unwrap_or_default()
    }

    /// The price for people, for instance `0.04 USD / image`.
    #[must_use]
    pub fn label(&self) -> String {
        let unit = match self.unit {
            Unit::Image => "image",
            Unit::Generation => "generation",
            Unit::Task => "task",
            Unit::Megapixel | Unit::MegapixelTiered => "megapixel",
            Unit::VideoSecond | Unit::InputVideoSecond | Unit::AudioSecond | Unit::ComputeSecond => "second",
            Unit::AudioMinute => "minute",
            Unit::KiloChars => "1k characters",
            Unit::MegaChars => "1M characters",
            Unit::MegaTokens => "1M tokens",
            Unit::Credit => "credit",
        };
        let prices = self.rungs.iter().map(|rung| rung.price);
        let amount = match (self.input, self.output, prices.clone().min(), prices.max()) {
            (Some(input), Some(output), _, _) => {
                format!("{} in, {} out", input.normalize(), output.normalize())
            }
            (_, _, Some(low), Some(high)) if low != high => {
                format!("{} to {}", low.normalize(), high.normalize())
            }
            _ => self.headline().normalize().to_string(),
        };
        format!("{amount} {} / {unit}", self.currency)
    }
}

fn check(entry: &Entry) -> Result<(), String> {
    let numbers = [
        entry.price,
        entry.input,
        entry.cached,
        entry.output,
        entry.first,
        entry.extra,
    ];
    let rungs = entry.rungs.iter().map(|rung| rung.price);
    let surcharges = entry.surcharges.iter().map(|surcharge| match surcharge {
        Surcharge::InputImage { price, .. }
        | Surcharge::InputVideoSecond { price }
        | Surcharge::PerRequest { price, .. } => *price,
    });
    if numbers
        .into_iter()
        .flatten()
        .chain(rungs)
        .chain(surcharges)
        .any(|price| price.is_sign_negative())
    {
        return Err("a price is negative".to_owned());
    }
    let complete = match entry.unit {
        Unit::MegaTokens => entry.input.is_some() && entry.output.is_some(),
        Unit::MegapixelTiered => entry.first.is_some() && entry.extra.is_some(),
        Unit::Image
        | Unit::Generation
        | Unit::Task
        | Unit::Megapixel
        | Unit::VideoSecond
        | Unit::InputVideoSecond
        | Unit::AudioSecond
        | Unit::ComputeSecond
        | Unit::AudioMinute
        | Unit::KiloChars
        | Unit::MegaChars
        | Unit::Credit => entry.price.is_some() || !entry.rungs.is_empty(),
    };
    if !complete {
        return Err("the price of its unit is missing".to_owned());
    }
    if let Some(base) = &entry.base
        && !entry.rungs.iter().any(|rung| rung.id == *base)
    {
        return Err(format!("the base {base} is no rung"));
    }
    let widest = Decimal::from(WIDEST);
    if let Some(base) = entry.price.or_else(|| entry.base_rung().map(|rung| rung.price)) {
        for rung in &entry.rungs {
            let (low, high) = (rung.price.min(base), rung.price.max(base));
            if low.checked_mul(widest).is_none_or(|limit| high > limit) {
                return Err(format!(
                    "the rung {} is more than {WIDEST} times off the base price",
                    rung.id
                ));
            }
        }
    }
    Ok(())
}
