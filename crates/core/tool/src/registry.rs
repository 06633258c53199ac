//! The registry of an agent's tools: finds a tool by name, and runs each call through the circuit
//! breaker, the observers, the tool, and the statistics.
//!
//! Invariant: whatever a tool or an observer does, [`Registry::call`] returns an output.

mod breaker;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use haft_types::{Envelope, ToolProtocol, ToolSpec, ToolStatus};
use serde_json::Value;

use crate::{
    Alias, CallObserver, CaseDocument, DeferralUpdate, Tool, ToolContext, ToolHealth, ToolNames,
    ToolOutput,
};
use breaker::Breaker;

pub use breaker::BreakerLimits;

/// The tools of one agent, in the order in which they are offered. Deferred tools may be called,
/// but the model reads about them only in search results. Clones share statistics.
#[derive(Clone, Default)]
pub struct Registry {
    tools: Vec<RegisteredTool>,
    protocol: ToolProtocol,
    cases: Vec<CaseDocument>,
    observers: Vec<Arc<dyn CallObserver>>,
    breaker_limits: BreakerLimits,
    record: Arc<Mutex<HashMap<String, ToolRecord>>>,
}

/// A tool, and the condition under which it is offered.
#[derive(Clone)]
struct RegisteredTool {
    tool: Arc<dyn Tool>,
    offer: Offer,
    /// False if the tool cannot be used in this run.
    usable: bool,
    /// False if the tool only serves deferred tools and there are none.
    useful: bool,
}

/// The condition under which a tool is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// The tool is offered with every protocol.
    Always,
    /// The tool is offered if calls are a native part of the API, and deferred otherwise.
    Native,
    /// The tool is offered if calls are part of the model's text, and deferred otherwise.
    Text,
    /// The tool is deferred.
    Deferred,
    /// The tool is neither offered nor listed as deferred, but can be called.
    Unmentioned,
}

#[derive(Clone, Default)]
struct ToolRecord {
    statistics: ToolStatistics,
    breaker: Breaker,
}

/// Statistics on the calls of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolStatistics {
    /// The number of calls that ran.
    pub calls: u64,
    /// The number of calls that ended in an error result, for any reason.
    pub errors: u64,
    /// The number of calls that failed because the tool itself broke.
    pub broken: u64,
    /// The total duration of the calls.
    pub time: Duration,
}

/// A tool that was found by name.
pub struct ResolvedTool<'a> {
    pub tool: &'a Arc<dyn Tool>,
    /// The alias by which the tool was found, whose arguments need translation. `None` if the tool
    /// was found by its own name.
    pub alias: Option<&'static Alias>,
}

impl Registry {
    /// Adds a tool. If there already is a tool with this name, the new tool replaces it at its
    /// position.
    pub fn register(&mut self, tool: Arc<dyn Tool>) {
        let name = &tool.spec().name;
        match self
            .tools
            .iter_mut()
            .find(|known| known.tool.spec().name == *name)
        {
            Some(known) => known.tool = tool,
            None => self.tools.push(RegisteredTool {
                tool,
                offer: Offer::Always,
                usable: true,
                useful: true,
            }),
        }
    }

    /// Marks a tool as unusable in this run. From then on it is offered only if it is selected by
    /// name.
    pub fn set_unusable(&mut self, name: &str) {
        for known in self
            .tools
            .iter_mut()
            .filter(|known| known.tool.spec().name == name)
        {
            known.usable = false;
        }
    }

    /// Sets the form in which the model writes calls. Of several tools with one purpose, the form
    /// decides which is offered.
    pub fn set_protocol(&mut self, protocol: ToolProtocol) {
        self.protocol = protocol;
        self.update_deferred();
    }

    /// Sets the limits of the circuit breakers.
    pub fn set_breaker_limits(&mut self, limits: BreakerLimits) {
        self.breaker_limits = limits;
    }

    /// Removes a tool. Returns false if it does not exist.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.tools.len();
        self.tools.retain(|known| known.tool.spec().name != name);
        self.tools.len() != before
    }

    /// Adds a text about the best use of some tools to the end of the list.
    pub fn add_case(&mut self, case: CaseDocument) {
        self.cases.push(case);
    }

    /// Adds a text about the best use of some tools. If there already is a text with this name, the
    /// new text replaces it at its position.
    pub fn replace_case(&mut self, case: CaseDocument) {
        match self.cases.iter_mut().find(|known| known.name == case.name) {
            Some(known) => *known = case,
            None => self.cases.push(case),
        }
    }

    /// Returns the documents that concern at least one offered tool, in order. Lists of what can be
    /// reached through offered tools follow.
    pub fn case_documents(&self) -> impl Iterator<Item = &CaseDocument> {
        let cases = self
            .cases
            .iter()
            .filter(|case| case.tools.iter().any(|name| self.offers_tool(name)));
        let reachable = self
            .offered_tools()
            .filter_map(|tool| tool.gateway()?.reachable());
        cases.chain(reachable)
    }

    /// Adds an observer, which is called before and after every call.
    pub fn add_observer(&mut self, observer: Arc<dyn CallObserver>) {
        self.observers.push(observer);
    }

    /// Returns the tool with this name, offered or deferred.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.iter().find(|tool| tool.spec().name == name)
    }

    /// True if the tool is offered.
    pub fn offers_tool(&self, name: &str) -> bool {
        self.offered_tools().any(|tool| tool.spec().name == name)
    }

    /// Returns the names of the tools that the model has read about: offered and deferred tools.
    pub fn known_names(&self) -> ToolNames {
        self.offered_tools()
            .chain(self.deferred_tools())
            .map(|tool| tool.spec().name.clone())
            .collect()
    }

    /// Finds a tool by name, by alias, or by another name that the tool stands for.
    pub fn resolve(&self, name: &str) -> Option<ResolvedTool<'_>> {
        self.find_by_name_or_alias(name).or_else(|| {
            let tool = self.iter().find(|tool| {
                tool.gateway()
                    .is_some_and(|gateway| gateway.stand_in_arguments(name, &Value::Null).is_some())
            })?;
            Some(ResolvedTool { tool, alias: None })
        })
    }

    /// Finds a tool by name or alias. A name that stands for a part of a tool is not found.
    pub(crate) fn find_by_name_or_alias(&self, name: &str) -> Option<ResolvedTool<'_>> {
        if let Some(tool) = self.get(name) {
            return Some(ResolvedTool { tool, alias: None });
        }
        self.iter().find_map(|tool| {
            let alias = tool
                .manual()
                .aliases
                .iter()
                .find(|alias| alias.name == name)?;
            Some(ResolvedTool {
                tool,
                alias: Some(alias),
            })
        })
    }

    /// Iterates over all tools, including deferred ones, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter().map(|known| &known.tool)
    }

    /// Iterates over the offered tools, in order.
    pub fn offered_tools(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools
            .iter()
            .filter(|known| self.is_offered(known))
            .map(|known| &known.tool)
    }

    /// Iterates in order over the tools that are not offered but may be called.
    pub fn deferred_tools(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools
            .iter()
            .filter(|known| self.is_deferred(known))
            .map(|known| &known.tool)
    }

    /// Returns the specifications of the offered tools, in order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.offered_tools()
            .map(|tool| tool.spec().clone())
            .collect()
    }

    fn is_offered(&self, known: &RegisteredTool) -> bool {
        known.useful
            && match known.offer {
                Offer::Always => true,
                Offer::Native => !self.protocol.is_text(),
                Offer::Text => self.protocol.is_text(),
                Offer::Deferred | Offer::Unmentioned => false,
            }
    }

    fn is_deferred(&self, known: &RegisteredTool) -> bool {
        known.useful && known.offer != Offer::Unmentioned && !self.is_offered(known)
    }

    /// Updates the tools that find or call deferred tools, after the set of deferred tools may have
    /// changed.
    fn update_deferred(&mut self) {
        let deferred: Vec<_> = self.deferred_tools().cloned().collect();
        for known in &mut self.tools {
            known.useful = true;
            let Some(gateway) = known.tool.gateway() else {
                continue;
            };
            match gateway.adapt_to_deferred(&deferred) {
                DeferralUpdate::Same => {}
                DeferralUpdate::Replaced(tool) => known.tool = tool,
                DeferralUpdate::Useless => known.useful = false,
            }
        }
    }

    /// Keeps only the tools for which `keep` returns true.
    pub fn retain(&mut self, keep: impl Fn(&dyn Tool) -> bool) {
        self.tools.retain(|known| keep(known.tool.as_ref()));
    }

    pub(crate) fn is_usable(&self, name: &str) -> bool {
        self.tools
            .iter()
            .all(|known| known.usable || known.tool.spec().name != name)
    }

    /// Replaces each tool and its offer by the result of `other`. A tool for which the result is
    /// `None` is removed.
    pub(crate) fn filter_map_tools(
        &mut self,
        other: impl Fn(&Arc<dyn Tool>, Offer) -> Option<(Arc<dyn Tool>, Offer)>,
    ) {
        self.tools
            .retain_mut(|known| match other(&known.tool, known.offer) {
                Some((tool, offer)) => {
                    (known.tool, known.offer) = (tool, offer);
                    true
                }
                None => false,
            });
        self.update_deferred();
    }

    /// Returns the statistics of a tool.
    pub fn tool_statistics(&self, name: &str) -> ToolStatistics {
        self.with_record(name, |record| record.statistics)
    }

    /// Runs a call of a tool and its observers, unless the circuit breaker blocks the tool. A panic
    /// becomes an error result.
    pub async fn call(
        &self,
        tool: &dyn Tool,
        context: &ToolContext,
        arguments: Value,
    ) -> ToolOutput {
        let name = tool.spec().name.as_str();
        if let Some(rest) = self.with_record(name, |record| {
            record
                .breaker
                .time_until_retry(self.breaker_limits, Instant::now())
        }) {
            return circuit_open_output(name, self.breaker_limits.failures, rest);
        }
        for observer in &self.observers {
            if let Err(why) = catch_panic(observer.before(name, context, &arguments)).await {
                return refusal_output(name, observer.name(), "did not run", &why);
            }
        }
        let begun = Instant::now();
        let ran = AssertUnwindSafe(tool.call(context, arguments))
            .catch_unwind()
            .await;
        let mut output = ran.unwrap_or_else(|_| crash_output(name));
        let took = begun.elapsed();
        self.with_record(name, |record| {
            record
                .breaker
                .record_health(output.health, self.breaker_limits, Instant::now());
            let statistics = &mut record.statistics;
            statistics.calls += 1;
            statistics.errors += u64::from(output.envelope.status == ToolStatus::Error);
            statistics.broken += u64::from(output.health == ToolHealth::Broken);
            statistics.time += took;
        });
        for observer in &self.observers {
            if let Err(why) = catch_panic(observer.after(name, context, &mut output)).await {
                // The effects of the call are not undone, and the changes of files stay reported.
                let refusal = refusal_output(
                    name,
                    observer.name(),
                    "ran, but its result was held back",
                    &why,
                );
                output.envelope = refusal.envelope;
                output.images.clear();
            }
        }
        output
    }

    fn with_record<T>(&self, name: &str, look: impl FnOnce(&mut ToolRecord) -> T) -> T {
        let mut records = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        look(records.entry(name.to_owned()).or_default())
    }
}

/// Awaits the result of an observer, and converts a panic of the observer to an error.
async fn catch_panic(asked: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    AssertUnwindSafe(asked)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err("it crashed".to_owned()))
}

fn crash_output(tool: &str) -> ToolOutput {
    let message = format!("`{tool}` crashed. This is a bug in the tool; try another way.");
    ToolOutput {
        health: ToolHealth::Broken,
        ..Envelope::failure("crashed", message).into()
    }
}

fn circuit_open_output(tool: &str, failures: u32, rest: Duration) -> ToolOutput {
    let seconds = rest.as_secs().max(1);
    let message = format!(
        "`{tool}` failed {failures} times in a row and is not called for another {seconds} s; go another way."
    );
    Envelope::failure("circuit_open", message).into()
}

fn refusal_output(tool: &str, observer: &str, what: &str, why: &str) -> ToolOutput {
    Envelope::failure(
        "plugin",
        format!("`{tool}` {what}: the plugin `{observer}` said: {why}"),
    )
    .into()
}

#[cfg(test)]
mod tests;
