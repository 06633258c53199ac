//! Documentation pages: the book lists each of them, their links have targets, and their shell
//! samples run.
//!
//! A block that begins with ```` ```sh ```` or ```` ```console ```` is run in a project with a
//! conversation and a model that answers everything. The rest of that line can change this: a block
//! with `not-run: REASON` is skipped, and one with `exit N` must end with another exit code. A
//! block with `file: PATH` is written into the project first.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use haft_testkit::Script;
use haft_types::Api;

use crate::context::run_twelve_requests;
use crate::rig::{Rig, haft};
use crate::translations::{Outline, repository_root};

/// Languages that a block may name; a block without a language is an error.
const LANGUAGES: [&str; 14] = [
    "sh",
    "console",
    "toml",
    "json",
    "yaml",
    "markdown",
    "python",
    "rust",
    "rust,ignore",
    "text",
    "make",
    "lua",
    "elisp",
    "ini",
];

/// The replies of the model while samples run.
const ANSWERS: &str = "
replies:
  - when: { tool_offered: attempt_completion }
    tool_calls: [{ name: attempt_completion, arguments: { result: Done. } }]
  - when: {}
    text: 'docs: say what was done'
";

/// A block of code in a page.
struct Sample {
    place: String,
    language: String,
    /// The rest of the line after the language.
    mark: String,
    text: String,
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "md")
}

fn pages_in(folder: &Path) -> Vec<PathBuf> {
    let mut pages: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| is_page(path))
        .collect();
    pages.sort();
    pages
}

/// Returns the README and every page in docs.
fn all_pages() -> Vec<PathBuf> {
    let mut pages = vec![repository_root().join("README.md")];
    pages.extend(pages_in(&repository_root().join("docs")));
    pages
}

fn samples(page: &Path) -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut fence = "";
    for (at, line) in fs::read_to_string(page).unwrap().lines().enumerate() {
        let ticks = line.bytes().take_while(|byte| *byte == b'`').count();
        if fence.is_empty() && ticks >= 3 {
            fence = ["```", "````"][usize::from(ticks > 3)];
            let (language, mark) = line[ticks..]
                .split_once(' ')
                .unwrap_or((&line[ticks..], ""));
            let place = format!("{}:{}", page.display(), at + 1);
            samples.push(Sample {
                place,
                language: language.into(),
                mark: mark.into(),
                text: String::new(),
            });
        } else if !fence.is_empty() && line == fence {
            fence = "";
        } else if !fence.is_empty() {
            let sample = samples.last_mut().unwrap();
            sample.text += line;
            sample.text.push('\n');
        }
    }
    assert!(
        fence.is_empty(),
        "{}: a block is not closed",
        page.display()
    );
    samples
}

impl Sample {
    /// Returns the shell input: a whole `sh` block, or the lines of a `console` block that have a
    /// prompt.
    fn script(&self) -> Option<String> {
        let typed = match self.language.as_str() {
            "sh" => self.text.clone(),
            "console" => self
                .text
                .lines()
                .filter_map(|line| line.strip_prefix("$ "))
                .map(|line| format!("{line}\n"))
                .collect(),
            _ => return None,
        };
        (!self.mark.starts_with("not-run")).then_some(typed)
    }

    fn expected_exit(&self) -> i32 {
        self.mark
            .strip_prefix("exit ")
            .map_or(0, |code| code.parse().unwrap())
    }
}

/// A project with a git history, uncommitted changes, and a conversation that changed files.
struct SampleProject {
    rig: Rig,
    bin: tempfile::TempDir,
    conversation: String,
    /// Ids shown on pages, each with the id in this project.
    ids: Vec<(&'static str, String)>,
}

impl SampleProject {
    fn new() -> Self {
        let (rig, _) = run_twelve_requests(Api::Anthropic);
        let export = rig.export();
        let conversation = export["id"]
            .as_str()
            .or(export["conversation_id"].as_str())
            .unwrap()
            .to_owned();
        let messages = export["messages"].as_array().unwrap();
        let id = |role: &str| {
            let message = messages.iter().find(|message| message["role"] == role);
            let message = message.unwrap_or_else(|| panic!("no message of {role}"));
            message["id"]
                .as_str()
                .or(message["message_id"].as_str())
                .unwrap()[..8]
                .to_owned()
        };
        let ids = vec![
            ("25b80285", conversation.clone()),
            ("d5d3bc96", id("tool")),
            ("7c9e21f0", id("user")),
        ];
        let rig = rig.with_script(
            Script::from_yaml("answers", ANSWERS).unwrap(),
            Api::Anthropic,
        );
        let bin = tempfile::tempdir().unwrap();
        symlink(haft(), bin.path().join("haft")).unwrap();
        let desk = Self {
            rig,
            bin,
            conversation,
            ids,
        };
        let (code, said) = desk.run(
            "git init -q -b main && git config user.email a@example.com && git config user.name A
             mkdir -p src tests ~/src/library/docs && echo '# Retries' > ~/src/library/docs/retries.md
             printf 'def login(password):\n    return bool(password)\n' > src/login.py
             for n in 1 2 3; do echo $n >> notes.txt; git add -A; git commit -qm \"change $n\"; done
             mkdir -p .haft/agents && printf -- '---\\nname: reviewer\\ndescription: Reads code\\n---\\nYou review code.\\n' > .haft/agents/reviewer.md
             haft conversations export $(haft conversations current --json | grep -o '\"id\": *\"[^\"]*' | cut -d'\"' -f4) > tests/long-session.json
             echo 'x = 1' >> src/login.py; git add src/login.py; echo 'y = 2' >> src/login.py",
        );
        assert_eq!(code, 0, "{said}");
        desk
    }

    /// Returns the exit code and the whole output.
    fn run(&self, script: &str) -> (i32, String) {
        let plain = self.rig.command(&[]);
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("timeout");
        command
            .args(["120", "bash", "-eo", "pipefail", "-c", script])
            .current_dir(self.rig.project())
            .env_clear();
        command.envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command.env("PATH", format!("{}:{path}", self.bin.path().display()));
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap_or(-1),
            String::from_utf8_lossy(&said).into_owned(),
        )
    }

    /// Returns the script with the ids of this project.
    fn replace_ids(&self, script: &str) -> String {
        let known = self
            .ids
            .iter()
            .fold(script.to_owned(), |script, (shown, real)| {
                script.replace(shown, real)
            });
        known.replace(" ID", &format!(" {}", self.conversation))
    }
}

/// Runs the samples of a page in order, and returns those that did not end as the page shows.
fn failed_samples(page: &Path) -> Vec<String> {
    let samples = samples(page);
    if samples.iter().all(|sample| sample.script().is_none()) {
        return Vec::new();
    }
    let desk = SampleProject::new();
    for sample in &samples {
        if let Some(path) = sample.mark.strip_prefix("file: ") {
            desk.rig.write(path, &sample.text);
        }
    }
    assert_eq!(desk.run("haft trust").0, 0);
    let failed = samples.iter().filter_map(|sample| {
        let script = desk.replace_ids(&sample.script()?);
        assert_eq!(
            desk.run(&format!("haft conversations use {}", desk.conversation))
                .0,
            0
        );
        let (code, said) = desk.run(&script);
        let expected = sample.expected_exit();
        (code != expected).then(|| {
            format!(
                "{}: exit {code}, not {expected}\n{script}---\n{said}",
                sample.place
            )
        })
    });
    failed.collect()
}

#[test]
fn page_samples_run() {
    let pages = all_pages();
    let failed: Vec<String> = std::thread::scope(|scope| {
        let chunks: Vec<_> = (0..4).map(|n| pages.iter().skip(n).step_by(4)).collect();
        let workers: Vec<_> = chunks
            .into_iter()
            .map(|chunk| {
                scope.spawn(move || {
                    chunk
                        .flat_map(|page| failed_samples(page))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect()
    });
    assert!(
        failed.is_empty(),
        "{} samples:\n{}",
        failed.len(),
        failed.join("\n\n")
    );
}

#[test]
fn page_blocks_name_a_language_and_a_known_mark() {
    let mut run = 0;
    for sample in all_pages().iter().flat_map(|page| samples(page)) {
        let place = &sample.place;
        assert!(
            LANGUAGES.contains(&sample.language.as_str()),
            "{place}: `{}` is no language",
            sample.language
        );
        let mark = sample.mark.as_str();
        let reason = ["not-run: ", "not-config: ", "file: ", "exit "]
            .iter()
            .find_map(|begin| mark.strip_prefix(begin));
        assert!(
            mark.is_empty() || reason.is_some_and(|reason| !reason.is_empty()),
            "{place}: `{mark}` is not understood"
        );
        if sample.language == "json" && mark.is_empty() {
            let read = serde_json::from_str::<serde_json::Value>(&sample.text);
            assert!(read.is_ok(), "{place}: {}", read.unwrap_err());
        }
        run += usize::from(sample.script().is_some());
    }
    assert!(run >= 30, "only {run} samples are run");
}

#[test]
fn page_links_have_targets() {
    let mut pages = all_pages();
    pages.extend(
        ["ARCHITECTURE.md", "CONTRIBUTING.md", "bench/README.md"]
            .map(|page| repository_root().join(page)),
    );
    let mut wrong = Vec::new();
    for page in pages {
        let outline = Outline::read(&page);
        for link in outline.links() {
            let (path, heading) = link
                .split_once('#')
                .map_or((link, None), |(path, heading)| (path, Some(heading)));
            let target = if path.is_empty() {
                page.clone()
            } else {
                page.parent().unwrap().join(path)
            };
            let known = || {
                heading.is_none_or(|heading| {
                    Outline::read(&target)
                        .anchors
                        .iter()
                        .any(|known| known == heading)
                })
            };
            if !target.exists() || is_page(&target) && !known() {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn book_summary_lists_every_page_once() {
    let summary = Outline::read(&repository_root().join("docs/SUMMARY.md"));
    let listed_pages: Vec<_> = summary.links().collect();
    let once: BTreeSet<_> = listed_pages.iter().copied().collect();
    assert_eq!(once.len(), listed_pages.len(), "a page is listed twice");
    for page in pages_in(&repository_root().join("docs")) {
        let name = page.file_name().unwrap().to_str().unwrap();
        assert!(
            name == "SUMMARY.md" || once.contains(name),
            "docs/SUMMARY.md does not list {name}"
        );
    }
}

/// A user who has only the binary cannot open a path of the repository, but can open a URL.
#[test]
fn page_references_in_messages_are_urls() {
    let address = "https://github.com/haft-agent/haft/blob/main/";
    let mut said = vec![repository_root().join("docs/commands.md")];
    for crate_name in ["haft", "serve", "tui"] {
        for language in ["en", "zh-CN"] {
            let folder = repository_root()
                .join(format!("crates/frontends/{crate_name}/messages/{language}"));
            said.extend(
                fs::read_dir(folder)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
    let mut named = 0;
    for file in said {
        let text = fs::read_to_string(&file).unwrap();
        for (at, _) in text.match_indices("docs/") {
            let rest = &text[at..];
            let Some(end) = rest
                .find(".md")
                .filter(|end| !rest[..*end].contains(char::is_whitespace))
            else {
                continue;
            };
            assert!(
                text[..at].ends_with(address),
                "{}: {}",
                file.display(),
                &rest[..end + 3]
            );
            assert!(
                repository_root().join(&rest[..end + 3]).is_file(),
                "{}: {}",
                file.display(),
                &rest[..end + 3]
            );
            named += 1;
        }
    }
    assert!(named > 3, "{named} pages are named");
}
