//! Which iteration items a value belongs to: a small map from iteration to index, cheap to clone and to
//! compare.

use std::{fmt::Write as _, sync::Arc};

use crate::graph::facts::{Root, Scope};

/// An item of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    /// The iteration.
    pub root: Root,
    /// The item, from 0 under each parent.
    pub index: u32,
}
const NONE: Token = Token {
    root: Root(0),
    index: 0,
};
const INLINE: usize = 3;

/// The items that a value belongs to, ordered by iteration; empty for values of no iteration.
#[derive(Clone, Default)]
pub struct Lineage(Tokens);

#[derive(Clone)]
enum Tokens {
    Few(u8, [Token; INLINE]),
    Many(Arc<[Token]>),
}
impl Default for Tokens {
    fn default() -> Self {
        Self::Few(0, [NONE; INLINE])
    }
}

impl Lineage {
    /// The items.
    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        match &self.0 {
            Tokens::Few(len, tokens) => tokens.get(..usize::from(*len)).unwrap_or_default(),
            Tokens::Many(tokens) => tokens,
        }
    }
    fn from_sorted(tokens: impl Iterator<Item = Token> + Clone) -> Self {
        let mut few = [NONE; INLINE];
        let mut len = 0_u8;
        for token in tokens.clone() {
            let Some(place) = few.get_mut(usize::from(len)) else {
                return Self(Tokens::Many(tokens.collect()));
            };
            *place = token;
            len += 1;
        }
        Self(Tokens::Few(len, few))
    }
    /// Whether it belongs to no iteration.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens().is_empty()
    }
    /// The item of an iteration.
    #[must_use]
    pub fn index(&self, root: Root) -> Option<u32> {
        self.tokens()
            .iter()
            .find(|token| token.root == root)
            .map(|token| token.index)
    }
    /// The same with an item of one more iteration.
    #[must_use]
    pub fn with(&self, root: Root, index: u32) -> Self {
        let own = self
            .tokens()
            .iter()
            .copied()
            .filter(move |token| token.root != root);
        let before = own.clone().filter(move |token| token.root < root);
        let after = own.filter(move |token| token.root > root);
        Self::from_sorted(before.chain(std::iter::once(Token { root, index })).chain(after))
    }
    /// The same without an iteration.
    #[must_use]
    pub fn without(&self, root: Root) -> Self {
        Self::from_sorted(
            self.tokens()
                .iter()
                .copied()
                .filter(move |token| token.root != root),
        )
    }
    /// The items of both; of one iteration those of `other`.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        other
            .tokens()
            .iter()
            .fold(self.clone(), |all, token| all.with(token.root, token.index))
    }
    /// The items of the iterations of a scope; `None` when one of them is missing.
    #[must_use]
    pub fn project(&self, scope: &Scope) -> Option<Self> {
        let tokens = self.tokens();
        if tokens.len() == scope.len() && tokens.iter().all(|token| scope.0.contains(&token.root)) {
            return Some(self.clone());
        }
        let complete = scope.0.iter().all(|root| self.index(*root).is_some());
        complete.then(|| {
            Self::from_sorted(
                tokens
                    .iter()
                    .copied()
                    .filter(|token| scope.0.contains(&token.root)),
            )
        })
    }
    /// Whether it belongs to all the items that `parent` does.
    #[must_use]
    pub fn is_under(&self, parent: &Self) -> bool {
        let mut tokens = parent.tokens().iter();
        tokens.all(|token| self.index(token.root) == Some(token.index))
    }
    /// Iterations of the value that a scope does not have.
    pub fn beyond(&self, scope: &Scope) -> impl Iterator<Item = Token> {
        self.tokens()
            .iter()
            .copied()
            .filter(|token| !scope.0.contains(&token.root))
    }
    /// The key as text: `root=index`, joined by commas, outermost first.
    #[must_use]
    pub fn text(&self, scope: &Scope, roots: &[Arc<str>]) -> String {
        let mut text = String::new();
        self.write(&mut text, scope, roots);
        text
    }
    pub(crate) fn write(&self, text: &mut String, scope: &Scope, roots: &[Arc<str>]) {
        let inside = scope.0.iter().filter_map(|root| {
            Some(Token {
                root: *root,
                index: self.index(*root)?,
            })
        });
        for token in inside.chain(self.beyond(scope)) {
            let name = usize::try_from(token.root.0)
                .ok()
                .and_then(|at| roots.get(at))
                .map_or("?", |name| &**name);
            let comma = if text.is_empty() { "" } else { "," };
            let _ = write!(text, "{comma}{name}={}", token.index);
        }
    }
    /// The indexes in the order of a scope; sorts keys as their items came about.
    #[must_use]
    pub fn position(&self, scope: &Scope) -> Vec<u32> {
        scope
            .0
            .iter()
            .map(|root| self.index(*root).unwrap_or(0))
            .collect()
    }
}
impl PartialEq for Lineage {
    fn eq(&self, other: &Self) -> bool {
        self.tokens() == other.tokens()
    }
}
impl Eq for Lineage {}
impl std::hash::Hash for Lineage {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        for token in self.tokens() {
            state.write_u64(u64::from(token.root.0) << 32 | u64::from(token.index));
        }
    }
}
impl std::fmt::Debug for Lineage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.tokens().iter().map(|token| (token.root.0, token.index)))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_ordered_whatever_the_order_of_adding() {
        let one = Lineage::default()
            .with(Root(2), 7)
            .with(Root(0), 1)
            .with(Root(1), 3)
            .with(Root(5), 0);
        let two = Lineage::default()
            .with(Root(5), 0)
            .with(Root(1), 3)
            .with(Root(2), 7)
            .with(Root(0), 1);
        assert_eq!(one, two);
        assert_eq!(one.index(Root(2)), Some(7));
        assert_eq!(one.without(Root(5)).tokens().len(), 3);
    }
    #[test]
    fn a_projection_needs_every_iteration_of_the_scope() {
        let lineage = Lineage::default().with(Root(0), 4).with(Root(1), 5);
        assert_eq!(
            lineage.project(&Scope(vec![Root(0)])),
            Some(Lineage::default().with(Root(0), 4))
        );
        assert_eq!(lineage.project(&Scope(vec![Root(0), Root(2)])), None);
        let roots: Vec<Arc<str>> = vec!["a:i".into(), "b:i".into()];
        assert_eq!(
            lineage.text(&Scope(vec![Root(1), Root(0)]), &roots),
            "b:i=5,a:i=4"
        );
    }
}
