//! What the streams of a PDF unpack to, measured before the reader unpacks them: it does so without a limit.
//!
//! Three looks, as the reader unpacks at three places: at the bytes of the file, for its tables of objects; at each object
//! as it is read, for those that hold further objects; and at the whole document, for what is drawn.

use std::{
    cell::Cell,
    collections::HashMap,
    io::{self, Read},
};

use flate2::read::{DeflateDecoder, ZlibDecoder};
use pdf_extract::{Dictionary, Document, LoadOptions, Object, ObjectId, Stream};
use weezl::{BitOrder, LzwStatus, decode::Decoder};

/// Bytes that all streams of a document may unpack to.
pub(super) const MAX_UNPACKED: u64 = 256 * 1024 * 1024;
/// Bytes that one stream may unpack to at one step, where a further step follows.
const MAX_STEP: u64 = 64 * 1024 * 1024;
/// The most that a byte can become at one step, roughly.
const MAX_RATIO: u64 = 1_100;
/// How many steps a stream may be packed in.
const MAX_STEPS: usize = 4;
/// Longest dictionary of a stream that is looked at.
const MAX_DICTIONARY: usize = 16 * 1024;
/// Widest field of a table of objects.
const MAX_WIDTH: u64 = 8;

/// Why a document was not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Unreadable,
    TooLarge,
}

thread_local! {
    /// What is left for the document that is being read on this thread.
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

/// Reads a document whose streams unpack to a bearable size.
pub(super) fn load(bytes: &[u8]) -> Result<Document, Fault> {
    scan(bytes)?;
    LEFT.set(MAX_UNPACKED);
    let options = LoadOptions {
        filter: Some(look),
        ..LoadOptions::default()
    };
    let document = Document::load_mem_with_options(bytes, options);
    if LEFT.get() == 0 {
        return Err(Fault::TooLarge);
    }
    let document = document.map_err(|_| Fault::Unreadable)?;
    check(&document)?;
    Ok(document)
}
/// Looks whether all that a document draws unpacks to a bearable size, also where a page names one stream often: the reader
/// puts them together.
pub(super) fn check(document: &Document) -> Result<(), Fault> {
    let (mut left, mut sizes) = (MAX_UNPACKED, HashMap::new());
    for (id, object) in &document.objects {
        if let Object::Stream(stream) = object {
            let unpacked = measured(stream, left)?;
            left = left.checked_sub(unpacked).ok_or(Fault::TooLarge)?;
            sizes.insert(*id, unpacked);
        }
    }
    for page in document.page_iter() {
        let parts = document.get_page_contents(page);
        let parts = parts.iter().filter_map(|part| sizes.get(part));
        let all = parts.fold(0_u64, |all, part| all.saturating_add(*part));
        if all > MAX_UNPACKED {
            return Err(Fault::TooLarge);
        }
    }
    Ok(())
}
/// Looks at an object as it is read. One that is too large is left out, and with it all that follow.
fn look(id: ObjectId, object: &mut Object) -> Option<(ObjectId, Object)> {
    if LEFT.get() == 0 {
        return None;
    }
    let Object::Stream(stream) = object else {
        return Some((id, object.clone()));
    };
    let left = LEFT.get();
    LEFT.set(left.saturating_sub(measured(stream, left).unwrap_or(left)));
    // Of a stream the reader keeps what it has, not what it is given.
    (LEFT.get() > 0).then_some((id, Object::Null))
}

/// Bytes that a stream unpacks to over all steps.
fn measured(stream: &Stream, most: u64) -> Result<u64, Fault> {
    let filters = stream.filters().unwrap_or_default();
    if filters.len() > MAX_STEPS {
        return Err(Fault::TooLarge);
    }
    let mut all = size(&stream.content);
    let mut held: Option<Vec<u8>> = None;
    for (at, filter) in filters.iter().enumerate() {
        let input = held.as_deref().unwrap_or(&stream.content);
        let room = most.saturating_sub(all);
        let last = at + 1 == filters.len();
        let step = if last { room } else { room.min(MAX_STEP) };
        let output = match *filter {
            b"FlateDecode" => inflated(input, step, !last)?,
            b"LZWDecode" => unlzw(input, &stream.dict, step, !last)?,
            // Of five letters come four bytes, and of one that stands for four zeros as well.
            b"ASCII85Decode" => {
                all = all.saturating_add(size(input).saturating_mul(4));
                if !last {
                    // The reader takes it apart itself: it is no larger than that.
                    let part = Stream::new(filter_of("ASCII85Decode"), input.to_vec());
                    let bytes = part.decompressed_content().unwrap_or_default();
                    held = Some(bytes);
                }
                continue;
            }
            // The reader knows no other.
            _ => break,
        };
        all = all.saturating_add(output.0);
        held = Some(output.1);
    }
    if !rows_fit(&stream.dict, all) {
        return Err(Fault::TooLarge);
    }
    if all > most { Err(Fault::TooLarge) } else { Ok(all) }
}
fn filter_of(name: &str) -> Dictionary {
    let mut dictionary = Dictionary::new();
    dictionary.set("Filter", Object::Name(name.as_bytes().to_vec()));
    dictionary
}
/// Whether the rows of what a predictor made are no longer than all of it: the reader makes room for one first.
fn rows_fit(dictionary: &Dictionary, unpacked: u64) -> bool {
    let Ok(Object::Dictionary(params)) = dictionary.get(b"DecodeParms") else {
        return true;
    };
    let number = |name: &[u8]| {
        let number = params.get(name).and_then(Object::as_i64).unwrap_or(1);
        u64::try_from(number.max(1)).unwrap_or(1)
    };
    let pixel = number(b"Colors").checked_mul(number(b"BitsPerComponent").max(8));
    let row = pixel.and_then(|bits| (bits / 8).checked_mul(number(b"Columns")));
    row.is_some_and(|row| row <= unpacked.max(1024 * 1024))
}
/// How much something unpacks to, and the bytes when they are kept.
fn inflated(input: &[u8], most: u64, keep: bool) -> Result<(u64, Vec<u8>), Fault> {
    let first = drained(ZlibDecoder::new(input), most, keep)?;
    // As the reader does with what has a broken head.
    match input.get(2..).filter(|_| first.0 == 0) {
        Some(rest) => drained(DeflateDecoder::new(rest), most, keep),
        None => Ok(first),
    }
}
fn drained(decoder: impl Read, most: u64, keep: bool) -> Result<(u64, Vec<u8>), Fault> {
    let mut limited = decoder.take(most.saturating_add(1));
    let mut kept = Kept {
        bytes: Vec::new(),
        count: 0,
        keep,
    };
    // What breaks off counts as far as it came.
    let _ = io::copy(&mut limited, &mut kept);
    if kept.count > most {
        return Err(Fault::TooLarge);
    }
    Ok((kept.count, kept.bytes))
}
fn unlzw(input: &[u8], dictionary: &Dictionary, most: u64, keep: bool) -> Result<(u64, Vec<u8>), Fault> {
    let params = dictionary.get(b"DecodeParms").and_then(Object::as_dict).ok();
    let early = params.and_then(|params| params.get(b"EarlyChange").and_then(Object::as_i64).ok());
    lzw(input, early.is_none_or(|early| early != 0), most, keep)
}
fn lzw(mut input: &[u8], early: bool, most: u64, keep: bool) -> Result<(u64, Vec<u8>), Fault> {
    let mut decoder = if early {
        Decoder::with_tiff_size_switch(BitOrder::Msb, 8)
    } else {
        Decoder::new(BitOrder::Msb, 8)
    };
    let (mut count, mut bytes, mut piece) = (0_u64, Vec::new(), vec![0; 64 * 1024]);
    loop {
        let step = decoder.decode_bytes(input, &mut piece);
        let made = piece.get(..step.consumed_out).unwrap_or_default();
        count = count.saturating_add(size(made));
        if count > most {
            return Err(Fault::TooLarge);
        }
        if keep {
            bytes.extend_from_slice(made);
        }
        input = input.get(step.consumed_in..).unwrap_or_default();
        match step.status {
            Ok(LzwStatus::Ok) if step.consumed_in > 0 || step.consumed_out > 0 => {}
            Ok(_) | Err(_) => return Ok((count, bytes)),
        }
    }
}
/// Counts what is written to it, and keeps it if it is wanted.
struct Kept {
    bytes: Vec<u8>,
    count: u64,
    keep: bool,
}
impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.count += size(bytes);
        if self.keep {
            self.bytes.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
fn size(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// Looks at the bytes of a file. Tables of objects are unpacked before any object can be looked at, and so are the objects
/// that hold others where the document is encrypted; their dictionaries are always in the clear.
fn scan(bytes: &[u8]) -> Result<(), Fault> {
    let encrypted = has_name(bytes, b"Encrypt");
    let (mut from, mut left, mut holders) = (0, MAX_UNPACKED, 0);
    while let Some(found) = find(bytes.get(from..).unwrap_or_default(), b"stream") {
        let at = from + found;
        from = at + b"stream".len();
        let before = bytes.get(..at).unwrap_or_default();
        if before.ends_with(b"end") {
            continue;
        }
        let before = before.get(before.len().saturating_sub(MAX_DICTIONARY)..);
        let before = before.unwrap_or_default();
        let start = before.windows(3).rposition(|word| word == b"obj").unwrap_or(0);
        let dictionary = before.get(start..).unwrap_or_default();
        let content = bytes.get(from..).unwrap_or_default();
        if encrypted && has_name(dictionary, b"ObjStm") {
            // Nothing can be measured: the most that it could become counts, in one step.
            let end = find(content, b"endstream").unwrap_or(content.len());
            holders += size(content.get(..end).unwrap_or_default());
            if holders.saturating_mul(MAX_RATIO) > MAX_UNPACKED.saturating_mul(4) || steps(dictionary) > 1 {
                return Err(Fault::TooLarge);
            }
        }
        // Nothing but such a table has widths of fields.
        if let Some(widths) = array(dictionary, b"W") {
            let all: u64 = widths.iter().sum();
            if all == 0 || widths.iter().any(|width| *width > MAX_WIDTH) || steps(dictionary) > 1 {
                return Err(Fault::Unreadable);
            }
            let content = content.strip_prefix(b"\r").unwrap_or(content);
            let content = content.strip_prefix(b"\n").unwrap_or(content);
            let packed = if has_name(dictionary, b"LZWDecode") {
                lzw(content, true, left, false)?
                    .0
                    .max(lzw(content, false, left, false)?.0)
            } else {
                inflated(content, left, false)?.0
            };
            left = left.saturating_sub(packed);
        }
    }
    Ok(())
}
/// How many steps a dictionary names.
fn steps(dictionary: &[u8]) -> usize {
    names(dictionary).filter(|name| name.ends_with(b"Decode")).count()
}
/// All names in a text, without their escapes.
fn names(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let starts = text.iter().enumerate().filter(|(_, letter)| **letter == b'/');
    starts.map(|(at, _)| name(text.get(at + 1..).unwrap_or_default()))
}
fn has_name(text: &[u8], wanted: &[u8]) -> bool {
    names(text).any(|name| name == wanted)
}
/// The name at the start of a text, as far as it may matter.
fn name(text: &[u8]) -> Vec<u8> {
    let (mut letters, mut name) = (text.iter().copied(), Vec::new());
    while let Some(letter) = letters.next()
        && name.len() < 32
    {
        match letter {
            b'#' => {
                let digit = |letter: Option<u8>| char::from(letter.unwrap_or_default()).to_digit(16);
                let code = digit(letters.next()).zip(digit(letters.next()));
                let code = code.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
                name.push(code.unwrap_or_default());
            }
            letter if letter.is_ascii_alphanumeric() || letter == b'_' || letter == b'-' => name.push(letter),
            _ => break,
        }
    }
    name
}
/// The whole numbers of an array with this name.
fn array(dictionary: &[u8], wanted: &[u8]) -> Option<Vec<u64>> {
    let starts = dictionary
        .iter()
        .enumerate()
        .filter(|(_, letter)| **letter == b'/');
    let after = |(at, _): (usize, &u8)| {
        let rest = dictionary.get(at + 1..)?;
        let end = rest
            .iter()
            .position(|letter| b" \t\r\n\x0c\0[".contains(letter))?;
        (name(rest.get(..end)?) == wanted).then(|| rest.get(end..))?
    };
    let rest = starts.filter_map(after).next()?;
    let open = rest.iter().position(|letter| *letter == b'[')?;
    let close = rest.iter().position(|letter| *letter == b']')?;
    let text = String::from_utf8_lossy(rest.get(open + 1..close)?).into_owned();
    // What is no number is a number that is refused.
    Some(
        text.split_ascii_whitespace()
            .map(|number| number.parse().unwrap_or(u64::MAX))
            .collect(),
    )
}
fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|window| window == word)
}
