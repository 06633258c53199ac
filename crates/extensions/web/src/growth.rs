//! What the tags of a page come to, before anything is made of them.
//!
//! A parser of HTML closes what was left open, opens again what was closed too early, and repeats
//! formatting in every paragraph: a few bytes can become many elements, as deeply nested as there
//! are tags, whatever end tags, comments and attributes seem to say. So the same parser reads the
//! page first with nothing behind it but counters, piece by piece, and is stopped in time.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{Attribute, ExpandedName, ParseOpts, QualName, local_name, ns, parse_document};

/// Elements within each other; more makes no sense on a page.
const DEEPEST: usize = 1_000;
/// How often elements may be moved into others, each time one level deeper.
const MOVES: usize = 4_000;
/// Nodes of a page.
const MOST_NODES: usize = 200_000;
/// How much of a page is read before the counters are looked at.
const PIECE: usize = 512;

/// Whether a page can be taken apart: whether it is neither nested nor grows beyond what a person
/// makes.
pub(crate) fn is_bounded(html: &str) -> bool {
    let tree_builder = TreeBuilderOpts {
        scripting_enabled: false,
        ..TreeBuilderOpts::default()
    };
    let mut parser = parse_document(
        Growth::default(),
        ParseOpts {
            tree_builder,
            ..ParseOpts::default()
        },
    );
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE));
        parser.process(StrTendril::from(piece));
        if !parser.tokenizer.sink.sink.is_bounded() {
            return false;
        }
        rest = after;
    }
    parser.finish().is_bounded()
}

/// The counters.
#[derive(Default)]
struct Growth {
    nodes: Cell<usize>,
    deepest: Cell<usize>,
    moves: Cell<usize>,
}

/// All that the parser must be able to ask of a node.
struct CountedNode {
    name: Option<QualName>,
    holds_html: bool,
    depth: Cell<usize>,
}

impl Growth {
    fn is_bounded(&self) -> bool {
        self.nodes.get() <= MOST_NODES && self.deepest.get() <= DEEPEST && self.moves.get() <= MOVES
    }

    fn node(&self, name: Option<QualName>, holds_html: bool) -> Rc<CountedNode> {
        self.nodes.set(self.nodes.get() + 1);
        Rc::new(CountedNode {
            name,
            holds_html,
            depth: Cell::new(0),
        })
    }

    fn put(&self, child: &NodeOrText<Rc<CountedNode>>, depth: usize) {
        match child {
            NodeOrText::AppendNode(node) => node.depth.set(depth),
            NodeOrText::AppendText(_) => self.nodes.set(self.nodes.get() + 1),
        }
        self.deepest.set(self.deepest.get().max(depth));
    }
}

impl TreeSink for Growth {
    type Handle = Rc<CountedNode>;
    type Output = Self;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Self {
        self
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Self::Handle {
        self.node(None, false)
    }

    fn elem_name<'a>(&'a self, target: &'a Self::Handle) -> ExpandedName<'a> {
        const NONE: ExpandedName<'static> = ExpandedName {
            ns: &ns!(),
            local: &local_name!(""),
        };
        target.name.as_ref().map_or(NONE, QualName::expanded)
    }

    fn create_element(
        &self,
        name: QualName,
        _: Vec<Attribute>,
        flags: ElementFlags,
    ) -> Self::Handle {
        self.node(Some(name), flags.mathml_annotation_xml_integration_point)
    }

    fn create_comment(&self, _: StrTendril) -> Self::Handle {
        self.node(None, false)
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Self::Handle {
        self.node(None, false)
    }

    fn append(&self, parent: &Self::Handle, child: NodeOrText<Self::Handle>) {
        self.put(&child, parent.depth.get() + 1);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Self::Handle,
        before: &Self::Handle,
        child: NodeOrText<Self::Handle>,
    ) {
        self.put(&child, element.depth.get().max(before.depth.get() + 1));
    }

    fn append_before_sibling(&self, sibling: &Self::Handle, child: NodeOrText<Self::Handle>) {
        self.put(&child, sibling.depth.get());
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_template_contents(&self, target: &Self::Handle) -> Self::Handle {
        Rc::clone(target)
    }

    fn same_node(&self, one: &Self::Handle, other: &Self::Handle) -> bool {
        Rc::ptr_eq(one, other)
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn add_attrs_if_missing(&self, _: &Self::Handle, _: Vec<Attribute>) {}

    fn remove_from_parent(&self, _: &Self::Handle) {}

    fn reparent_children(&self, _: &Self::Handle, _: &Self::Handle) {
        self.moves.set(self.moves.get() + 1);
    }

    fn is_mathml_annotation_xml_integration_point(&self, node: &Self::Handle) -> bool {
        node.holds_html
    }
}
