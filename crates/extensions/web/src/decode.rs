//! Decodes the bytes of a page into text.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::Encoding;

/// The number of bytes at the start of a page that are searched for a declared encoding.
const META_SEARCH_BYTES: usize = 1024;

/// Decodes the bytes of a page to text. The encoding is determined from the byte order mark, else
/// from the server's header, else from a declaration in the page, else by guessing.
pub(crate) fn decode_page(bytes: &[u8], content_type: Option<&str>) -> String {
    let said = content_type
        .and_then(parse_charset)
        .or_else(|| find_meta_charset(bytes))
        .and_then(|label| Encoding::for_label(label.as_bytes()));
    let encoding = said.unwrap_or_else(|| guess_encoding(bytes));
    // A byte order mark takes precedence. Invalid bytes become the replacement character.
    encoding.decode(bytes).0.into_owned()
}

fn guess_encoding(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    detector.guess(None, Utf8Detection::Allow)
}

/// Returns the name of the encoding that follows `charset=` in `text`, or `None` if there is none.
fn parse_charset(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let (_, after) = lower.split_once("charset")?;
    let after = after
        .trim_start()
        .strip_prefix('=')?
        .trim_start()
        .trim_start_matches(['"', '\'']);
    let end = after
        .find(|one: char| !(one.is_ascii_alphanumeric() || "-_:.".contains(one)))
        .unwrap_or(after.len());
    after
        .get(..end)
        .filter(|label| !label.is_empty())
        .map(str::to_owned)
}

fn find_meta_charset(bytes: &[u8]) -> Option<String> {
    let head =
        String::from_utf8_lossy(bytes.get(..META_SEARCH_BYTES).unwrap_or(bytes)).into_owned();
    head.split('<')
        .filter(|tag| {
            tag.get(..4)
                .is_some_and(|name| name.eq_ignore_ascii_case("meta"))
        })
        .find_map(parse_charset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decode_honors_declared_and_detected_encodings() {
        let gbk = encoding_rs::GBK.encode("中文网页").0.into_owned();
        let page = [
            &b"<html><head><meta http-equiv=x content=\"text/html; charset=gb2312\">"[..],
            &gbk,
        ]
        .concat();
        assert!(decode_page(&page, None).ends_with("中文网页"));
        assert_eq!(
            decode_page(&gbk, Some("text/html; charset=GBK")),
            "中文网页"
        );
        assert_eq!(
            decode_page(b"caf\xE9", Some("text/plain; charset=\"iso-8859-1\"")),
            "café"
        );
        assert_eq!(decode_page("né".as_bytes(), Some("text/html")), "né");
        assert_eq!(
            decode_page(b"\xEF\xBB\xBFn\xC3\xA9", Some("text/html; charset=latin1")),
            "né",
            "a mark wins"
        );
        // A wrong charset from the server costs some characters, never the page.
        assert!(decode_page(b"caf\xE9 ok", Some("text/html; charset=utf-8")).ends_with(" ok"));
        assert_eq!(
            decode_page(b"plain", Some("text/html; charset=nonsense")),
            "plain"
        );
    }
}
