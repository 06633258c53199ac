//! Lays a request out as the bytes of its body.
//!
//! Invariant: for two requests of which one's segments begin with the other's (cut where a block ends), the bodies agree
//! up to the shorter one's closing brackets, cache markers aside. Hence the order of a body and the rule that a fragment
//! depends on its message alone.

use std::borrow::Cow;

use haft_types::{CacheKind, ContentHash, Message, Request, Role, Segment, ToolProtocol};

use super::fold::fold_after_results;
use super::fragments::Fragments;
use super::{CacheMark, Fragment, Settings, Wire, WireFrame, json, wire};
use crate::protocol::{Joined, ThoughtMaker, as_paragraph, lower};

/// The most cache markers a request may carry.
const MAX_MARKS: usize = 4;

/// Encodes the requests of one client, remembering what the last one held.
pub(crate) struct Encoder {
    wire: Box<dyn Wire>,
    marks: bool,
    user_after_tool: bool,
    protocol: ToolProtocol,
    own_turns: bool,
    /// `provider/model`.
    full_name: String,
    joined: Joined,
    tools: Option<(ContentHash, CacheMark, Vec<u8>)>,
    system: Fragments<Vec<u8>>,
    messages: Fragments<Fragment>,
}

impl Encoder {
    pub(crate) fn new(settings: Settings) -> Self {
        let marks = matches!(settings.spec.cache.rule, CacheKind::Anthropic | CacheKind::OpenaiBreakpoints);
        Self {
            marks,
            user_after_tool: settings.spec.capabilities.user_after_tool,
            protocol: settings.spec.tool_protocol,
            own_turns: settings.own_turns,
            full_name: settings.full_name.clone(),
            wire: wire(settings),
            joined: Joined::default(),
            tools: None,
            system: Fragments::default(),
            messages: Fragments::default(),
        }
    }

    /// The body of a request.
    pub(crate) fn body(&mut self, request: &Request) -> Vec<u8> {
        let arranged = self.arrange(&request.segments);
        let segments: &[Segment] = &arranged;
        let marks = self.place_marks(segments);
        let frame = self.wire.system_frame();
        let leading = segments.iter().take_while(|segment| segment.entry.message.role == Role::System).count();
        let in_frame = if frame.is_some() { leading } else { 0 };

        let fragments: Vec<_> = segments
            .iter()
            .zip(&marks)
            .skip(in_frame)
            .map(|(segment, mark)| {
                let entry = &segment.entry;
                let maker = maker(&entry.message, &self.full_name);
                let lowered = || match (self.protocol, entry.message.role) {
                    (ToolProtocol::React, Role::Assistant) if !self.own_turns => as_paragraph(&entry.message, maker),
                    (protocol, _) => lower(&entry.message, protocol, maker),
                };
                self.messages.get((entry.hash, *mark), || self.wire.message(&lowered(), *mark))
            })
            .filter(|fragment| !fragment.is_empty())
            .collect();
        self.messages.end_request();

        // Without system text its marker goes to the tools, which come just before.
        let placed = marks.iter().filter(|mark| **mark == CacheMark::Boundary).count();
        let mark_tools = self.marks && leading == 0 && placed < MAX_MARKS;
        let tools_mark = if mark_tools { CacheMark::Boundary } else { CacheMark::None };
        let mut body = self.wire.front(request);
        let size: usize = fragments.iter().map(|fragment| fragment.len() + 64).sum();
        body.reserve(size + 64 * 1024);
        self.write_tools(&mut body, request, tools_mark);
        if let Some(frame) = frame.filter(|_| in_frame > 0) {
            let pieces: Vec<_> = segments[..in_frame]
                .iter()
                .zip(&marks)
                .map(|(segment, mark)| {
                    let entry = &segment.entry;
                    self.system.get((entry.hash, *mark), || self.wire.system(&entry.message, *mark))
                })
                .filter(|piece| !piece.is_empty())
                .collect();
            if !pieces.is_empty() {
                body.push(b',');
                write_framed(&mut body, frame, pieces.iter().map(|piece| piece.as_slice()));
            }
        }
        self.system.end_request();

        body.push(b',');
        body.extend_from_slice(self.wire.list().as_bytes());
        let refs: Vec<&Fragment> = fragments.iter().map(AsRef::as_ref).collect();
        write_list(&mut body, self.wire.as_ref(), &refs);
        body.extend_from_slice(b"]}");
        body
    }

    /// The segments as this model takes them: most take them as they are.
    fn arrange<'a>(&mut self, segments: &'a [Segment]) -> Cow<'a, [Segment]> {
        match self.protocol {
            ToolProtocol::Native if !self.user_after_tool => Cow::Owned(fold_after_results(segments)),
            ToolProtocol::Xml => Cow::Owned(self.joined.results(segments)),
            ToolProtocol::Native | ToolProtocol::React => Cow::Borrowed(segments),
        }
    }

    fn write_tools(&mut self, body: &mut Vec<u8>, request: &Request, mark: CacheMark) {
        // In a text protocol the system text tells of the tools.
        if self.protocol.is_text() {
            return;
        }
        let tools = &request.tools;
        let known = self.tools.as_ref().is_some_and(|(hash, marked, _)| *hash == tools.hash && *marked == mark);
        if !known {
            let mut bytes = Vec::new();
            if !tools.specs.is_empty() {
                json::field(&mut bytes, "tools", &self.wire.tools(&tools.specs, mark));
            }
            self.tools = Some((tools.hash, mark, bytes));
        }
        if let Some((_, _, bytes)) = &self.tools {
            body.extend_from_slice(bytes);
        }
    }

    /// Which segments carry a marker. When there are too many boundaries the first (the system text) and the last ones
    /// stay: the first is shared by every conversation, the last are where the next request will match.
    fn place_marks(&self, segments: &[Segment]) -> Vec<CacheMark> {
        let mut marks = vec![CacheMark::None; segments.len()];
        if !self.marks {
            return marks;
        }
        let boundaries: Vec<usize> =
            (0..segments.len()).filter(|index| segments[*index].boundary && can_carry(&segments[*index])).collect();
        let skipped = boundaries.len().saturating_sub(MAX_MARKS);
        for (rank, index) in boundaries.into_iter().enumerate() {
            if rank == 0 || rank > skipped {
                marks[index] = CacheMark::Boundary;
            }
        }
        marks
    }
}

fn maker(message: &Message, model: &str) -> ThoughtMaker {
    let made = message.llm_metadata.as_ref().is_some_and(|made| made.model_name == model);
    if made { ThoughtMaker::ThisModel } else { ThoughtMaker::Another }
}

/// Whether a message has something on the wire that can carry a marker: thinking cannot, and neither can empty text.
fn can_carry(segment: &Segment) -> bool {
    use haft_types::Part;
    segment.entry.message.content.iter().any(|part| match part {
        Part::Text { text, .. } => !text.trim().is_empty(),
        Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => true,
        Part::Thinking(_) => false,
    })
}

fn write_list(body: &mut Vec<u8>, wire: &dyn Wire, fragments: &[&Fragment]) {
    let turns = fragments.chunk_by(|one, next| one.turn == next.turn);
    let mut first = true;
    for turn in turns {
        let frame = turn.first().and_then(|fragment| wire.turn(fragment.turn));
        if let Some(frame) = frame {
            if !first {
                body.push(b',');
            }
            first = false;
            let results = turn.iter().map(|fragment| fragment.results.as_slice());
            let after = turn.iter().map(|fragment| fragment.after_results.as_slice());
            let items = turn.iter().map(|fragment| fragment.items.as_slice());
            write_framed(body, frame, results.chain(after).chain(items));
        } else {
            write_flat(body, turn, &mut first);
        }
    }
}

/// Messages one after another. What may only follow the results of a block waits until they are over.
fn write_flat(body: &mut Vec<u8>, turn: &[&Fragment], first: &mut bool) {
    for run in turn.chunk_by(|one, next| is_result(one) && is_result(next)) {
        let main = run.iter().flat_map(|fragment| [&fragment.results, &fragment.items]);
        let after = run.iter().map(|fragment| &fragment.after_results);
        for piece in main.chain(after).filter(|piece| !piece.is_empty()) {
            if !*first {
                body.push(b',');
            }
            *first = false;
            body.extend_from_slice(piece);
        }
    }
}

fn is_result(fragment: &Fragment) -> bool {
    !fragment.results.is_empty()
}

fn write_framed<'a>(body: &mut Vec<u8>, frame: WireFrame, pieces: impl Iterator<Item = &'a [u8]>) {
    body.extend_from_slice(frame.open.as_bytes());
    let mut first = true;
    for piece in pieces.filter(|piece| !piece.is_empty()) {
        if !first {
            body.extend_from_slice(frame.between.as_bytes());
        }
        first = false;
        body.extend_from_slice(piece);
    }
    body.extend_from_slice(frame.close.as_bytes());
}
