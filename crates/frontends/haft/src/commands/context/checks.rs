//! `haft context test`: checks a project's statements about its context without a model.
//!
//! ```text
//! .haft/context-tests/*.toml ─► checks ─► the request that would be sent next, or a replay ─► one line per check, exit code
//! ```
//!
//! The checks run nothing of the project and write nothing to it, so the project's files are read
//! as if the project were trusted: a fresh clone can be checked. The model is an imaginary one with
//! a large window, so that the outcome depends on the project and on the policy, not on the user's
//! configuration.

use std::path::{Path, PathBuf};

use haft_agent::config::error_in_file;
use haft_agent::{InspectionMode, Project};
use haft_context::{Assembly, Cause};
use haft_model::{ModelConfig, ProviderConfig};
use haft_text::format_thousands;
use haft_types::{
    Api, ContentHash, ConversationId, Layer, Message, MessageId, Origin, Role, Timestamp,
    ToolProtocol,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::next;
use crate::cli::options::{JsonArgs, RunArgs};
use crate::commands::conversations::check_run_file;
use crate::commands::run;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::{Haft, Settings};
use crate::output;

/// The project's folder of check files.
const CHECKS_FOLDER: &str = ".haft/context-tests";
const PROVIDER: &str = "context-test";
const MODEL: &str = "context-test/model";
const CONTEXT_WINDOW: u32 = 1_000_000;

/// The contents of one file in `.haft/context-tests`: checks on what is sent to the model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContextTestFile {
    #[serde(default)]
    rule: Vec<RuleCheck>,
    prefix: Option<PrefixCheck>,
    #[serde(default)]
    replay: Vec<ReplayCheck>,
    #[serde(default)]
    run: Vec<RunCheck>,
}

/// Checks whether a document is part of the next request after a file is touched.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleCheck {
    touched: String,
    sends: Option<String>,
    not_sends: Option<String>,
}

/// Checks that system text, tools and documents together stay within a number of tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PrefixCheck {
    max_tokens: u64,
    #[serde(default)]
    protocol: ToolProtocol,
}

/// Checks that a recorded conversation breaks the cached prefix at most `breaks` times, and only
/// for the causes in `causes`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplayCheck {
    conversation: PathBuf,
    breaks: Option<usize>,
    causes: Option<Vec<Cause>>,
}

/// Checks that a run, in a file of `haft conversations replay --save`, replays without a
/// difference.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunCheck {
    file: PathBuf,
}

/// The outcome of one check from a check file.
#[derive(Debug, Serialize)]
struct CheckOutcome {
    file: String,
    /// The statement that was checked.
    check: String,
    holds: bool,
    /// The state found, which is printed beside the statement.
    found: String,
}

pub(super) async fn run(haft: &Haft, args: &JsonArgs) -> anyhow::Result<ProcessExit> {
    let settings = haft.load(&args.common)?;
    let bench = ContextChecker {
        settings,
        project: haft.project(None)?,
    };
    let mut outcomes = Vec::new();
    for (path, file) in read_check_files(&bench.project.root)? {
        let mut note = |(check, holds, found): (String, bool, String)| {
            let file = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            outcomes.push(CheckOutcome {
                file,
                check,
                holds,
                found,
            });
        };
        for check in &file.rule {
            for outcome in bench.check_rule(&path, check).await? {
                note(outcome);
            }
        }
        if let Some(check) = &file.prefix {
            note(bench.check_prefix(check).await?);
        }
        for check in &file.replay {
            note(bench.check_replay(check)?);
        }
        for check in &file.run {
            let shown = check.file.display();
            let path = bench.project.root.join(&check.file);
            let (holds, found) = check_run_file(haft, &path, &args.common).await?;
            note((text!("context-test-run", shown), holds, found));
        }
    }
    let failed = outcomes.iter().filter(|one| !one.holds).count();
    if args.json {
        output::print_json(&json!({ "checks": outcomes, "failed": failed }))?;
    } else {
        output::print_text(&outcomes_to_text(&outcomes))?;
    }
    Ok(if failed == 0 {
        ProcessExit::Completed
    } else {
        ProcessExit::Failed
    })
}

fn outcomes_to_text(outcomes: &[CheckOutcome]) -> String {
    let line = |one: &CheckOutcome| {
        let mark = if one.holds { "ok  " } else { "FAIL" };
        format!("{mark} {}: {}: {}\n", one.file, one.check, one.found)
    };
    outcomes.iter().map(line).collect::<Vec<_>>().concat()
}

/// Reads the files of checks, sorted by name.
fn read_check_files(root: &Path) -> anyhow::Result<Vec<(PathBuf, ContextTestFile)>> {
    let folder = root.join(CHECKS_FOLDER);
    let entries = std::fs::read_dir(&folder).map_err(|error| {
        usage_error(text!(
            "context-test-no-folder",
            folder = folder.display(),
            error
        ))
    })?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    paths.sort();
    if paths.is_empty() {
        return Err(usage_error(text!(
            "context-test-no-files",
            folder = folder.display()
        )));
    }
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(|error| {
            usage_error(text!(
                "context-test-unreadable",
                path = path.display(),
                error
            ))
        })?;
        let file: ContextTestFile =
            toml::from_str(&text).map_err(|error| error_in_file(&path, &text, &error))?;
        let is_empty = file.rule.is_empty()
            && file.prefix.is_none()
            && file.replay.is_empty()
            && file.run.is_empty();
        if is_empty {
            return Err(usage_error(text!(
                "context-test-empty",
                path = path.display()
            )));
        }
        files.push((path, file));
    }
    Ok(files)
}

/// The project and the settings that checks use.
struct ContextChecker {
    settings: Settings,
    project: Project,
}

impl ContextChecker {
    async fn check_rule(
        &self,
        file: &Path,
        check: &RuleCheck,
    ) -> anyhow::Result<Vec<(String, bool, String)>> {
        let wrong = |problem: &str| Err(usage_error(format!("{}: {problem}", file.display())));
        if check.sends.is_none() && check.not_sends.is_none() {
            return wrong(&text!("context-test-no-claim", touched = check.touched));
        }
        if check.touched.contains(char::is_whitespace) {
            return wrong(&text!("context-test-blanks", touched = check.touched));
        }
        let touched = check.touched.trim_start_matches("./");
        // The slash makes the word a path, whatever the file's name.
        let assembly = self
            .build_next_request(ToolProtocol::Native, &format!("Look at ./{touched}"))
            .await?;
        let documents: Vec<String> = assembly
            .request
            .segments
            .iter()
            .filter(|segment| segment.layer == Layer::Documents)
            .map(|segment| segment.entry.message.joined_text())
            .collect();
        let outcome = |document: &String, wanted: bool| {
            let heading = format!("# {}", document.trim_start_matches("./"));
            let sent = documents
                .iter()
                .any(|text| text.lines().any(|line| line == heading));
            let verb = if wanted {
                text!("context-test-sends")
            } else {
                text!("context-test-does-not-send")
            };
            let missing = !self.project.root.join(document).is_file();
            let found = match (sent, missing) {
                (true, _) => text!("context-test-sent"),
                (false, true) => text!("context-test-no-file"),
                (false, false) => text!("context-test-not-sent"),
            };
            (
                format!("{touched} {verb} {document}"),
                sent == wanted,
                found.to_owned(),
            )
        };
        let sends = check.sends.iter().map(|document| outcome(document, true));
        Ok(sends
            .chain(
                check
                    .not_sends
                    .iter()
                    .map(|document| outcome(document, false)),
            )
            .collect())
    }

    async fn check_prefix(&self, check: &PrefixCheck) -> anyhow::Result<(String, bool, String)> {
        let Assembly { request, .. } = self.build_next_request(check.protocol, "Hello.").await?;
        let layer_tokens = |layer: Layer| {
            let held = request
                .segments
                .iter()
                .filter(move |segment| segment.layer == layer);
            held.map(|segment| u64::from(segment.entry.tokens))
                .sum::<u64>()
        };
        let parts = [
            layer_tokens(Layer::System),
            u64::from(request.tools.tokens),
            layer_tokens(Layer::Documents),
        ];
        let tokens = parts.iter().sum::<u64>();
        let [system, tools, documents] = parts.map(format_thousands);
        let protocol = match check.protocol {
            ToolProtocol::Native => "native",
            ToolProtocol::Xml => "xml",
            ToolProtocol::React => "react",
        };
        Ok((
            text!(
                "context-test-prefix",
                limit = format_thousands(check.max_tokens),
                protocol
            ),
            tokens <= check.max_tokens,
            text!(
                "context-test-prefix-parts",
                tokens = format_thousands(tokens),
                system,
                tools,
                documents
            ),
        ))
    }

    /// Builds the first request of a conversation that begins with the prompt `words`.
    async fn build_next_request(
        &self,
        protocol: ToolProtocol,
        words: &str,
    ) -> anyhow::Result<Assembly> {
        let mut settings = self.settings.clone();
        settings.config.providers.insert(
            PROVIDER.to_owned(),
            ProviderConfig::new(Api::OpenaiChat, "http://localhost/v1"),
        );
        let model = ModelConfig {
            context_window: Some(CONTEXT_WINDOW),
            tool_protocol: Some(protocol),
            ..ModelConfig::default()
        };
        settings.config.models.insert(MODEL.to_owned(), model);
        let args = RunArgs {
            model: Some(MODEL.to_owned()),
            resume: Some(PROVIDER.to_owned()),
            ..RunArgs::default()
        };
        let plan = run::lower_args(&args, &settings, self.project.clone(), None)?;
        let store = settings.open_store()?;
        let id = MessageId::from_hash(ContentHash::from_content(words.as_bytes()));
        let message = Message::from_text(id, Role::User, words, Timestamp::UNIX_EPOCH)
            .with_origin(Origin::User);
        let history = (
            next::unstored_conversation(ConversationId::new(PROVIDER), 1),
            vec![message],
        );
        let mut session = settings
            .build_agent()
            .open_for_inspection(plan, store, history, InspectionMode::AsTrusted)
            .await?;
        Ok(session.preview_request()?)
    }

    #[cfg(feature = "lab")]
    fn check_replay(&self, check: &ReplayCheck) -> anyhow::Result<(String, bool, String)> {
        let shown = check.conversation.display();
        let file = self.project.root.join(&check.conversation);
        let causes = super::replay::find_break_causes(&file, &self.settings)?;
        let most = check.breaks.or(if check.causes.is_some() {
            None
        } else {
            Some(0)
        });
        let allowed = |cause: &Cause| {
            check
                .causes
                .as_ref()
                .is_none_or(|allowed| allowed.contains(cause))
        };
        let holds = most.is_none_or(|most| causes.len() <= most) && causes.iter().all(allowed);
        let names = |causes: &[Cause]| {
            let mut names: Vec<_> = causes.iter().map(output::localize_text).collect();
            names.sort();
            names.dedup();
            output::join_names(&names)
        };
        let limit = most.map_or_else(String::new, |most| {
            text!("context-test-breaks-at-most", most)
        });
        let only = check.causes.as_deref().map_or_else(String::new, |causes| {
            text!("context-test-breaks-causes", causes = names(causes))
        });
        let stated = text!("context-test-breaks", shown, limit, only);
        let found = match causes.as_slice() {
            [] => text!("context-test-no-break").to_owned(),
            all => text!(
                "context-test-found-breaks",
                count = all.len(),
                causes = names(all)
            ),
        };
        Ok((stated, holds, found))
    }

    #[cfg(not(feature = "lab"))]
    fn check_replay(&self, check: &ReplayCheck) -> anyhow::Result<(String, bool, String)> {
        let ReplayCheck {
            conversation,
            breaks: _breaks,
            causes: _causes,
        } = check;
        let root = self.project.root.display();
        let shown = conversation.display();
        Err(usage_error(text!("context-test-no-lab", root, shown)))
    }
}
