//! Decides calls.

use std::path::Path;

use haft_tool::{Access, FileUse, Intent, Workspace};
use haft_types::{Decision, PermissionMode};

use super::verdict::{Ruling, Verdict};
use super::{PermissionRequest, PermissionRule, PermissionRules, remember};

/// The settings by which calls are decided: the permission mode, the rules, and the confinement of
/// commands.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// The permission mode, which decides calls that no rule covers.
    pub mode: PermissionMode,
    pub rules: PermissionRules,
    pub confinement: Confinement,
}

/// The confinement of the commands that haft runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confinement {
    /// No confinement: a command can do everything that the user can.
    #[default]
    None,
    /// A sandbox that limits writes to the project and blocks the network, but does not protect
    /// files inside the project.
    Folders,
    /// A sandbox that limits writes to the project, seals protected files, and blocks the network.
    Sandbox,
}

impl Permissions {
    /// Decides a call. If the call needs an approval, the verdict contains all reasons, and also
    /// the rules that would make the approval unnecessary, if there are any.
    pub fn decide(&self, call: &PermissionRequest<'_>, workspace: &Workspace) -> Verdict {
        let mut verdict = self.decide_by_rules(call, workspace);
        if verdict.decision == Decision::Deny {
            return verdict;
        }
        verdict.leaves_sandbox = call.leaves_sandbox && self.is_confined();
        verdict.commits &= !verdict.leaves_sandbox;
        let wants_person = call.requires_approval && self.mode != PermissionMode::Yolo;
        let reasons_beyond_rules = [
            verdict
                .leaves_sandbox
                .then_some("it would run outside the sandbox"),
            wants_person.then_some("the model itself asks for the user's approval"),
        ];
        let mut reasons: Vec<_> = reasons_beyond_rules
            .into_iter()
            .flatten()
            .map(str::to_owned)
            .collect();
        let is_spared_by_rules = reasons.is_empty();
        if verdict.decision == Decision::Ask {
            reasons.extend(verdict.distinct_reasons());
        } else if is_spared_by_rules {
            return verdict;
        } else {
            verdict.rule = None;
        }
        verdict.decision = Decision::Ask;
        verdict.reason = reasons.join("; ");
        let found = if is_spared_by_rules {
            remember::find_allow_rules(self, call, &verdict, workspace)
        } else if verdict.leaves_sandbox {
            Err(remember::OUTSIDE_SANDBOX.to_owned())
        } else {
            Err(remember::WANTED_BY_MODEL.to_owned())
        };
        match found {
            Ok(rules) => verdict.remember = rules,
            Err(why) => verdict.not_remembered = Some(why),
        }
        verdict
    }

    /// True if commands run in a sandbox that a call can request to leave.
    fn is_confined(&self) -> bool {
        let has_sandbox = match self.confinement {
            Confinement::None => false,
            Confinement::Folders | Confinement::Sandbox => true,
        };
        has_sandbox && self.mode != PermissionMode::Yolo
    }

    /// Decides a call without searching for rules that the user could save.
    pub(super) fn decide_by_rules(
        &self,
        call: &PermissionRequest<'_>,
        workspace: &Workspace,
    ) -> Verdict {
        let whole = |decision| {
            self.rules
                .rules_for(decision)
                .iter()
                .find(|rule| rule.covers_all_calls_of(call.tool))
        };
        if let Some(rule) = whole(Decision::Deny) {
            return Ruling::by_rule(rule, Decision::Deny, "it").into();
        }
        let verdict = self.decide_call(call, workspace);
        match whole(Decision::Ask) {
            Some(rule)
                if verdict.decision == Decision::Allow && self.mode != PermissionMode::Yolo =>
            {
                let Ruling {
                    decision,
                    reason,
                    rule,
                } = Ruling::by_rule(rule, Decision::Ask, "it");
                Verdict {
                    decision,
                    reason,
                    rule,
                    ..verdict
                }
            }
            Some(_) | None => verdict,
        }
    }

    fn decide_call(&self, call: &PermissionRequest<'_>, workspace: &Workspace) -> Verdict {
        match &call.intent {
            Intent::Nothing if call.access == Access::State => {
                Verdict::without_parts(Decision::Allow, "it changes nothing but haft's own notes")
            }
            Intent::Nothing => {
                Verdict::without_parts(Decision::Allow, "it does nothing that needs permission")
            }
            Intent::Files(files) if !files.is_empty() => {
                self.decide_files(call.tool, files, workspace)
            }
            Intent::Hosts(hosts) if !hosts.is_empty() => self.decide_hosts(call.tool, hosts),
            Intent::Hosts(_) => self.decide_by_tool(call.tool, "reaches the network"),
            Intent::Command { line, cwd } => {
                self.decide_line(call, line, cwd.as_deref(), workspace)
            }
            Intent::Input(text) => self.decide_input(call.tool, text),
            Intent::Server { server, tool } => self.decide_server_tool(call.tool, server, tool),
            Intent::Program(path) => self.decide_program(call.tool, path, workspace),
            // An undeclared effect can be anything.
            Intent::Files(_) | Intent::Unknown => {
                self.decide_by_tool(call.tool, describe_undeclared_effect(call.access))
            }
        }
    }

    /// Decides whether text may be typed into a running program. Such text cannot be parsed, so
    /// deny rules are matched as substrings.
    fn decide_input(&self, tool: &str, text: &str) -> Verdict {
        let stands = |rule: &&PermissionRule| {
            rule.command_pattern()
                .is_some_and(|command| command.occurs_in(text))
        };
        match self.rules.rules_for(Decision::Deny).iter().find(stands) {
            Some(rule) => Ruling::by_rule(rule, Decision::Deny, "it").into(),
            None => self.decide_by_tool(tool, "types into a running program"),
        }
    }

    /// Decides whether a program may be written that the model may run later. Deny rules for the
    /// file apply; otherwise the user is asked, in every mode.
    fn decide_program(&self, tool: &str, path: &str, workspace: &Workspace) -> Verdict {
        let what = "writes a program for later use";
        if let Some(ruling) = self.deny_in_plan_mode(tool, what) {
            return ruling.into();
        }
        let file = FileUse::Write(path.to_owned());
        let by_file = self.decide_files(tool, &[file], workspace);
        if by_file.decision == Decision::Deny {
            return by_file;
        }
        let shown = workspace.display_path(Path::new(path));
        let reason = format!("`{tool}` {what}, `{shown}`, which needs an approval in every mode");
        Ruling::new(Decision::Ask, reason).into()
    }

    /// Decides a call of an MCP server's tool, whose effects are unknown. Rules name the tool as
    /// `mcp__server__tool`, or all tools of a server by the server's name.
    fn decide_server_tool(&self, through: &str, server: &str, tool: &str) -> Verdict {
        let by_rule = |decision: Decision, does: &str| {
            let rule = self
                .rules
                .rules_for(decision)
                .iter()
                .find(|rule| rule.covers_server_tool(server, tool))?;
            Some(Verdict::from(
                Ruling::new(decision, format!("the rule `{rule}` {does} it")).with_rule(rule),
            ))
        };
        if let Some(denied) = by_rule(Decision::Deny, "denies") {
            return denied;
        }
        let what = format!("calls `{tool}` of the MCP server `{server}`");
        if let Some(ruling) = self.deny_in_plan_mode(through, &what) {
            return ruling.into();
        }
        let asked =
            by_rule(Decision::Ask, "asks for").filter(|_| self.mode != PermissionMode::Yolo);
        asked
            .or_else(|| by_rule(Decision::Allow, "allows"))
            .unwrap_or_else(|| self.decide_by_tool(through, &what))
    }

    /// Decides a call whose effect is known from the tool's name alone.
    fn decide_by_tool(&self, tool: &str, what: &str) -> Verdict {
        if let Some(ruling) = self.deny_in_plan_mode(tool, what) {
            return ruling.into();
        }
        if let Some(rule) = self
            .rules
            .rules_for(Decision::Allow)
            .iter()
            .find(|rule| rule.covers_all_calls_of(tool))
        {
            return Ruling::by_rule(rule, Decision::Allow, "it").into();
        }
        self.ask_unless_yolo(format!("`{tool}` {what}, and no rule allows it"))
            .into()
    }

    /// Returns a ruling that asks with `reason`, or that allows the call in mode `yolo`.
    pub(super) fn ask_unless_yolo(&self, reason: String) -> Ruling {
        match self.mode {
            PermissionMode::Yolo => {
                Ruling::new(Decision::Allow, "nothing is asked (permission mode `yolo`)")
            }
            PermissionMode::Plan
            | PermissionMode::Ask
            | PermissionMode::AcceptEdits
            | PermissionMode::Auto => Ruling::new(Decision::Ask, reason),
        }
    }

    /// Returns a denial in mode `plan`, in which nothing may change.
    pub(super) fn deny_in_plan_mode(&self, tool: &str, what: &str) -> Option<Ruling> {
        (self.mode == PermissionMode::Plan).then(|| {
            Ruling::new(
                Decision::Deny,
                format!("`{tool}` {what}, and this run may only read (permission mode `plan`)"),
            )
        })
    }
}

/// Returns a phrase for the effect of a call that does not declare its effect.
fn describe_undeclared_effect(access: Access) -> &'static str {
    match access {
        Access::Read => "reads files that its arguments do not name",
        Access::State => "does what its arguments do not tell",
        Access::Write => "changes files",
        Access::Execute => "runs something",
    }
}
