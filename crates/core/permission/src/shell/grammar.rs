//! Parses lists, pipelines, and compound commands.

use super::word::ends_word;
use super::{
    CompoundCommand, CompoundKind, FunctionDefinition, JobMode, ListOperator, Pipeline, Redirect,
    Result, ShellCommand, ShellParser, ShellScript, ShellWord, SimpleCommand, UnsupportedSyntax,
};

const SYNTAX: UnsupportedSyntax = UnsupportedSyntax("a syntax this program does not know");

/// Words with a special meaning at the beginning of a command.
const RESERVED: [&str; 22] = [
    "!", "{", "}", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
];

/// The text that ends a script.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptEnd {
    OfText,
    /// The `)`, which is consumed.
    Parenthesis,
    /// One of these words, which is not consumed.
    Word(&'static [&'static str]),
    /// `;;`, `;&`, `;;&`, or `esac`, which are not consumed.
    Case,
}

impl ShellParser<'_> {
    pub(super) fn script(&mut self, end: ScriptEnd) -> Result<ShellScript> {
        let mut script = ShellScript::default();
        let mut operator = ListOperator::Then;
        loop {
            self.gap()?;
            if self.at_end(end)? {
                return if operator == ListOperator::Then {
                    Ok(script)
                } else {
                    Err(SYNTAX)
                };
            }
            let commands = self.pipeline()?;
            self.cursor.skip_blanks();
            let mut mode = JobMode::Foreground;
            let next = if self.cursor.eat("&&") {
                ListOperator::And
            } else if self.cursor.eat("||") {
                ListOperator::Or
            } else {
                mode = self.separator(end)?;
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

    /// Parses the separator between two lists. It may be missing at the end of the script.
    fn separator(&mut self, end: ScriptEnd) -> Result<JobMode> {
        self.comment();
        if self.cursor.looking_at(";;") || self.cursor.looking_at(";&") {
            return if end == ScriptEnd::Case {
                Ok(JobMode::Foreground)
            } else {
                Err(SYNTAX)
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
            Some(_) => Err(SYNTAX),
        }
    }

    /// Skips blanks, comments, and line breaks, and reads the here-documents after line breaks.
    fn gap(&mut self) -> Result<()> {
        loop {
            self.cursor.skip_blanks();
            self.comment();
            if !self.cursor.eat("\n") {
                return Ok(());
            }
            self.here_bodies()?;
        }
    }

    /// Skips a comment up to the end of its line. A backslash does not join the next line to it.
    fn comment(&mut self) {
        if self.cursor.peek() == Some('#') {
            while self.cursor.raw_peek().is_some_and(|c| c != '\n') {
                self.cursor.raw_next();
            }
        }
    }

    fn at_end(&mut self, end: ScriptEnd) -> Result<bool> {
        let over = self.cursor.peek().is_none();
        match end {
            ScriptEnd::OfText => Ok(over),
            _ if over => Err(UnsupportedSyntax("something that is opened and not closed")),
            ScriptEnd::Parenthesis => Ok(self.cursor.eat(")")),
            ScriptEnd::Word(words) => Ok(words.iter().any(|word| self.at_reserved(word))),
            ScriptEnd::Case => Ok(self.cursor.looking_at(";;")
                || self.cursor.looking_at(";&")
                || self.at_reserved("esac")),
        }
    }

    /// True if `wanted` begins here as an unquoted, complete word.
    fn at_reserved(&mut self, wanted: &str) -> bool {
        let mut ahead = self.cursor.clone();
        ahead.eat(wanted) && ahead.peek().is_none_or(ends_word)
    }

    fn eat_reserved(&mut self, wanted: &str) -> bool {
        self.at_reserved(wanted) && self.cursor.eat(wanted)
    }

    fn expect_reserved(&mut self, wanted: &str) -> Result<()> {
        if self.eat_reserved(wanted) {
            Ok(())
        } else {
            Err(SYNTAX)
        }
    }

    fn pipeline(&mut self) -> Result<Vec<ShellCommand>> {
        loop {
            self.cursor.skip_blanks();
            if self.eat_reserved("time") {
                self.cursor.skip_blanks();
                self.eat_reserved("-p");
            } else if !self.eat_reserved("!") {
                break;
            }
        }
        let mut commands = vec![self.command()?];
        loop {
            self.cursor.skip_blanks();
            if self.cursor.looking_at("||") {
                return Ok(commands);
            }
            if !(self.cursor.eat("|&") || self.cursor.eat("|")) {
                return Ok(commands);
            }
            self.gap()?;
            commands.push(self.command()?);
        }
    }

    fn command(&mut self) -> Result<ShellCommand> {
        self.cursor.skip_blanks();
        if self.cursor.looking_at("((") {
            return Err(UnsupportedSyntax("arithmetic"));
        }
        if self.cursor.eat("(") {
            let inner = self.deeper(|inner| inner.script(ScriptEnd::Parenthesis))?;
            return self
                .compound(CompoundKind::Subshell, Vec::new(), vec![inner])
                .map(ShellCommand::Compound);
        }
        let reserved = RESERVED.iter().copied().find(|word| self.at_reserved(word));
        match reserved {
            None => self.simple_or_function(),
            Some("[[") => self.test(),
            Some("function") => self.function_by_keyword(),
            Some("coproc") => Err(UnsupportedSyntax("a coprocess")),
            Some("{" | "if" | "while" | "until" | "for" | "select" | "case") => self
                .deeper(Self::compound_by_keyword)
                .map(ShellCommand::Compound),
            Some(_) => Err(SYNTAX),
        }
    }

    fn compound_by_keyword(&mut self) -> Result<CompoundCommand> {
        if self.eat_reserved("{") {
            let inner = self.body(&["}"])?;
            self.expect_reserved("}")?;
            return self.compound(CompoundKind::Group, Vec::new(), vec![inner]);
        }
        if self.eat_reserved("while") || self.eat_reserved("until") {
            let condition = self.body(&["do"])?;
            let body = self.do_group()?;
            return self.compound(CompoundKind::Loop, Vec::new(), vec![condition, body]);
        }
        if self.eat_reserved("if") {
            return self.branches();
        }
        if self.eat_reserved("case") {
            return self.cases();
        }
        self.eat_reserved("for");
        self.eat_reserved("select");
        self.cursor.skip_blanks();
        let variable = self.name();
        if variable.is_empty() || !self.cursor.peek().is_none_or(ends_word) {
            return Err(UnsupportedSyntax("a loop with arithmetic"));
        }
        let words = self.loop_words()?;
        let body = self.do_group()?;
        self.compound(CompoundKind::For { variable }, words, vec![body])
    }

    fn body(&mut self, until: &'static [&'static str]) -> Result<ShellScript> {
        self.script(ScriptEnd::Word(until))
    }

    fn do_group(&mut self) -> Result<ShellScript> {
        self.gap()?;
        self.expect_reserved("do")?;
        let body = self.body(&["done"])?;
        self.expect_reserved("done")?;
        Ok(body)
    }

    fn branches(&mut self) -> Result<CompoundCommand> {
        let mut scripts = vec![self.body(&["then"])?];
        self.expect_reserved("then")?;
        loop {
            scripts.push(self.body(&["elif", "else", "fi"])?);
            if self.eat_reserved("elif") {
                scripts.push(self.body(&["then"])?);
                self.expect_reserved("then")?;
            } else if self.eat_reserved("else") {
                scripts.push(self.body(&["fi"])?);
                break;
            } else {
                break;
            }
        }
        self.expect_reserved("fi")?;
        self.compound(CompoundKind::If, Vec::new(), scripts)
    }

    fn cases(&mut self) -> Result<CompoundCommand> {
        self.cursor.skip_blanks();
        let mut words = vec![self.word()?];
        let mut scripts = Vec::new();
        self.gap()?;
        self.expect_reserved("in")?;
        loop {
            self.gap()?;
            if self.eat_reserved("esac") {
                return self.compound(CompoundKind::Case, words, scripts);
            }
            self.cursor.eat("(");
            loop {
                self.cursor.skip_blanks();
                words.push(self.word()?);
                self.cursor.skip_blanks();
                if !self.cursor.eat("|") {
                    break;
                }
            }
            if !self.cursor.eat(")") {
                return Err(SYNTAX);
            }
            scripts.push(self.script(ScriptEnd::Case)?);
            if !(self.cursor.eat(";;&") || self.cursor.eat(";;") || self.cursor.eat(";&")) {
                self.expect_reserved("esac")?;
                return self.compound(CompoundKind::Case, words, scripts);
            }
        }
    }

    /// Parses the list of a `for` loop, up to its `do`.
    fn loop_words(&mut self) -> Result<Vec<ShellWord>> {
        let mut words = Vec::new();
        self.gap()?;
        if self.eat_reserved("in") {
            loop {
                self.cursor.skip_blanks();
                match self.cursor.peek() {
                    Some('\n' | ';') => break,
                    Some('#') => self.comment(),
                    Some(_) => words.push(self.word()?),
                    None => return Err(SYNTAX),
                }
            }
        }
        self.cursor.skip_blanks();
        self.cursor.eat(";");
        Ok(words)
    }

    /// Parses the redirects after a compound command and builds the command.
    fn compound(
        &mut self,
        kind: CompoundKind,
        words: Vec<ShellWord>,
        scripts: Vec<ShellScript>,
    ) -> Result<CompoundCommand> {
        let mut redirects = Vec::new();
        self.redirects(&mut redirects)?;
        Ok(CompoundCommand {
            kind,
            words,
            scripts,
            redirects,
        })
    }

    fn redirects(&mut self, redirects: &mut Vec<Redirect>) -> Result<()> {
        loop {
            self.cursor.skip_blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(()),
            }
        }
    }

    /// Parses `[[ … ]]` without the operators that calculate or access variables by name, which can
    /// run commands.
    fn test(&mut self) -> Result<ShellCommand> {
        const CALCULATE: [&str; 8] = ["-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
        self.expect_reserved("[[")?;
        let mut words = Vec::new();
        loop {
            self.gap()?;
            if self.eat_reserved("]]") {
                break;
            }
            if self.cursor.eat("&&") || self.cursor.eat("||") {
                continue;
            }
            let word = self.word()?;
            if word
                .literal()
                .is_some_and(|text| CALCULATE.contains(&text) || text == "=~")
            {
                return Err(UnsupportedSyntax("a test that calculates"));
            }
            words.push(word);
        }
        let mut redirects = Vec::new();
        self.redirects(&mut redirects)?;
        Ok(ShellCommand::Test { words, redirects })
    }

    fn function_by_keyword(&mut self) -> Result<ShellCommand> {
        self.expect_reserved("function")?;
        self.cursor.skip_blanks();
        let name = self.word()?.source;
        self.cursor.skip_blanks();
        if self.cursor.eat("(") {
            self.cursor.skip_blanks();
            if !self.cursor.eat(")") {
                return Err(SYNTAX);
            }
        }
        self.function(name)
    }

    fn function(&mut self, name: String) -> Result<ShellCommand> {
        self.gap()?;
        match self.deeper(Self::command)? {
            ShellCommand::Compound(body) => Ok(ShellCommand::Function(FunctionDefinition {
                name,
                body: Box::new(body),
            })),
            ShellCommand::Simple(_) | ShellCommand::Function(_) | ShellCommand::Test { .. } => {
                Err(SYNTAX)
            }
        }
    }

    fn simple_or_function(&mut self) -> Result<ShellCommand> {
        let mut simple = SimpleCommand::default();
        loop {
            self.redirects(&mut simple.redirects)?;
            match self.cursor.peek() {
                None | Some('\n' | ';' | '&' | '|' | ')') => break,
                Some('#') => {
                    self.comment();
                    break;
                }
                Some('(')
                    if simple.words.len() == 1
                        && simple.assignments.is_empty()
                        && simple.redirects.is_empty() =>
                {
                    return self.function_by_parentheses(simple);
                }
                Some(_) => {}
            }
            let word = self.word()?;
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
            Err(SYNTAX)
        } else {
            Ok(ShellCommand::Simple(simple))
        }
    }

    fn function_by_parentheses(&mut self, simple: SimpleCommand) -> Result<ShellCommand> {
        self.cursor.eat("(");
        self.cursor.skip_blanks();
        if !self.cursor.eat(")") {
            return Err(SYNTAX);
        }
        self.function(simple.words.into_iter().map(|word| word.source).collect())
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

/// True for `{name}`, which receives the number of a new descriptor if a redirect follows.
fn is_descriptor_variable(word: &ShellWord) -> bool {
    word.source.starts_with('{') && word.source.ends_with('}')
}
