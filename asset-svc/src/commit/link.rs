//! Which generations the assets of an artifact are of (generations specification 13.9). Pure.
//!
//! As many media as generations: one each, in order. Else all of them on every asset: no guess.

use super::{Content, Place};
use crate::assets::rows;

/// For each place, the ids that its asset carries. The first `media` places are media, the rest is text.
pub fn generations(places: &[Place], media: usize, ids: &[String]) -> Vec<Vec<String>> {
    let one_each = media == ids.len() && media > 1;
    let of = |(at, place): (usize, &Place)| {
        let mut own = match &place.content {
            Content::Named(row) => rows::ids_of(row).unwrap_or_default(),
            Content::Filled(_) | Content::Bytes(_) | Content::Text(_) | Content::Json(_) => Vec::new(),
        };
        let said = match ids.get(at) {
            // Whoever saved the bytes knows better than the order does.
            Some(_) if one_each && own.iter().any(|id| ids.contains(id)) => &[],
            Some(id) if one_each => std::slice::from_ref(id),
            _ => ids,
        };
        for id in said {
            if !own.contains(id) {
                own.push(id.clone());
            }
        }
        own
    };
    places.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place {
            handle: "out".into(),
            element: 0,
            kind: "image".into(),
            content: Content::Text("x".into()),
        }
    }

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn g_157_two_generations_and_one_medium() {
        assert_eq!(generations(&[place()], 1, &ids(&["a", "b"])), [ids(&["a", "b"])]);
    }

    #[test]
    fn g_158_as_many_media_as_generations_are_linked_in_order() {
        assert_eq!(
            generations(&[place(), place()], 2, &ids(&["a", "b"])),
            [ids(&["a"]), ids(&["b"])]
        );
        let with_text = [place(), place(), place()];
        assert_eq!(
            generations(&with_text, 2, &ids(&["a", "b"])),
            [ids(&["a"]), ids(&["b"]), ids(&["a", "b"])]
        );
    }
}
