//! Figures that a language model writes: charts and drawings.

use async_trait::async_trait;
use atelier_proto::value::{Map, Value};
use quick_xml::{
    Reader, XmlVersion,
    escape::resolve_predefined_entity,
    events::{BytesStart, Event},
};
use regex::Regex;
use serde_json::json;
use std::sync::OnceLock;

use super::{conversation, media, message, outputs::Added, structured::ask};
use crate::{
    node::{Context, Executor, NodeError},
    nodes::{
        args::{Args, json_of, map, missing, one, text_of},
        code::{Types, factory},
        svg::plain,
    },
};

const CHART: &str = "You design charts. Answer with a JSON object with the field `chart`: its title, labels of both axes, \
    and a list of series, each with the columns for x and y and a type of plot.";
const DRAWING: &str =
    "You draw with SVG. Answer with one <svg> element that has a viewBox, and nothing before or after it.";
/// Rows of the data that the model is shown.
const SHOWN_ROWS: usize = 10;
/// Longest drawing, in bytes.
const MAX_DRAWING: usize = 2 * 1024 * 1024;
/// Elements inside of each other; more are not written out again.
const MAX_DEPTH: usize = 60;

/// All types of this part.
pub(super) fn types() -> Types {
    vec![
        ("nodetool.generators.ChartGenerator", factory(Chart)),
        ("nodetool.generators.SVGGenerator", factory(Drawing)),
    ]
}

#[derive(Clone, Copy)]
struct Chart;
#[async_trait]
impl Executor for Chart {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let args = Args(&inputs);
        let prompt = args.text("prompt");
        if prompt.trim().is_empty() {
            return Err(missing("prompt", "there is nothing to show"));
        }
        let data = args.value("data");
        let columns = columns(&data);
        let rows = data.get("data").or_else(|| data.get("rows")).unwrap_or_default();
        let shown: Vec<Value> = rows
            .as_list()
            .unwrap_or_default()
            .iter()
            .take(SHOWN_ROWS)
            .cloned()
            .collect();
        let asked = format!(
            "{prompt}\n\nColumns: {}\nFirst rows: {}",
            columns.join(", "),
            json_of(&Value::list(shown))
        );
        let column = if columns.is_empty() {
            json!({"type": "string"})
        } else {
            json!({"type": "string", "enum": columns})
        };
        let plots = ["line", "bar", "scatter", "area", "histogram", "box"];
        let series = json!({"type": "object", "required": ["x", "y", "plot_type"], "additionalProperties": false,
            "properties": {"x": column, "y": column, "plot_type": {"type": "string", "enum": plots}}});
        let schema = json!({"type": "object", "required": ["title", "x_label", "y_label", "series"],
            "additionalProperties": false, "properties": {"title": {"type": "string"}, "x_label": {"type": "string"},
            "y_label": {"type": "string"}, "series": {"type": "array", "items": series, "minItems": 1}}});
        let messages = conversation([message("system", CHART, &[]), message("user", &asked, &[])]);
        let params = one("max_tokens", args.int("max_tokens", 4096)?.max(1));
        let (_, answer) = ask(
            ctx,
            args,
            &messages,
            Added::schema("chart", "dict", schema),
            params,
        )
        .await?;
        let chart = Args(&answer).value("chart");
        let text = |key: &str| Value::from(chart.get(key).map(|value| text_of(&value)).unwrap_or_default());
        let given = chart.get("series").unwrap_or_default();
        let known = |name: &Value| columns.is_empty() || columns.contains(&text_of(name));
        let fits = |series: &&Value| {
            ["x", "y"]
                .iter()
                .all(|axis| series.get(axis).is_some_and(|column| known(&column)))
        };
        let series: Vec<Value> = given
            .as_list()
            .unwrap_or_default()
            .iter()
            .filter(fits)
            .cloned()
            .collect();
        if series.is_empty() {
            let text = "the model's chart has no series of columns that are there";
            return Err(NodeError::new(text).code("model.answer"));
        }
        let chart = map([
            ("type", "chart_config".into()),
            ("title", text("title")),
            ("x_label", text("x_label")),
            ("y_label", text("y_label")),
            ("legend", (series.len() > 1).into()),
            (
                "data",
                map([("type", "chart_data".into()), ("series", Value::list(series))]).into(),
            ),
        ]);
        Ok(one("output", chart))
    }
}
/// Names of the columns of a table: of its description, else of its first row.
fn columns(data: &Value) -> Vec<String> {
    let described = data.get("columns").unwrap_or_default();
    let names = described.as_list().unwrap_or_default().iter();
    let names: Vec<String> = names
        .map(|column| text_of(&column.get("name").unwrap_or_else(|| column.clone())))
        .collect();
    if !names.is_empty() {
        return names;
    }
    let rows = data.get("data").or_else(|| data.get("rows")).unwrap_or_default();
    let first = rows
        .as_list()
        .and_then(|rows| rows.first().cloned())
        .unwrap_or_default();
    first
        .as_map()
        .map(|row| row.keys().cloned().collect())
        .unwrap_or_default()
}

#[derive(Clone, Copy)]
struct Drawing;
#[async_trait]
impl Executor for Drawing {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let args = Args(&inputs);
        let (prompt, media) = (
            args.text("prompt"),
            [media(args, "image"), media(args, "audio")].concat(),
        );
        if prompt.trim().is_empty() && media.is_empty() {
            return Err(missing("prompt", "there is nothing to draw"));
        }
        let messages = conversation([
            message("system", DRAWING, &[]),
            message("user", prompt.trim(), &media),
        ]);
        let params = one("max_tokens", args.int("max_tokens", 8192)?.max(1));
        let (text, _) = ask(ctx, args, &messages, Added::fields(&[]), params).await?;
        let drawn = element(&text);
        let none = || NodeError::new("the model's answer has no SVG drawing").code("model.answer");
        Ok(one("output", Value::list(vec![drawn.ok_or_else(none)?])))
    }
}

/// An element that is being read.
#[derive(Default)]
struct Open {
    name: String,
    attributes: Map,
    content: String,
    children: Vec<Value>,
}
impl Open {
    fn of(tag: &BytesStart<'_>) -> Self {
        let attributes = tag.attributes().flatten().filter_map(|attribute| {
            let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?;
            Some((attribute.key.0.to_owned(), Value::from(value.into_owned())))
        });
        Self {
            name: tag.name().0.to_owned(),
            attributes: attributes.collect(),
            ..Self::default()
        }
    }
    /// The element; what acts or is fetched from elsewhere is left out.
    fn value(self) -> Option<Value> {
        let content = self.content.trim();
        let content = if content.is_empty() {
            Value::Null
        } else {
            content.into()
        };
        plain(&self.name).then(|| {
            map([
                ("type", "svg_element".into()),
                ("name", self.name.as_str().into()),
                ("attributes", self.attributes.into()),
                ("content", content),
                ("children", Value::list(self.children)),
            ])
            .into()
        })
    }
}
/// What stands in a drawing, as elements; `None` when it is no XML or nested too deep.
fn children(drawing: &str) -> Option<Vec<Value>> {
    let mut reader = Reader::from_str(drawing);
    let (mut open, mut root) = (Vec::<Open>::new(), Open::default());
    loop {
        match reader.read_event().ok()? {
            Event::Start(_) if open.len() >= MAX_DEPTH => return None,
            Event::Start(tag) => open.push(Open::of(&tag)),
            Event::Empty(tag) => {
                let own = Open::of(&tag).value();
                open.last_mut().unwrap_or(&mut root).children.extend(own);
            }
            Event::End(_) => {
                let own = open.pop()?.value();
                open.last_mut().unwrap_or(&mut root).children.extend(own);
            }
            Event::Text(text) => {
                let own = text.xml_content(XmlVersion::Implicit1_0);
                open.last_mut().unwrap_or(&mut root).content.push_str(&own);
            }
            Event::CData(text) => {
                let own = text.xml_content(XmlVersion::Implicit1_0);
                open.last_mut().unwrap_or(&mut root).content.push_str(&own);
            }
            Event::GeneralRef(entity) => {
                let content = &mut open.last_mut().unwrap_or(&mut root).content;
                match entity.resolve_char_ref().ok()? {
                    Some(letter) => content.push(letter),
                    None => content.push_str(resolve_predefined_entity(&entity).unwrap_or_default()),
                }
            }
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    open.is_empty().then_some(root.children)
}

/// The first drawing in a text as an element: its attributes, and what is in it as elements.
pub(super) fn element(text: &str) -> Option<Value> {
    let from = text.find("<svg")?;
    let end = text
        .rfind("</svg>")
        .filter(|end| *end > from && end - from <= MAX_DRAWING)?;
    let whole = text.get(from..end)?;
    let (head, content) = whole.split_once('>')?;
    static ATTRIBUTE: OnceLock<Option<Regex>> = OnceLock::new();
    let attribute =
        ATTRIBUTE.get_or_init(|| Regex::new(r#"([A-Za-z_:][\w:.-]*)\s*=\s*(?:"([^"]*)"|'([^']*)')"#).ok());
    let attributes: Map = attribute
        .as_ref()?
        .captures_iter(head)
        .filter_map(|found| {
            let value = found.get(2).or_else(|| found.get(3))?;
            Some((found.get(1)?.as_str().to_owned(), value.as_str().into()))
        })
        .collect();
    Some(
        map([
            ("type", "svg_element".into()),
            ("name", "svg".into()),
            ("attributes", attributes.into()),
            ("content", Value::Null),
            ("children", Value::list(children(content)?)),
        ])
        .into(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::nodes::testing::{Node, Script};

    #[tokio::test]
    async fn a_chart_shows_columns_that_are_there() {
        let series = json!([{"x": "Year", "y": "Value", "plot_type": "line"}, {"x": "Year", "y": "Nothing", "plot_type": "bar"}]);
        let answer =
            json!({"chart": {"title": "GDP", "x_label": "Year", "y_label": "USD", "series": series}})
                .to_string();
        let mut node = Node::scripted("nodetool.generators.ChartGenerator", Script::whole(&answer));
        let data = json!({"type": "dataframe", "columns": [{"name": "Year"}, {"name": "Value"}], "data": [[1999, 5]]});
        let out = node
            .process(json!({"prompt": "a line", "data": data}))
            .await
            .expect("a chart");
        let chart = &out["output"];
        assert_eq!(
            (&chart["type"], &chart["title"]),
            (&json!("chart_config"), &json!("GDP"))
        );
        assert_eq!(chart["data"]["series"], json!([series[0]]));
        let schema = &node.params()["response_format"]["json_schema"]["schema"]["properties"]["chart"];
        let x = &schema["properties"]["series"]["items"]["properties"]["x"];
        assert_eq!(x["enum"], json!(["Year", "Value"]));
    }

    #[tokio::test]
    async fn a_drawing_is_cut_out_of_the_answer() {
        let answer = "Here:\n```svg\n<svg viewBox=\"0 0 9 9\" width='9'><g><circle r=\"3\"/></g></svg>\n```";
        let mut node = Node::scripted("nodetool.generators.SVGGenerator", Script::whole(answer));
        let out = node.process(json!({"prompt": "a dot"})).await.expect("a drawing");
        let element = &out["output"][0];
        assert_eq!(element["attributes"], json!({"viewBox": "0 0 9 9", "width": "9"}));
        let group = &element["children"][0];
        assert_eq!((&group["name"], &element["content"]), (&json!("g"), &json!(null)));
        assert_eq!(group["children"][0]["attributes"], json!({"r": "3"}));
        let mut node = Node::scripted("nodetool.generators.SVGGenerator", Script::whole("no"));
        let error = node
            .process(json!({"prompt": "a dot"}))
            .await
            .expect_err("a fault");
        assert_eq!(error.code.as_deref(), Some("model.answer"));
    }
}
