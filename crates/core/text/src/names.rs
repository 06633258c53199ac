//! What can be a name: names become file names, parts of rules and template variables, so each of
//! them is plain in its own way.

/// The longest name of a skill or a server, in bytes.
const LONGEST: usize = 64;

/// What a name may be made of, by what is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// ASCII letters, digits and `_`, no digit in front: a variable of a template, such as a step
    /// of a workflow.
    Identifier,
    /// Letters and digits of any script, `-` and `_`: a file's name without its ending, the name of
    /// a collection.
    FileStem,
    /// Up to 64 of a–z, 0–9 and single `-` between them: a skill.
    Slug,
    /// Up to 64 ASCII letters, digits, `_`, `-` and `.`, but no `__`, which parts a server's name
    /// from its tool's: an MCP server.
    Server,
    /// Letters and digits of any script, `-`, `_`, `:` and `.`: what stands after `/` in a prompt.
    Command,
    /// The same and `/`: a tool as a model writes it into its text.
    Tool,
}

impl NameRule {
    /// Whether this can be a name. Nothing at all never can.
    pub fn allows(self, name: &str) -> bool {
        let length = 1..=LONGEST;
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

    /// Whether the character can stand in a name, for those who meet a name character by character.
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
    fn each_rule_has_its_own_names() {
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
