//! Finds files outside the project that a command writes. Without a sandbox, a rule for the
//! beginning of a command does not cover them.

use std::path::{Path, PathBuf};

use super::{LineJudge, rule_covers};
use crate::decide::Confinement;
use crate::effects::{
    self, CommandEffect, ProgramRun, Risk, RiskPosition, WorkingFolders, writes_named_files,
};
use crate::rule::PermissionRule;
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
    /// nor `rule` names the path.
    pub(super) fn explain_outside_word(
        &self,
        rule: &PermissionRule,
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
        let sources = count_link_sources(&run.words);
        let mut words = run.words.iter().enumerate().skip(1 + sources);
        let (_, word) = words.find(|(at, word)| {
            let named = Risk {
                at: RiskPosition::Word(*at),
                what: "",
            };
            self.may_be_outside(word, &run.folders) && !rule_covers(rule, effect, &[named])
        })?;
        Some(format!(
            "`{}` may be outside the project, there is no sandbox, and a rule for the beginning of a command does not cover that",
            word.source
        ))
    }

    fn may_be_outside(&self, word: &ShellWord, folders: &WorkingFolders) -> bool {
        match &word.text {
            WordValue::Literal(_) => {
                let outside = |path: &PathBuf| !self.workspace.contains(path) && !is_device(path);
                self.list_resolved_forms(word, folders).iter().any(outside)
            }
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

    /// Returns the resolved paths that a word may name, as a whole or in one of its parts.
    fn list_resolved_forms(&self, word: &ShellWord, folders: &WorkingFolders) -> Vec<PathBuf> {
        let text = word.literal().unwrap_or_default();
        super::words::split_path_parts(text)
            .map(|part| match effects::resolve_path(folders, part) {
                Some(paths) => paths,
                // A path with an unresolvable link, or in an unknown folder, can be anywhere.
                None => vec![PathBuf::from("/")],
            })
            .collect::<Vec<_>>()
            .concat()
    }
}

fn is_device(path: &Path) -> bool {
    HARMLESS_DEVICES
        .iter()
        .any(|device| path == Path::new(device))
}

/// Returns the number of words of `ln -s SOURCE TARGET` that are not written: the option and the
/// source.
fn count_link_sources(words: &[ShellWord]) -> usize {
    let text = |at: usize| words.get(at).and_then(ShellWord::literal);
    let is_symbolic = matches!(text(1), Some("-s" | "-sf" | "-sfn" | "-sn" | "--symbolic"));
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
