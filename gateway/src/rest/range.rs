//! The `Range` header: one range of bytes (wire specification 5.4, R-39).

/// What a request wants of so many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of them.
    All,
    /// From the first to the last, both included.
    Part(u64, u64),
    /// Nothing that there is.
    Unsatisfiable,
}

/// Reads the header. A range beyond the end is cut to it; several ranges are not served; what is no range of bytes is
/// ignored, as HTTP says.
pub(crate) fn wanted(header: Option<&str>, size: u64) -> Wanted {
    let Some(ranges) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else {
        return Wanted::All;
    };
    if ranges.contains(',') {
        return Wanted::Unsatisfiable;
    }
    let Some((first, last)) = ranges.trim().split_once('-') else {
        return Wanted::All;
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let end = size.saturating_sub(1);
    match (first.trim().is_empty(), last.trim().is_empty()) {
        (true, true) => Wanted::All,
        (true, false) => match number(last) {
            None => Wanted::All,
            Some(count) if count == 0 || size == 0 => Wanted::Unsatisfiable,
            Some(count) => Wanted::Part(size.saturating_sub(count), end),
        },
        (false, open) => match (number(first), if open { Some(end) } else { number(last) }) {
            (Some(first), _) if first >= size => Wanted::Unsatisfiable,
            (Some(first), Some(last)) if first <= last => Wanted::Part(first, last.min(end)),
            (Some(_), Some(_)) => Wanted::Unsatisfiable,
            _ => Wanted::All,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w_138_to_140_one_range_is_cut_to_the_end() {
        let of = |header| wanted(Some(header), 1000);
        assert_eq!(of("bytes=0-99"), Wanted::Part(0, 99));
        for header in ["bytes=-10", "bytes=990-", "bytes=990-5000"] {
            assert_eq!(of(header), Wanted::Part(990, 999), "{header}");
        }
        for header in [
            "bytes=2000-",
            "bytes=0-1,5-6",
            "bytes=1000-",
            "bytes=-0",
            "bytes=5-4",
        ] {
            assert_eq!(of(header), Wanted::Unsatisfiable, "{header}");
        }
        for header in ["bytes=-", "items=0-1", "bytes=a-b", "bytes=7", ""] {
            assert_eq!(of(header), Wanted::All, "{header}");
        }
        assert_eq!(wanted(None, 1000), Wanted::All);
        assert_eq!(of("bytes=-5000"), Wanted::Part(0, 999));
        assert_eq!(wanted(Some("bytes=0-"), 0), Wanted::Unsatisfiable);
    }
}
