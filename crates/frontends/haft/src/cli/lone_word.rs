//! Checks a lone word after `haft`, which is more often a mistyped command than a prompt, before
//! anything is sent to a model.
//!
//! At a terminal the user chooses; otherwise the word is rejected. `--` before the word marks it as
//! a prompt.

use std::ffi::OsString;
use std::io::BufRead;

use clap::Command;

use crate::cli::options::{RunArgs, is_at_terminal};
use crate::exit::usage_error;
use crate::output;

/// The interpretation of the arguments after `haft`, which may be a single mistyped command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LoneWord {
    /// The arguments are a prompt, or more than one word.
    Prompt,
    /// The word is a mistyped command; holds the name of the intended command.
    Command(String),
    /// The user confirmed neither a prompt nor a command, so nothing runs.
    Canceled,
}

/// Determines whether the arguments are a prompt or a mistyped command; at a terminal, the user is
/// asked.
pub(crate) fn resolve_lone_word(haft: &Command, args: &RunArgs) -> anyhow::Result<LoneWord> {
    let is_marked = std::env::args_os().any(|arg| arg == "--");
    let Some(word) = args
        .prompt
        .as_deref()
        .filter(|_| !is_marked)
        .and_then(|prompt| as_lone_word(prompt))
    else {
        return Ok(LoneWord::Prompt);
    };
    let near = find_near_word(haft, word);
    let continues = args.resume_current || args.resume.is_some();
    // In a continued conversation, a single word may be an answer. Languages such as Chinese write
    // no blanks between words.
    if near.is_none() && (continues || !word.is_ascii()) {
        return Ok(LoneWord::Prompt);
    }
    if !is_at_terminal() {
        return Err(usage_error(rejection_message(word, near.as_ref())));
    }
    haft_tui::discard_typed_ahead_now(std::io::stdin());
    ask_user(word, near.as_ref(), &mut std::io::stdin().lock())
}

/// Returns the error message for arguments that cannot be parsed and begin with a mistyped command.
pub(crate) fn explain_mistyped_command(haft: &Command, args: &[OsString]) -> Option<String> {
    let word = as_lone_word(args.first()?.to_str()?).filter(|word| !word.starts_with('-'))?;
    let known = haft.find_subcommand(word).is_some() || word == "help";
    find_near_word(haft, word)
        .filter(|_| !known)
        .map(|near| format!("{}\n", rejection_message(word, Some(&near))))
}

/// Returns the prompt if it is a single word, and neither a slash command, a mention nor a shell
/// command.
fn as_lone_word(prompt: &str) -> Option<&str> {
    let is_word = !prompt.is_empty()
        && !prompt.contains(char::is_whitespace)
        && !prompt.starts_with(['/', '@', '!']);
    is_word.then_some(prompt)
}

/// The known word that is most similar to a word after `haft`.
#[derive(Debug, PartialEq, Eq)]
enum NearWord {
    /// A command of haft, by its name.
    Command(String),
    /// A command of other agents, with advice on the equivalent in haft.
    Foreign(&'static str),
}

fn find_near_word(haft: &Command, word: &str) -> Option<NearWord> {
    let word = word.to_lowercase();
    if let Some(advice) = foreign_word_advice(&word) {
        return Some(NearWord::Foreign(advice));
    }
    let commands = haft
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .flat_map(|command| {
            command
                .get_name_and_visible_aliases()
                .into_iter()
                .chain(command.get_all_aliases())
        })
        .chain(["help"]);
    let found = haft_model::nearest_name(&word, commands.chain(FOREIGN_WORDS))?;
    if let Some(advice) = foreign_word_advice(&found) {
        return Some(NearWord::Foreign(advice));
    }
    let name = haft
        .find_subcommand(&found)
        .map_or(found.as_str(), Command::get_name);
    Some(NearWord::Command(name.to_owned()))
}

/// The words for which [`foreign_word_advice`] has advice.
const FOREIGN_WORDS: [&str; 27] = [
    "login", "logout", "auth", "signin", "init", "setup", "update", "upgrade", "install",
    "version", "ask", "resume", "continue", "session", "sessions", "history", "exit", "quit",
    "status", "usage", "cost", "stats", "info", "plugin", "plugins", "recipe", "recipes",
];

/// Returns advice on the haft equivalent of a command of another agent.
fn foreign_word_advice(word: &str) -> Option<&'static str> {
    Some(match word {
        "login" | "logout" | "auth" | "signin" => text!("cli-word-login"),
        "init" | "setup" => text!("cli-word-init"),
        "update" | "upgrade" | "install" => text!("cli-word-update"),
        "version" => text!("cli-word-version"),
        "ask" => text!("cli-word-exec"),
        "resume" | "continue" => text!("cli-word-resume"),
        "session" | "sessions" | "history" => text!("cli-word-sessions"),
        "exit" | "quit" => text!("cli-word-exit"),
        "status" | "info" => text!("cli-word-status"),
        "usage" | "cost" | "stats" => text!("cli-word-cost"),
        "plugin" | "plugins" => text!("cli-word-plugins"),
        "recipe" | "recipes" => text!("cli-word-recipes"),
        _ => return None,
    })
}

fn rejection_message(word: &str, near: Option<&NearWord>) -> String {
    match near {
        Some(NearWord::Command(near)) => text!("cli-word-near", word, near),
        Some(NearWord::Foreign(advice)) => text!("cli-word-elsewhere", word, advice),
        None => text!("cli-word-unknown", word),
    }
}

fn ask_user(
    word: &str,
    near: Option<&NearWord>,
    answers: &mut impl BufRead,
) -> anyhow::Result<LoneWord> {
    let question = match near {
        Some(NearWord::Command(near)) => text!("cli-word-ask-near", word, near),
        Some(NearWord::Foreign(advice)) => text!("cli-word-ask-elsewhere", word, advice),
        None => text!("cli-word-ask", word),
    };
    output::print_text(&haft_text::reveal_controls(&format!("{question} ")))?;
    let mut answer = String::new();
    answers.read_line(&mut answer)?;
    Ok(match (answer.trim().to_lowercase().as_str(), near) {
        ("p" | "prompt", _) => LoneWord::Prompt,
        (answer, Some(NearWord::Command(near)))
            if haft_messages::parse_yes_no(answer) == Some(true) =>
        {
            LoneWord::Command(near.clone())
        }
        _ => LoneWord::Canceled,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;

    /// Returns the variants of a word in which one pair of neighboring characters is swapped.
    fn swap_neighbors(word: &str) -> impl Iterator<Item = String> {
        let chars: Vec<char> = word.chars().collect();
        (1..chars.len()).map(move |at| {
            let mut swapped = chars.clone();
            swapped.swap(at - 1, at);
            swapped.into_iter().collect()
        })
    }

    /// Returns texts that are one edit away from `name`.
    fn edits(name: &str) -> Vec<String> {
        let chars: Vec<char> = name.chars().collect();
        let mut all: Vec<String> = swap_neighbors(name).collect();
        let inserted = ['a', 's', 'z', 'X', '0', '-', '_', '.', 'é', '\u{301}'];
        for at in 0..=chars.len() {
            let before = chars[..at].iter().collect::<String>();
            let after = &chars[at..];
            let rest = |from: usize| after.iter().skip(from).collect::<String>();
            all.extend(inserted.iter().map(|c| format!("{before}{c}{}", rest(0))));
            if at < chars.len() {
                all.push(format!("{before}{}", rest(1)));
                all.push(format!("{before}{}{}", chars[at], rest(0)));
                all.extend(inserted.iter().map(|c| format!("{before}{c}{}", rest(1))));
            }
        }
        all
    }

    #[test]
    fn find_near_word_finds_a_command_for_every_single_edit() {
        let haft = Cli::definition();
        let names = haft.get_subcommands().flat_map(|one| {
            one.get_name_and_visible_aliases()
                .into_iter()
                .chain(one.get_all_aliases())
        });
        for name in names.chain(["help"]) {
            for edited in edits(name).into_iter().filter(|edited| edited != name) {
                assert!(
                    find_near_word(&haft, &edited).is_some(),
                    "{edited}, from {name}"
                );
            }
            assert!(find_near_word(&haft, &name.to_uppercase()).is_some());
        }
    }

    #[test]
    fn find_near_word_returns_the_plural_command() {
        let haft = Cli::definition();
        for (word, command) in [
            ("modles", "models"),
            ("modle", "models"),
            ("rnu", "run"),
            ("Config", "config"),
            ("hlep", "help"),
        ] {
            assert_eq!(
                find_near_word(&haft, word),
                Some(NearWord::Command(command.to_owned())),
                "{word}"
            );
        }
    }

    #[test]
    fn foreign_word_advice_explains_commands_of_other_agents() {
        let haft = Cli::definition();
        for word in FOREIGN_WORDS {
            assert!(foreign_word_advice(word).is_some(), "{word}");
            assert!(
                haft.find_subcommand(word).is_none(),
                "`haft {word}` is a command by now"
            );
        }
        for word in ["lgoin", "LOGIN", "updat"] {
            assert!(
                matches!(find_near_word(&haft, word), Some(NearWord::Foreign(_))),
                "{word}"
            );
        }
    }

    #[test]
    fn as_lone_word_ignores_prompts_of_more_than_a_word() {
        for prompt in ["fix it", "models ", "/review", "@src/main.rs", "!ls", ""] {
            assert_eq!(as_lone_word(prompt), None, "{prompt:?}");
        }
    }

    #[test]
    fn ask_user_acts_only_on_a_clear_answer() {
        let near = NearWord::Command("models".to_owned());
        let answer = |text: &str, near: Option<&NearWord>| {
            ask_user("modles", near, &mut text.as_bytes()).unwrap()
        };
        assert_eq!(
            answer("y\n", Some(&near)),
            LoneWord::Command("models".to_owned())
        );
        assert_eq!(answer("p\n", Some(&near)), LoneWord::Prompt);
        for (text, near) in [
            ("\n", Some(&near)),
            ("", Some(&near)),
            ("x\n", Some(&near)),
            ("y\n", None),
        ] {
            assert_eq!(answer(text, near), LoneWord::Canceled, "{text:?}");
        }
    }
}
