//! Words that mean much the same in programs and their documents: who asks for a folder may mean a directory.
//!
//! Only the question is widened, and what is found this way counts less than the words that were used.

/// A word may stand in several groups.
const GROUPS: &[&[&str]] = &[
    &["folder", "directory", "dir"],
    &["file", "document"],
    &["delete", "remove", "erase", "drop"],
    &["create", "make", "build", "construct", "new"],
    &["read", "load", "fetch", "get"],
    &["write", "save", "store", "put"],
    &["combine", "merge", "join", "concat", "concatenate", "union"],
    &["compare", "comparison", "equal", "cmp", "order", "sort"],
    &["sort", "order", "collate", "collation"],
    &["reject", "refuse", "deny", "forbid", "forbidden", "ban", "disallow", "prohibit", "error"],
    &["error", "failure", "fault"],
    &["option", "setting", "config", "configuration", "flag"],
    &["argument", "parameter", "arg"],
    &["text", "string", "str"],
    &["list", "array", "vec", "vector", "sequence"],
    &["map", "dictionary", "dict", "hash", "table", "object"],
    &["number", "integer", "int"],
    &["size", "length", "len"],
    &["begin", "start", "first"],
    &["end", "stop", "finish", "last"],
    &["find", "search", "lookup", "locate"],
    &["check", "validate", "verify"],
    &["convert", "transform", "translate"],
    &["parse", "read", "decode"],
    &["message", "text"],
    &["wait", "block", "sleep", "poll"],
    &["lock", "mutex", "guard"],
    &["thread", "parallel", "concurrent"],
    &["connection", "socket", "stream"],
    &["request", "query", "call"],
    &["response", "reply", "answer"],
    &["function", "method", "fn", "callback"],
    &["copy", "clone", "duplicate"],
    &["change", "modify", "update", "edit", "alter"],
    &["increase", "grow", "expand"],
    &["limit", "bound", "maximum", "max", "cap"],
    &["minimum", "min"],
    &["status", "state"],
    &["custom", "user"],
    &["print", "show", "display"],
    &["run", "execute"],
    &["hide", "hidden"],
    &["skip", "ignore"],
    &["pattern", "glob", "regex", "expression"],
    &["test", "check"],
    &["byte", "octet"],
    &["variable", "var"],
];

/// Words that mean much the same as one of these, without these themselves.
pub(crate) fn of(terms: &[String]) -> Vec<&'static str> {
    let asked: Vec<&str> = terms.iter().map(|term| stem(term)).collect();
    let mut found = Vec::new();
    for group in GROUPS.iter().filter(|group| group.iter().any(|word| asked.contains(&stem(word)))) {
        for word in *group {
            if !asked.contains(&stem(word)) && !found.contains(word) {
                found.push(*word);
            }
        }
    }
    found
}

/// A word without its ending, roughly: enough to find it in a group.
fn stem(word: &str) -> &str {
    if word.len() <= 4 {
        return word;
    }
    let endings = ["ings", "ing", "ed", "es", "s"];
    endings.iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_bring_those_of_their_group_but_not_themselves() {
        let asked = |terms: &[&str]| of(&terms.iter().map(|term| (*term).to_owned()).collect::<Vec<_>>());
        assert_eq!(asked(&["folders"]), ["directory", "dir"]);
        assert_eq!(asked(&["folder", "directory"]), ["dir"]);
        assert!(asked(&["zebra"]).is_empty());
    }
}
