//! The arithmetic of prices (generations specification 5.5).

use atelier_proto::money::Money;
use rust_decimal::Decimal;

use super::catalog::{Entry, Rounding, Rung, Surcharge, Unit};
use super::{Quantities, Quote, Unpriced};
use crate::provider::Params;

/// Pixels of a megapixel when the entry does not say.
const MEGAPIXEL: u32 = 1_048_576;

/// Units of a call and their price.
struct Lines {
    unit: &'static str,
    quantity: Decimal,
    unit_price: Option<Decimal>,
    amount: Decimal,
    text: String,
}

/// Prices a call by an entry.
pub(super) fn price(entry: &Entry, q: &Quantities) -> Result<Quote, Unpriced> {
    if entry.quote_wrong {
        return Err(decline("the published price of this model is known to be wrong"));
    }
    let mut assumptions = Vec::new();
    let lines = match entry.unit {
        Unit::MegaTokens => tokens(entry, q)?,
        Unit::MegapixelTiered => tiered(entry, q)?,
        unit => {
            let each = unit_price(entry, q, &mut assumptions)?;
            plain(entry, unit, each, q, &mut assumptions)?
        }
    };
    let lines = surcharged(entry, q, lines)?;
    let mut breakdown = lines.text;
    if entry.spec_gap {
        breakdown.push_str("; extras are not in the published price");
    }
    for surcharge in &entry.surcharges {
        if let Surcharge::PerRequest { price, spec } = surcharge {
            breakdown.push_str(&format!("; without {price} for {spec}"));
        }
    }
    for assumption in assumptions {
        breakdown.push_str("; assumed ");
        breakdown.push_str(&assumption);
    }
    Ok(Quote {
        cost: Money::new(lines.amount, entry.currency.clone()),
        billing_unit: lines.unit,
        quantity: lines.quantity,
        unit_price: lines.unit_price,
        breakdown,
    })
}

fn decline(reason: impl Into<String>) -> Unpriced {
    Unpriced(reason.into())
}

fn times(a: Decimal, b: Decimal) -> Result<Decimal, Unpriced> {
    a.checked_mul(b)
        .ok_or_else(|| decline("the amount is out of range"))
}

fn plus(a: Decimal, b: Decimal) -> Result<Decimal, Unpriced> {
    a.checked_add(b)
        .ok_or_else(|| decline("the amount is out of range"))
}

/// The price of one unit: the entry's own, or that of the rung that the request names.
fn unit_price(entry: &Entry, q: &Quantities, assumptions: &mut Vec<String>) -> Result<Decimal, Unpriced> {
    let Some(base) = entry.base_rung() else {
        return entry
            .price
            .ok_or_else(|| decline("the catalog has no price of one unit"));
    };
    let mut rungs: Vec<&Rung> = entry.rungs.iter().collect();
    if entry.rungs.iter().any(|rung| rung.resolution.is_some()) {
        let wanted = match &q.resolution {
            Some(stated) => rung_resolution(entry, stated, q.seconds.is_some())
                .ok_or_else(|| decline(format!("no rung for {}", stated.to_ascii_uppercase())))?,
            None => {
                let assumed = base.resolution.clone().unwrap_or_default();
                assumptions.push(assumed.clone());
                assumed
            }
        };
        rungs.retain(|rung| {
            rung.resolution
                .as_deref()
                .is_some_and(|own| own.eq_ignore_ascii_case(&wanted))
        });
    }
    if entry.rungs.iter().any(|rung| rung.quality.is_some()) {
        let wanted = q.quality.clone().unwrap_or_else(|| {
            let assumed = base.quality.clone().unwrap_or_default();
            assumptions.push(format!("{assumed} quality"));
            assumed
        });
        rungs.retain(|rung| rung.quality.as_deref() == Some(wanted.as_str()));
        if rungs.is_empty() {
            return Err(decline(format!("no rung for quality {wanted}")));
        }
    }
    if entry.rungs.iter().any(|rung| rung.audio.is_some()) {
        let wanted = q.audio.or(base.audio);
        rungs.retain(|rung| rung.audio == wanted);
    }
    rungs
        .first()
        .map(|rung| rung.price)
        .ok_or_else(|| decline("no rung for what is asked"))
}

/// The rung's name for a stated resolution; `None` when no rung fits.
fn rung_resolution(entry: &Entry, stated: &str, timed: bool) -> Option<String> {
    let own: Vec<&str> = entry
        .rungs
        .iter()
        .filter_map(|rung| rung.resolution.as_deref())
        .collect();
    let find = |name: &str| {
        own.iter()
            .find(|own| own.eq_ignore_ascii_case(name))
            .map(|own| (*own).to_owned())
    };
    let alias = match stated {
        "540p" | "576p" => "480p",
        "768p" => "720p",
        "1440p" => "2k",
        "2160p" => "4k",
        other => other,
    };
    if let Some(found) = find(stated).or_else(|| find(alias)) {
        return Some(found);
    }
    let (width, height) = Params::pixels(stated)?;
    let side = Decimal::from(if timed {
        width.min(height)
    } else {
        width.max(height)
    });
    // Within 10 % of a film's short side, within a factor of 1.5 of a picture's tier.
    let (suffix, scale, widest) = if timed {
        ('p', 1, Decimal::new(110, 2))
    } else {
        ('k', 1_024, Decimal::new(15, 1))
    };
    let mut best: Option<(Decimal, &str)> = None;
    for name in own {
        let Some(tier) = name
            .to_ascii_lowercase()
            .strip_suffix(suffix)
            .and_then(|n| n.parse::<u32>().ok())
        else {
            continue;
        };
        let tier = Decimal::from(tier.saturating_mul(scale));
        let Some(factor) = side.max(tier).checked_div(side.min(tier)) else {
            continue;
        };
        if factor <= widest && best.is_none_or(|(known, _)| factor < known) {
            best = Some((factor, name));
        }
    }
    best.map(|(_, name)| name.to_owned())
}

/// One price times what is counted.
fn plain(
    entry: &Entry,
    unit: Unit,
    each: Decimal,
    q: &Quantities,
    assumptions: &mut Vec<String>,
) -> Result<Lines, Unpriced> {
    let outputs = Decimal::from(q.outputs.max(1));
    let per_char = |count: u64, per: u32| -> Result<Lines, Unpriced> {
        let one = each
            .checked_div(Decimal::from(per))
            .ok_or_else(|| decline("the amount is out of range"))?;
        line(
            "characters",
            count.into(),
            one,
            format!("{count} characters x {each} / {per}"),
        )
    };
    match unit {
        Unit::Image => simple("images", outputs, each),
        Unit::Generation => simple("generations", outputs, each),
        Unit::Task => simple("tasks", Decimal::ONE, each),
        Unit::Credit => simple(
            "credits",
            q.credits
                .ok_or_else(|| decline("the number of credits is not known"))?,
            each,
        ),
        Unit::Megapixel => simple("megapixels", times(megapixels(entry, q)?, outputs)?, each),
        Unit::VideoSecond => simple("seconds", times(clip(entry, q, assumptions)?, outputs)?, each),
        Unit::AudioSecond => simple(
            "seconds",
            q.seconds
                .ok_or_else(|| decline("the length of the audio is not known"))?,
            each,
        ),
        Unit::ComputeSecond => simple(
            "seconds",
            q.seconds
                .ok_or_else(|| decline("the time of computing is not known"))?,
            each,
        ),
        Unit::InputVideoSecond => simple(
            "seconds",
            q.input_seconds
                .ok_or_else(|| decline("the length of the input is not known"))?,
            each,
        ),
        Unit::AudioMinute => {
            let seconds = q
                .seconds
                .or(q.input_seconds)
                .ok_or_else(|| decline("the length of the audio is not known"))?;
            // Multiplied before it is divided: minutes need not be exact, the amount is.
            let minute = Decimal::from(60);
            let amount = times(seconds, each)?.checked_div(minute).unwrap_or_default();
            let quantity = atelier_proto::money::round(seconds.checked_div(minute).unwrap_or_default());
            let text = format!("{} s x {each} / min", seconds.normalize());
            Ok(Lines {
                unit: "minutes",
                quantity,
                unit_price: Some(each),
                amount,
                text,
            })
        }
        Unit::KiloChars => per_char(
            q.characters.ok_or_else(|| decline("the text is not known"))?,
            1_000,
        ),
        Unit::MegaChars => per_char(
            q.characters.ok_or_else(|| decline("the text is not known"))?,
            1_000_000,
        ),
        Unit::MegaTokens | Unit::MegapixelTiered => Err(decline("the price has more than one part")),
    }
}

fn simple(unit: &'static str, quantity: Decimal, each: Decimal) -> Result<Lines, Unpriced> {
    line(
        unit,
        quantity,
        each,
        format!("{} {unit} x {each}", quantity.normalize()),
    )
}

fn line(unit: &'static str, quantity: Decimal, each: Decimal, text: String) -> Result<Lines, Unpriced> {
    Ok(Lines {
        unit,
        quantity,
        unit_price: Some(each),
        amount: times(quantity, each)?,
        text,
    })
}

fn clip(entry: &Entry, q: &Quantities, assumptions: &mut Vec<String>) -> Result<Decimal, Unpriced> {
    let Some(seconds) = q.seconds else {
        let shortest = entry.clip.map_or(Decimal::ONE, |clip| clip.min);
        assumptions.push(format!("{} s", shortest.normalize()));
        return Ok(shortest);
    };
    match entry.clip {
        Some(clip) if seconds < clip.min || seconds > clip.max => {
            Err(decline(format!("no clip of {} s is sold", seconds.normalize())))
        }
        Some(_) | None => Ok(seconds),
    }
}

fn megapixels(entry: &Entry, q: &Quantities) -> Result<Decimal, Unpriced> {
    let (width, height) = q
        .pixels
        .ok_or_else(|| decline("the size of the picture is not known"))?;
    let pixels = times(width.into(), height.into())?;
    let one = Decimal::from(entry.megapixel.unwrap_or(MEGAPIXEL));
    let megapixels = pixels
        .checked_div(one)
        .ok_or_else(|| decline("the size is out of range"))?;
    Ok(match entry.rounding {
        Rounding::Exact => megapixels,
        Rounding::Ceil => megapixels.ceil(),
    })
}

fn tiered(entry: &Entry, q: &Quantities) -> Result<Lines, Unpriced> {
    let (Some(first), Some(extra)) = (entry.first, entry.extra) else {
        return Err(decline("the catalog has no price of one megapixel"));
    };
    let megapixels = megapixels(entry, q)?;
    let further = (megapixels - Decimal::ONE).max(Decimal::ZERO);
    let outputs = Decimal::from(q.outputs.max(1));
    let amount = times(plus(first, times(further, extra)?)?, outputs)?;
    let text = format!("{first} + {} megapixels x {extra}", further.normalize());
    Ok(Lines {
        unit: "megapixels",
        quantity: times(megapixels, outputs)?,
        unit_price: None,
        amount,
        text,
    })
}

fn tokens(entry: &Entry, q: &Quantities) -> Result<Lines, Unpriced> {
    let (Some(input), Some(output)) = (entry.input, entry.output) else {
        return Err(decline("the catalog has no price of tokens"));
    };
    let (Some(read), Some(written)) = (q.input_tokens, q.output_tokens) else {
        return Err(decline("the number of tokens is not known"));
    };
    let cached = q.cached_tokens.unwrap_or(0).clamp(0, read.max(0));
    let parts = [
        (read - cached, input),
        (cached, entry.cached.unwrap_or(input)),
        (written, output),
    ];
    let mut amount = Decimal::ZERO;
    for (count, price) in parts {
        amount = plus(amount, times(count.into(), price)?)?;
    }
    let amount = amount.checked_div(Decimal::from(1_000_000)).unwrap_or_default();
    let mut text = format!("{read} tokens in x {input} / 1M + {written} out x {output} / 1M");
    if cached > 0 {
        text.push_str(&format!(", {cached} of the input cached"));
    }
    let quantity = Decimal::from(read.saturating_add(written));
    Ok(Lines {
        unit: "tokens",
        quantity,
        unit_price: None,
        amount,
        text,
    })
}

/// What comes on top of the price, or in its place.
fn surcharged(entry: &Entry, q: &Quantities, mut lines: Lines) -> Result<Lines, Unpriced> {
    for surcharge in &entry.surcharges {
        match surcharge {
            Surcharge::InputImage { price, free } => {
                let paid = q.input_images.saturating_sub(*free);
                if paid > 0 {
                    lines.amount = plus(lines.amount, times(paid.into(), *price)?)?;
                    lines.text.push_str(&format!(" + {paid} input images x {price}"));
                    lines.unit_price = None;
                }
            }
            Surcharge::InputVideoSecond { price } => {
                if let Some(input) = q.input_seconds {
                    lines = simple("seconds", plus(input, q.seconds.unwrap_or_default())?, *price)?;
                }
            }
            // Named in the breakdown, never added.
            Surcharge::PerRequest { .. } => {}
        }
    }
    Ok(lines)
}
