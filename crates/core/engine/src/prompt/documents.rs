//! Loads the standing documents of a project: documentation of libraries, external tools,
//! `AGENTS.md` and `CLAUDE.md`, rules, `CODE_LAW.md`.
//!
//! Before every request, only the metadata of the files and folders is checked. The documents are
//! read again if the metadata differs, or if a file was touched that may activate more rules. The
//! documents layer is rebuilt only if the text differs. This breaks the cached prefix once, and the
//! break is logged by name.

use std::collections::BTreeSet;
use std::path::PathBuf;

use haft_context::{Document, DocumentKind, Documents, Need};
use haft_project::instructions::Instructions;
use haft_project::library::Libraries;
use haft_project::rules::{RuleFile, RuleScope};
use haft_project::{FileProblem, KnowledgeKind, KnowledgePaths, instructions, rules};
use haft_text::Masker;
use haft_types::TokenCounter;
use tracing::info;

use super::external::ExternalTools;
use super::file_stamps::Stamps;
use super::touched_files::TouchedFiles;
use crate::session::config::ProjectRules;

/// The hint that is appended to the text of a rule index.
const READ_RULES_HINT: &str =
    "Start by reading those of the rule files listed here that bear on the task.";
/// The heading of the list of rules that are read on demand.
const ON_DEMAND_RULES_HEADING: &str = "Further rules";

/// The project's documents as they were last read.
#[derive(Clone)]
pub(crate) struct StandingDocuments {
    paths: KnowledgePaths,
    libraries: Libraries,
    masker: Masker,
    rules: ProjectRules,
    /// The heading and the text of the document about external tools.
    external: Option<(String, String)>,
    /// The files that had been touched in the session whose documents a fork copies.
    copied: Option<BTreeSet<PathBuf>>,
    /// The metadata of the files and folders that the documents come from, except external tools.
    watched: Stamps,
    /// The files that had been read, edited or mentioned when the documents were last read.
    touched: BTreeSet<PathBuf>,
    /// The number of files that were read or edited, and the number of files that were mentioned.
    counts: (usize, usize),
    documents: Vec<Document>,
    agents_md: Option<String>,
    /// Problems with the documents that have not been shown to the user yet.
    problems: Vec<FileProblem>,
    /// The facts that differ between sessions of the project. They end the layer.
    place: Vec<Document>,
    layer: Documents,
}

impl StandingDocuments {
    /// Creates an empty set of documents. [`Self::refresh`] reads the documents.
    pub(crate) fn new(
        paths: KnowledgePaths,
        libraries: Libraries,
        masker: Masker,
        rules: ProjectRules,
    ) -> Self {
        Self {
            paths,
            libraries,
            masker,
            rules,
            external: None,
            copied: None,
            watched: Stamps::default(),
            touched: BTreeSet::new(),
            counts: (0, 0),
            documents: Vec::new(),
            agents_md: None,
            problems: Vec::new(),
            place: Vec::new(),
            layer: Documents::default(),
        }
    }

    /// Returns a copy for a fork of the session. The copy sends the same documents, until a file
    /// changes or the fork reads or edits a file that activates more rules.
    pub(crate) fn copy_for_fork(&self) -> Self {
        Self {
            copied: Some(self.touched.clone()),
            counts: (0, 0),
            problems: Vec::new(),
            ..self.clone()
        }
    }

    /// Sets the documents that end the layer, and rebuilds the layer.
    pub(crate) fn set_place(&mut self, place: Vec<Document>, counter: &dyn TokenCounter) {
        self.place = place;
        self.build_layer(counter);
    }

    fn build_layer(&mut self, counter: &dyn TokenCounter) {
        let all = [self.documents.as_slice(), self.place.as_slice()].concat();
        self.layer = Documents::new(all, counter);
    }

    pub(crate) fn layer(&self) -> &Documents {
        &self.layer
    }

    pub(crate) fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// Returns the text of the `AGENTS.md` at the project's root.
    pub(crate) fn agents_md(&self) -> Option<&str> {
        self.agents_md.as_deref()
    }

    /// Takes the problems that the user has not seen yet.
    pub(crate) fn take_problems(&mut self) -> Vec<String> {
        self.problems
            .drain(..)
            .map(|problem| problem.to_string())
            .collect()
    }

    /// Returns true if the documents may have changed since they were read.
    pub(crate) fn is_stale(
        &self,
        touched: TouchedFiles<'_>,
        tools: Option<&ExternalTools>,
    ) -> bool {
        // A fork keeps the document about external tools even if it cannot run them itself.
        let external = match self.copied {
            Some(_) => self.external.as_ref(),
            None => tools.and_then(ExternalTools::document),
        };
        self.external.as_ref() != external
            || self.counts != touched.counts()
            || !self.watched.is_unchanged()
    }

    /// Returns the headings of the documents whose kind `of` accepts.
    pub(crate) fn headings(&self, of: impl Fn(DocumentKind) -> bool) -> Vec<String> {
        self.documents
            .iter()
            .filter(|one| of(one.kind))
            .map(|one| one.heading.clone())
            .collect()
    }

    /// Reads the documents again if they may have changed. Returns true if the layer of documents
    /// was rebuilt.
    pub(crate) fn refresh(
        &mut self,
        touched: TouchedFiles<'_>,
        tools: Option<&ExternalTools>,
        counter: &dyn TokenCounter,
    ) -> bool {
        if !self.is_stale(touched, tools) {
            return false;
        }
        if self.copied.is_none() {
            self.external = tools.and_then(ExternalTools::document).cloned();
        }
        self.counts = touched.counts();
        self.touched = touched.paths();
        self.touched.extend(self.copied.iter().flatten().cloned());
        let before = std::mem::take(&mut self.documents);
        self.read_documents();
        if self.documents == before {
            return false;
        }
        for document in &self.documents {
            let kind = format!("{:?}", document.kind).to_lowercase();
            let bytes = document.text.len();
            info!(kind, name = document.heading, bytes, "instructions loaded");
        }
        self.build_layer(counter);
        true
    }

    fn read_documents(&mut self) {
        let paths = &self.paths;
        let mut problems = Vec::new();
        let folders =
            instructions::applicable_folders(paths, self.touched.iter().map(PathBuf::as_path));
        // The stamps are taken before the files are read, so that a change in between is noticed.
        let mut watched: Vec<PathBuf> = paths
            .folders_of_kind(KnowledgeKind::Rules)
            .into_iter()
            .map(|folder| folder.path)
            .collect();
        watched.extend(instructions::candidate_files(paths, &folders));
        watched.push(self.libraries.list_file());
        if paths.trusted {
            watched.push(paths.root.clone());
        }
        self.watched = Stamps::new(watched);

        let instructions = instructions::load_instructions(paths, &folders, &mut problems);
        let rules = match self.rules {
            ProjectRules::Include => rules::load_rules(paths, &mut problems),
            ProjectRules::Exclude => Vec::new(),
        };
        let law = paths
            .trusted
            .then(|| instructions::load_code_law(paths, &mut problems))
            .flatten();
        let libraries = self.libraries.read_documents(paths, &mut problems);
        let standing = instructions.iter().chain(&law).map(|one| &one.path);
        let found = standing
            .chain(rules.iter().map(|rule| &rule.path))
            .chain(libraries.iter().map(|one| &one.path));
        self.watched.add(found.cloned());

        let at_root = paths.root.join("AGENTS.md");
        let masked = |text: &str| self.masker.mask(text).into_owned();
        self.agents_md = instructions
            .iter()
            .find(|one| one.path == at_root)
            .map(|one| masked(&one.text));
        let document = |kind, heading, text: &str| Document {
            kind,
            heading,
            text: masked(text),
            need: Need::Always,
        };
        // Instructions of the project precede those of the user.
        let (of_project, of_user): (Vec<_>, Vec<_>) = instructions
            .iter()
            .partition(|one| one.path.starts_with(&paths.root));
        let standing = |one: &&Instructions| {
            document(
                DocumentKind::Rules,
                paths.display_path(&one.path),
                &one.text,
            )
        };
        let of_libraries = libraries.iter().map(|one| Document {
            need: Need::IfRoom,
            ..document(DocumentKind::LibraryDocs, one.heading.clone(), &one.text)
        });
        let of_tools = self.external.iter().map(|(heading, text)| Document {
            need: Need::IfRoom,
            ..document(DocumentKind::ExternalTools, heading.clone(), text)
        });
        let mut documents: Vec<_> = of_libraries
            .chain(of_tools)
            .chain(of_project.iter().map(standing))
            .collect();
        let sent = rules
            .iter()
            .filter_map(|rule| Some((rule, self.applicable_text(rule)?)));
        documents.extend(sent.map(|(rule, text)| {
            document(DocumentKind::Rules, paths.display_path(&rule.path), &text)
        }));
        documents.extend(of_user.iter().map(standing));
        documents.extend(list_on_demand_rules(paths, &rules).map(|text| {
            document(
                DocumentKind::Rules,
                ON_DEMAND_RULES_HEADING.to_owned(),
                &text,
            )
        }));
        documents.extend(law.iter().map(|one| {
            document(
                DocumentKind::CodeLaw,
                paths.display_path(&one.path),
                &one.text,
            )
        }));
        self.documents = documents;
        self.problems.extend(problems);
    }

    /// Returns the text of a rule as it applies now; `None` if the rule does not apply.
    fn applicable_text(&self, rule: &RuleFile) -> Option<String> {
        match &rule.scope {
            RuleScope::Always => Some(rule.text.clone()),
            RuleScope::Index => Some(format!("{}\n\n{READ_RULES_HINT}", rule.text)),
            RuleScope::Matching(globs) => {
                let inside = |path: &PathBuf| {
                    path.strip_prefix(&self.paths.root)
                        .is_ok_and(|path| globs.matches(path))
                };
                self.touched.iter().any(inside).then(|| rule.text.clone())
            }
            RuleScope::OnDemand => None,
        }
    }
}

/// Lists the rules that are read on demand, unless an index file lists them.
fn list_on_demand_rules(paths: &KnowledgePaths, rules: &[RuleFile]) -> Option<String> {
    if rules
        .iter()
        .any(|rule| matches!(rule.scope, RuleScope::Index))
    {
        return None;
    }
    let line = |rule: &RuleFile| match rule.description.as_str() {
        "" => format!("- `{}`", paths.display_path(&rule.path)),
        description => format!("- `{}`: {description}", paths.display_path(&rule.path)),
    };
    let lines: Vec<_> = rules
        .iter()
        .filter(|rule| matches!(rule.scope, RuleScope::OnDemand))
        .map(line)
        .collect();
    (!lines.is_empty()).then(|| format!("{READ_RULES_HINT}\n\n{}", lines.join("\n")))
}

#[cfg(test)]
mod tests;
