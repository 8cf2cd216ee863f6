//! A small generator of random numbers, so that a seed means the same for ever.

use serde_json::{Map as JsonMap, Number, Value as Json};

/// SplitMix64.
pub struct Random(u64);
impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// A number below `end`; 0 for an empty range.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap();
        usize::try_from(if end == 0 { 0 } else { self.next() % end }).unwrap()
    }
    /// True once in so many times.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
    pub fn text(&mut self) -> String {
        const TEXTS: &[&str] = &[
            "",
            " ",
            "a",
            "value",
            "output",
            "__control__",
            "__control_output__",
            "__execution__",
            "control",
            "#",
            "=",
            ",",
            "0",
            "-1",
            "nodetool.input.",
            "nodetool.output.Output",
            "test.Input",
            "null",
            "\u{0}",
            "\u{feff}",
            "ß→🎈",
            "a]b[c",
            "list[",
            "list[list[str]]",
            "union[int, str]",
            "dict[str, any]",
            "data:image/png;base64,AAAA",
            "asset://x.png",
            "9223372036854775808",
            "1e999",
            "NaN",
        ];
        match self.below(12) {
            0 => "x".repeat(self.below(5_000)),
            1 => {
                let open = *self.pick(&["list[", "union[", "dict[str,", "[", "list[union[str,", "{{", "${"]);
                let depth = self.below(3_000);
                format!("{}int{}", open.repeat(depth), "]".repeat(self.below(depth + 1)))
            }
            2 => (0..self.below(20))
                .filter_map(|_| char::from_u32(u32::try_from(self.below(0x11_0000)).unwrap()))
                .collect(),
            _ => (*self.pick(TEXTS)).to_owned(),
        }
    }
    pub fn scalar(&mut self) -> Json {
        match self.below(9) {
            0 => Json::Null,
            1 => Json::Bool(self.one_in(2)),
            2 => Json::from(i64::MIN),
            3 => Json::from(u64::MAX),
            4 => Number::from_f64(f64::MAX).map_or(Json::Null, Json::Number),
            5 => Json::from(self.next() % 100),
            6 => Json::from(-0.0),
            _ => Json::String(self.text()),
        }
    }
    /// Any JSON, not too deep for a parser.
    pub fn json(&mut self, depth: usize) -> Json {
        if depth == 0 {
            return self.scalar();
        }
        match self.below(8) {
            0 => (0..self.below(5)).map(|_| self.json(depth - 1)).collect(),
            1 => {
                let entries = (0..self.below(5)).map(|_| (self.text(), self.json(depth - 1)));
                Json::Object(entries.collect::<JsonMap<_, _>>())
            }
            2 => {
                let levels = self.below(100);
                let list = self.one_in(2);
                (0..levels).fold(self.scalar(), |inner, _| {
                    if list {
                        Json::Array(vec![inner])
                    } else {
                        Json::Object(JsonMap::from_iter([("in".to_owned(), inner)]))
                    }
                })
            }
            _ => self.scalar(),
        }
    }
}
