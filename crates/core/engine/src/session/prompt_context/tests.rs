//! What is offered and known of a project, without a model.

use std::path::Path;

use haft_context::Policy;
use haft_model::{Catalogue, O200k};
use haft_project::KnowledgePaths;
use haft_project::external::HelpCache;
use haft_project::library::Libraries;
use haft_sandbox::Supervisor;
use haft_testkit::test::FakeClock;
use haft_types::{ChangeKind, Clock, ModelSpec, Origin};

use super::super::transcript::tests::transcript;
use super::super::{
    KnowledgeSettings, Leftovers, ProjectRules, PromptSettings, Roles, SafetySettings, SessionFolders, TaskSettings,
    ToolSettings,
};
use super::*;
use crate::external::ToolHelp;
use crate::ports::KnowledgeServices;
use crate::stored_state;
use crate::turn::Limits;

fn model() -> ModelSpec {
    let providers = toml::from_str("mock = { api = 'anthropic', base_url = 'http://127.0.0.1:1' }").unwrap();
    let models = toml::from_str("'mock/m' = { context_window = 100_000 }").unwrap();
    Catalogue::new(providers, models).unwrap().resolve("mock/m").unwrap().spec
}

fn config(folder: &Path) -> SessionConfig {
    let (root, cwd) = (folder.to_owned(), folder.to_owned());
    let at = |name: &str| folder.join(name);
    SessionConfig {
        agent: crate::MAIN.to_owned(),
        model: model(),
        policy: Policy::default(),
        prompt: PromptSettings {
            roles: Roles { main: Some("You test.".into()), ..Roles::default() },
            rules: ProjectRules::LeftOut,
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
            ground: KnowledgePaths { root, cwd, trusted: false, user: at("user"), home: None },
            libraries: Libraries::at(at("libraries")),
            tool_help: ToolHelp::new(HelpCache::at(at("help")), None),
            notes: "p".into(),
        },
        tools: ToolSettings { offered: vec!["read_file".into()], ..ToolSettings::default() },
        safety: SafetySettings::default(),
        task: TaskSettings { limits: Limits::default(), goal: false, answer: None, leftovers: Leftovers::Keep },
        callbacks: Vec::new(),
        namespace: "p".into(),
        notices: Vec::new(),
    }
}

async fn open(config: &SessionConfig, transcript: &Transcript, store: &Arc<dyn haft_store::Store>) -> PromptContext {
    let supervisor = Arc::new(Supervisor::new(std::env::current_exe().unwrap()));
    let running = Arc::new(Running::new(supervisor, haft_tools::LimitsConfig::default()));
    let (counter, clock): (Arc<dyn TokenCounter>, Arc<dyn Clock>) = (Arc::new(O200k), Arc::new(FakeClock::default()));
    let mut state = StoredState::read(store.as_ref(), transcript.id()).await.unwrap();
    let services = KnowledgeServices { store, counter: &counter, clock: &clock };
    let mut registry = open::all_tools(&running);
    registry.select(&config.tools.offered, &config.tools.profiles).unwrap();
    let offered = OfferedContext {
        registry,
        unkept_descriptions: None,
        skills: SkillWatch::of(&config.knowledge.ground),
        todo: Arc::new(StoredTodo::restored(Arc::clone(store), transcript.id().clone(), &mut state)),
        knowledge: Knowledge::open(services, config, transcript.id(), None, &mut state).await.unwrap(),
    };
    let hooked = Hooked::silent(config);
    PromptContext::open(offered, config, (&running, &counter), transcript.history(), &hooked, &mut state).await.unwrap()
}

#[tokio::test]
async fn the_system_message_follows_what_it_is_made_of() {
    let (folder, store, transcript) = transcript().await;
    let mut config = config(folder.path());
    let mut prompt = open(&config, &transcript, &store).await;
    assert!(!prompt.completes());
    assert_eq!(prompt.own_name("no such tool"), "no such tool");
    let before = prompt.system().hash;
    prompt.render(&config).unwrap();
    assert_eq!(prompt.system().hash, before, "nothing has changed");
    config.prompt.focus_files = vec!["src/lib.rs".into()];
    prompt.render(&config).unwrap();
    assert!(prompt.system().message.joined_text().contains("src/lib.rs"));
}

#[tokio::test]
async fn what_changed_last_is_part_of_the_execution_state() {
    let (folder, store, transcript) = transcript().await;
    let config = config(folder.path());
    let mut prompt = open(&config, &transcript, &store).await;
    assert_eq!(prompt.execution(PermissionMode::Plan).last_write, None);
    let change = FileChange { path: folder.path().join("a.rs"), kind: ChangeKind::Added };
    prompt.note_change(&config.folders.workspace, &change);
    assert_eq!(prompt.execution(PermissionMode::Plan).last_write.as_deref(), Some("a.rs"));
}

#[tokio::test]
async fn what_the_model_believes_of_plan_mode_is_kept() {
    let (folder, store, mut transcript) = transcript().await;
    transcript.append_user("plan it".into(), Origin::User).await.unwrap();
    let config = config(folder.path());
    let mut prompt = open(&config, &transcript, &store).await;
    assert!(!prompt.plan_mode_told());
    prompt.note_plan_mode(true, &transcript).await.unwrap();
    let kept = stored_state::read::<PlanModeNotice>(store.as_ref(), transcript.id()).await.unwrap();
    assert_eq!(kept.unwrap().unwrap(), PlanModeNotice(true));
    assert!(open(&config, &transcript, &store).await.plan_mode_told());
}
