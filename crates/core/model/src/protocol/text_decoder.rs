//! Decodes a reply whose calls are part of its text: the decoder of the API extracts the text, and
//! the parser finds the calls in it.

use haft_types::{Part, StopReason, Thinking, ToolCall, ToolProtocol, ToolSet};

use super::{THOUGHT_LABEL, TextEvent, TextParser};
use crate::reply::Delta;
use crate::wire::{CallIds, Decode, DecodedReply, Fault, ReplyProgress, Sink};

/// Wraps `decoder` so that it parses calls from the text of a reply. Returns `decoder` unchanged if
/// the API has native calls or no tools are offered.
pub(crate) fn decode_text_calls(
    decoder: Box<dyn Decode>,
    protocol: ToolProtocol,
    tools: &ToolSet,
    ids: CallIds,
) -> Box<dyn Decode> {
    if !protocol.is_text() || tools.specs.is_empty() {
        return decoder;
    }
    let known: Vec<_> = tools.specs.iter().chain(&tools.deferred).cloned().collect();
    let parser = || TextParser::new(protocol, &known);
    Box::new(TextDecoder {
        decoder,
        live: Some(parser()),
        whole: parser(),
        protocol,
        teller: DeltaReporter {
            ids: ids.clone(),
            call: None,
        },
        ids,
    })
}

struct TextDecoder {
    decoder: Box<dyn Decode>,
    /// The parser of the text that has arrived so far, for live output; `None` once the message is
    /// complete.
    live: Option<TextParser>,
    /// The parser of the complete text, used once the API's decoder has returned all parts.
    /// Thinking parts and text parts keep the decoder's order.
    whole: TextParser,
    protocol: ToolProtocol,
    teller: DeltaReporter,
    ids: CallIds,
}

impl Decode for TextDecoder {
    fn read_event(&mut self, data: &str, sink: Sink<'_>) -> Result<ReplyProgress, Fault> {
        let Self {
            decoder,
            live,
            teller,
            ..
        } = self;
        let progress = decoder.read_event(data, &mut |delta| {
            forward_delta(delta, live.as_mut(), teller, sink);
        })?;
        match progress {
            ReplyProgress::Going => {}
            ReplyProgress::Ended | ReplyProgress::Done => self.end_live(sink),
        }
        Ok(progress)
    }

    fn read_body(&mut self, body: &str, sink: Sink<'_>) -> Result<(), Fault> {
        let Self {
            decoder,
            live,
            teller,
            ..
        } = self;
        decoder.read_body(body, &mut |delta| {
            forward_delta(delta, live.as_mut(), teller, sink);
        })?;
        self.end_live(sink);
        Ok(())
    }

    fn finish(self: Box<Self>) -> DecodedReply {
        let DecodedReply { parts, stop, usage } = self.decoder.finish();
        let mut parser = self.whole;
        let mut read = Parts {
            list: Vec::with_capacity(parts.len() + 4),
            thoughts: Vec::new(),
            ids: self.ids,
        };
        for part in parts {
            match part {
                // The signature covers the original text, not the part of it that remains.
                Part::Text { text, signature: _ } => {
                    parser.feed(&text, &mut |event| read.add_event(event));
                }
                part @ (Part::Thinking(_)
                | Part::ToolCall(_)
                | Part::ToolResult(_)
                | Part::Image(_)) => {
                    read.list.push(part);
                }
            }
        }
        parser.finish(&mut |event| read.add_event(event));
        let parts = read.finish(self.protocol);
        let has_calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
        let stop = if has_calls && stop == StopReason::EndTurn {
            StopReason::ToolUse
        } else {
            stop
        };
        DecodedReply { parts, stop, usage }
    }
}

impl TextDecoder {
    fn end_live(&mut self, sink: Sink<'_>) {
        if let Some(parser) = self.live.take() {
            parser.finish(&mut |event| self.teller.report(event, sink));
        }
    }
}

fn forward_delta(
    delta: Delta,
    parser: Option<&mut TextParser>,
    teller: &mut DeltaReporter,
    sink: Sink<'_>,
) {
    match (delta, parser) {
        (Delta::Text(piece), Some(parser)) => {
            parser.feed(&piece, &mut |event| teller.report(event, sink));
        }
        (delta, _) => sink(delta),
    }
}

/// Reports parsed calls as deltas, as if they were native calls.
struct DeltaReporter {
    ids: CallIds,
    call: Option<String>,
}

impl DeltaReporter {
    fn report(&mut self, event: TextEvent, sink: Sink<'_>) {
        match event {
            TextEvent::Text(text) => sink(Delta::Text(text)),
            TextEvent::Thinking(text) => sink(Delta::Thinking(text)),
            TextEvent::CallOpened { name } => {
                let id = self.ids.next_id(&name);
                self.call = Some(id.clone());
                sink(Delta::CallStarted { id, name });
            }
            TextEvent::CallClosed { arguments } => {
                let Some(id) = self.call.take() else { return };
                sink(Delta::CallArguments {
                    id: id.clone(),
                    piece: arguments,
                });
                sink(Delta::CallFinished { id });
            }
            TextEvent::CallLeftOpen { source } => {
                let Some(id) = self.call.take() else { return };
                sink(Delta::CallArguments { id, piece: source });
            }
        }
    }
}

/// The parts of the message that have been parsed so far.
struct Parts {
    list: Vec<Part>,
    /// The indices in `list` of thoughts that the model wrote as text.
    thoughts: Vec<usize>,
    ids: CallIds,
}

impl Parts {
    fn add_event(&mut self, event: TextEvent) {
        let last = self.list.len().wrapping_sub(1);
        match (event, self.list.last_mut()) {
            (TextEvent::Text(piece), Some(Part::Text { text, .. })) => text.push_str(&piece),
            (TextEvent::Text(piece), _) => self.list.push(Part::from_text(piece)),
            (TextEvent::Thinking(piece), Some(Part::Thinking(thinking)))
                if self.thoughts.contains(&last) =>
            {
                thinking.text.push_str(&piece);
            }
            (TextEvent::Thinking(piece), _) => {
                self.thoughts.push(self.list.len());
                self.list.push(Part::Thinking(Thinking {
                    text: piece,
                    ..Thinking::default()
                }));
            }
            (TextEvent::CallOpened { name }, _) => {
                let id = self.ids.next_id(&name);
                self.list.push(Part::ToolCall(ToolCall {
                    id,
                    name,
                    arguments: String::new(),
                    signature: None,
                }));
            }
            (
                TextEvent::CallClosed { arguments: text }
                | TextEvent::CallLeftOpen { source: text },
                _,
            ) => {
                // Reasoning of the API's own may have come between.
                let call = self.list.iter_mut().rev().find_map(|part| match part {
                    Part::ToolCall(call) => Some(call),
                    Part::Text { .. }
                    | Part::Thinking(_)
                    | Part::ToolResult(_)
                    | Part::Image(_) => None,
                });
                if let Some(call) = call {
                    call.arguments = text;
                }
            }
        }
    }

    /// Returns the parts of the message. For each thought that was written as text, sets `raw` to
    /// the original text, which is sent back to the model that wrote the thought.
    fn finish(mut self, protocol: ToolProtocol) -> Vec<Part> {
        for index in self.thoughts {
            if let Some(Part::Thinking(thinking)) = self.list.get_mut(index) {
                thinking.raw = match protocol {
                    ToolProtocol::Native => None,
                    ToolProtocol::Xml => Some(format!("<thinking>{}</thinking>", thinking.text)),
                    ToolProtocol::React => Some(format!("{THOUGHT_LABEL} {}", thinking.text)),
                };
            }
        }
        self.list
            .retain(|part| !matches!(part, Part::Text { text, .. } if text.trim().is_empty()));
        self.list
    }
}
