//! Filters in place of those of the engine that make as much as a number in the template says, or as the template repeats.

use minijinja::{
    Environment, Error, ErrorKind, State, Value, filters, functions,
    value::{Kwargs, Rest, StringInput, from_args},
};

use super::{
    guard::{FLAT, HELD, ITEMS, SHARED, SOLID, TIMES, WHOLE},
    room::{ITEM, held, pay_flat, pay_items, pay_shared, pay_whole, solid, spend, times},
};

/// Largest number of items of a part, widest indent of JSON, and most digits of a width.
const MAX_PART: usize = 10_000;
const MAX_INDENT: usize = 16;
const MAX_DIGITS: usize = 4;

/// Adds them to an environment, and the functions that pay.
pub(super) fn add(environment: &mut Environment<'static>) {
    environment.add_filter("batch", batch);
    environment.add_filter("format", printf);
    environment.add_filter("indent", indent);
    environment.add_filter("join", join);
    environment.add_filter("lines", lines);
    environment.add_filter("replace", replace);
    environment.add_filter("slice", slice);
    environment.add_filter("split", split);
    environment.add_filter("tojson", tojson);
    environment.add_filter("truncate", truncate);
    environment.remove_global("debug");
    environment.add_function("dict", dict);
    environment.add_function("namespace", namespace);
    environment.add_function(FLAT, pay_flat);
    environment.add_function(WHOLE, pay_whole);
    environment.add_function(HELD, held);
    environment.add_function(ITEMS, pay_items);
    environment.add_function(SHARED, pay_shared);
    environment.add_function(SOLID, solid);
    environment.add_function(TIMES, |state: &State, a: Value, b: Value| times(state, &a, &b));
}

/// Cuts a text to a length, its ending included.
fn truncate(
    state: &State,
    text: String,
    length: Option<usize>,
    kill_words: Option<bool>,
    end: Option<String>,
) -> Result<String, Error> {
    let (length, end) = (length.unwrap_or(255), end.unwrap_or_else(|| "...".to_owned()));
    if text.chars().count() <= length {
        return Ok(text);
    }
    pay(state, end.len(), 1)?;
    let room = length.saturating_sub(end.chars().count());
    let cut: String = text.chars().take(room).collect();
    let at_word = cut
        .rsplit_once(' ')
        .filter(|_| !kill_words.unwrap_or(false))
        .map(|(words, _)| words.to_owned());
    Ok(at_word.unwrap_or(cut) + &end)
}

fn room(length: usize, most: usize) -> Result<(), Error> {
    if length <= most {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidOperation,
        format!("at most {most} are possible here"),
    ))
}
/// Pays for so many times so many bytes.
fn pay(state: &State, times: usize, bytes: usize) -> Result<(), Error> {
    spend(
        state,
        u64::try_from(times.saturating_mul(bytes)).unwrap_or(u64::MAX),
    )
}
fn items(state: &State, count: usize) -> Result<(), Error> {
    spend(
        state,
        u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(ITEM),
    )
}
fn dict(state: &State, value: Option<Value>, update: Kwargs) -> Result<Value, Error> {
    held(state, functions::dict(value, update)?)
}
fn namespace(state: &State, defaults: Option<Value>) -> Result<Value, Error> {
    let defaults = defaults.map(|defaults| held(state, defaults)).transpose()?;
    functions::namespace(defaults)
}
fn split(
    state: &State,
    value: &Value,
    by: Option<std::sync::Arc<str>>,
    most: Option<i64>,
) -> Result<Value, Error> {
    let text = value.as_str().unwrap_or_default();
    let parts = match &by {
        Some(by) => text.matches(&**by).count(),
        None => text.split_whitespace().count(),
    };
    items(state, parts)?;
    filters::split(value, by, most)
}
fn lines(state: &State, value: &Value) -> Result<Value, Error> {
    items(state, value.as_str().unwrap_or_default().lines().count())?;
    filters::lines(value)
}
fn batch(state: &State, value: Value, count: usize, fill: Option<Value>) -> Result<Value, Error> {
    room(count, MAX_PART)?;
    items(state, count)?;
    let fill = fill.map(|fill| held(state, fill)).transpose()?;
    filters::batch(state, value, count, fill)
}
fn slice(state: &State, value: Value, count: usize, fill: Option<Value>) -> Result<Value, Error> {
    room(count, MAX_PART)?;
    items(state, count)?;
    let fill = fill.map(|fill| held(state, fill)).transpose()?;
    filters::slice(state, value, count, fill)
}
fn printf(state: &State, form: &Value, values: Rest<Value>) -> Result<Value, Error> {
    let text = form.as_str().unwrap_or_default();
    let numbers = || text.split(|letter: char| !letter.is_ascii_digit());
    room(numbers().map(str::len).max().unwrap_or_default(), MAX_DIGITS)?;
    let widths = numbers().filter_map(|number| number.parse::<usize>().ok());
    pay(state, widths.sum::<usize>() + text.len(), 1)?;
    for value in values.iter() {
        pay_whole(state, value.clone())?;
    }
    // A star takes the width from the values.
    room(text.matches('*').count(), 0)?;
    filters::format(state, form, values)
}
fn indent(state: &State, value: StringInput<'_>, args: Rest<Value>) -> Result<Value, Error> {
    let (width, first, blank, kwargs) =
        from_args::<(Option<usize>, Option<bool>, Option<bool>, Kwargs)>(&args)?;
    let width = match width {
        Some(width) => width,
        None => kwargs.get::<Option<usize>>("width")?.unwrap_or(4),
    };
    let text = value.as_str();
    let lines = text.matches('\n').count() + 1;
    pay(state, lines, width)?;
    pay(state, text.len(), 1)?;
    filters::indent(value, Some(width), first, blank, kwargs)
}
fn join(state: &State, value: &Value, joiner: Option<StringInput<'_>>) -> Result<Value, Error> {
    let between = joiner.as_ref().map_or(0, |joiner| joiner.as_str().len());
    pay(state, value.len().unwrap_or_default(), between)?;
    pay_whole(state, value.clone())?;
    filters::join(state, value, joiner)
}
fn replace(
    state: &State,
    value: StringInput<'_>,
    from: StringInput<'_>,
    to: StringInput<'_>,
) -> Result<Value, Error> {
    let found = value.as_str().matches(from.as_str()).count();
    pay(state, found, to.as_str().len())?;
    pay(state, value.as_str().len(), 1)?;
    filters::replace(state, value, from, to)
}
fn tojson(state: &State, value: &Value, indent: Option<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => kwargs.get::<Option<Value>>("indent")?,
    };
    let width = indent
        .as_ref()
        .and_then(|indent| usize::try_from(indent.clone()).ok());
    room(width.unwrap_or_default(), MAX_INDENT)?;
    pay_whole(state, value.clone())?;
    filters::tojson(value, indent, kwargs)
}
