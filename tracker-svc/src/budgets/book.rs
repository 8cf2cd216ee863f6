//! The budgets that one batch of transitions touches, for the length of its transaction.
//!
//! The rows are locked first, in the order of their ids and before any row of the ledger, so that no two writers wait for
//! each other. What the batch changes is added up here and written at its end, one statement per budget: two hundred
//! calls on one budget write it once. A batch that is rolled back leaves nothing, as nothing here outlives it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::tz::TimeZone;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder,
    QuerySelect,
};

use super::{EVERYBODY, Exceeded, Scope, Target, Usage, target};
use crate::charge::Charge;
use crate::entity::words::{Hold, Unpriced};
use crate::entity::{budget_holds, budget_windows, budgets, generations};
use crate::error::Error;
use crate::ledger::{Open, clock};
use crate::time::LedgerTime;
use crate::zones;

/// The budgets of a batch.
#[derive(Debug, Default)]
pub(crate) struct Book {
    now: i64,
    pages: Vec<Page>,
    holds: HashMap<String, Vec<Entry>>,
}

/// One budget.
#[derive(Debug)]
struct Page {
    budget: budgets::Model,
    scope: Scope,
    /// The period of now.
    current: i64,
    /// What the current period has, with what this batch adds.
    spent: i64,
    calls: i64,
    /// What this batch adds.
    held_more: i64,
    windows: BTreeMap<i64, (i64, i64)>,
}

#[derive(Debug)]
struct Entry {
    page: usize,
    hold: budget_holds::Model,
    fresh: bool,
    dirty: bool,
}

/// What an admitted call holds: of which budget how much.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Admitted(Vec<(usize, i64)>);

impl Book {
    /// Locks and reads the budgets that these openings fall under, and those of which these rows hold something.
    ///
    /// # Errors
    /// The database's.
    pub(crate) async fn lock<C: ConnectionTrait>(
        tx: &C,
        time: &LedgerTime,
        opens: &[&Open],
        rows: &[&str],
    ) -> Result<Self, Error> {
        let mut wanted = Condition::any();
        let holds = holds_of(tx, rows).await?;
        if !holds.is_empty() {
            let ids: BTreeSet<&str> = holds.iter().map(|hold| hold.budget_id.as_str()).collect();
            wanted = wanted.add(budgets::Column::Id.is_in(ids));
        }
        if !opens.is_empty() {
            let mut users: BTreeSet<&str> = opens.iter().map(|open| open.user_id.as_str()).collect();
            users.insert(EVERYBODY);
            let scopes: BTreeSet<String> = opens
                .iter()
                .flat_map(|open| Scope::of(&open.origin, &open.provider))
                .map(|scope| scope.text())
                .collect();
            wanted = wanted.add(
                Condition::all()
                    .add(budgets::Column::UserId.is_in(users))
                    .add(budgets::Column::Scope.is_in(scopes)),
            );
        }
        if wanted.is_empty() {
            return Ok(Self::default());
        }
        let found = budgets::Entity::find()
            .filter(wanted)
            .order_by_asc(budgets::Column::Id)
            .lock_exclusive()
            .all(tx)
            .await?;
        if found.is_empty() {
            return Ok(Self::default());
        }
        let now = clock(tx, time).await?;
        let mut book = Self {
            now,
            ..Self::default()
        };
        for budget in found {
            book.pages.push(Page::new(budget, now)?);
        }
        book.read_windows(tx).await?;
        // Once more: what another writer did to them is done now.
        for hold in holds_of(tx, rows).await? {
            book.take_up(hold, false);
        }
        Ok(book)
    }

    async fn read_windows<C: ConnectionTrait>(&mut self, tx: &C) -> Result<(), Error> {
        use budget_windows::Column;
        let current = self.pages.iter().fold(Condition::any(), |any, page| {
            any.add(
                Condition::all()
                    .add(Column::BudgetId.eq(page.budget.id.as_str()))
                    .add(Column::StartsAt.eq(page.current)),
            )
        });
        for window in budget_windows::Entity::find().filter(current).all(tx).await? {
            if let Some(page) = self
                .pages
                .iter_mut()
                .find(|page| page.budget.id == window.budget_id)
            {
                (page.spent, page.calls) = (window.spent, window.calls);
            }
        }
        Ok(())
    }

    fn take_up(&mut self, hold: budget_holds::Model, fresh: bool) {
        if let Some(page) = self
            .pages
            .iter()
            .position(|page| page.budget.id == hold.budget_id)
        {
            self.holds
                .entry(hold.generation_id.clone())
                .or_default()
                .push(Entry {
                    page,
                    hold,
                    fresh,
                    dirty: false,
                });
        }
    }

    /// Whether a call may be opened, and what it will hold. Changes nothing.
    ///
    /// # Errors
    /// `Exceeded`, `Unpriced`.
    pub(crate) fn admit(&self, open: &Open) -> Result<Admitted, Error> {
        let scopes = Scope::of(&open.origin, &open.provider);
        let mut admitted = Admitted::default();
        for (place, page) in self.pages.iter().enumerate() {
            let budget = &page.budget;
            let of_user = budget.user_id == open.user_id || budget.user_id == EVERYBODY;
            if of_user && scopes.contains(&page.scope) {
                let estimate = page.estimate(open.estimate.as_ref())?;
                page.room_for(estimate)?;
                admitted.0.push((place, estimate));
            }
        }
        Ok(admitted)
    }

    /// Whether every budget that a call falls under has something left.
    ///
    /// # Errors
    /// `Exceeded`.
    pub(crate) fn something_left(&self, admitted: &Admitted) -> Result<(), Error> {
        for (place, estimate) in &admitted.0 {
            if let Some(page) = self.pages.get(*place)
                && page.budget.cap.is_some_and(|cap| page.used() >= cap)
            {
                return Err(page.exceeded(page.amounts(*estimate)));
            }
        }
        Ok(())
    }

    /// Holds what an admitted call was admitted with.
    pub(crate) fn hold(&mut self, generation_id: &str, admitted: Admitted) {
        for (place, estimate) in admitted.0 {
            let Some(page) = self.pages.get_mut(place) else {
                continue;
            };
            page.held_more = page.held_more.saturating_add(estimate);
            page.count(page.current, 0, 1);
            let hold = budget_holds::Model {
                generation_id: generation_id.to_owned(),
                budget_id: page.budget.id.clone(),
                state: Hold::Held,
                estimate,
                amount: None,
                opened_in: page.current,
                settled_in: None,
                created_at: self.now,
                settled_at: None,
            };
            self.take_up(hold, true);
        }
    }

    /// Whether a row holds, or held, something.
    pub(crate) fn concerns(&self, generation_id: &str) -> bool {
        self.holds.contains_key(generation_id)
    }

    /// Brings what a row holds to what the row comes to. Again it changes nothing.
    pub(crate) fn follow(&mut self, row: &generations::Model) {
        let target = target(row, self.now);
        for entry in self.holds.get_mut(&row.id).into_iter().flatten() {
            let Some(page) = self.pages.get_mut(entry.page) else {
                continue;
            };
            let amount = match target {
                Target::Held => continue,
                Target::Released => None,
                Target::Estimate => Some(entry.hold.estimate),
                // A cost in another currency cannot be booked here; the estimate is the nearest to it.
                Target::Cost if row.currency.as_deref() == Some(page.budget.currency.as_str()) => row.cost,
                Target::Cost => Some(entry.hold.estimate),
            };
            page.book(&mut entry.hold, amount, self.now, &mut entry.dirty);
        }
    }

    /// Writes what the batch changed.
    ///
    /// # Errors
    /// The database's.
    pub(crate) async fn save<C: ConnectionTrait>(self, tx: &C) -> Result<(), Error> {
        for page in &self.pages {
            page.save(tx).await?;
        }
        let (fresh, known): (Vec<_>, Vec<_>) =
            self.holds.into_values().flatten().partition(|entry| entry.fresh);
        let fresh: Vec<_> = fresh
            .into_iter()
            .map(|entry| entry.hold.into_active_model())
            .collect();
        for some in fresh.chunks(500) {
            budget_holds::Entity::insert_many(some.to_vec())
                .exec_without_returning(tx)
                .await?;
        }
        for entry in known.into_iter().filter(|entry| entry.dirty) {
            use budget_holds::Column;
            let hold = entry.hold;
            budget_holds::Entity::update_many()
                .col_expr(Column::State, Expr::value(hold.state))
                .col_expr(Column::Amount, Expr::value(hold.amount))
                .col_expr(Column::SettledIn, Expr::value(hold.settled_in))
                .col_expr(Column::SettledAt, Expr::value(hold.settled_at))
                .filter(Column::GenerationId.eq(hold.generation_id))
                .filter(Column::BudgetId.eq(hold.budget_id))
                .exec(tx)
                .await?;
        }
        Ok(())
    }
}

impl Page {
    fn new(budget: budgets::Model, now: i64) -> Result<Self, Error> {
        Ok(Self {
            current: current(&budget, now)?.0,
            scope: Scope::parse(&budget.scope).ok_or(Error::Corrupt("scope of a budget"))?,
            budget,
            spent: 0,
            calls: 0,
            held_more: 0,
            windows: BTreeMap::new(),
        })
    }

    fn held(&self) -> i64 {
        self.budget.held.saturating_add(self.held_more)
    }

    fn used(&self) -> i64 {
        self.spent.saturating_add(self.held())
    }

    /// What a call with this estimate holds here.
    fn estimate(&self, estimate: Option<&Charge>) -> Result<i64, Error> {
        let budget = &self.budget;
        if let Some(charge) = estimate.filter(|charge| charge.currency == budget.currency) {
            return Ok(charge.cost);
        }
        match budget.unpriced {
            Unpriced::Allow => Ok(0),
            Unpriced::Assume => Ok(budget.assumed.unwrap_or_default()),
            Unpriced::Deny => Err(Error::Unpriced {
                budget_id: budget.id.clone(),
            }),
        }
    }

    fn room_for(&self, estimate: i64) -> Result<(), Error> {
        if let Some(max_calls) = self.budget.max_calls
            && self.calls >= max_calls
        {
            let calls = self.calls;
            return Err(self.exceeded(Usage::Calls { max_calls, calls }));
        }
        match self.budget.cap {
            Some(cap) if self.used().saturating_add(estimate) > cap => {
                Err(self.exceeded(self.amounts(estimate)))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn amounts(&self, estimate: i64) -> Usage {
        Usage::Amount {
            cap: self.budget.cap.unwrap_or_default(),
            spent: self.spent,
            held: self.held(),
            estimate,
            currency: self.budget.currency.clone(),
        }
    }

    fn exceeded(&self, usage: Usage) -> Error {
        Error::Exceeded(Box::new(Exceeded {
            budget_id: self.budget.id.clone(),
            scope: self.scope.clone(),
            usage: (self.budget.user_id != EVERYBODY).then_some(usage),
        }))
    }

    fn count(&mut self, window: i64, spent: i64, calls: i64) {
        if window == self.current {
            self.spent = self.spent.saturating_add(spent);
            self.calls = self.calls.saturating_add(calls);
        }
        let entry = self.windows.entry(window).or_default();
        entry.0 = entry.0.saturating_add(spent);
        entry.1 = entry.1.saturating_add(calls);
    }

    /// Books an amount for a hold, or releases it.
    fn book(&mut self, hold: &mut budget_holds::Model, amount: Option<i64>, now: i64, dirty: &mut bool) {
        let state = if amount.is_some() {
            Hold::Settled
        } else {
            Hold::Released
        };
        if (hold.state, hold.amount) == (state, amount) {
            return;
        }
        match (hold.state, state) {
            (Hold::Held, _) => self.held_more = self.held_more.saturating_sub(hold.estimate),
            // Evidence that something was sent after all: the call counts again.
            (Hold::Released, Hold::Settled) => self.count(hold.opened_in, 0, 1),
            (Hold::Released | Hold::Settled, _) => {}
        }
        if state == Hold::Released {
            self.count(hold.opened_in, 0, -1);
        }
        if amount.is_some() {
            hold.settled_in.get_or_insert(self.current);
        }
        let booked_in = hold.settled_in.unwrap_or(self.current);
        let more = amount
            .unwrap_or_default()
            .saturating_sub(hold.amount.unwrap_or_default());
        self.count(booked_in, more, 0);
        hold.state = state;
        hold.amount = amount;
        hold.settled_at = Some(now);
        *dirty = true;
    }

    async fn save<C: ConnectionTrait>(&self, tx: &C) -> Result<(), Error> {
        if self.held_more != 0 {
            use budgets::Column;
            budgets::Entity::update_many()
                .col_expr(Column::Held, Expr::col(Column::Held).add(self.held_more))
                .filter(Column::Id.eq(self.budget.id.as_str()))
                .exec(tx)
                .await?;
        }
        for (starts_at, (spent, calls)) in &self.windows {
            if (*spent, *calls) == (0, 0) {
                continue;
            }
            use budget_windows::{Column, Entity, Model};
            let window = Model {
                budget_id: self.budget.id.clone(),
                starts_at: *starts_at,
                spent: *spent,
                calls: *calls,
            };
            let sum = |column: Column| {
                Expr::col((Entity, column)).add(Expr::cust(format!(
                    "excluded.{}",
                    sea_orm::sea_query::Iden::unquoted(&column)
                )))
            };
            Entity::insert(window.into_active_model())
                .on_conflict(
                    OnConflict::columns([Column::BudgetId, Column::StartsAt])
                        .value(Column::Spent, sum(Column::Spent))
                        .value(Column::Calls, sum(Column::Calls))
                        .to_owned(),
                )
                .exec_without_returning(tx)
                .await?;
        }
        Ok(())
    }
}

/// The period of a budget that an instant lies in.
pub(crate) fn current(budget: &budgets::Model, at: i64) -> Result<(i64, Option<i64>), Error> {
    let zone: TimeZone = zones::named(&budget.time_zone)
        .map_err(|_| Error::Corrupt("time zone of a budget"))?
        .1;
    zones::window(budget.period, &zone, at)
}

async fn holds_of<C: ConnectionTrait>(tx: &C, rows: &[&str]) -> Result<Vec<budget_holds::Model>, Error> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    Ok(budget_holds::Entity::find()
        .filter(budget_holds::Column::GenerationId.is_in(rows.iter().copied()))
        .all(tx)
        .await?)
}
