//! The documents layer: rules and other standing texts, each kind as a user message and an
//! acknowledgment.
//!
//! The layer is built when the files are read and is shared by all requests until a file changes,
//! so its bytes are stable.

use std::sync::Arc;

use haft_types::{Entry, Role, TokenCounter};

use crate::memo::{EntryMaker, RecallTool};

/// The kind of a document; the variants are in sending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocumentKind {
    /// Documentation of libraries that the project uses.
    LibraryDocs,
    /// Descriptions of external tools.
    ExternalTools,
    /// The content of rule files.
    Rules,
    /// The content of `CODE_LAW.md`.
    CodeLaw,
    /// The facts that differ between sessions of a project, such as the working folder. No cache
    /// mark covers these documents together with the others, so that sessions share the others.
    Place,
}

/// The owner of the documents of kind [`DocumentKind::Place`].
pub(crate) const PLACE_OWNER: &str = "document:place";

/// Controls whether a document may be left out when room is short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Need {
    /// The document is sent in every request.
    #[default]
    Always,
    /// The document is left out if room is short.
    IfRoom,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub kind: DocumentKind,
    /// The heading of the document: the library name or the file path.
    pub heading: String,
    pub text: String,
    pub need: Need,
}

/// The documents layer of a request, built from all documents.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    sources: Vec<Document>,
    pub(crate) messages: Vec<(&'static str, Arc<Entry>)>,
}

impl DocumentKind {
    const ALL: [Self; 5] = [
        Self::LibraryDocs,
        Self::ExternalTools,
        Self::Rules,
        Self::CodeLaw,
        Self::Place,
    ];

    fn owner_name(self) -> &'static str {
        match self {
            Self::LibraryDocs => "document:library",
            Self::ExternalTools => "document:tools",
            Self::Rules => "document:rules",
            Self::CodeLaw => "document:law",
            Self::Place => PLACE_OWNER,
        }
    }

    fn opening_text(self) -> &'static str {
        match self {
            Self::LibraryDocs => {
                "Documentation of libraries used in this project. Prefer it to what you remember."
            }
            Self::ExternalTools => {
                "Command line tools made for this project. Run them as their documentation says."
            }
            Self::Rules => "Rules for work in this project. They apply to everything you do here.",
            Self::CodeLaw => "The law of this code base. It applies to every change.",
            Self::Place => "Where you work. This holds for the whole conversation.",
        }
    }

    fn acknowledgement_text(self) -> &'static str {
        match self {
            Self::LibraryDocs => "I have read the library documentation and will use it.",
            Self::ExternalTools => {
                "I have read about these tools and will use them where they fit."
            }
            Self::Rules => "I have read the rules and will follow them.",
            Self::CodeLaw => "I have read the law of this code base and will keep to it.",
            Self::Place => "I will work there.",
        }
    }
}

impl Documents {
    /// Builds the layer. Documents of one kind keep their order; empty ones are left out.
    pub fn new(sources: Vec<Document>, counter: &dyn TokenCounter) -> Self {
        let maker = EntryMaker {
            counter,
            memo: None,
            recall: RecallTool::Missing,
        };
        let mut messages = Vec::new();
        for kind in DocumentKind::ALL {
            let mut text = String::from(kind.opening_text());
            let shown = sources
                .iter()
                .filter(|one| one.kind == kind && !one.text.trim().is_empty());
            let before = text.len();
            for document in shown {
                text.push_str("\n\n# ");
                text.push_str(&document.heading);
                text.push_str("\n\n");
                text.push_str(document.text.trim());
            }
            if text.len() > before {
                messages.push((
                    kind.owner_name(),
                    maker.engine_entry(kind.owner_name(), Role::User, &text),
                ));
                messages.push((
                    kind.owner_name(),
                    maker.engine_entry(
                        kind.owner_name(),
                        Role::Assistant,
                        kind.acknowledgement_text(),
                    ),
                ));
            }
        }
        Self { sources, messages }
    }

    /// Restores the layer from the owners and messages of a sent request's segments. Because the
    /// source documents are unknown, no document can be left out of the restored layer on its own.
    pub fn from_segments<'a>(segments: impl Iterator<Item = (&'a str, Arc<Entry>)>) -> Self {
        let owner = |name: &str| {
            DocumentKind::ALL
                .into_iter()
                .map(DocumentKind::owner_name)
                .find(|owner| *owner == name)
        };
        let messages = segments
            .filter_map(|(name, entry)| Some((owner(name)?, entry)))
            .collect();
        Self {
            sources: Vec::new(),
            messages,
        }
    }

    /// Returns the layer with only those documents that every request must contain.
    pub(crate) fn required_only(&self, counter: &dyn TokenCounter) -> Self {
        let needed = self.sources.iter().filter(|one| one.need == Need::Always);
        Self::new(needed.cloned().collect(), counter)
    }
}

#[cfg(test)]
mod tests;
