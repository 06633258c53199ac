//! The `react` protocol: `Thought: ` and words, then on a new line `Action: Name[{…}]`; `Action: Finish[…]` ends the round.
//!
//! The arguments are JSON and end at their matching bracket. An answer is free text that may hold brackets of its own: it ends
//! at a matching bracket that ends its line; without one, at its last matching bracket, or at a bracket that ends the reply.
//! Labels count at the beginning of a line and outside code fences.

use haft_text::NameRule;
use haft_types::ToolSpec;
use serde_json::json;

use super::fence::Fence;
use super::{ACTION, COMPLETION, FINISH, Found, Run, THOUGHT, TextEvent};

/// What is longer is no label.
const LONGEST_HEAD: usize = 128;

pub(super) struct Parser {
    /// Whether `Finish` is a call of the completion tool.
    completes: bool,
    place: Place,
    head: Head,
    /// What may yet become a label.
    held: String,
    run: Run,
    fence: Fence,
    swallow: Swallow,
    #[cfg(test)]
    pub(super) examined: usize,
}

/// Where in the reply we are.
enum Place {
    Text,
    Thinking,
    Arguments(Arguments),
    Answer(Answer),
}

/// How far the beginning of a line has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    /// White space only.
    Lead,
    /// Letters of a label.
    Label,
    /// After `Action:`.
    BeforeName,
    /// Inside the name.
    Name,
    /// After the name.
    AfterName,
    /// No label here.
    None,
}

/// White space that says nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Swallow {
    Nothing,
    /// One space, after a label.
    Space,
    /// Everything up to the next word, after a call.
    All,
}

/// The arguments of a call.
struct Arguments {
    source: String,
    start: usize,
    depth: usize,
    string: Quoting,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Outside,
    Inside,
    Escaped,
}

/// The answer of the round.
struct Answer {
    source: String,
    start: usize,
    depth: usize,
    /// Where the last bracket stands that matches the opening one.
    last: Option<usize>,
    /// Whether only white space followed it.
    matched: bool,
}

impl Parser {
    pub(super) fn new(tools: &[ToolSpec]) -> Self {
        Self {
            completes: tools.iter().any(|tool| tool.name == COMPLETION),
            place: Place::Text,
            head: Head::Lead,
            held: String::new(),
            run: Run::default(),
            fence: Fence::default(),
            swallow: Swallow::Nothing,
            #[cfg(test)]
            examined: 0,
        }
    }

    pub(super) fn feed(&mut self, piece: &str, found: Found<'_>) {
        for letter in piece.chars() {
            self.take(letter, found);
        }
        self.run.flush(found);
    }

    pub(super) fn finish(mut self, found: Found<'_>) {
        self.release(found);
        self.run.flush(found);
        let completes = self.completes;
        match self.place {
            Place::Text | Place::Thinking => {}
            Place::Arguments(arguments) => found(TextEvent::CallLeftOpen { source: arguments.source }),
            Place::Answer(answer) => match answer.end() {
                Some(end) => answer.close(end, completes, found),
                None if completes => found(TextEvent::CallLeftOpen { source: answer.source }),
                None => answer.close(answer.source.len(), completes, found),
            },
        }
    }

    fn take(&mut self, letter: char, found: Found<'_>) {
        #[cfg(test)]
        {
            self.examined += 1;
        }
        match &mut self.place {
            Place::Text | Place::Thinking => self.words(letter, found),
            Place::Arguments(arguments) => {
                if arguments.take(letter) {
                    let text = arguments.source.get(arguments.start..arguments.source.len() - 1).unwrap_or_default();
                    found(TextEvent::CallClosed { arguments: text.trim().to_owned() });
                    self.back_to_text();
                }
            }
            Place::Answer(answer) => {
                if letter == '\n' && answer.matched {
                    let end = answer.last.unwrap_or(answer.source.len());
                    answer.close(end, self.completes, found);
                    self.back_to_text();
                    self.words(letter, found);
                } else {
                    answer.take(letter);
                }
            }
        }
    }

    /// A character outside calls: part of a label, or of what is said.
    fn words(&mut self, letter: char, found: Found<'_>) {
        let next = match self.head {
            Head::Lead if self.fence.quotes() => Head::None,
            Head::Lead if letter == ' ' || letter == '\t' => Head::Lead,
            Head::Lead | Head::Label => self.label(letter),
            Head::BeforeName if letter == ' ' => Head::BeforeName,
            Head::BeforeName | Head::Name if NameRule::Tool.allows_char(letter) => Head::Name,
            Head::Name | Head::AfterName if letter == ' ' => Head::AfterName,
            Head::Name | Head::AfterName if letter == '[' => return self.open_action(found),
            Head::BeforeName | Head::Name | Head::AfterName | Head::None => Head::None,
        };
        self.head = next;
        match next {
            Head::Lead => self.say(letter, found),
            Head::None => {
                self.release(found);
                self.say(letter, found);
            }
            Head::Label | Head::BeforeName | Head::Name | Head::AfterName => {
                self.held.push(letter);
                if self.held == THOUGHT {
                    self.open_thought(found);
                } else if self.held.len() > LONGEST_HEAD {
                    self.head = Head::None;
                    self.release(found);
                }
            }
        }
    }

    fn label(&self, letter: char) -> Head {
        let goes_on = |label: &str| label.strip_prefix(self.held.as_str()).is_some_and(|rest| rest.starts_with(letter));
        match (goes_on(ACTION) || goes_on(THOUGHT), letter) {
            // Both labels end with a colon; after a thought's the line goes on as words.
            (true, ':') => Head::BeforeName,
            (true, _) => Head::Label,
            (false, _) => Head::None,
        }
    }

    fn open_thought(&mut self, found: Found<'_>) {
        self.run.flush(found);
        self.held.clear();
        self.fence.take(':');
        (self.place, self.head, self.swallow) = (Place::Thinking, Head::None, Swallow::Space);
    }

    fn open_action(&mut self, found: Found<'_>) {
        self.run.flush(found);
        let mut source = std::mem::take(&mut self.held);
        let name = source[ACTION.len()..].trim().to_owned();
        source.push('[');
        let start = source.len();
        self.place = if name == FINISH {
            if self.completes {
                found(TextEvent::CallOpened { name: COMPLETION.to_owned() });
            }
            Place::Answer(Answer { source, start, depth: 0, last: None, matched: false })
        } else {
            found(TextEvent::CallOpened { name });
            Place::Arguments(Arguments { source, start, depth: 0, string: Quoting::Outside })
        };
    }

    fn back_to_text(&mut self) {
        self.fence.interrupt();
        (self.place, self.head, self.swallow) = (Place::Text, Head::None, Swallow::All);
    }

    /// What was held back is no label.
    fn release(&mut self, found: Found<'_>) {
        let held = std::mem::take(&mut self.held);
        for letter in held.chars() {
            self.say(letter, found);
        }
    }

    fn say(&mut self, letter: char, found: Found<'_>) {
        self.fence.take(letter);
        if letter == '\n' {
            self.head = Head::Lead;
        }
        let silent = match self.swallow {
            Swallow::Nothing => false,
            Swallow::Space => letter == ' ',
            Swallow::All => letter.is_whitespace(),
        };
        if !(silent && self.swallow == Swallow::All) {
            self.swallow = Swallow::Nothing;
        }
        if !silent {
            self.run.push(letter.encode_utf8(&mut [0; 4]), matches!(self.place, Place::Thinking), found);
        }
    }
}

impl Arguments {
    /// Takes a character; true if it closes the call.
    fn take(&mut self, letter: char) -> bool {
        self.source.push(letter);
        match (self.string, letter) {
            (Quoting::Inside, '\\') => self.string = Quoting::Escaped,
            (Quoting::Inside, '"') => self.string = Quoting::Outside,
            (Quoting::Escaped, _) | (Quoting::Outside, '"') => self.string = Quoting::Inside,
            (Quoting::Outside, '[' | '{') => self.depth += 1,
            (Quoting::Outside, ']') if self.depth == 0 => return true,
            (Quoting::Outside, ']' | '}') => self.depth = self.depth.saturating_sub(1),
            (Quoting::Inside | Quoting::Outside, _) => {}
        }
        false
    }
}

impl Answer {
    fn take(&mut self, letter: char) {
        match letter {
            ']' if self.depth == 0 => (self.last, self.matched) = (Some(self.source.len()), true),
            ']' => self.depth -= 1,
            '[' => (self.depth, self.matched) = (self.depth + 1, false),
            _ => self.matched = self.matched && letter.is_whitespace(),
        }
        self.source.push(letter);
    }

    /// Where it ends, if the reply ends here.
    fn end(&self) -> Option<usize> {
        self.last.or_else(|| self.source.trim_end().strip_suffix(']').map(str::len))
    }

    /// The answer ends before `end`.
    fn close(&self, end: usize, completes: bool, found: Found<'_>) {
        let answer = self.source.get(self.start..end).unwrap_or_default().trim();
        if completes {
            found(TextEvent::CallClosed { arguments: json!({ "result": answer }).to_string() });
        } else if !answer.is_empty() {
            found(TextEvent::Text(answer.to_owned()));
        }
    }
}
