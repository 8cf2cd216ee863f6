//! A decimal that keeps all its digits on both engines.

use std::str::FromStr;

use sea_orm::prelude::Decimal;
use sea_orm::sea_query::{ArrayType, ColumnType, Nullable, ValueType, ValueTypeErr};
use sea_orm::{ColIdx, DbErr, QueryResult, TryGetError, TryGetable, Value};

/// A decimal in a [`money`](super::columns::money) column. sea-orm alone would read TEXT columns of SQLite through a
/// float. Zeros at the end are cut, so that equal amounts look equal on both engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Exact(pub Decimal);

impl From<Decimal> for Exact {
    fn from(value: Decimal) -> Self {
        Self(value)
    }
}

impl From<Exact> for Decimal {
    fn from(value: Exact) -> Self {
        value.0
    }
}

impl From<Exact> for Value {
    fn from(value: Exact) -> Self {
        // Bound as text on SQLite and as NUMERIC on PostgreSQL.
        Value::Decimal(Some(value.0.normalize()))
    }
}

impl TryGetable for Exact {
    fn try_get_by<I: ColIdx>(row: &QueryResult, index: I) -> Result<Self, TryGetError> {
        if row.try_as_pg_row().is_some() {
            return Decimal::try_get_by(row, index).map(|value| Self(value.normalize()));
        }
        let text = String::try_get_by(row, index)?;
        let value = Decimal::from_str(&text).map_err(|error| DbErr::Type(error.to_string()))?;
        Ok(Self(value.normalize()))
    }
}

impl ValueType for Exact {
    fn try_from(value: Value) -> Result<Self, ValueTypeErr> {
        <Decimal as ValueType>::try_from(value).map(Self)
    }

    fn type_name() -> String {
        "Exact".to_owned()
    }

    fn array_type() -> ArrayType {
        ArrayType::Decimal
    }

    fn column_type() -> ColumnType {
        ColumnType::Decimal(Some((20, 9)))
    }
}

impl Nullable for Exact {
    fn null() -> Value {
        Value::Decimal(None)
    }
}
