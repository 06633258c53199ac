//! The property that fuzzing and tests check on command lines.

use haft_tool::Workspace;
use haft_types::{Decision, PermissionMode};

use crate::shell::parse_line;
use crate::{
    Confinement, PermissionRequest, PermissionRule, PermissionRules, Permissions,
    PermissionsConfig, find_program_names,
};

const MODES: [PermissionMode; 5] = [
    PermissionMode::Plan,
    PermissionMode::Ask,
    PermissionMode::AcceptEdits,
    PermissionMode::Auto,
    PermissionMode::Yolo,
];

/// The rules that the check applies. The first characters of the fuzzed line decide which of them
/// are active.
const RULES: [&str; 7] = [
    "execute_command(a:*)",
    "execute_command(ls:*)",
    "execute_command(git status:*)",
    "execute_command(env:*)",
    "execute_command",
    "read_file(**/.env)",
    "write_to_file(out/**)",
];

/// Checks decisions on any command line: a line that does not parse is never allowed by rules on
/// commands, a rule that asks or denies only tightens the decision, no rule lifts a denial, and a
/// denied first line is not hidden by the lines after it.
///
/// # Panics
///
/// If the property does not hold.
pub fn check_command_line(line: &str) {
    let names = find_program_names(line);
    let is_parsed = parse_line(line).is_ok();
    assert!(is_parsed || names.is_empty(), "{line:?} names {names:?}");
    let choice = line.bytes().fold(0_usize, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(byte))
    });
    let (Some(mode), Some(added)) = (
        MODES.get(choice % MODES.len()),
        RULES.get(choice / 8 % RULES.len()),
    ) else {
        return;
    };
    let allowed = permissions(
        *mode,
        &["execute_command(a:*)", "execute_command(ls:*)"],
        &[],
    );
    let decided = decide(&allowed, line);
    let is_bound_by_rules = match mode {
        PermissionMode::Plan | PermissionMode::Ask | PermissionMode::AcceptEdits => true,
        PermissionMode::Auto | PermissionMode::Yolo => false,
    };
    assert!(
        is_parsed || !is_bound_by_rules || decided != Decision::Allow,
        "{line:?} does not parse and is allowed in mode {mode}"
    );
    let Ok(rule) = PermissionRule::parse(added, None) else {
        return;
    };
    for decision in [Decision::Ask, Decision::Deny] {
        let mut stricter = allowed.clone();
        stricter.rules = stricter.rules.with_rule(decision, rule.clone());
        let now = decide(&stricter, line);
        assert!(
            now >= decided,
            "{line:?}: {decided} became {now} with {decision} {added}"
        );
    }
    let denying = permissions(*mode, &[], &["execute_command(rm:*)"]);
    let mut looser = denying.clone();
    looser.rules = looser.rules.with_rule(Decision::Allow, rule);
    assert!(
        decide(&denying, line) != Decision::Deny || decide(&looser, line) == Decision::Deny,
        "{line:?}: a denial was lifted by {added}"
    );
    let behind = format!("rm x\n{line}");
    let everything = permissions(
        PermissionMode::Ask,
        &["execute_command"],
        &["execute_command(rm:*)"],
    );
    assert!(
        decide(&everything, &behind) != Decision::Allow,
        "{behind:?} is allowed"
    );
}

fn decide(permissions: &Permissions, line: &str) -> Decision {
    let nowhere = Workspace {
        root: "/nowhere".into(),
        extra: Vec::new(),
        cwd: "/nowhere".into(),
        spill: "/none".into(),
        journal: "/none".into(),
    };
    permissions
        .decide(&PermissionRequest::for_command(line), &nowhere)
        .decision
}

fn permissions(mode: PermissionMode, allow: &[&str], deny: &[&str]) -> Permissions {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let config = PermissionsConfig {
        mode,
        allow: owned(allow),
        deny: owned(deny),
        ..PermissionsConfig::default()
    };
    Permissions {
        mode,
        rules: PermissionRules::load(&config, None).unwrap_or_default(),
        confinement: Confinement::None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Every seed of the fuzz target, including its findings.
    #[test]
    fn check_command_line_holds_for_the_seeds_of_its_fuzz_target() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/command_line");
        for entry in std::fs::read_dir(folder).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            super::check_command_line(&String::from_utf8_lossy(&bytes));
        }
    }
}
