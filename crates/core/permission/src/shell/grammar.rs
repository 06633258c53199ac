//! Parses lists, pipelines, and compound commands.

use super::word::ends_word;
use super::{
    CompoundCommand, CompoundKind, FunctionDefinition, JobMode, ListOperator, Pipeline, Redirect,
    Result, ShellCommand, ShellParser, ShellScript, ShellWord, SimpleCommand, UnsupportedSyntax,
};

const UNKNOWN_SYNTAX: UnsupportedSyntax = UnsupportedSyntax("a syntax this program does not know");

/// The reserved words, which have a special meaning at the beginning of a command.
const RESERVED: [&str; 22] = [
    "!", "{", "}", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
];

/// The token at which a script ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptEnd {
    OfText,
    /// The script ends at `)`, which is consumed.
    Parenthesis,
    /// The script ends at one of these words, which is not consumed.
    Word(&'static [&'static str]),
    /// The script ends at `;;`, `;&`, `;;&`, or `esac`, which is not consumed.
    Case,
}

impl ShellParser<'_> {
    pub(super) fn parse_script(&mut self, end: ScriptEnd) -> Result<ShellScript> {
        let mut script = ShellScript::default();
        let mut operator = ListOperator::Then;
        loop {
            self.skip_gap()?;
            if self.eat_script_end(end)? {
                return if operator == ListOperator::Then {
                    Ok(script)
                } else {
                    Err(UNKNOWN_SYNTAX)
                };
            }
            let commands = self.parse_pipeline()?;
            self.cursor.skip_blanks();
            let mut mode = JobMode::Foreground;
            let next = if self.cursor.eat("&&") {
                ListOperator::And
            } else if self.cursor.eat("||") {
                ListOperator::Or
            } else {
                mode = self.parse_separator(end)?;
                ListOperator::Then
            };
            script.items.push(Pipeline {
                operator,
                commands,
                mode,
            });
            operator = next;
        }
    }

    /// Parses the separator after a pipeline, which may be missing at the end of the script.
    fn parse_separator(&mut self, end: ScriptEnd) -> Result<JobMode> {
        self.skip_comment();
        if self.cursor.starts_with(";;") || self.cursor.starts_with(";&") {
            return if end == ScriptEnd::Case {
                Ok(JobMode::Foreground)
            } else {
                Err(UNKNOWN_SYNTAX)
            };
        }
        match self.cursor.peek() {
            Some('&') => {
                self.cursor.next();
                Ok(JobMode::Background)
            }
            Some(';') => {
                self.cursor.next();
                Ok(JobMode::Foreground)
            }
            None | Some('\n') => Ok(JobMode::Foreground),
            Some(')') if end == ScriptEnd::Parenthesis => Ok(JobMode::Foreground),
            Some(_) => Err(UNKNOWN_SYNTAX),
        }
    }

    /// Skips blanks, comments, and line breaks, and reads the here-documents after line breaks.
    fn skip_gap(&mut self) -> Result<()> {
        loop {
            self.cursor.skip_blanks();
            self.skip_comment();
            if !self.cursor.eat("\n") {
                return Ok(());
            }
            self.read_here_bodies()?;
        }
    }

    /// Skips a comment up to the end of its line. A backslash at the end does not continue the
    /// comment.
    fn skip_comment(&mut self) {
        if self.cursor.peek() == Some('#') {
            while self.cursor.raw_peek().is_some_and(|c| c != '\n') {
                self.cursor.raw_next();
            }
        }
    }

    fn eat_script_end(&mut self, end: ScriptEnd) -> Result<bool> {
        let over = self.cursor.peek().is_none();
        match end {
            ScriptEnd::OfText => Ok(over),
            _ if over => Err(UnsupportedSyntax("something that is opened and not closed")),
            ScriptEnd::Parenthesis => Ok(self.cursor.eat(")")),
            ScriptEnd::Word(words) => Ok(words.iter().any(|word| self.is_at_reserved(word))),
            ScriptEnd::Case => Ok(self.cursor.starts_with(";;")
                || self.cursor.starts_with(";&")
                || self.is_at_reserved("esac")),
        }
    }

    /// True if the unquoted, complete word `wanted` begins at the cursor.
    fn is_at_reserved(&mut self, wanted: &str) -> bool {
        let mut ahead = self.cursor.clone();
        ahead.eat(wanted) && ahead.peek().is_none_or(ends_word)
    }

    fn eat_reserved(&mut self, wanted: &str) -> bool {
        self.is_at_reserved(wanted) && self.cursor.eat(wanted)
    }

    fn expect_reserved(&mut self, wanted: &str) -> Result<()> {
        if self.eat_reserved(wanted) {
            Ok(())
        } else {
            Err(UNKNOWN_SYNTAX)
        }
    }

    fn parse_pipeline(&mut self) -> Result<Vec<ShellCommand>> {
        loop {
            self.cursor.skip_blanks();
            if self.eat_reserved("time") {
                self.cursor.skip_blanks();
                self.eat_reserved("-p");
            } else if !self.eat_reserved("!") {
                break;
            }
        }
        let mut commands = vec![self.parse_command()?];
        loop {
            self.cursor.skip_blanks();
            if self.cursor.starts_with("||") {
                return Ok(commands);
            }
            if !(self.cursor.eat("|&") || self.cursor.eat("|")) {
                return Ok(commands);
            }
            self.skip_gap()?;
            commands.push(self.parse_command()?);
        }
    }

    fn parse_command(&mut self) -> Result<ShellCommand> {
        self.cursor.skip_blanks();
        if self.cursor.starts_with("((") {
            return Err(UnsupportedSyntax("arithmetic"));
        }
        if self.cursor.eat("(") {
            let inner =
                self.with_deeper_nesting(|inner| inner.parse_script(ScriptEnd::Parenthesis))?;
            return self
                .finish_compound(CompoundKind::Subshell, Vec::new(), vec![inner])
                .map(ShellCommand::Compound);
        }
        let reserved = RESERVED
            .iter()
            .copied()
            .find(|word| self.is_at_reserved(word));
        match reserved {
            None => self.parse_simple_or_function(),
            Some("[[") => self.parse_test(),
            Some("function") => self.parse_function_keyword(),
            Some("coproc") => Err(UnsupportedSyntax("a coprocess")),
            Some("{" | "if" | "while" | "until" | "for" | "select" | "case") => self
                .with_deeper_nesting(Self::parse_compound)
                .map(ShellCommand::Compound),
            Some(_) => Err(UNKNOWN_SYNTAX),
        }
    }

    fn parse_compound(&mut self) -> Result<CompoundCommand> {
        if self.eat_reserved("{") {
            let inner = self.parse_body(&["}"])?;
            self.expect_reserved("}")?;
            return self.finish_compound(CompoundKind::Group, Vec::new(), vec![inner]);
        }
        if self.eat_reserved("while") || self.eat_reserved("until") {
            let condition = self.parse_body(&["do"])?;
            let body = self.parse_do_group()?;
            return self.finish_compound(CompoundKind::Loop, Vec::new(), vec![condition, body]);
        }
        if self.eat_reserved("if") {
            return self.parse_if();
        }
        if self.eat_reserved("case") {
            return self.parse_case();
        }
        self.eat_reserved("for");
        self.eat_reserved("select");
        self.cursor.skip_blanks();
        let variable = self.parse_name();
        if variable.is_empty() || !self.cursor.peek().is_none_or(ends_word) {
            return Err(UnsupportedSyntax("a loop with arithmetic"));
        }
        let words = self.parse_loop_words()?;
        let body = self.parse_do_group()?;
        self.finish_compound(CompoundKind::For { variable }, words, vec![body])
    }

    fn parse_body(&mut self, until: &'static [&'static str]) -> Result<ShellScript> {
        self.parse_script(ScriptEnd::Word(until))
    }

    fn parse_do_group(&mut self) -> Result<ShellScript> {
        self.skip_gap()?;
        self.expect_reserved("do")?;
        let body = self.parse_body(&["done"])?;
        self.expect_reserved("done")?;
        Ok(body)
    }

    fn parse_if(&mut self) -> Result<CompoundCommand> {
        let mut scripts = vec![self.parse_body(&["then"])?];
        self.expect_reserved("then")?;
        loop {
            scripts.push(self.parse_body(&["elif", "else", "fi"])?);
            if self.eat_reserved("elif") {
                scripts.push(self.parse_body(&["then"])?);
                self.expect_reserved("then")?;
            } else if self.eat_reserved("else") {
                scripts.push(self.parse_body(&["fi"])?);
                break;
            } else {
                break;
            }
        }
        self.expect_reserved("fi")?;
        self.finish_compound(CompoundKind::If, Vec::new(), scripts)
    }

    fn parse_case(&mut self) -> Result<CompoundCommand> {
        self.cursor.skip_blanks();
        let mut words = vec![self.parse_word()?];
        let mut scripts = Vec::new();
        self.skip_gap()?;
        self.expect_reserved("in")?;
        loop {
            self.skip_gap()?;
            if self.eat_reserved("esac") {
                return self.finish_compound(CompoundKind::Case, words, scripts);
            }
            self.cursor.eat("(");
            loop {
                self.cursor.skip_blanks();
                words.push(self.parse_word()?);
                self.cursor.skip_blanks();
                if !self.cursor.eat("|") {
                    break;
                }
            }
            if !self.cursor.eat(")") {
                return Err(UNKNOWN_SYNTAX);
            }
            scripts.push(self.parse_script(ScriptEnd::Case)?);
            if !(self.cursor.eat(";;&") || self.cursor.eat(";;") || self.cursor.eat(";&")) {
                self.expect_reserved("esac")?;
                return self.finish_compound(CompoundKind::Case, words, scripts);
            }
        }
    }

    /// Parses the list of a `for` loop, up to its `do`.
    fn parse_loop_words(&mut self) -> Result<Vec<ShellWord>> {
        let mut words = Vec::new();
        self.skip_gap()?;
        if self.eat_reserved("in") {
            loop {
                self.cursor.skip_blanks();
                match self.cursor.peek() {
                    Some('\n' | ';') => break,
                    Some('#') => self.skip_comment(),
                    Some(_) => words.push(self.parse_word()?),
                    None => return Err(UNKNOWN_SYNTAX),
                }
            }
        }
        self.cursor.skip_blanks();
        self.cursor.eat(";");
        Ok(words)
    }

    /// Parses the redirects after a compound command and builds the command.
    fn finish_compound(
        &mut self,
        kind: CompoundKind,
        words: Vec<ShellWord>,
        scripts: Vec<ShellScript>,
    ) -> Result<CompoundCommand> {
        let mut redirects = Vec::new();
        self.parse_redirects(&mut redirects)?;
        Ok(CompoundCommand {
            kind,
            words,
            scripts,
            redirects,
        })
    }

    fn parse_redirects(&mut self, redirects: &mut Vec<Redirect>) -> Result<()> {
        loop {
            self.cursor.skip_blanks();
            match self.parse_redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(()),
            }
        }
    }

    /// Parses a `[[ … ]]` test. Operators that calculate or access variables by name are rejected,
    /// because they can run commands.
    fn parse_test(&mut self) -> Result<ShellCommand> {
        const CALCULATING_OPERATORS: [&str; 8] =
            ["-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
        self.expect_reserved("[[")?;
        let mut words = Vec::new();
        loop {
            self.skip_gap()?;
            if self.eat_reserved("]]") {
                break;
            }
            if self.cursor.eat("&&") || self.cursor.eat("||") {
                continue;
            }
            let word = self.parse_word()?;
            if word
                .literal()
                .is_some_and(|text| CALCULATING_OPERATORS.contains(&text) || text == "=~")
            {
                return Err(UnsupportedSyntax("a test that calculates"));
            }
            words.push(word);
        }
        let mut redirects = Vec::new();
        self.parse_redirects(&mut redirects)?;
        Ok(ShellCommand::Test { words, redirects })
    }

    fn parse_function_keyword(&mut self) -> Result<ShellCommand> {
        self.expect_reserved("function")?;
        self.cursor.skip_blanks();
        let name = self.parse_word()?.source;
        self.cursor.skip_blanks();
        if self.cursor.eat("(") {
            self.cursor.skip_blanks();
            if !self.cursor.eat(")") {
                return Err(UNKNOWN_SYNTAX);
            }
        }
        self.parse_function_body(name)
    }

    fn parse_function_body(&mut self, name: String) -> Result<ShellCommand> {
        self.skip_gap()?;
        match self.with_deeper_nesting(Self::parse_command)? {
            ShellCommand::Compound(body) => Ok(ShellCommand::Function(FunctionDefinition {
                name,
                body: Box::new(body),
            })),
            ShellCommand::Simple(_) | ShellCommand::Function(_) | ShellCommand::Test { .. } => {
                Err(UNKNOWN_SYNTAX)
            }
        }
    }

    fn parse_simple_or_function(&mut self) -> Result<ShellCommand> {
        let mut simple = SimpleCommand::default();
        loop {
            self.parse_redirects(&mut simple.redirects)?;
            match self.cursor.peek() {
                None | Some('\n' | ';' | '&' | '|' | ')') => break,
                Some('#') => {
                    self.skip_comment();
                    break;
                }
                Some('(')
                    if simple.words.len() == 1
                        && simple.assignments.is_empty()
                        && simple.redirects.is_empty() =>
                {
                    return self.parse_function_parentheses(simple);
                }
                Some(_) => {}
            }
            let word = self.parse_word()?;
            if is_descriptor_variable(&word) && matches!(self.cursor.peek(), Some('<' | '>')) {
                return Err(UnsupportedSyntax("a descriptor kept in a variable"));
            }
            if simple.words.is_empty() && is_assignment(&word.source) {
                if self.cursor.peek() == Some('(') {
                    return Err(UnsupportedSyntax("an array"));
                }
                simple.assignments.push(word);
            } else {
                simple.words.push(word);
            }
        }
        if simple == SimpleCommand::default() {
            Err(UNKNOWN_SYNTAX)
        } else {
            Ok(ShellCommand::Simple(simple))
        }
    }

    fn parse_function_parentheses(&mut self, simple: SimpleCommand) -> Result<ShellCommand> {
        self.cursor.eat("(");
        self.cursor.skip_blanks();
        if !self.cursor.eat(")") {
            return Err(UNKNOWN_SYNTAX);
        }
        self.parse_function_body(simple.words.into_iter().map(|word| word.source).collect())
    }
}

/// True for `NAME=…`, `NAME+=…`, and `NAME[…]=…`, which set a variable if they precede the command.
pub(crate) fn is_assignment(source: &str) -> bool {
    let name_end = source
        .find(|c: char| !(c == '_' || c.is_ascii_alphanumeric()))
        .unwrap_or(source.len());
    let (name, rest) = source.split_at(name_end);
    let named = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    named
        && (rest.starts_with('=')
            || rest.starts_with("+=")
            || (rest.starts_with('[') && rest.contains('=')))
}

/// True for `{name}`: if a redirect follows, bash stores the number of a new descriptor in that
/// variable.
fn is_descriptor_variable(word: &ShellWord) -> bool {
    word.source.starts_with('{') && word.source.ends_with('}')
}
