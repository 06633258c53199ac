//! Checks how large the element tree of a page would become, before the tree is built.
//!
//! An HTML parser closes elements that were left open, reopens those that were closed too early,
//! and repeats formatting in every paragraph. A few bytes can therefore become many elements,
//! nested as deeply as there are tags, regardless of end tags, comments and attributes. So the
//! parser first runs over the page with a sink that only counts, piece by piece, and stops when a
//! limit is exceeded.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{Attribute, ExpandedName, ParseOpts, QualName, local_name, ns, parse_document};

/// The maximum nesting depth of elements. No useful page is nested more deeply.
const MAX_DEPTH: usize = 1_000;
/// The maximum number of times that the children of one element are moved into another element.
/// Each move adds a level of nesting.
const MAX_MOVES: usize = 4_000;
/// The maximum number of nodes in a page.
const MAX_NODES: usize = 200_000;
/// The number of bytes that are parsed between two checks of the limits.
const CHECK_INTERVAL_BYTES: usize = 512;

/// True if the page is safe to parse because its nesting and its number of nodes stay below the
/// limits. No page written by a person exceeds the limits.
pub(crate) fn has_bounded_tree(html: &str) -> bool {
    let tree_builder = TreeBuilderOpts {
        scripting_enabled: false,
        ..TreeBuilderOpts::default()
    };
    let mut parser = parse_document(
        TreeCounter::default(),
        ParseOpts {
            tree_builder,
            ..ParseOpts::default()
        },
    );
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(CHECK_INTERVAL_BYTES));
        parser.process(StrTendril::from(piece));
        if !parser.tokenizer.sink.sink.is_bounded() {
            return false;
        }
        rest = after;
    }
    parser.finish().is_bounded()
}

/// Measures a page while it is parsed: the number of nodes, the nesting depth, and the number of
/// moves.
#[derive(Default)]
struct TreeCounter {
    nodes: Cell<usize>,
    deepest: Cell<usize>,
    moves: Cell<usize>,
}

/// The properties of a parsed node that are counted or that the parser may query.
struct CountedNode {
    name: Option<QualName>,
    holds_html: bool,
    depth: Cell<usize>,
}

impl TreeCounter {
    fn is_bounded(&self) -> bool {
        self.nodes.get() <= MAX_NODES
            && self.deepest.get() <= MAX_DEPTH
            && self.moves.get() <= MAX_MOVES
    }

    fn count_node(&self, name: Option<QualName>, holds_html: bool) -> Rc<CountedNode> {
        self.nodes.set(self.nodes.get() + 1);
        Rc::new(CountedNode {
            name,
            holds_html,
            depth: Cell::new(0),
        })
    }

    fn count_child(&self, child: &NodeOrText<Rc<CountedNode>>, depth: usize) {
        match child {
            NodeOrText::AppendNode(node) => node.depth.set(depth),
            NodeOrText::AppendText(_) => self.nodes.set(self.nodes.get() + 1),
        }
        self.deepest.set(self.deepest.get().max(depth));
    }
}

impl TreeSink for TreeCounter {
    type Handle = Rc<CountedNode>;
    type Output = Self;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Self {
        self
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Self::Handle {
        self.count_node(None, false)
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
        self.count_node(Some(name), flags.mathml_annotation_xml_integration_point)
    }

    fn create_comment(&self, _: StrTendril) -> Self::Handle {
        self.count_node(None, false)
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Self::Handle {
        self.count_node(None, false)
    }

    fn append(&self, parent: &Self::Handle, child: NodeOrText<Self::Handle>) {
        self.count_child(&child, parent.depth.get() + 1);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Self::Handle,
        before: &Self::Handle,
        child: NodeOrText<Self::Handle>,
    ) {
        self.count_child(&child, element.depth.get().max(before.depth.get() + 1));
    }

    fn append_before_sibling(&self, sibling: &Self::Handle, child: NodeOrText<Self::Handle>) {
        self.count_child(&child, sibling.depth.get());
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
