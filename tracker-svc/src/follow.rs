//! The streams of drivers: where cancel orders go down, and what keeps a lease alive.
//!
//! An order that finds no stream here, or a full one, is not lost: it stays on the row, and goes down with the answer to
//! the driver's next heartbeat, whichever replica holds the stream; and one look every half second finds what came
//! through other replicas, for all streams here together.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atelier_common::db::Db;
use atelier_common::tasks::Tasks;
use tokio::sync::mpsc;

use crate::adopt::{Adoption, Resume};
use crate::error::Error;
use crate::instances::Instances;
use crate::ledger::{all_users_untold, all_users_untold_of};
use crate::metrics as names;
use crate::reconcile::{Claimed, Reconciliations};
use crate::sweep::Sweep;

/// Orders that wait for one driver. Full: the rest is told with its next heartbeat.
const WAITING: usize = 256;
/// Pause between looks at cancels that came through other replicas.
const LOOK: Duration = Duration::from_millis(500);

/// The drivers that are connected here. Clones are the same ones.
#[derive(Clone, Default)]
pub struct Hub {
    seats: Arc<Mutex<Seats>>,
}

#[derive(Default)]
struct Seats {
    next: u64,
    by_instance: HashMap<String, (u64, mpsc::Sender<String>)>,
}

/// A driver's place; dropping it gives it up.
pub struct Seat {
    hub: Hub,
    instance_id: String,
    number: u64,
}

impl Hub {
    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a driver's place and what is ordered to it. A stream that it had before gets nothing more.
    #[must_use = "dropping the seat gives it up"]
    pub fn join(&self, instance_id: &str) -> (Seat, mpsc::Receiver<String>) {
        let (sender, orders) = mpsc::channel(WAITING);
        let mut seats = self.seats();
        let number = seats.next;
        seats.next += 1;
        seats.by_instance.insert(instance_id.to_owned(), (number, sender));
        drop(seats);
        metrics::gauge!(names::FOLLOWERS).increment(1);
        (
            Seat {
                hub: self.clone(),
                instance_id: instance_id.to_owned(),
                number,
            },
            orders,
        )
    }

    /// Hands on the cancels that came through other replicas, until told to stop. Each is ordered once from here; the
    /// heartbeat repeats it until the driver shows that it knows.
    pub async fn relay(self, db: Db, tasks: Tasks) {
        let mut ordered = HashSet::new();
        while tasks.pause(LOOK).await {
            let here: Vec<String> = self.seats().by_instance.keys().cloned().collect();
            if here.is_empty() {
                ordered.clear();
                continue;
            }
            match all_users_untold_of(db.read(), &here).await {
                Ok(untold) => {
                    for (instance_id, id) in untold.iter().filter(|told| !ordered.contains(*told)) {
                        self.order(instance_id, id);
                    }
                    ordered = untold.into_iter().collect();
                }
                Err(error) => tracing::debug!(error = %error, "looking for cancels failed"),
            }
        }
    }

    /// Orders a driver to stop a call; whether it is connected here and was told.
    pub fn order(&self, instance_id: &str, generation_id: &str) -> bool {
        let seats = self.seats();
        seats
            .by_instance
            .get(instance_id)
            .is_some_and(|(_, orders)| orders.try_send(generation_id.to_owned()).is_ok())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.hub.seats();
        if seats
            .by_instance
            .get(&self.instance_id)
            .is_some_and(|(number, _)| *number == self.number)
        {
            seats.by_instance.remove(&self.instance_id);
        }
        metrics::gauge!(names::FOLLOWERS).decrement(1);
    }
}

/// A driver, as it introduced itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    /// Its instance.
    pub instance_id: String,
    /// The service, for people.
    pub service: String,
    /// Whether it alone holds the data.
    pub sole_process: bool,
    /// The providers that it can call.
    pub providers: Vec<Seated>,
}

/// A provider that a driver can call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seated {
    /// The provider.
    pub provider: String,
    /// Whether its jobs can be taken up.
    pub resumable: bool,
    /// Names its key.
    pub credential: String,
}

impl Introduction {
    /// The providers whose jobs it can take up.
    #[must_use]
    pub fn resumable(&self) -> Vec<String> {
        self.providers
            .iter()
            .filter(|seated| seated.resumable)
            .map(|seated| seated.provider.clone())
            .collect()
    }
}

/// What there is to do for a driver beside its own calls.
#[derive(Debug, Clone, Default)]
pub struct Chores {
    /// Cancelled rows that it has not shown to know of.
    pub cancels: Vec<String>,
    /// Jobs to take up.
    pub resumes: Vec<Resume>,
    /// Bills to look for.
    pub bills: Vec<Claimed>,
}

/// What a stream needs of the ledger.
#[derive(Clone)]
pub struct Following {
    /// The leases.
    pub instances: Instances,
    /// The streams.
    pub hub: Hub,
    /// The sweep.
    pub sweep: Sweep,
    /// Jobs whose driver is gone.
    pub adoption: Adoption,
    /// Rows that wait for their bill.
    pub reconciliations: Reconciliations,
    /// The ledger's database.
    pub db: Db,
}

impl Following {
    /// Takes up a driver. When it alone holds the data, the rows of its forerunners are swept before it goes on.
    ///
    /// # Errors
    /// The database's.
    pub async fn hello(&self, driver: &Introduction) -> Result<(Seat, mpsc::Receiver<String>), Error> {
        let Introduction {
            instance_id,
            service,
            sole_process,
            providers,
        } = driver;
        self.instances.hello(instance_id, service, *sole_process).await?;
        if *sole_process {
            self.sweep.run().await?;
        }
        for seated in providers {
            self.reconciliations
                .rekeyed(&seated.provider, &seated.credential)
                .await?;
        }
        tracing::info!(instance_id, service, sole_process, "a driver follows");
        Ok(self.hub.join(instance_id))
    }

    /// What there is to do for a driver. Asked with its hello and with every heartbeat, which are the ledger's ticks: work
    /// is given only to who was just heard.
    ///
    /// # Errors
    /// The database's.
    pub async fn chores(&self, driver: &Introduction, resumable: &[String]) -> Result<Chores, Error> {
        let instance_id = &driver.instance_id;
        Ok(Chores {
            cancels: all_users_untold(self.db.read(), instance_id, 1_000).await?,
            resumes: self.adoption.orders(instance_id, resumable).await?,
            // A driver of a release that knows no bills names no providers.
            bills: match driver.providers.as_slice() {
                [] => Vec::new(),
                _ => self.reconciliations.due().await?,
            },
        })
    }
}
