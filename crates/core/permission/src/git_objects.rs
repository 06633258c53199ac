//! Reads commits and trees from the object store of a git repository, without running git.
//!
//! The files are not trusted: every length is checked, and a store that is too large, damaged or
//! spread over other folders cannot be opened.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::read::ZlibDecoder;

use super::git_index::parse_offset;

/// The maximum size of all packs and their indexes, in bytes.
const MAX_PACK_BYTES: u64 = 64 << 20;
/// The maximum number of objects.
const MAX_OBJECTS: usize = 200_000;
/// The maximum size of all commits and trees after unpacking, in bytes.
const MAX_UNPACKED_BYTES: usize = 64 << 20;
/// The maximum number of deltas on which an object is based. Git makes chains of 50, and at most
/// 4,095.
const MAX_CHAIN: usize = 4_095;

const IDS_OFFSET: usize = 8 + 256 * 4;
const CHECKSUM_LENGTH: usize = 4;

/// The hash of an object.
pub(super) type ObjectId = Vec<u8>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Commit,
    Tree,
    /// The content of a file.
    Content,
    Tag,
}

#[derive(Clone, Debug)]
enum ObjectLocation {
    /// The index of the pack, and the offset in the pack.
    Packed(usize, usize),
    Loose(PathBuf),
}

/// The objects of a repository. Commits and trees can be read; the content of files is never
/// unpacked.
pub(super) struct ObjectStore {
    hash_length: usize,
    packs: Vec<Vec<u8>>,
    locations: HashMap<ObjectId, ObjectLocation>,
    /// Unpacked objects of packs, because others are based on them.
    unpacked: HashMap<(usize, usize), Rc<[u8]>>,
    bytes_left: usize,
}

/// An object in a pack.
struct PackEntry<'a> {
    base: EntryBase,
    size: usize,
    packed: &'a [u8],
}

enum EntryBase {
    /// The entry holds the whole object.
    Whole(ObjectKind),
    /// The entry holds the difference from the object at this offset of the pack.
    Offset(usize),
    /// The entry holds the difference from this object.
    Object(ObjectId),
}

impl ObjectStore {
    /// Opens the store in the folder `objects`. Returns `None` if the store has objects that cannot
    /// be listed.
    pub(super) fn open(objects: &Path, hash_length: usize) -> Option<Self> {
        let alternates = fs::read(objects.join("info/alternates")).unwrap_or_default();
        if !alternates.is_empty() {
            return None;
        }
        let mut store = Self {
            hash_length,
            packs: Vec::new(),
            locations: HashMap::new(),
            unpacked: HashMap::new(),
            bytes_left: MAX_UNPACKED_BYTES,
        };
        store.add_packs(&objects.join("pack"))?;
        store.add_loose_objects(objects)?;
        Some(store)
    }

    /// Returns the ids of all objects.
    pub(super) fn list_ids(&self) -> Vec<ObjectId> {
        self.locations.keys().cloned().collect()
    }

    fn add_packs(&mut self, folder: &Path) -> Option<()> {
        let mut bytes_left = MAX_PACK_BYTES;
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.ok()?.path();
            if path.extension().is_none_or(|ending| ending != "pack") {
                continue;
            }
            let index = path.with_extension("idx");
            for file in [&path, &index] {
                bytes_left = bytes_left.checked_sub(file.metadata().ok()?.len())?;
            }
            let number = self.packs.len();
            self.packs.push(fs::read(&path).ok()?);
            for (id, offset) in parse_pack_index(&fs::read(&index).ok()?, self.hash_length)? {
                self.add(id, ObjectLocation::Packed(number, offset))?;
            }
        }
        Some(())
    }

    fn add_loose_objects(&mut self, objects: &Path) -> Option<()> {
        for entry in fs::read_dir(objects).into_iter().flatten() {
            let folder = entry.ok()?.path();
            let Some(front) = folder.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            if front.len() != 2 || parse_hex(front).is_none() {
                continue;
            }
            for entry in fs::read_dir(&folder).ok()? {
                let path = entry.ok()?.path();
                let name = path.file_name().and_then(|name| name.to_str());
                // Git leaves temporary files here.
                let id = name.and_then(|name| parse_hex(&format!("{front}{name}")));
                if let Some(id) = id.filter(|id| id.len() == self.hash_length) {
                    self.add(id, ObjectLocation::Loose(path))?;
                }
            }
        }
        Some(())
    }

    fn add(&mut self, id: ObjectId, location: ObjectLocation) -> Option<()> {
        self.locations.entry(id).or_insert(location);
        (self.locations.len() <= MAX_OBJECTS).then_some(())
    }

    /// Returns the kind of an object, or `None` if the object is missing or damaged.
    pub(super) fn find_kind(&self, id: &[u8]) -> Option<ObjectKind> {
        match self.locations.get(id)? {
            ObjectLocation::Loose(path) => {
                let mut start = Vec::new();
                let file = fs::File::open(path).ok()?;
                ZlibDecoder::new(file)
                    .take(32)
                    .read_to_end(&mut start)
                    .ok()?;
                Some(parse_loose_header(&start)?.0)
            }
            ObjectLocation::Packed(pack, offset) => {
                let mut at = *offset;
                for _ in 0..=MAX_CHAIN {
                    at = match self.parse_entry(*pack, at)?.base {
                        EntryBase::Whole(kind) => return Some(kind),
                        EntryBase::Offset(base) => base,
                        EntryBase::Object(base) => self.find_in_pack(*pack, &base)?,
                    };
                }
                None
            }
        }
    }

    /// Returns the content of an object, or `None` if the object is missing, damaged or too large.
    pub(super) fn read(&mut self, id: &[u8]) -> Option<Rc<[u8]>> {
        match self.locations.get(id)?.clone() {
            ObjectLocation::Loose(path) => {
                let mut content = Vec::new();
                let limit = u64::try_from(self.bytes_left).ok()?;
                ZlibDecoder::new(fs::File::open(path).ok()?)
                    .take(limit)
                    .read_to_end(&mut content)
                    .ok()?;
                let length = parse_loose_header(&content)?.1;
                self.bytes_left = self.bytes_left.checked_sub(content.len())?;
                Some(content.get(length..)?.into())
            }
            ObjectLocation::Packed(pack, offset) => self.read_packed(pack, offset),
        }
    }

    fn read_packed(&mut self, pack: usize, offset: usize) -> Option<Rc<[u8]>> {
        // From the object to the one on which it is based.
        let mut deltas = Vec::new();
        let mut at = offset;
        let mut content = loop {
            if let Some(known) = self.unpacked.get(&(pack, at)) {
                break Rc::clone(known);
            }
            let entry = self.parse_entry(pack, at)?;
            let base = match entry.base {
                EntryBase::Whole(_) => {
                    let whole: Rc<[u8]> =
                        inflate(entry.packed, entry.size, self.bytes_left)?.into();
                    self.keep(pack, at, &whole)?;
                    break whole;
                }
                EntryBase::Offset(base) => base,
                EntryBase::Object(base) => self.find_in_pack(pack, &base)?,
            };
            deltas.push(at);
            if deltas.len() > MAX_CHAIN {
                return None;
            }
            at = base;
        };
        for at in deltas.into_iter().rev() {
            let entry = self.parse_entry(pack, at)?;
            let delta = inflate(entry.packed, entry.size, self.bytes_left)?;
            content = apply_delta(&content, &delta, self.bytes_left)?.into();
            self.keep(pack, at, &content)?;
        }
        Some(content)
    }

    fn keep(&mut self, pack: usize, offset: usize, content: &Rc<[u8]>) -> Option<()> {
        self.bytes_left = self.bytes_left.checked_sub(content.len())?;
        self.unpacked.insert((pack, offset), Rc::clone(content));
        Some(())
    }

    fn find_in_pack(&self, pack: usize, id: &[u8]) -> Option<usize> {
        match self.locations.get(id)? {
            ObjectLocation::Packed(found, offset) if *found == pack => Some(*offset),
            ObjectLocation::Packed(..) | ObjectLocation::Loose(_) => None,
        }
    }

    fn parse_entry(&self, pack: usize, offset: usize) -> Option<PackEntry<'_>> {
        let bytes = self.packs.get(pack)?;
        let mut at = offset;
        let mut byte = *bytes.get(at)?;
        at += 1;
        let kind = (byte >> 4) & 7;
        let mut size = usize::from(byte & 15);
        let mut shift = 4;
        while byte & 0x80 != 0 {
            byte = *bytes.get(at)?;
            at += 1;
            size |= shift_bits(byte & 0x7f, shift)?;
            shift += 7;
        }
        let base = match kind {
            1 => EntryBase::Whole(ObjectKind::Commit),
            2 => EntryBase::Whole(ObjectKind::Tree),
            3 => EntryBase::Whole(ObjectKind::Content),
            4 => EntryBase::Whole(ObjectKind::Tag),
            6 => {
                let (distance, length) = parse_offset(bytes.get(at..)?)?;
                at += length;
                EntryBase::Offset(offset.checked_sub(distance)?)
            }
            7 => {
                let id = bytes.get(at..at + self.hash_length)?.to_vec();
                at += self.hash_length;
                EntryBase::Object(id)
            }
            _ => return None,
        };
        Some(PackEntry {
            base,
            size,
            packed: bytes.get(at..)?,
        })
    }
}

/// Returns seven bits of a number, moved to their place. `None` if the number is too large.
fn shift_bits(bits: u8, shift: u32) -> Option<usize> {
    (shift < 32).then(|| usize::from(bits) << shift)
}

/// Parses an index of version 2. Returns the id and the offset of each object in the pack.
fn parse_pack_index(bytes: &[u8], hash_length: usize) -> Option<Vec<(ObjectId, usize)>> {
    let number = |at: usize| {
        let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        usize::try_from(u32::from_be_bytes(four)).ok()
    };
    if bytes.get(..4)? != b"\xfftOc" || number(4)? != 2 {
        return None;
    }
    let count = number(IDS_OFFSET - 4)?;
    if count > MAX_OBJECTS {
        return None;
    }
    let offsets = IDS_OFFSET + count * (hash_length + CHECKSUM_LENGTH);
    let mut found = Vec::new();
    for place in 0..count {
        let at = IDS_OFFSET + place * hash_length;
        let offset = number(offsets + place * 4)?;
        // Larger offsets are in another table, for packs that are too large in any case.
        if offset >> 31 != 0 {
            return None;
        }
        found.push((bytes.get(at..at + hash_length)?.to_vec(), offset));
    }
    Some(found)
}

/// Parses the header of an object in a file of its own. Returns the kind of the object and the
/// length of the header.
fn parse_loose_header(bytes: &[u8]) -> Option<(ObjectKind, usize)> {
    let end = bytes.iter().take(32).position(|byte| *byte == 0)?;
    let header = bytes.get(..end)?;
    let kind = match header.split(|byte| *byte == b' ').next()? {
        b"commit" => ObjectKind::Commit,
        b"tree" => ObjectKind::Tree,
        b"blob" => ObjectKind::Content,
        b"tag" => ObjectKind::Tag,
        _ => return None,
    };
    Some((kind, end + 1))
}

/// Unpacks data of exactly `size` bytes, if that is at most `limit`.
fn inflate(packed: &[u8], size: usize, limit: usize) -> Option<Vec<u8>> {
    if size > limit {
        return None;
    }
    let mut content = Vec::new();
    let most = u64::try_from(size).ok()?;
    ZlibDecoder::new(packed)
        .take(most)
        .read_to_end(&mut content)
        .ok()?;
    (content.len() == size).then_some(content)
}

/// Applies a delta of a pack to the object on which it is based. Returns `None` if the delta is
/// damaged or the result is larger than `limit`.
fn apply_delta(base: &[u8], delta: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut at = 0;
    let base_size = parse_size(delta, &mut at)?;
    let size = parse_size(delta, &mut at)?;
    if base_size != base.len() || size > limit {
        return None;
    }
    let mut content = Vec::new();
    while let Some(operation) = delta.get(at) {
        at += 1;
        let part = if operation & 0x80 == 0 {
            let length = usize::from(*operation);
            at += length;
            // Zero is reserved.
            (length > 0).then(|| delta.get(at - length..at)).flatten()?
        } else {
            let start = parse_sparse_number(delta, &mut at, operation & 15, 4)?;
            let length = parse_sparse_number(delta, &mut at, (operation >> 4) & 7, 3)?;
            let length = if length == 0 { 0x10000 } else { length };
            base.get(start..start.checked_add(length)?)?
        };
        content.extend_from_slice(part);
        if content.len() > size {
            return None;
        }
    }
    (content.len() == size).then_some(content)
}

/// Parses a number whose lowest seven bits come first.
fn parse_size(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0;
    let mut shift = 0;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= shift_bits(byte & 0x7f, shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        shift += 7;
    }
}

/// Parses a number of `count` bytes, the lowest first, of which only those with a bit in `present`
/// are stored.
fn parse_sparse_number(bytes: &[u8], at: &mut usize, present: u8, count: u32) -> Option<usize> {
    let mut value = 0;
    for place in 0..count {
        if present & (1 << place) != 0 {
            value |= usize::from(*bytes.get(*at)?) << (place * 8);
            *at += 1;
        }
    }
    Some(value)
}

/// Parses hexadecimal digits.
pub(super) fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    pairs
        .remainder()
        .is_empty()
        .then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}
