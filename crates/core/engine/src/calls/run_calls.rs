//! Runs the calls of a reply: checks them, asks for permission, then runs reads in parallel and
//! calls with effects one after another.
//!
//! Invariant: a call with effects is recorded in the store before it begins, and its result is
//! stored before it is shown.

use std::path::PathBuf;
use std::sync::Arc;

use haft_permission::ProjectFiles;
use haft_tool::{CallName, NoChangeRecords, RecordedCall, SessionState, ToolContext, ToolOutput};
use haft_tools::ModelTokens;
use haft_types::{Envelope, EventBody, ToolCall};
use tokio_util::sync::CancellationToken;

use super::call_check::{self, AdmittedCall, RefusedCall};
use super::one_call::{self, Audience, CallHistory, CallOutcome};
use super::permit::{Denied, Granted};
use super::progress::ProgressRelay;
use crate::error::EngineError;
use crate::hooks::session_hooks::{EffectiveArguments, UnblockedCall};
use crate::session::transcript::ResultParts;
use crate::session::{Session, secrets};
use crate::turn::outcome::RequestedResult;
use crate::turn::turn_io::{TurnIo, call_result_event, call_running_event};
use crate::turn::{Input, ToolsDone};

/// A call that is allowed to run, with the access granted to it.
struct PermittedCall {
    admitted: AdmittedCall,
    /// Paths outside the workspace that the call may access.
    outside: Vec<PathBuf>,
    /// True if the call may write the repository files that `git commit` writes.
    commits: bool,
    /// True if a hook or the user changed the model's arguments.
    changed: bool,
}

impl Session {
    pub(crate) async fn run_tools(
        &mut self,
        calls: Vec<ToolCall>,
        io: &mut TurnIo<'_>,
    ) -> Result<Input, EngineError> {
        let mut done = ToolsDone::default();
        let mut admitted = Vec::new();
        let stop = self.transcript.last_stop_reason();
        let replayed = self.config.tools.replayed.clone();
        for mut checked in call_check::check_calls(calls, &stop, self.audience()) {
            if let (Some(recorded), Ok(call)) = (&replayed, &mut checked) {
                recorded.redirect_arguments(&mut call.arguments);
            }
            let permitted = match checked {
                // The results of earlier calls are shown before the user is asked.
                Ok(call) if !one_call::is_read_only(call.tool.access()) => {
                    self.run_group(std::mem::take(&mut admitted), &mut done, io)
                        .await?;
                    match call_check::completion_objection(&call.call, &done) {
                        Some(envelope) => Some(Err(Box::new(RefusedCall {
                            call: call.call,
                            envelope,
                            denied: false,
                        }))),
                        None => self.permit_call(call, io).await,
                    }
                }
                Ok(call) => self.permit_call(call, io).await,
                Err(refused) => Some(Err(refused)),
            };
            let Some(permitted) = permitted else {
                return Ok(Input::Cancelled);
            };
            if let Some(recorded) = &replayed {
                match &permitted {
                    Ok(call) => recorded.record_decision(&call.admitted.call, None),
                    Err(refused) => {
                        recorded.record_decision(&refused.call, Some(&refused.envelope));
                    }
                }
            }
            match permitted {
                Ok(call) if one_call::is_read_only(call.admitted.tool.access()) => {
                    admitted.push(call);
                }
                Ok(call) => self.run_group(vec![call], &mut done, io).await?,
                Err(refused) => {
                    self.run_group(std::mem::take(&mut admitted), &mut done, io)
                        .await?;
                    if refused.denied {
                        done.denied = Some(refused.envelope.text.clone());
                    }
                    one_call::count_effect(
                        &refused.call,
                        CallOutcome::from_refusal(&refused.envelope),
                        self.audience(),
                        self.requested_result(),
                        &mut done.effects,
                    );
                    let mut output = refused.envelope.into();
                    one_call::record_output(
                        &refused.call,
                        &mut output,
                        &mut done,
                        self.audience(),
                        io,
                    );
                    self.add_guidance(
                        &refused.call,
                        CallHistory::New,
                        None,
                        &mut output,
                        io.cancel,
                    )
                    .await;
                    self.store_result(&refused.call, output, io).await?;
                }
            }
            if io.cancel.is_cancelled() {
                return Ok(Input::Cancelled);
            }
        }
        self.run_group(admitted, &mut done, io).await?;
        done.spent = self.meter.spent();
        Ok(Input::ToolsDone(done))
    }

    /// Checks whether a call may run. Returns `None` if the run was canceled while the user was
    /// asked; the call then has no result.
    async fn permit_call(
        &self,
        call: AdmittedCall,
        io: &mut TurnIo<'_>,
    ) -> Option<Result<PermittedCall, Box<RefusedCall>>> {
        let replayed = self.config.tools.replayed.as_ref();
        if let Some(envelope) = replayed.and_then(|run| run.find_blocked_result(&call.call)) {
            return Some(Err(Box::new(RefusedCall {
                call: call.call,
                envelope,
                denied: false,
            })));
        }
        let UnblockedCall {
            call,
            opinion,
            mut changed,
        } = match self.run_pre_call_hooks(call, io).await {
            Ok(hooked) => hooked,
            Err(refused) => return Some(Err(refused)),
        };
        let is_still = self.services.running.running_names().is_empty();
        let files = if is_still {
            ProjectFiles::Unchanging
        } else {
            ProjectFiles::Changing
        };
        // No change is recorded here, because no file changes before the decision.
        let context = self.tool_context(
            &call.call,
            &NoChangeRecords,
            io.cancel,
            &ProgressRelay::new(),
        );
        let decided = tokio::select! {
            biased;
            () = io.cancel.cancelled() => return None,
            decided = self.permit.decide(call.tool.as_ref(), &context, &call.arguments, opinion, files) => decided,
        };
        Some(match decided {
            Ok(Granted {
                outside,
                commits,
                changed: other,
                notice,
            }) => {
                if let Some(notice) = notice {
                    io.emit_notice("permissions", notice);
                }
                let objection = other.as_ref().and_then(|other| {
                    call_check::check_replaced_arguments(call.tool.as_ref(), &call.call.name, other)
                });
                if let Some(envelope) = objection {
                    return Some(Err(Box::new(RefusedCall {
                        call: call.call,
                        envelope,
                        denied: false,
                    })));
                }
                changed |= other.is_some();
                let arguments = other.unwrap_or(call.arguments);
                Ok(PermittedCall {
                    admitted: AdmittedCall { arguments, ..call },
                    outside,
                    commits,
                    changed,
                })
            }
            Err(Denied {
                envelope,
                needs_user: wants_person,
            }) => Err(Box::new(RefusedCall {
                call: call.call,
                envelope,
                denied: wants_person,
            })),
        })
    }

    /// Runs calls and stores their results in order. If there are more calls than may run at once,
    /// the next ones start when the results of the first ones are stored. Once the turn is
    /// canceled, no further calls start.
    async fn run_group(
        &mut self,
        mut group: Vec<PermittedCall>,
        done: &mut ToolsDone,
        io: &mut TurnIo<'_>,
    ) -> Result<(), EngineError> {
        let at_once = self.services.running.limits().parallel_calls as usize;
        while group.len() > at_once {
            let rest = group.split_off(at_once);
            self.run_at_once(group, done, io).await?;
            if io.cancel.is_cancelled() {
                return Ok(());
            }
            group = rest;
        }
        self.run_at_once(group, done, io).await
    }

    /// Runs calls in parallel and stores their results in order.
    async fn run_at_once(
        &mut self,
        group: Vec<PermittedCall>,
        done: &mut ToolsDone,
        io: &mut TurnIo<'_>,
    ) -> Result<(), EngineError> {
        let mut started = Vec::with_capacity(group.len());
        let mut shown = ProgressRelay::new();
        for PermittedCall {
            admitted: call,
            outside,
            commits,
            changed,
        } in group
        {
            // The scan for changes comes before the call is recorded as begun: if haft is killed
            // during the scan, the call has certainly not run.
            let recorded = self
                .recorded
                .begin_call(self.call_name(&call.call), call.tool.access())
                .await;
            if one_call::has_effects(call.tool.access()) {
                self.transcript.record_call_start(&call.call).await?;
            }
            let mut context = self.tool_context(&call.call, recorded.as_ref(), io.cancel, &shown);
            context.workspace.extra.extend(outside);
            context.can_commit = commits;
            let ran = EffectiveArguments {
                arguments: self.arguments_to_keep(&call, changed),
                changed,
            };
            let before = self.read_before_write(&call.call, io.cancel).await;
            io.emit(call_running_event(&call.call));
            let replayed = self.config.tools.replayed.as_deref();
            let (call, task) =
                one_call::start_call(call, self.prompt.registry().clone(), context, replayed);
            started.push((call, task, recorded, ran, before));
        }
        for (call, task, recorded, ran, before) in started {
            let (output, run) = shown
                .relay_until(
                    one_call::finish_call(&call, task),
                    &mut self.agents.relayed,
                    io,
                )
                .await;
            io.record_run(&call, run);
            self.add_relayed_usage();
            let mut output = recorded.finish_call(output).await;
            self.run_post_call_hooks(&call, &ran, &mut output, io).await;
            one_call::count_effect(
                &call,
                CallOutcome::from_output(&output, &self.config.folders.workspace.root),
                self.audience(),
                RequestedResult::Any,
                &mut done.effects,
            );
            let history = CallHistory::of_call(&call, io);
            one_call::record_output(&call, &mut output, done, self.audience(), io);
            self.add_guidance(&call, history, before, &mut output, io.cancel)
                .await;
            if !one_call::waits_for_user(&output.flow) {
                self.store_result(&call, output, io).await?;
            }
            self.emit_task_events(io);
        }
        Ok(())
    }

    /// Returns the properties of the model that decide how errors are explained.
    fn audience(&self) -> Audience<'_> {
        Audience {
            profile: self.config.model.profile,
            registry: self.prompt.registry(),
        }
    }

    fn call_name(&self, call: &ToolCall) -> CallName {
        // A call is always part of a stored reply.
        let message_id = self
            .transcript
            .last_reply_id()
            .unwrap_or_else(|| self.transcript.fresh_id());
        CallName {
            message_id,
            call_id: call.id.clone(),
            tool: call.name.clone(),
        }
    }

    pub(crate) fn tool_context(
        &self,
        call: &ToolCall,
        recorded: &dyn RecordedCall,
        cancel: &CancellationToken,
        shown: &ProgressRelay,
    ) -> ToolContext {
        ToolContext {
            workspace: self.config.folders.workspace.clone(),
            read_filter: self.permit.read_filter(),
            call_id: call.id.clone(),
            cancel: cancel.clone(),
            limits: self.services.running.limits().output_limits(),
            environment: Arc::clone(&self.config.tools.child_environment),
            can_commit: false,
            tools: self.prompt.registry().known_names(),
            progress: shown.call_progress(call),
            reads: Arc::clone(self.prompt.reads()),
            state: self.shared_state(),
            history: recorded.history(),
            change_undo: recorded.change_undo(),
            documents: self.services.running.readers().documents.clone(),
            buffers: self.services.running.readers().buffers.clone(),
        }
    }

    /// Returns the parts of the session's state that the built-in tools share, such as the TODO
    /// list.
    fn shared_state(&self) -> SessionState {
        let knowledge = self.prompt.knowledge();
        let model = &self.config.model;
        let counter = Arc::clone(&self.services.shared.counter);
        let tokens = ModelTokens::new(counter, model.tokenizer_factor, model.context_window);
        SessionState::default()
            .with(Arc::clone(self.prompt.todo()))
            .with(Arc::clone(&knowledge.useful))
            .with(Arc::clone(&knowledge.notes))
            .with(Arc::clone(&knowledge.transcript))
            .with(Arc::new(tokens))
    }

    /// Stores the result of a call, then emits it as an event.
    pub(crate) async fn store_result(
        &mut self,
        call: &ToolCall,
        output: ToolOutput,
        io: &mut TurnIo<'_>,
    ) -> Result<(), EngineError> {
        let ToolOutput {
            mut envelope,
            mut images,
            changes,
            requests,
            flow: _,
            health: _,
        } = output;
        for (model, usage, cost) in requests {
            self.meter.add_relayed_usage(usage, vec![cost]);
            io.emit(EventBody::Usage {
                model,
                usage,
                cost,
                saved_tokens: 0,
            });
        }
        if let Some(described) = Box::pin(self.describe_images(&images, io)).await? {
            envelope.text = format!("{}\n\n{described}", envelope.text.trim_end());
        }
        secrets::mask_envelope(&self.config.safety.masker, &mut envelope);
        self.replace_repeated_read(&call.name, &mut envelope);
        let mut changed: Vec<_> = changes
            .iter()
            .map(|change| self.config.folders.workspace.display_path(&change.path))
            .collect();
        let replayed = self.config.tools.replayed.as_ref();
        if let Some(recorded) = replayed.and_then(|run| run.finish_call(call, &envelope)) {
            envelope = recorded.envelope;
            images = recorded.images;
            changed = recorded.changed;
        }
        let event = call_result_event(call, &envelope);
        let tool = self.prompt.canonical_name(&call.name);
        self.transcript
            .append_result(
                call,
                tool,
                ResultParts {
                    envelope,
                    images,
                    changed,
                },
            )
            .await?;
        io.emit(event);
        for change in changes {
            self.prompt
                .record_change(&self.config.folders.workspace, &change);
            let path = self.config.folders.workspace.display_path(&change.path);
            io.emit(EventBody::FileChanged {
                path,
                change: change.kind,
            });
        }
        Ok(())
    }
}

/// The reason why a call has no result of its own.
#[derive(Clone, Copy)]
pub(crate) enum Interruption {
    /// The call began, and its effect is unknown.
    Uncertain,
    /// The call did not begin, and the user has sent another prompt.
    NotRun,
    /// The call came with an imported conversation.
    Imported,
}

pub(crate) fn interrupted_result(call: &ToolCall, why: Interruption) -> Envelope {
    let name = &call.name;
    let text = match why {
        Interruption::Uncertain => format!(
            "`{name}` was interrupted: it had begun, and it is uncertain whether it took effect. Check before you do it again."
        ),
        Interruption::NotRun => {
            format!("`{name}` did not run: the turn was interrupted before it began.")
        }
        Interruption::Imported => format!(
            "`{name}` did not run: the conversation was imported, and calls of imported messages never run. Call it again if it is still needed."
        ),
    };
    Envelope::failure("interrupted", text)
}
