//! Tracks code fences in a text: calls quoted inside a fence are not run.

/// Follows a text character by character to detect code fences.
#[derive(Debug)]
pub(super) struct FenceTracker {
    /// The character and length of the open fence.
    open: Option<(char, usize)>,
    line: FenceLine,
}

/// The content of the current line up to the last character read.
#[derive(Clone, Copy, Debug)]
enum FenceLine {
    /// The line contains only white space.
    Lead,
    /// The line is a run of fence characters.
    Marks { mark: char, count: usize },
    /// The line is a run of fence characters followed by other text.
    After {
        mark: char,
        count: usize,
        rest: Rest,
    },
    /// The line does not begin with fence characters.
    Words,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Blank,
    Words,
    Marked,
}

/// The minimum number of characters in a fence.
const MIN_FENCE_LEN: usize = 3;

impl Default for FenceTracker {
    fn default() -> Self {
        Self {
            open: None,
            line: FenceLine::Lead,
        }
    }
}

impl FenceTracker {
    /// Reads the next character of the text.
    pub(super) fn read_char(&mut self, c: char) {
        if c == '\n' {
            self.end_line();
            return;
        }
        self.line = match self.line {
            FenceLine::Lead if c == '`' || c == '~' => FenceLine::Marks { mark: c, count: 1 },
            FenceLine::Lead if c.is_whitespace() => FenceLine::Lead,
            FenceLine::Lead | FenceLine::Words => FenceLine::Words,
            FenceLine::Marks { mark, count } if c == mark => FenceLine::Marks {
                mark,
                count: count + 1,
            },
            FenceLine::Marks { mark, count } => FenceLine::After {
                mark,
                count,
                rest: Rest::Blank.with_char(c, mark),
            },
            FenceLine::After { mark, count, rest } => FenceLine::After {
                mark,
                count,
                rest: rest.with_char(c, mark),
            },
        };
    }

    /// Closes any open code fence, because a call or a thought interrupts it. The rest of the line
    /// cannot open a fence.
    pub(super) fn interrupt(&mut self) {
        *self = Self {
            open: None,
            line: FenceLine::Words,
        };
    }

    /// True if the next character is inside a code fence.
    pub(super) fn is_fenced(&self) -> bool {
        self.open.is_some() || self.opened_fence().is_some()
    }

    /// Returns the fence that this line would open if the line ended here.
    fn opened_fence(&self) -> Option<(char, usize)> {
        let (mark, count) = match self.line {
            // Backticks after backticks are a code span within the line.
            FenceLine::After {
                mark: '`',
                rest: Rest::Marked,
                ..
            }
            | FenceLine::Lead
            | FenceLine::Words => return None,
            FenceLine::Marks { mark, count } | FenceLine::After { mark, count, .. } => {
                (mark, count)
            }
        };
        (count >= MIN_FENCE_LEN).then_some((mark, count))
    }

    fn end_line(&mut self) {
        self.open = match self.open {
            Some(open) if self.is_closing(open) => None,
            Some(open) => Some(open),
            None => self.opened_fence(),
        };
        self.line = FenceLine::Lead;
    }

    /// True if the current line closes the fence `open`.
    fn is_closing(&self, open: (char, usize)) -> bool {
        match self.line {
            FenceLine::Marks { mark, count }
            | FenceLine::After {
                mark,
                count,
                rest: Rest::Blank,
            } => mark == open.0 && count >= open.1,
            FenceLine::After { .. } | FenceLine::Lead | FenceLine::Words => false,
        }
    }
}

impl Rest {
    fn with_char(self, c: char, mark: char) -> Self {
        match self {
            Self::Marked => Self::Marked,
            Self::Blank | Self::Words if c == mark => Self::Marked,
            Self::Blank if c.is_whitespace() => Self::Blank,
            Self::Blank | Self::Words => Self::Words,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each `<` of the text, true if it is quoted.
    fn quoted(text: &str) -> Vec<bool> {
        let mut fence = FenceTracker::default();
        let mut found = Vec::new();
        for c in text.chars() {
            if c == '<' {
                found.push(fence.is_fenced());
            }
            fence.read_char(c);
        }
        found
    }

    #[test]
    fn fence_quotes_until_it_is_closed() {
        assert_eq!(quoted("<\n```xml\n<\n```\n<"), [false, true, false]);
        assert_eq!(quoted("  ~~~~\n<\n~~~\n<\n~~~~~ \n<"), [true, true, false]);
        assert_eq!(quoted("```` \n```\n<\n````\n<"), [true, false]);
        assert_eq!(quoted("```\r\n<\r\n```\r\n<"), [true, false]);
    }

    #[test]
    fn fence_ignores_text_that_resembles_one() {
        assert_eq!(quoted("a ```\n<"), [false]);
        assert_eq!(quoted("``\n<"), [false]);
        assert_eq!(quoted("```one``` line <\n<"), [false, false]);
        assert_eq!(
            quoted("```\n``` x\n<"),
            [true],
            "a fence is closed by a line of its own"
        );
        assert_eq!(quoted("```\n~~~\n<"), [true]);
    }
}
