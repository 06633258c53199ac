//! Finds the rules that would allow exactly the requested call from now on.

use haft_tool::{Intent, Workspace};
use haft_types::Decision;

use super::decide::Permissions;
use super::{PermissionRequest, PermissionRule, Verdict, effects, shell};

/// The maximum length, in bytes, of a line for which a rule is suggested; no user would read a
/// longer rule.
const MAX_LINE_BYTES: usize = 2_000;

/// Returns rules that together allow this call and nothing else, or an empty list if there are no
/// such rules.
pub(super) fn find_allow_rules(
    permissions: &Permissions,
    call: &PermissionRequest<'_>,
    verdict: &Verdict,
    workspace: &Workspace,
) -> Vec<String> {
    if matches!(&call.intent, Intent::Command { line, .. } if line.len() > MAX_LINE_BYTES) {
        return Vec::new();
    }
    let asked = verdict
        .parts
        .iter()
        .filter(|part| part.decision == Decision::Ask);
    let texts: Option<Vec<String>> = match &call.intent {
        Intent::Command { .. } => asked
            .map(|part| build_command_rule(call.tool, &part.command))
            .collect(),
        Intent::Files(_) => asked
            .map(|part| build_path_rule(call.tool, &part.command, workspace))
            .collect(),
        Intent::Hosts(_) => Some(
            asked
                .map(|part| format!("{}(domain:{})", call.tool, part.command))
                .collect(),
        ),
        Intent::Input(_) | Intent::Nothing => None,
        Intent::Unknown => Some(vec![call.tool.to_owned()]),
        Intent::Server { server, tool } => Some(vec![format!("mcp__{server}__{tool}")]),
    };
    let mut texts = texts.unwrap_or_default();
    texts.dedup();
    // The first rule may be for a wrapper of the other commands, and cover them. The result is
    // verified: with these rules the call must be allowed.
    let fewest = [1, texts.len()]
        .into_iter()
        .filter_map(|count| texts.get(..count))
        .find(|texts| {
            let with_rules = add_allow_rules(permissions, texts);
            with_rules.is_some_and(|permissions| {
                permissions.decide_by_rules(call, workspace).decision == Decision::Allow
            })
        });
    fewest.map(<[String]>::to_vec).unwrap_or_default()
}

/// Returns the permissions with `texts` as further allow rules, or `None` if there is no rule or
/// one cannot be parsed.
fn add_allow_rules(permissions: &Permissions, texts: &[String]) -> Option<Permissions> {
    let mut added = permissions.clone();
    for text in texts {
        let rule = PermissionRule::parse(text, None).ok()?;
        added.rules = added.rules.with_rule(Decision::Allow, rule);
    }
    (!texts.is_empty()).then_some(added)
}

/// Builds the rule that allows exactly one command, or returns `None` if the command has unknown
/// words, assignments, or risks.
fn build_command_rule(tool: &str, part: &str) -> Option<String> {
    let simple = shell::parse_simple_command(part).ok()?;
    let words: Option<Vec<String>> = simple
        .words
        .iter()
        .map(|word| word.literal().map(quote_word))
        .collect();
    // Words that make a program run or write something are left for the user to allow explicitly.
    let is_plain = simple.assignments.is_empty() && effects::find_risks(&simple.words).is_empty();
    let words = words.filter(|words| !words.is_empty() && is_plain)?;
    Some(format!("{tool}({})", words.join(" ")))
}

/// Quotes a word if the shell requires it, or if the word could be read as the `:*` or ` *` at the
/// end of a rule.
fn quote_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn build_path_rule(tool: &str, given: &str, workspace: &Workspace) -> Option<String> {
    let resolved = haft_tool::follow_links(&workspace.cwd, given).ok()?;
    let path = workspace.display_path(&resolved);
    Some(format!("{tool}({})", globset::escape(&path)))
}
