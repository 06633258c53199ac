//! Parses lists of names in text files at compile time.
//!
//! A line holds one name. Empty lines and lines that begin with `#` are skipped.

/// Returns the number of names in `text`.
pub(super) const fn count_names(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut count = 0;
    let mut start = 0;
    while start < bytes.len() {
        let end = find_line_end(bytes, start);
        if is_name(bytes, start, end) {
            count += 1;
        }
        start = end + 1;
    }
    count
}

/// Returns the names in `text`. `COUNT` must be [`count_names`] of the text.
pub(super) const fn parse_names<const COUNT: usize>(text: &'static str) -> [&'static str; COUNT] {
    let bytes = text.as_bytes();
    let mut names = [""; COUNT];
    let mut found = 0;
    let mut start = 0;
    while start < bytes.len() {
        let end = find_line_end(bytes, start);
        if is_name(bytes, start, end) {
            names[found] = slice_text(bytes, start, end);
            found += 1;
        }
        start = end + 1;
    }
    names
}

const fn find_line_end(bytes: &[u8], start: usize) -> usize {
    let mut end = start;
    while end < bytes.len() && bytes[end] != b'\n' {
        end += 1;
    }
    end
}

const fn is_name(bytes: &[u8], start: usize, end: usize) -> bool {
    start < end && bytes[start] != b'#'
}

const fn slice_text(bytes: &'static [u8], start: usize, end: usize) -> &'static str {
    let (_, rest) = bytes.split_at(start);
    let (line, _) = rest.split_at(end - start);
    match std::str::from_utf8(line) {
        Ok(name) => name,
        // A line of a text is text.
        Err(_) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_names_skips_comments_and_empty_lines() {
        const TEXT: &str = "# git: source\n.git\n\n.hg\n#x\nlast";
        assert_eq!(count_names(TEXT), 3);
        assert_eq!(parse_names::<3>(TEXT), [".git", ".hg", "last"]);
        assert_eq!(count_names(""), 0);
    }
}
