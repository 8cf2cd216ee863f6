//! What every handler needs, shared.

use std::ops::Deref;
use std::sync::Arc;

use atelier_common::clock::Clock;
use atelier_common::health::Health;
use atelier_common::tasks::Tasks;

use crate::clients::Clients;
use crate::settings::Settings;

/// The state of the gateway. Clones are the same.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(crate) clients: Clients,
    pub(crate) health: Health,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Clock,
    /// The instance, as clients of the socket are told.
    pub(crate) instance: String,
}

impl App {
    pub(crate) fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }
}

impl Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
