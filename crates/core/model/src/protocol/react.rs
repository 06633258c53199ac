//! The `react` protocol: `Thought: ` and text, then on a new line `Action: Name[{…}]`; `Action:
//! Finish[…]` ends the round.
//!
//! The arguments are JSON and end at the matching bracket. An answer is free text that may contain
//! brackets: it ends at a matching bracket that ends its line; without one, at the last matching
//! bracket, or at a bracket that ends the reply. Labels count only at the beginning of a line and
//! outside code fences. A result that the model invents after an action is dropped together with
//! the text that follows it.

use haft_text::NameRule;
use haft_types::ToolSpec;
use serde_json::json;

use super::fence::FenceTracker;
use super::{
    ACTION_LABEL, COMPLETION_TOOL, CharRun, FINISH_ACTION, RESULT_LABELS, THOUGHT_LABEL, TextEvent,
    TextEventSink,
};

/// The maximum number of bytes held back as a possible label or tool name; longer text is not a
/// label.
const MAX_LABEL_LEN: usize = 128;

pub(super) struct ReactParser {
    /// True if the action `Finish` calls the completion tool.
    completes: bool,
    /// True after the first action of the reply. From then on, the model may invent a result.
    called: bool,
    place: ReactPlace,
    head: ReactLineHead,
    /// Text that is held back because it may become a label.
    held: String,
    run: CharRun,
    fence: FenceTracker,
    swallow: Swallow,
    #[cfg(test)]
    pub(super) examined: usize,
}

/// The position of the parser in the reply.
enum ReactPlace {
    Text,
    Thinking,
    Arguments(ReactArguments),
    Answer(ReactAnswer),
    /// Inside or after a result that the model invented; the text is dropped.
    Invented,
}

/// The progress of matching a label at the beginning of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReactLineHead {
    /// Only white space has been read.
    Lead,
    /// The line may begin with a label.
    Label,
    /// `Action:` has been read, but no tool name.
    BeforeName,
    /// Part of the tool name has been read.
    Name,
    /// The tool name has been read.
    AfterName,
    /// The line has no label.
    None,
}

/// The white space that is dropped before the next text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Swallow {
    Nothing,
    /// One space is dropped, after a label.
    Space,
    /// All white space up to the next word is dropped, after a call.
    All,
}

/// The arguments of a call that is still being received.
struct ReactArguments {
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

/// The answer that ends the round, while the answer is being received.
struct ReactAnswer {
    source: String,
    start: usize,
    depth: usize,
    /// The index in `source` of the last bracket that matches the opening bracket.
    last: Option<usize>,
    /// True if only white space has followed the bracket at `last`.
    matched: bool,
}

impl ReactParser {
    pub(super) fn new(tools: &[ToolSpec]) -> Self {
        Self {
            completes: tools.iter().any(|tool| tool.name == COMPLETION_TOOL),
            called: false,
            place: ReactPlace::Text,
            head: ReactLineHead::Lead,
            held: String::new(),
            run: CharRun::default(),
            fence: FenceTracker::default(),
            swallow: Swallow::Nothing,
            #[cfg(test)]
            examined: 0,
        }
    }

    pub(super) fn feed(&mut self, piece: &str, found: TextEventSink<'_>) {
        for c in piece.chars() {
            self.read_char(c, found);
        }
        self.run.flush(found);
    }

    pub(super) fn finish(mut self, found: TextEventSink<'_>) {
        self.release_held(found);
        self.run.flush(found);
        let completes = self.completes;
        match self.place {
            ReactPlace::Text | ReactPlace::Thinking | ReactPlace::Invented => {}
            ReactPlace::Arguments(arguments) => found(TextEvent::CallLeftOpen {
                source: arguments.source,
            }),
            ReactPlace::Answer(answer) => match answer.answer_end() {
                Some(end) => answer.report(end, completes, found),
                None if completes => found(TextEvent::CallLeftOpen {
                    source: answer.source,
                }),
                None => answer.report(answer.source.len(), completes, found),
            },
        }
    }

    fn read_char(&mut self, c: char, found: TextEventSink<'_>) {
        #[cfg(test)]
        {
            self.examined += 1;
        }
        match &mut self.place {
            ReactPlace::Text | ReactPlace::Thinking => self.read_text_char(c, found),
            ReactPlace::Invented => {}
            ReactPlace::Arguments(arguments) => {
                if arguments.read_char(c) {
                    let text = arguments
                        .source
                        .get(arguments.start..arguments.source.len() - 1)
                        .unwrap_or_default();
                    found(TextEvent::CallClosed {
                        arguments: text.trim().to_owned(),
                    });
                    self.return_to_text();
                }
            }
            ReactPlace::Answer(answer) => {
                if c == '\n' && answer.matched {
                    let end = answer.last.unwrap_or(answer.source.len());
                    answer.report(end, self.completes, found);
                    self.return_to_text();
                    self.read_text_char(c, found);
                } else {
                    answer.read_char(c);
                }
            }
        }
    }

    /// Reads a character outside calls: part of a label or of the text.
    fn read_text_char(&mut self, c: char, found: TextEventSink<'_>) {
        let next = match self.head {
            ReactLineHead::Lead if self.fence.is_fenced() => ReactLineHead::None,
            ReactLineHead::Lead if c == ' ' || c == '\t' => ReactLineHead::Lead,
            ReactLineHead::Lead | ReactLineHead::Label => self.match_label(c),
            ReactLineHead::BeforeName if c == ' ' => ReactLineHead::BeforeName,
            ReactLineHead::BeforeName | ReactLineHead::Name if NameRule::Tool.allows_char(c) => {
                ReactLineHead::Name
            }
            ReactLineHead::Name | ReactLineHead::AfterName if c == ' ' => ReactLineHead::AfterName,
            ReactLineHead::Name | ReactLineHead::AfterName if c == '[' => {
                return self.open_action(found);
            }
            ReactLineHead::BeforeName
            | ReactLineHead::Name
            | ReactLineHead::AfterName
            | ReactLineHead::None => ReactLineHead::None,
        };
        self.head = next;
        match next {
            ReactLineHead::Lead => self.add_plain_char(c, found),
            ReactLineHead::None => {
                self.release_held(found);
                self.add_plain_char(c, found);
            }
            ReactLineHead::Label
            | ReactLineHead::BeforeName
            | ReactLineHead::Name
            | ReactLineHead::AfterName => {
                self.held.push(c);
                if self.held == THOUGHT_LABEL {
                    self.open_thought(found);
                } else if RESULT_LABELS.contains(&self.held.as_str()) {
                    self.held.clear();
                    self.place = ReactPlace::Invented;
                } else if self.held.len() > MAX_LABEL_LEN {
                    self.head = ReactLineHead::None;
                    self.release_held(found);
                }
            }
        }
    }

    fn match_label(&self, c: char) -> ReactLineHead {
        let goes_on = |label: &str| {
            label
                .strip_prefix(self.held.as_str())
                .is_some_and(|rest| rest.starts_with(c))
        };
        let is_result = self.called && RESULT_LABELS.into_iter().any(goes_on);
        match (
            is_result || goes_on(ACTION_LABEL) || goes_on(THOUGHT_LABEL),
            c,
        ) {
            // The line continues as text after the colon of a thought.
            (true, ':') => ReactLineHead::BeforeName,
            (true, _) => ReactLineHead::Label,
            (false, _) => ReactLineHead::None,
        }
    }

    fn open_thought(&mut self, found: TextEventSink<'_>) {
        self.run.flush(found);
        self.held.clear();
        self.fence.read_char(':');
        (self.place, self.head, self.swallow) =
            (ReactPlace::Thinking, ReactLineHead::None, Swallow::Space);
    }

    fn open_action(&mut self, found: TextEventSink<'_>) {
        self.run.flush(found);
        let mut source = std::mem::take(&mut self.held);
        let name = source[ACTION_LABEL.len()..].trim().to_owned();
        source.push('[');
        let start = source.len();
        self.called = true;
        // Small models write the name without the capital.
        self.place = if name.eq_ignore_ascii_case(FINISH_ACTION) {
            if self.completes {
                found(TextEvent::CallOpened {
                    name: COMPLETION_TOOL.to_owned(),
                });
            }
            ReactPlace::Answer(ReactAnswer {
                source,
                start,
                depth: 0,
                last: None,
                matched: false,
            })
        } else {
            found(TextEvent::CallOpened { name });
            ReactPlace::Arguments(ReactArguments {
                source,
                start,
                depth: 0,
                string: Quoting::Outside,
            })
        };
    }

    fn return_to_text(&mut self) {
        self.fence.interrupt();
        (self.place, self.head, self.swallow) =
            (ReactPlace::Text, ReactLineHead::None, Swallow::All);
    }

    /// Adds the held text as plain text, once it has turned out not to be a label.
    fn release_held(&mut self, found: TextEventSink<'_>) {
        let held = std::mem::take(&mut self.held);
        for c in held.chars() {
            self.add_plain_char(c, found);
        }
    }

    fn add_plain_char(&mut self, c: char, found: TextEventSink<'_>) {
        self.fence.read_char(c);
        if c == '\n' {
            self.head = ReactLineHead::Lead;
        }
        let silent = match self.swallow {
            Swallow::Nothing => false,
            Swallow::Space => c == ' ',
            Swallow::All => c.is_whitespace(),
        };
        if !(silent && self.swallow == Swallow::All) {
            self.swallow = Swallow::Nothing;
        }
        if !silent {
            self.run.push(
                c.encode_utf8(&mut [0; 4]),
                matches!(self.place, ReactPlace::Thinking),
                found,
            );
        }
    }
}

impl ReactArguments {
    /// Reads a character. Returns true if the character closes the call.
    fn read_char(&mut self, c: char) -> bool {
        self.source.push(c);
        match (self.string, c) {
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

impl ReactAnswer {
    fn read_char(&mut self, c: char) {
        match c {
            ']' if self.depth == 0 => (self.last, self.matched) = (Some(self.source.len()), true),
            ']' => self.depth -= 1,
            '[' => (self.depth, self.matched) = (self.depth + 1, false),
            _ => self.matched = self.matched && c.is_whitespace(),
        }
        self.source.push(c);
    }

    /// Returns the index in `source` at which the answer ends if no more text follows.
    fn answer_end(&self) -> Option<usize> {
        self.last
            .or_else(|| self.source.trim_end().strip_suffix(']').map(str::len))
    }

    /// Reports the answer, which is the source text up to the index `end`. If `completes` is true,
    /// reports it as a call of the completion tool.
    fn report(&self, end: usize, completes: bool, found: TextEventSink<'_>) {
        let answer = self.source.get(self.start..end).unwrap_or_default().trim();
        if completes {
            found(TextEvent::CallClosed {
                arguments: json!({ "result": answer }).to_string(),
            });
        } else if !answer.is_empty() {
            found(TextEvent::Text(answer.to_owned()));
        }
    }
}
