//! Cutting a body into server-sent events, wherever the network cut it.

use bytes::{Buf, BytesMut};

/// Longest event that is taken, in bytes: a 4K picture as base64 with room to spare.
const MAX_EVENT: usize = 96 * 1024 * 1024;

/// Cuts pieces of a body into the data of events.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    rest: BytesMut,
    /// How far the rest was searched for a line end already.
    seen: usize,
    data: Vec<u8>,
    any: bool,
}

/// An event was too long.
#[derive(Debug)]
pub(crate) struct TooLong;

impl Cutter {
    /// Takes a piece and gives the data of the events that are complete with it.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<String>, TooLong> {
        self.rest.extend_from_slice(piece);
        if self.rest.len() + self.data.len() > MAX_EVENT {
            return Err(TooLong);
        }
        let mut events = Vec::new();
        while let Some(at) = self
            .rest
            .get(self.seen..)
            .and_then(|rest| rest.iter().position(|byte| *byte == b'\n'))
        {
            let mut line = self.rest.split_to(self.seen + at);
            self.rest.advance(1);
            self.seen = 0;
            if line.last() == Some(&b'\r') {
                line.truncate(line.len() - 1);
            }
            self.line(&line, &mut events);
        }
        self.seen = self.rest.len();
        Ok(events)
    }

    /// The data of a last event that no empty line ended.
    pub(crate) fn finish(mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.rest);
        let mut events = Vec::new();
        self.line(&rest, &mut events);
        self.line(b"", &mut events);
        events.pop()
    }

    fn line(&mut self, line: &[u8], events: &mut Vec<String>) {
        if line.is_empty() {
            if std::mem::take(&mut self.any) {
                let data = std::mem::take(&mut self.data);
                events.push(String::from_utf8_lossy(&data).into_owned());
            }
            return;
        }
        // Comments and the names of events say nothing that the data does not.
        let Some(data) = line.strip_prefix(b"data:") else {
            return;
        };
        if std::mem::replace(&mut self.any, true) {
            self.data.push(b'\n');
        }
        self.data
            .extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BODY: &str = ": ping\r\n\r\nevent: a\r\ndata: {\"x\":\"grün\"}\r\n\r\n:c\ndata:one\ndata: two\n\n\n\ndata: [DONE]\n\n";

    fn cut(pieces: impl Iterator<Item = Vec<u8>>) -> Vec<String> {
        let mut cutter = Cutter::default();
        pieces
            .flat_map(|piece| cutter.push(&piece).expect("short"))
            .collect()
    }

    #[test]
    fn a_last_event_without_an_empty_line_is_not_lost() {
        let mut cutter = Cutter::default();
        assert_eq!(cutter.push(b"data: a\n\ndata: b").expect("short"), ["a"]);
        assert_eq!(cutter.finish().as_deref(), Some("b"));
    }

    proptest! {
        #[test]
        fn p_010_events_are_the_same_wherever_the_body_is_cut(size in 1_usize..20) {
            let events = cut(BODY.as_bytes().chunks(size).map(<[u8]>::to_vec));
            prop_assert_eq!(events, ["{\"x\":\"grün\"}", "one\ntwo", "[DONE]"]);
        }
    }
}
