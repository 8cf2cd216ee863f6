//! What a provider's own words are, for the engine.

use reqwest::header::HeaderMap;

use super::Context;
use super::order::{Order, Ticket};
use super::said::{Found, Said, State};
use crate::adapters::http::{Auth, Refusal, Reply};
use crate::pricing::Catalog;
use crate::provider::{Call, CancelAnswer, Capability, Failure, Model};
use crate::seam::receipt::Stated;

/// A provider's own words. It sends nothing itself.
pub trait Dialect: Send + Sync + 'static {
    /// Its id.
    fn id(&self) -> &'static str;
    /// Its own address.
    fn address(&self) -> &'static str;
    /// The variable that its own tools read the key from, or the one for the address of a server of one's own.
    fn variable(&self) -> &'static str;
    /// Where the key goes.
    fn auth(&self) -> Auth {
        Auth::Bearer
    }
    /// The models that are known; the first of a capability is its default.
    fn models(&self) -> Vec<Model>;
    /// Whether it can do with what any request has; else it is only asked by name.
    fn volunteers(&self) -> bool {
        true
    }
    /// Whether media that a request names by an address must be in the request.
    fn inlines(&self) -> bool {
        false
    }

    /// Whether the paid request carries a key of its own, by which the provider knows one that it has taken already.
    fn repeatable(&self) -> bool {
        false
    }

    /// The paid request.
    ///
    /// # Errors
    /// When the parameters cannot be said in its words; nothing was sent.
    fn order(&self, call: &Call) -> Result<Order, Failure>;

    /// The id of a request, when it is in the head of the answer.
    fn request_id(&self, _headers: &HeaderMap) -> Option<String> {
        None
    }
    /// The charge of a request, when it is in the head of the answer.
    fn charge(&self, _headers: &HeaderMap, _catalog: &Catalog) -> Option<Stated> {
        None
    }
    /// Whether an answer refuses, also one with a status of success; `polling` says that the job is known.
    fn refusal(&self, reply: &Reply, polling: bool) -> Option<Refusal>;
    /// What an answer says that refuses nothing: that of the paid request, or how the job is.
    fn said(&self, context: Context<'_>, reply: &Reply) -> Said;

    /// How to ask for a job. Only called when an answer left one running.
    fn look(&self, ticket: &Ticket) -> Order {
        Order::get(&ticket.id)
    }
    /// How to ask for the outputs of a job that is [`State::Ready`].
    fn claim(&self, ticket: &Ticket) -> Order {
        self.look(ticket)
    }
    /// What has to be asked after that, when its answer only names where the outputs can be asked for.
    fn next_claim(&self, _ticket: &Ticket, _reply: &Reply) -> Option<Order> {
        None
    }
    /// The outputs in the last answer to that.
    ///
    /// # Errors
    /// When there are none.
    fn claimed(&self, context: Context<'_>, reply: &Reply) -> Result<Vec<Found>, Failure> {
        match self.said(context, reply).state {
            State::Done(found, _) => Ok(found),
            State::Failed(failure) => Err(failure),
            State::Queued { .. }
            | State::Running { .. }
            | State::Ready
            | State::Cancelled
            | State::Lost
            | State::Unreadable => Err(Failure::new(
                crate::provider::Class::ProviderTransient,
                "the output is not there yet",
            )),
        }
    }
    /// How to ask for a stop; absent when it cannot be asked.
    fn stop(&self, _ticket: &Ticket) -> Option<Order> {
        None
    }
    /// What has to be asked first, where the way to stop a job depends on how it is.
    fn look_to_stop(&self, _ticket: &Ticket) -> Option<Order> {
        None
    }
    /// How to ask for a stop after that; absent when there is nothing to stop any more.
    fn stop_seen(&self, ticket: &Ticket, _reply: &Reply) -> Option<Order> {
        self.stop(ticket)
    }
    /// What the answer to that means, and what is charged all the same.
    fn stopped(&self, _context: Context<'_>, reply: &Reply) -> (CancelAnswer, Option<Stated>) {
        let answer = match reply.status.as_u16() {
            200..=299 => CancelAnswer::Requested,
            404 | 410 => CancelAnswer::NotFound,
            400 | 409 | 422 => CancelAnswer::AlreadyDone,
            _ => CancelAnswer::Error,
        };
        (answer, None)
    }
    /// A piece of text in an event of a stream, and whether it is a thought.
    fn piece(&self, _event: &serde_json::Value) -> Vec<(String, bool)> {
        Vec::new()
    }
}

/// A model of a list.
pub(crate) fn model(id: &str, capabilities: &[Capability]) -> Model {
    Model {
        id: id.to_owned(),
        name: id.to_owned(),
        capabilities: capabilities.to_vec(),
    }
}
