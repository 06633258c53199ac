//! Finds the rules that would allow exactly the requested call from now on.

use haft_tool::{Intent, Workspace};
use haft_types::Decision;

use super::decide::Permissions;
use super::{PermissionRequest, PermissionRule, Verdict, effects, shell};

/// The maximum length, in bytes, of a line for which a rule is suggested; no user would read a
/// longer rule.
const MAX_LINE_BYTES: usize = 2_000;

/// The reason why no rule covers a call outside the sandbox.
pub(super) const OUTSIDE_SANDBOX: &str = "no rule can allow leaving the sandbox";
/// The reason why no rule covers a call for which the model requests an approval.
pub(super) const WANTED_BY_MODEL: &str = "no rule answers a request for approval by the model";
/// The reason if the rules that name the call do not cover it, as with protected files.
const NOT_COVERED: &str = "no rule is offered: rules do not cover such a call";

/// Returns rules that together allow this call and nothing else, or the reason why there are none.
pub(super) fn find_allow_rules(
    permissions: &Permissions,
    call: &PermissionRequest<'_>,
    verdict: &Verdict,
    workspace: &Workspace,
) -> Result<Vec<String>, String> {
    if matches!(&call.intent, Intent::Command { line, .. } if line.len() > MAX_LINE_BYTES) {
        return Err("the line is too long for a rule".to_owned());
    }
    let asked = verdict
        .parts
        .iter()
        .filter(|part| part.decision == Decision::Ask);
    let mut texts: Vec<String> = match &call.intent {
        Intent::Command { .. } => asked
            .map(|part| build_command_rule(call.tool, &part.command))
            .collect::<Result<_, _>>()?,
        Intent::Files(_) => asked
            .map(|part| build_path_rule(call.tool, &part.command, workspace))
            .collect::<Option<_>>()
            .unwrap_or_default(),
        Intent::Hosts(_) => asked
            .map(|part| format!("{}(domain:{})", call.tool, part.command))
            .collect(),
        Intent::Input(_) => {
            return Err("no rule covers text that is typed into a running program".to_owned());
        }
        Intent::Program(_) => return Err("no rule covers a program for later use".to_owned()),
        Intent::Nothing => Vec::new(),
        Intent::Unknown => vec![call.tool.to_owned()],
        Intent::Server { server, tool } => vec![format!("mcp__{server}__{tool}")],
    };
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
    fewest
        .map(<[String]>::to_vec)
        .ok_or_else(|| NOT_COVERED.to_owned())
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

/// Builds the rule that allows exactly one command. Fails with a reason if the command has unknown
/// words, assignments, or risks. The module of an interpreter, as in `python3 -m pytest`, is no
/// such risk: the rule names it, and covers no other module.
fn build_command_rule(tool: &str, part: &str) -> Result<String, String> {
    let simple = shell::parse_simple_command(part).map_err(|_| NOT_COVERED.to_owned())?;
    let literal = |word: &shell::ShellWord| {
        word.literal().map(quote_word).ok_or_else(|| {
            format!(
                "no rule can name `{}`, which only the shell knows",
                word.source
            )
        })
    };
    let words: Vec<String> = simple.words.iter().map(literal).collect::<Result<_, _>>()?;
    if !simple.assignments.is_empty() {
        return Err("no rule is offered for a command that sets variables".to_owned());
    }
    // A redirect has no words.
    if words.is_empty() {
        return Err(NOT_COVERED.to_owned());
    }
    let module = effects::find_module(&simple.words);
    // Words that make a program run or write something are left for the user to allow explicitly.
    let risks = effects::find_risks(&simple.words);
    let unnamed = risks.iter().find(|risk| match risk.at {
        effects::RiskPosition::Word(at) => {
            module.is_none_or(|module| at != module && at + 1 != module)
        }
        effects::RiskPosition::Whole | effects::RiskPosition::Input => true,
    });
    if let Some(risk) = unnamed {
        let word = match risk.at {
            effects::RiskPosition::Word(at) => simple.words.get(at).map(|word| &word.source),
            effects::RiskPosition::Whole | effects::RiskPosition::Input => None,
        };
        let shown = word.map_or(part, String::as_str);
        let what = risk.what;
        return Err(format!("no rule is offered, because `{shown}` {what}"));
    }
    Ok(format!("{tool}({})", words.join(" ")))
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
