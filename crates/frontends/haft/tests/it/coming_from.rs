//! What users of other agents type on the first day: every row of `docs/coming-from.md` is tried, and the page is made of the rows.
//!
//! `UPDATE_DOCS=1 cargo test -p haft --test it coming_from` writes the page anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use haft_messages::Phrases;
use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde::Deserialize;

use crate::rig::Rig;
use crate::terminal::Terminal;

/// The smallest picture there is.
const PIXEL: &[u8] = include_bytes!("fixtures/coming_from/pixel.png");

/// How few rows an agent may have.
const LEAST: usize = 30;

/// One agent: a file of rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Agent {
    name: String,
    intro: String,
    row: Vec<Row>,
}

/// What is typed there, what to do here, and how that is tried.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    you: String,
    haft: String,
    /// Runs of haft that come first.
    #[serde(default)]
    before: Vec<Vec<String>>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// A picture in the project.
    image: Option<String>,
    /// Arguments of a run without a terminal.
    args: Option<Vec<String>>,
    #[serde(default)]
    stdin: String,
    /// Arguments at a terminal.
    terminal: Option<Vec<String>>,
    /// What is then typed there.
    #[serde(default)]
    keys: String,
    #[serde(default)]
    exit: i32,
    /// What stands on the screen, or in the output.
    says: Option<String>,
    /// All of standard output.
    out: Option<String>,
    /// What the last request holds.
    sent: Option<String>,
    /// What it does not hold.
    unsent: Option<String>,
}

fn agents() -> Vec<Agent> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/coming_from");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    let read = |path: &std::path::PathBuf| toml::from_str(&fs::read_to_string(path).unwrap());
    paths.iter().map(|path| read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).collect()
}

fn refs(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

impl Row {
    /// Whether a row that names one command runs that one: `add` is not tried by a `list`. A shorter name of a command will do.
    fn tries_what_it_names(&self) -> bool {
        let Some(line) = self.haft.strip_prefix("`haft ").and_then(|rest| rest.strip_suffix('`')) else { return true };
        let is_word = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
        let named: Vec<_> = line.split(' ').take_while(is_word).collect();
        let mut runs = self.args.iter().chain(&self.terminal).chain(&self.before);
        line.contains('`')
            || runs.any(|run| {
                let mut words = run.iter().map(String::as_str).take_while(|word| *word != "--help");
                let whole = run.iter().all(|word| word != "--help");
                let same = |name: &&str| words.next().map_or(!whole, |word| name.starts_with(word));
                named.iter().all(same)
            })
    }

    /// What differs from what the row promises.
    fn tried(&self) -> Result<(), String> {
        if !self.tries_what_it_names() {
            return Err(format!("{} is not what runs", self.haft));
        }
        let rig = Rig::new(Api::Anthropic, Script::replies(std::iter::repeat_n(Reply::text("Done."), 8)).unwrap());
        for arguments in &self.before {
            assert_eq!(rig.run(&refs(arguments)).code(), 0, "{arguments:?}");
        }
        for (name, content) in &self.files {
            rig.write(name, content);
        }
        if let Some(name) = &self.image {
            rig.write(name, PIXEL);
        }
        // Files that are obeyed are trusted by somebody who has seen them.
        assert_eq!(rig.run(&["trust"]).code(), 0);
        match (&self.args, &self.terminal) {
            (Some(arguments), None) => self.run(&rig, arguments)?,
            (None, Some(arguments)) => self.type_in(&rig, arguments),
            _ => return Err("tries nothing, or two things".to_owned()),
        }
        let requests = rig.server.generations();
        let last = requests.last().map(|request| request.json().unwrap().to_string()).unwrap_or_default();
        match (&self.sent, &self.unsent) {
            (Some(part), _) if !last.contains(part.as_str()) => Err(format!("{part:?} was not sent: {last}")),
            (_, Some(part)) if last.is_empty() || last.contains(part.as_str()) => {
                Err(format!("{part:?} was sent: {last}"))
            }
            _ => Ok(()),
        }
    }

    fn run(&self, rig: &Rig, arguments: &[String]) -> Result<(), String> {
        let input = rig.home().join("input");
        fs::write(&input, &self.stdin).unwrap();
        let mut command = rig.command(&refs(arguments));
        if !self.stdin.is_empty() {
            command.stdin(fs::File::open(&input).unwrap());
        }
        let ran = crate::rig::Ran(command.output().unwrap());
        let all = format!("{}{}", ran.stdout(), ran.stderr());
        if ran.code() != self.exit {
            return Err(format!("exit code {}: {all}", ran.code()));
        }
        if let Some(out) = self.out.as_ref().filter(|out| **out != ran.stdout()) {
            return Err(format!("not {out:?}: {:?}", ran.stdout()));
        }
        match &self.says {
            Some(part) if !all.contains(part.as_str()) => Err(format!("{part:?} is not said: {all}")),
            _ => Ok(()),
        }
    }

    fn type_in(&self, rig: &Rig, arguments: &[String]) {
        let mut terminal = Terminal::start(rig, &refs(arguments), (110, 60));
        if !self.keys.is_empty() {
            terminal.until_text("> ");
            terminal.press(&self.keys);
        }
        terminal.until_text(self.says.as_deref().expect("something to wait for"));
    }
}

/// Tries every row of the agent with this number; `HAFT_ROW` names part of the only row that matters.
fn try_rows(number: usize) {
    let Agent { name, row, .. } = agents().swap_remove(number);
    let only = std::env::var("HAFT_ROW").unwrap_or_default();
    let tried = row.iter().filter(|row| row.you.contains(&only)).map(|row| {
        let tried = std::panic::catch_unwind(|| row.tried()).unwrap_or_else(|_| Err("see above".to_owned()));
        tried.err().map(|why| format!("{name}, {}: {why}", row.you))
    });
    let failed: Vec<_> = tried.flatten().collect();
    assert!(failed.is_empty(), "{} rows:\n{}", failed.len(), failed.join("\n\n"));
}

#[test]
fn from_claude_code() {
    try_rows(0);
}

#[test]
fn from_codex() {
    try_rows(1);
}

#[test]
fn from_opencode() {
    try_rows(2);
}

#[test]
fn from_goose() {
    try_rows(3);
}

#[test]
fn from_aider() {
    try_rows(4);
}

#[test]
fn from_auto_coder() {
    try_rows(5);
}

/// The heading of the page in both languages, and those of its columns.
const ENGLISH: (&str, &str) = (
    "# Coming from another agent\n\nWhat you type there on the first day, and what to do here. Every row is tried by a test; \
     the page is made of `crates/frontends/haft/tests/it/fixtures/coming_from`.\n\nConversations of other agents can be taken \
     over: `haft conversations import --help`.\n",
    "| there | haft |",
);
const CHINESE: (&str, &str) = (
    "# 从其他代理转来\n\n[English](../coming-from.md) | 简体中文\n\n在那边第一天会输入什么，在这里怎样做。每一行都经过测试；本页由 \
     `crates/frontends/haft/tests/it/fixtures/coming_from` 生成。\n\n其他代理的会话可以导入：`haft conversations import --help`。\n",
    "| 那边 | haft |",
);

/// The page, with each cell as it is worded there.
fn page((heading, columns): (&str, &str), cell: impl Fn(&str) -> String) -> String {
    let mut page = heading.to_owned();
    for agent in &agents() {
        assert!(agent.row.len() >= LEAST, "{}: {} rows", agent.name, agent.row.len());
        write!(page, "\n## {}\n\n{}\n\n{columns}\n| --- | --- |\n", agent.name, cell(&agent.intro)).unwrap();
        for row in &agent.row {
            writeln!(page, "| {} | {} |", cell(&row.you), cell(&row.haft)).unwrap();
        }
    }
    page
}

/// A cell in Chinese. What is nothing but names is the same.
fn in_chinese(phrases: &Phrases, cell: &str) -> String {
    let is_text = cell.split('`').step_by(2).any(|part| part.chars().any(char::is_alphabetic));
    let said = phrases.said(cell);
    assert!(said.is_some() || !is_text, "not in zh-CN.txt: {cell}");
    said.unwrap_or_else(|| cell.to_owned()).replace("`, `", "`、`").replace("`; `", "`；`")
}

#[test]
fn a_row_that_runs_another_command_is_noticed() {
    let tries = |haft: &str, args: &str| {
        let row = format!("you = ''\nhaft = '{haft}'\nargs = {args}");
        toml::from_str::<Row>(&row).unwrap().tries_what_it_names()
    };
    assert!(!tries("`haft permissions add \"Bash(git status)\"`", r#"["permissions", "list"]"#));
    assert!(!tries("`haft permissions add allow \"Bash(ls)\"`", r#"["permissions", "add", "Bash(ls)"]"#));
    assert!(tries("`haft permissions add \"Bash(git status)\"`", r#"["permissions", "add", "Bash(git status)"]"#));
    assert!(tries("`haft mcp add files -- npx server`", r#"["mcp", "add", "--help"]"#));
    assert!(tries("`haft conversations list`", r#"["conversation", "list"]"#));
    assert!(tries("`haft doctor`, `haft config path`", r#"["config", "path"]"#));
}

#[test]
fn the_page_is_made_of_the_rows() {
    assert_eq!(agents().len(), 6);
    let phrases = Phrases::of(&[include_str!("fixtures/coming_from/zh-CN.txt")]);
    let pages = [
        ("docs/coming-from.md", page(ENGLISH, str::to_owned)),
        ("docs/zh-CN/coming-from.md", page(CHINESE, |cell| in_chinese(&phrases, cell))),
    ];
    for (name, page) in pages {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(name);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, &page).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap_or_default(), page, "run it with UPDATE_DOCS=1");
    }
}
