use rstest::rstest;
use serde_json::json;

use crate::nodes::testing::process;

#[rstest]
#[case("2026-01-31", 1, "month", "2026-02-28T00:00:00.000Z")]
#[case("2024-02-29T12:00:00Z", -1, "year", "2023-02-28T12:00:00.000Z")]
#[case("2026-11-30T23:30:00+02:00", 1, "hour", "2026-12-01T00:30:00.000+02:00")]
#[case("2026-11-30 08:00", 2, "weeks", "2026-12-14T08:00:00.000Z")]
#[tokio::test]
async fn time_is_added(#[case] date: &str, #[case] amount: i64, #[case] unit: &str, #[case] expected: &str) {
    let inputs = json!({"date": date, "amount": amount, "unit": unit});
    let out = process("lib.datetime.Add", inputs).await.expect("a date");
    assert_eq!(out["iso"], expected);
}

#[rstest]
#[case("2026-03-01", "2026-01-31", "month", 1)]
#[case("2026-01-31", "2026-03-01", "month", -1)]
#[case("2026-01-02", "2026-01-01T12:00", "day", 0)]
#[case("2030-01-01", "2026-01-02", "year", 3)]
#[case("2026-01-01T00:00:01Z", "2026-01-01", "millisecond", 1000)]
#[tokio::test]
async fn differences_are_whole(#[case] a: &str, #[case] b: &str, #[case] unit: &str, #[case] diff: i64) {
    let inputs = json!({"date_a": a, "date_b": b, "unit": unit});
    let out = process("lib.datetime.Diff", inputs).await.expect("a difference");
    assert_eq!(out["diff"], diff);
    assert_eq!(out["is_after"], a > b);
}

#[rstest]
#[case("week", "2026-11-30T00:00:00.000Z", "2026-12-06T23:59:59.999Z")]
#[case("month", "2026-12-01T00:00:00.000Z", "2026-12-31T23:59:59.999Z")]
#[case("minute", "2026-12-02T10:11:00.000Z", "2026-12-02T10:11:59.999Z")]
#[case("year", "2026-01-01T00:00:00.000Z", "2026-12-31T23:59:59.999Z")]
#[tokio::test]
async fn periods_have_ends(#[case] unit: &str, #[case] start: &str, #[case] end: &str) {
    let inputs = json!({"date": "2026-12-02T10:11:12.345Z", "unit": unit});
    let out = process("lib.datetime.StartEnd", inputs).await.expect("a period");
    assert_eq!(
        (out["start_iso"].as_str(), out["end_iso"].as_str()),
        (Some(start), Some(end))
    );
}

#[rstest]
#[case("YYYY-MM-DD HH:mm:ss", "2026-03-04 15:06:07")]
#[case("ddd D MMM YY, h:mm a", "Wed 4 Mar 26, 3:06 pm")]
#[case("[Year] YYYY [at] SSS", "Year 2026 at 089")]
#[tokio::test]
async fn dates_are_written(#[case] pattern: &str, #[case] expected: &str) {
    let date = json!({"type": "datetime", "year": 2026, "month": 3, "day": 4, "hour": 15, "minute": 6,
        "second": 7, "millisecond": 89});
    let out = process("lib.datetime.Format", json!({"date": date, "pattern": pattern})).await;
    let out = out.expect("a text");
    assert_eq!(
        (out["formatted"].as_str(), out["epoch_ms"].as_i64()),
        (Some(expected), Some(1772636767089))
    );
}

#[rstest]
#[case(json!({"date": ""}), "the input `date` is empty")]
#[case(json!({"date": "soon"}), "the input `date` is no date")]
#[case(json!({"date": {"year": 2026, "month": 13}}), "the input `date` is no date")]
#[case(json!({"date": 0, "unit": "eon"}), "the input `unit` must be")]
#[case(json!({"date": 0, "amount": i64::MAX}), "the input `amount` leads to a date")]
#[tokio::test]
async fn faults_name_the_input(#[case] inputs: serde_json::Value, #[case] part: &str) {
    let error = process("lib.datetime.Add", inputs).await.expect_err("a fault");
    assert!(error.message.contains(part), "{}", error.message);
}
