//! Members with holes as POSIX tars have them: the data lies there without the holes, and extended headers
//! say where it belongs. GNU tar has three versions of this, 0.0, 0.1 and 1.0 ("Storing Sparse Files" in its
//! manual); in the last the map lies before the data. The tar crate reads only the holes of GNU's own format.

use super::BLOCK;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;

/// So many bytes a map in front of the data may have: a segment has far fewer holes.
const MAP_MAX: u64 = 1 << 20;

/// What the extended headers say of a member with holes.
#[derive(Debug, Default)]
pub(super) struct Sparse {
    /// Its own path: the header's is that of the condensed form.
    pub path: Option<PathBuf>,
    /// How long it is with its holes.
    pub size: u64,
    /// Where the data belongs, alternately offset and length; `None`: that lies before the data.
    map: Option<Vec<u64>>,
    /// Something in it is no number.
    is_broken: bool,
}

impl Sparse {
    /// That of a member; `None`: it has no holes.
    pub(super) fn of(extensions: tar::PaxExtensions<'_>) -> Option<Sparse> {
        let (mut sparse, mut is_sparse) = (Sparse::default(), false);
        let mut numbers: Vec<u64> = Vec::new();
        let mut form = (0, 0);
        for extension in extensions.flatten() {
            let key = extension.key().ok().and_then(|key| key.strip_prefix("GNU.sparse."));
            let (Some(key), Ok(value)) = (key, extension.value()) else { continue };
            is_sparse = true;
            let mut number = || {
                let number = value.parse().ok();
                sparse.is_broken |= number.is_none();
                number.unwrap_or(0)
            };
            match key {
                "name" => sparse.path = Some(PathBuf::from(value)),
                "size" | "realsize" => sparse.size = number(),
                "major" => form.0 = number(),
                "minor" => form.1 = number(),
                "offset" | "numbytes" => numbers.push(number()),
                "map" => {
                    let read: Result<Vec<u64>, _> = value.split(',').map(str::parse).collect();
                    sparse.is_broken |= read.is_err();
                    numbers = read.unwrap_or_default();
                }
                _ => {}
            }
        }
        sparse.is_broken |= form > (1, 0);
        sparse.map = (form.0 == 0).then_some(numbers);
        is_sparse.then_some(sparse)
    }

    /// The member with its holes; `stored`: how many bytes it has in the tar.
    pub(super) fn filled<'b>(self, bytes: &'b mut dyn Read, stored: u64) -> Filled<'b> {
        let Sparse { size, map, is_broken, .. } = self;
        Filled { bytes, stored, size, at: 0, map, is_broken, parts: None }
    }
}

/// A member with zeros in its holes.
pub(super) struct Filled<'b> {
    bytes: &'b mut dyn Read,
    stored: u64,
    size: u64,
    at: u64,
    map: Option<Vec<u64>>,
    is_broken: bool,
    /// Where data still to come belongs, the first part last; `None` before the first byte.
    parts: Option<Vec<(u64, u64)>>,
}

impl Filled<'_> {
    fn parts(&mut self) -> io::Result<Vec<(u64, u64)>> {
        let (map, before) = match self.map.take() {
            Some(map) => (map, 0),
            None => map_before(self.bytes)?,
        };
        let pairs = map.chunks(2).map(|pair| match *pair {
            [offset, bytes] => Some((offset, bytes)),
            _ => None,
        });
        let mut parts: Vec<(u64, u64)> = pairs.collect::<Option<_>>().ok_or_else(wrong_map)?;
        let (mut end, mut bytes) = (0, 0_u64);
        for (offset, count) in &parts {
            let begins_after = *offset >= end;
            end = offset.checked_add(*count).filter(|_| begins_after).ok_or_else(wrong_map)?;
            bytes = bytes.saturating_add(*count);
        }
        if self.is_broken || end > self.size || bytes.saturating_add(before) != self.stored {
            return Err(wrong_map());
        }
        parts.reverse();
        Ok(parts)
    }
}

impl Read for Filled<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.parts.is_none() {
            self.parts = Some(self.parts()?);
        }
        let parts = self.parts.get_or_insert_default();
        while parts.pop_if(|(offset, bytes)| *offset + *bytes <= self.at).is_some() {}
        let (offset, bytes) = parts.last().copied().unwrap_or((self.size, 0));
        let is_hole = self.at < offset;
        let until = if is_hole { offset } else { offset + bytes };
        let most = usize::try_from(until - self.at).unwrap_or(usize::MAX).min(out.len());
        let out = out.get_mut(..most).unwrap_or_default();
        let count = if is_hole {
            out.fill(0);
            most
        } else {
            self.bytes.read(out)?
        };
        self.at += count as u64;
        Ok(count)
    }
}

/// The map before the data, as many whole blocks as it takes: how many parts, and offset and length of each,
/// a number a line. And how many bytes that is.
fn map_before(bytes: &mut dyn Read) -> io::Result<(Vec<u64>, u64)> {
    let (mut numbers, mut digits, mut read) = (Vec::new(), String::new(), 0);
    loop {
        let mut block = [0; BLOCK as usize];
        bytes.read_exact(&mut block)?;
        read += BLOCK;
        for byte in block {
            match byte {
                b'0'..=b'9' => digits.push(char::from(byte)),
                b'\n' => {
                    numbers.push(std::mem::take(&mut digits).parse().map_err(|_| wrong_map())?)
                }
                _ => return Err(wrong_map()),
            }
            let wanted = numbers.first().map(|parts: &u64| parts.saturating_mul(2));
            if wanted.is_some_and(|wanted| numbers.len() as u64 > wanted) {
                numbers.remove(0);
                return Ok((numbers, read));
            }
        }
        if read >= MAP_MAX {
            return Err(wrong_map());
        }
    }
}

fn wrong_map() -> io::Error {
    let text = "tar: a file with holes whose map is wrong or of an unknown version";
    io::Error::new(ErrorKind::InvalidData, text)
}
