use atelier_proto::money::exact;

use super::*;

/// The models of the worked examples (generations specification 5.8).
const EXAMPLES: &str = r#"
schema = 1
[[entry]]
provider = "x"
model = "schnell"
unit = "image"
price = "0.003"
source = "example"
[[entry]]
provider = "x"
model = "flux2"
unit = "megapixel_tiered"
first = "0.03"
extra = "0.015"
rounding = "ceil"
source = "example"
[[entry]]
provider = "x"
model = "photon"
unit = "megapixel"
price = "0.019"
source = "example"
[[entry]]
provider = "x"
model = "pixverse"
unit = "video_second"
clip = { min = "1", max = "15" }
base = "720p"
source = "example"
[[entry.rung]]
id = "720p"
resolution = "720p"
audio = false
price = "0.045"
[[entry.rung]]
id = "720p/audio"
resolution = "720p"
audio = true
price = "0.060"
[[entry.rung]]
id = "1080p"
resolution = "1080p"
audio = false
price = "0.090"
[[entry]]
provider = "x"
model = "retake"
unit = "input_video_second"
price = "0.10"
source = "example"
[[entry]]
provider = "x"
model = "fast"
unit = "video_second"
price = "0.04"
source = "example"
[[entry]]
provider = "x"
model = "tts"
unit = "1m_chars"
price = "15"
source = "example"
[[entry]]
provider = "x"
model = "eleven"
unit = "1m_chars"
price = "50"
source = "example"
[[entry]]
provider = "x"
model = "whisper"
unit = "audio_minute"
price = "0.006"
source = "example"
[[entry]]
provider = "x"
model = "mini"
unit = "1m_tokens"
input = "0.15"
cached = "0.075"
output = "0.60"
source = "example"
[[entry]]
provider = "x"
model = "credits"
unit = "credit"
price = "0.005"
source = "example"
[[entry]]
provider = "x"
model = "meshy"
unit = "task"
price = "1.47"
source = "example"
[[entry]]
provider = "x"
model = "references"
unit = "image"
price = "0.04"
source = "example"
[[entry.surcharge]]
kind = "input_image"
price = "0.01"
free = 4
[[entry]]
provider = "x"
model = "rerate"
unit = "video_second"
price = "0.205"
clip = { min = "4", max = "15" }
source = "example"
[[entry.surcharge]]
kind = "input_video_second"
price = "0.125"
[[entry]]
provider = "x"
model = "wrong"
unit = "image"
price = "1"
quote_wrong = true
source = "example"
"#;

fn decimal(text: &str) -> Decimal {
    text.parse().expect("a number")
}

fn cost(model: &str, change: impl FnOnce(&mut Quantities)) -> Result<String, String> {
    let mut quantities = Quantities::default();
    change(&mut quantities);
    let catalog = Catalog::parse(EXAMPLES).expect("valid");
    catalog
        .price("x", model, &quantities)
        .map(|quote| exact(quote.cost.amount))
        .map_err(|unpriced| unpriced.0)
}

#[test]
fn g_054_the_worked_examples_cost_what_they_cost() {
    let ok = |text: &str| Ok(text.to_owned());
    let seconds = |text: &'static str| move |q: &mut Quantities| q.seconds = Some(decimal(text));
    let pixels = |width, height| move |q: &mut Quantities| q.pixels = Some((width, height));
    let chars = |count| move |q: &mut Quantities| q.characters = Some(count);
    assert_eq!(cost("schnell", |q| q.outputs = 4), ok("0.012000000"));
    assert_eq!(cost("flux2", pixels(1_920, 1_080)), ok("0.045000000"));
    assert_eq!(cost("flux2", pixels(2_048, 2_048)), ok("0.075000000"));
    assert_eq!(cost("photon", pixels(1_536, 1_024)), ok("0.028500000"));
    assert_eq!(cost("photon", pixels(1_365, 768)), ok("0.018995361"));
    let clip = |resolution: &'static str, audio, length| {
        move |q: &mut Quantities| {
            q.resolution = Some(resolution.to_owned());
            q.audio = Some(audio);
            q.seconds = Some(decimal(length));
        }
    };
    assert_eq!(cost("pixverse", clip("720p", true, "5")), ok("0.300000000"));
    assert_eq!(cost("pixverse", clip("1920x1080", false, "8")), ok("0.720000000"));
    assert_eq!(
        cost("retake", |q| q.input_seconds = Some(decimal("12"))),
        ok("1.200000000")
    );
    assert_eq!(cost("fast", seconds("5.0625")), ok("0.202500000"));
    assert_eq!(cost("tts", chars(4_096)), ok("0.061440000"));
    assert_eq!(cost("eleven", chars(1_234)), ok("0.061700000"));
    assert_eq!(cost("whisper", seconds("187")), ok("0.018700000"));
    let tokens = |q: &mut Quantities| {
        (q.input_tokens, q.cached_tokens, q.output_tokens) = (Some(12_000), Some(8_000), Some(1_500));
    };
    assert_eq!(cost("mini", tokens), ok("0.002100000"));
    assert_eq!(
        cost("credits", |q| q.credits = Some(decimal("16"))),
        ok("0.080000000")
    );
    assert_eq!(cost("meshy", |_| {}), ok("1.470000000"));
    assert_eq!(cost("references", |q| q.input_images = 8), ok("0.080000000"));
    let reference = |q: &mut Quantities| {
        (q.seconds, q.input_seconds) = (Some(decimal("5")), Some(decimal("5")));
    };
    assert_eq!(cost("rerate", reference), ok("1.250000000"));
    assert_eq!(cost("rerate", |_| {}), ok("0.820000000"));
}

#[test]
fn g_055_a_rate_per_million_is_not_charged_for_forty_characters() {
    assert_eq!(
        cost("eleven", |q| q.characters = Some(40)),
        Ok("0.002000000".to_owned())
    );
}

#[test]
fn g_057_g_060_what_is_not_known_is_declined_with_a_reason() {
    let declined = |model, change: fn(&mut Quantities)| cost(model, change).expect_err("declined");
    assert_eq!(
        declined("pixverse", |q| q.resolution = Some("2k".to_owned())),
        "no rung for 2K"
    );
    assert_eq!(
        declined("pixverse", |q| q.seconds = Some(Decimal::from(16))),
        "no clip of 16 s is sold"
    );
    assert_eq!(declined("unheard", |_| {}), "x/unheard is in no catalog");
    assert_eq!(declined("mini", |_| {}), "the number of tokens is not known");
    assert!(declined("wrong", |_| {}).contains("known to be wrong"));
}

#[test]
fn g_056_a_ladder_that_mixes_units_is_refused_by_name() {
    let text = r#"
schema = 1
[[entry]]
provider = "x"
model = "mixed"
unit = "1m_chars"
price = "50"
source = "example"
[[entry.rung]]
id = "turbo"
price = "0.05"
"#;
    let refused = Catalog::parse(text).expect_err("refused").to_string();
    assert!(
        refused.contains("x/mixed") && refused.contains("turbo"),
        "{refused}"
    );
    for wrong in [
        "price = \"-1\"",
        "price = 0.5",
        "price = \"1\"\nunknown = 1",
        "base = \"no\"\nprice = \"1\"",
    ] {
        let text = format!(
            "schema = 1\n[[entry]]\nprovider = \"x\"\nmodel = \"y\"\nunit = \"image\"\nsource = \"s\"\n{wrong}"
        );
        assert!(Catalog::parse(&text).is_err(), "{wrong}");
    }
    assert!(Catalog::parse("schema = 2").is_err());
}

#[test]
fn g_064_of_two_prices_the_dearer_is_used_and_an_override_wins() {
    let entry = |price: &str| {
        format!(
            "[[entry]]\nprovider = \"sketch\"\nmodel = \"sketch-image\"\nunit = \"image\"\nsource = \"s\"\nprice = \"{price}\"\n"
        )
    };
    let both = Catalog::parse(&format!("schema = 1\n{}{}", entry("0.04"), entry("0.03"))).expect("valid");
    assert_eq!(
        both.get("sketch", "sketch-image").expect("there").price,
        Some(decimal("0.04"))
    );
    let cheaper = Catalog::load(Some(&format!("schema = 1\n{}", entry("0.01")))).expect("valid");
    assert_eq!(
        cheaper.get("sketch", "sketch-image").expect("there").price,
        Some(decimal("0.01"))
    );
}

#[test]
fn the_built_in_catalog_is_valid_and_reads_well() {
    let catalog = Catalog::load(None).expect("valid");
    let label = |provider: &str, model: &str| catalog.get(provider, model).expect("there").label();
    assert_eq!(label("sketch", "sketch-image"), "0.04 USD / image");
    assert_eq!(label("sketch", "sketch-text"), "0.15 in, 0.6 out USD / 1M tokens");
    assert_eq!(label("openai", "gpt-image-1.5"), "0.009 to 0.133 USD / image");
    let mut quantities = Quantities {
        resolution: Some("1024x1024".to_owned()),
        ..Quantities::default()
    };
    let quote = catalog
        .price("openai", "gpt-image-1.5", &quantities)
        .expect("priced");
    assert_eq!(exact(quote.cost.amount), "0.034000000");
    assert!(
        quote.breakdown.contains("assumed medium quality"),
        "{}",
        quote.breakdown
    );
    quantities.resolution = Some("1536x1024".to_owned());
    assert!(catalog.price("openai", "gpt-image-1.5", &quantities).is_err());
}

#[test]
fn g_054_the_catalogs_that_are_compiled_in_price_the_worked_examples() {
    let catalog = Catalog::load(None).expect("valid");
    let cost = |provider: &str, model: &str, change: &dyn Fn(&mut Quantities)| {
        let mut quantities = Quantities::default();
        change(&mut quantities);
        let quote = catalog.price(provider, model, &quantities).expect("priced");
        exact(quote.cost.amount)
    };
    let pixels = |width, height, outputs| {
        move |q: &mut Quantities| (q.pixels, q.outputs) = (Some((width, height)), outputs)
    };
    let clip = |resolution: &'static str, audio, length| {
        move |q: &mut Quantities| {
            q.resolution = Some(resolution.to_owned());
            (q.audio, q.seconds) = (Some(audio), Some(decimal(length)));
        }
    };
    assert_eq!(
        cost("fal_ai", "fal-ai/flux/schnell", &pixels(1_024, 1_024, 4)),
        "0.012000000"
    );
    assert_eq!(
        cost("fal_ai", "fal-ai/flux/dev", &pixels(1_024, 1_024, 1)),
        "0.025000000"
    );
    assert_eq!(
        cost("fal_ai", "fal-ai/luma-photon", &pixels(1_365, 768, 1)),
        "0.018995361"
    );
    assert_eq!(
        cost("fal_ai", "fal-ai/nano-banana", &|q| q.outputs = 3),
        "0.119400000"
    );
    let pixverse = "fal-ai/pixverse/v6/text-to-video";
    assert_eq!(cost("fal_ai", pixverse, &clip("720p", true, "5")), "0.300000000");
    assert_eq!(
        cost("fal_ai", pixverse, &clip("1080p", false, "8")),
        "0.720000000"
    );
    // A tier that the ladder has itself is not read as its neighbour.
    assert_eq!(cost("fal_ai", pixverse, &clip("540p", false, "2")), "0.070000000");
    let kling = "fal-ai/kling-video/v2.5-turbo/pro/text-to-video";
    assert_eq!(
        cost("fal_ai", kling, &|q| q.seconds = Some(decimal("10"))),
        "0.700000000"
    );
    let turbo = "fal-ai/elevenlabs/tts/turbo-v2.5";
    assert_eq!(
        cost("fal_ai", turbo, &|q| q.characters = Some(1_234)),
        "0.061700000"
    );
    assert_eq!(cost("fal_ai", "fal-ai/minimax-music", &|_| {}), "0.030000000");
    let medium = |q: &mut Quantities| {
        (q.outputs, q.quality) = (3, Some("medium".to_owned()));
    };
    assert_eq!(cost("openai", "gpt-image-1", &medium), "0.126000000");
    assert_eq!(
        cost("openai", "tts-1", &|q| q.characters = Some(4_096)),
        "0.061440000"
    );
    assert_eq!(
        cost("openai", "whisper-1", &|q| q.seconds = Some(decimal("187"))),
        "0.018700000"
    );
    assert_eq!(catalog.credit("kie"), Some(decimal("0.005")));
    assert_eq!(
        cost("kie", "*", &|q| q.credits = Some(decimal("16"))),
        "0.080000000"
    );
    assert_eq!(
        catalog.credit("meshy"),
        None,
        "what its credit is worth depends on the plan"
    );
}

#[test]
fn what_cannot_be_counted_is_named_beside_the_price_and_never_added() {
    let text = r#"
schema = 1
[[entry]]
provider = "x"
model = "search"
unit = "image"
price = "0.04"
spec_gap = true
verified_at = "2026-12-01"
source = "example"
[[entry.surcharge]]
kind = "per_request"
price = "0.015"
spec = "a search of the web"
[[entry]]
provider = "x"
model = "machine"
unit = "compute_second"
price = "0.0014"
source = "example"
"#;
    let catalog = Catalog::parse(text).expect("valid");
    let quote = catalog
        .price("x", "search", &Quantities::default())
        .expect("priced");
    assert_eq!(exact(quote.cost.amount), "0.040000000");
    let told = &quote.breakdown;
    assert!(told.contains("without 0.015 for a search of the web"), "{told}");
    assert!(told.contains("extras are not in the published price"), "{told}");
    assert!(catalog.price("x", "machine", &Quantities::default()).is_err());
    let ran = Quantities {
        seconds: Some(decimal("2.5")),
        ..Quantities::default()
    };
    let quote = catalog.price("x", "machine", &ran).expect("priced");
    assert_eq!(exact(quote.cost.amount), "0.003500000");
}

#[test]
fn an_operators_file_replaces_single_entries_and_leaves_the_others() {
    let own = r#"
schema = 1
version = "own"
[[entry]]
provider = "meshy"
model = "*"
unit = "credit"
price = "0.02"
source = "our plan"
"#;
    let mut catalog = Catalog::load(None).expect("valid");
    let before = catalog.get("meshy", "meshy-6").cloned();
    catalog.put_in_front(own).expect("valid");
    assert_eq!(catalog.credit("meshy"), Some(decimal("0.02")));
    assert_eq!(catalog.get("meshy", "meshy-6").cloned(), before);
    assert!(catalog.put_in_front("schema = 1\n[[entry]]\n").is_err());
    assert_eq!(catalog.versions().last().map(String::as_str), Some("own"));
}
