//! Workbooks. Between nodes a workbook is an object whose sheets hold cells and formats; a file is read when its cells are
//! asked for, and written by the node that saves it.

use std::io::Cursor;

use atelier_proto::value::{Map, Value};
use calamine::{Data, DataRef, Reader, Xlsx};
use chrono::Utc;
use rust_xlsxwriter::{Color, Format, Workbook, Worksheet, XlsxError};

use super::{office::table_text, package::Package, unreadable};
use crate::{
    node::{Context, NodeError},
    nodes::{
        args::{Args, map, missing, one, text_of, wrong},
        code::{Route, Types, factory},
        files::{Workspace, named},
        table::{Column, Frame},
        work::{Filed, Heavy, Reaching, blocking, content},
    },
};

const INPUT: &str = "workbook";
const KIND: &str = "a workbook";
/// Cells of a sheet that are read.
const MAX_CELLS: usize = 2_000_000;
/// Formats of a sheet.
const MAX_FORMATS: usize = 1_000;
/// Cells that one format covers, and cells of all formats of a workbook together.
const MAX_FORMATTED: u64 = 100_000;
const MAX_ALL_FORMATTED: u64 = 2_000_000;

/// Row and column, from 0.
type Cell = (u32, u16);
/// Name and rows.
type Sheet = (String, Vec<Vec<Value>>);

/// All types of this part.
pub(super) fn types() -> Types {
    let heavy: [(&'static str, Route); 4] = [
        ("lib.excel.AutoFitColumns", |args| {
            changed(args, |sheet| {
                sheet.insert("autofit".to_owned(), true.into());
                Ok(())
            })
        }),
        ("lib.excel.CreateWorkbook", |args| {
            let name = sheet_name(args)?;
            let sheets = map([(&*name, map([]).into())]);
            Ok(one(
                "output",
                Value::from(map([("type", "excel".into()), ("sheets", sheets.into())])),
            ))
        }),
        ("lib.excel.DataFrameToExcel", put),
        ("lib.excel.FormatCells", format),
    ];
    let mut types: Types = heavy
        .into_iter()
        .map(|(name, route)| (name, factory(Heavy(route))))
        .collect();
    types.push((
        "lib.excel.ExcelToDataFrame",
        factory(Reaching(|args, ctx| Box::pin(read(args, ctx)))),
    ));
    types.push(("lib.excel.SaveWorkbook", factory(Filed(save))));
    types
}

fn sheet_name(args: Args<'_>) -> Result<String, NodeError> {
    let name = args.text_or("sheet_name", "Sheet1").trim().to_owned();
    let plain = !name.is_empty()
        && name.chars().count() <= 31
        && !name.contains(['[', ']', ':', '*', '?', '/', '\\']);
    if plain {
        return Ok(name);
    }
    let text = "the input `sheet_name` must have 1 to 31 characters and none of [ ] : * ? / \\";
    Err(NodeError::new(text).code("input.value"))
}
/// The sheets of a workbook that nodes made.
fn sheets(args: Args<'_>) -> Result<Map, NodeError> {
    match args.0.get(INPUT) {
        Some(Value::Map(map)) => match map.get("sheets") {
            Some(Value::Map(sheets)) => Ok(sheets.as_ref().clone()),
            _ => Err(missing(INPUT, "a workbook that was made by a node is needed")),
        },
        None | Some(Value::Null) => Err(missing(INPUT, "a workbook is needed")),
        Some(other) => Err(wrong(INPUT, "excel", other)),
    }
}
/// The workbook after a change of one sheet, which is made when it is not there.
fn changed(args: Args<'_>, change: impl FnOnce(&mut Map) -> Result<(), NodeError>) -> Result<Map, NodeError> {
    let (mut sheets, name) = (sheets(args)?, sheet_name(args)?);
    let mut sheet = sheets
        .get(&name)
        .and_then(Value::as_map)
        .cloned()
        .unwrap_or_default();
    change(&mut sheet)?;
    sheets.insert(name, sheet.into());
    let workbook = map([("type", "excel".into()), ("sheets", sheets.into())]);
    Ok(one("output", Value::from(workbook)))
}
/// Adds an entry to a list of a sheet.
fn push(sheet: &mut Map, list: &str, entry: Map, most: usize) -> Result<(), NodeError> {
    let mut items = sheet
        .get(list)
        .and_then(Value::as_list)
        .unwrap_or_default()
        .to_vec();
    if items.len() >= most {
        return Err(NodeError::new(format!("a sheet has more than {most} {list}")).code("input.size"));
    }
    items.push(entry.into());
    sheet.insert(list.to_owned(), Value::list(items));
    Ok(())
}
/// Row and column, from 0, of a cell such as `B7`.
fn cell(input: &str, text: &str) -> Result<Cell, NodeError> {
    let bad = || NodeError::new(format!("the input `{input}` names no cell such as A1")).code("input.value");
    let text = text.trim().replace('$', "").to_uppercase();
    let split = text
        .find(|letter: char| letter.is_ascii_digit())
        .ok_or_else(bad)?;
    let (letters, digits) = text.split_at(split);
    let mut column = 0_u32;
    if letters.is_empty() || letters.len() > 3 {
        return Err(bad());
    }
    for letter in letters.bytes() {
        if !letter.is_ascii_uppercase() {
            return Err(bad());
        }
        column = column * 26 + u32::from(letter - b'A') + 1;
    }
    let row: u32 = digits.parse().map_err(|_| bad())?;
    if !(1..=1_048_576).contains(&row) || column > 16_384 {
        return Err(bad());
    }
    Ok((row - 1, u16::try_from(column - 1).map_err(|_| bad())?))
}
fn put(args: Args<'_>) -> Result<Map, NodeError> {
    let start = args.text_or("start_cell", "A1");
    cell("start_cell", &start)?;
    let frame = Frame::read(args, "dataframe")?;
    let head = args.flag("include_header", true);
    changed(args, |sheet| {
        let entry = map([
            ("start", start.into()),
            ("header", head.into()),
            ("table", frame.value()),
        ]);
        push(sheet, "tables", entry, MAX_FORMATS)
    })
}
fn colour(args: Args<'_>, input: &str) -> Result<String, NodeError> {
    let text = args.text(input).trim().trim_start_matches('#').to_uppercase();
    if text.is_empty() || (text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return Ok(text);
    }
    Err(NodeError::new(format!("the input `{input}` must be six hexadecimal digits")).code("input.value"))
}
fn area(text: &str) -> Result<(Cell, Cell), NodeError> {
    let (from, to) = text.split_once(':').unwrap_or((text, text));
    let (from, to) = (cell("cell_range", from)?, cell("cell_range", to)?);
    if from.0 > to.0 || from.1 > to.1 {
        let text = "the input `cell_range` must go from the upper left to the lower right";
        return Err(NodeError::new(text).code("input.value"));
    }
    let cells = u64::from(to.0 - from.0 + 1) * u64::from(to.1 - from.1 + 1);
    if cells > MAX_FORMATTED {
        let text = format!("the input `cell_range` covers more than {MAX_FORMATTED} cells");
        return Err(NodeError::new(text).code("input.size"));
    }
    Ok((from, to))
}
fn format(args: Args<'_>) -> Result<Map, NodeError> {
    let range = args.text_or("cell_range", "A1:B10");
    area(&range)?;
    let entry = map([
        ("range", range.into()),
        ("bold", args.flag("bold", false).into()),
        ("background", colour(args, "background_color")?.into()),
        ("text", colour(args, "text_color")?.into()),
    ]);
    changed(args, |sheet| push(sheet, "formats", entry, MAX_FORMATS))
}

/// The bytes of a workbook that nodes made.
fn bytes(sheets: &Map) -> Result<Vec<u8>, NodeError> {
    let bad =
        |_: XlsxError| NodeError::new("the workbook cannot be written: a cell lies outside of the sheet");
    let (mut workbook, mut formatted) = (Workbook::new(), 0_u64);
    for (name, sheet) in sheets {
        let own = workbook.add_worksheet();
        own.set_name(name).map_err(bad)?;
        let list = |key: &str| {
            sheet
                .get(key)
                .and_then(|list| list.as_list().map(<[Value]>::to_vec))
        };
        for entry in list("tables").unwrap_or_default() {
            table(own, &entry)?;
        }
        for entry in list("formats").unwrap_or_default() {
            let text = |key: &str| entry.get(key).map(|value| text_of(&value)).unwrap_or_default();
            let mut format = Format::new();
            if entry.get("bold").is_some_and(|bold| bold.truthy()) {
                format = format.set_bold();
            }
            if let Ok(rgb) = u32::from_str_radix(&text("background"), 16) {
                format = format.set_background_color(Color::RGB(rgb));
            }
            if let Ok(rgb) = u32::from_str_radix(&text("text"), 16) {
                format = format.set_font_color(Color::RGB(rgb));
            }
            let (from, to) = area(&text("range"))?;
            formatted += u64::from(to.0 - from.0 + 1) * u64::from(to.1 - from.1 + 1);
            if formatted > MAX_ALL_FORMATTED {
                let text = format!("the formats of a workbook cover more than {MAX_ALL_FORMATTED} cells");
                return Err(NodeError::new(text).code("input.size"));
            }
            for row in from.0..=to.0 {
                for column in from.1..=to.1 {
                    own.set_cell_format(row, column, &format).map_err(bad)?;
                }
            }
        }
        if sheet.get("autofit").is_some_and(|fit| fit.truthy()) {
            own.autofit();
        }
    }
    if sheets.is_empty() {
        workbook.add_worksheet();
    }
    workbook.save_to_buffer().map_err(bad)
}
fn table(sheet: &mut Worksheet, entry: &Value) -> Result<(), NodeError> {
    let bad = |_: XlsxError| NodeError::new("the table does not fit into a sheet").code("input.size");
    let holder = map([("dataframe", entry.get("table").unwrap_or_default())]);
    let frame = Frame::read(Args(&holder), "dataframe")?;
    let start = entry
        .get("start")
        .map(|start| text_of(&start))
        .unwrap_or_default();
    let (mut row, first) = cell("start_cell", &start)?;
    let place = |at: usize| u16::try_from(at).unwrap_or(u16::MAX).saturating_add(first);
    if entry.get("header").is_none_or(|header| header.truthy()) {
        for (at, column) in frame.columns.iter().enumerate() {
            sheet.write_string(row, place(at), &column.name).map_err(bad)?;
        }
        row += 1;
    }
    for cells in &frame.rows {
        for (at, value) in cells.iter().enumerate() {
            let column = place(at);
            match value {
                Value::Null => Ok(&mut *sheet),
                Value::Bool(value) => sheet.write_boolean(row, column, *value),
                Value::Int(_) | Value::Float(_) => {
                    let number = value.as_f64().filter(|number| number.is_finite());
                    sheet.write_number(row, column, number.unwrap_or_default())
                }
                other => sheet.write_string(row, column, text_of(other)),
            }
            .map_err(bad)?;
        }
        row += 1;
    }
    Ok(())
}
fn save(args: Args<'_>, folder: &Workspace) -> Result<Map, NodeError> {
    let bytes = bytes(&sheets(args)?)?;
    let mut name = named(&args.text("filename"), "workbook.xlsx", Utc::now());
    if !name.to_lowercase().ends_with(".xlsx") {
        name.push_str(".xlsx");
    }
    let above = match args.value("folder") {
        Value::Map(map) => map.get("path").map(text_of).unwrap_or_default(),
        other => text_of(&other),
    };
    let above = folder.place("folder", &above)?;
    let place = folder.place("filename", &above.join(name).display().to_string())?;
    folder.write("filename", &place, &bytes)?;
    Ok(Map::new())
}

async fn read(args: Args<'_>, ctx: &Context) -> Result<Map, NodeError> {
    let made = args.0.get(INPUT).and_then(|value| value.get("sheets")).is_some();
    let (sheet, head) = (
        args.text_or("sheet_name", "Sheet1"),
        args.flag("has_header", true),
    );
    let content = if made {
        let sheets = sheets(args)?;
        blocking(ctx, move || bytes(&sheets)).await?.into()
    } else if let Some(Value::Map(file)) = args.0.get(INPUT) {
        // A file that is named, as an object that is no reference.
        let uri = ["uri", "path"].iter().find_map(|key| file.get(*key)).map(text_of);
        let holder = one(INPUT, uri.unwrap_or_default());
        content(Args(&holder), INPUT, "excel", ctx).await?
    } else {
        content(args, INPUT, "excel", ctx).await?
    };
    let frame = blocking(ctx, move || {
        let rows = rows(&content, INPUT, Some(&sheet))?.pop().map(|(_, rows)| rows);
        Ok(frame(rows.unwrap_or_default(), head)?.value())
    });
    Ok(one("output", frame.await?))
}
fn frame(rows: Vec<Vec<Value>>, head: bool) -> Result<Frame, NodeError> {
    let width = rows.iter().map(Vec::len).max().unwrap_or_default();
    let mut rows = rows.into_iter();
    let names: Vec<String> = if head {
        let first = rows.next().unwrap_or_default();
        (0..width)
            .map(|at| {
                first
                    .get(at)
                    .map(text_of)
                    .filter(|name| !name.is_empty())
                    .unwrap_or_else(|| format!("column_{at}"))
            })
            .collect()
    } else {
        (0..width).map(|at| at.to_string()).collect()
    };
    let frame = Frame {
        columns: names.into_iter().map(Column::named).collect(),
        rows: rows.collect(),
    };
    frame.bounded(INPUT)?;
    Ok(frame)
}
/// Refuses a package that unpacks to too much, or whose list of texts says that it has more than it can: the reader makes
/// room for as many as the file says.
fn checked(bytes: &[u8], input: &'static str) -> Result<(), NodeError> {
    let mut package = Package::open(bytes, input, KIND)?;
    for name in package.names() {
        let content = package.bytes(&name)?;
        if name.to_ascii_lowercase().ends_with("sharedstrings.xml") && !is_honest(&content) {
            return Err(unreadable(input, KIND));
        }
    }
    Ok(())
}
/// Whether a list of texts, each of at least five bytes, can have as many as it says.
fn is_honest(content: &[u8]) -> bool {
    let text = String::from_utf8_lossy(content);
    let mut stated = text.split("uniqueCount").skip(1).map(|after| {
        let value = after.trim_start_matches([' ', '\t', '\r', '\n', '=', '"', '\'', '+']);
        value.chars().take_while(char::is_ascii_digit).collect::<String>()
    });
    stated.all(|digits| {
        digits.is_empty()
            || digits
                .parse::<usize>()
                .is_ok_and(|count| count <= content.len() / 5)
    })
}
fn too_many(input: &str) -> NodeError {
    let text = format!("the input `{input}` has a sheet with more than {MAX_CELLS} cells");
    NodeError::new(text).code("input.size")
}
/// Rows of equal length, from the first cell that has something to the last one.
fn dense(cells: Vec<((u32, u32), Value)>, input: &str) -> Result<Vec<Vec<Value>>, NodeError> {
    let (mut top, mut left, mut bottom, mut right) = (u32::MAX, u32::MAX, 0, 0);
    for ((row, column), _) in &cells {
        (top, bottom) = (top.min(*row), bottom.max(*row));
        (left, right) = (left.min(*column), right.max(*column));
    }
    if cells.is_empty() {
        return Ok(Vec::new());
    }
    let side = |from: u32, to: u32| (to - from) as usize + 1;
    let (height, width) = (side(top, bottom), side(left, right));
    // Before there is room for them: two cells can lie at both ends of a sheet.
    if height.saturating_mul(width) > MAX_CELLS {
        return Err(too_many(input));
    }
    let mut rows = vec![vec![Value::Null; width]; height];
    for ((row, column), value) in cells {
        let row = rows.get_mut((row - top) as usize);
        if let Some(place) = row.and_then(|row| row.get_mut((column - left) as usize)) {
            *place = value;
        }
    }
    Ok(rows)
}
/// Name and rows of one sheet, or of all.
fn rows(bytes: &[u8], input: &'static str, wanted: Option<&str>) -> Result<Vec<Sheet>, NodeError> {
    checked(bytes, input)?;
    let mut workbook: Xlsx<_> = Xlsx::new(Cursor::new(bytes)).map_err(|_| unreadable(input, KIND))?;
    let names = workbook.sheet_names();
    let names: Vec<String> = match wanted {
        None => names,
        Some(wanted) if names.iter().any(|name| name == wanted) => vec![wanted.to_owned()],
        Some(wanted) => {
            let all = names.into_iter().take(20).collect::<Vec<_>>().join(", ");
            let wanted: String = wanted.chars().take(40).collect();
            let text = format!("the input `sheet_name` names the sheet `{wanted}`, the workbook has: {all}");
            return Err(NodeError::new(text).code("input.value"));
        }
    };
    let mut found = Vec::new();
    for name in names {
        let lost = |_: calamine::XlsxError| unreadable(input, KIND);
        let mut cells = Vec::new();
        match workbook.worksheet_cells_reader(&name) {
            Ok(mut reader) => {
                while let Some(cell) = reader.next_cell().map_err(lost)? {
                    if matches!(cell.get_value(), DataRef::Empty) {
                        continue;
                    }
                    if cells.len() >= MAX_CELLS {
                        return Err(too_many(input));
                    }
                    cells.push((cell.get_position(), value(&Data::from(cell.get_value().clone()))));
                }
            }
            // A sheet of charts has no cells.
            Err(calamine::XlsxError::NotAWorksheet(_)) => {}
            Err(error) => return Err(lost(error)),
        }
        found.push((name, dense(cells, input)?));
    }
    Ok(found)
}
fn value(cell: &Data) -> Value {
    match cell {
        Data::Int(number) => Value::Int(*number),
        Data::Float(number) => {
            let float = Value::Float(*number);
            float.as_i64().map_or(float, Value::Int)
        }
        Data::Bool(value) => Value::Bool(*value),
        Data::Empty => Value::Null,
        other => other.to_string().into(),
    }
}
/// All sheets as tables in Markdown.
pub(super) fn markdown(bytes: &[u8], input: &'static str) -> Result<String, NodeError> {
    let sheets = rows(bytes, input, None)?.into_iter().map(|(name, rows)| {
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(text_of).collect()).collect();
        format!("## {name}\n\n{}", table_text(&rows))
    });
    Ok(sheets.collect::<Vec<_>>().join("\n\n"))
}
