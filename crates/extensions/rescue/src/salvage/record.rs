//! Parses the rows in a page and the values in a row. The input is untrusted: invalid rows are
//! skipped.

use std::io;

use super::pages::{PageVersion, Pages};

/// The type byte of a table leaf page.
const TABLE_LEAF: u8 = 0x0d;
/// The type byte of an index leaf page.
const INDEX_LEAF: u8 = 0x0a;
/// The type byte of an inner page of an index.
const INDEX_INNER: u8 = 0x02;

/// The maximum plausible length of a row, in bytes. A longer row is considered damaged.
const MAX_ROW_BYTES: u64 = 1 << 30;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Integer(i64),
    Real,
    Text(&'a str),
    Blob(&'a [u8]),
}

/// The location of a row in a page, and the row's key. Rows of an index have no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordCell {
    pub(super) key: Option<i64>,
    /// The offset of the row's first byte.
    at: usize,
    length: u64,
    /// The number of the row's bytes that are in the page itself. All other bytes are in overflow
    /// pages.
    local: usize,
}

/// Returns the rows of a page, or an empty list if the page contains no rows.
pub(super) fn parse_cells(page: &[u8], number: u32, usable: usize) -> Vec<RecordCell> {
    // The first page begins with the file header.
    let start = if number == 1 { 100 } else { 0 };
    let Some(&kind) = page.get(start) else {
        return Vec::new();
    };
    let header = match kind {
        TABLE_LEAF | INDEX_LEAF => 8,
        INDEX_INNER => 12,
        _ => return Vec::new(),
    };
    let Some(count) = page
        .get(start + 3..start + 5)
        .map(|two| usize::from(u16::from_be_bytes([two[0], two[1]])))
    else {
        return Vec::new();
    };
    let pointers = page
        .get(start + header..)
        .unwrap_or_default()
        .chunks_exact(2)
        .take(count);
    pointers
        .filter_map(|two| {
            parse_cell(
                page,
                usize::from(u16::from_be_bytes([two[0], two[1]])),
                kind,
                usable,
            )
        })
        .collect()
}

fn parse_cell(page: &[u8], mut at: usize, kind: u8, usable: usize) -> Option<RecordCell> {
    if kind == INDEX_INNER {
        at += 4;
    }
    let (length, used) = parse_varint(page.get(at..)?)?;
    at += used;
    let mut key = None;
    if kind == TABLE_LEAF {
        let (value, used) = parse_varint(page.get(at..)?)?;
        key = Some(value.cast_signed());
        at += used;
    }
    if length > MAX_ROW_BYTES {
        return None;
    }
    let local = local_payload_len(usize::try_from(length).ok()?, kind, usable);
    (at + local <= usable.min(page.len())).then_some(RecordCell {
        key,
        at,
        length,
        local,
    })
}

/// Returns how many bytes of a row with `length` bytes are in the page itself. All other bytes are
/// in overflow pages.
fn local_payload_len(length: usize, kind: u8, usable: usize) -> usize {
    let most = if kind == TABLE_LEAF {
        usable - 35
    } else {
        (usable - 12) * 64 / 255 - 23
    };
    if length <= most {
        return length;
    }
    let least = (usable - 12) * 32 / 255 - 23;
    let fitting = least + (length - least) % (usable - 4);
    if fitting <= most { fitting } else { least }
}

impl RecordCell {
    /// True if the row has no overflow pages.
    pub(super) fn is_local(&self) -> bool {
        self.local as u64 == self.length
    }
}

/// Returns all bytes of a row, including the bytes in overflow pages of `version`. Returns `None`
/// if an overflow page is missing.
pub(super) fn read_payload(
    pages: &Pages,
    page: &[u8],
    cell: RecordCell,
    version: PageVersion,
) -> io::Result<Option<Vec<u8>>> {
    let length = cell.length as usize;
    let mut bytes = page[cell.at..cell.at + cell.local].to_vec();
    if cell.local == length {
        return Ok(Some(bytes));
    }
    let mut next = page
        .get(cell.at + cell.local..cell.at + cell.local + 4)
        .map(parse_page_number);
    let each = pages.usable_bytes() - 4;
    // The loop is bounded by the length of the row, because the chain of pages in a damaged file
    // may be circular.
    for _ in 0..=length / each {
        let Some(number) = next.filter(|number| *number != 0) else {
            return Ok(None);
        };
        let Some(overflow) = pages.read_page(pages.locate(number, version))? else {
            return Ok(None);
        };
        let wanted = (length - bytes.len()).min(each);
        bytes.extend_from_slice(&overflow[4..4 + wanted]);
        if bytes.len() == length {
            return Ok(Some(bytes));
        }
        next = Some(parse_page_number(&overflow));
    }
    Ok(None)
}

fn parse_page_number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Parses the values of a row. Returns `None` if `bytes` is not a valid row.
pub(super) fn parse_values(bytes: &[u8]) -> Option<Vec<Value<'_>>> {
    let (header, mut at) = parse_varint(bytes)?;
    let header = usize::try_from(header)
        .ok()
        .filter(|header| *header <= bytes.len())?;
    let mut body = header;
    let mut values = Vec::new();
    while at < header {
        let (kind, used) = parse_varint(bytes.get(at..header)?)?;
        at += used;
        let length = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind as usize,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            text_or_blob => usize::try_from((text_or_blob - 12) / 2).ok()?,
        };
        let value = bytes.get(body..body.checked_add(length)?)?;
        body += length;
        values.push(match kind {
            0 => Value::Null,
            1..=6 => Value::Integer(parse_integer(value)),
            7 => Value::Real,
            8 => Value::Integer(0),
            9 => Value::Integer(1),
            blob if blob % 2 == 0 => Value::Blob(value),
            _ => Value::Text(str::from_utf8(value).ok()?),
        });
    }
    (body == bytes.len()).then_some(values)
}

/// Parses a big-endian signed integer of up to eight bytes.
fn parse_integer(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let start = if negative { -1 } else { 0 };
    bytes
        .iter()
        .fold(start, |number, byte| number << 8 | i64::from(*byte))
}

/// Parses a variable-length integer of one to nine bytes, and returns it with its length.
fn parse_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0_u64;
    for (index, byte) in bytes.iter().take(9).enumerate() {
        if index == 8 {
            return Some((number << 8 | u64::from(*byte), 9));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number, index + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varint_and_integer_parse_every_length() {
        assert_eq!(parse_varint(&[0x7f]), Some((127, 1)));
        assert_eq!(parse_varint(&[0x81, 0x00]), Some((128, 2)));
        assert_eq!(parse_varint(&[0xff; 9]), Some((u64::MAX, 9)));
        assert_eq!(parse_varint(&[0x80]), None);
        assert_eq!(
            (
                parse_integer(&[0xff]),
                parse_integer(&[0x01, 0x00]),
                parse_integer(&[])
            ),
            (-1, 256, 0)
        );
    }

    #[test]
    fn values_parse_a_row_and_reject_invalid_ones() {
        // Header of 5 bytes: null, one, one byte, text of 2.
        let row = [5, 0, 9, 1, 17, 42, b'h', b'i'];
        assert_eq!(
            parse_values(&row).unwrap(),
            [
                Value::Null,
                Value::Integer(1),
                Value::Integer(42),
                Value::Text("hi")
            ]
        );
        for cut in 0..row.len() {
            assert_eq!(parse_values(&row[..cut]), None, "cut to {cut}");
        }
        assert_eq!(
            parse_values(&[5, 0, 9, 1, 17, 42, 0xff, 0xfe]),
            None,
            "text that is none"
        );
    }

    #[test]
    fn page_parser_survives_any_bytes() {
        let mut random = 1_u64;
        for number in [1, 2] {
            for _ in 0..3_000 {
                let page: Vec<u8> = (0..512)
                    .map(|_| {
                        random = random
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        (random >> 56) as u8
                    })
                    .collect();
                for kind in [TABLE_LEAF, INDEX_LEAF, INDEX_INNER] {
                    let mut page = page.clone();
                    page[if number == 1 { 100 } else { 0 }] = kind;
                    for cell in parse_cells(&page, number, 512) {
                        parse_values(&page[cell.at..cell.at + cell.local]);
                    }
                }
            }
        }
    }
}
