//! Finds files outside the project that a command writes. Without a sandbox, a rule for the
//! beginning of a command does not cover them.

use std::path::{Path, PathBuf};

use haft_types::Decision;

use super::{LineJudge, rule_covers};
use crate::decide::Confinement;
use crate::effects::{
    self, CommandEffect, ProgramRun, Risk, RiskPosition, WorkingFolders, writes_named_files,
};
use crate::shape::{self, ANY, HOME};
use crate::shell::{ShellWord, WordValue};

/// Devices that any command may read or write.
const HARMLESS_DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
];

impl LineJudge<'_> {
    /// Explains that a command may write outside the project, where neither a sandbox prevents this
    /// nor a rule names the path.
    pub(super) fn explain_outside_word(
        &self,
        effect: &CommandEffect,
        run: &ProgramRun,
    ) -> Option<String> {
        let is_confined = match self.permissions.confinement {
            Confinement::None => false,
            Confinement::Folders | Confinement::Sandbox => true,
        };
        if is_confined || !writes_named_files(&run.words, &run.risks) {
            return None;
        }
        let program = run.words.first().and_then(ShellWord::base_name)?;
        let sources = count_link_sources(&run.words);
        let mut words = run.words.iter().enumerate().skip(1 + sources);
        let (_, word) = words.find(|(at, word)| {
            self.may_be_outside(program, word, &run.folders) && !self.is_named(effect, *at)
        })?;
        Some(format!(
            "`{}` may be outside the project, there is no sandbox, and a rule for the beginning of a command does not cover that",
            word.source
        ))
    }

    /// True if an allow rule names the word at index `at`, or every word of the command.
    fn is_named(&self, effect: &CommandEffect, at: usize) -> bool {
        let named = [Risk {
            at: RiskPosition::Word(at),
            what: "",
        }];
        let whole = [Risk {
            at: RiskPosition::Whole,
            what: "",
        }];
        let mut rules = self.rules(Decision::Allow).iter();
        rules.any(|rule| {
            rule.tool() == self.tool
                && (rule_covers(rule, effect, &named) || rule_covers(rule, effect, &whole))
        })
    }

    fn may_be_outside(&self, program: &str, word: &ShellWord, folders: &WorkingFolders) -> bool {
        match &word.text {
            WordValue::Literal(text) => list_named_paths(program, text).iter().any(|path| {
                let is_outside =
                    |path: &PathBuf| !self.workspace.contains(path) && !is_harmless_device(path);
                // A path with an unresolvable link, or in an unknown folder, can be anywhere.
                effects::resolve_path(folders, path)
                    .is_none_or(|resolved| resolved.iter().any(is_outside))
            }),
            WordValue::Home(_) => true,
            WordValue::Dynamic { .. } if word.shape.contains([ANY, HOME]) => true,
            WordValue::Dynamic { .. } => {
                let known = word
                    .shape
                    .find(|c: char| !shape::is_known(c.encode_utf8(&mut [0; 4])));
                let known = known.and_then(|end| word.shape.get(..end)).unwrap_or("");
                let folder = known.rsplit_once('/').map_or(".", |(folder, _)| folder);
                let folder = if folder.is_empty() { "/" } else { folder };
                effects::resolve_path(folders, folder)
                    .is_none_or(|paths| !paths.iter().all(|path| self.workspace.contains(path)))
            }
        }
    }
}

/// The letters of the options of programs that take a value. The rest of a cluster after such a
/// letter is its value.
const VALUED_LETTERS: [(&[&str], &str); 9] = [
    (&["cp", "gcp", "mv", "gmv", "ln", "gln"], "St"),
    (&["install", "ginstall"], "Sgmot"),
    (&["tar", "gtar"], "CFHIKLNTVXbfg"),
    (&["unzip"], "Pdx"),
    (&["csplit"], "bfn"),
    (&["mktemp"], "p"),
    (&["split", "gsplit"], "Cabeltn"),
    (&["touch", "truncate"], "drst"),
    (
        &[
            "chmod", "chown", "chgrp", "rm", "grm", "rmdir", "mkdir", "tee",
        ],
        "m",
    ),
];

/// Returns the paths that a word of a program names: the word, the value of an option, or the text
/// after an `=`.
fn list_named_paths<'a>(program: &str, text: &'a str) -> Vec<&'a str> {
    let value = text.split_once('=').map(|(_, value)| value);
    if text.starts_with("--") {
        return value
            .filter(|value| !value.is_empty())
            .into_iter()
            .collect();
    }
    let Some(cluster) = text.strip_prefix('-').filter(|cluster| !cluster.is_empty()) else {
        let paths = std::iter::once(text).chain(value);
        return paths.filter(|path| !path.is_empty()).collect();
    };
    let known = VALUED_LETTERS
        .iter()
        .find(|(names, _)| names.contains(&program));
    match known {
        Some((_, letters)) => {
            let at = cluster.find(|letter| letters.contains(letter));
            let rest = at.and_then(|at| cluster.get(at + 1..));
            rest.filter(|rest| !rest.is_empty()).into_iter().collect()
        }
        None => super::words::list_attached_values(text).collect(),
    }
}

fn is_harmless_device(path: &Path) -> bool {
    HARMLESS_DEVICES
        .iter()
        .any(|device| path == Path::new(device))
}

/// Returns the number of words of `ln -s SOURCE TARGET` that are not written: the option and the
/// source.
fn count_link_sources(words: &[ShellWord]) -> usize {
    let is_symbolic = matches!(
        words.get(1).and_then(ShellWord::literal),
        Some("-s" | "-sf" | "-sfn" | "-sn" | "--symbolic")
    );
    let is_link = matches!(
        words.first().and_then(ShellWord::base_name),
        Some("ln" | "gln")
    );
    if is_link && is_symbolic && words.len() == 4 {
        2
    } else {
        0
    }
}
