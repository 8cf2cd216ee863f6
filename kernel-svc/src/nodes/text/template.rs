//! Templates in the Jinja language: `{{ name }}`, filters, `for` and `if`.
//!
//! Inputs that the user added are the variables. What is missing or null is nothing, lists and maps are written as JSON,
//! media as their address. A template can neither run for ever nor write without end; it reads no files.

use std::{io, sync::OnceLock};

use atelier_proto::value::{Map, Value};
use minijinja::{
    Environment, Error, ErrorKind, Output, State, UndefinedBehavior, escape_formatter, filters,
    value::{Kwargs, Rest, StringInput},
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
const FUEL: u64 = 500_000;
/// Longest template and longest result, in bytes.
const MAX_TEMPLATE: usize = 256 * 1024;
const MAX_RESULT: usize = 16 * 1024 * 1024;
/// Largest number of items of a part, widest indent of JSON, and most digits of a width.
const MAX_PART: usize = 10_000;
const MAX_INDENT: usize = 16;
const MAX_DIGITS: usize = 4;

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
    let known = variables.iter().filter(|(_, value)| !value.is_null());
    let known: Vec<_> = known
        .map(|(name, value)| (name.clone(), minijinja::Value::from_serialize(json_of(value))))
        .collect();
    let context: minijinja::Value = known.into_iter().collect();
    let mut out = Bounded::default();
    let template = environment().template_from_str(template)?;
    template.render_captured_to(context, &mut out)?;
    String::from_utf8(out.0).map_err(|_| Error::new(ErrorKind::InvalidOperation, "its result is not text"))
}
fn environment() -> &'static Environment<'static> {
    static ENVIRONMENT: OnceLock<Environment<'static>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Chainable);
        environment.set_keep_trailing_newline(true);
        environment.set_fuel(Some(FUEL));
        environment.set_formatter(format);
        environment.add_filter("truncate", truncate);
        // The engine's own make room for as much as a number in the template says, whatever the fuel.
        environment.add_filter("batch", batch);
        environment.add_filter("format", printf);
        environment.add_filter("indent", indent);
        environment.add_filter("join", join);
        environment.add_filter("replace", replace);
        environment.add_filter("slice", slice);
        environment.add_filter("tojson", tojson);
        environment
    })
}
fn format(out: &mut Output, state: &State, value: &minijinja::Value) -> Result<(), Error> {
    use minijinja::value::ValueKind;
    match value.kind() {
        ValueKind::None | ValueKind::Undefined => Ok(()),
        ValueKind::Bool => out
            .write_str(if value.is_true() { "true" } else { "false" })
            .map_err(Error::from),
        ValueKind::Seq | ValueKind::Map => {
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
/// Cuts a text to a length, its ending included.
fn truncate(text: String, length: Option<usize>, kill_words: Option<bool>, end: Option<String>) -> String {
    let (length, end) = (length.unwrap_or(255), end.unwrap_or_else(|| "...".to_owned()));
    if text.chars().count() <= length {
        return text;
    }
    let room = length.saturating_sub(end.chars().count());
    let cut: String = text.chars().take(room).collect();
    let at_word = cut
        .rsplit_once(' ')
        .filter(|_| !kill_words.unwrap_or(false))
        .map(|(words, _)| words.to_owned());
    at_word.unwrap_or(cut) + &end
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
fn batch(
    state: &State,
    value: minijinja::Value,
    count: usize,
    fill: Option<minijinja::Value>,
) -> Result<minijinja::Value, Error> {
    room(count, MAX_PART)?;
    filters::batch(state, value, count, fill)
}
fn slice(
    state: &State,
    value: minijinja::Value,
    count: usize,
    fill: Option<minijinja::Value>,
) -> Result<minijinja::Value, Error> {
    room(count, MAX_PART)?;
    filters::slice(state, value, count, fill)
}
fn printf(
    state: &State,
    form: &minijinja::Value,
    values: Rest<minijinja::Value>,
) -> Result<minijinja::Value, Error> {
    let text = form.as_str().unwrap_or_default();
    let numbers = text.split(|letter: char| !letter.is_ascii_digit());
    room(numbers.map(str::len).max().unwrap_or_default(), MAX_DIGITS)?;
    // A star takes the width from the values.
    room(text.matches('*').count(), 0)?;
    filters::format(state, form, values)
}
fn indent(
    value: StringInput<'_>,
    width: Option<usize>,
    first: Option<bool>,
    blank: Option<bool>,
    kwargs: Kwargs,
) -> Result<minijinja::Value, Error> {
    let width = match width {
        Some(width) => width,
        None => kwargs.get::<Option<usize>>("width")?.unwrap_or(4),
    };
    let text = value.as_str();
    let lines = text.matches('\n').count() + 1;
    room(text.len().saturating_add(lines.saturating_mul(width)), MAX_RESULT)?;
    filters::indent(value, Some(width), first, blank, kwargs)
}
fn join(
    state: &State,
    value: &minijinja::Value,
    joiner: Option<StringInput<'_>>,
) -> Result<minijinja::Value, Error> {
    let between = joiner.as_ref().map_or(0, |joiner| joiner.as_str().len());
    let items = value.len().unwrap_or_default();
    room(items.saturating_mul(between.max(1)), MAX_RESULT)?;
    filters::join(state, value, joiner)
}
fn replace(
    state: &State,
    value: StringInput<'_>,
    from: StringInput<'_>,
    to: StringInput<'_>,
) -> Result<minijinja::Value, Error> {
    let found = value.as_str().matches(from.as_str()).count();
    room(found.saturating_mul(to.as_str().len()), MAX_RESULT)?;
    filters::replace(state, value, from, to)
}
fn tojson(
    value: &minijinja::Value,
    indent: Option<minijinja::Value>,
    kwargs: Kwargs,
) -> Result<minijinja::Value, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => kwargs.get::<Option<minijinja::Value>>("indent")?,
    };
    let width = indent
        .as_ref()
        .and_then(|indent| usize::try_from(indent.clone()).ok());
    room(width.unwrap_or_default(), MAX_INDENT)?;
    filters::tojson(value, indent, kwargs)
}

/// Takes bytes up to a limit.
#[derive(Default)]
struct Bounded(Vec<u8>);
impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_RESULT {
            return Err(io::Error::other("too long"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use crate::nodes::testing::process;

    #[rstest]
    #[case(json!({"template": "Hello, {{ name }}!", "name": "Ada"}), "Hello, Ada!")]
    #[case(json!({"template": "{{name}}", "name": null}), "")]
    #[case(json!({"template": "a{{ nothing.at.all }}b"}), "ab")]
    #[case(json!({"template": "{{ n }} {{ t }} {{ f }}", "n": 5, "t": true, "f": 0.5}), "5 true 0.5")]
    #[case(json!({"template": "{{ name | upper | replace('A', 'O') }}", "name": "ada"}), "ODO")]
    #[case(json!({"template": "{{ body|truncate(10) }}", "body": "one two three"}), "one...")]
    #[case(json!({"template": "- {{ players | join('\n- ') }}", "players": ["a", "b"]}), "- a\n- b")]
    #[case(json!({"template": "[{{ players | join('\n- ') }}]", "players": null}), "[]")]
    #[case(json!({"template": "{% for p in posts %}{{ p.title }};{% endfor %}", "posts": [{"title": "x"}, {}]}), "x;;")]
    #[case(json!({"template": "{% for p in posts %}x{% endfor %}"}), "")]
    #[case(json!({"template": "{% if a > 1 %}yes{% else %}no{% endif %}", "a": 2}), "yes")]
    #[case(json!({"template": "{{ roster }}", "roster": [{"b": 1, "a": "<x>"}]}), "[{\"b\":1,\"a\":\"<x>\"}]")]
    #[case(json!({"template": "{{ pic }}", "pic": {"type": "image", "uri": "asset://a1"}}), "asset://a1")]
    #[case(json!({"template": "{{ name }}", "name": "<b> & 'c'"}), "<b> & 'c'")]
    #[case(json!({"template": "line\n"}), "line\n")]
    #[case(json!({"template": "{{ x }}\n", "x": 1}), "1\n")]
    #[case(json!({"template": "", "x": 1}), "")]
    #[case(json!({"x": 1}), "")]
    #[case(json!({"template": null}), "")]
    #[tokio::test]
    async fn templates_are_filled(#[case] inputs: serde_json::Value, #[case] expected: &str) {
        let out = process("nodetool.text.FormatText", inputs).await.expect("a text");
        assert_eq!(out, json!({"output": expected}));
    }

    #[tokio::test]
    async fn the_other_two_take_their_own_property() {
        let out = process("nodetool.text.Template", json!({"string": "{{ a }}", "a": 1}))
            .await
            .expect("a text");
        assert_eq!(out, json!({"output": "1"}));
        let out = process("nodetool.text.Prompt", json!({"prompt": "{{ a }}", "a": 1}))
            .await
            .expect("a text");
        assert_eq!(out, json!({"output": "1"}));
    }

    #[rstest]
    #[case("{{ a", "faulty (line 1)")]
    #[case("{{ a | nofilter }}", "faulty (line 1)")]
    #[case(
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
        "too many steps"
    )]
    #[case("{% for a in range(5000) %}{{ 'x' * 10000 }}{% endfor %}", "writes more than")]
    #[case("{% include 'file' %}", "faulty (line 1)")]
    #[tokio::test]
    async fn faulty_and_endless_templates_end(#[case] template: &str, #[case] part: &str) {
        let error = process("nodetool.text.FormatText", json!({"template": template}))
            .await
            .expect_err("a fault");
        assert!(
            error.message.contains("`template`") && error.message.contains(part),
            "{}",
            error.message
        );
    }

    #[tokio::test]
    async fn bytes_of_media_never_get_into_a_text() {
        let picture = json!({"type": "image", "uri": "", "data": "AAEC"});
        let out = process(
            "nodetool.text.FormatText",
            json!({"template": "{{ p }}{{ p.data }}", "p": picture}),
        )
        .await;
        assert_eq!(out.expect("a text"), json!({"output": ""}));
    }
}
