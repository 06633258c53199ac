//! Plans the scripted model's work on a source tree: it reads, searches, edits, runs commands and
//! keeps a todo list, round after round.
//!
//! Equal trees and seeds give equal plans. The planner applies its own edits to its copy of the
//! files, so that every call finds the text that it names. The only calls that fail are commands
//! that are meant to fail.

use haft_testkit::support::Random;
use haft_testkit::{Reply, ScriptCall};
use serde_json::json;

/// A file of the tree: its path in the project and its lines.
pub(super) struct SourceFile {
    pub(super) path: String,
    pub(super) lines: Vec<String>,
}

/// One input of the user and the replies to it.
pub(super) struct PlannedRound {
    pub(super) input: String,
    pub(super) replies: Vec<Reply>,
}

struct Planner {
    random: Random,
    files: Vec<SourceFile>,
    /// The indices of the files that this round works on.
    focus: Vec<usize>,
    /// The todo items, and how many are done.
    list: Vec<String>,
    done: usize,
    replies: Vec<Reply>,
    edits: usize,
}

/// Plans a conversation of about `requests` requests.
pub(super) fn plan_conversation(
    files: Vec<SourceFile>,
    seed: u64,
    requests: usize,
) -> Vec<PlannedRound> {
    let random = Random::new(seed);
    let focus = Vec::new();
    let list = Vec::new();
    let mut planner = Planner {
        random,
        files,
        focus,
        list,
        done: 0,
        replies: Vec::new(),
        edits: 0,
    };
    let mut rounds: Vec<PlannedRound> = Vec::new();
    let mut left = requests;
    while left > 0 {
        let steps = (4 + planner.random.below(24)).min(left);
        rounds.push(planner.plan_round(rounds.len(), steps));
        left -= steps;
    }
    rounds
}

impl Planner {
    fn plan_round(&mut self, number: usize, steps: usize) -> PlannedRound {
        let files = 2 + self.random.below(3);
        self.focus = (0..files)
            .map(|_| self.random.below(self.files.len()))
            .collect();
        let input = self.build_round_input(number);
        if number == 0 || self.random.below(2) == 0 {
            self.start_todo_list();
        }
        while self.replies.len() + 2 < steps {
            match self.random.below(100) {
                0..40 => self.push_read(),
                40..58 => self.push_search(),
                58..66 => self.push_listing(),
                66..82 => self.push_edit(),
                82..95 => self.push_command(),
                _ => self.advance_todo_list(),
            }
        }
        // haft asks a model that stops with open items to continue.
        if self.done < self.list.len() {
            self.done = self.list.len();
            self.push_todo_list();
        }
        let path = self.focus_path(0);
        let answer = format!(
            "Done as far as it goes. The place that matters is `{path}`; the other callers only pass the value on. I changed \
             what had to change and left the public names alone. What I could not verify without a build: that nothing \
             outside of this tree relies on the old order."
        );
        self.replies.push(Reply::text(answer));
        PlannedRound {
            input,
            replies: std::mem::take(&mut self.replies),
        }
    }

    fn build_round_input(&mut self, number: usize) -> String {
        let path = self.focus_path(0);
        let word = self.pick_word();
        let task = match self.random.below(4) {
            0 => format!(
                "Find out how `{word}` is used in {path} and its neighbours, and make the names consistent."
            ),
            1 => format!(
                "There is a mistake somewhere around `{word}`. Look at {path} first, then at who calls it."
            ),
            2 => format!(
                "Explain {path} to me, and tidy what you find hard to explain. `{word}` is where I got lost."
            ),
            _ => format!("Go through {path} and note what would break if `{word}` went away."),
        };
        match number % 4 {
            0 => format!("{task} You must not change public names (rule {number})."),
            2 => format!("{task} Never touch Cargo.toml in step {number}."),
            _ => task,
        }
    }

    /// Adds a call, unless it repeats one of the last eight: a repeated call with an unchanged
    /// result ends a turn.
    fn push_call(&mut self, text: String, call: ScriptCall) {
        let reply = Reply::calls([call]).with_text(text);
        if self
            .replies
            .iter()
            .rev()
            .take(8)
            .all(|earlier| earlier.tool_calls != reply.tool_calls)
        {
            self.replies.push(reply);
        }
    }

    fn focus_path(&self, number: usize) -> String {
        self.files[self.focus[number % self.focus.len()]]
            .path
            .clone()
    }

    fn pick_focus_file(&mut self) -> usize {
        let number = self.random.below(self.focus.len());
        self.focus[number]
    }

    /// Returns a word that occurs in one of the files.
    fn pick_word(&mut self) -> String {
        let file = self.pick_focus_file();
        let from = self.random.below(self.files[file].lines.len());
        let lines = self.files[file].lines[from..]
            .iter()
            .chain(&self.files[file].lines);
        let words = |line: &str| {
            line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let mut names = lines
            .flat_map(|line| words(line))
            .filter(|word| word.len() > 5 && word.is_ascii());
        names.next().unwrap_or_else(|| "fn".to_owned())
    }

    fn push_read(&mut self) {
        let first = self.build_read_call();
        let second = self.build_read_call();
        // Two files at once now and then, as real models do.
        if self.random.below(4) == 0 && first != second {
            self.replies
                .push(Reply::calls([first, second]).with_text("I read both to see what they do."));
        } else {
            self.push_call("I read it to see what it does.".to_owned(), first);
        }
    }

    fn build_read_call(&mut self) -> ScriptCall {
        let file = self.pick_focus_file();
        let path = self.files[file].path.clone();
        let lines = self.files[file].lines.len();
        if lines <= 250 {
            return ScriptCall::new("read_file", json!({ "path": path }));
        }
        let from = 1 + self.random.below(lines - 100);
        let to = (from + 60 + self.random.below(200)).min(lines);
        ScriptCall::new(
            "read_file",
            json!({ "path": path, "start_line": from, "end_line": to }),
        )
    }

    fn push_search(&mut self) {
        let word = self.pick_word();
        let call = ScriptCall::new(
            "search_files",
            json!({ "path": ".", "regex": format!("\\b{word}\\b") }),
        );
        self.push_call(format!("Who else uses `{word}`?"), call);
    }

    fn push_listing(&mut self) {
        let call = match self.random.below(2) {
            0 => ScriptCall::new("list_files", json!({ "path": ".", "recursive": true })),
            _ => ScriptCall::new("glob", json!({ "pattern": "**/*.rs" })),
        };
        self.push_call("Let me see what is there.".to_owned(), call);
    }

    /// Reads a range of a file, then changes a unique line in it.
    fn push_edit(&mut self) {
        let file = self.pick_focus_file();
        let from = self.random.below(self.files[file].lines.len());
        let SourceFile { path, lines } = &self.files[file];
        let is_only = |line: &str| lines.iter().filter(|other| other.contains(line)).count() == 1;
        let usable = |at: &usize| lines[*at].trim().len() > 20 && is_only(&lines[*at]);
        let Some(at) = (from..lines.len()).chain(0..from).find(usable) else {
            return self.push_search();
        };
        let path = path.clone();
        let old = lines[at].clone();
        let first = at.saturating_sub(20) + 1;
        let last = (at + 20).min(lines.len());
        let read = json!({ "path": path, "start_line": first, "end_line": last });
        self.push_call(
            format!("First the place in `{path}`."),
            ScriptCall::new("read_file", read),
        );
        self.edits += 1;
        let new = format!(
            "{old}\n// Checked in pass {}: the order of these two does not matter.",
            self.edits
        );
        self.files[file].lines[at].clone_from(&new);
        let split: Vec<String> = self.files[file]
            .lines
            .iter()
            .flat_map(|line| line.split('\n'))
            .map(str::to_owned)
            .collect();
        self.files[file].lines = split;
        let edit = json!({ "path": path, "old_text": old, "new_text": new });
        self.push_call(
            "Now the change.".to_owned(),
            ScriptCall::new("edit_file", edit),
        );
    }

    fn push_command(&mut self) {
        let path = self.focus_path(1);
        let word = self.pick_word();
        let number = self.random.below(1_000);
        let command = match self.random.below(5) {
            0 => format!("wc -l {path} Cargo.toml"),
            1 => format!("grep -rn '{word}' . | sort | head -n 60"),
            2 => format!("grep -n 'fn ' {path} | head -n 80"),
            3 => format!(
                "for t in $(seq 1 120); do echo \"test case_{number}_$t ... ok\"; done; echo 'test case_{number}_x ... FAILED'; exit 101"
            ),
            _ => format!("sort {path} | uniq -c | sort -rn | head -n 25"),
        };
        let call = ScriptCall::new(
            "execute_command",
            json!({ "command": command, "requires_approval": false }),
        );
        self.push_call("I check that with a command.".to_owned(), call);
    }

    fn start_todo_list(&mut self) {
        let items = 4 + self.random.below(5);
        self.list = (0..items)
            .map(|number| {
                format!(
                    "step {}: look at {} and decide",
                    number + 1,
                    self.focus_path(number)
                )
            })
            .collect();
        self.done = 0;
        self.push_todo_list();
    }

    fn advance_todo_list(&mut self) {
        self.done += 1;
        if self.done >= self.list.len() {
            return self.start_todo_list();
        }
        self.push_todo_list();
    }

    fn push_todo_list(&mut self) {
        let status = |number: usize| match number.cmp(&self.done) {
            std::cmp::Ordering::Less => "completed",
            std::cmp::Ordering::Equal => "in_progress",
            std::cmp::Ordering::Greater => "pending",
        };
        let item = |(number, content): (usize, &String)| json!({ "content": content, "status": status(number) });
        let todos: Vec<_> = self.list.iter().enumerate().map(item).collect();
        self.push_call(
            "I keep the list current.".to_owned(),
            ScriptCall::new("todo_write", json!({ "todos": todos })),
        );
    }
}
