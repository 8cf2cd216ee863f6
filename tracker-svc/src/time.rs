//! The ledger's time: the database's clock, in microseconds, as an expression inside the statement that needs it.
//!
//! On PostgreSQL every replica asks the one server, so hosts whose clocks differ cannot disagree about a lease. On SQLite
//! the database has no other clock than this process's.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use atelier_common::clock::Clock;
use atelier_proto::time::micros;
use sea_orm::DbBackend;
use sea_orm::sea_query::Expr;

/// Microseconds of a duration.
#[must_use]
pub fn micros_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Tells the ledger's time. Clones are the same clock.
#[derive(Debug, Clone)]
pub struct LedgerTime {
    backend: DbBackend,
    clock: Clock,
    shift: Arc<AtomicI64>,
    fixed: Option<i64>,
}

impl LedgerTime {
    /// The clock of a database of this kind; `clock` is used where the database has none of its own.
    #[must_use]
    pub fn new(backend: DbBackend, clock: Clock) -> Self {
        Self {
            backend,
            clock,
            shift: Arc::default(),
            fixed: None,
        }
    }

    /// Moves the ledger's time on, for tests: added to the clock in every statement of this process.
    pub fn advance(&self, by: Duration) {
        self.shift.fetch_add(micros_of(by), Ordering::SeqCst);
    }

    /// The same clock, standing still where it is this process's: for the statements of one transition, so that what
    /// happens at once has one instant. On PostgreSQL every statement has one instant by itself.
    #[must_use]
    pub fn held(&self) -> Self {
        Self {
            fixed: Some(self.own()),
            ..self.clone()
        }
    }

    fn own(&self) -> i64 {
        self.fixed
            .unwrap_or_else(|| micros(self.clock.now()).saturating_add(self.shift.load(Ordering::SeqCst)))
    }

    /// SQL that gives the current instant.
    #[must_use]
    pub fn sql(&self) -> String {
        if self.backend == DbBackend::Postgres {
            let shift = self.shift.load(Ordering::SeqCst);
            // The same for every column of one statement.
            format!("(CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000000 AS BIGINT) + {shift})")
        } else {
            self.own().to_string()
        }
    }

    /// The current instant, inside a statement.
    #[must_use]
    pub fn now(&self) -> Expr {
        Expr::cust(self.sql())
    }

    /// So much later than now, inside a statement.
    #[must_use]
    pub fn later(&self, by: Duration) -> Expr {
        Expr::cust(format!("({} + {})", self.sql(), micros_of(by)))
    }
}
