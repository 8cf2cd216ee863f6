//! Setting and reading budgets, always for one caller.

use atelier_common::db::Db;
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, FromQueryResult, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect, Set,
};
use uuid::Uuid;

use super::{Scope, page};
use crate::entity::budget_words::{Period, Unpriced};
use crate::entity::budgets::{ActiveModel, Column, Entity, Model};
use crate::entity::{budget_windows, budgets};
use crate::error::Error;
use crate::ledger::{clock, insert_with};
use crate::queries::page_size_of;
use crate::time::LedgerTime;

/// Most budgets that bound one user.
const MOST: u64 = 1_000;

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    /// The user.
    pub user_id: String,
    /// Whether they may see and set budgets of others.
    pub admin: bool,
}

impl Asker {
    /// Whose budgets are meant by `user_id`, and whether that is somebody else.
    fn of<'a>(&'a self, user_id: &'a str) -> Result<(&'a str, bool), Error> {
        match user_id {
            "" => Ok((&self.user_id, false)),
            own if own == self.user_id => Ok((own, false)),
            other if self.admin => Ok((other, true)),
            _ => Err(Error::AdminOnly),
        }
    }

    /// Which budgets exist for whoever asks.
    fn sees(&self) -> Condition {
        if self.admin {
            Condition::all()
        } else {
            Condition::all().add(Column::UserId.eq(self.user_id.as_str()))
        }
    }

    fn may_change(&self, budget: &Model) -> Result<(), Error> {
        if budget.managed && !self.admin {
            Err(Error::BudgetManaged)
        } else {
            Ok(())
        }
    }
}

/// A budget to set.
#[derive(Debug, Clone)]
pub struct SetBudget {
    /// Whose calls; empty for those of whoever asks.
    pub user_id: String,
    /// Which of those.
    pub scope: Scope,
    /// When it starts over.
    pub period: Period,
    /// Name of the time zone of its days and months, as the database of zones spells it.
    pub time_zone: String,
    /// The most that may be spent, in billionths.
    pub cap: Option<i64>,
    /// Currency of every amount of it.
    pub currency: String,
    /// The most calls.
    pub max_calls: Option<i64>,
    /// What happens to calls without a price.
    pub unpriced: Unpriced,
    /// What such a call is taken to cost, in billionths.
    pub assumed: Option<i64>,
}

/// A budget, and what is used of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The budget.
    pub budget: Model,
    /// Settled in the period of now.
    pub spent: i64,
    /// Calls of that period.
    pub calls: i64,
    /// When that period began.
    pub starts_at: i64,
    /// When the next one begins; `None` for one that never starts over.
    pub ends_at: Option<i64>,
}

/// The budgets. Clones are the same ones.
#[derive(Clone)]
pub struct Budgets {
    db: Db,
    time: LedgerTime,
}

impl Budgets {
    /// The budgets of this database.
    #[must_use]
    pub fn new(db: Db, time: LedgerTime) -> Self {
        Self { db, time }
    }

    /// Sets a budget; as it is then, and whether it is new.
    ///
    /// # Errors
    /// `AdminOnly`; `Invalid` for another time zone than it has, or one budget too many.
    pub async fn set(&self, asker: &Asker, set: SetBudget) -> Result<(Standing, bool), Error> {
        let (user_id, managed) = asker.of(&set.user_id)?;
        let scope = set.scope.text();
        let key = Condition::all()
            .add(Column::UserId.eq(user_id))
            .add(Column::Scope.eq(scope.as_str()))
            .add(Column::Period.eq(set.period))
            .add(Column::Currency.eq(set.currency.as_str()))
            .add(Column::Managed.eq(managed));
        let tx = self.db.begin().await?;
        let find = || Entity::find().filter(key.clone()).lock_exclusive().one(&*tx);
        let mut created = None;
        let known = match find().await? {
            Some(known) => Some(known),
            None => {
                let have = Entity::find()
                    .filter(Column::UserId.eq(user_id))
                    .count(&*tx)
                    .await?;
                if have >= MOST {
                    return Err(Error::invalid(
                        "key",
                        format!("would be one of more than {MOST} budgets"),
                    ));
                }
                created = self.insert(&*tx, user_id, managed, &set).await?;
                match created {
                    Some(_) => None,
                    // Somebody else set it in between.
                    None => find().await?,
                }
            }
        };
        let budget = match (&created, known) {
            (Some(created), _) => created.clone(),
            (None, Some(known)) => self.change(&*tx, known, &set).await?,
            (None, None) => return Err(Error::BudgetNotFound),
        };
        let now = clock(&*tx, &self.time).await?;
        let standing = self.standing(&*tx, vec![budget], now).await?.pop();
        tx.commit().await?;
        Ok((standing.ok_or(Error::Corrupt("budget"))?, created.is_some()))
    }

    async fn insert<C: ConnectionTrait>(
        &self,
        tx: &C,
        user_id: &str,
        managed: bool,
        set: &SetBudget,
    ) -> Result<Option<Model>, Error> {
        let values = ActiveModel {
            id: Set(Uuid::now_v7().to_string()),
            user_id: Set(user_id.to_owned()),
            scope: Set(set.scope.text()),
            period: Set(set.period),
            time_zone: Set(set.time_zone.clone()),
            cap: Set(set.cap),
            currency: Set(set.currency.clone()),
            max_calls: Set(set.max_calls),
            unpriced: Set(set.unpriced),
            assumed: Set(set.assumed),
            managed: Set(managed),
            held: Set(0),
            ..Default::default()
        };
        let now = self.time.now();
        let mut insert = insert_with(
            &values,
            [(Column::CreatedAt, now.clone()), (Column::UpdatedAt, now)],
        )?;
        insert
            .on_conflict(OnConflict::new().do_nothing().to_owned())
            .returning_all();
        let row = tx.query_one(&insert).await?;
        Ok(row.map(|row| Model::from_query_result(&row, "")).transpose()?)
    }

    async fn change<C: ConnectionTrait>(
        &self,
        tx: &C,
        known: Model,
        set: &SetBudget,
    ) -> Result<Model, Error> {
        if known.time_zone != set.time_zone {
            return Err(Error::invalid(
                "time_zone",
                format!("is {}, and periods that began cannot be moved", known.time_zone),
            ));
        }
        let changed = Entity::update_many()
            .col_expr(Column::Cap, Expr::value(set.cap))
            .col_expr(Column::MaxCalls, Expr::value(set.max_calls))
            .col_expr(Column::Unpriced, Expr::value(set.unpriced))
            .col_expr(Column::Assumed, Expr::value(set.assumed))
            .col_expr(Column::UpdatedAt, self.time.now())
            .filter(Column::Id.eq(known.id))
            .exec_with_returning(tx)
            .await?;
        changed.into_iter().next().ok_or(Error::BudgetNotFound)
    }

    /// One budget, with what is used of it.
    ///
    /// # Errors
    /// `BudgetNotFound`, the same for foreign and missing.
    pub async fn get(&self, asker: &Asker, id: &str) -> Result<Standing, Error> {
        let connection = self.db.read();
        let budget = Entity::find()
            .filter(Column::Id.eq(id))
            .filter(asker.sees())
            .one(connection)
            .await?
            .ok_or(Error::BudgetNotFound)?;
        let now = clock(connection, &self.time).await?;
        let standing = self.standing(connection, vec![budget], now).await?.pop();
        standing.ok_or(Error::Corrupt("budget"))
    }

    /// A page of budgets, oldest first, and the token of the next one.
    ///
    /// # Errors
    /// `AdminOnly`; `Invalid`; `PageToken`.
    pub async fn list(
        &self,
        asker: &Asker,
        user_id: &str,
        page_size: i32,
        page_token: &str,
    ) -> Result<(Vec<Standing>, String), Error> {
        let (user_id, _) = asker.of(user_id)?;
        let size = page_size_of(page_size)?;
        let after = match page_token {
            "" => None,
            token => Some(Uuid::parse_str(token).map_err(|_| Error::PageToken)?.to_string()),
        };
        let connection = self.db.read();
        let mut found = Entity::find()
            .filter(Column::UserId.eq(user_id))
            .filter(Condition::all().add_option(after.map(|after| Column::Id.gt(after))))
            .order_by_asc(Column::Id)
            .limit(size + 1)
            .all(connection)
            .await?;
        let more = u64::try_from(found.len()).unwrap_or(u64::MAX) > size;
        if more {
            found.pop();
        }
        let next = found.last().filter(|_| more).map(|last| last.id.clone());
        let now = clock(connection, &self.time).await?;
        Ok((
            self.standing(connection, found, now).await?,
            next.unwrap_or_default(),
        ))
    }

    /// Removes a budget, and what was counted in it.
    ///
    /// # Errors
    /// `BudgetNotFound`; `BudgetManaged`.
    pub async fn delete(&self, asker: &Asker, id: &str) -> Result<(), Error> {
        let tx = self.db.begin().await?;
        let budget = Entity::find()
            .filter(Column::Id.eq(id))
            .filter(asker.sees())
            .lock_exclusive()
            .one(&*tx)
            .await?
            .ok_or(Error::BudgetNotFound)?;
        asker.may_change(&budget)?;
        Entity::delete_by_id(budget.id).exec(&*tx).await?;
        Ok(tx.commit().await?)
    }

    async fn standing<C: ConnectionTrait>(
        &self,
        connection: &C,
        budgets: Vec<budgets::Model>,
        now: i64,
    ) -> Result<Vec<Standing>, Error> {
        use budget_windows::Column as Window;
        let mut standings = Vec::with_capacity(budgets.len());
        let mut current = Condition::any();
        for budget in budgets {
            let (starts_at, ends_at) = page::current(&budget, now)?;
            current = current.add(
                Condition::all()
                    .add(Window::BudgetId.eq(budget.id.as_str()))
                    .add(Window::StartsAt.eq(starts_at)),
            );
            standings.push(Standing {
                budget,
                spent: 0,
                calls: 0,
                starts_at,
                ends_at,
            });
        }
        if standings.is_empty() {
            return Ok(standings);
        }
        for window in budget_windows::Entity::find()
            .filter(current)
            .all(connection)
            .await?
        {
            if let Some(standing) = standings
                .iter_mut()
                .find(|standing| standing.budget.id == window.budget_id)
            {
                (standing.spent, standing.calls) = (window.spent, window.calls);
            }
        }
        Ok(standings)
    }
}
