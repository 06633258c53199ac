//! Whether a place in a text lies inside a code fence: what is quoted there is not meant.

/// Follows a text character by character.
#[derive(Debug)]
pub(super) struct Fence {
    /// The fence that is open: its character and how many open it.
    open: Option<(char, usize)>,
    line: Line,
}

/// The present line so far.
#[derive(Clone, Copy, Debug)]
enum Line {
    /// White space only.
    Lead,
    /// A run of fence characters at its beginning.
    Marks { mark: char, count: usize },
    /// A run, and what follows it: white space only, words, or words with the mark among them.
    After { mark: char, count: usize, rest: Rest },
    /// Anything else.
    Words,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Blank,
    Words,
    Marked,
}

/// How many characters make a fence.
const FEWEST: usize = 3;

impl Default for Fence {
    fn default() -> Self {
        Self { open: None, line: Line::Lead }
    }
}

impl Fence {
    /// Takes the next character of the text.
    pub(super) fn take(&mut self, letter: char) {
        if letter == '\n' {
            self.end_line();
            return;
        }
        self.line = match self.line {
            Line::Lead if letter == '`' || letter == '~' => Line::Marks { mark: letter, count: 1 },
            Line::Lead if letter.is_whitespace() => Line::Lead,
            Line::Lead | Line::Words => Line::Words,
            Line::Marks { mark, count } if letter == mark => Line::Marks { mark, count: count + 1 },
            Line::Marks { mark, count } => Line::After { mark, count, rest: Rest::Blank.with(letter, mark) },
            Line::After { mark, count, rest } => Line::After { mark, count, rest: rest.with(letter, mark) },
        };
    }

    /// Something that is no text stood here: the rest of the line opens no fence.
    pub(super) fn interrupt(&mut self) {
        *self = Self { open: None, line: Line::Words };
    }

    /// Whether the next character is quoted.
    pub(super) fn quotes(&self) -> bool {
        self.open.is_some() || self.opening().is_some()
    }

    /// The fence this line opens, if it ends here.
    fn opening(&self) -> Option<(char, usize)> {
        let (mark, count) = match self.line {
            // Backticks after backticks are a code span within the line.
            Line::After { mark: '`', rest: Rest::Marked, .. } | Line::Lead | Line::Words => return None,
            Line::Marks { mark, count } | Line::After { mark, count, .. } => (mark, count),
        };
        (count >= FEWEST).then_some((mark, count))
    }

    fn end_line(&mut self) {
        let closes = |(mark, count)| match self.line {
            Line::Marks { mark: m, count: c } | Line::After { mark: m, count: c, rest: Rest::Blank } => {
                m == mark && c >= count
            }
            Line::After { .. } | Line::Lead | Line::Words => false,
        };
        self.open = match self.open {
            Some(open) if closes(open) => None,
            Some(open) => Some(open),
            None => self.opening(),
        };
        self.line = Line::Lead;
    }
}

impl Rest {
    fn with(self, letter: char, mark: char) -> Self {
        match self {
            Self::Marked => Self::Marked,
            Self::Blank | Self::Words if letter == mark => Self::Marked,
            Self::Blank if letter.is_whitespace() => Self::Blank,
            Self::Blank | Self::Words => Self::Words,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each `<` of the text: whether it is quoted.
    fn quoted(text: &str) -> Vec<bool> {
        let mut fence = Fence::default();
        let mut found = Vec::new();
        for letter in text.chars() {
            if letter == '<' {
                found.push(fence.quotes());
            }
            fence.take(letter);
        }
        found
    }

    #[test]
    fn fences_quote_and_end() {
        assert_eq!(quoted("<\n```xml\n<\n```\n<"), [false, true, false]);
        assert_eq!(quoted("  ~~~~\n<\n~~~\n<\n~~~~~ \n<"), [true, true, false]);
        assert_eq!(quoted("```` \n```\n<\n````\n<"), [true, false]);
        assert_eq!(quoted("```\r\n<\r\n```\r\n<"), [true, false]);
    }

    #[test]
    fn what_only_looks_like_a_fence_does_not() {
        assert_eq!(quoted("a ```\n<"), [false]);
        assert_eq!(quoted("``\n<"), [false]);
        assert_eq!(quoted("```one``` line <\n<"), [false, false]);
        assert_eq!(quoted("```\n``` x\n<"), [true], "a fence is closed by a line of its own");
        assert_eq!(quoted("```\n~~~\n<"), [true]);
    }
}
