//! What a prompt asks for, and the colours that follow from it.

use super::colour::{Tone, tone};
use super::numbers::Dice;
use super::words::{
    HUES, LIGHTS, Light, MEDIA, Medium, PROPS, Prop, Subject, TREES, Tree, named, pick, subject_of,
};

/// What a prompt shows that names no subject.
const ANY_SUBJECT: [Subject; 10] = [
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

/// What the words of a prompt ask for, and the numbers that make one prompt look unlike another.
#[derive(Debug, Clone)]
pub(super) struct Brief {
    pub(super) subject: Subject,
    pub(super) medium: Medium,
    pub(super) light: Light,
    pub(super) props: Vec<Prop>,
    /// The kind of trees, if named.
    pub(super) trees: Option<Tree>,
    /// Hue of the large areas, in degrees.
    pub(super) hue: f32,
    /// Hue of what lies far away.
    pub(super) far_hue: f32,
    /// Hue of the small bright things.
    pub(super) accent_hue: f32,
    /// Starts the dice that place things; from prompt and seed.
    pub(super) dice_seed: u64,
}

impl Brief {
    pub(super) fn read(prompt: &str, seed: u64) -> Self {
        let digest = blake3::hash(prompt.trim().as_bytes());
        let mut kind = Dice::new(first_u64(digest.as_bytes()));
        let lower = prompt.to_lowercase();
        let words: Vec<&str> = lower
            .split(|c: char| !c.is_alphanumeric())
            .filter(|w| !w.is_empty())
            .collect();

        let at = usize::from(kind.count(0, 9));
        let fallback = ANY_SUBJECT.get(at).copied().unwrap_or(Subject::Ridges);
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
        let wished = pick(&words, HUES).map(|hue| hue + spread * 10.0);
        // A named colour belongs to the things of a picture, and to its air where the land is the thing.
        let of_things = subject.is_thing();
        let hue = wished
            .filter(|_| !of_things)
            .unwrap_or(usual_hue(subject, spread));
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
    pub(super) fn band(&self) -> Tone {
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

    pub(super) fn has(&self, prop: Prop) -> bool {
        self.props.contains(&prop)
    }

    pub(super) fn is_dark(&self) -> bool {
        self.light == Light::Night
    }

    /// Sky colours from the zenith to the horizon.
    pub(super) fn sky(&self) -> [Tone; 3] {
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

    /// The colour of the sky at the horizon; distance fades into it.
    pub(super) fn haze(&self) -> Tone {
        self.sky()[2]
    }

    /// Ground colours: 0 is far away and hazy, 1 near and deep.
    pub(super) fn layer(&self, t: f32) -> Tone {
        let horizon = self.haze();
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

    pub(super) fn accent(&self, turn: f32) -> Tone {
        tone(
            if self.is_dark() { 0.74 } else { 0.68 },
            0.165,
            self.accent_hue + turn,
        )
    }

    pub(super) fn lamp(&self) -> Tone {
        tone(0.90, 0.13, 88.0)
    }
}

/// The hue of a subject for which no colour is named; `spread` is between -1 and 1.
fn usual_hue(subject: Subject, spread: f32) -> f32 {
    match subject {
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
    }
}

fn first_u64(digest: &[u8; 32]) -> u64 {
    digest
        .iter()
        .take(8)
        .fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::super::words::Being;
    use super::*;

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
}
