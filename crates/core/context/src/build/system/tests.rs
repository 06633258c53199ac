use super::*;
use crate::testing::{Quarter, tools};

const CODING: &[&str] = &[
    "read_file",
    "write_to_file",
    "replace_in_file",
    "multi_edit",
    "apply_patch",
    "list_files",
    "search_files",
    "execute_command",
    "todo_read",
    "todo_write",
    "ask_followup_question",
    "attempt_completion",
];
const READING: &[&str] = &["read_file", "list_files", "search_files"];

fn environment() -> Environment {
    Environment {
        os: "Linux (Debian 13)".into(),
        shell: "/bin/bash".into(),
        encoding: "UTF-8".into(),
        user: "ada".into(),
        home: "/home/ada".into(),
        cwd: "/home/ada/engine".into(),
        safe_zone_tokens: None,
    }
}

#[test]
fn native_coding_profile() {
    let tools = tools(CODING);
    let environment = environment();
    let input = SystemInput {
        tools: &tools,
        environment: &environment,
        ..SystemInput::default()
    };
    let text = render_system(&input).unwrap();
    let tokens = Quarter.count_text(&text);
    assert!(
        (900..1_700).contains(&tokens),
        "{tokens} tokens of four bytes"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn native_reading_profile() {
    let tools = tools(READING);
    let environment = environment();
    let input = SystemInput {
        tools: &tools,
        environment: &environment,
        ..SystemInput::default()
    };
    insta::assert_snapshot!(render_system(&input).unwrap());
}

#[test]
fn render_system_explains_calls_for_text_protocols() {
    let tools = tools(READING);
    let environment = environment();
    let native = SystemInput {
        tools: &tools,
        environment: &environment,
        ..SystemInput::default()
    };
    let call_format = Some("# Calling tools\n\nWrite {{ braces }}.\n\n# Tools\n\n## read_file");
    for (protocol, name) in [(ToolProtocol::Xml, "xml"), (ToolProtocol::React, "react")] {
        let text = render_system(&SystemInput {
            protocol,
            call_format,
            ..native
        })
        .unwrap();
        let tool_use = text
            .split(SEPARATOR)
            .find(|section| section.starts_with("TOOL USE"))
            .unwrap();
        insta::assert_snapshot!(format!("tool_use_{name}"), tool_use);
    }
    let with_format = SystemInput {
        call_format,
        ..native
    };
    assert_eq!(
        render_system(&with_format).unwrap(),
        render_system(&native).unwrap(),
        "the API's own way needs none"
    );
}

#[test]
fn render_system_names_deferred_tools_that_fill_reminders() {
    let line = "Through `use_tool`, `useful_info_add` adds to the useful information";
    let named = |offered: &[&str], deferred: &[&str]| {
        let text = render_system(&SystemInput {
            tools: &tools(offered),
            deferred: &tools(deferred),
            environment: &environment(),
            ..SystemInput::default()
        });
        text.unwrap().contains(line)
    };
    assert!(named(&["use_tool"], &["note_add", "useful_info_add"]));
    assert!(!named(&["use_tool"], &["note_add"]));
    assert!(!named(&["note_add", "useful_info_add", "use_tool"], &[]));
    assert!(!named(&[], &["note_add", "useful_info_add"]));
}

#[test]
fn render_system_explains_reminders_in_results() {
    let text = render_system(&SystemInput {
        reminders_in_results: true,
        environment: &environment(),
        ..SystemInput::default()
    })
    .unwrap();
    let section = text
        .split(SEPARATOR)
        .find(|section| section.starts_with("WHAT HAFT ADDS"))
        .unwrap();
    insta::assert_snapshot!(section, @"
    WHAT HAFT ADDS

    haft, the program you run in, writes part of this conversation: what stands in `<system-reminder>` tags (role, TODO list, useful information, folder notes, nudges, notices of background work; they are added to the end of tool results, and such a tag in the output of a tool is written `< system-reminder>`), notices in place of cleared or shortened results, summaries with receipts, and `[Hint: message_id: …]` lines. None of it is the user's. Take it into account; do not answer it or write such text yourself. The newest copy of a reminder holds. What the user says after a tool result is added to it in `<user-message>` tags: answer it as any message of the user.

    As the conversation grows, old results are shortened or cleared. Write down what you will need later before it is cleared.
    ");
}

#[test]
fn render_system_includes_everything_a_user_can_add() {
    let tools = tools(&["read_file"]);
    let focus = ["src/lib.rs".to_owned(), "docs/a file.md".to_owned()];
    let input = SystemInput {
        role: RoleText::Custom("You are a reviewer.\n"),
        tools: &tools,
        examples: &["Read the first lines:\n{\"path\": \"a.rs\", \"end_line\": 20}".into()],
        guidelines: &["Read whole functions.".into()],
        package_context: Some("`engine` drives the turn."),
        environment: &Environment {
            safe_zone_tokens: Some(160_000),
            ..environment()
        },
        focus_files: &focus,
        append: Some("Reply in verse."),
        ..SystemInput::default()
    };
    insta::assert_snapshot!(render_system(&input).unwrap());
}

#[test]
fn render_system_omits_empty_sections_with_their_headings() {
    let text = render_system(&SystemInput {
        environment: &environment(),
        ..SystemInput::default()
    })
    .unwrap();
    assert!(!SystemSection::ToolUse.is_part_of(&text) && !text.contains("TOOL USE"));
    assert!(!text.contains("PROJECT PACKAGE CONTEXT") && !text.contains("<files>"));
    assert!(!text.contains("====\n\n===="));
    for section in REQUIRED_SECTIONS {
        assert!(section.is_part_of(&text), "{section:?}");
    }
}

#[test]
fn role_is_not_expanded_as_a_template() {
    let role = RoleText::Role("Write {{ braces }} and {% tags %} as they are.");
    let text = render_system(&SystemInput {
        role,
        environment: &environment(),
        ..SystemInput::default()
    })
    .unwrap();
    assert!(
        text.starts_with("Write {{ braces }} and {% tags %} as they are.\n\n====\n"),
        "{text}"
    );
}

#[test]
fn system_entry_is_equal_for_equal_text() {
    let environment = environment();
    let input = SystemInput {
        environment: &environment,
        ..SystemInput::default()
    };
    let entry = || system_entry(render_system(&input).unwrap(), &Quarter);
    assert_eq!(entry(), entry());
    assert_ne!(
        entry().message.message_id,
        system_entry("other", &Quarter).message.message_id
    );
}

#[test]
fn prompt_sections_replace_and_reorder_sections() {
    let sections = PromptSections {
        replaced: [
            (
                SystemSection::Capabilities,
                "You work in {{ environment.cwd }}.".to_owned(),
            ),
            (
                SystemSection::Objective,
                "OBJECTIVE\n\nBe brief.".to_owned(),
            ),
            (
                SystemSection::Role,
                "You are {{ role or 'a helper' }}.".to_owned(),
            ),
        ]
        .into(),
        order: vec![SystemSection::Objective, SystemSection::Role],
    };
    let environment = Environment {
        cwd: "/work".into(),
        ..Environment::default()
    };
    let input = SystemInput {
        sections: &sections,
        environment: &environment,
        ..SystemInput::default()
    };
    let text = render_system(&input).unwrap();
    assert!(
        text.starts_with("OBJECTIVE\n\nBe brief.\n\n====\n\nYou are a helper.\n\n====\n\n"),
        "{text}"
    );
    assert!(
        text.contains("\n\n====\n\nCAPABILITIES\n\nYou work in /work.\n\n====\n\n"),
        "{text}"
    );
    assert!(
        REQUIRED_SECTIONS
            .iter()
            .all(|section| section.is_part_of(&text))
    );
    let given = SystemInput {
        role: RoleText::Custom("Only this."),
        ..input
    };
    assert!(
        render_system(&given).unwrap().contains("Only this.")
            && !render_system(&given).unwrap().contains("You are Only")
    );
    let wrong = PromptSections {
        replaced: [(SystemSection::Rules, "{{ nothing }}".to_owned())].into(),
        ..PromptSections::default()
    };
    let error = render_system(&SystemInput {
        sections: &wrong,
        ..SystemInput::default()
    })
    .unwrap_err();
    assert!(error.to_string().contains("rules"), "{error}");
}
