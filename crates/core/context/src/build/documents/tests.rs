use super::*;
use crate::testing::Quarter;

fn document(kind: DocumentKind, heading: &str, text: &str) -> Document {
    Document {
        kind,
        heading: heading.into(),
        text: text.into(),
        need: Need::Always,
    }
}

fn texts(documents: &Documents) -> String {
    let line = |(owner, entry): &(&'static str, Arc<Entry>)| {
        format!(
            "<{owner} {}>\n{}",
            entry.message.role,
            entry.message.joined_text()
        )
    };
    documents
        .messages
        .iter()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n\n")
}

#[test]
fn documents_form_one_pair_per_kind_in_a_fixed_order() {
    let sources = vec![
        document(DocumentKind::CodeLaw, "CODE_LAW.md", "Never panic.\n"),
        document(
            DocumentKind::Rules,
            ".haft/rules/style.md",
            "Short sentences.",
        ),
        document(DocumentKind::LibraryDocs, "serde", "Derive it."),
        document(DocumentKind::Rules, ".haft/rules/empty.md", " \n"),
        document(
            DocumentKind::Rules,
            ".haft/rules/tests.md",
            "Test what can fail.",
        ),
    ];
    let documents = Documents::new(sources.clone(), &Quarter);
    insta::assert_snapshot!(texts(&documents));
    assert_eq!(
        documents.messages,
        Documents::new(sources, &Quarter).messages,
        "stable"
    );
}

#[test]
fn documents_without_text_give_no_messages() {
    assert!(Documents::default().messages.is_empty());
    assert!(
        Documents::new(vec![document(DocumentKind::Rules, "a", "")], &Quarter)
            .messages
            .is_empty()
    );
}

#[test]
fn always_keeps_only_required_documents() {
    let optional = Document {
        need: Need::IfRoom,
        ..document(DocumentKind::Rules, "b.md", "Maybe.")
    };
    let both = Documents::new(
        vec![document(DocumentKind::Rules, "a.md", "Must."), optional],
        &Quarter,
    );
    let text = texts(&both.required_only(&Quarter));
    assert!(
        texts(&both).contains("Maybe.") && text.contains("Must.") && !text.contains("Maybe."),
        "{text}"
    );
}
