//! The one way to a provider.
//!
//! What lives here, in the order of a call: [`plan`] checks the request, [`run`] carries it out step by step, [`calling`]
//! talks to the provider, [`persist`] stores the outputs, [`settle`] closes the row, [`join`] answers a repeat, [`resume`]
//! takes up what another process began, [`bills`] asks afterwards what it cost. Beside
//! them: [`inputs`] fetches what a request names, [`ledger`] and [`assets`] are the clients, [`spool`] keeps what the ledger could not be told, [`receipt`] is
//! where a provider's words land, [`registry`] knows what runs here, [`feed`] is the way to the client.
//! What does not: providers (`adapters`), prices (`pricing`) and the contract (`api`).

pub mod assets;
pub mod bills;
pub mod calling;
pub mod directory;
pub mod feed;
pub mod fingerprint;
pub mod inputs;
pub mod join;
pub mod ledger;
pub mod origin;
pub mod outcome;
pub mod permit;
pub mod persist;
pub mod plan;
pub mod receipt;
pub mod redact;
pub mod registry;
pub mod resume;
pub mod run;
pub mod settle;
pub mod spool;

pub use run::Seam;
