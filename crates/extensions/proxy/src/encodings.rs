//! Decompresses bodies for the record. Forwarded bodies stay compressed.

use std::borrow::Cow;
use std::io::Read;

/// The maximum decompressed size of a body, in bytes, as a protection against decompression bombs.
const MAX_DECODED_BYTES: u64 = 256 << 20;

/// Decompresses a body as far as possible. Returns `None` if the encoding is unknown or not even
/// the beginning can be decompressed.
pub(crate) fn decode_body<'a>(encoding: Option<&str>, body: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let read = |reader: &mut dyn Read| {
        let mut out = Vec::new();
        // If the body is incomplete, the part that can be decompressed is kept.
        let read = reader.take(MAX_DECODED_BYTES).read_to_end(&mut out);
        (read.is_ok() || !out.is_empty()).then_some(Cow::Owned(out))
    };
    match encoding
        .map(str::trim)
        .unwrap_or_default()
        .to_ascii_lowercase()
        .as_str()
    {
        "" | "identity" => Some(Cow::Borrowed(body)),
        "gzip" | "x-gzip" => read(&mut flate2::read::MultiGzDecoder::new(body)),
        "deflate" => read(&mut flate2::read::ZlibDecoder::new(body)),
        "br" => read(&mut brotli::Decompressor::new(body, 4096)),
        "zstd" => read(&mut zstd::stream::read::Decoder::new(body).ok()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn decoded_reads_every_encoding() {
        let text = b"some words ".repeat(100);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        deflate.write_all(&text).unwrap();
        let zstd = zstd::stream::encode_all(text.as_slice(), 1).unwrap();
        let mut br = Vec::new();
        brotli::CompressorWriter::new(&mut br, 4096, 1, 20)
            .write_all(&text)
            .unwrap();
        let table: [(Option<&str>, &[u8]); 5] = [
            (None, &text),
            (Some("GZIP"), &gzip),
            (Some("deflate"), &deflate.finish().unwrap()),
            (Some("zstd"), &zstd),
            (Some("br"), &br),
        ];
        for (encoding, body) in table {
            assert_eq!(
                decode_body(encoding, body).as_deref(),
                Some(text.as_slice()),
                "{encoding:?}"
            );
        }
        assert!(
            decode_body(Some("gzip"), &gzip[..gzip.len() - 9]).is_some(),
            "a cut body as far as it goes"
        );
        assert_eq!(decode_body(Some("gzip"), b"no gzip"), None);
        assert_eq!(decode_body(Some("rot13"), &text), None);
    }
}
