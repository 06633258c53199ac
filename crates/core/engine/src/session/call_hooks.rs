//! What callbacks may do to calls, requests and the end of a turn.
//!
//! Invariant: arguments that a callback changed are permitted like any others, and the model reads
//! of the change.

use haft_model::{ModelError, Reply};
use haft_tool::ToolOutput;
use haft_types::{Decision, Envelope, HookPoint, Request, ToolCall};
use serde_json::Value;

use super::Session;
use super::hooked::called_name;
use crate::call_check::{self, Admitted, Refused};
use crate::callbacks::{Moment, ToolResponse};
use crate::calls;
use crate::names::CHANGED_NOTE;
use crate::permit::Opinion;
use crate::turn_io::TurnIo;

/// What is known of a call that runs.
pub(super) struct RanCall {
    /// Its arguments, where somebody wants to know them afterwards.
    pub(super) arguments: Value,
    /// Whether they are not those the model gave.
    pub(super) changed: bool,
}

/// A call as callbacks leave it, what they think of it, and whether they changed it.
pub(super) type HookedCall = (Admitted, Opinion, bool);

impl Session {
    /// Asks callbacks about a call before permission is.
    pub(super) async fn before_call(
        &self,
        call: Admitted,
        io: &mut TurnIo<'_>,
    ) -> Result<HookedCall, Box<Refused>> {
        if !self.hooked.listen_to(HookPoint::PreToolCall) {
            return Ok((call, Opinion::None, false));
        }
        let moment = Moment::PreToolCall {
            tool: called_name(self.prompt.registry(), &call.call.name, &call.arguments),
            tool_use_id: call.call.id.clone(),
            tool_input: call.arguments.clone(),
        };
        let reaction = self.call_back(moment, io).await;
        let denied =
            (reaction.permission == Some(Decision::Deny)).then(|| "it is not permitted".to_owned());
        if let Some(why) = reaction.block.or(denied).or(reaction.stop) {
            let message = format!("`{}` did not run: a hook blocked it: {why}", call.call.name);
            let envelope = Envelope::failure("hook_blocked", message);
            return Err(Box::new(Refused {
                call: call.call,
                envelope,
                denied: false,
            }));
        }
        let opinion = match reaction.permission {
            Some(Decision::Allow) => Opinion::Allow,
            Some(Decision::Ask) => Opinion::Ask,
            Some(Decision::Deny) | None => Opinion::None,
        };
        let Some(arguments) = reaction.input.filter(|input| *input != call.arguments) else {
            return Ok((call, opinion, false));
        };
        if let Some(envelope) =
            call_check::objection(call.tool.as_ref(), &call.call.name, &arguments)
        {
            return Err(Box::new(Refused {
                call: call.call,
                envelope,
                denied: false,
            }));
        }
        Ok((Admitted { arguments, ..call }, opinion, true))
    }

    /// The arguments of a call, where somebody wants to know them afterwards.
    pub(super) fn kept_arguments(&self, call: &Admitted, changed: bool) -> Value {
        let wanted = changed || self.hooked.listen_to(HookPoint::PostToolCall);
        if wanted {
            call.arguments.clone()
        } else {
            Value::Null
        }
    }

    /// Tells callbacks what came of a call, and the model what they have to say about it.
    pub(super) async fn after_call(
        &self,
        call: &ToolCall,
        ran: &RanCall,
        output: &mut ToolOutput,
        io: &mut TurnIo<'_>,
    ) {
        if ran.changed {
            output
                .envelope
                .text
                .extend([CHANGED_NOTE, &ran.arguments.to_string()]);
        }
        if !self.hooked.listen_to(HookPoint::PostToolCall) || calls::waits_for_user(&output.flow) {
            return;
        }
        let moment = Moment::PostToolCall {
            tool: called_name(self.prompt.registry(), &call.name, &ran.arguments),
            tool_use_id: call.id.clone(),
            tool_input: ran.arguments.clone(),
            tool_response: ToolResponse {
                status: output.envelope.status,
                text: output.envelope.text.clone(),
            },
        };
        if let Some(why) = self.call_back(moment, io).await.block {
            self.hooked
                .add_context(format!("A hook objects to what `{}` did: {why}", call.name));
        }
    }

    /// What is said of a request before it is sent.
    pub(super) fn request_start(&self, request: &Request) -> Moment {
        Moment::ApiRequestStart {
            model: self.config.model.full_name(),
            messages: request.segments.len(),
            tokens: request.tokens(),
        }
    }

    /// What is said of it afterwards.
    pub(super) fn request_end(&self, arrived: &Result<Reply, ModelError>) -> Moment {
        let reply = arrived.as_ref().ok();
        Moment::ApiRequestEnd {
            model: self.config.model.full_name(),
            usage: reply.map(|reply| reply.usage),
            stop_reason: reply.map(|reply| reply.stop.clone()),
            error: arrived.as_ref().err().map(ToString::to_string),
        }
    }
}
