//! Rules for names. A name becomes a file name, a part of a permission rule or a template variable,
//! and each use restricts its characters.

/// The maximum length of a skill's or an MCP server's name.
const MAX_NAME_BYTES: usize = 64;

/// A rule for valid names. Each variant is the rule for one kind of name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// The name of a template variable, such as a step of a workflow: ASCII letters, digits and
    /// `_`, without a leading digit.
    Identifier,
    /// The name of a collection, or a file name without its extension: letters and digits of any
    /// script, `-` and `_`.
    FileStem,
    /// The name of a skill: up to 64 characters `a`–`z`, `0`–`9` and single `-` between them.
    Slug,
    /// The name of an MCP server: up to 64 ASCII letters, digits, `_`, `-` and `.`. It must not
    /// contain `__`, which separates the server's name from the tool's name.
    Server,
    /// The name of a command, the word after `/` in a prompt: letters and digits of any script,
    /// `-`, `_`, `:` and `.`.
    Command,
    /// The name of a tool, as a model writes it in text: letters and digits of any script, `-`,
    /// `_`, `:`, `.` and `/`.
    Tool,
}

impl NameRule {
    /// True if `name` follows the rule. Always false for an empty name.
    pub fn allows(self, name: &str) -> bool {
        let length = 1..=MAX_NAME_BYTES;
        let plain = |c: char| self.allows_char(c);
        name.chars().all(plain)
            && match self {
                Self::Identifier => name.starts_with(|c: char| !c.is_ascii_digit()),
                Self::FileStem | Self::Command | Self::Tool => !name.is_empty(),
                Self::Slug => {
                    length.contains(&name.len())
                        && !name.starts_with('-')
                        && !name.ends_with('-')
                        && !name.contains("--")
                }
                Self::Server => length.contains(&name.len()) && !name.contains("__"),
            }
    }

    /// True if the rule allows the character anywhere in a name. Used by parsers that read a name
    /// character by character.
    pub fn allows_char(self, c: char) -> bool {
        match self {
            Self::Identifier => c.is_ascii_alphanumeric() || c == '_',
            Self::FileStem => c.is_alphanumeric() || c == '-' || c == '_',
            Self::Slug => c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-',
            Self::Server => c.is_ascii_alphanumeric() || "_-.".contains(c),
            Self::Command => c.is_alphanumeric() || "-_:.".contains(c),
            Self::Tool => c.is_alphanumeric() || "-_:./".contains(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_rules_allow_their_names_only() {
        let rules = [
            NameRule::Identifier,
            NameRule::FileStem,
            NameRule::Slug,
            NameRule::Server,
            NameRule::Command,
            NameRule::Tool,
        ];
        let long = "a".repeat(65);
        for (name, wanted) in [
            ("", [false, false, false, false, false, false]),
            ("a", [true, true, true, true, true, true]),
            ("step_2", [true, true, false, true, true, true]),
            ("_x", [true, true, false, true, true, true]),
            ("2x", [false, true, true, true, true, true]),
            ("Ab", [true, true, false, true, true, true]),
            ("a-b", [false, true, true, true, true, true]),
            ("a--b", [false, true, false, true, true, true]),
            ("-a", [false, true, false, true, true, true]),
            ("a-", [false, true, false, true, true, true]),
            ("a__b", [true, true, false, false, true, true]),
            ("a.b", [false, false, false, true, true, true]),
            ("über", [false, true, false, false, true, true]),
            ("a b", [false, false, false, false, false, false]),
            ("a/b", [false, false, false, false, false, true]),
            ("..", [false, false, false, true, true, true]),
            (long.as_str(), [true, true, false, false, true, true]),
            (&long[..64], [true, true, true, true, true, true]),
        ] {
            assert_eq!(rules.map(|rule| rule.allows(name)), wanted, "{name}");
        }
    }
}
