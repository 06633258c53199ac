//! The list of tool calls without a result: those that run, and those that wait.

use std::time::Duration;

use haft_agent::{Approval, MAIN_AGENT};
use haft_messages::CallHeadline;
use haft_types::ToolStatus;
use serde_json::Value;

use super::scrollback::Scrollback;
use crate::call::ToolCallView;
use crate::line::StyledLine;

#[derive(Debug, Default)]
pub(super) struct CallList {
    running: Vec<ToolCallView>,
    /// Ids of calls whose results are not shown: calls that were shown as cancelled, and questions
    /// of the model, whose result is the user's answer.
    hidden: Vec<String>,
    /// The tool whose diff the user just approved, so that its result needn't repeat the diff.
    approved_diff: Option<String>,
    /// The project's folder, or `None` if the terminal doesn't support links to files.
    root: Option<String>,
}

impl CallList {
    pub(super) fn new(root: Option<String>) -> Self {
        Self {
            root,
            ..Self::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Adds a call that was announced, but whose arguments are still arriving.
    pub(super) fn add_announced(&mut self, id: &str, name: &str) {
        self.running.push(ToolCallView::new(id, name));
    }

    /// Adds a call whose arguments have arrived completely. It waits until it runs.
    pub(super) fn add_complete(&mut self, id: &str, name: &str, arguments: Option<&Value>) {
        let link = arguments.and_then(|arguments| self.file_link(arguments));
        let call = self.find_or_add(id, name);
        if let Some(arguments) = arguments {
            call.describe(arguments);
        }
        call.link = link;
    }

    /// Records that a call begins to run.
    pub(super) fn start_call(&mut self, id: &str, name: &str, now: Duration) {
        self.find_or_add(id, name).since = Some(now);
    }

    pub(super) fn add_progress(&mut self, id: &str, name: &str, text: &str, now: Duration) {
        let call = self.find_or_add(id, name);
        call.since.get_or_insert(now);
        call.add_progress(text);
    }

    /// Removes the call that is running because it has asked the user a question. The question
    /// itself is shown instead of the call and of its result.
    pub(super) fn hide_question(&mut self) {
        if let Some(at) = self.running.iter().rposition(|call| call.since.is_some()) {
            let call = self.running.remove(at);
            self.hidden.push(call.id);
        }
    }

    /// Forgets a hidden call when its result arrives. Returns false if the call wasn't hidden.
    pub(super) fn forget_hidden(&mut self, id: &str) -> bool {
        match self.hidden.iter().position(|hidden| hidden == id) {
            Some(at) => {
                self.hidden.remove(at);
                true
            }
            None => false,
        }
    }

    /// Removes and returns a call whose result has arrived.
    pub(super) fn remove(&mut self, id: &str, name: &str) -> ToolCallView {
        match self.running.iter().position(|call| call.id == id) {
            Some(at) => self.running.remove(at),
            None => ToolCallView::new(id, name),
        }
    }

    /// Draws a finished call. A diff that the user just approved is left out.
    pub(super) fn draw_finished(
        &mut self,
        call: &ToolCallView,
        status: ToolStatus,
        text: &str,
        now: Duration,
        columns: usize,
    ) -> Vec<StyledLine> {
        let mut rows = call.draw_finished(status, text, now, columns);
        let was_shown = self
            .approved_diff
            .take_if(|tool| *tool == call.tool)
            .is_some();
        if was_shown && status == ToolStatus::Success {
            rows.truncate(1);
        }
        rows
    }

    /// Prints every call that has no result yet as cancelled.
    ///
    /// The session itself reports cancelled calls only after the next prompt, which is too late for
    /// the user.
    pub(super) fn cancel_all(&mut self, now: Duration, out: &mut Scrollback) {
        for call in std::mem::take(&mut self.running) {
            let text = text!("app-call-cancelled");
            out.print_rows(call.draw_finished(ToolStatus::Error, text, now, out.columns()));
            self.hidden.push(call.id);
        }
    }

    /// Removes the calls of a reply that was discarded, because its request is sent again.
    pub(super) fn discard_calls(&mut self) {
        self.running.clear();
    }

    /// Shows a call with the arguments that the user edited.
    pub(super) fn set_edited(&mut self, approval: &Approval, arguments: &Value) {
        if approval.agent != MAIN_AGENT {
            return;
        }
        let link = self.file_link(arguments);
        let asked = CallHeadline::new(&approval.tool, &approval.arguments).object;
        let is_asked = |call: &&mut ToolCallView| call.tool == approval.tool && call.about == asked;
        if let Some(call) = self.running.iter_mut().find(is_asked) {
            call.describe(arguments);
            call.link = link;
            call.edited = true;
        }
    }

    pub(super) fn set_tool_of_shown_diff(&mut self, tool: Option<String>) {
        self.approved_diff = tool;
    }

    /// Draws the calls without a result, except the call that needs approval: the question shows
    /// it.
    pub(super) fn draw_rows(
        &self,
        asked: Option<&Approval>,
        now: Duration,
        columns: usize,
    ) -> impl Iterator<Item = StyledLine> {
        let asked = asked.and_then(|approval| self.find_asked(approval));
        self.running
            .iter()
            .enumerate()
            .filter(move |(at, _)| asked != Some(*at))
            .flat_map(move |(_, call)| call.draw_running(now, columns))
    }

    /// Returns the index of the call for which an approval is requested. A tool that stands for
    /// another one, as for those of MCP servers, has another name in the approval; then it is the
    /// first call that waits.
    fn find_asked(&self, approval: &Approval) -> Option<usize> {
        if approval.agent != MAIN_AGENT {
            return None;
        }
        let about = CallHeadline::new(&approval.tool, &approval.arguments).object;
        let waiting = || {
            self.running
                .iter()
                .enumerate()
                .filter(|(_, call)| call.since.is_none())
        };
        waiting()
            .find(|(_, call)| call.tool == approval.tool && call.about == about)
            .or_else(|| waiting().next())
            .map(|(at, _)| at)
    }

    /// Returns the call with this id, and adds the call first if it was never announced.
    fn find_or_add(&mut self, id: &str, name: &str) -> &mut ToolCallView {
        let at = self
            .running
            .iter()
            .position(|call| call.id == id)
            .unwrap_or_else(|| {
                self.running.push(ToolCallView::new(id, name));
                self.running.len() - 1
            });
        &mut self.running[at]
    }

    /// Returns the absolute path of the file that `arguments` name, if links are supported.
    fn file_link(&self, arguments: &Value) -> Option<String> {
        let root = self.root.as_ref()?;
        let path = arguments
            .get("path")
            .or_else(|| arguments.get("file_path"))?
            .as_str()?;
        Some(if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("{root}/{path}")
        })
    }
}
