//! Shows the approvals and questions of tasks to users as elicitation forms, and interprets their
//! answers.

use haft_agent::ApprovalReply;
use haft_messages::CallHeadline;
use haft_text::reveal_controls;
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequests, InputRequiredResult,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::task_view::{TaskApproval, TaskQuestion, TaskStatus, TaskView};

/// The way in which a client can show forms to its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FormSupport {
    /// The client cannot show forms.
    None,
    /// The server sends the form as an elicitation request while a call runs.
    Requests,
    /// The server returns the form as the result of a call, and the client repeats the call with
    /// the filled form.
    Rounds,
}

impl FormSupport {
    pub(super) fn from_context(context: &RequestContext<RoleServer>) -> Self {
        let offered = context
            .client_capabilities()
            .and_then(|offered| offered.elicitation);
        // Capabilities that name no kind mean forms, because older versions of the protocol had no
        // other kind.
        if !offered.is_some_and(|offered| offered.form.is_some() || offered.url.is_none()) {
            return Self::None;
        }
        match context.protocol_version() {
            Some(version) if !version.has_initialize() => Self::Rounds,
            _ => Self::Requests,
        }
    }
}

/// The approval or question for which a task waits.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TaskNeed {
    Approval(TaskApproval),
    Question(TaskQuestion),
}

/// The meaning of a filled form: the answer to an approval or a question, or no answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NeedAnswer {
    Reply(ApprovalReply),
    Text(String),
    /// The form contains no usable answer, so the approval or question stays open.
    Open,
}

/// The state that a client returns together with a filled form. The state only identifies the
/// pending question, so a forged state allows nothing that the tools would not allow.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FormState {
    pub(super) task_id: String,
    pub(super) need: String,
}

impl TaskNeed {
    /// Returns the first approval or question for which a task waits.
    pub(super) fn from_view(view: &TaskView) -> Option<Self> {
        let approval = view.approvals.first().cloned().map(Self::Approval);
        let asked = view
            .question
            .clone()
            .filter(|_| view.status == TaskStatus::Waiting);
        approval.or_else(|| asked.map(Self::Question))
    }

    /// Returns a key for the approval or question that is unique among those the task currently
    /// waits for.
    pub(super) fn key(&self) -> String {
        match self {
            Self::Approval(approval) => format!("approval-{}", approval.approval_id),
            Self::Question(_) => "question".to_owned(),
        }
    }

    /// Returns the form that asks for this approval or answer, or `None` if its schema is invalid.
    pub(super) fn build_form(&self) -> Option<ElicitRequestParams> {
        let (message, schema) = match self {
            Self::Approval(approval) => (approval_text(approval), approval_schema(approval)),
            Self::Question(question) => (question_text(question), question_schema()),
        };
        let requested_schema =
            ElicitationSchema::from_json_schema(schema.as_object()?.clone()).ok()?;
        Some(ElicitRequestParams::FormElicitationParams {
            meta: None,
            message,
            requested_schema,
        })
    }

    /// Returns the form in a call result, for clients with [`FormSupport::Rounds`].
    pub(super) fn build_form_result(&self, task_id: &str) -> Option<InputRequiredResult> {
        let form = InputRequest::Elicitation(rmcp::model::ElicitRequest::new(self.build_form()?));
        let state = FormState {
            task_id: task_id.to_owned(),
            need: self.key(),
        };
        let forms = InputRequests::from([(self.key(), form)]);
        Some(InputRequiredResult::new(
            Some(forms),
            serde_json::to_string(&state).ok(),
        ))
    }

    /// Interprets a filled form. For an approval, any answer other than a clear yes counts as a no.
    pub(super) fn parse_answer(&self, result: &ElicitResult) -> NeedAnswer {
        let accepted = result.action == ElicitationAction::Accept;
        let field = |name: &str| {
            let content = result.content.as_ref().filter(|_| accepted)?;
            content.get(name).and_then(Value::as_str).map(str::to_owned)
        };
        match self {
            Self::Approval(_) => NeedAnswer::Reply(match field("decision").as_deref() {
                Some("allow") => ApprovalReply::Once,
                Some("always") => ApprovalReply::Always,
                _ => ApprovalReply::No {
                    reason: field("reason").unwrap_or_default(),
                },
            }),
            Self::Question(_) => field("answer")
                .filter(|text| !text.trim().is_empty())
                .map_or(NeedAnswer::Open, NeedAnswer::Text),
        }
    }
}

fn approval_text(approval: &TaskApproval) -> String {
    let TaskApproval {
        tool,
        arguments,
        subject,
        reason,
        ..
    } = approval;
    let call = CallHeadline::new(tool, arguments).to_line();
    let outside = if approval.leaves_sandbox {
        "\nIt would run outside the sandbox."
    } else {
        ""
    };
    let call = reveal_controls(&call);
    format!("haft asks: {call}?\n\n{subject}\n\n{reason}{outside}")
}

fn approval_schema(approval: &TaskApproval) -> Value {
    let rules = approval.remember.join(", ");
    let (decisions, description) = if approval.remember.is_empty() {
        (
            vec!["allow", "deny"],
            "allow: this once; deny: no".to_owned(),
        )
    } else {
        let description =
            format!("allow: this once; always: from now on, by the rules {rules}; deny: no");
        (vec!["allow", "always", "deny"], description)
    };
    json!({
        "type": "object",
        "properties": {
            "decision": {"type": "string", "title": "Decision", "description": description, "enum": decisions},
            "reason": {"type": "string", "title": "Reason", "description": "With deny: a message for the model"},
        },
        "required": ["decision"],
    })
}

fn question_text(question: &TaskQuestion) -> String {
    let options: Vec<_> = question
        .options
        .iter()
        .map(|option| format!("- {option}"))
        .collect();
    reveal_controls(&format!(
        "haft asks:\n\n{}\n\n{}",
        question.question,
        options.join("\n")
    ))
    .trim_end()
    .to_owned()
}

fn question_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"answer": {"type": "string", "title": "Answer"}},
        "required": ["answer"],
    })
}

#[cfg(test)]
mod tests {
    use haft_agent::{Approval, MAIN_AGENT, SubjectKind};
    use haft_testkit::support::hostile_commands;

    use super::*;

    #[test]
    fn approval_form_shows_hostile_commands_exactly() {
        for command in hostile_commands(44, 1_000) {
            let approval = Approval {
                agent: MAIN_AGENT.into(),
                call_id: None,
                tool: "execute_command".into(),
                arguments: Value::Null,
                subject: command.clone(),
                subject_kind: SubjectKind::Text,
                reason: "why".into(),
                leaves_sandbox: false,
                parts: Vec::new(),
                remember: vec![command.clone()],
            };
            let shown = approval.shown_subject();
            let seen = TaskApproval::new("1".into(), &approval);
            assert_eq!((&seen.subject, &seen.remember[0]), (&shown, &shown));
            let form = TaskNeed::Approval(seen).build_form().unwrap();
            let form = serde_json::to_value(form).unwrap();
            assert_eq!(
                form["message"],
                format!("haft asks: Run?\n\n{shown}\n\nwhy"),
            );
        }
    }
}
