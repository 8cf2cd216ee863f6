//! Tables out of CSV and JSON texts, and back.

use atelier_proto::value::{Value, from_json};

use super::frame::{Column, Frame, MAX_COLUMNS, shape};
use crate::{
    node::NodeError,
    nodes::{
        args::{Args, json_of, one, text_of, wrong},
        code::{Route, Types, factory},
        work::{Heavy, MAX_CONTENT},
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    let heavy: [(&'static str, Route); 4] = [
        ("nodetool.data.FromList", |args| {
            let frame = match args.value("values") {
                Value::Null => Frame::default(),
                Value::List(items) => Frame::of_items("values", &items)?,
                other => return Err(wrong("values", "list", &other)),
            };
            Ok(one("output", frame.value()))
        }),
        ("nodetool.data.ImportCSV", |args| {
            let text = args.text("csv_data");
            Ok(one("output", read_csv("csv_data", text.as_bytes())?.value()))
        }),
        ("nodetool.data.JSONToDataframe", |args| {
            Ok(one("output", read_json(args)?.value()))
        }),
        ("nodetool.data.ToList", |args| {
            let frame = Frame::read(args, "dataframe")?;
            let rows = frame.rows.iter().map(|row| frame.object(row).into());
            Ok(one("output", Value::list(rows.collect())))
        }),
    ];
    heavy
        .into_iter()
        .map(|(name, route)| (name, factory(Heavy(route))))
        .collect()
}

/// A table out of a CSV text whose first line names the columns. Commas, semicolons or tabs separate; cells that are numbers
/// or truth values in a whole column become such, an empty cell is null.
pub(in crate::nodes) fn read_csv(input: &str, bytes: &[u8]) -> Result<Frame, NodeError> {
    if bytes.len() > MAX_CONTENT {
        let text = format!("it is larger than {MAX_CONTENT} bytes");
        return Err(shape(input, &text).code("input.size"));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter(bytes))
        .flexible(true)
        .from_reader(bytes);
    let bad = |error: csv::Error| {
        let place = error.position().map(csv::Position::line);
        let line = place.map_or(String::new(), |line| format!(" in line {line}"));
        shape(input, &format!("it cannot be read as CSV{line}"))
    };
    let mut names: Vec<String> = Vec::new();
    let head = reader.headers().map_err(bad)?;
    // Each name is compared with those before it.
    if head.len() > MAX_COLUMNS {
        return Err(shape(input, &format!("it has more than {MAX_COLUMNS} columns")).code("input.size"));
    }
    for name in head.iter() {
        let name = name.trim().to_owned();
        let same = names.iter().filter(|other| **other == name).count();
        names.push(if same > 0 { format!("{name}.{same}") } else { name });
    }
    if names.iter().all(String::is_empty) {
        return Ok(Frame::default());
    }
    let mut frame = Frame {
        columns: names.into_iter().map(Column::named).collect(),
        rows: Vec::new(),
    };
    for (place, record) in reader.records().enumerate() {
        let record = record.map_err(bad)?;
        if record.len() > frame.columns.len() {
            let (has, wanted, line) = (record.len(), frame.columns.len(), place + 2);
            let text = format!("line {line} has {has} cells for {wanted} columns");
            return Err(shape(input, &text));
        }
        let mut row: Vec<Value> = record
            .iter()
            .map(|cell| if cell.is_empty() { Value::Null } else { cell.into() })
            .collect();
        row.resize(frame.columns.len(), Value::Null);
        frame.rows.push(row);
        frame.bounded(input)?;
    }
    convert(&mut frame);
    Ok(frame)
}
/// The separator that the first line has most of.
fn delimiter(bytes: &[u8]) -> u8 {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let count = |wanted: u8| line.iter().filter(|byte| **byte == wanted).count();
    [b',', b';', b'\t']
        .into_iter()
        .rev()
        .max_by_key(|wanted| count(*wanted))
        .filter(|wanted| count(*wanted) > 0)
        .unwrap_or(b',')
}
fn convert(frame: &mut Frame) {
    for at in 0..frame.columns.len() {
        let cells = || frame.rows.iter().filter_map(|row| row.get(at));
        let texts = || cells().filter_map(Value::as_str);
        let as_value: Option<fn(&str) -> Value> = if texts().next().is_none() {
            None
        } else if texts().all(|text| whole(text).is_some()) {
            Some(|text| whole(text).map_or(Value::Null, Value::Int))
        } else if texts().all(|text| decimal(text).is_some()) {
            Some(|text| decimal(text).map_or(Value::Null, Value::Float))
        } else if texts().all(|text| truth(text).is_some()) {
            Some(|text| truth(text).map_or(Value::Null, Value::Bool))
        } else {
            None
        };
        let Some(as_value) = as_value else { continue };
        for cell in frame.rows.iter_mut().filter_map(|row| row.get_mut(at)) {
            if let Value::Str(text) = cell {
                *cell = as_value(text);
            }
        }
    }
}
/// A number with a leading zero is a code, not a number.
fn is_code(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']);
    digits.len() > 1 && digits.starts_with('0') && digits.as_bytes().get(1).is_some_and(u8::is_ascii_digit)
}
fn whole(text: &str) -> Option<i64> {
    let text = text.trim();
    text.parse().ok().filter(|_| !is_code(text))
}
fn decimal(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E'));
    let number: Option<f64> = text.parse().ok().filter(|_| plain && !is_code(text));
    number.filter(|number| number.is_finite())
}
fn truth(text: &str) -> Option<bool> {
    match text.trim() {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}
fn read_json(args: Args<'_>) -> Result<Frame, NodeError> {
    let text = args.text("text");
    let read =
        serde_json::from_str(&text).map_err(|error| shape("text", &format!("it is no JSON: {error}")))?;
    match from_json(read) {
        Value::List(items) => Frame::of_items("text", &items),
        Value::Map(map) if map.contains_key("data") || map.contains_key("rows") => {
            let whole = one("text", Value::Map(map));
            Frame::read(Args(&whole), "text")
        }
        // Columns as lists.
        Value::Map(map) if !map.is_empty() && map.values().all(|value| value.as_list().is_some()) => {
            let length = map.values().filter_map(Value::as_list).map(<[Value]>::len).max();
            let mut frame = Frame {
                columns: map.keys().map(Column::named).collect(),
                rows: Vec::new(),
            };
            for at in 0..length.unwrap_or_default() {
                let cell = |value: &Value| value.as_list().and_then(|list| list.get(at)).cloned();
                let row = map.values().map(|value| cell(value).unwrap_or_default());
                frame.rows.push(row.collect());
                frame.bounded("text")?;
            }
            Ok(frame)
        }
        Value::Map(map) => Frame::of_items("text", &[Value::Map(map)]),
        _ => Err(shape("text", "a list of objects is needed")),
    }
}
/// The CSV text of a table.
pub(in crate::nodes) fn write_csv(frame: &Frame) -> Result<Vec<u8>, NodeError> {
    let bad = |_: csv::Error| NodeError::new("the table cannot be written as CSV");
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(frame.columns.iter().map(|column| &column.name))
        .map_err(bad)?;
    for row in &frame.rows {
        let cells = row.iter().map(|cell| match cell {
            Value::Map(map) if map.contains_key("type") => json_of(cell).to_string(),
            other => text_of(other),
        });
        writer.write_record(cells).map_err(bad)?;
    }
    writer
        .into_inner()
        .map_err(|_| NodeError::new("the table cannot be written as CSV"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::nodes::testing::process;

    #[rstest]
    #[case("a,b\n1,x\n2,", json!([[1, "x"], [2, null]]), json!(["int", "string"]))]
    #[case("a;b\n1.5;true\n2;false\n", json!([[1.5, true], [2.0, false]]), json!(["float", "object"]))]
    #[case("zip\n01234\n", json!([["01234"]]), json!(["string"]))]
    #[case("\u{feff}a,a\n\"x, y\",2\n", json!([["x, y", 2]]), json!(["string", "int"]))]
    #[case("a,b\n1\n", json!([[1, null]]), json!(["int", "object"]))]
    #[case("a\nNaN\n", json!([["NaN"]]), json!(["string"]))]
    #[case("", json!([]), json!([]))]
    #[tokio::test]
    async fn texts_become_tables(#[case] text: &str, #[case] data: Json, #[case] types: Json) {
        let out = process("nodetool.data.ImportCSV", json!({"csv_data": text}))
            .await
            .expect("a table");
        let table = &out["output"];
        let columns = table["columns"].as_array().expect("columns");
        let own: Vec<_> = columns.iter().map(|column| column["data_type"].clone()).collect();
        assert_eq!((&table["data"], json!(own)), (&data, types));
        assert_eq!(table["type"], "dataframe");
    }

    #[rstest]
    #[case("[{\"a\": 1}, {\"b\": 2}]", json!([[1, null], [null, 2]]))]
    #[case("{\"a\": [1, 2], \"b\": [3]}", json!([[1, 3], [2, null]]))]
    #[case("{\"columns\": [\"a\"], \"data\": [[1]]}", json!([[1]]))]
    #[case("{\"a\": 1}", json!([[1]]))]
    #[case("[1, \"x\"]", json!([[1], ["x"]]))]
    #[tokio::test]
    async fn json_becomes_a_table(#[case] text: &str, #[case] data: Json) {
        let out = process("nodetool.data.JSONToDataframe", json!({"text": text})).await;
        assert_eq!(out.expect("a table")["output"]["data"], data);
    }

    #[rstest]
    #[case("ImportCSV", json!({"csv_data": "a\n1,2\n"}), "`csv_data` is no table: line 2 has 2 cells for 1 columns")]
    #[case("JSONToDataframe", json!({"text": "{"}), "`text` is no table: it is no JSON")]
    #[case("JSONToDataframe", json!({"text": "5"}), "a list of objects")]
    #[case("FromList", json!({"values": 5}), "the input `values` expects list, got int")]
    #[case("ToList", json!({"dataframe": {"columns": ["a"], "data": [[1, 2]]}}), "row 0 has 2 cells for 1 columns")]
    #[case("ToList", json!({"dataframe": "x"}), "`dataframe` expects dataframe, got str")]
    #[tokio::test]
    async fn faults_name_the_input(#[case] name: &str, #[case] inputs: Json, #[case] part: &str) {
        let error = process(&format!("nodetool.data.{name}"), inputs)
            .await
            .expect_err("a fault");
        assert!(error.message.contains(part), "{}", error.message);
    }

    #[tokio::test]
    async fn tables_become_lists_and_texts() {
        let table =
            json!({"type": "dataframe", "columns": [{"name": "a"}, {"name": "b"}], "data": [[1, "x, y"]]});
        let out = process("nodetool.data.ToList", json!({"dataframe": table})).await;
        assert_eq!(out.expect("a list"), json!({"output": [{"a": 1, "b": "x, y"}]}));
        let frame = read_csv("x", b"a,b\n1,\"x, y\"\n2,\n").expect("a table");
        let text = String::from_utf8(write_csv(&frame).expect("a text")).expect("UTF-8");
        assert_eq!(text, "a,b\n1,\"x, y\"\n2,\n");
    }
}
