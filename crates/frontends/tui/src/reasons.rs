//! Why a call is asked about, in the user's language. The core gives its reasons in English, one behind the other; what is not
//! known here stays as it is, so that nothing is ever left out.

/// What stands between two reasons.
const BETWEEN: &str = "; ";

pub(crate) fn localised(reasons: &str) -> String {
    let told: Vec<_> = apart(reasons).map(|one| localised_one(one).unwrap_or_else(|| one.to_owned())).collect();
    told.join(text!("approval-between-reasons"))
}

/// The reasons one by one. What a command holds is quoted, and no end of a reason.
fn apart(reasons: &str) -> impl Iterator<Item = &str> {
    let is_end = |at: &usize| reasons[..*at].matches('`').count().is_multiple_of(2);
    let ends: Vec<_> = reasons.match_indices(BETWEEN).map(|(at, _)| at).filter(is_end).collect();
    let starts = std::iter::once(0).chain(ends.clone().into_iter().map(|end| end + BETWEEN.len()));
    starts.zip(ends.into_iter().chain([reasons.len()])).map(|(start, end)| &reasons[start..end])
}

fn localised_one(reason: &str) -> Option<String> {
    let found = |around: &[&str]| between(reason, around);
    Some(match reason {
        "it would run outside the sandbox" => text!("approval-why-outside").to_owned(),
        "the model itself asks for the user's approval" => text!("approval-why-model").to_owned(),
        _ => match (
            found(&["no rule allows `", "`"]).as_deref(),
            found(&["`", "` changes files, and no rule allows `", "`"]).as_deref(),
            found(&["`", "` reaches `", "`, and no rule allows it"]).as_deref(),
            found(&["`", "` calls `", "` of the MCP server `", "`, and no rule allows it"]).as_deref(),
            found(&["`", "` is a shell that reads commands from its input"]).as_deref(),
            found(&["`", "` is `", "`, which is outside the project `", "`"]).as_deref(),
        ) {
            (Some([command]), ..) => text!("approval-why-unruled", command = *command),
            (_, Some([tool, path]), ..) => text!("approval-why-changes", tool = *tool, path = *path),
            (_, _, Some([tool, host]), ..) => text!("approval-why-reaches", tool = *tool, host = *host),
            (_, _, _, Some([tool, called, server]), ..) => {
                text!("approval-why-mcp", tool = *tool, called = *called, server = *server)
            }
            (.., Some([shell]), _) => text!("approval-why-shell", shell = *shell),
            (.., Some([given, path, project])) => {
                text!("approval-why-elsewhere", given = *given, path = *path, project = *project)
            }
            _ => return None,
        },
    })
}

/// What stands between these pieces, if the text is made of them.
fn between<'a>(text: &'a str, around: &[&str]) -> Option<Vec<&'a str>> {
    let (first, rest) = around.split_first()?;
    let mut left = text.strip_prefix(first)?;
    let mut found = Vec::new();
    for (at, piece) in rest.iter().enumerate() {
        let is_last = at + 1 == rest.len();
        let (inside, after) = if is_last { (left.strip_suffix(piece)?, "") } else { left.split_once(piece)? };
        found.push(inside);
        left = after;
    }
    Some(found)
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
    fn each_reason_is_known() {
        let known = "no rule allows `a; b`; `sh` is a shell that reads commands from its input; `x` is `/x`, which is outside the project `/y`";
        assert_eq!(apart(known).count(), 3);
        assert!(apart(known).all(|one| localised_one(one).is_some()));
        assert_eq!(localised_one("something new"), None);
    }
}
