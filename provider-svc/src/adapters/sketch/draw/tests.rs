use super::numbers::{float, u32_of};
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
fn previews_are_small_and_get_closer_to_the_end() {
    let png = preview("a mountain lake", 5, 1024, 512, 0.5).unwrap();
    assert_eq!((open(&png).width(), open(&png).height()), (128, 64));
    let end = preview("a mountain lake", 5, 512, 512, 1.0).unwrap();
    let at = |fraction| difference(&preview("a mountain lake", 5, 512, 512, fraction).unwrap(), &end);
    assert!(at(0.1) > at(0.95));
    assert!(preview("x", 1, 3, 1, f32::NAN).is_ok());
}
