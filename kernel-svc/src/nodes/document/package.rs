//! Documents that are packages of files. What is unpacked is bounded, whatever the package says of itself.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::unreadable;
use crate::node::NodeError;

/// Files of a package at most.
const MAX_FILES: usize = 20_000;
/// Bytes that are unpacked of one package at most.
const MAX_UNPACKED: usize = 128 * 1024 * 1024;

/// A package that is open.
pub(super) struct Package<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    input: &'static str,
    kind: &'static str,
    left: usize,
}
impl<'a> Package<'a> {
    /// Opens a package.
    pub fn open(bytes: &'a [u8], input: &'static str, kind: &'static str) -> Result<Self, NodeError> {
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| unreadable(input, kind))?;
        if archive.len() > MAX_FILES {
            return Err(unreadable(input, kind));
        }
        Ok(Self {
            archive,
            input,
            kind,
            left: MAX_UNPACKED,
        })
    }
    /// Names of its files.
    pub fn names(&self) -> Vec<String> {
        let names = self.archive.file_names().filter_map(Result::ok);
        names.map(|name| name.into_owned()).collect()
    }
    /// Whether it has a file.
    pub fn has(&self, name: &str) -> bool {
        self.archive.index_for_name(name).is_some()
    }
    /// The bytes of a file.
    pub fn bytes(&mut self, name: &str) -> Result<Vec<u8>, NodeError> {
        let bad = || unreadable(self.input, self.kind);
        let file = self.archive.by_name(name).map_err(|_| bad())?;
        let limit = u64::try_from(self.left).unwrap_or(u64::MAX).saturating_add(1);
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes).map_err(|_| bad())?;
        if bytes.len() > self.left {
            let text = format!("the input `{}` holds more than {MAX_UNPACKED} bytes", self.input);
            return Err(NodeError::new(text).code("input.size"));
        }
        self.left -= bytes.len();
        Ok(bytes)
    }
    /// The text of a file.
    pub fn text(&mut self, name: &str) -> Result<String, NodeError> {
        Ok(String::from_utf8_lossy(&self.bytes(name)?).into_owned())
    }
}
