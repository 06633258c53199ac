use super::*;
use crate::memo::RecallTool;
use crate::testing::Quarter;

fn run_texts(reminders: &Reminders) -> Vec<(&'static str, String)> {
    let policy = Policy {
        clock: true,
        ..Policy::default()
    };
    let run = reminders.build_run(
        &policy,
        EntryMaker {
            counter: &Quarter,
            memo: None,
            recall: RecallTool::Missing,
        },
    );
    run.into_iter()
        .map(|(owner, entry)| (owner, entry.message.joined_text()))
        .collect()
}

#[test]
fn run_gives_headings_in_a_fixed_order() {
    let all = Reminders {
        role: Some("Careful.".into()),
        todo: Some(format_todo_list(
            &[
                Todo {
                    content: "read",
                    progress: TodoProgress::Completed,
                },
                Todo {
                    content: "write\nmuch",
                    progress: TodoProgress::InProgress,
                },
                Todo {
                    content: "test",
                    progress: TodoProgress::Pending,
                },
            ],
            ListOwner::Reader,
            PromptLanguage::English,
        )),
        useful: Some(format_useful_ranges(&[
            UsefulRange {
                path: "src/a.rs",
                start_line: 3,
                end_line: 4,
                description: "the parser",
                content: Ok("let a = 1;\n```\n"),
            },
            UsefulRange {
                path: "gone.rs",
                start_line: 1,
                end_line: 9,
                description: "the old parser",
                content: Err("no such file"),
            },
        ])),
        folder_notes: Some(format_folder_notes(&[
            FolderNotes {
                folder: "src",
                notes: &["No panics here.".into()],
            },
            FolderNotes {
                folder: "src/empty",
                notes: &[],
            },
            FolderNotes {
                folder: "src/deep",
                notes: &["One.".into(), "Two.".into()],
            },
        ])),
        clock: None,
    };
    let text: Vec<_> = run_texts(&all)
        .into_iter()
        .map(|(owner, text)| format!("<{owner}>\n{text}"))
        .collect();
    insta::assert_snapshot!(text.join("\n\n"));
}

#[test]
fn run_omits_empty_reminders() {
    assert!(run_texts(&Reminders::default()).is_empty());
    let blank = Reminders {
        role: Some(" \n".into()),
        todo: Some(format_todo_list(
            &[],
            ListOwner::MainAgent,
            PromptLanguage::English,
        )),
        ..Reminders::default()
    };
    assert!(run_texts(&blank).is_empty());
}

#[test]
fn run_puts_the_clock_into_the_role_or_alone() {
    let clock = Some("2026-11-15 10:00".to_owned());
    let with_role = Reminders {
        role: Some("R".into()),
        useful: Some("U".into()),
        clock: clock.clone(),
        ..Reminders::default()
    };
    let texts: Vec<_> = run_texts(&with_role)
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    let role = add_reminder_tag("## Agent Role Definition\n\nR\n\nDate and time: 2026-11-15 10:00");
    assert_eq!(
        texts,
        [role, add_reminder_tag("## Useful Information\n\nU")]
    );
    let alone = Reminders {
        clock,
        ..Reminders::default()
    };
    assert!(
        alone
            .build_run(
                &Policy::default(),
                EntryMaker {
                    counter: &Quarter,
                    memo: None,
                    recall: RecallTool::Missing
                }
            )
            .is_empty(),
        "off by default"
    );
    assert_eq!(
        run_texts(&alone)[0].1,
        add_reminder_tag("## Useful Information\n\nDate and time: 2026-11-15 10:00")
    );
}

#[test]
fn todo_text_names_the_owner_of_the_list() {
    let text = format_todo_list(
        &[Todo {
            content: "x",
            progress: TodoProgress::Pending,
        }],
        ListOwner::MainAgent,
        PromptLanguage::English,
    );
    assert!(
        text.starts_with("This list belongs to the main agent."),
        "{text}"
    );
}

#[test]
fn role_parts_join_skips_missing_parts() {
    let parts = RoleParts {
        role: Some("Role.\n"),
        environment: Some("Env."),
        completion: Some(" "),
        ..RoleParts::default()
    };
    assert_eq!(parts.join(), "Role.\n\nEnv.");
    assert_eq!(RoleParts::default().join(), "");
}

#[test]
fn check_subagent_role_names_the_file_to_fix() {
    assert!(check_subagent_role("scout", Some("You scout."), ".haft/agents/scout.md").is_ok());
    for role in [None, Some("  ")] {
        let error = check_subagent_role("scout", role, ".haft/agents/scout.md")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("scout") && error.contains(".haft/agents/scout.md"),
            "{error}"
        );
    }
}

#[test]
fn run_returns_the_memoized_message_of_an_unchanged_reminder() {
    let memo = crate::Memo::default();
    let reminders = Reminders {
        todo: Some("- [ ] x".into()),
        ..Reminders::default()
    };
    let policy = Policy::default();
    let maker = EntryMaker {
        counter: &Quarter,
        memo: Some(&memo),
        recall: RecallTool::Missing,
    };
    assert!(Arc::ptr_eq(
        &reminders.build_run(&policy, maker)[0].1,
        &reminders.build_run(&policy, maker)[0].1
    ));
    assert!(
        !reminders.build_run(&policy, maker)[0]
            .1
            .message
            .opens_round()
    );
}

#[test]
fn recorded_returns_the_newest_copies() {
    let reminders = Reminders {
        role: Some("Be kind.".into()),
        todo: Some("- [ ] a".into()),
        ..Reminders::default()
    };
    let maker = EntryMaker {
        counter: &Quarter,
        memo: None,
        recall: RecallTool::Missing,
    };
    let run = reminders.build_run(&Policy::default(), maker);
    let texts: Vec<_> = run
        .iter()
        .map(|(owner, entry)| (*owner, entry.message.joined_text()))
        .collect();
    let segments = || texts.iter().map(|(owner, text)| (*owner, text.as_str()));
    assert_eq!(
        Reminders::from_segments(segments()),
        Some(reminders.clone())
    );
    let older = [
        ("reminder:todo", "## TODO List\n\nolder"),
        ("history", "no reminder"),
    ];
    assert_eq!(
        Reminders::from_segments(older.into_iter().chain(segments())),
        Some(reminders.clone())
    );
    let emptied = format!("## TODO List\n\n{EMPTY_KIND_TEXT}");
    let emptied = segments().chain([("reminder:todo", emptied.as_str())]);
    assert_eq!(
        Reminders::from_segments(emptied),
        Some(Reminders {
            todo: None,
            ..reminders
        })
    );
    assert_eq!(
        Reminders::from_segments([("system", "x")].into_iter()),
        None
    );
    let told = Reminders {
        todo: Some("older".into()),
        ..Reminders::default()
    };
    assert_eq!(
        Reminders::from_segments(older.into_iter()),
        Some(told),
        "sent before there were tags"
    );
}
