//! Where ink is, and where there is none.

use std::sync::Arc;

use atelier_proto::value::Value;
use rstest::rstest;
use serde_json::{Value as Json, json};

use super::draw::short;
use crate::nodes::media_testing::{call, context, inputs, pixels};

fn config(kind: &str) -> Json {
    json!({"type": "chart_config", "title": "Sales", "x_label": "month", "y_label": "items", "legend": true,
        "data": {"series": [{"x": "month", "y": "sold", "plot_type": kind, "color": "#ff0000"}]}})
}
fn table() -> Json {
    json!({"type": "dataframe", "columns": [{"name": "month", "data_type": "string"}, {"name": "sold", "data_type": "int"}],
        "data": [["Jan", 10], ["Feb", 30], ["Mar", 20]]})
}
async fn drawn(config: Json, data: Json) -> Result<Value, String> {
    let ctx = context("lib.charts.ChartRenderer", Arc::default());
    let params = json!({"chart_config": config, "data": data, "width": 320, "height": 240});
    let out = call(&ctx, inputs(params, &[]))
        .await
        .map_err(|error| error.message)?;
    Ok(out["output"].clone())
}
/// Red pixels in a part of the picture.
fn red(picture: &Value, columns: std::ops::Range<usize>) -> usize {
    let (width, pixels) = pixels(picture);
    assert_eq!((width, pixels.len()), (320, 320 * 240));
    let rows = pixels.chunks(320).map(|row| &row[columns.clone()]);
    rows.flatten()
        .filter(|pixel| pixel[0] > 230 && pixel[1] < 90 && pixel[2] < 90)
        .count()
}

#[rstest]
#[case("line", 300)]
#[case("area", 100)]
#[case("scatter", 50)]
#[case("bar", 5_000)]
#[tokio::test]
async fn series_are_drawn(#[case] kind: &str, #[case] least: usize) {
    let picture = drawn(config(kind), table()).await.expect("a chart");
    assert!(red(&picture, 0..320) > least, "{kind}: {}", red(&picture, 0..320));
    assert_eq!(
        drawn(config(kind), table()).await.expect("a chart"),
        picture,
        "the same each time"
    );
}

#[tokio::test]
async fn bars_are_as_high_as_their_values() {
    let picture = drawn(config("bar"), table()).await.expect("a chart");
    let third = |at: usize| red(&picture, 76 + at * 76..76 + (at + 1) * 76);
    let (first, second, last) = (third(0), third(1), third(2));
    assert!(
        second > 2 * first && last > first && last < second,
        "{first} {second} {last}"
    );
}

#[tokio::test]
async fn pies_histograms_and_other_tables() {
    let pie = drawn(config("pie"), table()).await.expect("a chart");
    assert!(
        pixels(&pie)
            .1
            .iter()
            .filter(|pixel| **pixel == [76, 114, 176, 255])
            .count()
            > 1_000
    );
    let numbers = json!([{"v": 1}, {"v": 1.5}, {"v": "9"}, {"v": null}]);
    let histogram = json!({"data": {"series": [{"x": "v", "plot_type": "hist", "color": "#ff0000"}]}});
    assert!(red(&drawn(histogram, numbers).await.expect("a chart"), 0..320) > 1_000);
    let columns = json!({"x": [1, 2, 3], "y": [3, 2, 1]});
    let lines = json!({"data": {"series": [{"x": "x", "y": "y", "color": "#ff0000"}]}});
    assert!(red(&drawn(lines, columns).await.expect("a chart"), 0..320) > 300);
}

#[rstest]
#[case(json!({"data": {"series": [{"x": "month", "y": "no"}]}}), table(),
    "the input `data` has no column \"no\"; it has: month, sold")]
#[case(json!({"data": {"series": []}}), table(), "the input `chart_config` has no series with points in the table")]
#[case(config("line"), json!(null), "the input `data` is empty: there is no table to draw")]
#[case(config("line"), json!([]), "the input `data` is empty: there is no table to draw")]
#[tokio::test]
async fn what_cannot_be_drawn_is_told(#[case] config: Json, #[case] data: Json, #[case] expected: &str) {
    assert_eq!(drawn(config, data).await.expect_err("a fault"), expected);
}

#[rstest]
#[case(0.0, "0")]
#[case(1.5, "1.5")]
#[case(100.0, "100")]
#[case(-0.25, "-0.25")]
#[case(2.5e7, "2.5e7")]
fn numbers_are_short(#[case] number: f64, #[case] expected: &str) {
    assert_eq!(short(number), expected);
}
