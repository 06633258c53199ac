//! Stored file contents: compressed when written, verified when read.

use haft_store::database::SqliteFailure;
use haft_types::ContentHash;
use rusqlite::{Connection, OptionalExtension};

/// Contents below this size, in bytes, are not compressed.
const MIN_COMPRESSED_BYTES: usize = 200;
/// The compression level. Fast compression is used because a scan packs the whole project before
/// the first command runs.
const ZSTD_LEVEL: i32 = 1;

/// The content of a file or the target of a link, ready to be stored.
#[derive(Clone, Debug)]
pub struct FileContent {
    hash: ContentHash,
    size: usize,
    zstd: bool,
    bytes: Vec<u8>,
}

impl FileContent {
    /// Prepares `bytes` for storage, compressed if compression saves more than a tenth of their
    /// size.
    pub fn pack(hash: ContentHash, bytes: Vec<u8>) -> Self {
        let size = bytes.len();
        let packed = (size >= MIN_COMPRESSED_BYTES)
            .then(|| zstd::bulk::compress(&bytes, ZSTD_LEVEL).ok())
            .flatten();
        match packed.filter(|packed| packed.len() < size / 10 * 9) {
            Some(bytes) => Self {
                hash,
                size,
                zstd: true,
                bytes,
            },
            None => Self {
                hash,
                size,
                zstd: false,
                bytes,
            },
        }
    }

    /// Returns the key under which the content is stored.
    pub fn hash(&self) -> ContentHash {
        self.hash
    }

    /// Returns the size in bytes as stored, which is after compression.
    pub fn stored_size(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn insert(&self, connection: &Connection) -> Result<(), SqliteFailure> {
        connection
            .prepare_cached(
                "INSERT INTO contents (hash, size, zstd, bytes) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (hash) DO NOTHING",
            )?
            .execute((&self.hash.0, (self.size as u64).cast_signed(), self.zstd, &self.bytes))?;
        Ok(())
    }
}

/// The reason why stored content cannot be read.
pub(super) enum Unreadable {
    /// The content was removed to keep the store within its size limit, or was never stored.
    Gone,
    /// The stored bytes do not match the hash.
    Damaged,
}

pub(super) fn read_content(
    connection: &Connection,
    hash: ContentHash,
) -> Result<Result<Vec<u8>, Unreadable>, SqliteFailure> {
    let found: Option<(i64, bool, Vec<u8>)> = connection
        .prepare_cached("SELECT size, zstd, bytes FROM contents WHERE hash = ?1")?
        .query_row([&hash.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((size, zstd, bytes)) = found else {
        return Ok(Err(Unreadable::Gone));
    };
    let bytes = match usize::try_from(size) {
        Ok(size) if zstd => zstd::bulk::decompress(&bytes, size).ok(),
        Ok(_) => Some(bytes),
        Err(_) => None,
    };
    Ok(bytes
        .filter(|bytes| ContentHash::from_content(bytes) == hash)
        .ok_or(Unreadable::Damaged))
}

pub(super) fn is_stored(connection: &Connection, hash: ContentHash) -> Result<bool, SqliteFailure> {
    Ok(connection
        .prepare_cached("SELECT 1 FROM contents WHERE hash = ?1")?
        .exists([&hash.0])?)
}
