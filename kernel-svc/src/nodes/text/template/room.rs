//! What the values of one rendering may take. Fuel counts steps, but one step can double a text: so operations pay for what
//! they make before they make it. Values that would be dropped or written deeper than a thread's stack reaches are refused.

use std::sync::atomic::{AtomicU64, Ordering};

use minijinja::{
    Error, ErrorKind, State, Value,
    value::{Object, ObjectRepr, ValueKind},
};

/// Bytes that all values together may take that one rendering makes, those included that it does not keep.
pub(super) const ROOM: u64 = 128 * 1024 * 1024;
/// Bytes that an item of a list or a map takes, beside a text in it.
pub(super) const ITEM: u64 = 32;
/// How deep lists and maps may lie inside of each other.
const MAX_DEPTH: usize = 64;

/// Bytes that one rendering has made.
#[derive(Debug, Default)]
struct Spent(AtomicU64);
impl Object for Spent {}

/// Pays for bytes that are about to be made.
pub(super) fn spend(state: &State, bytes: u64) -> Result<(), Error> {
    let spent = state.get_or_set_temp_object("room", Spent::default);
    let before = spent.0.fetch_add(bytes.min(ROOM), Ordering::Relaxed);
    if bytes <= ROOM && before + bytes <= ROOM {
        return Ok(());
    }
    Err(refused(format!("its values take more than {ROOM} bytes")))
}
fn refused(text: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, text)
}

/// Bytes of a copy that shares the items.
pub(super) fn flat(value: &Value) -> u64 {
    if let Some(bytes) = value.as_bytes() {
        return size(bytes.len());
    }
    size(value.len().unwrap_or_default()).saturating_mul(ITEM)
}
/// Bytes of a value written out, roughly; not exact once they are more than there is room for.
pub(super) fn whole(value: &Value) -> Result<u64, Error> {
    let mut all = 0;
    walk(value, 0, &mut |value| {
        // A text is given as bytes, too.
        all += ITEM + value.as_bytes().map_or(0, |bytes| size(bytes.len()));
        all <= ROOM
    })?;
    Ok(all)
}
/// Shows a value and all in it to `see`, until that says false.
fn walk(value: &Value, depth: usize, see: &mut impl FnMut(&Value) -> bool) -> Result<bool, Error> {
    if depth > MAX_DEPTH {
        return Err(refused(format!(
            "lists and maps lie in each other more than {MAX_DEPTH} deep"
        )));
    }
    if !see(value) {
        return Ok(false);
    }
    let kind = value.kind();
    if !matches!(kind, ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) {
        return Ok(true);
    }
    for item in value.try_iter()? {
        if !walk(&item, depth + 1, see)? {
            return Ok(false);
        }
        if kind == ValueKind::Map && !walk(&value.get_item(&item)?, depth + 1, see)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Pays for a copy that shares the items, and gives the value back.
pub(super) fn pay_flat(state: &State, value: Value) -> Result<Value, Error> {
    spend(state, flat(&value))?;
    Ok(value)
}
/// Pays for a value written out, and gives it back.
pub(super) fn pay_whole(state: &State, value: Value) -> Result<Value, Error> {
    spend(state, whole(&value)?)?;
    Ok(value)
}
/// Pays for a list of what is in a value, and gives it back; a text has its letters in it.
pub(super) fn pay_shared(state: &State, value: Value) -> Result<Value, Error> {
    let letters = value.as_str().map(|text| size(text.len()).saturating_mul(ITEM));
    spend(state, letters.unwrap_or_else(|| flat(&value)))?;
    Ok(value)
}
/// The same where the items are written out as well.
pub(super) fn pay_items(state: &State, value: Value) -> Result<Value, Error> {
    if value.as_str().is_some() {
        return pay_shared(state, value);
    }
    pay_whole(state, value)
}
/// Looks at a value that something is to hold, and gives it back. Namespaces and macros can be changed later: held by
/// something, they could hold that.
pub(super) fn held(state: &State, value: Value) -> Result<Value, Error> {
    let (mut items, mut changes) = (0, false);
    walk(&value, 0, &mut |value| {
        items += ITEM;
        changes |= value.as_object().is_some_and(|object| {
            object.repr() == ObjectRepr::Plain || object.type_name().ends_with("::Namespace")
        });
        !changes && items <= ROOM
    })?;
    if changes {
        return Err(refused("a namespace or a macro cannot be an item of something"));
    }
    spend(state, items)?;
    Ok(value)
}
/// Makes a list of what only knows how to get its items: those can lie around each other without end.
pub(super) fn solid(state: &State, value: Value) -> Result<Value, Error> {
    if value.kind() != ValueKind::Iterable {
        return Ok(value);
    }
    let mut items = Vec::new();
    for item in value.try_iter()? {
        spend(state, ITEM)?;
        items.push(item);
    }
    Ok(items.into())
}
/// `a * b`, where a text or a list is repeated.
pub(super) fn times(state: &State, a: &Value, b: &Value) -> Result<Value, Error> {
    let repeated = |value: &Value| {
        let kind = value.kind();
        matches!(kind, ValueKind::String | ValueKind::Seq | ValueKind::Iterable)
    };
    let (of, number) = if repeated(a) { (a, b) } else { (b, a) };
    if !repeated(of) {
        return super::product(a, b);
    }
    let Some(count) = number.as_usize() else {
        return Err(refused("texts and lists can only be multiplied with integers"));
    };
    spend(state, flat(of).max(1).saturating_mul(size(count)))?;
    if let Some(text) = of.as_str() {
        return Ok(text.repeat(count).into());
    }
    let items: Vec<Value> = of.try_iter()?.collect();
    Ok(std::iter::repeat_n(items, count)
        .flatten()
        .collect::<Vec<_>>()
        .into())
}

fn size(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
