//! Calls the hooks of a session at each point, and applies their outcomes to tool calls, prompts,
//! requests and the end of a turn.
//!
//! Invariant: permission is checked for arguments that a callback changed, and the result of the
//! call reports the change to the model.

use std::sync::Arc;

use haft_context::ContextError;
use haft_model::{ModelError, Reply};
use haft_tool::ToolOutput;
use haft_types::{Decision, Envelope, HookPoint, Origin, Outcome, Request, ToolCall};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::event::{HookEvent, ToolResponse};
use super::runner::{HookRunner, called_tool_name};
use super::{Callbacks, HookOutcome};
use crate::agents::parent::Rank;
use crate::calls::call_check::{self, AdmittedCall, RefusedCall};
use crate::calls::one_call;
use crate::calls::permit::Opinion;
use crate::error::EngineError;
use crate::names::CHANGED_ARGUMENTS_NOTE;
use crate::session::Session;
use crate::session::config::SessionConfig;
use crate::turn::Reason;
use crate::turn::turn_io::TurnIo;

/// The arguments with which a call runs.
pub(crate) struct EffectiveArguments {
    /// `Null` if no callback needs the arguments after the call and no callback changed them.
    pub(crate) arguments: Value,
    /// True if a callback changed the arguments.
    pub(crate) changed: bool,
}

/// A call that no callback blocked.
pub(crate) struct UnblockedCall {
    pub(crate) call: AdmittedCall,
    /// The permission that callbacks requested.
    pub(crate) opinion: Opinion,
    /// True if a callback changed the arguments.
    pub(crate) changed: bool,
}

impl SessionConfig {
    /// Returns the runner of this session's callbacks.
    pub(crate) fn hook_runner(&self) -> HookRunner {
        self.hook_runner_with(Callbacks::new(self.callbacks.clone()))
    }

    /// Returns a runner without callbacks, for a session that is only read.
    pub(crate) fn silent_hook_runner(&self) -> HookRunner {
        self.hook_runner_with(Callbacks::default())
    }

    fn hook_runner_with(&self, callbacks: Callbacks) -> HookRunner {
        let shared = Arc::clone(&self.safety.shared);
        HookRunner::new(callbacks, &self.folders.workspace, shared)
    }
}

impl Session {
    /// Runs the hooks before a tool call and its permission check. Fails if a hook blocks the call.
    pub(crate) async fn run_pre_call_hooks(
        &self,
        call: AdmittedCall,
        io: &mut TurnIo<'_>,
    ) -> Result<UnblockedCall, Box<RefusedCall>> {
        if !self.hooks.has_listener(HookPoint::PreToolCall) {
            return Ok(UnblockedCall {
                call,
                opinion: Opinion::None,
                changed: false,
            });
        }
        let event = HookEvent::PreToolCall {
            tool: called_tool_name(self.prompt.registry(), &call.call.name, &call.arguments),
            tool_use_id: call.call.id.clone(),
            tool_input: call.arguments.clone(),
        };
        let outcome = self.call_hooks(event, io).await;
        let denied =
            (outcome.permission == Some(Decision::Deny)).then(|| "it is not permitted".to_owned());
        if let Some(why) = outcome.block.or(denied).or(outcome.stop) {
            let message = format!("`{}` did not run: a hook blocked it: {why}", call.call.name);
            let envelope = Envelope::failure("hook_blocked", message);
            return Err(Box::new(RefusedCall {
                call: call.call,
                envelope,
                denied: false,
            }));
        }
        let opinion = match outcome.permission {
            Some(Decision::Allow) => Opinion::Allow,
            Some(Decision::Ask) => Opinion::Ask,
            Some(Decision::Deny) | None => Opinion::None,
        };
        let Some(arguments) = outcome.input.filter(|input| *input != call.arguments) else {
            return Ok(UnblockedCall {
                call,
                opinion,
                changed: false,
            });
        };
        if let Some(envelope) =
            call_check::check_replaced_arguments(call.tool.as_ref(), &call.call.name, &arguments)
        {
            return Err(Box::new(RefusedCall {
                call: call.call,
                envelope,
                denied: false,
            }));
        }
        Ok(UnblockedCall {
            call: AdmittedCall { arguments, ..call },
            opinion,
            changed: true,
        })
    }

    /// Returns a copy of the call's arguments if a callback changed them or a hook needs them after
    /// the call; otherwise `Null`.
    pub(crate) fn arguments_to_keep(&self, call: &AdmittedCall, changed: bool) -> Value {
        let wanted = changed || self.hooks.has_listener(HookPoint::PostToolCall);
        if wanted {
            call.arguments.clone()
        } else {
            Value::Null
        }
    }

    /// Runs the hooks after a tool call, and adds their objections to the next request.
    pub(crate) async fn run_post_call_hooks(
        &self,
        call: &ToolCall,
        ran: &EffectiveArguments,
        output: &mut ToolOutput,
        io: &mut TurnIo<'_>,
    ) {
        if ran.changed {
            output
                .envelope
                .text
                .extend([CHANGED_ARGUMENTS_NOTE, &ran.arguments.to_string()]);
        }
        if !self.hooks.has_listener(HookPoint::PostToolCall)
            || one_call::waits_for_user(&output.flow)
        {
            return;
        }
        let event = HookEvent::PostToolCall {
            tool: called_tool_name(self.prompt.registry(), &call.name, &ran.arguments),
            tool_use_id: call.id.clone(),
            tool_input: ran.arguments.clone(),
            tool_response: ToolResponse {
                status: output.envelope.status,
                text: output.envelope.text.clone(),
            },
        };
        if let Some(why) = self.call_hooks(event, io).await.block {
            self.hooks
                .add_context(format!("A hook objects to what `{}` did: {why}", call.name));
        }
    }

    /// Returns the event for a request that is about to be sent.
    pub(crate) fn request_start_event(&self, request: &Request) -> HookEvent {
        HookEvent::ApiRequestStart {
            model: self.config.model.full_name(),
            messages: request.segments.len(),
            tokens: request.estimated_tokens(),
        }
    }

    /// Returns the event for a request that was answered or has failed.
    pub(crate) fn request_end_event(&self, arrived: &Result<Reply, ModelError>) -> HookEvent {
        let reply = arrived.as_ref().ok();
        HookEvent::ApiRequestEnd {
            model: self.config.model.full_name(),
            usage: reply.map(|reply| reply.usage),
            stop_reason: reply.map(|reply| reply.stop.clone()),
            error: arrived.as_ref().err().map(ToString::to_string),
        }
    }

    /// Calls every callback that handles the event, and shows the callbacks' messages to the user.
    pub(crate) async fn call_hooks(&self, event: HookEvent, io: &mut TurnIo<'_>) -> HookOutcome {
        let outcome = self.hooks.call(event, io.cancel).await;
        self.show_hook_notices(io);
        outcome
    }

    /// Shows the messages of callbacks to the user.
    pub(crate) fn show_hook_notices(&self, io: &mut TurnIo<'_>) {
        for notice in self
            .hooks
            .with_pending(|pending| std::mem::take(&mut pending.notices))
        {
            io.emit_stored_notice(notice);
        }
    }

    /// Runs the hooks for the start of the conversation and for the prompt. Returns the reason as
    /// an error if a callback blocks the prompt or ends the turn.
    pub(crate) async fn run_prompt_hooks(
        &self,
        input: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<(), Reason> {
        // A sub-agent's task is not a prompt of the user, and its conversation is not the user's.
        if self.agents.rank == Rank::Sub {
            return Ok(());
        }
        if !self
            .hooks
            .with_pending(|pending| std::mem::replace(&mut pending.started, true))
        {
            let source = if self.resumed { "resume" } else { "startup" };
            let event = HookEvent::ConversationStart {
                source,
                model: self.config.model.full_name(),
            };
            self.hooks.call(event, cancel).await;
        }
        if let Some(prompt) = input {
            let asked = self
                .hooks
                .call(
                    HookEvent::UserPromptSubmit {
                        prompt: prompt.to_owned(),
                    },
                    cancel,
                )
                .await;
            if let Some(why) = asked.block {
                let message = format!("A hook blocked this prompt: {why}");
                return Err(Reason {
                    code: "hook_blocked".into(),
                    message,
                });
            }
        }
        self.hooks.take_stop_reason().map_or(Ok(()), Err)
    }

    /// Rereads the project's documents if they have changed, and runs the hooks before and after
    /// doing so.
    pub(crate) async fn refresh_documents(
        &mut self,
        io: &mut TurnIo<'_>,
    ) -> Result<Vec<String>, ContextError> {
        if !self
            .prompt
            .has_stale_documents(&self.config, self.transcript.history())
        {
            return self.refresh_prompt();
        }
        self.hooks.run_before_documents().await;
        let problems = self.refresh_prompt()?;
        self.hooks
            .run_after_documents(self.prompt.standing_documents())
            .await;
        self.show_hook_notices(io);
        Ok(problems)
    }

    /// Appends the texts that callbacks added for the model.
    pub(crate) async fn append_hook_context(&mut self) -> Result<(), EngineError> {
        let context = self
            .hooks
            .with_pending(|pending| std::mem::take(&mut pending.context));
        if context.is_empty() {
            return Ok(());
        }
        let text = format!("<hook_context>\n{}\n</hook_context>", context.join("\n\n"));
        self.transcript.append_user(text, Origin::Engine).await
    }

    /// Records the outcome of the turn, for the event at the end of the session.
    pub(crate) fn record_turn_outcome(&self, outcome: Outcome) {
        self.hooks
            .with_pending(|pending| pending.last_outcome = Some(outcome));
    }

    /// Runs the hooks for the end of the session. Returns the callbacks' messages for the user.
    pub async fn close(&mut self) -> Vec<String> {
        if let Some(port) = self.attach_port() {
            port.close().await;
        }
        let reason = self
            .hooks
            .with_pending(|pending| pending.last_outcome)
            .map_or("", Outcome::name)
            .to_owned();
        self.hooks
            .call(
                HookEvent::ConversationEnd { reason },
                &CancellationToken::new(),
            )
            .await;
        self.hooks
            .with_pending(|pending| std::mem::take(&mut pending.notices))
            .into_iter()
            .map(|notice| notice.message)
            .collect()
    }
}
