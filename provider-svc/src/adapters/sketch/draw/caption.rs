//! The band below a picture: laying out the prompt and the seed, and writing them.

use super::brief::Brief;
use super::colour::tone;
use super::fill_rows;
use super::letters::Letters;
use super::numbers::{float, u32_of, usize_of, whole};
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster};
use tiny_skia::Pixmap;

/// The band below a picture: the prompt in a few lines and the seed.
#[derive(Debug, Clone)]
pub(super) struct Caption {
    lines: Vec<String>,
    mark: String,
    letters: Letters,
    small: Letters,
    pad: f32,
    /// Rows of the sheet that the band takes; 0 where there is no room for a letter.
    pub(super) height: u32,
}

impl Caption {
    pub(super) fn lay_out(prompt: &str, seed: u64, width: u32, height: u32) -> Self {
        let (w, h) = (float(width), float(height));
        let wanted = ((w * h).sqrt() * 0.030 + 4.0).min(w * 0.075).min(h * 0.125);
        let letters = Letters::near(wanted, FontWeight::Regular);
        let small = Letters::near(wanted * 0.8, FontWeight::Regular);
        let pad = (letters.line() * 0.6).round().min(w * 0.06);
        let room = w - pad * 2.0;
        let columns = usize_of(whole((room / letters.advance()).floor()));
        let rows = if h < letters.line() * 6.0 {
            1
        } else if w < h * 0.6 || wanted < 9.0 {
            3
        } else {
            2
        };
        let rows = if h < letters.line() * 9.0 {
            rows.min(2)
        } else {
            rows
        };
        let mark = shorten_mark(seed, room * 0.5, small.advance());
        let taken = float(u32_of(mark.chars().count())) * small.advance() + letters.advance();
        let last = if mark.is_empty() {
            columns
        } else {
            usize_of(whole(((room - taken) / letters.advance()).floor()))
        };
        let text = printable(prompt);
        let lines = if columns < 3 {
            Vec::new()
        } else {
            wrap(&text, columns, last, rows)
        };
        let band = if lines.is_empty() && mark.is_empty() {
            0.0
        } else {
            letters.line() * float(u32_of(lines.len().max(1))) + pad * 1.3
        };
        Self {
            lines,
            mark,
            letters,
            small,
            pad,
            height: whole(band).min(height / 2),
        }
    }

    pub(super) fn write_on(&self, map: &mut Pixmap, brief: &Brief) {
        if self.height == 0 {
            return;
        }
        let (w, top) = (float(map.width()), map.height() - self.height);
        fill_rows(map, top, float(self.height), brief.band());
        let rule = (float(self.height) * 0.035).clamp(1.0, 6.0);
        fill_rows(map, top, rule, brief.accent(0.0));
        let mut y = float(top) + self.pad * 0.65 + rule * 0.5;
        for line in &self.lines {
            self.letters
                .write(map, self.pad, y, line, tone(0.95, 0.012, 85.0));
            y += self.letters.line();
        }
        let x = w - self.pad - float(u32_of(self.mark.chars().count())) * self.small.advance();
        let last = y - self.letters.line() + (self.letters.line() - self.small.line()) * 0.62;
        let last = if self.lines.is_empty() { y } else { last };
        self.small.write(
            map,
            x.max(0.0),
            last,
            &self.mark,
            tone(0.70, 0.03, brief.accent_hue),
        );
    }
}

/// "seed 7", with the middle of a long number left out, or nothing where it doesn't fit.
fn shorten_mark(seed: u64, room: f32, advance: f32) -> String {
    let digits = seed.to_string();
    let (head, tail) = (
        digits.get(..4).unwrap_or(&digits),
        digits.get(digits.len().saturating_sub(4)..),
    );
    let short = format!("seed {head}..{}", tail.unwrap_or_default());
    let options = [
        format!("seed {digits}"),
        if digits.len() > 8 {
            short
        } else {
            format!("#{digits}")
        },
    ];
    let fits = |text: &String| float(u32_of(text.len())) * advance <= room;
    options.into_iter().find(fits).unwrap_or_default()
}

/// The prompt in characters that the font has.
fn printable(prompt: &str) -> String {
    let mut out = String::with_capacity(prompt.len());
    for c in prompt.chars() {
        match c {
            '\u{2018}' | '\u{2019}' | '\u{201a}' => out.push('\''),
            '\u{201c}'..='\u{201e}' => out.push('"'),
            '\u{2010}'..='\u{2015}' => out.push('-'),
            '\u{2026}' => out.push_str("..."),
            c if c.is_whitespace() => out.push(' '),
            c if get_raster(c, FontWeight::Regular, RasterHeight::Size16).is_some() => out.push(c),
            _ => out.push('?'),
        }
        // What no caption can hold isn't worth laying out.
        if out.len() > 4000 {
            break;
        }
    }
    out
}

/// Breaks a text into at most `rows` lines of `columns` letters; the last line has `last` letters. What is cut ends in
/// "...".
fn wrap(text: &str, columns: usize, last: usize, rows: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        words.extend(letters.chunks(columns.max(1)).map(|piece| piece.iter().collect()));
    }
    let len = |text: &str| text.chars().count();
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let gap = usize::from(!line.is_empty());
        if len(&line) + gap + len(&word) <= columns {
            if gap == 1 {
                line.push(' ');
            }
            line.push_str(&word);
            continue;
        }
        lines.push(std::mem::take(&mut line));
        if lines.len() == rows {
            let rest = words.peek().is_some() || !word.is_empty();
            return finish_lines(lines, last, rest);
        }
        line = word;
    }
    if !line.is_empty() {
        // The seed needs its place on the last line; a full one moves its last word down while there are rows.
        if len(&line) > last
            && lines.len() + 1 < rows
            && let Some((head, tail)) = line.rsplit_once(' ')
        {
            lines.push(head.to_owned());
            line = tail.to_owned();
        }
        lines.push(line);
    }
    finish_lines(lines, last, false)
}

fn finish_lines(mut lines: Vec<String>, last: usize, more: bool) -> Vec<String> {
    if let Some(line) = lines.last_mut()
        && (more || line.chars().count() > last)
    {
        let keep = last.saturating_sub(3);
        let mut kept: String = line.chars().take(keep).collect();
        if line.chars().count() > keep
            && let Some((head, _)) = kept.rsplit_once(' ')
            && head.chars().count() * 2 > keep
        {
            kept = head.to_owned();
        }
        *line = format!("{}...", kept.trim_end_matches([' ', ',', '.', ';']));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captions_are_wrapped_and_cut() {
        assert_eq!(wrap("one two three", 7, 7, 2), ["one two", "three"]);
        assert_eq!(wrap("one two three four", 7, 7, 2), ["one two", "thre..."]);
        assert_eq!(wrap("abcdefghij", 4, 4, 3), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 10, 10, 2), Vec::<String>::new());
        assert_eq!(printable("“caf\u{e9}” \u{65e5} a\nb…"), "\"caf\u{e9}\" ? a b...");
        assert_eq!(shorten_mark(7, 100.0, 5.0), "seed 7");
        assert_eq!(shorten_mark(u64::MAX, 100.0, 5.0), "seed 1844..1615");
        assert_eq!(shorten_mark(7, 9.0, 5.0), "");
    }
}
