//! Tests of the tools and knowledge that a prompt offers, without a model.

use std::path::Path;

use haft_context::Policy;
use haft_model::Catalogue;
use haft_project::KnowledgePaths;
use haft_project::external::HelpCache;
use haft_project::library::Libraries;
use haft_sandbox::{OwnProgram, Supervisor};
use haft_testkit::support::FakeClock;
use haft_types::{ChangeKind, ModelSpec, Origin, PromptLanguage};

use super::*;
use crate::budget::limits::TurnLimits;
use crate::prompt::external::ToolHelp;
use crate::prompt::offered_tools::all_tools;
use crate::prompt::redescribed_tool::translate_tools;
use crate::session::config::{
    KnowledgeSettings, Leftovers, ProjectRules, PromptSettings, Roles, SafetySettings,
    SessionFolders, TaskSettings, ToolSettings,
};
use crate::session::transcript::tests::{shared_services, transcript};
use crate::stored_state;
use crate::turn::Nudge;

fn model() -> ModelSpec {
    let providers =
        toml::from_str("mock = { api = 'anthropic', base_url = 'http://127.0.0.1:1' }").unwrap();
    let models = toml::from_str("'mock/m' = { context_window = 100_000 }").unwrap();
    Catalogue::new(providers, models)
        .unwrap()
        .resolve("mock/m")
        .unwrap()
        .spec
}

fn config(folder: &Path) -> SessionConfig {
    let root = folder.to_owned();
    let cwd = folder.to_owned();
    let at = |name: &str| folder.join(name);
    SessionConfig {
        agent: crate::MAIN_AGENT.to_owned(),
        model: model(),
        policy: Policy::default(),
        prompt: PromptSettings {
            roles: Roles {
                main: Some("You test.".into()),
                ..Roles::default()
            },
            rules: ProjectRules::Exclude,
            ..PromptSettings::default()
        },
        folders: SessionFolders {
            workspace: Workspace {
                root: root.clone(),
                extra: Vec::new(),
                cwd: cwd.clone(),
                spill: at("spill"),
                journal: at("journal"),
            },
            private: Vec::new(),
            worktrees: at("worktrees"),
        },
        knowledge: KnowledgeSettings {
            paths: KnowledgePaths {
                root,
                cwd,
                trusted: false,
                user: at("user"),
                home: None,
            },
            libraries: Libraries::in_folder(at("libraries")),
            tool_help: ToolHelp::new(HelpCache::in_folder(at("help")), None),
            notes: "p".into(),
            agents: Vec::new(),
        },
        tools: ToolSettings {
            offered: vec!["read_file".into()],
            ..ToolSettings::default()
        },
        safety: SafetySettings::default(),
        task: TaskSettings {
            limits: TurnLimits::default(),
            goal: false,
            answer: None,
            leftovers: Leftovers::Keep,
            approver: None,
            attach_port: None,
        },
        callbacks: Vec::new(),
        namespace: "p".into(),
        notices: Vec::new(),
    }
}

async fn open_prompt_context(
    config: &SessionConfig,
    transcript: &Transcript,
    store: &Arc<dyn haft_store::Store>,
) -> PromptContext {
    let supervisor = Arc::new(Supervisor::new(OwnProgram::open_running().unwrap()));
    let running = Arc::new(Running::new(
        supervisor,
        haft_tools::LimitsConfig::default(),
    ));
    let services = shared_services(store, Arc::new(FakeClock::default()));
    let mut state = StoredState::read(store.as_ref(), transcript.id())
        .await
        .unwrap();
    let mut registry = all_tools(&running, config.policy.prompt_language);
    registry
        .select_tools(&config.tools.offered, &config.tools.profiles)
        .unwrap();
    translate_tools(&mut registry, config);
    let offered = OfferedContext {
        registry,
        unkept_descriptions: None,
        skills: SkillWatch::new(&config.knowledge.paths),
        todo: Arc::new(StoredTodo::new(
            state.take_kept_document(store, transcript.id()),
        )),
        starter_reads: None,
        knowledge: Knowledge::open(
            &services,
            config,
            running.limits(),
            transcript.id(),
            None,
            &mut state,
        )
        .await
        .unwrap(),
        running,
        counter: Arc::clone(&services.counter),
    };
    let hooks = config.silent_hook_runner();
    PromptContext::open(offered, config, transcript.history(), &hooks, &mut state)
        .await
        .unwrap()
}

#[tokio::test]
async fn render_changes_the_system_message_only_with_its_inputs() {
    let (folder, store, transcript) = transcript().await;
    let mut config = config(folder.path());
    let mut prompt = open_prompt_context(&config, &transcript, &store).await;
    assert!(!prompt.offers_completion());
    assert_eq!(prompt.canonical_name("no such tool"), "no such tool");
    let before = prompt.system_message().hash;
    prompt.render(&config).unwrap();
    assert_eq!(prompt.system_message().hash, before, "nothing has changed");
    config.prompt.focus_files = vec!["src/lib.rs".into()];
    prompt.render(&config).unwrap();
    assert!(
        prompt
            .system_message()
            .message
            .joined_text()
            .contains("src/lib.rs")
    );
}

#[tokio::test]
async fn execution_state_names_the_last_changed_file() {
    let (folder, store, transcript) = transcript().await;
    let config = config(folder.path());
    let mut prompt = open_prompt_context(&config, &transcript, &store).await;
    let last_write = |prompt: &PromptContext| {
        prompt
            .build_execution_state(&config, PermissionMode::Plan, ListOwner::Reader, &[])
            .last_write
    };
    assert_eq!(last_write(&prompt), None);
    let change = FileChange {
        path: folder.path().join("a.rs"),
        kind: ChangeKind::Added,
    };
    prompt.record_change(&config.folders.workspace, &change);
    assert_eq!(last_write(&prompt).as_deref(), Some("a.rs"));
}

#[tokio::test]
async fn plan_mode_notice_is_stored() {
    let (folder, store, mut transcript) = transcript().await;
    transcript
        .append_user("plan it".into(), Origin::User)
        .await
        .unwrap();
    let config = config(folder.path());
    let mut prompt = open_prompt_context(&config, &transcript, &store).await;
    assert!(!prompt.plan_mode_announced());
    prompt
        .set_plan_mode_announced(true, &transcript)
        .await
        .unwrap();
    let kept = stored_state::read_document::<PlanModeNotice>(store.as_ref(), transcript.id())
        .await
        .unwrap();
    assert_eq!(kept.unwrap().unwrap(), PlanModeNotice(true));
    assert!(
        open_prompt_context(&config, &transcript, &store)
            .await
            .plan_mode_announced()
    );
}

fn item(content: &str, status: TodoState) -> TodoItem {
    TodoItem {
        content: content.into(),
        status,
    }
}

#[test]
fn plan_step_names_when_the_item_is_done() {
    let done = TodoState::Completed;
    let doing = TodoState::InProgress;
    let open = TodoState::Pending;
    let step = |items: &[TodoItem]| {
        current_plan_step(items).map(|PlanStep { step, done_when }| (step, done_when))
    };
    let told = |step: &str, done_when: &str| Some((step.to_owned(), done_when.to_owned()));
    assert_eq!(
        step(&[item("read", done), item("write", open)]),
        None,
        "nothing is being done"
    );
    let next = [item("read", done), item("write", doing), item("test", open)];
    assert_eq!(step(&next), told("write", "the next item can begin: test"));
    assert_eq!(
        step(&[item("write it", doing)]),
        told("write it", "write it")
    );
    let own = [
        item("Mend the parser (done when: `cargo test` passes)", doing),
        item("test", open),
    ];
    assert_eq!(step(&own), told("Mend the parser", "`cargo test` passes"));
}

#[tokio::test]
async fn execution_state_reflects_limits_mode_and_todo_list() {
    let (folder, store, mut transcript) = transcript().await;
    transcript
        .append_user("write it".into(), Origin::User)
        .await
        .unwrap();
    let mut config = config(folder.path());
    config.task.limits.turns = Some(20);
    let prompt = open_prompt_context(&config, &transcript, &store).await;
    let item = item("write", TodoState::InProgress);
    prompt.todo().write(vec![item]).await.unwrap();
    let child = stored_state::ChildConversation {
        conversation: haft_types::ConversationId::new("0123456789"),
        agent: "scout".into(),
        call_id: "c".into(),
    };
    prompt.knowledge().children.add(child).await.unwrap();
    let state = prompt.build_execution_state(
        &config,
        PermissionMode::Auto,
        ListOwner::Reader,
        &["main".into()],
    );
    assert_eq!((state.max_replies, state.mode.as_str()), (Some(20), "auto"));
    assert_eq!(state.plan_step.unwrap().step, "write");
    assert_eq!(
        state.tasks,
        ["sub-agent scout (conversation 01234567): ended"]
    );
    let of_sub = prompt.build_execution_state(
        &config,
        PermissionMode::Auto,
        ListOwner::MainAgent,
        &["scout".into()],
    );
    assert_eq!(of_sub.plan_step, None, "the list is the main agent's");
    assert_eq!(
        of_sub.tasks,
        ["sub-agent scout (conversation 01234567): running"]
    );
}

#[tokio::test]
async fn agents_md_appears_in_documents_and_once_in_the_role_reminder() {
    let (folder, store, transcript) = transcript().await;
    std::fs::write(folder.path().join("AGENTS.md"), "Use tabs.").unwrap();
    let mut config = config(folder.path());
    config.knowledge.paths.trusted = true;
    config.prompt.environment.os = "linux (Debian)".into();
    let prompt = open_prompt_context(&config, &transcript, &store).await;
    let system = prompt.system_message().message.joined_text();
    assert!(
        system.starts_with("You test.") && system.contains("Platform: Linux."),
        "{system}"
    );
    assert!(!system.contains("Use tabs."), "{system}");
    assert_eq!(
        prompt
            .documents()
            .iter()
            .filter(|one| one.text.contains("Use tabs."))
            .count(),
        1
    );
    let role = prompt
        .build_reminders(&config, ListOwner::Reader, Timestamp::UNIX_EPOCH)
        .role
        .unwrap();
    assert_eq!(role.matches("Use tabs.").count(), 1, "{role}");
    config.prompt.roles.main = None;
    assert_eq!(
        prompt
            .build_reminders(&config, ListOwner::Reader, Timestamp::UNIX_EPOCH)
            .role,
        None
    );
}

#[tokio::test]
async fn reminders_show_sub_agents_notes_on_inherited_reads() {
    let (folder, store, transcript) = transcript().await;
    let config = config(folder.path());
    let mut prompt = open_prompt_context(&config, &transcript, &store).await;
    let kept = &prompt.knowledge().notes;
    kept.add("src", "No panics here.").await.unwrap();
    let notes = |prompt: &PromptContext| {
        prompt
            .build_reminders(&config, ListOwner::MainAgent, Timestamp::UNIX_EPOCH)
            .folder_notes
            .unwrap()
    };
    assert_eq!(notes(&prompt), "");
    let starter = ReadLedger::default();
    let state = haft_tool::FileState {
        size: 1,
        mtime_ns: 1,
        hash: haft_types::ContentHash::from_content(b"a"),
    };
    starter.record_seen(&folder.path().join("src/a.rs"), state);
    prompt.starter_reads = Some(Arc::new(starter));
    assert_eq!(notes(&prompt), "### `src`\n\n- n1: No panics here.\n");
}

#[tokio::test]
async fn useful_ranges_are_reminded_of_with_their_lines() {
    let (folder, store, mut transcript) = transcript().await;
    let input = transcript.append_user("look".into(), Origin::User);
    input.await.unwrap();
    let config = config(folder.path());
    let prompt = open_prompt_context(&config, &transcript, &store).await;
    std::fs::write(folder.path().join("a.rs"), "one\ntwo\nthree\n").unwrap();
    for (path, end_line) in [("a.rs", 2), ("b.rs", 1)] {
        let new = haft_tools::NewUsefulItem {
            path: path.into(),
            start_line: 1,
            end_line,
            description: "why".into(),
        };
        prompt.knowledge().useful.add(new).await.unwrap();
    }
    let reminders = prompt.build_reminders(&config, ListOwner::Reader, Timestamp::UNIX_EPOCH);
    assert_eq!(
        reminders.useful.unwrap(),
        "### `a.rs` lines 1-2: why\n\n```\none\ntwo\n```\n\n\
         ### `b.rs` lines 1-1: why\n\n(cannot be read now: the file does not exist)\n"
    );
}

/// Returns every combination of protocol and language.
fn protocols_and_languages() -> impl Iterator<Item = (ToolProtocol, PromptLanguage)> {
    let protocols = [ToolProtocol::Native, ToolProtocol::Xml, ToolProtocol::React];
    let languages = [PromptLanguage::English, PromptLanguage::Chinese];
    protocols
        .into_iter()
        .flat_map(move |protocol| languages.map(|language| (protocol, language)))
}

/// Pairs of statements that must never appear together in what a model reads.
const CONTRADICTIONS: &str = include_str!("contradictions.txt");

/// Returns the names of the offered tools, and everything the model reads except the descriptions
/// of tools.
fn offered_names_and_prompt_text(
    config: &SessionConfig,
    prompt: &PromptContext,
) -> (Vec<String>, String) {
    let registry = prompt.registry();
    let tools = prompt.registry().known_names();
    let offered: Vec<String> = registry
        .offered_tools()
        .chain(registry.deferred_tools())
        .map(|tool| tool.spec().name.clone())
        .collect();
    let language = config.policy.prompt_language;
    let role = PromptContext::configured_role(config);
    let input = prompt.system_input(config, role.as_deref());
    let advertised = haft_model::describe_call_format(config.model.tool_protocol, language, &[]);
    assert_eq!(advertised, None, "without tools there is nothing to say");
    // The protocol defines how a call is written; the tools after it describe themselves.
    let format = input
        .call_format
        .map(|text| text.split("# Tools").next().unwrap_or_default().to_owned());
    let input = SystemInput {
        call_format: format.as_deref(),
        cases: &[],
        guidelines: &[],
        examples: &[],
        ..input
    };
    let mut text = render_system(&input).unwrap();
    let completes = offered.iter().any(|name| name == names::COMPLETE_TOOL);
    let mut nudges = vec![
        Nudge::OpenTodos(1),
        Nudge::Cut,
        Nudge::Empty,
        Nudge::Repeated,
        Nudge::NothingChanged,
    ];
    if completes {
        nudges.push(Nudge::Goal);
        nudges.extend(
            config
                .model
                .tool_protocol
                .is_text()
                .then_some(Nudge::NoCompletion),
        );
    }
    for nudge in nudges {
        text = [text.as_str(), &nudge.text_with_tools(language, &tools)].join("\n");
    }
    text.push_str(prompt!("../../../prompts/plan_on").text(language));
    text.push_str(prompt!("../../../prompts/plan_over").text(language));
    text.push_str(prompt!("../../../prompts/answer_schema").text(language));
    (offered, text)
}

#[tokio::test]
async fn prompt_names_only_offered_tools_and_has_no_contradictions() {
    let (folder, store, transcript) = transcript().await;
    let pairs: Vec<(&str, &str)> = CONTRADICTIONS
        .lines()
        .filter_map(|line| line.split_once(" | "))
        .collect();
    assert!(pairs.len() >= 5);
    let supervisor = Arc::new(Supervisor::new(OwnProgram::open_running().unwrap()));
    let running = Arc::new(Running::new(
        supervisor,
        haft_tools::LimitsConfig::default(),
    ));
    let every = all_tool_names(&running, PromptLanguage::English);
    for (protocol, language) in protocols_and_languages() {
        for (is_sub, headless, small) in [
            (false, false, false),
            (false, true, false),
            (true, true, false),
            (true, false, false),
            (false, false, true),
            (true, true, true),
        ] {
            let mut config = config(folder.path());
            (config.model.tool_protocol, config.policy.prompt_language) = (protocol, language);
            config.tools.offered = if small {
                vec!["read_file".into()]
            } else {
                vec!["default".into()]
            };
            config.prompt.environment.shell = haft_tools::shell_path().into();
            config.prompt.environment.os = "linux".into();
            config.prompt.roles.main = is_sub.then(|| "You look closely.".to_owned());
            config.prompt.roles.completion = is_sub.then(|| {
                prompt!("../../../prompts/subagent_completion")
                    .text(language)
                    .to_owned()
            });
            let mut prompt = open_prompt_context(&config, &transcript, &store).await;
            for (left_out, name) in [(headless, names::ASK_TOOL), (is_sub, names::TODO_WRITE)] {
                if left_out {
                    prompt.registry.remove(name);
                }
            }
            prompt.render(&config).unwrap();
            let profile = format!(
                "{protocol:?}, {language:?}, sub-agent: {is_sub}, headless: {headless}, small: {small}"
            );
            let (offered, text) = offered_names_and_prompt_text(&config, &prompt);
            for name in every.iter().filter(|name| !offered.contains(name)) {
                assert!(
                    !text.contains(&format!("`{name}`")),
                    "{profile}: `{name}` is named and not offered\n{text}"
                );
            }
            assert!(
                text.contains(&format!(": {}", haft_tools::shell_path())),
                "{profile}: the shell\n{text}"
            );
            for (one, other) in &pairs {
                assert!(
                    !(text.contains(one) && text.contains(other)),
                    "{profile}: {one:?} and {other:?}\n{text}"
                );
            }
        }
    }
}

/// Small models take examples for facts and call every tool that is named.
#[tokio::test]
async fn prompt_of_each_profile_names_only_offered_tools_and_no_paths() {
    let (folder, store, transcript) = transcript().await;
    let supervisor = Arc::new(Supervisor::new(OwnProgram::open_running().unwrap()));
    let running = Arc::new(Running::new(
        supervisor,
        haft_tools::LimitsConfig::default(),
    ));
    let every = all_tool_names(&running, PromptLanguage::English);
    for (protocol, language) in protocols_and_languages() {
        for profile in haft_tool::BUILT_IN_PROFILES {
            let mut config = config(folder.path());
            (config.model.tool_protocol, config.policy.prompt_language) = (protocol, language);
            // The model selects this one itself.
            let small = profile == "small";
            config.model.profile = if small {
                ModelProfile::Small
            } else {
                ModelProfile::Full
            };
            config.tools.offered = vec![profile.into()];
            let mut prompt = open_prompt_context(&config, &transcript, &store).await;
            prompt.render(&config).unwrap();
            let role = PromptContext::configured_role(&config);
            let input = prompt.system_input(&config, role.as_deref());
            let told = serde_json::to_string(&input.tools).unwrap();
            let text = format!("{}\n{told}", render_system(&input).unwrap());
            for path in ["src/", "docs/"] {
                assert!(
                    !text.contains(path),
                    "{protocol:?} {language:?} {profile}: {path}\n{text}"
                );
            }
            let offered: Vec<_> = prompt
                .registry()
                .offered_tools()
                .map(|tool| tool.spec().name.clone())
                .collect();
            let callable: Vec<_> = prompt
                .registry()
                .deferred_tools()
                .map(|tool| tool.spec().name.clone())
                .collect();
            let named = |name: &String| text.contains(&format!("`{name}`"));
            let strange: Vec<_> = every
                .iter()
                .filter(|name| !offered.contains(name) && !callable.contains(name) && named(name))
                .collect();
            assert!(
                strange.is_empty(),
                "{protocol:?} {language:?} {profile}: {strange:?}\n{text}"
            );
            if small {
                assert!(
                    (6..=8).contains(&offered.len()),
                    "{protocol:?}: {offered:?}"
                );
            }
        }
    }
}

/// Chinese texts are entirely Chinese, except for names, code and keys, and use the names of the
/// English texts.
#[tokio::test]
async fn prompt_in_chinese_is_complete_and_uses_the_english_names() {
    let (folder, store, transcript) = transcript().await;
    let names = |text: &str| -> std::collections::BTreeSet<String> {
        text.split('`')
            .skip(1)
            .step_by(2)
            .filter(|name| name.is_ascii())
            .map(str::to_owned)
            .collect()
    };
    let mut config = config(folder.path());
    config.tools.offered = vec!["*".into()];
    let english = open_prompt_context(&config, &transcript, &store).await;
    config.policy.prompt_language = PromptLanguage::Chinese;
    let chinese = open_prompt_context(&config, &transcript, &store).await;
    let described = |tool: &Arc<dyn haft_tool::Tool>| {
        let mut texts = vec![(
            "its description".to_owned(),
            tool.spec().description.clone(),
        )];
        let manual = tool.manual();
        texts.extend(
            [manual.short, manual.example_of, manual.guideline]
                .map(|text| ("its manual".into(), text.into())),
        );
        for (name, property) in tool.spec().parameters["properties"]
            .as_object()
            .into_iter()
            .flatten()
        {
            texts.push((
                name.clone(),
                property["description"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            ));
        }
        texts
    };
    assert!(english.registry().iter().count() > 25);
    for (one, other) in english.registry().iter().zip(chinese.registry().iter()) {
        assert_eq!(one.spec().name, other.spec().name);
        for ((what, english), (_, chinese)) in described(one).into_iter().zip(described(other)) {
            let tool = &one.spec().name;
            assert_eq!(english.is_empty(), chinese.is_empty(), "{tool}: {what}");
            let is_chinese = chinese
                .chars()
                .any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
            assert!(
                chinese.is_empty() || is_chinese,
                "{tool}: {what} is not Chinese: {chinese}"
            );
            assert_eq!(names(&english), names(&chinese), "{tool}: {what}");
        }
    }
    let text = |prompt: &PromptContext| prompt.system_message().message.joined_text();
    let english = text(&english);
    let chinese = text(&chinese);
    // `path:line` of the English text is translated in the Chinese text.
    let mut named = names(&english);
    named.remove("path:line");
    assert_eq!(named, names(&chinese), "{chinese}");
    let headings = |text: &str| {
        text.lines()
            .filter(|line| line.len() > 3 && line.to_uppercase() == *line && line.is_ascii())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(headings(&english), headings(&chinese));
    insta::assert_snapshot!(
        "system.zh-CN",
        chinese.replace(&folder.path().display().to_string(), "FOLDER")
    );
}
