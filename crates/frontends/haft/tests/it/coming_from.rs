//! Tests every row of `docs/coming-from.md`, and generates the page from the rows.
//!
//! The left column is typed word for word; the text comes from the cell itself. A command line runs
//! in a shell where the other agent's name starts haft, a slash command is typed at haft's terminal,
//! a flag is added to a run, and a file gets the path in the cell. Each must do what the row says,
//! or haft must answer with the advice in the right column, which is tried as well. The few texts
//! that cannot be typed are listed with the reason in `left_column_is_typed_except_for_files`.
//!
//! `UPDATE_DOCS=1 cargo test --workspace --test it coming_from` regenerates the page.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use haft_messages::Language;
use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde::Deserialize;

use crate::rig::Rig;
use crate::terminal::Terminal;

/// A PNG image of one pixel.
const PIXEL: &[u8] = include_bytes!("fixtures/coming_from/pixel.png");

/// The minimum number of rows per agent.
const MIN_ROWS: usize = 15;

/// A fixture file: one agent and its rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Agent {
    name: String,
    intro: String,
    /// The Chinese introduction.
    intro_zh: String,
    row: Vec<Row>,
}

/// A row of the page, and how to test it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// The left column: the other agent's command, flag, key, or file.
    you: String,
    /// The left column in Chinese, if it differs.
    you_zh: Option<String>,
    /// The right column: haft's equivalent.
    haft: String,
    /// The right column in Chinese, if it differs.
    haft_zh: Option<String>,
    /// Values for the placeholders (capitals, dots) in the left column.
    #[serde(default)]
    values: BTreeMap<String, String>,
    /// Text that each command of the left column shows at the terminal, if it differs from `says`.
    #[serde(default)]
    shows: Vec<String>,
    /// Runs of haft before the test.
    #[serde(default)]
    before: Vec<Vec<String>>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// The path of an image to create in the project.
    image: Option<String>,
    /// Arguments of a run without a terminal.
    args: Option<Vec<String>>,
    #[serde(default)]
    stdin: String,
    /// Arguments at a terminal.
    terminal: Option<Vec<String>>,
    #[serde(default)]
    exit: i32,
    /// Text expected on the screen or in the output.
    says: Option<String>,
    /// The whole expected standard output.
    out: Option<String>,
    /// Text that the last request must contain.
    sent: Option<String>,
    /// Text that the last request must not contain.
    unsent: Option<String>,
}

fn load_agents() -> Vec<Agent> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/coming_from");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    let read = |path: &std::path::PathBuf| toml::from_str(&fs::read_to_string(path).unwrap());
    paths
        .iter()
        .map(|path| read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        .collect()
}

fn as_strs(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

/// How to enter a text from the left column.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    /// At haft's terminal.
    Input,
    /// In a shell, as a whole command line.
    CommandLine,
    /// In a shell, behind `haft`.
    Flags,
    /// Not typed: the text is the path of a project file.
    File,
}

impl Form {
    fn from_text(text: &str) -> Self {
        let is_file = |text: &str| {
            let ending = Path::new(text).extension().is_some_and(|ending| {
                ["md", "toml", "json", "yaml", "yml"]
                    .iter()
                    .any(|known| ending.eq_ignore_ascii_case(known))
            });
            !text.contains(' ') && (ending || text.starts_with('.') || text.starts_with('~'))
        };
        match text.chars().next() {
            Some('/' | '!' | '@' | '#') => Self::Input,
            Some('-') => Self::Flags,
            _ if is_file(text) => Self::File,
            _ => Self::CommandLine,
        }
    }
}

/// Returns the texts between backticks in a cell, without Markdown escapes.
fn quoted_texts(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(|text| text.replace("\\|", "|"))
        .collect()
}

impl Row {
    /// Returns true if a row that names one command also runs that command: running `list` does not
    /// test `add`. An abbreviated command name counts.
    fn runs_the_named_command(&self) -> bool {
        let Some(line) = self
            .haft
            .strip_prefix("`haft ")
            .and_then(|rest| rest.strip_suffix('`'))
        else {
            return true;
        };
        let is_word = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
        let named: Vec<_> = line.split(' ').take_while(is_word).collect();
        let mut runs = self.args.iter().chain(&self.terminal).chain(&self.before);
        line.contains('`')
            || runs.any(|run| {
                let mut words = run
                    .iter()
                    .map(String::as_str)
                    .take_while(|word| *word != "--help");
                let whole = run.iter().all(|word| word != "--help");
                let same = |name: &&str| words.next().map_or(!whole, |word| name.starts_with(word));
                named.iter().all(same)
            })
    }

    /// Replaces the placeholders in a cell with their values.
    fn fill_placeholders(&self, text: &str) -> String {
        let values = self
            .values
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        values
            .chain([("…", "go")])
            .fold(text.to_owned(), |text, (name, value)| {
                text.replace(name, value)
            })
    }

    /// Types every quoted text of the left column.
    fn type_left_column(&self) -> Result<(), String> {
        let texts = quoted_texts(&self.you);
        let tried = texts
            .iter()
            .enumerate()
            .filter_map(|(index, text)| self.type_one(text, index).err());
        let failed: Vec<_> = tried.collect();
        if failed.is_empty() {
            Ok(())
        } else {
            Err(failed.join("\n"))
        }
    }

    fn type_one(&self, text: &str, index: usize) -> Result<(), String> {
        let form = Form::from_text(text);
        let typed = self.fill_placeholders(text);
        let within = |why| format!("`{typed}`: {why}");
        if self.untyped_reason(text).is_some() {
            return Ok(());
        }
        match form {
            Form::File => Err(within("is not among the files of the row".to_owned())),
            Form::Input => self.type_input(&typed, index).map_err(within),
            Form::Flags if self.terminal.is_some() => self
                .type_line(&format!("haft {typed}"), index)
                .map_err(within),
            Form::Flags => self
                .run_line(&format!("haft {typed} -p go"))
                .map_err(within),
            Form::CommandLine if self.terminal.is_some() => {
                self.type_line(&typed, index).map_err(within)
            }
            Form::CommandLine => self.run_line(&typed).map_err(within),
        }
    }

    /// Returns the reason why a text of the left column is not typed, or `None` if it is typed.
    fn untyped_reason(&self, text: &str) -> Option<&'static str> {
        let typed = self.fill_placeholders(text);
        if self.files.values().any(|content| content.contains(&typed)) {
            return Some("text in a file of the row");
        }
        if Form::from_text(text) != Form::File {
            return None;
        }
        if self.files.contains_key(&typed) {
            return Some("the path of a file of the row");
        }
        let reason = "a file of the other agent; the row has a command instead";
        self.is_outside(&typed).then_some(reason)
    }

    /// Returns true if haft does not read this file of the other agent, and the row names a command
    /// to use instead.
    fn is_outside(&self, file: &str) -> bool {
        (file.starts_with("~/") || !self.files.contains_key(file))
            && self.haft.contains("`haft config")
    }

    /// Returns true if the output recommends the first command of the right column, with or without
    /// `haft` before it.
    fn is_advice(&self, output: &str) -> bool {
        let named = quoted_texts(&self.haft).into_iter().next();
        let bare = |named: &str| {
            let bare = named
                .strip_prefix("haft run ")
                .or_else(|| named.strip_prefix("haft "))
                .unwrap_or(named);
            bare.to_owned()
        };
        named.is_some_and(|named| {
            output.contains(&bare(&named))
                || output.contains(&bare(&self.fill_placeholders(&named)))
        })
    }

    /// Returns the text to wait for after typing. It must not be part of the echoed input.
    fn expected_text(&self, typed: &str, index: usize) -> String {
        let shown = self
            .shows
            .get(index)
            .or(self.says.as_ref())
            .expect("something to wait for")
            .clone();
        assert!(
            !typed.contains(&shown),
            "{typed:?} is shown as it is typed; `shows` needs more than {shown:?}"
        );
        shown
    }

    fn type_input(&self, text: &str, index: usize) -> Result<(), String> {
        let rig = self.prepare_rig();
        let mut terminal = Terminal::start(
            &rig,
            &as_strs(self.terminal.as_deref().unwrap_or_default()),
            (110, 60),
        );
        terminal.until_text("> ");
        terminal.press(&format!("{text}\r"));
        wait_until_shown(&terminal, &self.expected_text(text, index))?;
        self.compare_request(&rig)
    }

    /// Presses the keys that the left column names, each in a terminal of its own.
    fn press_keys(&self) -> Result<(), String> {
        if self.you.contains('`') {
            return Ok(());
        }
        let mut failed = Vec::new();
        for (index, name) in self.you.split(", ").enumerate() {
            let keys = name.split(' ').map(key_bytes).collect::<Option<Vec<_>>>();
            let keys = keys.ok_or_else(|| format!("{name} is not a key"))?;
            let rig = self.prepare_rig();
            let mut terminal = Terminal::start(
                &rig,
                &as_strs(self.terminal.as_deref().unwrap_or_default()),
                (110, 60),
            );
            terminal.until_text("> ");
            for key in &keys {
                let before = terminal.text();
                terminal.press(key);
                terminal.until("an answer to the key", |screen| screen.contents() != before);
            }
            let shown = wait_until_shown(&terminal, &self.expected_text(name, index));
            failed.extend(shown.err().map(|why| format!("{name}: {why}")));
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(failed.join("\n"))
        }
    }

    fn type_line(&self, line: &str, index: usize) -> Result<(), String> {
        let rig = self.prepare_rig();
        let terminal = Terminal::start_command(&shell_command(&rig, line), (110, 60));
        wait_until_shown(&terminal, &self.expected_text(line, index))
    }

    fn run_line(&self, line: &str) -> Result<(), String> {
        let rig = self.prepare_rig();
        let mut command = shell_command(&rig, line);
        let input = rig.home().join("input");
        fs::write(&input, &self.stdin).unwrap();
        if !self.stdin.is_empty() {
            command.stdin(fs::File::open(&input).unwrap());
        }
        let ran = crate::rig::Ran(command.output().unwrap());
        let all = format!("{}{}", ran.stdout(), ran.stderr());
        let is_told = ran.code() == 2 && self.is_advice(&all);
        if is_told {
            Ok(())
        } else {
            self.compare_result(&ran)
                .and_then(|()| self.compare_request(&rig))
        }
    }

    /// Tests the row. The error says what differs from the page.
    fn test_row(&self) -> Result<(), String> {
        if !self.runs_the_named_command() {
            return Err(format!("{} is not what runs", self.haft));
        }
        self.type_left_column()?;
        self.press_keys()?;
        match (&self.args, &self.terminal) {
            (Some(arguments), None) => {
                let rig = self.prepare_rig();
                self.run_arguments(&rig, arguments)?;
                self.compare_request(&rig)
            }
            (None, Some(_)) => match quoted_texts(&self.haft)
                .first()
                .filter(|line| line.starts_with("haft"))
            {
                Some(line) => self.type_line(&self.fill_placeholders(line), usize::MAX),
                // The right column has no command line, or is typed at the terminal.
                None => Ok(()),
            },
            _ => Err("tries nothing, or two things".to_owned()),
        }
    }

    /// Creates a home and a project with the row's files, and does the runs in `before`.
    fn prepare_rig(&self) -> Rig {
        let rig = Rig::new(
            Api::Anthropic,
            Script::replies(std::iter::repeat_n(Reply::text("Done."), 8)).unwrap(),
        );
        for arguments in &self.before {
            assert_eq!(rig.run(&as_strs(arguments)).code(), 0, "{arguments:?}");
        }
        for (name, content) in &self.files {
            rig.write(name, content);
        }
        if let Some(name) = &self.image {
            rig.write(name, PIXEL);
        }
        // Instructions and hooks take effect only in a trusted folder.
        assert_eq!(rig.run(&["trust"]).code(), 0);
        rig
    }

    /// Compares the last request with `sent` and `unsent`.
    fn compare_request(&self, rig: &Rig) -> Result<(), String> {
        let requests = rig.server.generation_requests();
        let last = requests
            .last()
            .map(|request| request.json().unwrap().to_string())
            .unwrap_or_default();
        match (&self.sent, &self.unsent) {
            (Some(part), _) if !last.contains(part.as_str()) => {
                Err(format!("{part:?} was not sent: {last}"))
            }
            (_, Some(part)) if last.is_empty() || last.contains(part.as_str()) => {
                Err(format!("{part:?} was sent: {last}"))
            }
            _ => Ok(()),
        }
    }

    fn run_arguments(&self, rig: &Rig, arguments: &[String]) -> Result<(), String> {
        let input = rig.home().join("input");
        fs::write(&input, &self.stdin).unwrap();
        let mut command = rig.command(&as_strs(arguments));
        command.env("PATH", path_with_agents(rig));
        if !self.stdin.is_empty() {
            command.stdin(fs::File::open(&input).unwrap());
        }
        self.compare_result(&crate::rig::Ran(command.output().unwrap()))
    }

    /// Compares the exit code and the output of a run with the row.
    fn compare_result(&self, ran: &crate::rig::Ran) -> Result<(), String> {
        let all = format!("{}{}", ran.stdout(), ran.stderr());
        if ran.code() != self.exit {
            return Err(format!("exit code {}: {all}", ran.code()));
        }
        if let Some(out) = self.out.as_ref().filter(|out| **out != ran.stdout()) {
            return Err(format!("not {out:?}: {:?}", ran.stdout()));
        }
        match &self.says {
            Some(part) if !all.contains(part.as_str()) => {
                Err(format!("{part:?} is not said: {all}"))
            }
            _ => Ok(()),
        }
    }
}

/// The bytes of a key, by its name.
fn key_bytes(name: &str) -> Option<String> {
    match name {
        "Esc" => Some("\u{1b}".to_owned()),
        "Shift-Tab" => Some("\u{1b}[Z".to_owned()),
        _ => {
            let letter = name
                .strip_prefix("Ctrl-")
                .filter(|letter| letter.len() == 1)?
                .bytes()
                .next()?;
            Some(char::from(letter & 0x1f).to_string())
        }
    }
}

/// Waits until the text is on the screen.
fn wait_until_shown(terminal: &Terminal, text: &str) -> Result<(), String> {
    let seen = std::panic::AssertUnwindSafe(|| terminal.until_text(text));
    std::panic::catch_unwind(seen)
        .map_err(|_| format!("{text:?} is not shown:\n{}", terminal.text()))
}

/// Returns a search path whose first folder links every agent's name to haft, with an `npx` that
/// never finds a package.
fn path_with_agents(rig: &Rig) -> String {
    let names = [
        "haft",
        "claude",
        "codex",
        "opencode",
        "goose",
        "aider",
        "auto-coder.run",
        "auto-coder.chat",
        "chat-auto-coder",
    ];
    let folder = rig.home().join("agents");
    fs::create_dir_all(&folder).unwrap();
    for link in names
        .map(|name| folder.join(name))
        .iter()
        .filter(|link| !link.exists())
    {
        std::os::unix::fs::symlink(crate::rig::haft(), link).unwrap();
    }
    let npx = folder.join("npx");
    fs::write(&npx, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&npx, fs::Permissions::from_mode(0o755)).unwrap();
    format!(
        "{}:{}",
        folder.display(),
        std::env::var("PATH").unwrap_or_default()
    )
}

/// Returns a shell command that runs `line` in the project; every agent's name starts haft.
fn shell_command(rig: &Rig, line: &str) -> Command {
    let plain = rig.command(&[]);
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .current_dir(rig.project())
        .env_clear();
    command.envs(
        plain
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command
        .env("PATH", path_with_agents(rig))
        .stdin(Stdio::null());
    command
}

/// Tests every row of one agent, or only the rows that contain `HAFT_ROW`.
fn test_rows(number: usize) {
    let Agent { name, row, .. } = load_agents().swap_remove(number);
    let only = std::env::var("HAFT_ROW").unwrap_or_default();
    let tried = row.iter().filter(|row| row.you.contains(&only)).map(|row| {
        let tried = std::panic::catch_unwind(|| row.test_row())
            .unwrap_or_else(|_| Err("see above".to_owned()));
        tried.err().map(|why| format!("{name}, {}: {why}", row.you))
    });
    let failed: Vec<_> = tried.flatten().collect();
    assert!(
        failed.is_empty(),
        "{} rows:\n{}",
        failed.len(),
        failed.join("\n\n")
    );
}

#[test]
fn claude_code_rows_work_in_haft() {
    test_rows(0);
}

#[test]
fn codex_rows_work_in_haft() {
    test_rows(1);
}

#[test]
fn opencode_rows_work_in_haft() {
    test_rows(2);
}

#[test]
fn goose_rows_work_in_haft() {
    test_rows(3);
}

#[test]
fn aider_rows_work_in_haft() {
    test_rows(4);
}

#[test]
fn auto_coder_rows_work_in_haft() {
    test_rows(5);
}

#[test]
fn left_column_is_typed_except_for_files() {
    let mut untyped = String::new();
    for agent in load_agents() {
        for row in &agent.row {
            for text in quoted_texts(&row.you) {
                if let Some(reason) = row.untyped_reason(&text) {
                    writeln!(untyped, "{}: {text}: {reason}", agent.name).unwrap();
                }
            }
        }
    }
    insta::assert_snapshot!(untyped, @r#"
    Claude Code: CLAUDE.md: the path of a file of the row
    Claude Code: @docs/style.md: text in a file of the row
    Claude Code: .claude/commands/fix.md: the path of a file of the row
    Claude Code: $ARGUMENTS: text in a file of the row
    Claude Code: .claude/agents/reviewer.md: the path of a file of the row
    Claude Code: .claude/skills/pdf/SKILL.md: the path of a file of the row
    Claude Code: .claude/settings.json: the path of a file of the row
    Claude Code: "deny": text in a file of the row
    codex: AGENTS.md: the path of a file of the row
    codex: ~/.codex/config.toml: a file of the other agent; the row has a command instead
    opencode: AGENTS.md: the path of a file of the row
    opencode: CLAUDE.md: the path of a file of the row
    opencode: opencode.json: a file of the other agent; the row has a command instead
    aider: .aider.conf.yml: a file of the other agent; the row has a command instead
    auto-coder: .autocoderrules/style.md: the path of a file of the row
    auto-coder: .autocoderagents/reviewer.md: the path of a file of the row
    auto-coder: .auto-coder/autocoderrules/style.md: the path of a file of the row
    auto-coder: .autocodercommands/check.md: the path of a file of the row
    auto-coder: {{ query }}: text in a file of the row
    auto-coder: .autocoderworkflow/look.yaml: the path of a file of the row
    auto-coder: .auto-coder/memory.json: the path of a file of the row
    auto-coder: .auto-coder/memory/libs.json: the path of a file of the row
    auto-coder: AGENTS.md: the path of a file of the row
    "#);
}

/// The start of the page and its column headings, in each language.
const ENGLISH: (&str, &str) = (
    "# Coming from another agent\n\nCommands of other agents that you use on the first day, with their equivalents in haft. \
     A test tries every row; the page is generated from `crates/frontends/haft/tests/it/fixtures/coming_from`.\n\nYou can \
     import conversations of other agents: `haft conversations import --help`.\n",
    "| there | haft |",
);
const CHINESE: (&str, &str) = (
    "# 从其他智能体转来\n\n[English](../coming-from.md) | 简体中文\n\n在那边第一天会输入什么，在这里怎样做。每一行都经过测试；本页由 \
     `crates/frontends/haft/tests/it/fixtures/coming_from` 生成。\n\n其他智能体的会话可以导入：`haft conversations import --help`。\n",
    "| 那边 | haft |",
);

/// Renders the page in a language.
fn render_page(language: Language) -> String {
    let (heading, columns) = match language {
        Language::English => ENGLISH,
        Language::Chinese => CHINESE,
    };
    let mut page = heading.to_owned();
    for agent in &load_agents() {
        assert!(
            agent.row.len() >= MIN_ROWS,
            "{}: {} rows",
            agent.name,
            agent.row.len()
        );
        let intro = match language {
            Language::English => &agent.intro,
            Language::Chinese => &agent.intro_zh,
        };
        write!(
            page,
            "\n## {}\n\n{intro}\n\n{columns}\n| --- | --- |\n",
            agent.name
        )
        .unwrap();
        for row in &agent.row {
            let (you, haft) = match language {
                Language::English => (row.you.as_str(), row.haft.as_str()),
                Language::Chinese => (
                    chinese_cell(&row.you, row.you_zh.as_deref()),
                    chinese_cell(&row.haft, row.haft_zh.as_deref()),
                ),
            };
            writeln!(page, "| {you} | {haft} |").unwrap();
        }
    }
    page
}

/// Returns the Chinese cell. A cell that contains only names needs no translation; a translation
/// quotes the same names.
fn chinese_cell<'a>(english: &'a str, chinese: Option<&'a str>) -> &'a str {
    let is_text = english
        .split('`')
        .step_by(2)
        .any(|part| part.chars().any(char::is_alphabetic));
    assert!(chinese.is_some() || !is_text, "not translated: {english}");
    let cell = chinese.unwrap_or(english);
    assert_eq!(
        sorted(quoted_texts(cell)),
        sorted(quoted_texts(english)),
        "the Chinese cell quotes other names"
    );
    cell
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

#[test]
fn runs_the_named_command_detects_other_commands() {
    let tries = |haft: &str, args: &str| {
        let row = format!("you = ''\nhaft = '{haft}'\nargs = {args}");
        toml::from_str::<Row>(&row)
            .unwrap()
            .runs_the_named_command()
    };
    assert!(!tries(
        "`haft permissions add \"Bash(git status)\"`",
        r#"["permissions", "list"]"#
    ));
    assert!(!tries(
        "`haft permissions add allow \"Bash(ls)\"`",
        r#"["permissions", "add", "Bash(ls)"]"#
    ));
    assert!(tries(
        "`haft permissions add \"Bash(git status)\"`",
        r#"["permissions", "add", "Bash(git status)"]"#
    ));
    assert!(tries(
        "`haft mcp add files -- npx server`",
        r#"["mcp", "add", "--help"]"#
    ));
    assert!(tries(
        "`haft conversations list`",
        r#"["conversation", "list"]"#
    ));
    assert!(tries(
        "`haft doctor`, `haft config path`",
        r#"["config", "path"]"#
    ));
}

#[test]
fn page_matches_the_rows() {
    assert_eq!(load_agents().len(), 6);
    let pages = [
        ("docs/coming-from.md", render_page(Language::English)),
        ("docs/zh-CN/coming-from.md", render_page(Language::Chinese)),
    ];
    for (name, page) in pages {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../..")
            .join(name);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, &page).unwrap();
        }
        assert_eq!(
            fs::read_to_string(&path).unwrap_or_default(),
            page,
            "run it with UPDATE_DOCS=1"
        );
    }
}
