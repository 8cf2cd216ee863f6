//! One budget, for the length of a batch: what is used of it, and what the batch adds.

use std::collections::BTreeMap;

use sea_orm::sea_query::{Expr, ExprTrait, OnConflict};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter};

use super::{EVERYBODY, Exceeded, Scope, Usage};
use crate::charge::Charge;
use crate::entity::budget_words::{Hold, Unpriced};
use crate::entity::{budget_holds, budget_windows, budgets};
use crate::error::Error;
use crate::zones;

/// One budget.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) budget: budgets::Model,
    pub(super) scope: Scope,
    /// The period of now.
    pub(super) current: i64,
    /// What the current period has, with what this batch adds.
    pub(super) spent: i64,
    pub(super) calls: i64,
    /// What this batch adds.
    pub(super) held_more: i64,
    pub(super) windows: BTreeMap<i64, (i64, i64)>,
}

impl Page {
    pub(super) fn new(budget: budgets::Model, now: i64) -> Result<Self, Error> {
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

    pub(super) fn held(&self) -> i64 {
        self.budget.held.saturating_add(self.held_more)
    }

    pub(super) fn used(&self) -> i64 {
        self.spent.saturating_add(self.held())
    }

    /// What a call with this estimate holds here.
    pub(super) fn estimate(&self, estimate: Option<&Charge>) -> Result<i64, Error> {
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

    pub(super) fn room_for(&self, estimate: i64) -> Result<(), Error> {
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

    pub(super) fn amounts(&self, estimate: i64) -> Usage {
        Usage::Amount {
            cap: self.budget.cap.unwrap_or_default(),
            spent: self.spent,
            held: self.held(),
            estimate,
            currency: self.budget.currency.clone(),
        }
    }

    pub(super) fn exceeded(&self, usage: Usage) -> Error {
        Error::Exceeded(Box::new(Exceeded {
            budget_id: self.budget.id.clone(),
            scope: self.scope.clone(),
            usage: (self.budget.user_id != EVERYBODY).then_some(usage),
        }))
    }

    pub(super) fn count(&mut self, window: i64, spent: i64, calls: i64) {
        if window == self.current {
            self.spent = self.spent.saturating_add(spent);
            self.calls = self.calls.saturating_add(calls);
        }
        let entry = self.windows.entry(window).or_default();
        entry.0 = entry.0.saturating_add(spent);
        entry.1 = entry.1.saturating_add(calls);
    }

    /// Books an amount for a hold, or releases it.
    pub(super) fn book(
        &mut self,
        hold: &mut budget_holds::Model,
        amount: Option<i64>,
        now: i64,
        dirty: &mut bool,
    ) {
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

    pub(super) async fn save<C: ConnectionTrait>(&self, tx: &C) -> Result<(), Error> {
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
    let zone = zones::named(&budget.time_zone)
        .map_err(|_| Error::Corrupt("time zone of a budget"))?
        .1;
    zones::window(budget.period, &zone, at)
}
