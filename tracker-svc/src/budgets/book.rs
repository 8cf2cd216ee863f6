//! The budgets that one batch of transitions touches, for the length of its transaction.
//!
//! The rows are locked first, in the order of their ids and before any row of the ledger, so that no two writers wait for
//! each other. What the batch changes is added up here and written at its end, one statement per budget: two hundred
//! calls on one budget write it once. A batch that is rolled back leaves nothing, as nothing here outlives it.

use std::collections::{BTreeSet, HashMap};

use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder,
    QuerySelect,
};

use super::page::Page;
use super::{EVERYBODY, Scope, Target, target};
use crate::entity::budget_words::Hold;
use crate::entity::{budget_holds, budget_windows, budgets, generations};
use crate::error::Error;
use crate::ledger::{Open, clock};
use crate::time::LedgerTime;

/// The budgets of a batch.
#[derive(Debug, Default)]
pub(crate) struct Book {
    now: i64,
    pages: Vec<Page>,
    holds: HashMap<String, Vec<Entry>>,
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

async fn holds_of<C: ConnectionTrait>(tx: &C, rows: &[&str]) -> Result<Vec<budget_holds::Model>, Error> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    Ok(budget_holds::Entity::find()
        .filter(budget_holds::Column::GenerationId.is_in(rows.iter().copied()))
        .all(tx)
        .await?)
}
