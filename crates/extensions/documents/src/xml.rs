//! Walks over XML, and passes elements by their local names, and text with resolved entities, to a
//! visitor.
//!
//! Entities that a document defines itself are not resolved, which prevents entity expansion
//! attacks.

use std::borrow::Cow;
use std::io::BufRead;

use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};

/// The maximum nesting depth of elements. Real documents are nested much less deeply.
const MAX_DEPTH: usize = 256;

/// The reason why the walk of an XML document ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum XmlError {
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    TooLarge(String),
    #[error("cancelled")]
    Cancelled,
    /// The visitor needs no more nodes. This is not an error.
    #[error("enough")]
    Enough,
}

/// An XML node that [`walk_xml`] passes to its visitor: a start tag, an end tag or text.
pub(super) enum Node<'a> {
    Open(Element<'a>),
    /// The end of the element with this local name.
    Close(&'a str),
    Text(&'a str),
}

/// The start tag of an XML element.
pub(super) struct Element<'a>(&'a BytesStart<'a>);

impl Element<'_> {
    /// Returns the local name of the element, without the namespace prefix.
    pub(super) fn name(&self) -> &str {
        local_name(self.0.name().into_inner())
    }

    /// Returns the value of an attribute. A `name` with a namespace prefix is compared with the
    /// attribute's whole name, any other with the local name only.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        let attribute = self
            .0
            .attributes()
            .with_checks(false)
            .flatten()
            .find(|one| {
                if name.contains(':') {
                    one.key.into_inner() == name
                } else {
                    local_name(one.key.into_inner()) == name
                }
            })?;
        let raw: &str = &attribute.value;
        Some(quick_xml::escape::unescape(raw).map_or_else(|_| raw.to_owned(), Cow::into_owned))
    }

    /// Returns the value of an attribute as a number. Returns `None` if the attribute is missing or
    /// is not a number.
    pub(super) fn number_attribute(&self, name: &str) -> Option<usize> {
        self.attribute(name)?.parse().ok()
    }
}

fn local_name(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// Calls `visit` for each node until the end of the document. `visit` ends the walk early by
/// returning [`XmlError::Enough`]; `stop` cancels the walk by returning true.
pub(super) fn walk_xml(
    source: impl BufRead,
    stop: &dyn Fn() -> bool,
    visit: impl FnMut(Node<'_>) -> Result<(), XmlError>,
) -> Result<(), XmlError> {
    match walk_to_end(source, stop, visit) {
        Err(XmlError::Enough) => Ok(()),
        other => other,
    }
}

fn walk_to_end(
    source: impl BufRead,
    stop: &dyn Fn() -> bool,
    mut visit: impl FnMut(Node<'_>) -> Result<(), XmlError>,
) -> Result<(), XmlError> {
    let mut reader = Reader::from_reader(source);
    let mut buffer = Vec::new();
    let mut depth = 0_usize;
    loop {
        if stop() {
            return Err(XmlError::Cancelled);
        }
        buffer.clear();
        let event = reader
            .read_event_into(&mut buffer)
            .map_err(|error| convert_error(&error))?;
        match &event {
            Event::Start(start) => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(XmlError::TooLarge(format!(
                        "its elements are nested more than {MAX_DEPTH} deep"
                    )));
                }
                visit(Node::Open(Element(start)))?;
            }
            Event::Empty(start) => {
                visit(Node::Open(Element(start)))?;
                visit(Node::Close(local_name(start.name().into_inner())))?;
            }
            Event::End(end) => {
                depth = depth.saturating_sub(1);
                visit(Node::Close(local_name(end.name().into_inner())))?;
            }
            Event::Text(text) => visit(Node::Text(&text.xml10_content()))?,
            Event::CData(text) => visit(Node::Text(&text.xml10_content()))?,
            Event::GeneralRef(entity) => visit(Node::Text(&resolve_entity(entity)))?,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            Event::Eof => return Ok(()),
        }
    }
}

fn convert_error(error: &quick_xml::Error) -> XmlError {
    if let quick_xml::Error::Io(cause) = error
        && let Some(XmlError::TooLarge(reason)) =
            cause.get_ref().and_then(|inner| inner.downcast_ref())
    {
        return XmlError::TooLarge(reason.clone());
    }
    XmlError::Invalid(format!("its XML is damaged ({error})"))
}

/// Returns the character that an entity stands for. An entity that XML does not define is returned
/// as it is written.
fn resolve_entity(entity: &BytesRef<'_>) -> String {
    if let Ok(Some(character)) = entity.resolve_char_ref() {
        return character.to_string();
    }
    let name = entity.xml10_content();
    quick_xml::escape::resolve_predefined_entity(&name)
        .map_or_else(|| format!("&{name};"), str::to_owned)
}
