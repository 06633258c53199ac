//! Finds haft's own notices in a text. In a request, a notice replaces text that was left out.
//! Models copy notices into files, so tools that write files reject notices.

/// The texts with which notices begin. The last text is no longer sent: earlier versions put it
/// inside arguments, and old conversations may contain copies.
const BEGINNINGS: [&str; 5] = [
    "[Cleared: result of `",
    "[The arguments of this call are shortened here; ",
    "[This result did not fit the window: ",
    "[Masked by the user",
    " more characters are cleared: ",
];
/// The length, in bytes, that every notice stays below; a notice may contain a path.
const MAX_BYTES: usize = 5_000;
/// The ends of the lines that replace the middle of a compressed result. A number precedes each.
const LEFT_OUT: [&str; 2] = [" lines left out]", " characters left out]"];
/// The number of hex digits of a message id in a notice.
const ID_DIGITS: usize = 8;

/// Returns the notices in `text`: those that name a message, and lines that only count what was
/// left out.
pub fn find_notices_in(text: &str) -> impl Iterator<Item = &str> {
    let naming = BEGINNINGS.iter().flat_map(move |beginning| {
        text.match_indices(beginning).filter_map(|(start, _)| {
            let length = text[start..].find(']')?;
            let notice = &text[start..=start + length];
            (notice.len() < MAX_BYTES && mentions_message_id(notice)).then(|| notice.trim_start())
        })
    });
    naming.chain(
        text.lines()
            .map(str::trim)
            .filter(|line| counts_left_out(line)),
    )
}

/// True if the line only says how much was left out.
fn counts_left_out(line: &str) -> bool {
    let count = line.strip_prefix('[').and_then(|rest| {
        let end = LEFT_OUT.iter().find_map(|end| rest.strip_suffix(end));
        end.filter(|count| !count.is_empty())
    });
    count.is_some_and(|count| count.bytes().all(|byte| byte.is_ascii_digit()))
}

/// True if `notice` contains a message's id, or at least its short id, where notices have it.
fn mentions_message_id(notice: &str) -> bool {
    const BEFORE_ID: [&str; 5] = [
        "`recall` ",
        "message ",
        "Message ",
        "message id ",
        "result-",
    ];
    BEFORE_ID.iter().any(|word| {
        notice.match_indices(word).any(|(at, _)| {
            let id = &notice.as_bytes()[at + word.len()..];
            id.len() > ID_DIGITS
                && id[..ID_DIGITS].iter().all(u8::is_ascii_hexdigit)
                && !id[ID_DIGITS].is_ascii_alphanumeric()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_are_found_and_text_about_them_is_not() {
        let notices = [
            "[Cleared: result of `read_file` (success); `recall` d5d3bc96 brings it back.]",
            "[Cleared: result of `read_file` (error); message d5d3bc96.]",
            "[The arguments of this call are shortened here; `recall` 1d45e95d shows them whole.]",
            "more characters are cleared: `recall` 1d45e95d]",
            "[This result did not fit the window: 9 of 60 bytes are omitted. Message d5d3bc96 holds it whole.]",
            "[This result did not fit the window: 9 of 60 bytes are omitted. The whole text is in \
             `/spill/result-d5d3bc96-0d1e-4c3b-8f3a-2b1c0d9e8f7a.txt`: read it by range, or search it.]",
            "[Masked by the user. The text is kept under message id d5d3bc96.]",
            "[Masked by the user: result of `read_file` (success). Its text is kept under message id d5d3bc96.]",
        ];
        for notice in notices {
            let text = format!("fn main() {{\n    // [1200 {notice}\n}}\n");
            assert_eq!(
                find_notices_in(&text).collect::<Vec<_>>(),
                [notice],
                "{text}"
            );
        }
        for notice in ["[12 lines left out]", "[4000 characters left out]"] {
            let text = format!("one\n    {notice}\r\ntwo\n");
            assert_eq!(find_notices_in(&text).collect::<Vec<_>>(), [notice]);
        }
        for text in [
            "",
            "print(\"[12 lines left out]\")",
            "[{} lines left out]",
            "[ lines left out]",
            // haft removes hints from replies, and keeps lines in parameters that look like hints.
            "[Hint: message_id: d5d3bc96]",
            "[This result did not fit the window: {} of {} bytes are omitted. ",
            "[Cleared: result of `read_file` (success); `recall` ID brings it back.]",
            "[Cleared: result of `{}` ({status}); {where_it_is}.]",
            "[Cleared: result of `read_file`",
            "[Cleared: result of `é` message d5d3bc9]",
            "two more characters are cleared: see message d5d3bc96a]",
        ] {
            assert_eq!(find_notices_in(text).count(), 0, "{text}");
        }
    }
}
