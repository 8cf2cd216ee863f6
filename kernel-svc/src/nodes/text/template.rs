//! Templates in the Jinja language: `{{ name }}`, filters, `for` and `if`.
//!
//! Inputs that the user added are the variables. What is missing or null is nothing, lists and maps are written as JSON,
//! media as their address. A template can neither run for ever nor make or write without end; it reads no files.

mod filters;
mod guard;
mod room;

use std::sync::OnceLock;

use atelier_proto::value::{Map, Value};
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, context, escape_formatter,
    machinery::{CodeGenerator, Vm, make_string_output, parse},
};

use crate::{
    node::NodeError,
    nodes::{
        args::{Args, json_of},
        code::{Compute, Types, factory},
        work::Long,
    },
};

/// Steps that one rendering may take.
const FUEL: u64 = 750_000;
/// How deep macros, blocks and loops may call each other.
const MAX_CALLS: usize = 100;
/// Longest template and longest result, in bytes.
const MAX_TEMPLATE: usize = 256 * 1024;
const MAX_RESULT: usize = 16 * 1024 * 1024;
/// All types of this part.
pub(super) fn types() -> Types {
    let plain: [(&'static str, Compute); 3] = [
        ("nodetool.text.FormatText", |args| fill(args, "template")),
        ("nodetool.text.Prompt", |args| fill(args, "prompt")),
        ("nodetool.text.Template", |args| fill(args, "string")),
    ];
    plain
        .into_iter()
        .map(|(name, compute)| (name, factory(Long(compute))))
        .collect()
}

/// The template of an input, filled with all other inputs.
fn fill(args: Args<'_>, name: &'static str) -> Result<Value, NodeError> {
    let variables: Map = args
        .others(&[name])
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let text = render(&args.text(name), &variables).map_err(|error| fault(name, &error))?;
    Ok(text.into())
}
/// The fault of a template, with its line but without its text.
pub(in crate::nodes) fn fault(name: &str, error: &Error) -> NodeError {
    let line = error
        .line()
        .map(|line| format!(" (line {line})"))
        .unwrap_or_default();
    let detail = error
        .detail()
        .map(|detail| format!(": {detail}"))
        .unwrap_or_default();
    let text = match error.kind() {
        ErrorKind::OutOfFuel => format!("the template in `{name}` takes too many steps"),
        ErrorKind::WriteFailure => format!("the template in `{name}` writes more than {MAX_RESULT} bytes"),
        kind => format!("the template in `{name}` is faulty{line}: {kind}{detail}"),
    };
    NodeError::new(text).code("input.template")
}

/// Fills a template.
pub(in crate::nodes) fn render(template: &str, variables: &Map) -> Result<String, Error> {
    if template.len() > MAX_TEMPLATE {
        let text = format!("it is longer than {MAX_TEMPLATE} bytes");
        return Err(Error::new(ErrorKind::InvalidOperation, text));
    }
    if !template.contains('{') {
        return Ok(template.to_owned());
    }
    let writable = |name: &str| !guard::OWN.contains(&name);
    let known = variables
        .iter()
        .filter(|(name, value)| writable(name) && !value.is_null());
    let known: Vec<_> = known
        .map(|(name, value)| (name.clone(), minijinja::Value::from_serialize(json_of(value))))
        .collect();
    let context: minijinja::Value = known.into_iter().collect();
    evaluate(environment(), template, context)
}
/// Runs a template whose operations pay for what they make.
fn evaluate<'a>(
    environment: &'a Environment<'a>,
    source: &'a str,
    context: minijinja::Value,
) -> Result<String, Error> {
    const NAME: &str = "template";
    guard::check(source)?;
    let parsed = parse(source, NAME, Default::default(), guard::whitespace())?;
    let mut generator = CodeGenerator::new(NAME, source);
    generator.compile_stmt(&guard::statement(&parsed));
    let (instructions, blocks) = generator.finish();
    let mut text = String::new();
    let mut out = make_string_output(&mut text);
    Vm::new(environment).eval(&instructions, context, &blocks, &mut out, AutoEscape::None)?;
    if text.len() > MAX_RESULT {
        return Err(Error::from(ErrorKind::WriteFailure));
    }
    Ok(text)
}
/// What the engine makes of `a * b`.
fn product(a: &minijinja::Value, b: &minijinja::Value) -> Result<minijinja::Value, Error> {
    static PLAIN: OnceLock<Environment<'static>> = OnceLock::new();
    let plain = PLAIN.get_or_init(Environment::empty);
    plain.compile_expression("a * b")?.eval(context!(a, b))
}
fn environment() -> &'static Environment<'static> {
    static ENVIRONMENT: OnceLock<Environment<'static>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Chainable);
        environment.set_keep_trailing_newline(true);
        environment.set_fuel(Some(FUEL));
        environment.set_formatter(format);
        environment.set_recursion_limit(MAX_CALLS);
        filters::add(&mut environment);
        environment
    })
}
fn format(out: &mut Output, state: &State, value: &minijinja::Value) -> Result<(), Error> {
    use minijinja::value::ValueKind;
    room::spend(state, room::whole(value)?)?;
    match value.kind() {
        ValueKind::None | ValueKind::Undefined => Ok(()),
        ValueKind::Bool => out
            .write_str(if value.is_true() { "true" } else { "false" })
            .map_err(Error::from),
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            if let Some(uri) = address(value) {
                return out.write_str(&uri).map_err(Error::from);
            }
            let json = serde_json::to_string(value)
                .map_err(|_| Error::new(ErrorKind::BadSerialization, "a value cannot be written as JSON"))?;
            out.write_str(&json).map_err(Error::from)
        }
        _ => escape_formatter(out, state, value),
    }
}
/// The address of a media reference.
fn address(value: &minijinja::Value) -> Option<String> {
    let field = |name: &str| {
        value
            .get_attr(name)
            .ok()
            .and_then(|field| field.as_str().map(ToOwned::to_owned))
    };
    let kind = field("type")?;
    if atelier_proto::value::MEDIA_KINDS.contains(&kind.as_str()) {
        field("uri")
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
