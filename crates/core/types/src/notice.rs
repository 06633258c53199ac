//! Finds haft's own notices in a text. In a request, a notice replaces text that was left out.
//! Models copy notices into files, so tools that write files reject notices.

/// The texts with which notices begin. The last text is no longer sent: earlier versions put it
/// inside arguments, and old conversations may contain copies.
const BEGINNINGS: [&str; 3] = [
    "[Cleared: result of `",
    "[The arguments of this call are shortened here; ",
    " more characters are cleared: ",
];
/// The length in bytes that no notice reaches.
const MAX_BYTES: usize = 300;
/// The number of hex digits of a message id as written in a notice.
const ID_DIGITS: usize = 8;

/// Returns the notices in `text` that contain the id of a message.
pub fn find_notices_in(text: &str) -> impl Iterator<Item = &str> {
    BEGINNINGS.iter().flat_map(move |beginning| {
        text.match_indices(beginning).filter_map(|(start, _)| {
            let length = text[start..].find(']')?;
            let notice = &text[start..=start + length];
            (notice.len() < MAX_BYTES && mentions_message_id(notice)).then(|| notice.trim_start())
        })
    })
}

/// True if `notice` contains a message's short id after `recall` or `message`.
fn mentions_message_id(notice: &str) -> bool {
    ["`recall` ", "message "].iter().any(|word| {
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
        ];
        for notice in notices {
            let text = format!("fn main() {{\n    // [1200 {notice}\n}}\n");
            assert_eq!(
                find_notices_in(&text).collect::<Vec<_>>(),
                [notice],
                "{text}"
            );
        }
        for text in [
            "",
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
