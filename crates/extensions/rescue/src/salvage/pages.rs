//! Reads single pages of a database file and of its write-ahead log. The format is described at
//! sqlite.org/fileformat2.html.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;

use haft_store::database::{PAGE_SIZE, WriteAheadLog, append_suffix, read_up_to};

/// The location of a page, in the database file or in the write-ahead log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum PageLocation {
    /// The page with this number in the database file.
    Database(u32),
    /// The page at this offset in the write-ahead log.
    Log(u64),
}

/// Selects one of the versions of a page that are stored in the database file and its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageVersion {
    /// The newest committed version, which SQLite reads.
    Committed,
    /// The last version in the write-ahead log, whether committed or not. Frames after a damaged
    /// frame count as uncommitted, but may be intact.
    Last,
    /// The version in the database file.
    InDatabase,
}

impl PageVersion {
    /// All versions of a page, in the order in which salvaging tries them.
    pub(super) const ALL: [Self; 3] = [Self::Committed, Self::Last, Self::InDatabase];
}

/// Reads all stored versions of pages from a database file and its write-ahead log.
pub(super) struct Pages {
    database: File,
    log: Option<File>,
    size: u32,
    reserved: u32,
    count: u32,
    /// The log offset of the newest committed version of each page, by page number.
    newest: HashMap<u32, u64>,
    /// The log offset of the last version of each page, whether committed or not, by page number.
    last: HashMap<u32, u64>,
    /// The page number and the log offset of every frame in the log, oldest first.
    frames: Vec<(u32, u64)>,
}

impl Pages {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let database = File::open(path)?;
        let mut header = [0; 100];
        let read = read_up_to(&database, &mut header, 0)?;
        let log_path = append_suffix(path, "-wal");
        let log = match File::open(log_path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let (size, reserved) = if read == 100 {
            parse_page_size(&header)
        } else {
            (PAGE_SIZE, 0)
        };
        let count = u32::try_from(database.metadata()?.len() / u64::from(size)).unwrap_or(u32::MAX);
        let mut pages = Self {
            database,
            log,
            size,
            reserved,
            count,
            newest: HashMap::new(),
            last: HashMap::new(),
            frames: Vec::new(),
        };
        pages.read_log()?;
        Ok(pages)
    }

    /// Returns the number of bytes of a page that SQLite uses, which excludes the reserved bytes at
    /// its end.
    pub(super) fn usable_bytes(&self) -> usize {
        (self.size - self.reserved) as usize
    }

    /// Returns the location of a version of a page. If the log does not contain this version, the
    /// location is in the database file.
    pub(super) fn locate(&self, number: u32, version: PageVersion) -> PageLocation {
        let in_log = match version {
            PageVersion::Committed => self.newest.get(&number),
            PageVersion::Last => self.last.get(&number),
            PageVersion::InDatabase => None,
        };
        in_log.map_or(PageLocation::Database(number), |offset| {
            PageLocation::Log(*offset)
        })
    }

    fn locate_newest(&self, number: u32) -> PageLocation {
        self.locate(number, PageVersion::Committed)
    }

    /// Returns the number and the location of every version of every page. The newest versions of
    /// all pages come first.
    pub(super) fn all_versions(&self) -> impl Iterator<Item = (u32, PageLocation)> + '_ {
        let beyond = self
            .newest
            .keys()
            .copied()
            .filter(|number| *number > self.count);
        let numbers = (1..=self.count).chain(beyond);
        let newest = numbers.map(|number| (number, self.locate_newest(number)));
        let hidden = self
            .newest
            .keys()
            .copied()
            .filter(|number| *number <= self.count);
        let hidden = hidden.map(|number| (number, PageLocation::Database(number)));
        let older = self
            .frames
            .iter()
            .rev()
            .map(|(number, offset)| (*number, PageLocation::Log(*offset)));
        newest
            .chain(hidden)
            .chain(older.filter(|(number, place)| self.locate_newest(*number) != *place))
    }

    /// Reads the page at a location. Returns `None` if the file ends before the end of the page.
    pub(super) fn read_page(&self, place: PageLocation) -> io::Result<Option<Vec<u8>>> {
        let mut page = vec![0; self.size as usize];
        let read = match (place, &self.log) {
            (PageLocation::Database(0), _) | (PageLocation::Log(_), None) => return Ok(None),
            (PageLocation::Database(number), _) => read_up_to(
                &self.database,
                &mut page,
                u64::from(number - 1) * u64::from(self.size),
            )?,
            (PageLocation::Log(offset), Some(log)) => read_up_to(log, &mut page, offset)?,
        };
        Ok((read == page.len()).then_some(page))
    }

    /// Reads the frames of the write-ahead log. The last committed frame of each page becomes the
    /// newest version of the page; all remaining frames are tried last.
    fn read_log(&mut self) -> io::Result<()> {
        let Some(file) = &self.log else { return Ok(()) };
        let mut pending = Vec::new();
        for frame in WriteAheadLog::read(file, self.size)?.frames {
            self.frames.push((frame.page, frame.content));
            self.last.insert(frame.page, frame.content);
            if frame.is_valid {
                pending.push((frame.page, frame.content));
                if frame.commits {
                    self.newest.extend(pending.drain(..));
                }
            }
        }
        Ok(())
    }
}

fn parse_page_size(header: &[u8; 100]) -> (u32, u32) {
    // The value 1 stands for 65,536, which does not fit into two bytes.
    let size = match u32::from(u16::from_be_bytes([header[16], header[17]])) {
        1 => 65_536,
        size => size,
    };
    let reserved = u32::from(header[20]);
    let sound = header.starts_with(b"SQLite format 3\0")
        && size.is_power_of_two()
        && size >= 512
        && reserved <= 32;
    if sound {
        (size, reserved)
    } else {
        (PAGE_SIZE, 0)
    }
}
