//! The node types that a user has at an instant: the built-in ones, those that workers declared for the whole deployment,
//! and those of the user's own workers.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;

use crate::node::{Factory, NodeMeta, Registry};

/// Who sees a declared type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Everybody: its worker came over a loopback listener that asks for no identity.
    Deployment,
    /// One user, whose identity the worker has.
    User(Arc<str>),
}

/// Node types by user. Cheap to clone; clones see the same changes.
#[derive(Clone)]
pub struct NodeTypes(Arc<Types>);
struct Types {
    builtin: Arc<Registry>,
    declared: ArcSwap<HashMap<Scope, Arc<Registry>>>,
}
impl NodeTypes {
    /// The built-in types alone.
    #[must_use]
    pub fn new(builtin: Arc<Registry>) -> Self {
        Self(Arc::new(Types {
            builtin,
            declared: ArcSwap::default(),
        }))
    }
    /// All types that a user has now. What is declared later does not change it.
    #[must_use]
    pub fn of(&self, user_id: &str) -> Arc<Registry> {
        let declared = self.0.declared.load();
        let own = declared.get(&Scope::User(user_id.into()));
        let found = own.or_else(|| declared.get(&Scope::Deployment));
        Arc::clone(found.unwrap_or(&self.0.builtin))
    }
    pub(super) fn is_builtin(&self, node_type: &str) -> bool {
        self.0.builtin.meta(node_type).is_some()
    }
    /// Replaces everything that is declared.
    pub(super) fn publish(&self, declared: Vec<(Scope, NodeMeta, Factory)>) {
        let mut everybody = (*self.0.builtin).clone();
        let mut users: HashMap<Scope, Vec<(NodeMeta, Factory)>> = HashMap::new();
        for (scope, meta, factory) in declared {
            match scope {
                Scope::Deployment => everybody.register(meta, factory),
                Scope::User(_) => users.entry(scope).or_default().push((meta, factory)),
            }
        }
        let mut all: HashMap<Scope, Arc<Registry>> = users
            .into_iter()
            .map(|(scope, own)| {
                let mut registry = everybody.clone();
                own.into_iter()
                    .for_each(|(meta, factory)| registry.register(meta, factory));
                (scope, Arc::new(registry))
            })
            .collect();
        all.insert(Scope::Deployment, Arc::new(everybody));
        self.0.declared.store(Arc::new(all));
    }
}
