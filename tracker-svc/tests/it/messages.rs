//! Messages to send, readings of those that came back, and rows that no caller can make.

use atelier_proto::common::v1::{MapValue, Money, Origin};
use atelier_proto::reason::reason_of;
use atelier_proto::tracker::v1;
use atelier_proto::value::{Map, Value};
use tonic::{Code, Status};
use uuid::Uuid;

use crate::stack::{Answer, Stack};

pub fn prompt(text: &str) -> MapValue {
    let map: Map = [("prompt".to_owned(), Value::from(text))].into_iter().collect();
    (&map).into()
}

pub fn charge(amount: &str) -> v1::Charge {
    charge_in(amount, "USD")
}

pub fn charge_in(amount: &str, currency: &str) -> v1::Charge {
    v1::Charge {
        cost: Some(Money {
            amount: amount.into(),
            currency: currency.into(),
        }),
        billing_unit: Some("images".into()),
        quantity: Some("1".into()),
        unit_price: Some(amount.into()),
        breakdown: None,
    }
}

pub fn receipt(request_id: Option<&str>, amount: Option<&str>) -> Option<v1::Receipt> {
    Some(v1::Receipt {
        provider_request_id: request_id.map(Into::into),
        charge: amount.map(charge),
    })
}

pub fn in_job(job_id: &str, node_id: &str) -> Option<Origin> {
    Some(Origin {
        job_id: Some(job_id.into()),
        node_id: Some(node_id.into()),
        ..Default::default()
    })
}

pub fn amount(money: Option<&Money>) -> Option<&str> {
    money.map(|money| money.amount.as_str())
}

/// A fact of the row.
pub fn fact(row: &v1::Generation, key: &str) -> Option<Value> {
    Map::try_from(row.metadata.clone().unwrap())
        .unwrap()
        .get(key)
        .cloned()
}

pub fn text_fact(row: &v1::Generation, key: &str) -> Option<String> {
    fact(row, key).and_then(|value| value.as_str().map(ToOwned::to_owned))
}

pub fn conflicts(row: &v1::Generation) -> usize {
    fact(row, "conflicts").map_or(0, |list| list.as_list().unwrap().len())
}

/// The error of a refused call.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(answer: Answer<T>, code: Code, reason: &str) -> Status {
    let status = answer.unwrap_err();
    assert_eq!(
        (status.code(), reason_of(&status).as_str()),
        (code, reason),
        "{status:?}"
    );
    status
}

/// Adds copies of a row straight to the table, for what no caller can make: many, or of one instant.
pub async fn copies(
    stack: &Stack,
    id: &str,
    count: usize,
    change: impl Fn(usize, &mut atelier_tracker::entity::generations::Model),
) {
    use atelier_tracker::entity::generations::Entity;
    use sea_orm::{EntityTrait, IntoActiveModel};
    let template = Entity::find_by_id(id.to_owned())
        .one(stack.db.read())
        .await
        .unwrap()
        .unwrap();
    let rows: Vec<_> = (0..count)
        .map(|n| {
            let mut row = template.clone();
            row.id = Uuid::now_v7().to_string();
            change(n, &mut row);
            row
        })
        .collect();
    let tx = stack.db.begin().await.unwrap();
    for rows in rows.chunks(500) {
        let rows = rows.iter().map(|row| row.clone().into_active_model());
        Entity::insert_many(rows)
            .exec_without_returning(&*tx)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
}
