//! What a provider tells during a call, and the task-local place it lands in (generations specification 3.4).
//!
//! A scope is open while the seam talks to a provider. Code below it calls [`record`]; what is recorded survives an
//! error, a panic and an abandoned call, because the cell stays with the seam. Spawned tasks have no scope of their own:
//! adapters spawn with [`spawn_scoped`].

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use atelier_common::tasks::Tasks;
use atelier_proto::money::Money;
use rust_decimal::Decimal;
use tokio::task::JoinHandle;

use crate::metrics;

tokio::task_local! {
    static RECEIPT: ReceiptCell;
}

/// A charge that a provider stated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// The amount.
    pub cost: Money,
    /// What was counted.
    pub billing_unit: Option<String>,
    /// How many.
    pub quantity: Option<Decimal>,
    /// Price of one.
    pub unit_price: Option<Decimal>,
    /// How it came about, for people.
    pub breakdown: Option<String>,
    /// Whether this is the total of the generation, which replaces the sum over its attempts.
    pub total: bool,
}
impl Stated {
    /// A charge without details.
    #[must_use]
    pub fn of(cost: Money) -> Self {
        Self {
            cost,
            billing_unit: None,
            quantity: None,
            unit_price: None,
            breakdown: None,
            total: false,
        }
    }

    /// A charge in US dollars out of a number of a provider's JSON. NaN and infinities are refused with a warning.
    #[must_use]
    pub fn from_f64(amount: f64) -> Option<Self> {
        // Through the shortest text, so that 0.1 stays 0.1.
        let exact = amount
            .is_finite()
            .then(|| amount.to_string().parse::<Decimal>().ok())
            .flatten();
        if exact.is_none() {
            tracing::warn!("a provider stated a charge that is no number");
        }
        exact.map(|amount| Self::of(Money::usd(amount)))
    }
}

/// One submission, as far as the provider told of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attempt {
    /// Its id.
    pub request_id: Option<String>,
    /// Its charge.
    pub charge: Option<Stated>,
}

/// All that was told during a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The submissions, in order.
    pub attempts: Vec<Attempt>,
    /// A total that the provider stated for all of them.
    pub total: Option<Stated>,
}
impl Receipt {
    /// The latest request id.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.attempts
            .iter()
            .rev()
            .find_map(|attempt| attempt.request_id.as_deref())
    }

    /// The charge of the call: the stated total, else the exact sum over its attempts. `None` when none was stated, or
    /// when the attempts were charged in different currencies.
    #[must_use]
    pub fn charge(&self) -> Option<Stated> {
        if self.total.is_some() {
            return self.total.clone();
        }
        let mut charges = self.attempts.iter().filter_map(|attempt| attempt.charge.as_ref());
        let mut sum = charges.next()?.clone();
        for charge in charges {
            sum = added(&sum, charge)?;
        }
        Some(sum)
    }

    fn merge(&mut self, request_id: Option<&str>, charge: Option<Stated>) -> Option<usize> {
        let mut fresh = None;
        if let Some(id) = request_id.filter(|id| !id.is_empty()) {
            match self.attempts.last_mut() {
                Some(last) if last.request_id.as_deref() == Some(id) => {}
                Some(last) if last.request_id.is_none() => {
                    last.request_id = Some(id.to_owned());
                    fresh = Some(self.attempts.len());
                }
                Some(_) | None => {
                    self.attempts.push(Attempt {
                        request_id: Some(id.to_owned()),
                        charge: None,
                    });
                    fresh = Some(self.attempts.len());
                }
            }
        }
        if let Some(charge) = charge {
            if charge.total {
                self.total = Some(charge);
            } else {
                if self.attempts.is_empty() {
                    self.attempts.push(Attempt::default());
                }
                if let Some(last) = self.attempts.last_mut() {
                    let sum = last
                        .charge
                        .as_ref()
                        .map_or_else(|| Some(charge.clone()), |old| added(old, &charge));
                    if sum.is_none() {
                        tracing::warn!("a provider stated charges in two currencies for one attempt");
                    }
                    last.charge = sum.or_else(|| last.charge.take());
                }
            }
        }
        fresh
    }
}

/// The sum of two charges; details that differ are dropped. `None` for two currencies.
fn added(a: &Stated, b: &Stated) -> Option<Stated> {
    if a.cost.currency != b.cost.currency {
        return None;
    }
    let cost = Money::new(a.cost.amount.checked_add(b.cost.amount)?, a.cost.currency.clone());
    let same_unit = a.billing_unit.is_some() && a.billing_unit == b.billing_unit;
    let quantity = match (a.quantity, b.quantity) {
        (Some(a), Some(b)) if same_unit => a.checked_add(b),
        _ => None,
    };
    Some(Stated {
        cost,
        billing_unit: a.billing_unit.clone().filter(|_| same_unit),
        quantity,
        unit_price: a.unit_price.filter(|_| same_unit && a.unit_price == b.unit_price),
        breakdown: None,
        total: false,
    })
}

/// Told of every request id at once, so that it is durable before anything else happens.
#[async_trait]
pub trait Binder: Send + Sync {
    /// Binds the id of the attempt with this number, counted from 1. Never fails: what cannot be written is kept.
    async fn bind(&self, attempt: usize, request_id: &str);

    /// Tells what an attempt cost that another one follows: nobody would know any more if the process died with the
    /// next. The last one's charge goes with the outcome. Never fails.
    async fn charged(&self, request_id: &str, charge: &Stated);

    /// The row of the call.
    fn generation_id(&self) -> &str;
}

/// The place of one call's receipt. Clones are the same place.
#[derive(Clone, Default)]
pub struct ReceiptCell {
    inner: Arc<Inner>,
}
#[derive(Default)]
struct Inner {
    receipt: Mutex<Receipt>,
    binder: Option<Arc<dyn Binder>>,
}
impl ReceiptCell {
    /// A cell that tells a binder of request ids.
    #[must_use]
    pub fn bound_by(binder: Arc<dyn Binder>) -> Self {
        Self {
            inner: Arc::new(Inner {
                receipt: Mutex::default(),
                binder: Some(binder),
            }),
        }
    }

    /// The same cell, which knows already what another process recorded.
    #[must_use]
    pub fn knowing(self, receipt: Receipt) -> Self {
        *self.inner.receipt.lock().unwrap_or_else(PoisonError::into_inner) = receipt;
        self
    }

    /// What was recorded so far.
    #[must_use]
    pub fn read(&self) -> Receipt {
        self.inner
            .receipt
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Runs a future whose records land here. As cancel safe as the future.
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        RECEIPT.scope(self.clone(), future)
    }

    /// Records into this cell.
    pub async fn record(&self, request_id: Option<&str>, charge: Option<Stated>) {
        let fresh = self
            .inner
            .receipt
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .merge(request_id, charge);
        if let (Some(attempt), Some(id), Some(binder)) = (fresh, request_id, &self.inner.binder) {
            let before = attempt
                .checked_sub(2)
                .and_then(|index| self.read().attempts.into_iter().nth(index));
            if let Some(Attempt {
                request_id: Some(before),
                charge: Some(charge),
            }) = &before
            {
                binder.charged(before, charge).await;
            }
            binder.bind(attempt, id).await;
        }
    }
}

/// The row of the call that the current task works for: the parent of a call that is made inside of it.
#[must_use]
pub fn current_generation() -> Option<String> {
    let id = |cell: &ReceiptCell| {
        cell.inner
            .binder
            .as_ref()
            .map(|binder| binder.generation_id().to_owned())
    };
    RECEIPT.try_with(id).ok().flatten()
}

/// Records a request id, a charge, or both, for the call that the current task works for. Returns when the id is bound
/// to the row. Outside a scope nothing happens but a count: listings and probes use the same transports.
pub async fn record(provider: &'static str, request_id: Option<&str>, charge: Option<Stated>) {
    match RECEIPT.try_with(ReceiptCell::clone) {
        Ok(cell) => cell.record(request_id, charge).await,
        Err(_) => {
            tracing::debug!(provider, "a receipt was recorded outside of a call");
            metrics::receipt_outside_scope(provider);
        }
    }
}

/// Spawns a task that works for the same call as the current one, so that its records land in the same receipt.
pub fn spawn_scoped<F>(tasks: &Tasks, name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match RECEIPT.try_with(ReceiptCell::clone) {
        Ok(cell) => tasks.spawn(name, RECEIPT.scope(cell, future)),
        Err(_) => tasks.spawn(name, future),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(text: &str) -> Stated {
        Stated::of(Money::usd(text.parse().expect("a number")))
    }

    #[tokio::test]
    async fn g_026_id_and_charge_of_one_call_meet_in_one_attempt() {
        let cell = ReceiptCell::default();
        cell.scope(async {
            record("acme", Some("r1"), None).await;
            record("acme", None, Some(usd("0.42"))).await;
            record("acme", Some("r1"), None).await;
        })
        .await;
        let expected = Attempt {
            request_id: Some("r1".to_owned()),
            charge: Some(usd("0.42")),
        };
        assert_eq!(cell.read().attempts, [expected]);
        assert_eq!(cell.read().charge(), Some(usd("0.42")));
    }

    #[tokio::test]
    async fn a_second_id_opens_an_attempt_and_charges_add_up() {
        let cell = ReceiptCell::default();
        for (id, cost) in [("r1", "0.42"), ("r2", "1.00"), ("r2", "0.05")] {
            cell.record(Some(id), Some(usd(cost))).await;
        }
        let receipt = cell.read();
        assert_eq!(receipt.attempts.len(), 2);
        assert_eq!(receipt.request_id(), Some("r2"));
        assert_eq!(receipt.charge().map(|charge| charge.cost), Some(usd("1.47").cost));
        cell.record(
            None,
            Some(Stated {
                total: true,
                ..usd("1.40")
            }),
        )
        .await;
        assert_eq!(
            cell.read().charge().map(|charge| charge.cost),
            Some(usd("1.40").cost)
        );
    }

    #[tokio::test]
    async fn g_028_a_record_outside_any_scope_changes_nothing() {
        let cell = ReceiptCell::default();
        record("acme", Some("r1"), Some(usd("1"))).await;
        assert_eq!(cell.read(), Receipt::default());
    }

    #[tokio::test]
    async fn g_029_only_scoped_spawns_record() {
        let tasks = Tasks::new();
        let cell = ReceiptCell::default();
        cell.scope(async {
            tasks
                .spawn("bare", record("acme", Some("lost"), None))
                .await
                .expect("no panic");
            assert_eq!(cell.read().request_id(), None);
            spawn_scoped(&tasks, "scoped", record("acme", Some("kept"), None))
                .await
                .expect("no panic");
        })
        .await;
        assert_eq!(cell.read().request_id(), Some("kept"));
    }

    #[test]
    fn g_033_a_charge_that_is_no_number_is_refused() {
        assert_eq!(Stated::from_f64(f64::NAN), None);
        assert_eq!(Stated::from_f64(f64::INFINITY), None);
        assert_eq!(Stated::from_f64(0.1), Some(usd("0.1")));
        assert_eq!(Stated::from_f64(0.0), Some(usd("0")));
    }

    #[tokio::test]
    async fn inner_scopes_hide_outer_ones() {
        let (outer, inner) = (ReceiptCell::default(), ReceiptCell::default());
        outer
            .scope(async { inner.scope(record("acme", Some("in"), None)).await })
            .await;
        assert_eq!(
            (outer.read().request_id(), inner.read().request_id()),
            (None, Some("in"))
        );
    }
}
