//! Adds to the results of a small model's calls what to do next: after an error the call to send,
//! after an edit the places that it left unchanged.
//!
//! A model of one or two billion parameters seldom builds the right call from an explanation, but
//! it repeats a call that it reads. Results for other models are not changed.
//!
//! Invariant: guidance names only offered tools, and shows only files that the model could read.

use std::path::Path;

use haft_model::NEXT_CALL_KEY;
use haft_tool::{NoChangeRecords, ToolOutput};
use haft_tools::{AttachedFile, OtherPlace, ReplacedText, find_other_places, repair_edit};
use haft_types::{ModelProfile, ToolCall};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::one_call::CallHistory;
use super::progress::ProgressRelay;
use crate::names;
use crate::session::Session;
use crate::turn::change_request::names_all_files;

/// The minimum similarity, between 0 and 1, of an unknown tool's name to a tool that is meant.
const MIN_NAME_SIMILARITY: f64 = 0.85;
/// The maximum number of values of a call that are looked up as paths.
const MAX_LOOKED_UP_VALUES: usize = 8;

/// The beginnings of the names of unknown tools that add code to a file.
const ADDING_VERBS: [&str; 4] = ["add", "append", "insert", "define"];

/// What a small model should do next.
struct Guidance {
    text: String,
    /// The call to send, as it is printed at the end of the text.
    next: Option<NextCall>,
    /// The file that the text shows.
    shown: Option<AttachedFile>,
    /// True if the text replaces the error, whose advice does not fit.
    replaces_error: bool,
}

struct NextCall {
    tool: String,
    arguments: Value,
}

impl Guidance {
    fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            next: None,
            shown: None,
            replaces_error: false,
        }
    }

    fn call(text: impl Into<String>, tool: &str, arguments: Value) -> Self {
        Self {
            next: Some(NextCall {
                tool: tool.to_owned(),
                arguments,
            }),
            ..Self::text(text)
        }
    }
}

impl Session {
    /// Reads the file that a small model's call overwrites, to compare it with the new content.
    pub(crate) async fn read_before_write(
        &self,
        call: &ToolCall,
        cancel: &CancellationToken,
    ) -> Option<AttachedFile> {
        if self.config.model.profile != ModelProfile::Small {
            return None;
        }
        let (tool, arguments) = self.resolve_call(call)?;
        let path = arguments.get("path").and_then(Value::as_str);
        let path = path.filter(|_| tool == names::WRITE_TOOL)?;
        self.attach_whole(path, cancel).await
    }

    /// Adds guidance to the result of a small model's call. `before` is the file that the call
    /// overwrote.
    pub(crate) async fn add_guidance(
        &self,
        call: &ToolCall,
        history: CallHistory,
        before: Option<AttachedFile>,
        output: &mut ToolOutput,
        cancel: &CancellationToken,
    ) {
        if self.config.model.profile != ModelProfile::Small {
            return;
        }
        let Some(guidance) = self
            .find_guidance(call, history, before, output, cancel)
            .await
        else {
            return;
        };
        let envelope = &mut output.envelope;
        if guidance.replaces_error {
            envelope.text.clear();
        } else {
            envelope.text.truncate(envelope.text.trim_end().len());
            envelope.text.push('\n');
        }
        envelope.text.push_str(&guidance.text);
        if let Some(NextCall { tool, arguments }) = guidance.next {
            let protocol = self.config.model.tool_protocol;
            let call = json!({ "name": tool, "arguments": arguments });
            let written = haft_model::write_call(protocol, &tool, &arguments.to_string());
            let written = written.unwrap_or_else(|| call.to_string());
            envelope.text.extend(["\n", &written]);
            envelope.context[NEXT_CALL_KEY] = call;
        }
        let seen = guidance.shown.and_then(|file| self.record_attached(&file));
        if let Some(seen) = seen {
            envelope.context["file"] = seen;
        }
    }

    async fn find_guidance(
        &self,
        call: &ToolCall,
        history: CallHistory,
        before: Option<AttachedFile>,
        output: &ToolOutput,
        cancel: &CancellationToken,
    ) -> Option<Guidance> {
        let envelope = &output.envelope;
        let code = envelope.error.as_ref().map(|error| error.code.as_str());
        if code == Some("unknown_tool") {
            return self.guide_unknown_tool(call, cancel).await;
        }
        let (tool, arguments) = self.resolve_call(call)?;
        match (tool.as_str(), code) {
            ("edit_file", Some("ambiguous_match")) => {
                let mut arguments = Value::Object(arguments);
                arguments["replace_all"] = true.into();
                let text = "If all of these places are meant, send this call:";
                Some(Guidance::call(text, &tool, arguments))
            }
            ("edit_file", Some("no_match")) if history == CallHistory::SucceededBefore => {
                let text = "This edit was made before, and nothing is left to replace. If the task is done, say so.";
                Some(Guidance {
                    replaces_error: true,
                    ..Guidance::text(text)
                })
            }
            ("edit_file", Some("no_match")) => self.guide_misfit(&arguments, cancel).await,
            (_, Some("not_read")) => {
                let path = arguments.get("path").and_then(Value::as_str)?;
                let file = self.attach_whole(path, cancel).await?;
                Some(Guidance {
                    text: format!(
                        "This is the file:\n{}\nNow send the call again, with the whole new content.",
                        file.format()
                    ),
                    next: None,
                    shown: Some(file),
                    replaces_error: false,
                })
            }
            (_, Some("not_found" | "outside_workspace" | "permission_denied")) => {
                self.guide_wrong_path(&tool, arguments, &envelope.text, cancel)
                    .await
            }
            (_, None) if envelope.data["change"] == haft_tool::UNCHANGED => {
                Some(Guidance::text(match history {
                    CallHistory::SucceededBefore => "If the task is done, say so.",
                    CallHistory::New => {
                        "If the task needs a change, send the call again with the new content."
                    }
                }))
            }
            ("search_files", None) if envelope.data["matches"] == 0 => {
                Some(self.guide_empty_search())
            }
            (_, None) if !output.changes.is_empty() => {
                self.guide_edit(&arguments, before, cancel).await
            }
            (_, Some(_) | None) => None,
        }
    }

    /// Returns the canonical name of the called tool and the arguments under its own names.
    fn resolve_call(&self, call: &ToolCall) -> Option<(String, Map<String, Value>)> {
        let found = self.prompt.registry().resolve(&call.name)?;
        let arguments = serde_json::from_str::<Map<String, Value>>(&call.arguments).ok()?;
        let arguments = match found.alias {
            Some(alias) => (alias.translate)(arguments),
            None => arguments,
        };
        Some((found.tool.spec().name.clone(), arguments))
    }

    async fn attach_whole(&self, path: &str, cancel: &CancellationToken) -> Option<AttachedFile> {
        let files = self.attach_readable(vec![path.to_owned()], 1, cancel).await;
        files.into_iter().next().filter(|file| file.whole.is_some())
    }

    /// Applies the change of an edit that fits nowhere to the only line that it can mean.
    async fn guide_misfit(
        &self,
        arguments: &Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Option<Guidance> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let file = self.attach_whole(text("path")?, cancel).await?;
        let (old, new) = repair_edit(&file.text, text("old_text")?, text("new_text")?)?;
        let mut arguments = arguments.clone();
        arguments.insert("old_text".to_owned(), old.into());
        arguments.insert("new_text".to_owned(), new.into());
        arguments.shift_remove("replace_all");
        Some(Guidance::call(
            "Send this call:",
            "edit_file",
            Value::Object(arguments),
        ))
    }

    fn guide_empty_search(&self) -> Guidance {
        let registry = self.prompt.registry();
        let find = if registry.offers_tool("list_files") {
            " Find a file by its name with `list_files`."
        } else {
            ""
        };
        Guidance::text(format!(
            "`search_files` searches the content of files, not their names.{find}"
        ))
    }

    /// Names the files that still contain the text that an edit replaced. If the prompt names the
    /// first of them, or all files, the guidance ends in the call that changes it.
    async fn guide_edit(
        &self,
        arguments: &Map<String, Value>,
        before: Option<AttachedFile>,
        cancel: &CancellationToken,
    ) -> Option<Guidance> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let path = text("path")?;
        let replaced = match (text("old_text"), text("new_text")) {
            (Some(old), Some(new)) => ReplacedText::from_texts(old, new)?,
            (_, _) => ReplacedText::from_texts(&before?.text, text("content")?)?,
        };
        let places = self.other_places(path, &replaced, cancel).await;
        let wanted = self.wanted_place(&places);
        let named: Vec<String> = places.iter().map(describe_place).collect();
        if named.is_empty() {
            return None;
        }
        let still = format!("`{}` is still in {}.", replaced.old, named.join(", "));
        Some(match wanted {
            Some(place) => Guidance::call(
                format!("{still} If the task means that too, send this call:"),
                "edit_file",
                replace_everywhere(place, &replaced),
            ),
            None => Guidance::text(still),
        })
    }

    async fn other_places(
        &self,
        edited: &str,
        replaced: &ReplacedText,
        cancel: &CancellationToken,
    ) -> Vec<OtherPlace> {
        let call = ToolCall {
            id: String::new(),
            name: names::READ_TOOL.to_owned(),
            arguments: String::new(),
            signature: None,
        };
        let context = self.tool_context(&call, &NoChangeRecords, cancel, &ProgressRelay::new());
        find_other_places(&context, edited, replaced).await
    }

    /// Returns the first place that the task is about: its file is named, or all files are.
    fn wanted_place<'a>(&self, places: &'a [OtherPlace]) -> Option<&'a OtherPlace> {
        let task = self.transcript.round_prompt();
        let all = names_all_files(&task);
        places
            .iter()
            .find(|place| all || task.contains(&place.name))
            .filter(|_| self.prompt.registry().offers_tool("edit_file"))
    }

    /// Repeats a call whose path is wrong with the path that is meant: the file of that name in the
    /// working directory, or the only path that the error suggests.
    async fn guide_wrong_path(
        &self,
        tool: &str,
        mut arguments: Map<String, Value>,
        error: &str,
        cancel: &CancellationToken,
    ) -> Option<Guidance> {
        let path = arguments.get("path").and_then(Value::as_str)?.to_owned();
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        let same_name = self.attach_readable(vec![name], 1, cancel).await;
        let meant = same_name
            .into_iter()
            .find(|file| file.name != path && file.path != Path::new(&path))
            .map(|file| file.name)
            .or_else(|| find_only_suggestion(error));
        let Some(meant) = meant else {
            return self.guide_missing_file(tool, &arguments, cancel).await;
        };
        arguments.insert("path".to_owned(), meant.into());
        Some(Guidance::call(
            "Send this call:",
            tool,
            Value::Object(arguments),
        ))
    }

    /// Guides a model that edits a file that does not exist: to create it if the task names it, or
    /// to the file that contains the text.
    async fn guide_missing_file(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Option<Guidance> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let path = text("path").filter(|_| tool == "edit_file")?;
        let old = text("old_text")?;
        let new = text("new_text")?;
        let is_named = self.transcript.round_prompt().contains(path);
        if is_named && self.prompt.registry().offers_tool(names::WRITE_TOOL) {
            return Some(Guidance::call(
                "If the file is to be created, send this call:",
                names::WRITE_TOOL,
                json!({ "path": path, "content": new }),
            ));
        }
        let replaced = ReplacedText::from_texts(old, new)?;
        let places = self.other_places(".", &replaced, cancel).await;
        let place = self.wanted_place(&places)?;
        let named: Vec<String> = places.iter().map(describe_place).collect();
        Some(Guidance::call(
            format!(
                "`{}` is in {}. Send this call:",
                replaced.old,
                named.join(", ")
            ),
            "edit_file",
            replace_everywhere(place, &replaced),
        ))
    }

    /// Guides a model that called a tool that does not exist: by a tool with a similar name, or to
    /// the file that the call or the task names.
    async fn guide_unknown_tool(
        &self,
        call: &ToolCall,
        cancel: &CancellationToken,
    ) -> Option<Guidance> {
        let arguments =
            serde_json::from_str::<Map<String, Value>>(&call.arguments).unwrap_or_default();
        if let Some(tool) = self.similar_tool(&call.name, &arguments) {
            return Some(Guidance::call(
                "Send this call:",
                &tool,
                Value::Object(arguments),
            ));
        }
        let registry = self.prompt.registry();
        let values = arguments.values().filter_map(Value::as_str);
        let mut words: Vec<String> = values
            .filter(|value| value.len() <= 200 && !value.contains('\n'))
            .take(MAX_LOOKED_UP_VALUES)
            .map(str::to_owned)
            .collect();
        words.extend(crate::prompt::attachments::find_path_words(
            &self.transcript.round_prompt(),
        ));
        let file = self
            .attach_readable(words, 1, cancel)
            .await
            .into_iter()
            .next();
        let Some(file) = file.filter(|_| registry.offers_tool("edit_file")) else {
            let tools: Vec<_> = registry
                .offered_tools()
                .map(super::call_check::describe_required_arguments)
                .collect();
            return Some(Guidance::text(format!(
                "Use one of these tools: {}.",
                tools.join(", ")
            )));
        };
        let seen = self.prompt.reads().last_seen(&file.path);
        let shown = file
            .whole
            .is_some_and(|state| seen.is_some_and(|seen| seen.hash == state.hash));
        let content = if shown {
            String::new()
        } else {
            format!("{}\n", file.format())
        };
        if let Some(arguments) = append_arguments(&call.name, &arguments, &file) {
            return Some(Guidance {
                shown: Some(file).filter(|_| !shown),
                ..Guidance::call(format!("{content}Send this call:"), "edit_file", arguments)
            });
        }
        Some(Guidance {
            shown: Some(file.clone()).filter(|_| !shown),
            ..Guidance::call(
                format!(
                    "{content}Change `{}` with `edit_file`, with your texts in this call:",
                    file.name
                ),
                "edit_file",
                json!({
                    "path": file.name,
                    "old_text": "the text to replace, as it is in the file",
                    "new_text": "the new text",
                }),
            )
        })
    }

    /// Returns the offered tool whose name is most similar, if it accepts the arguments.
    fn similar_tool(&self, name: &str, arguments: &Map<String, Value>) -> Option<String> {
        let fits = |tool: &&std::sync::Arc<dyn haft_tool::Tool>| {
            let spec = tool.spec();
            let known = spec.parameters["properties"].as_object();
            let required = spec.parameters["required"].as_array();
            let mut required = required.into_iter().flatten().filter_map(Value::as_str);
            arguments
                .keys()
                .all(|key| known.is_some_and(|known| known.contains_key(key)))
                && required.all(|key| arguments.contains_key(key))
        };
        self.prompt
            .registry()
            .offered_tools()
            .filter(fits)
            .map(|tool| &tool.spec().name)
            .map(|own| (strsim::jaro_winkler(name, own), own))
            .filter(|(similarity, _)| *similarity >= MIN_NAME_SIMILARITY)
            .max_by(|one, other| one.0.total_cmp(&other.0))
            .map(|(_, own)| own.clone())
    }
}

/// Returns the path that an error suggests for a missing one, if it suggests only one.
fn find_only_suggestion(error: &str) -> Option<String> {
    let (_, suggested) = error.split_once("near it there is `")?;
    let (path, rest) = suggested.split_once('`')?;
    (!rest.starts_with(',')).then(|| path.to_owned())
}

/// Returns the arguments of an edit that appends the code of an unknown call, such as
/// `add_function`, to a file; `None` if the call adds nothing.
fn append_arguments(
    name: &str,
    arguments: &Map<String, Value>,
    file: &AttachedFile,
) -> Option<Value> {
    if !ADDING_VERBS.iter().any(|verb| name.starts_with(verb)) || file.whole.is_none() {
        return None;
    }
    let code = arguments
        .values()
        .filter_map(Value::as_str)
        .filter(|value| value.contains('\n'))
        .max_by_key(|value| value.len())?;
    let last = file.text.lines().rfind(|line| !line.trim().is_empty())?;
    let is_unique = file.text.matches(last).count() == 1;
    is_unique.then(|| {
        json!({
            "path": file.name,
            "old_text": last,
            "new_text": format!("{last}\n\n{}", code.trim_end()),
        })
    })
}

/// Returns the arguments of the edit that replaces the text everywhere in a file.
fn replace_everywhere(place: &OtherPlace, replaced: &ReplacedText) -> Value {
    json!({
        "path": place.name,
        "old_text": replaced.old,
        "new_text": replaced.new,
        "replace_all": true,
    })
}

fn describe_place(place: &OtherPlace) -> String {
    let lines: Vec<String> = place.lines.iter().map(usize::to_string).collect();
    format!("`{}` (line {})", place.name, lines.join(", "))
}
