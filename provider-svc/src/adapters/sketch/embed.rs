//! Embeddings of the offline provider: words hashed into a vector, so that texts with words in common are near.

/// Numbers of a vector: fewest, usual and most.
pub const DIMENSIONS: (usize, usize, usize) = (8, 256, 2_048);

/// The vector of a text, of length one.
#[must_use]
pub fn embed(text: &str, dimensions: usize) -> Vec<f64> {
    let mut vector = vec![0.0_f64; dimensions.clamp(DIMENSIONS.0, DIMENSIONS.2)];
    let lower = text.to_lowercase();
    let words = lower.split(|letter: char| !letter.is_alphanumeric());
    for word in words.filter(|word| !word.is_empty()) {
        add(&mut vector, word, 1.0);
        // Beginnings of words stand for their families.
        add(&mut vector, &word.chars().take(4).collect::<String>(), 0.5);
    }
    let length = vector.iter().map(|part| part * part).sum::<f64>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|part| *part /= length);
    } else if let Some(first) = vector.first_mut() {
        *first = 1.0;
    }
    vector
}

fn add(vector: &mut [f64], word: &str, weight: f64) {
    let digest = blake3::hash(word.as_bytes());
    // Each word stands in four places, with a sign.
    for four in digest.as_bytes().chunks_exact(8).take(4) {
        let number = four
            .iter()
            .fold(0_usize, |sum, byte| (sum << 8) | usize::from(*byte));
        let sign = if number % 2 == 0 { weight } else { -weight };
        let at = (number >> 1) % vector.len().max(1);
        if let Some(part) = vector.get_mut(at) {
            *part += sign;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: &str, other: &str) -> f64 {
        let (one, other) = (embed(one, 256), embed(other, 256));
        one.iter().zip(&other).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn texts_with_words_in_common_are_near() {
        assert!((near("a red boat", "A red boat!") - 1.0).abs() < 1e-9);
        assert!(
            near("a red boat at sea", "the red boat")
                > near("a red boat at sea", "tax returns of firms") + 0.3
        );
    }

    #[test]
    fn vectors_have_their_size_and_length() {
        for (text, size) in [("", 8), ("x", 64), ("many words in a row", 2_048)] {
            let vector = embed(text, size);
            assert_eq!(vector.len(), size);
            assert!((vector.iter().map(|part| part * part).sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }
}
