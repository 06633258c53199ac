//! Why a call is asked about, in the user's language. The core gives its reasons in English, one behind the other; what is not
//! known here stays as it is, so that nothing is ever left out.

/// What stands between two reasons.
const BETWEEN: &str = "; ";

/// The reasons of a verdict in the language of this process.
pub fn localised(reasons: &str) -> String {
    let told: Vec<_> = apart(reasons).map(haft_messages::error_text).collect();
    told.join(text!("approval-between-reasons"))
}

/// The reasons one by one. What a command holds is quoted, and no end of a reason.
fn apart(reasons: &str) -> impl Iterator<Item = &str> {
    let is_end = |at: &usize| reasons[..*at].matches('`').count().is_multiple_of(2);
    let ends: Vec<_> = reasons.match_indices(BETWEEN).map(|(at, _)| at).filter(is_end).collect();
    let starts = std::iter::once(0).chain(ends.clone().into_iter().map(|end| end + BETWEEN.len()));
    starts.zip(ends.into_iter().chain([reasons.len()])).map(|(start, end)| &reasons[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In English they are what the core says, whatever is quoted in them.
    #[test]
    fn nothing_is_lost_or_changed() {
        for reasons in [
            "it would run outside the sandbox; the model itself asks for the user's approval; no rule allows `a; b`",
            "`replace_in_file` changes files, and no rule allows `src/app.py`",
            "`use_mcp_tool` calls `show` of the MCP server `s`, and no rule allows it",
            "`web_fetch` reaches `example.com`, and no rule allows it",
            "no rule allows `make`; `sh` is a shell that reads commands from its input",
            "`../x` is `/home/x`, which is outside the project `/home/a`",
            "something new: `a`; `b",
            "no rule allows `echo `x``",
            "",
        ] {
            assert_eq!(localised(reasons), reasons);
        }
    }

    #[test]
    fn a_quoted_end_is_none() {
        let known = "no rule allows `a; b`; `sh` is a shell that reads commands from its input; `x` is `/x`, which is outside the project `/y`";
        assert_eq!(apart(known).count(), 3);
    }
}
