use clap::{Arg, ArgAction, Command};

use super::*;

/// A part of haft's own command line.
fn own_command_line() -> Command {
    let switch = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    let value = |name: &'static str| Arg::new(name).long(name);
    let run = Command::new("run")
        .args([switch("ask"), switch("verbose"), switch("print")])
        .args([value("set"), value("max-total-tokens"), value("model")]);
    Command::new("haft").subcommands([run, Command::new("mcp")])
}

fn parse_arguments(args: &[&str]) -> Option<ClaudeCommandLine> {
    let args: Vec<_> = args.iter().map(OsString::from).collect();
    lower_arguments(&args, &own_command_line())
}

/// haft's arguments without the program's name, and the other options.
fn lowered_arguments(args: &[&str]) -> (Vec<String>, ClaudeOptions) {
    match parse_arguments(args) {
        Some(ClaudeCommandLine::Lowered { args, options }) => (
            args[1..]
                .iter()
                .map(|arg| arg.to_str().unwrap().to_owned())
                .collect(),
            *options,
        ),
        other => panic!("{args:?}: {other:?}"),
    }
}

#[test]
fn lower_arguments_accepts_the_flags_of_the_sdks() {
    let python = [
        "/x/claude",
        "--output-format",
        "stream-json",
        "--verbose",
        "--system-prompt",
        "",
        "--allowedTools",
        "Read,Bash(git log:*),mcp__calc__add",
        "--max-turns",
        "3",
        "--disallowedTools",
        "Write",
        "--model",
        "m",
        "--permission-prompt-tool",
        "stdio",
        "--permission-mode",
        "acceptEdits",
        "--resume=-x",
        "--add-dir",
        "/a",
        "--mcp-config",
        "{}",
        "--include-partial-messages",
        "--setting-sources=user,project",
        "--plugin-dir",
        "/p",
        "--max-thinking-tokens",
        "8000",
        "--input-format",
        "stream-json",
    ];
    let (args, options) = lowered_arguments(&python);
    assert_eq!(
        args,
        [
            "run",
            "--compat",
            "claude",
            "--output-format=stream-json",
            "--verbose",
            "--system-prompt=",
            "--max-turns=3",
            "--model=m",
            "--permission-mode=acceptEdits",
            "--resume=-x",
            "--add-dir=/a",
            "--include-partial-messages",
            "--input-format=stream-json",
        ]
    );
    assert_eq!(options.allow, ["Read", "Bash(git log:*)", "mcp__calc__add"]);
    assert_eq!(
        (options.deny.as_slice(), options.mcp_config.as_slice()),
        (&["Write".to_owned()][..], &["{}".to_owned()][..])
    );
    assert_eq!(
        options.setting_sources,
        Some(vec!["user".to_owned(), "project".to_owned()])
    );
    assert!(options.asks_client && options.renames_tools && !options.bypass_allowed);
    assert_eq!(options.notices.len(), 2, "{:?}", options.notices);
    // The other SDK writes these flags with equals signs.
    let (args, options) = lowered_arguments(&[
        "claude",
        "--output-format=stream-json",
        "--input-format=stream-json",
        "--allowedTools=Read, Write",
        "--tools=",
        "--thinking=disabled",
        "--session-id=x",
        "--fallback-model=n",
        "--strict-mcp-config",
    ]);
    assert_eq!(
        args[3..],
        ["--output-format=stream-json", "--input-format=stream-json"]
    );
    assert_eq!(
        (
            options.allow.len(),
            options.tools,
            options.strict_mcp_config
        ),
        (2, Some(Vec::new()), true)
    );
    assert_eq!(
        (
            options.session_id.as_deref(),
            options.fallback_model.as_deref()
        ),
        (Some("x"), Some("n"))
    );
}

#[test]
fn lower_arguments_accepts_both_spellings_and_lists() {
    for flags in [
        ["--allowedTools", "--maxTurns"],
        ["--allowed-tools", "--max-turns"],
    ] {
        let (args, options) = lowered_arguments(&[
            "claude",
            "-p",
            "fix it",
            flags[0],
            "Bash(npm run test:*)",
            "Read",
            flags[1],
            "2",
        ]);
        assert_eq!(
            args,
            ["run", "--compat", "claude", "--max-turns=2", "--", "fix it"]
        );
        assert_eq!(options.allow, ["Bash(npm run test:*)", "Read"]);
    }
    let (args, options) =
        lowered_arguments(&["claude", "--dangerously-skip-permissions", "-c", "go on"]);
    assert_eq!(
        args,
        [
            "--permission-mode=bypassPermissions",
            "--continue",
            "--",
            "go on"
        ],
        "at a terminal"
    );
    assert!(options.bypass_allowed);
    let (args, options) = lowered_arguments(&[
        "claude",
        "-p",
        "x",
        "--permission-mode",
        "dontAsk",
        "--permission-prompt-tool",
        "stdio",
    ]);
    assert_eq!(args[3..], ["--permission-mode=ask", "--", "x"]);
    assert!(options.never_asks);
}

#[test]
fn lower_arguments_ignores_unknown_flags_and_keeps_the_prompt() {
    let (args, options) = lowered_arguments(&["claude", "-p", "--new-thing", "fix it"]);
    assert_eq!(
        (args[3..].to_vec(), options.notices.len()),
        (vec!["--".to_owned(), "fix it".to_owned()], 1)
    );
    // If prompts arrive on standard input, the next argument is the value.
    let (args, _) = lowered_arguments(&[
        "claude",
        "--new-thing",
        "value",
        "--input-format",
        "stream-json",
    ]);
    assert_eq!(args[3..], ["--input-format=stream-json"]);
    let (args, _) = lowered_arguments(&[
        "haft",
        "run",
        "--compat",
        "claude",
        "--ask",
        "--set",
        "a=1",
        "--max-total-tokens=5",
        "x",
    ]);
    assert_eq!(
        args[3..],
        [
            "--ask",
            "--set",
            "a=1",
            "--max-total-tokens",
            "5",
            "--",
            "x"
        ],
        "haft's own flags stay"
    );
}

#[test]
fn lower_arguments_refuses_flags_that_change_the_conversation() {
    for flag in [
        "--resume-session-at=x",
        "--resume-drops-turn=x",
        "--session-mirror",
    ] {
        assert!(
            matches!(parse_arguments(&["claude", "-p", "x", flag]), Some(ClaudeCommandLine::Refused(refused)) if flag.starts_with(&refused)),
            "{flag}"
        );
    }
}

#[test]
fn lower_arguments_reads_only_command_lines_for_claude() {
    for own in [
        &["haft", "run", "x"][..],
        &["haft", "-p", "x"],
        &["claude", "mcp", "list"],
        &["haft", "mcp", "--compat=claude"],
    ] {
        assert_eq!(parse_arguments(own), None, "{own:?}");
    }
    assert!(
        !lowered_arguments(&["haft", "run", "--compat", "claude", "x"])
            .1
            .renames_tools
    );
    assert!(
        lowered_arguments(&["haft", "--compat=claude", "-p", "x"])
            .1
            .renames_tools
    );
    let args = |args: &[&str]| args.iter().map(OsString::from).collect::<Vec<_>>();
    for flag in ["-v", "--version"] {
        let first = version_line(&args(&["/usr/bin/claude", flag])).unwrap();
        assert!(
            first.starts_with(&format!("{CLAUDE_CODE_VERSION} (")),
            "{first}"
        );
    }
    assert_eq!(version_line(&args(&["haft", "--version"])), None);
}
