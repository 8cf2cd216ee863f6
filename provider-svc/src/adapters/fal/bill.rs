//! Billing events of the platform. A job may have several, and a page may hold those of others.

use chrono::SecondsFormat;
use reqwest::Method;
use rust_decimal::Decimal;
use serde_json::Value;

use atelier_proto::money::Money;

use super::Fal;
use crate::adapters::web::{NoAnswer, decimal};
use crate::provider::{Bill, Class, Failure, Job};
use crate::seam::receipt::Stated;

/// Pages of events that are read at most.
const MAX_PAGES: usize = 10;
/// How long before its submission the events of a job are looked for: two clocks are compared.
const MARGIN: chrono::TimeDelta = chrono::TimeDelta::hours(1);

impl Fal {
    pub(super) async fn bill(&self, job: &Job) -> Result<Bill, Failure> {
        let mut sum = Sum::default();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let page = match self.page(job, cursor.as_deref()).await? {
                Ok(page) => page,
                Err(denied) => return Ok(denied),
            };
            let events = page
                .get("billing_events")
                .and_then(Value::as_array)
                .ok_or_else(unreadable)?;
            let own = |event: &&Value| {
                event.get("request_id").and_then(Value::as_str) == Some(job.request_id.as_str())
            };
            for event in events.iter().filter(own) {
                sum.add(event)?;
            }
            let more = page.get("has_more").and_then(Value::as_bool).unwrap_or_default();
            cursor = page
                .get("next_cursor")
                .and_then(Value::as_str)
                .filter(|_| more)
                .map(ToOwned::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        Ok(sum.bill())
    }

    async fn page(&self, job: &Job, cursor: Option<&str>) -> Result<Result<Value, Bill>, Failure> {
        let mut url = self
            .platform
            .join("v1/models/billing-events")
            .map_err(|_| unreadable())?;
        let start = (job.submitted_at - MARGIN).to_rfc3339_opts(SecondsFormat::Secs, true);
        url.query_pairs_mut()
            .append_pair("request_id", &job.request_id)
            .append_pair("start", &start)
            .extend_pairs(cursor.map(|cursor| ("cursor", cursor)));
        let request = self.request(Method::GET, url);
        let answer = self.web.ask(request).await.map_err(NoAnswer::of_question)?;
        match answer.status {
            200..=299 => answer.json().map(Ok).ok_or_else(unreadable),
            401 | 403 => Ok(Err(Bill::Denied(
                "the key may not read bills: it needs the scope of an administrator".to_owned(),
            ))),
            status => Err(Failure::new(
                Class::ProviderTransient,
                format!("the bills answered {status}"),
            )),
        }
    }
}

/// The events of one job.
#[derive(Default)]
struct Sum {
    cost: Option<Decimal>,
    units: Option<Decimal>,
    prices: Vec<Decimal>,
    unstated: bool,
}

impl Sum {
    fn add(&mut self, event: &Value) -> Result<(), Failure> {
        let number = |key: &str| event.get(key).and_then(decimal);
        let nano = || number("cost_estimate_nano_usd")?.checked_mul(Decimal::new(1, 9));
        let Some(cost) = number("cost_total").or_else(nano) else {
            self.unstated = true;
            return Ok(());
        };
        let plus =
            |sum: Option<Decimal>, more| sum.unwrap_or_default().checked_add(more).ok_or_else(unreadable);
        self.cost = Some(plus(self.cost, cost)?);
        if let Some(units) = number("output_units") {
            self.units = Some(plus(self.units, units)?);
        }
        if let Some(price) = number("unit_price")
            && !self.prices.contains(&price)
        {
            self.prices.push(price);
        }
        Ok(())
    }

    fn bill(self) -> Bill {
        // An event without an amount will have one: half a bill is none.
        let Some(cost) = self.cost.filter(|_| !self.unstated) else {
            return Bill::NotYet("no event");
        };
        let unit_price = match self.prices.as_slice() {
            [price] => Some(*price),
            _ => None,
        };
        Bill::Stated(Stated {
            billing_unit: None,
            quantity: self.units,
            unit_price,
            ..Stated::of(Money::usd(cost))
        })
    }
}

fn unreadable() -> Failure {
    Failure::new(Class::ProviderTransient, "the bills cannot be read")
}
