//! Decodes text files and encodes them again.
//!
//! Invariant: for every input that [`decode_text`] accepts, [`encode_text`] of the unchanged text
//! returns exactly that input. An edit can therefore change some lines of a file and leave all
//! other bytes unchanged. A file without this guarantee counts as binary.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::WINDOWS_1252;

/// The encoding of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextEncoding {
    Utf8,
    Utf16Le,
    Utf16Be,
    /// An encoding that predates Unicode, guessed from the text, such as Latin-1, Shift-JIS or GBK.
    Legacy(&'static encoding_rs::Encoding),
}

impl TextEncoding {
    /// Returns the name of the encoding for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Legacy(legacy) => legacy.name(),
        }
    }

    fn mark_bytes(self) -> &'static [u8] {
        match self {
            Self::Utf8 => b"\xEF\xBB\xBF",
            Self::Utf16Le => b"\xFF\xFE",
            Self::Utf16Be => b"\xFE\xFF",
            Self::Legacy(_) => b"",
        }
    }
}

/// The presence of a byte order mark at the beginning of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrderMark {
    Present,
    Absent,
}

/// The text of a file without its byte order mark, and its encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DecodedText {
    pub(crate) text: String,
    pub(crate) encoding: TextEncoding,
    pub(crate) mark: ByteOrderMark,
}

/// Decodes a file. Returns `None` if it is not text or if the text could not be written back
/// unchanged.
pub(crate) fn decode_text(bytes: &[u8]) -> Option<DecodedText> {
    for encoding in [
        TextEncoding::Utf8,
        TextEncoding::Utf16Le,
        TextEncoding::Utf16Be,
    ] {
        if let Some(rest) = bytes.strip_prefix(encoding.mark_bytes()) {
            return decode_as(rest, encoding).map(|text| DecodedText {
                text,
                encoding,
                mark: ByteOrderMark::Present,
            });
        }
    }
    let encoding = guess_encoding(bytes)?;
    if let TextEncoding::Legacy(_) = encoding {
        let decoded = |encoding| {
            let text = decode_as(bytes, encoding)?;
            (encode_text(&text, encoding, ByteOrderMark::Absent).as_deref() == Ok(bytes))
                .then_some((text, encoding))
        };
        // Windows-1252 maps every byte to a character, so it is the last resort.
        let (text, encoding) =
            decoded(encoding).or_else(|| decoded(TextEncoding::Legacy(WINDOWS_1252)))?;
        return Some(DecodedText {
            text,
            encoding,
            mark: ByteOrderMark::Absent,
        });
    }
    decode_as(bytes, encoding).map(|text| DecodedText {
        text,
        encoding,
        mark: ByteOrderMark::Absent,
    })
}

/// Encodes a text. Fails with the first character that does not exist in the encoding.
pub(crate) fn encode_text(
    text: &str,
    encoding: TextEncoding,
    mark: ByteOrderMark,
) -> Result<Vec<u8>, char> {
    let mut bytes = match mark {
        ByteOrderMark::Present => encoding.mark_bytes().to_vec(),
        ByteOrderMark::Absent => Vec::new(),
    };
    match encoding {
        TextEncoding::Utf8 => bytes.extend_from_slice(text.as_bytes()),
        TextEncoding::Utf16Le => bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
        TextEncoding::Utf16Be => bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes)),
        TextEncoding::Legacy(legacy) => {
            let (encoded, _, unmappable) = legacy.encode(text);
            if unmappable {
                return Err(text
                    .chars()
                    .find(|one| legacy.encode(&one.to_string()).2)
                    .unwrap_or('\u{FFFD}'));
            }
            bytes.extend_from_slice(&encoded);
        }
    }
    Ok(bytes)
}

fn guess_encoding(bytes: &[u8]) -> Option<TextEncoding> {
    if bytes.contains(&0) {
        return guess_utf16(bytes);
    }
    if std::str::from_utf8(bytes).is_ok() {
        return Some(TextEncoding::Utf8);
    }
    // Text in a legacy encoding has no other control characters; compressed or compiled data has
    // many.
    let is_text = bytes.iter().all(|byte| {
        !byte.is_ascii_control() || matches!(byte, b'\t' | b'\n' | b'\r' | 0x0C | 0x1B)
    });
    if !is_text {
        return None;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    Some(TextEncoding::Legacy(
        detector.guess(None, Utf8Detection::Deny),
    ))
}

/// Guesses the byte order of UTF-16 text without a byte order mark. In mostly Latin text, one byte
/// of nearly every unit is zero, always on the same side.
fn guess_utf16(bytes: &[u8]) -> Option<TextEncoding> {
    let sample = bytes.get(..4096).unwrap_or(bytes);
    let zeros_at = |side: usize| {
        sample
            .iter()
            .skip(side)
            .step_by(2)
            .filter(|byte| **byte == 0)
            .count()
    };
    let first = zeros_at(0);
    let second = zeros_at(1);
    let units = sample.len() / 2;
    match (first, second) {
        (0, high) if high * 2 > units => Some(TextEncoding::Utf16Le),
        (high, 0) if high * 2 > units => Some(TextEncoding::Utf16Be),
        _ => None,
    }
}

fn decode_as(bytes: &[u8], encoding: TextEncoding) -> Option<String> {
    let unit: fn([u8; 2]) -> u16 = match encoding {
        TextEncoding::Utf8 => {
            return String::from_utf8(bytes.to_vec())
                .ok()
                .filter(|text| !text.contains('\0'));
        }
        TextEncoding::Legacy(legacy) => {
            return legacy
                .decode_without_bom_handling_and_without_replacement(bytes)
                .map(Into::into);
        }
        TextEncoding::Utf16Le => u16::from_le_bytes,
        TextEncoding::Utf16Be => u16::from_be_bytes,
    };
    let (units, []) = bytes.as_chunks::<2>() else {
        return None;
    };
    // A lone surrogate cannot be written back, and a text contains no zero character.
    char::decode_utf16(units.iter().copied().map(unit))
        .map(|decoded| decoded.ok().filter(|one| *one != '\0'))
        .collect()
}

/// Describes binary data by its first bytes.
pub(crate) fn describe_binary(bytes: &[u8]) -> &'static str {
    const KNOWN: [(&[u8], &str); 12] = [
        (b"\x7FELF", "an ELF program or library"),
        (b"%PDF-", "a PDF document"),
        (b"PK\x03\x04", "a ZIP archive or an office document"),
        (b"\x1F\x8B", "gzip data"),
        (b"BZh", "bzip2 data"),
        (b"\xFD7zXZ\0", "xz data"),
        (b"\x28\xB5\x2F\xFD", "zstd data"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\0asm", "a WebAssembly module"),
        (b"\xCA\xFE\xBA\xBE", "a Java class or a Mach-O program"),
        (b"OggS", "Ogg media"),
        (b"ID3", "an MP3 file"),
    ];
    KNOWN
        .iter()
        .find(|(magic, _)| bytes.starts_with(magic))
        .map_or("binary data", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoding_of(bytes: &[u8]) -> Option<(TextEncoding, ByteOrderMark)> {
        decode_text(bytes).map(|decoded| (decoded.encoding, decoded.mark))
    }

    #[test]
    fn decode_distinguishes_encodings() {
        let utf16: Vec<u8> = "hello wörld\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(
            encoding_of(b""),
            Some((TextEncoding::Utf8, ByteOrderMark::Absent))
        );
        assert_eq!(
            encoding_of("é\n".as_bytes()),
            Some((TextEncoding::Utf8, ByteOrderMark::Absent))
        );
        assert_eq!(
            encoding_of(b"\xEF\xBB\xBFa"),
            Some((TextEncoding::Utf8, ByteOrderMark::Present))
        );
        assert_eq!(
            encoding_of(b"\xFF\xFEa\0"),
            Some((TextEncoding::Utf16Le, ByteOrderMark::Present))
        );
        assert_eq!(
            encoding_of(b"\xFE\xFF\0a"),
            Some((TextEncoding::Utf16Be, ByteOrderMark::Present))
        );
        assert_eq!(
            encoding_of(&utf16),
            Some((TextEncoding::Utf16Le, ByteOrderMark::Absent))
        );
        assert_eq!(
            encoding_of(b"caf\xE9\n"),
            Some((TextEncoding::Legacy(WINDOWS_1252), ByteOrderMark::Absent))
        );
        assert_eq!(decode_text(b"caf\xE9\n").unwrap().text, "café\n");
    }

    #[test]
    fn decode_guesses_legacy_encodings_that_encode_writes_back() {
        let cases = [
            (
                encoding_rs::SHIFT_JIS,
                "// これは設定ファイルです。変更しないでください。\nname = 値\n",
            ),
            (
                encoding_rs::EUC_KR,
                "// 이것은 설정 파일입니다\nname = 값\n",
            ),
            (
                encoding_rs::GBK,
                "// 这是一个配置文件，请不要修改\nname = 值\n",
            ),
            (
                encoding_rs::WINDOWS_1251,
                "// Это файл настроек, не изменяйте его\n",
            ),
            (WINDOWS_1252, "// Größe und Länge, naïve Prüfung für Käse\n"),
        ];
        for (encoding, text) in cases {
            let bytes = encoding.encode(text).0.into_owned();
            let decoded = decode_text(&bytes).unwrap();
            assert_eq!(
                (decoded.encoding, decoded.text.as_str()),
                (TextEncoding::Legacy(encoding), text)
            );
            assert_eq!(
                encode_text(&decoded.text, decoded.encoding, decoded.mark),
                Ok(bytes)
            );
        }
    }

    #[test]
    fn decode_rejects_bytes_that_cannot_be_written_back() {
        for bytes in [
            &b"a\0b"[..],
            b"\x7FELF\x02\x01\xFF",
            b"\xFF\xFEa",
            b"\xFF\xFE\x00\xD8",
            b"\xEF\xBB\xBF\xFF",
        ] {
            assert_eq!(decode_text(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn encode_names_a_character_the_encoding_lacks() {
        assert_eq!(
            encode_text(
                "naïve → plain",
                TextEncoding::Legacy(WINDOWS_1252),
                ByteOrderMark::Absent
            ),
            Err('→')
        );
    }

    proptest! {
        #[test]
        fn decode_and_encode_round_trip(bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..64),
            proptest::collection::vec(prop_oneof![0x20_u8..0x7F, 0x80_u8..=0xFF, Just(b'\n')], 0..64),
            (any::<String>(), prop_oneof![Just(TextEncoding::Utf16Le), Just(TextEncoding::Utf16Be), Just(TextEncoding::Utf8)])
                .prop_map(|(text, encoding)| encode_text(&text, encoding, ByteOrderMark::Present).unwrap()),
        ]) {
            if let Some(decoded) = decode_text(&bytes) {
                prop_assert_eq!(encode_text(&decoded.text, decoded.encoding, decoded.mark), Ok(bytes));
            }
        }
    }
}
