//! The laws of lineages, against a plain map.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use atelier_kernel::{
    graph::facts::{Root, Scope},
    run::Lineage,
};
use proptest::prelude::*;

type Plain = BTreeMap<u32, u32>;

fn plain() -> impl Strategy<Value = Plain> {
    prop::collection::btree_map(0..8_u32, 0..5_u32, 0..7)
}
fn scope() -> impl Strategy<Value = Scope> {
    prop::collection::vec(0..8_u32, 0..6).prop_map(|roots| {
        let mut seen = HashSet::new();
        let once = roots.into_iter().filter(|root| seen.insert(*root));
        Scope(once.map(Root).collect())
    })
}
/// Built in the order of a number, which must not matter.
fn lineage(plain: &Plain, order: usize) -> Lineage {
    let mut tokens: Vec<(u32, u32)> = plain.iter().map(|(root, index)| (*root, *index)).collect();
    let places = tokens.len().max(1);
    tokens.rotate_left(order % places);
    tokens.into_iter().fold(Lineage::default(), |all, (root, index)| {
        all.with(Root(root), index)
    })
}
fn plain_of(lineage: &Lineage) -> Plain {
    lineage
        .tokens()
        .iter()
        .map(|token| (token.root.0, token.index))
        .collect()
}
fn hash(lineage: &Lineage) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut state = DefaultHasher::new();
    lineage.hash(&mut state);
    state.finish()
}

proptest! {
    #[test]
    fn it_is_a_map(a in plain(), b in plain(), scope in scope(), root in 0..8_u32, index in 0..5_u32, order in 0..7_usize) {
        let (own, other) = (lineage(&a, 0), lineage(&b, 0));
        prop_assert_eq!(plain_of(&own), a.clone());
        prop_assert_eq!(&own, &lineage(&a, order));
        prop_assert_eq!(hash(&own), hash(&lineage(&a, order)));
        prop_assert_eq!(own == other, a == b);
        // with, without
        let mut with = a.clone();
        with.insert(root, index);
        prop_assert_eq!(plain_of(&own.with(Root(root), index)), with);
        let mut without = a.clone();
        without.remove(&root);
        prop_assert_eq!(plain_of(&own.without(Root(root))), without);
        prop_assert_eq!(own.with(Root(root), index).without(Root(root)), own.without(Root(root)));
        prop_assert_eq!(own.with(Root(root), index).index(Root(root)), Some(index));
        // merge
        let mut merged = a.clone();
        merged.extend(b.iter().map(|(root, index)| (*root, *index)));
        prop_assert_eq!(plain_of(&own.merge(&other)), merged);
        prop_assert_eq!(own.merge(&Lineage::default()), own.clone());
        prop_assert_eq!(own.merge(&own), own.clone());
        prop_assert_eq!(own.merge(&other).merge(&other), own.merge(&other));
        // project
        let complete = scope.0.iter().all(|root| a.contains_key(&root.0));
        let projected = own.project(&scope);
        prop_assert_eq!(projected.is_some(), complete);
        if let Some(projected) = projected {
            let kept: Plain = a.iter().filter(|(root, _)| scope.0.contains(&Root(**root))).map(|(root, index)| (*root, *index)).collect();
            prop_assert_eq!(plain_of(&projected), kept);
            prop_assert_eq!(projected.project(&scope), Some(projected.clone()));
            prop_assert_eq!(projected.merge(&own), own.clone());
            let beyond: Lineage = own.beyond(&scope).fold(Lineage::default(), |all, token| all.with(token.root, token.index));
            prop_assert_eq!(projected.merge(&beyond), own.clone());
        }
    }
    #[test]
    fn merging_is_associative(a in plain(), b in plain(), c in plain()) {
        let [a, b, c] = [a, b, c].map(|plain| lineage(&plain, 0));
        prop_assert_eq!(a.merge(&b).merge(&c), a.merge(&b.merge(&c)));
    }
    #[test]
    fn different_keys_have_different_texts(a in plain(), b in plain(), scope in scope()) {
        let roots: Vec<Arc<str>> = (0..8).map(|root| format!("n{root}:items").into()).collect();
        let (own, other) = (lineage(&a, 0), lineage(&b, 0));
        prop_assert_eq!(own.text(&scope, &roots) == other.text(&scope, &roots), own == other);
    }
}
