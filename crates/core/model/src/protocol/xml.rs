//! The `xml` protocol: one tag per tool, containing one tag per parameter.
//!
//! A tag has one `<`, at its beginning. So text that was held back and turns out to be no tag is
//! plain text up to the character that showed it, and nothing is parsed again: each character is
//! visited once, or twice if it ends a failed match.
//!
//! Values are not escaped, so a value may contain its own closing tag. A parameter's closing tag
//! ends the value if the next closing tag after it is the tool's rather than the parameter's, or if
//! only white space lies between it and the tag of a parameter that has no value yet. Otherwise it
//! is part of the value.

use haft_types::ToolSpec;
use serde_json::{Map, Value};

use super::fence::FenceTracker;
use super::{CharRun, TextEvent, TextEventSink, values};

const THINKING_START: &str = "<thinking>";
const THINKING_END: &str = "</thinking>";

pub(super) struct XmlParser {
    tools: Vec<XmlTool>,
    place: XmlPlace,
    /// Text that is held back because it may become a tag.
    held: String,
    run: CharRun,
    fence: FenceTracker,
    last: char,
    /// True after a call or a thought, when white space is dropped until other text follows.
    swallow: bool,
    #[cfg(test)]
    pub(super) examined: usize,
}

struct XmlTool {
    name: String,
    open: String,
    close: String,
    parameters: Vec<Parameter>,
}

struct Parameter {
    name: String,
    open: String,
    close: String,
    schema: Value,
}

/// The position of the parser in the reply.
enum XmlPlace {
    Text,
    Thinking,
    Call(XmlCall),
}

/// A tool call that is still being received.
struct XmlCall {
    tool: usize,
    /// The text of the call so far, including its opening tag.
    source: String,
    /// The values received so far, each with the index of its parameter in the tool's list.
    given: Vec<(usize, Value)>,
    open: Option<OpenValue>,
}

/// A value whose end is not yet known.
struct OpenValue {
    parameter: usize,
    /// The index in `source` at which the value begins.
    start: usize,
    /// The index in `source` of the last closing tag. The tag ends the value unless another closing
    /// tag follows.
    end: Option<usize>,
    /// True if only white space has followed the closing tag at `end`.
    bare: bool,
}

/// A complete tag. The same text can be different tags at different positions in the reply.
#[derive(Clone, Copy)]
enum Tag {
    OpenThinking,
    CloseThinking,
    OpenTool(usize),
    CloseTool,
    OpenParameter(usize),
    CloseParameter,
}

/// The result of comparing the held text with the tags that are possible at its position.
enum TagMatch {
    Whole(Tag),
    Beginning,
    None,
}

impl XmlParser {
    pub(super) fn new(tools: &[ToolSpec]) -> Self {
        Self {
            tools: tools.iter().map(XmlTool::new).collect(),
            place: XmlPlace::Text,
            held: String::new(),
            run: CharRun::default(),
            fence: FenceTracker::default(),
            last: '\n',
            swallow: false,
            #[cfg(test)]
            examined: 0,
        }
    }

    pub(super) fn feed(&mut self, piece: &str, found: TextEventSink<'_>) {
        for c in piece.chars() {
            self.read_char(c, found);
        }
        self.run.flush(found);
    }

    pub(super) fn finish(mut self, found: TextEventSink<'_>) {
        self.release_held(found);
        self.run.flush(found);
        if let XmlPlace::Call(call) = self.place {
            found(TextEvent::CallLeftOpen {
                source: call.source,
            });
        }
    }

    fn read_char(&mut self, c: char, found: TextEventSink<'_>) {
        #[cfg(test)]
        {
            self.examined += 1;
        }
        if self.held.is_empty() {
            if c == '<' && self.may_be_tag() {
                self.held.push(c);
            } else {
                self.add_plain_char(c, found);
            }
            return;
        }
        self.held.push(c);
        match self.match_held_text() {
            TagMatch::Beginning => {}
            TagMatch::Whole(tag) => {
                let tag_text = std::mem::take(&mut self.held);
                self.handle_tag(tag, &tag_text, found);
            }
            TagMatch::None => {
                self.held.pop();
                self.release_held(found);
                self.read_char(c, found);
            }
        }
    }

    fn may_be_tag(&self) -> bool {
        match self.place {
            // A tag inside a code fence or directly after a backtick is a quotation.
            XmlPlace::Text => !self.fence.is_fenced() && self.last != '`',
            XmlPlace::Thinking | XmlPlace::Call(_) => true,
        }
    }

    /// Adds a character that is not part of a tag.
    fn add_plain_char(&mut self, c: char, found: TextEventSink<'_>) {
        match &mut self.place {
            XmlPlace::Text => {
                self.fence.read_char(c);
                self.last = c;
                self.swallow = self.swallow && c.is_whitespace();
                if !self.swallow {
                    self.run.push(c.encode_utf8(&mut [0; 4]), false, found);
                }
            }
            XmlPlace::Thinking => self.run.push(c.encode_utf8(&mut [0; 4]), true, found),
            XmlPlace::Call(call) => {
                call.source.push(c);
                if let Some(value) = &mut call.open {
                    value.bare = value.bare && c.is_whitespace();
                }
            }
        }
    }

    /// Adds the held text as plain text, because the held text is not a tag.
    fn release_held(&mut self, found: TextEventSink<'_>) {
        let held = std::mem::take(&mut self.held);
        for c in held.chars() {
            self.add_plain_char(c, found);
        }
    }

    fn match_held_text(&self) -> TagMatch {
        let mut beginning = false;
        let mut compare = |tag: Tag, text: &str| {
            if *text == self.held {
                return Some(tag);
            }
            beginning = beginning || text.starts_with(&self.held);
            None
        };
        let whole = match &self.place {
            XmlPlace::Text => compare(Tag::OpenThinking, THINKING_START).or_else(|| {
                let mut tools = self.tools.iter().enumerate();
                tools.find_map(|(index, tool)| compare(Tag::OpenTool(index), &tool.open))
            }),
            XmlPlace::Thinking => compare(Tag::CloseThinking, THINKING_END),
            XmlPlace::Call(call) => call
                .possible_tags(&self.tools[call.tool])
                .find_map(|(tag, text)| compare(tag, text)),
        };
        match whole {
            Some(tag) => TagMatch::Whole(tag),
            None if beginning => TagMatch::Beginning,
            None => TagMatch::None,
        }
    }

    fn handle_tag(&mut self, tag: Tag, text: &str, found: TextEventSink<'_>) {
        match (tag, &mut self.place) {
            (Tag::OpenThinking, _) => self.place = XmlPlace::Thinking,
            (Tag::CloseThinking, _) => self.return_to_text(),
            (Tag::OpenTool(tool), _) => {
                self.run.flush(found);
                found(TextEvent::CallOpened {
                    name: self.tools[tool].name.clone(),
                });
                self.place = XmlPlace::Call(XmlCall {
                    tool,
                    source: text.to_owned(),
                    given: Vec::new(),
                    open: None,
                });
            }
            (Tag::OpenParameter(parameter), XmlPlace::Call(call)) => {
                call.end_open_value(&self.tools[call.tool]);
                call.source.push_str(text);
                call.open = Some(OpenValue {
                    parameter,
                    start: call.source.len(),
                    end: None,
                    bare: false,
                });
            }
            (Tag::CloseParameter, XmlPlace::Call(call)) => {
                if let Some(value) = &mut call.open {
                    (value.end, value.bare) = (Some(call.source.len()), true);
                }
                call.source.push_str(text);
            }
            (Tag::CloseTool, XmlPlace::Call(call)) => {
                let tool = &self.tools[call.tool];
                call.end_open_value(tool);
                found(TextEvent::CallClosed {
                    arguments: tool.arguments_json(std::mem::take(&mut call.given)),
                });
                self.return_to_text();
            }
            // These tags are matched only inside a call.
            (
                Tag::OpenParameter(_) | Tag::CloseParameter | Tag::CloseTool,
                XmlPlace::Text | XmlPlace::Thinking,
            ) => {}
        }
    }

    fn return_to_text(&mut self) {
        self.place = XmlPlace::Text;
        self.fence.interrupt();
        (self.last, self.swallow) = ('>', true);
    }
}

impl XmlCall {
    /// Returns the tags that are possible at this point of the call.
    fn possible_tags<'a>(&'a self, tool: &'a XmlTool) -> impl Iterator<Item = (Tag, &'a str)> {
        let closing = self
            .open
            .as_ref()
            .map(|value| tool.parameters[value.parameter].close.as_str());
        let (may_end, may_open) = self.open.as_ref().map_or((true, true), |value| {
            (value.end.is_some(), value.end.is_some() && value.bare)
        });
        let parameters = tool
            .parameters
            .iter()
            .enumerate()
            .filter(move |(index, _)| {
                may_open
                    && self.given.iter().all(|(given, _)| given != index)
                    && self
                        .open
                        .as_ref()
                        .is_none_or(|value| value.parameter != *index)
            });
        closing
            .map(|text| (Tag::CloseParameter, text))
            .into_iter()
            .chain(may_end.then_some((Tag::CloseTool, tool.close.as_str())))
            .chain(
                parameters
                    .map(|(index, parameter)| (Tag::OpenParameter(index), parameter.open.as_str())),
            )
    }

    /// Ends the open value at the last closing tag.
    fn end_open_value(&mut self, tool: &XmlTool) {
        let Some(OpenValue {
            parameter,
            start,
            end: Some(end),
            ..
        }) = self.open.take()
        else {
            return;
        };
        let text = self.source.get(start..end).unwrap_or_default();
        self.given.push((
            parameter,
            values::text_to_value(text, &tool.parameters[parameter].schema),
        ));
    }
}

impl XmlTool {
    fn new(spec: &ToolSpec) -> Self {
        let properties = spec.parameters.get("properties").and_then(Value::as_object);
        let parameter = |(name, schema): (&String, &Value)| Parameter {
            name: name.clone(),
            open: format!("<{name}>"),
            close: format!("</{name}>"),
            schema: schema.clone(),
        };
        Self {
            name: spec.name.clone(),
            open: format!("<{}>", spec.name),
            close: format!("</{}>", spec.name),
            parameters: properties.into_iter().flatten().map(parameter).collect(),
        }
    }

    fn arguments_json(&self, given: Vec<(usize, Value)>) -> String {
        let named = given
            .into_iter()
            .map(|(index, value)| (self.parameters[index].name.clone(), value));
        Value::Object(named.collect::<Map<_, _>>()).to_string()
    }
}
