use std::fs;

use super::*;

fn project(files: &[(&str, &str)], trusted: bool) -> (tempfile::TempDir, KnowledgePaths) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for (name, text) in files {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), text).unwrap();
    }
    let knowledge = KnowledgePaths {
        cwd: root.clone(),
        root,
        trusted,
        user: "/nowhere".into(),
        home: None,
    };
    (folder, knowledge)
}

const OWN: &str = r#"
[permissions]
mode = "yolo"
[[hooks.PreToolUse]]
matcher = "execute_command"
hooks = [{ type = "command", command = "check", timeout = 5 }]
[[hooks.stop]]
hooks = [{ command = "done" }]
"#;

const CLAUDE: &str = r#"{"hooks": {
    "PostToolUse": [{"matcher": "Edit|Write", "hooks": [
        {"type": "command", "command": "fmt", "timeout": 9999, "statusMessage": "…"}, {"type": "prompt", "prompt": "ok?"}]}],
    "Teatime": [{"hooks": [{"type": "command", "command": "tea"}]}]}}"#;

#[test]
fn load_puts_user_hooks_first_and_skips_untrusted_projects() {
    let user: HooksConfig =
        toml::from_str("[[notification]]\nhooks = [{ command = \"bell\" }]\n").unwrap();
    let files = [
        (".haft/config.toml", OWN),
        (".claude/settings.json", CLAUDE),
    ];
    for (trusted, expected) in [
        (true, vec!["bell", "check", "done", "fmt"]),
        (false, vec!["bell"]),
    ] {
        let (_folder, knowledge) = project(&files, trusted);
        let found = load_hooks(
            &knowledge,
            &user,
            Path::new("/u/config.toml"),
            &mut Vec::new(),
        );
        assert_eq!(
            found
                .iter()
                .map(|hook| hook.command.as_str())
                .collect::<Vec<_>>(),
            expected
        );
    }
}

#[test]
fn of_project_reads_claude_settings_and_reports_unknown_parts() {
    let (_folder, knowledge) = project(&[(".claude/settings.json", CLAUDE)], true);
    let mut problems = Vec::new();
    let found = load_project_hooks(&knowledge, &mut problems);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].point, found[0].timeout),
        (HookPoint::PostToolCall, Duration::from_mins(10))
    );
    let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert!(
        told.iter().any(|problem| problem.contains("`Teatime`")),
        "{told:?}"
    );
    assert!(
        told.iter().any(|problem| problem.contains("`prompt`")),
        "{told:?}"
    );
}

#[test]
fn of_project_reports_unreadable_hooks() {
    let bad = [
        ("= nonsense [", "[hooks]"),
        ("[[hooks.stop]]\nhooks = [{ comand = \"x\" }]\n", "[hooks]"),
        ("[[hooks.nonsense]]\nhooks = []\n", "[hooks]"),
        (
            "[[hooks.stop]]\nmatcher = \"(\"\nhooks = [{ command = \"x\" }]\n",
            "matcher",
        ),
    ];
    for (text, word) in bad {
        let (_folder, knowledge) = project(&[(".haft/config.toml", text)], true);
        let mut problems = Vec::new();
        assert!(
            load_project_hooks(&knowledge, &mut problems).is_empty(),
            "{text}"
        );
        assert!(
            problems.iter().any(|problem| problem.what.contains(word)),
            "{text}: {problems:?}"
        );
    }
}

#[test]
fn matcher_fits_whole_names() {
    let matcher = Matcher::new("Edit|Write").unwrap();
    assert!(matcher.matches(&["replace_in_file", "Edit"]));
    assert!(!matcher.matches(&["MultiEdit"]) && !matcher.matches(&["Writer"]));
    for all in ["", "*"] {
        assert!(Matcher::new(all).unwrap().matches(&["anything"]));
    }
    assert!(
        Matcher::new("mcp__.*")
            .unwrap()
            .matches(&["mcp__memory__read"])
    );
}
