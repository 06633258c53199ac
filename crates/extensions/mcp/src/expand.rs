//! Expands `${VAR}` and `${VAR:-default}` in a project's declarations.

use std::fmt::Write as _;

/// The error for a reference to a variable that is not set and has no default. Contains the
/// variable's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnsetVariable(pub(crate) String);

/// Replaces each variable reference in `text`, such as `${NAME}` or `${NAME:-default}`, by the
/// variable's value. Malformed references are left unchanged.
pub(crate) fn expand_variables(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, UnsetVariable> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let after = &rest[start + 2..];
        let Some(end) = after.find('}') else { break };
        let inside = &after[..end];
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        expanded.push_str(&rest[..start]);
        if is_variable_name(name) {
            // As in a shell, `:-` uses the default for an empty variable, too.
            let value = variable(name).filter(|value| default.is_none() || !value.is_empty());
            match value.or_else(|| default.map(str::to_owned)) {
                Some(value) => expanded.push_str(&value),
                None => return Err(UnsetVariable(name.to_owned())),
            }
        } else {
            let _ = write!(expanded, "${{{inside}}}");
        }
        rest = &after[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn is_variable_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|one| one.is_ascii_alphanumeric() || one == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, UnsetVariable> {
        expand_variables(text, &|name| match name {
            "HOME" => Some("/home/me".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    #[test]
    fn expand_replaces_variables_and_defaults() {
        for (text, wanted) in [
            ("${HOME}/x", "/home/me/x"),
            ("a${HOME}b${HOME}c", "a/home/meb/home/mec"),
            ("${MISSING:-/tmp}/x", "/tmp/x"),
            ("${EMPTY:-other}", "other"),
            ("${EMPTY}", ""),
            ("${MISSING:-}", ""),
            ("$HOME ${} ${1x} ${HOME", "$HOME ${} ${1x} ${HOME"),
        ] {
            assert_eq!(expanded(text).unwrap(), wanted, "{text}");
        }
    }

    #[test]
    fn expand_names_an_unset_variable() {
        assert_eq!(
            expanded("x${MISSING}"),
            Err(UnsetVariable("MISSING".into()))
        );
    }
}
