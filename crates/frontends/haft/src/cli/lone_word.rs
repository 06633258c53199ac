//! Checks a lone word after `haft`, which is more often a mistyped command than a prompt, before
//! anything is sent to a model.
//!
//! At a terminal the user chooses; otherwise the word is rejected. `--` before the word marks it as
//! a prompt.

use std::ffi::OsString;
use std::io::BufRead;

use clap::Command;

use crate::cli::options::{RunArgs, at_a_terminal};
use crate::exit::usage_error;
use crate::output;

/// The meaning of a word in the place of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LoneWord {
    /// A prompt, or no lone word at all.
    Prompt,
    /// A mistyped command, with the name of the intended one.
    Command(String),
    /// The user chose neither, so nothing is done.
    Left,
}

/// Determines whether the arguments are a prompt or a mistyped command; at a terminal, the user is
/// asked.
pub(crate) fn settle(haft: &Command, args: &RunArgs) -> anyhow::Result<LoneWord> {
    let is_marked = std::env::args_os().any(|arg| arg == "--");
    let Some(word) = args
        .prompt
        .as_deref()
        .filter(|_| !is_marked)
        .and_then(|prompt| word(prompt))
    else {
        return Ok(LoneWord::Prompt);
    };
    let near = near(haft, word);
    let continues = args.resume_current || args.resume.is_some();
    // A word that continues a conversation answers it, and not every script writes blanks between
    // words.
    if near.is_none() && (continues || !word.is_ascii()) {
        return Ok(LoneWord::Prompt);
    }
    if !at_a_terminal() {
        return Err(usage_error(refusal(word, near.as_ref())));
    }
    haft_tui::forget_typed_ahead(std::io::stdin());
    ask(word, near.as_ref(), &mut std::io::stdin().lock())
}

/// Returns the error message for arguments that cannot be parsed and begin with a mistyped command.
pub(crate) fn mistyped(haft: &Command, args: &[OsString]) -> Option<String> {
    let word = word(args.first()?.to_str()?).filter(|word| !word.starts_with('-'))?;
    let known = haft.find_subcommand(word).is_some() || word == "help";
    near(haft, word)
        .filter(|_| !known)
        .map(|near| format!("{}\n", refusal(word, Some(&near))))
}

/// Returns the prompt if it is a single word that nothing marks as a prompt: no blank, no slash
/// command, no mention, no shell command.
fn word(prompt: &str) -> Option<&str> {
    let is_word = !prompt.is_empty()
        && !prompt.contains(char::is_whitespace)
        && !prompt.starts_with(['/', '@', '!']);
    is_word.then_some(prompt)
}

/// The closest match of a word.
#[derive(Debug, PartialEq, Eq)]
enum NearWord {
    /// A command, by its name.
    Command(String),
    /// A command of other agents, with advice on the equivalent in haft.
    Elsewhere(&'static str),
}

fn near(haft: &Command, word: &str) -> Option<NearWord> {
    let word = word.to_lowercase();
    if let Some(advice) = elsewhere(&word) {
        return Some(NearWord::Elsewhere(advice));
    }
    let commands: Vec<_> = haft
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .flat_map(|command| {
            command
                .get_name_and_visible_aliases()
                .into_iter()
                .chain(command.get_all_aliases())
        })
        .chain(["help"])
        .collect();
    let is_known = |text: &String| commands.contains(&text.as_str()) || elsewhere(text).is_some();
    let found = swaps(&word).find(is_known).or_else(|| {
        let known = commands.iter().copied().chain(ELSEWHERE);
        haft_model::nearest(&word, known)
    })?;
    if let Some(advice) = elsewhere(&found) {
        return Some(NearWord::Elsewhere(advice));
    }
    let name = haft
        .find_subcommand(&found)
        .map_or(found.as_str(), Command::get_name);
    Some(NearWord::Command(name.to_owned()))
}

/// Returns the word with each pair of neighboring characters swapped, one pair at a time.
fn swaps(word: &str) -> impl Iterator<Item = String> {
    let chars: Vec<char> = word.chars().collect();
    (1..chars.len()).map(move |at| {
        let mut swapped = chars.clone();
        swapped.swap(at - 1, at);
        swapped.into_iter().collect()
    })
}

/// The words for which [`foreign_word_advice`] has advice.
const ELSEWHERE: [&str; 27] = [
    "login", "logout", "auth", "signin", "init", "setup", "update", "upgrade", "install",
    "version", "ask", "resume", "continue", "session", "sessions", "history", "exit", "quit",
    "status", "usage", "cost", "stats", "info", "plugin", "plugins", "recipe", "recipes",
];

/// Returns advice on how haft does what a user of another agent expects of this word.
fn elsewhere(word: &str) -> Option<&'static str> {
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

fn refusal(word: &str, near: Option<&NearWord>) -> String {
    match near {
        Some(NearWord::Command(near)) => text!("cli-word-near", word, near),
        Some(NearWord::Elsewhere(advice)) => text!("cli-word-elsewhere", word, advice),
        None => text!("cli-word-unknown", word),
    }
}

fn ask(
    word: &str,
    near: Option<&NearWord>,
    answers: &mut impl BufRead,
) -> anyhow::Result<LoneWord> {
    let question = match near {
        Some(NearWord::Command(near)) => text!("cli-word-ask-near", word, near),
        Some(NearWord::Elsewhere(advice)) => text!("cli-word-ask-elsewhere", word, advice),
        None => text!("cli-word-ask", word),
    };
    output::print(&haft_text::reveal(&format!("{question} ")))?;
    let mut answer = String::new();
    answers.read_line(&mut answer)?;
    Ok(match (answer.trim().to_lowercase().as_str(), near) {
        ("p" | "prompt", _) => LoneWord::Prompt,
        (answer, Some(NearWord::Command(near)))
            if haft_messages::agreement(answer) == Some(true) =>
        {
            LoneWord::Command(near.clone())
        }
        _ => LoneWord::Left,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;

    /// Returns every text that is one edit away from `name`.
    fn edits(name: &str) -> Vec<String> {
        let chars: Vec<char> = name.chars().collect();
        let mut all: Vec<String> = swaps(name).collect();
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
    fn every_command_with_one_edit_is_near_a_command() {
        let haft = Cli::definition();
        let names = haft.get_subcommands().flat_map(|one| {
            one.get_name_and_visible_aliases()
                .into_iter()
                .chain(one.get_all_aliases())
        });
        for name in names.chain(["help"]) {
            for edited in edits(name).into_iter().filter(|edited| edited != name) {
                assert!(near(&haft, &edited).is_some(), "{edited}, from {name}");
            }
            assert!(near(&haft, &name.to_uppercase()).is_some());
        }
    }

    #[test]
    fn the_command_that_was_meant_is_named_in_the_plural() {
        let haft = Cli::definition();
        for (word, command) in [
            ("modles", "models"),
            ("modle", "models"),
            ("rnu", "run"),
            ("Config", "config"),
            ("hlep", "help"),
        ] {
            assert_eq!(
                near(&haft, word),
                Some(NearWord::Command(command.to_owned())),
                "{word}"
            );
        }
    }

    #[test]
    fn what_other_agents_have_is_explained() {
        let haft = Cli::definition();
        for word in ELSEWHERE {
            assert!(elsewhere(word).is_some(), "{word}");
            assert!(
                haft.find_subcommand(word).is_none(),
                "`haft {word}` is a command by now"
            );
        }
        for word in ["lgoin", "LOGIN", "updat"] {
            assert!(
                matches!(near(&haft, word), Some(NearWord::Elsewhere(_))),
                "{word}"
            );
        }
    }

    #[test]
    fn a_prompt_that_is_more_than_a_word_is_not_asked_about() {
        for prompt in ["fix it", "models ", "/review", "@src/main.rs", "!ls", ""] {
            assert_eq!(word(prompt), None, "{prompt:?}");
        }
    }

    #[test]
    fn only_a_clear_answer_does_something() {
        let near = NearWord::Command("models".to_owned());
        let answer = |text: &str, near: Option<&NearWord>| {
            ask("modles", near, &mut text.as_bytes()).unwrap()
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
            assert_eq!(answer(text, near), LoneWord::Left, "{text:?}");
        }
    }
}
