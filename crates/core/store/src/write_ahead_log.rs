//! Reads SQLite's write-ahead log frame by frame. The format is described at
//! sqlite.org/fileformat2.html.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The page size of all databases that haft creates.
pub const PAGE_SIZE: u32 = 4_096;

const HEADER_LEN: usize = 32;
const FRAME_HEADER_LEN: usize = 24;

/// A random value in the log's header that is repeated in all frames written since the last restart
/// of the log.
type Salt = [u8; 8];

/// The content of a log file.
#[derive(Default)]
pub struct WriteAheadLog {
    /// All frames in the order of the file. Outdated frames are included.
    pub frames: Vec<LogFrame>,
    /// The salt in the header, if the header is valid.
    salt: Option<Salt>,
}

/// A frame of the log, which contains one version of a page.
pub struct LogFrame {
    /// The number of the page in the database.
    pub page: u32,
    /// The position of the page content in the log file, in bytes.
    pub content: u64,
    /// True if this is the last frame of a transaction.
    pub commits: bool,
    /// True if this frame and all frames before it are valid. SQLite reads the log up to the first
    /// invalid frame.
    pub is_valid: bool,
    salt: Salt,
}

impl WriteAheadLog {
    /// Reads a log with pages of this size. Outdated frames, which were written before the log was
    /// last restarted, are not valid.
    pub fn read(file: &File, page_size: u32) -> io::Result<Self> {
        let mut header = [0; HEADER_LEN];
        if read_up_to(file, &mut header, 0)? < HEADER_LEN {
            return Ok(Self::default());
        }
        let magic = read_word(&header, 0);
        let mut checksum = Checksum::new(magic & 1 == 1);
        checksum.add(&header[..24]);
        let whole = magic & !1 == 0x377f_0682
            && read_word(&header, 8) == page_size
            && checksum.matches(read_word(&header, 24), read_word(&header, 28));
        let salt = whole.then(|| read_salt(&header[16..]));
        let mut log = Self {
            frames: Vec::new(),
            salt,
        };
        let mut sound = whole;
        let mut frame = vec![0; FRAME_HEADER_LEN + page_size as usize];
        let mut at = HEADER_LEN as u64;
        while read_up_to(file, &mut frame, at)? == frame.len() {
            let salt = read_salt(&frame[8..]);
            checksum.add(&frame[..8]);
            checksum.add(&frame[FRAME_HEADER_LEN..]);
            sound = sound
                && Some(salt) == log.salt
                && checksum.matches(read_word(&frame, 16), read_word(&frame, 20));
            log.frames.push(LogFrame {
                page: read_word(&frame, 0),
                content: at + FRAME_HEADER_LEN as u64,
                commits: read_word(&frame, 4) != 0,
                is_valid: sound,
                salt,
            });
            at += frame.len() as u64;
        }
        Ok(log)
    }

    /// True if the log contains damage that a power cut cannot explain.
    ///
    /// Each transaction is synced before the next one is written, so a power cut can damage only
    /// the last one. If another transaction follows the first invalid frame, the damaged one was
    /// once complete. Damage in the very last transaction cannot be distinguished from a power cut.
    pub fn is_damaged(&self) -> bool {
        let mut committed = HashSet::new();
        let behind = self.frames.iter().skip_while(|frame| frame.is_valid);
        // Without a valid header, outdated frames cannot be recognized, but then the header itself
        // is damaged.
        let mut behind = behind.filter(|frame| self.salt.is_none_or(|salt| salt == frame.salt));
        behind.any(|frame| {
            committed.contains(&frame.salt) || (frame.commits && !committed.insert(frame.salt))
        })
    }
}

fn read_salt(bytes: &[u8]) -> Salt {
    let mut salt = [0; 8];
    salt.copy_from_slice(&bytes[..8]);
    salt
}

/// The checksum of the log: running sums of words, read in the byte order that the header of the
/// log declares.
struct Checksum {
    big_endian: bool,
    one: u32,
    two: u32,
}

impl Checksum {
    fn new(big_endian: bool) -> Self {
        Self {
            big_endian,
            one: 0,
            two: 0,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        for pair in bytes.chunks_exact(8) {
            let word = |bytes: &[u8]| {
                let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
                if self.big_endian {
                    u32::from_be_bytes(bytes)
                } else {
                    u32::from_le_bytes(bytes)
                }
            };
            let first = word(&pair[..4]);
            let second = word(&pair[4..]);
            self.one = self.one.wrapping_add(first).wrapping_add(self.two);
            self.two = self.two.wrapping_add(second).wrapping_add(self.one);
        }
    }

    fn matches(&self, one: u32, two: u32) -> bool {
        (self.one, self.two) == (one, two)
    }
}

fn read_word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |word| {
        u32::from_be_bytes([word[0], word[1], word[2], word[3]])
    })
}

/// Reads from `offset` until the buffer is full or the file ends, and returns the number of bytes
/// read.
pub fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(&mut buffer[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const PAGE: usize = 512;

    /// Returns a log of transactions with the given numbers of frames.
    fn log(transactions: &[usize], salt: u8) -> Vec<u8> {
        let mut checksum = Checksum::new(true);
        let mut bytes = Vec::new();
        for number in [0x377f_0683_u32, 3_007_000, PAGE as u32, 0] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend([salt; 8]);
        checksum.add(&bytes);
        bytes.extend([checksum.one.to_be_bytes(), checksum.two.to_be_bytes()].concat());
        for frames in transactions {
            for frame in 1..=*frames {
                let commit = if frame == *frames { 9_u32 } else { 0 };
                let head = [(frame as u32).to_be_bytes(), commit.to_be_bytes()].concat();
                let page = vec![frame as u8; PAGE];
                checksum.add(&head);
                checksum.add(&page);
                bytes.extend(head);
                bytes.extend([salt; 8]);
                bytes.extend([checksum.one.to_be_bytes(), checksum.two.to_be_bytes()].concat());
                bytes.extend(page);
            }
        }
        bytes
    }

    fn read(bytes: &[u8]) -> WriteAheadLog {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        WriteAheadLog::read(&file, PAGE as u32).unwrap()
    }

    #[test]
    fn is_damaged_distinguishes_damage_from_truncation() {
        let whole = log(&[2, 3, 1, 2], 7);
        let frame = FRAME_HEADER_LEN + PAGE;
        assert!(read(&whole).frames.iter().all(|frame| frame.is_valid));
        assert!(!read(&whole).is_damaged());
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            let read = read(&bytes);
            assert!(!read.frames.iter().all(|frame| frame.is_valid), "byte {at}");
            // The last two frames belong to the last transaction. The marks that begin it may
            // themselves be damaged.
            match at {
                _ if at < HEADER_LEN + 5 * frame => assert!(read.is_damaged(), "byte {at}"),
                _ if at >= HEADER_LEN + 6 * frame + FRAME_HEADER_LEN => {
                    assert!(!read.is_damaged(), "byte {at}");
                }
                _ => {}
            }
        }
        for length in 0..whole.len() {
            assert!(!read(&whole[..length]).is_damaged(), "cut to {length}");
        }
    }

    #[test]
    fn is_damaged_ignores_frames_of_an_older_log() {
        let old = log(&[2, 3, 1, 2], 7);
        for new in [&[][..], &[1], &[2, 2]] {
            let mut bytes = log(new, 8);
            let length = bytes.len();
            bytes.extend(&old[length..]);
            let read = read(&bytes);
            assert_eq!(
                read.frames.iter().filter(|frame| frame.is_valid).count(),
                new.iter().sum::<usize>()
            );
            assert!(!read.is_damaged(), "{new:?}");
        }
    }
}
