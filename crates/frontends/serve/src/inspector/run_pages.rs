//! Renders the pages that start, show, answer and stop runs. The sessions of other processes are
//! followed and answered through their sockets; a run without a socket is shown read-only, from the
//! store.

use std::path::PathBuf;
use std::sync::Arc;

use haft_acp::{
    AttachedTask, AttachedTasks, DelegatedTask, DelegatedTasks, FollowedState, RunRequest,
    TaskApproval, TaskError, TaskState, TaskStatus,
};
use haft_agent::ApprovalReply;
use haft_messages::CallHeadline;
use haft_store::{Locked, StoreError};
use haft_text::{format_thousands, reveal_controls};
use haft_types::{ConversationId, PermissionMode};

use super::conversation_tree::JobRow;
use super::glance::BreakList;
use super::page_frame::{ConversationTab, SiteSection};
use super::{Inspector, PageResult, conversation_path, format_cost_suffix};
use crate::localize_text;
use crate::markup::{Column, Markup};
use crate::server::{FormAnswer, FormFields};

/// The maximum number of messages that are shown below the state of a run. If there are more, the
/// newest are shown.
const MAX_LATEST_MESSAGES: usize = 12;

/// The runs that the pages have started, and the defaults of the form that starts a run.
pub struct PageRuns {
    pub tasks: Arc<DelegatedTasks>,
    /// The sessions of other processes.
    pub attached: AttachedTasks,
    /// The folder in which a run works if the form names none.
    pub cwd: PathBuf,
    /// The models that the form offers.
    pub models: Vec<String>,
    /// The permission mode that the form selects by default.
    pub mode: PermissionMode,
    /// A function that lists the background jobs, which are shown together with the runs.
    pub jobs: Box<dyn Fn() -> Vec<JobRow> + Send + Sync>,
}

const PERMISSION_MODES: [(&str, PermissionMode); 4] = [
    ("plan", PermissionMode::Plan),
    ("ask", PermissionMode::Ask),
    ("accept-edits", PermissionMode::AcceptEdits),
    ("auto", PermissionMode::Auto),
];

impl Inspector {
    /// Renders the form that starts a run, and the list of runs. Returns `None` if pages cannot
    /// start runs.
    pub(super) async fn render_runs(&self, notice: Markup, form: &FormFields) -> Option<String> {
        let runs = self.runs.as_ref()?;
        let folder = Some(form.get("folder")).filter(|folder| !folder.is_empty());
        let folder = folder.map_or_else(|| runs.cwd.display().to_string(), str::to_owned);
        let mode = PERMISSION_MODES
            .iter()
            .find(|(_, mode)| *mode == runs.mode)
            .map_or("auto", |(name, _)| name);
        let models = std::iter::once("").chain(runs.models.iter().map(String::as_str));
        let fields = [
            render_text_area("prompt", text!("serve-run-prompt"), form.get("prompt")),
            render_field(
                "folder",
                text!("serve-run-folder"),
                Markup::element(
                    "input",
                    &[("id", "folder"), ("name", "folder"), ("value", &folder)],
                    [],
                ),
            ),
            render_field(
                "mode",
                text!("serve-run-mode"),
                render_select("mode", PERMISSION_MODES.iter().map(|(name, _)| *name), mode),
            ),
            render_field(
                "model",
                text!("serve-model"),
                render_select("model", models, ""),
            ),
            Markup::element(
                "p",
                &[("class", "buttons")],
                [Markup::primary_button("start", text!("serve-run-start"))],
            ),
        ];
        let rows: Vec<_> = runs
            .tasks
            .known_tasks()
            .into_iter()
            .map(|task| {
                let view = task.view();
                let to = conversation_path(&task.id, "/live");
                vec![
                    Markup::link(&to, run_name(&task)),
                    render_status(view.status),
                    Markup::text(view.cwd),
                ]
            })
            .collect();
        let columns = [
            Column::prose(text!("serve-name")),
            Column::text(text!("serve-run-status")),
            Column::text(text!("serve-run-folder")),
        ];
        let table = if rows.is_empty() {
            Markup::text_element("p", text!("serve-no-runs"))
        } else {
            Markup::table(&columns, rows)
        };
        let pieces = [
            notice,
            Markup::form("/run", &self.form_token, fields),
            Markup::text_element("h2", text!("serve-run-here")),
            table,
            self.render_sessions_elsewhere(&runs.attached).await,
            self.render_jobs((runs.jobs)()),
        ];
        Some(self.build_page(SiteSection::Run, text!("serve-run-new"), pieces))
    }

    /// Lists the sessions that other processes of this user run.
    async fn render_sessions_elsewhere(&self, attached: &AttachedTasks) -> Markup {
        let sessions = attached.list_sessions().await;
        let own = std::process::id();
        let mut rows = sessions
            .into_iter()
            .filter(|session| session.process != own)
            .map(|session| {
                let id = ConversationId::new(session.conversation_id);
                let name = self.masker.mask(&session.name);
                vec![
                    Markup::link(&conversation_path(&id, "/live"), name),
                    Markup::text(localize_text(session.state.name())),
                    Markup::text(session.cwd),
                ]
            })
            .peekable();
        if rows.peek().is_none() {
            return Markup::default();
        }
        let columns = [
            Column::prose(text!("serve-name")),
            Column::text(text!("serve-run-status")),
            Column::text(text!("serve-run-folder")),
        ];
        Markup::concat([
            Markup::text_element("h2", text!("serve-run-others")),
            Markup::table(&columns, rows),
        ])
    }

    /// Starts a run. Redirects to the page of the run, or shows the error.
    pub(super) async fn start_run(&self, form: &FormFields) -> Option<FormAnswer> {
        let runs = self.runs.as_ref()?;
        let prompt = form.get("prompt").replace("\r\n", "\n");
        let started = if prompt.trim().is_empty() {
            Err(text!("serve-run-no-prompt").to_owned())
        } else {
            let folder = Some(form.get("folder")).filter(|folder| !folder.is_empty());
            let mode = PERMISSION_MODES
                .iter()
                .find(|(name, _)| *name == form.get("mode"))
                .map(|(_, mode)| *mode);
            let model = Some(form.get("model").to_owned()).filter(|model| !model.is_empty());
            let request = RunRequest {
                prompt: Some(prompt),
                model,
                mode,
                typed: true,
                ..RunRequest::default()
            };
            runs.tasks
                .start_task(folder, request)
                .map_err(|error| task_error_message(&error))
        };
        match started {
            Ok(task) => Some(FormAnswer::Redirect(conversation_path(&task.id, "/live"))),
            Err(error) => self
                .render_runs(self.render_alert(&error), form)
                .await
                .map(FormAnswer::Page),
        }
    }

    /// Renders the page of a conversation's run. Returns `None` if the conversation does not exist.
    pub(super) async fn render_run(
        &self,
        id: &ConversationId,
        notice: Markup,
    ) -> PageResult<Option<String>> {
        let stored = self.store.get(id).await?;
        let task = self
            .runs
            .as_ref()
            .and_then(|runs| runs.tasks.known_task(id));
        if stored.is_none() && task.is_none() {
            return Ok(None);
        }
        let to = conversation_path(id, "/live");
        let name = stored.as_ref().map_or_else(
            || task.as_deref().map(run_name).unwrap_or_default(),
            |one| one.name.clone(),
        );
        let running_task = task.as_ref().filter(|task| task.state().is_running);
        let holder = if running_task.is_none() && stored.is_some() {
            self.find_lock_holder(id).await?
        } else {
            None
        };
        let attached = match (&self.runs, &holder) {
            (Some(runs), Some(_)) => runs.attached.attach_task(id).await,
            (_, None) | (None, Some(_)) => None,
        };
        let mut state = match (&task, &holder, &attached) {
            (_, Some(holder), Some(attached)) => self.render_attached(&to, holder, attached),
            (_, Some(holder), None) => {
                vec![render_notice(text!("serve-run-elsewhere", holder))]
            }
            (Some(task), None, _) => self.render_run_state(&to, task.state()),
            (None, None, _) => Vec::new(),
        };
        if let Some(stored) = &stored {
            state.insert(0, self.render_glance(stored, BreakList::Closed).await);
            let messages = self.store.messages(id).await?;
            let from = messages.len().saturating_sub(MAX_LATEST_MESSAGES);
            state.push(Markup::text_element("h2", text!("serve-run-latest")));
            state.extend(
                messages[from..]
                    .iter()
                    .map(|one| self.render_message(Some(id), one)),
            );
        }
        let mut pieces = vec![
            notice,
            Markup::element("section", &[("id", "live"), ("class", "live")], state),
        ];
        let is_free = running_task.is_none() && holder.is_none() && self.runs.is_some();
        if is_free || attached.is_some() {
            let send = Markup::element(
                "p",
                &[("class", "buttons")],
                [Markup::primary_button("send", text!("serve-run-send"))],
            );
            pieces.push(Markup::form(
                &to,
                &self.form_token,
                [
                    render_text_area(
                        "message",
                        if attached.is_some() {
                            text!("serve-run-message-attached")
                        } else {
                            text!("serve-run-message")
                        },
                        "",
                    ),
                    send,
                ],
            ));
        }
        Ok(Some(match &stored {
            Some(stored) => {
                self.build_conversation_page(stored, ConversationTab::Run, None, pieces)
            }
            None => self.build_page(SiteSection::Run, &name, pieces),
        }))
    }

    /// Returns a description of the process that holds the conversation's write lock, or `None` if
    /// the lock is free.
    pub(super) async fn find_lock_holder(&self, id: &ConversationId) -> PageResult<Option<String>> {
        match self.store.try_lock(id).await {
            Ok(_) => Ok(None),
            Err(StoreError::LockTimeout {
                what: Locked::Conversation(_),
                holder,
                ..
            }) => Ok(Some(
                holder.map_or_else(|| "?".to_owned(), |holder| holder.to_string()),
            )),
            Err(error) => Err(error.into()),
        }
    }

    /// Renders the state of a run in another process, and the approvals for which it waits.
    fn render_attached(&self, to: &str, holder: &str, attached: &AttachedTask) -> Vec<Markup> {
        let FollowedState {
            task,
            unstored,
            forms,
            allowed_elsewhere,
            ..
        } = attached.state();
        let mut pieces = vec![render_notice(text!("serve-run-attached", holder))];
        match allowed_elsewhere {
            Some(true) => pieces.push(render_notice(text!("serve-run-allowed-elsewhere"))),
            Some(false) => pieces.push(render_notice(text!("serve-run-denied-elsewhere"))),
            None => {}
        }
        for from in &forms {
            pieces.push(render_notice(text!("serve-run-form-elsewhere", from)));
        }
        pieces.extend(self.render_run_state(to, task));
        for message in &unstored {
            let message = self.masker.mask(message);
            pieces.push(render_notice(text!("serve-run-unstored", message)));
        }
        pieces
    }

    /// Renders the state of a run, and the approvals for which the run waits.
    fn render_run_state(&self, to: &str, task: TaskState) -> Vec<Markup> {
        let TaskState {
            view,
            is_running: runs,
            activity,
            ..
        } = task;
        let mut pieces = vec![Markup::element(
            "p",
            &[("role", "status"), ("class", "status")],
            [
                render_status(view.status),
                Markup::text(format!(
                    " {}",
                    self.masker
                        .mask(&describe_state(&view.message, &activity, runs))
                )),
            ],
        )];
        pieces.extend(
            view.approvals
                .iter()
                .map(|approval| render_approval(to, &self.form_token, approval)),
        );
        if runs {
            // The script of the pages appends to this element while the model writes.
            pieces.push(Markup::element(
                "pre",
                &[("class", "said"), ("id", "stream")],
                [Markup::text(self.masker.mask(&view.text))],
            ));
        }
        if let Some(question) = &view.question {
            pieces.push(Markup::text_element(
                "p",
                self.masker.mask(&question.question),
            ));
            pieces.push(Markup::element(
                "ul",
                &[],
                question
                    .options
                    .iter()
                    .map(|one| Markup::text_element("li", self.masker.mask(one))),
            ));
        }
        if !view.changed_files.is_empty() {
            pieces.push(Markup::text_element("h2", text!("serve-run-files")));
            pieces.push(Markup::element(
                "ul",
                &[],
                view.changed_files
                    .keys()
                    .map(|path| Markup::text_element("li", self.masker.mask(path))),
            ));
        }
        let usage = view.usage;
        let cost = format_cost_suffix(view.cost_usd);
        let input = usage.all_input();
        let cached = usage.cached_input;
        let output = usage.output;
        let used = text!(
            "serve-run-usage",
            input = format_thousands(input),
            cached = format_thousands(cached),
            output = format_thousands(output),
            cost
        );
        pieces.push(Markup::text_element("p", used));
        if runs {
            pieces.push(Markup::form(
                to,
                &self.form_token,
                [Markup::button("stop", text!("serve-run-stop"))],
            ));
        }
        pieces
    }

    /// Answers, stops or continues a run, depending on the submitted form.
    pub(super) async fn handle_run_form(
        &self,
        id: &ConversationId,
        form: &FormFields,
    ) -> PageResult<Option<FormAnswer>> {
        let Some(runs) = &self.runs else {
            return Ok(None);
        };
        let own_runs = runs
            .tasks
            .known_task(id)
            .is_some_and(|task| task.state().is_running);
        if !own_runs && let Some(attached) = runs.attached.attach_task(id).await {
            return self.handle_attached_form(id, &attached, form).await;
        }
        let task = match runs.tasks.find_task(id.as_str()).await {
            Ok(task) => task,
            Err(TaskError::Unknown(_)) => return Ok(None),
            Err(error) => {
                return Ok(self
                    .render_run(id, self.render_alert(&task_error_message(&error)))
                    .await?
                    .map(FormAnswer::Page));
            }
        };
        let done = match form.get("do") {
            "stop" => {
                task.cancel();
                Ok(())
            }
            "send" => {
                let prompt = form.get("message").replace("\r\n", "\n");
                let request = RunRequest {
                    prompt: Some(prompt).filter(|text| !text.trim().is_empty()),
                    typed: true,
                    ..RunRequest::default()
                };
                runs.tasks
                    .start_run(&task, request)
                    .map_err(|error| task_error_message(&error))
            }
            "allow" => answer_approval(&task, form, ApprovalReply::Once),
            "always" => answer_approval(&task, form, ApprovalReply::Always),
            _ => answer_approval(
                &task,
                form,
                ApprovalReply::No {
                    reason: form.get("reason").to_owned(),
                },
            ),
        };
        match done {
            Ok(()) => Ok(Some(FormAnswer::Redirect(conversation_path(id, "/live")))),
            Err(error) => Ok(self
                .render_run(id, self.render_alert(&error))
                .await?
                .map(FormAnswer::Page)),
        }
    }

    /// Answers, interrupts or steers a session of another process, depending on the submitted form.
    async fn handle_attached_form(
        &self,
        id: &ConversationId,
        task: &AttachedTask,
        form: &FormFields,
    ) -> PageResult<Option<FormAnswer>> {
        let approval = form.get("approval");
        let done = match form.get("do") {
            "stop" => {
                task.interrupt().await;
                Ok(())
            }
            "send" => {
                let message = form.get("message").replace("\r\n", "\n");
                task.send_message(message).await
            }
            "allow" => task.answer_approval(approval, ApprovalReply::Once).await,
            "always" => task.answer_approval(approval, ApprovalReply::Always).await,
            _ => {
                let reason = form.get("reason").to_owned();
                task.answer_approval(approval, ApprovalReply::No { reason })
                    .await
            }
        };
        let alert = match done {
            Ok(()) => return Ok(Some(FormAnswer::Redirect(conversation_path(id, "/live")))),
            Err(why) => text!("serve-run-refused", why = localize_text(why)),
        };
        Ok(self
            .render_run(id, self.render_alert(&alert))
            .await?
            .map(FormAnswer::Page))
    }

    /// Returns the state of the run that the page of a conversation shows. Returns `None` if this
    /// server neither started nor follows one.
    fn shown_state(&self, id: &ConversationId) -> Option<FollowedState> {
        let runs = self.runs.as_ref()?;
        let own = runs.tasks.known_task(id).map(|task| task.state());
        if let Some(task) = own.clone().filter(|task| task.is_running) {
            return Some(FollowedState::from(task));
        }
        let attached = runs.attached.known_task(id);
        attached
            .map(|task| task.state())
            .or(own.map(FollowedState::from))
    }

    /// Returns a text that changes whenever the page of the run changes. Returns an empty string if
    /// this server neither started nor follows the run.
    pub(super) fn run_page_version(&self, id: &ConversationId) -> String {
        let Some(state) = self.shown_state(id) else {
            return String::new();
        };
        let TaskState {
            view,
            is_running: runs,
            activity,
            ..
        } = &state.task;
        let approval_ids: Vec<_> = view
            .approvals
            .iter()
            .map(|one| one.approval_id.as_str())
            .collect();
        format!(
            "{runs} {} {} {activity} {} {} {:?}",
            status_name(view.status),
            approval_ids.join(","),
            state.unstored.len(),
            state.forms.len(),
            state.allowed_elsewhere
        )
    }

    /// Returns the text that the model of a running run is writing, masked. Returns `None` if this
    /// server neither started nor follows the run, or if the run has ended.
    pub(super) fn run_text(&self, id: &ConversationId) -> Option<String> {
        let state = self.shown_state(id)?.task;
        state
            .is_running
            .then(|| self.masker.mask(&state.view.text).into_owned())
    }
}

fn render_notice(text: impl AsRef<str>) -> Markup {
    Markup::element("p", &[("class", "notice")], [Markup::text(text)])
}

/// Renders the form with which the user approves or denies a tool call.
///
/// Invariant: the form shows everything in full, without masked secrets, because a mask would
/// hide part of what the user approves. The texts of a [`TaskApproval`] are shown texts.
fn render_approval(to: &str, form_token: &str, approval: &TaskApproval) -> Markup {
    let TaskApproval {
        approval_id,
        agent,
        tool,
        arguments,
        subject,
        reason,
        ..
    } = approval;
    let outside = if approval.leaves_sandbox {
        text!("serve-approval-outside")
    } else {
        ""
    };
    let id_field = || Markup::hidden_field("approval", approval_id);
    let mut buttons = vec![
        id_field(),
        Markup::primary_button("allow", text!("serve-approval-once")),
    ];
    if !approval.remember.is_empty() {
        let rules = approval.remember.join(", ");
        buttons.push(Markup::button(
            "always",
            text!("serve-approval-always", rules),
        ));
    }
    let why = format!("reason-{approval_id}");
    let label = Markup::element(
        "label",
        &[("for", &why)],
        [Markup::text(text!("serve-approval-reason"))],
    );
    let reply = Markup::element("input", &[("id", &why), ("name", "reason")], []);
    let deny = Markup::button("deny", text!("serve-approval-deny"));
    // Enter in the field presses the first button of its form, which must not be the one that
    // allows the call.
    let forms = [
        Markup::form(to, form_token, buttons),
        Markup::form(to, form_token, [id_field(), deny, label, reply]),
    ];
    Markup::element(
        "section",
        &[("class", "approval")],
        [
            Markup::text_element(
                "h2",
                text!(
                    "serve-approval",
                    agent = reveal_controls(agent),
                    call = reveal_controls(&CallHeadline::new(tool, arguments).to_line())
                ),
            ),
            Markup::text_element("p", format!("{reason} {outside}")),
            render_subject(subject),
            Markup::concat(forms),
        ],
    )
}

/// Renders what is approved. If it is the diff of a file, its lines are marked by kind.
fn render_subject(subject: &str) -> Markup {
    let mut lines = subject.lines();
    let is_diff = lines.any(|line| line.starts_with("--- "))
        && lines.next().is_some_and(|line| line.starts_with("+++ "));
    if is_diff {
        Markup::diff(subject)
    } else {
        Markup::text_element("pre", subject)
    }
}

/// Describes what a run does, or the reason why it ended. The activity of a run that has ended only
/// repeats its state.
fn describe_state(message: &str, activity: &str, is_running: bool) -> String {
    let parts = [message, if is_running { activity } else { "" }];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

/// Renders the state of a run as a badge.
fn render_status(status: TaskStatus) -> Markup {
    let class = match status {
        TaskStatus::Running => "badge running",
        TaskStatus::Waiting => "badge waiting",
        TaskStatus::Completed => "badge done",
        TaskStatus::Failed | TaskStatus::Aborted | TaskStatus::Exhausted => "badge bad",
    };
    Markup::element(
        "strong",
        &[("class", class)],
        [Markup::text(status_name(status))],
    )
}

fn answer_approval(
    task: &DelegatedTask,
    form: &FormFields,
    reply: ApprovalReply,
) -> Result<(), String> {
    let taken = task.answer_approval(form.get("approval"), reply);
    if taken {
        Ok(())
    } else {
        Err(text!("serve-approval-gone").to_owned())
    }
}

fn task_error_message(error: &TaskError) -> String {
    match error {
        TaskError::Running => text!("serve-run-busy").to_owned(),
        TaskError::TooMany => text!("serve-run-too-many").to_owned(),
        TaskError::NoFolder(folder) => text!("serve-run-no-folder", folder),
        TaskError::Unknown(_) | TaskError::Mode { .. } | TaskError::Host(_) => error.to_string(),
    }
}

/// Returns the display name of a run: the first line of its prompt or of its newest text, or the
/// beginning of its id.
fn run_name(task: &DelegatedTask) -> String {
    let text = task.first_prompt().unwrap_or_else(|| task.view().text);
    let line: String = text
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(80)
        .collect();
    if line.is_empty() {
        task.id.as_str().chars().take(8).collect()
    } else {
        line
    }
}

fn status_name(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Running => text!("serve-status-running"),
        TaskStatus::Waiting => text!("serve-status-waiting"),
        TaskStatus::Completed => text!("serve-status-completed"),
        TaskStatus::Failed => text!("serve-status-failed"),
        TaskStatus::Aborted => text!("serve-status-aborted"),
        TaskStatus::Exhausted => text!("serve-status-exhausted"),
    }
}

fn render_field(id: &str, name: &str, control: Markup) -> Markup {
    let label = Markup::element("label", &[("for", id)], [Markup::text(name)]);
    Markup::element("p", &[("class", "field")], [label, control])
}

fn render_text_area(id: &str, name: &str, text: &str) -> Markup {
    let control = Markup::element(
        "textarea",
        &[("id", id), ("name", id), ("rows", "5")],
        [Markup::text(format!("\n{text}"))],
    );
    render_field(id, name, control)
}

fn render_select<'a>(id: &str, values: impl Iterator<Item = &'a str>, chosen: &str) -> Markup {
    let option = |value: &'a str| {
        let name = if value.is_empty() {
            text!("serve-run-usual")
        } else {
            value
        };
        let attributes: &[(&'static str, &str)] = if value == chosen {
            &[("value", value), ("selected", "")]
        } else {
            &[("value", value)]
        };
        Markup::element("option", attributes, [Markup::text(name)])
    };
    Markup::element("select", &[("id", id), ("name", id)], values.map(option))
}

#[cfg(test)]
mod tests {
    use haft_agent::{Approval, MAIN_AGENT, SubjectKind};
    use haft_testkit::support::hostile_commands;

    use super::*;
    use crate::markup::build_html_document;

    /// Returns the text that a browser shows for the only `pre` element of a page.
    fn read_preformatted(html: &str) -> String {
        let (_, rest) = html.split_once("<pre").unwrap();
        let (_, rest) = rest.split_once('>').unwrap();
        let (text, _) = rest.split_once("</pre>").unwrap();
        let text = text.strip_prefix('\n').unwrap_or(text);
        // The lines of a diff are elements.
        let pieces = text.split('<').map(|piece| match piece.split_once('>') {
            Some((_, text)) => text,
            None => piece,
        });
        let text: String = pieces.collect();
        text.replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&amp;", "&")
    }

    #[test]
    fn approval_form_shows_hostile_commands_exactly() {
        for command in hostile_commands(44, 1_000) {
            let approval = Approval {
                agent: MAIN_AGENT.into(),
                call_id: None,
                tool: "execute_command".into(),
                arguments: serde_json::Value::Null,
                subject: command.clone(),
                subject_kind: SubjectKind::Text,
                reason: command.clone(),
                leaves_sandbox: false,
                parts: Vec::new(),
                remember: vec![command.clone()],
            };
            let form = TaskApproval::new("1".into(), &approval);
            let html = build_html_document("en", "x", render_approval("/x/live", "secret", &form));
            assert_eq!(
                read_preformatted(&html),
                approval.shown_subject(),
                "{command:?}"
            );
        }
    }

    #[test]
    fn approval_form_keeps_a_line_break_at_the_start() {
        let html = build_html_document("en", "x", Markup::text_element("pre", "\nls"));
        assert!(html.contains("<pre>\n\nls</pre>"), "{html}");
    }
}
