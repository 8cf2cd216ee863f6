//! What a condition gives for one row.

use atelier_proto::value::Value;

use super::{
    super::frame::{number, order},
    Expr, Method, Op,
};
use crate::nodes::args::text_of;

/// The value of a part, given the value of each name.
pub(super) fn evaluate(expr: &Expr, of: &dyn Fn(&str) -> Value) -> Value {
    match expr {
        Expr::Value(value) => value.clone(),
        Expr::Name(name) => of(name),
        Expr::List(items) => Value::list(items.iter().map(|item| evaluate(item, of)).collect()),
        Expr::Not(inner) => (!evaluate(inner, of).truthy()).into(),
        Expr::Minus(inner) => match evaluate(inner, of) {
            Value::Int(number) => number.checked_neg().map_or(Value::Null, Value::Int),
            other => number(&other).map_or(Value::Null, |number| Value::Float(-number)),
        },
        Expr::Binary(Op::Or, one, other) => {
            (evaluate(one, of).truthy() || evaluate(other, of).truthy()).into()
        }
        Expr::Binary(Op::And, one, other) => {
            (evaluate(one, of).truthy() && evaluate(other, of).truthy()).into()
        }
        Expr::Binary(op, one, other) => joined(*op, &evaluate(one, of), &evaluate(other, of)),
        Expr::Method(on, method, args) => {
            let on = evaluate(on, of);
            let arg = args.first().map(|arg| evaluate(arg, of)).unwrap_or_default();
            asked(*method, &on, &arg)
        }
    }
}
fn joined(op: Op, one: &Value, other: &Value) -> Value {
    match op {
        Op::Or | Op::And => Value::Null,
        Op::Equal => equal(one, other).into(),
        Op::Unequal => (!equal(one, other)).into(),
        Op::Less => ordered(one, other).is_some_and(std::cmp::Ordering::is_lt).into(),
        Op::LessEqual => ordered(one, other).is_some_and(std::cmp::Ordering::is_le).into(),
        Op::Greater => ordered(one, other).is_some_and(std::cmp::Ordering::is_gt).into(),
        Op::GreaterEqual => ordered(one, other).is_some_and(std::cmp::Ordering::is_ge).into(),
        Op::In => contains(other, one).into(),
        Op::NotIn => (!contains(other, one)).into(),
        Op::Add if one.as_str().is_some() || other.as_str().is_some() => {
            format!("{}{}", text_of(one), text_of(other)).into()
        }
        Op::Add | Op::Subtract | Op::Multiply | Op::Divide | Op::Remainder => computed(op, one, other),
    }
}
fn computed(op: Op, one: &Value, other: &Value) -> Value {
    let (Some(one), Some(other)) = (number(one), number(other)) else {
        return Value::Null;
    };
    let result = match op {
        Op::Add => one + other,
        Op::Subtract => one - other,
        Op::Multiply => one * other,
        Op::Divide => one / other,
        _ => one % other,
    };
    if result.is_finite() {
        Value::Float(result)
    } else {
        Value::Null
    }
}
fn contains(all: &Value, wanted: &Value) -> bool {
    match all {
        Value::List(items) => items.iter().any(|item| equal(item, wanted)),
        Value::Str(text) => text.contains(&text_of(wanted)),
        Value::Map(map) => map.contains_key(&text_of(wanted)),
        _ => false,
    }
}
/// A number and a text are equal when the text is that number.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Null, other) | (other, Value::Null) => other.is_null(),
        (Value::Str(one), Value::Str(other)) => one == other,
        _ => match (numeric(one), numeric(other)) {
            (Some(one), Some(other)) => one == other,
            _ => one == other,
        },
    }
}
fn numeric(value: &Value) -> Option<f64> {
    let written = || value.as_str().and_then(|text| text.trim().parse().ok());
    number(value).or_else(written)
}
/// Nothing is neither smaller nor larger.
fn ordered(one: &Value, other: &Value) -> Option<std::cmp::Ordering> {
    if one.is_null() || other.is_null() {
        return None;
    }
    match (number(one).is_some(), number(other).is_some()) {
        (true, false) | (false, true) => numeric(one)?.partial_cmp(&numeric(other)?),
        _ => Some(order(one, other)),
    }
}
fn asked(method: Method, on: &Value, arg: &Value) -> Value {
    match method {
        Method::IsNull => on.is_null().into(),
        Method::NotNull => (!on.is_null()).into(),
        Method::Contains => contains(on, arg).into(),
        Method::StartsWith => text_of(on).starts_with(&text_of(arg)).into(),
        Method::EndsWith => text_of(on).ends_with(&text_of(arg)).into(),
        Method::Lower => text_of(on).to_lowercase().into(),
        Method::Upper => text_of(on).to_uppercase().into(),
        Method::Strip => text_of(on).trim().into(),
        Method::Length => {
            let length = on
                .as_list()
                .map_or_else(|| text_of(on).chars().count(), <[Value]>::len);
            crate::nodes::args::count(length)
        }
    }
}
