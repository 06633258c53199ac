//! Lays a request out as the bytes of its body.
//!
//! Invariant: if the segments of one request begin with the segments of another (cut at the end of
//! a block), the two bodies agree up to the closing brackets of the shorter one, cache markers
//! aside. This determines the order of a body, and it is why a fragment depends on its message
//! alone.

use std::borrow::Cow;

use bytes::Bytes;
use haft_types::{CacheKind, ContentHash, Entry, Request, Role, Segment, ToolProtocol};

use super::fold::fold_text_into_results;
use super::fragments::{Fragments, Key, Piece, Placed};
use super::{CacheMark, Fragment, Settings, Wire, WireFrame, WireTurn, create_wire, json};
use crate::protocol::{JoinedResults, ThoughtMaker, lower_message, to_user_paragraph};

/// The maximum number of cache markers in a request.
const MAX_MARKS: usize = 4;

/// Encodes the requests of one client. Messages that were in the previous request are not encoded
/// again.
pub(crate) struct Encoder {
    wire: Box<dyn Wire>,
    uses_marks: bool,
    settings: Settings,
    joined: JoinedResults,
    tools: Option<(ContentHash, CacheMark, Vec<u8>)>,
    fragments: Fragments,
}

impl Encoder {
    pub(crate) fn new(settings: Settings) -> Self {
        let uses_marks = matches!(
            settings.spec.cache.rule,
            CacheKind::Anthropic | CacheKind::OpenaiBreakpoints
        );
        Self {
            uses_marks,
            wire: create_wire(settings.clone()),
            settings,
            joined: JoinedResults::default(),
            tools: None,
            fragments: Fragments::default(),
        }
    }

    /// Returns the body of a request.
    pub(crate) fn encode_body(&mut self, request: &Request) -> Bytes {
        let arranged = self.arrange_segments(&request.segments);
        let segments: &[Segment] = &arranged;
        let marks = self.place_marks(segments);
        let frame = self.wire.system_frame();
        let leading = segments
            .iter()
            .take_while(|segment| segment.entry.message.role == Role::System)
            .count();
        let in_frame = if frame.is_some() { leading } else { 0 };

        let mut fragments = Vec::with_capacity(segments.len());
        let mut system = 0;
        for (index, (segment, mark)) in segments.iter().zip(&marks).enumerate() {
            let found = self.find_or_encode(&segment.entry, *mark, index < in_frame);
            if found.1.len() > 0 {
                fragments.push(found);
                system += usize::from(index < in_frame);
            }
        }

        // Without system text, its marker goes to the tools, which come directly before it.
        let placed = marks
            .iter()
            .filter(|mark| **mark == CacheMark::Boundary)
            .count();
        let mark_tools = self.uses_marks && leading == 0 && placed < MAX_MARKS;
        self.encode_tools(
            request,
            if mark_tools {
                CacheMark::Boundary
            } else {
                CacheMark::None
            },
        );
        let tools = self.tools.as_ref().map_or(&[][..], |(_, _, bytes)| bytes);
        let mut body = self.wire.encode_front(request);
        // Reserves room for the frames of each turn, but little more: the body is kept until the
        // next request.
        let size: usize = fragments
            .iter()
            .map(|(_, fragment)| fragment.len() + 64)
            .sum();
        body.reserve_exact(size + tools.len() + 256);
        body.extend_from_slice(tools);
        let mut writer = Writer {
            body,
            fragments: &self.fragments,
            wire: self.wire.as_ref(),
        };
        let (framed, listed) = fragments.split_at_mut(system);
        if let Some(frame) = frame.filter(|_| !framed.is_empty()) {
            writer.body.push(b',');
            writer.write_framed(frame, framed);
        }
        writer.body.push(b',');
        writer
            .body
            .extend_from_slice(self.wire.list_opening().as_bytes());
        writer.write_list(listed);
        writer.body.extend_from_slice(b"]}");
        let body = Bytes::from(writer.body);
        self.fragments.end_request(&body, fragments);
        body
    }

    /// Returns the key and the encoded pieces of a message. The message is encoded only if the last
    /// request did not contain it.
    fn find_or_encode(&mut self, entry: &Entry, mark: CacheMark, in_frame: bool) -> (Key, Placed) {
        let message = &entry.message;
        let settings = &self.settings;
        let protocol = settings.spec.tool_protocol;
        self.fragments
            .get_or_make((entry.hash, mark, in_frame), || {
                if in_frame {
                    return Fragment {
                        items: self.wire.encode_system(message, mark),
                        ..Fragment::new(WireTurn::User)
                    };
                }
                let maker = if settings.is_author_of(message) {
                    ThoughtMaker::ThisModel
                } else {
                    ThoughtMaker::Another
                };
                let paragraph = protocol == ToolProtocol::React
                    && message.role == Role::Assistant
                    && !settings.own_turns;
                let lowered = if paragraph {
                    to_user_paragraph(message, maker)
                } else {
                    lower_message(message, protocol, settings.spec.profile, maker)
                };
                self.wire.encode_message(&lowered, mark)
            })
    }

    /// Adapts the segments to the tool protocol and the capabilities of the model. For most models
    /// the segments stay unchanged.
    fn arrange_segments<'a>(&mut self, segments: &'a [Segment]) -> Cow<'a, [Segment]> {
        match self.settings.spec.tool_protocol {
            ToolProtocol::Native if !self.settings.spec.capabilities.user_after_tool => {
                Cow::Owned(fold_text_into_results(segments))
            }
            ToolProtocol::Xml => Cow::Owned(self.joined.join_results(segments)),
            ToolProtocol::Native | ToolProtocol::React => Cow::Borrowed(segments),
        }
    }

    /// Encodes the field `tools`, unless it is already encoded.
    fn encode_tools(&mut self, request: &Request, mark: CacheMark) {
        let tools = &request.tools;
        // In a text protocol the system text describes the tools.
        let known = self
            .tools
            .as_ref()
            .is_some_and(|(hash, marked, _)| *hash == tools.hash && *marked == mark);
        if known || self.settings.spec.tool_protocol.is_text() {
            return;
        }
        let mut bytes = Vec::new();
        if !tools.specs.is_empty() {
            json::append_field(
                &mut bytes,
                "tools",
                &self.wire.encode_tools(&tools.specs, mark),
            );
        }
        bytes.shrink_to_fit();
        self.tools = Some((tools.hash, mark, bytes));
    }

    /// Chooses the segments that get a cache marker. If there are too many boundaries, the first
    /// one (the system text) and the last ones are chosen: all conversations share the first, and
    /// the next request will match at the last.
    fn place_marks(&self, segments: &[Segment]) -> Vec<CacheMark> {
        let mut marks = vec![CacheMark::None; segments.len()];
        if !self.uses_marks {
            return marks;
        }
        let boundaries: Vec<usize> = (0..segments.len())
            .filter(|index| segments[*index].boundary && can_carry_mark(&segments[*index]))
            .collect();
        let skipped = boundaries.len().saturating_sub(MAX_MARKS);
        for (rank, index) in boundaries.into_iter().enumerate() {
            if rank == 0 || rank > skipped {
                marks[index] = CacheMark::Boundary;
            }
        }
        marks
    }
}

/// True if the message has a part to which a cache marker can be attached, which excludes thinking
/// and empty text.
fn can_carry_mark(segment: &Segment) -> bool {
    use haft_types::Part;
    segment.entry.message.content.iter().any(|part| match part {
        Part::Text { text, .. } => !text.trim().is_empty(),
        Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => true,
        Part::Thinking(_) => false,
    })
}

/// Writes the fragments of a request and records their positions in the new body.
struct Writer<'a> {
    body: Vec<u8>,
    fragments: &'a Fragments,
    wire: &'a dyn Wire,
}

impl Writer<'_> {
    fn write_list(&mut self, fragments: &mut [(Key, Placed)]) {
        let mut first = true;
        for turn in fragments.chunk_by_mut(|(_, one), (_, next)| one.turn == next.turn) {
            let frame = turn
                .first()
                .and_then(|(_, fragment)| self.wire.turn_frame(fragment.turn));
            if let Some(frame) = frame {
                self.write_comma(&mut first);
                self.write_framed(frame, turn);
            } else {
                self.write_flat(turn, &mut first);
            }
        }
    }

    /// Writes the fragments of one turn inside a frame, with the tool results first.
    fn write_framed(&mut self, frame: WireFrame, turn: &mut [(Key, Placed)]) {
        self.body.extend_from_slice(frame.open.as_bytes());
        let mut first = true;
        for piece in [Piece::Results, Piece::AfterResults, Piece::Items] {
            for (_, fragment) in turn
                .iter_mut()
                .filter(|(_, fragment)| fragment.has_piece(piece))
            {
                if !first {
                    self.body.extend_from_slice(frame.between.as_bytes());
                }
                first = false;
                self.fragments.write_piece(&mut self.body, fragment, piece);
            }
        }
        self.body.extend_from_slice(frame.close.as_bytes());
    }

    /// Writes the messages of a turn one after another. Pieces that may only follow all results of
    /// a block are written after the last result.
    fn write_flat(&mut self, turn: &mut [(Key, Placed)], first: &mut bool) {
        let is_result = |(_, fragment): &(Key, Placed)| fragment.has_piece(Piece::Results);
        for run in turn.chunk_by_mut(|one, next| is_result(one) && is_result(next)) {
            for (_, fragment) in run.iter_mut() {
                self.write_piece(fragment, Piece::Results, first);
                self.write_piece(fragment, Piece::Items, first);
            }
            for (_, fragment) in run {
                self.write_piece(fragment, Piece::AfterResults, first);
            }
        }
    }

    fn write_piece(&mut self, fragment: &mut Placed, piece: Piece, first: &mut bool) {
        if fragment.has_piece(piece) {
            self.write_comma(first);
            self.fragments.write_piece(&mut self.body, fragment, piece);
        }
    }

    fn write_comma(&mut self, first: &mut bool) {
        if !std::mem::take(first) {
            self.body.push(b',');
        }
    }
}
