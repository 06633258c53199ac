//! Where tools are found by name, and the one way a call is run: breaker, observers, the tool,
//! statistics, observers.
//!
//! Invariant: whatever a tool or an observer does, [`Registry::call`] gives back an output.

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

/// The tools of one agent, in the order they are offered. Some are deferred: the model does not see
/// them until it searches, but may call them. Clones share statistics.
#[derive(Clone, Default)]
pub struct Registry {
    tools: Vec<RegisteredTool>,
    protocol: ToolProtocol,
    cases: Vec<CaseDocument>,
    observers: Vec<Arc<dyn CallObserver>>,
    record: Arc<Mutex<HashMap<String, ToolRecord>>>,
}

/// A tool, and where it is offered.
#[derive(Clone)]
struct RegisteredTool {
    tool: Arc<dyn Tool>,
    offer: Offer,
    /// Whether it can be used in this run.
    usable: bool,
    /// Whether there is something it could be used for, as far as deferred tools matter for that.
    useful: bool,
}

/// Where a tool is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Everywhere.
    Always,
    /// Where calls have a form of their own; deferred elsewhere.
    Native,
    /// Where calls are text; deferred elsewhere.
    Text,
    /// Nowhere: it is deferred.
    Deferred,
    /// Nowhere, and it is in no list; a call of it is answered.
    Unmentioned,
}

#[derive(Clone, Default)]
struct ToolRecord {
    statistics: ToolStatistics,
    breaker: Breaker,
}

/// How a tool was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolStatistics {
    /// Calls that ran.
    pub calls: u64,
    /// Those of them that ended in an error result, whoever's fault it was.
    pub errors: u64,
    /// Those of them in which the tool itself broke.
    pub broken: u64,
    /// How long they took together.
    pub time: Duration,
}

/// A tool that was found, and how its arguments are to be read.
pub struct Resolved<'a> {
    /// The tool.
    pub tool: &'a Arc<dyn Tool>,
    /// The alias it was called by.
    pub alias: Option<&'static Alias>,
}

impl Registry {
    /// Adds a tool; one of the same name is replaced in its place.
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

    /// Notes that a tool cannot be used in this run: it is offered only where it is chosen by name.
    pub fn set_unusable(&mut self, name: &str) {
        for known in self
            .tools
            .iter_mut()
            .filter(|known| known.tool.spec().name == name)
        {
            known.usable = false;
        }
    }

    /// Sets how calls are written, which decides between tools that serve the same purpose.
    pub fn set_protocol(&mut self, protocol: ToolProtocol) {
        self.protocol = protocol;
        self.tell_of_deferred();
    }

    /// Takes a tool away and says whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.tools.len();
        self.tools.retain(|known| known.tool.spec().name != name);
        self.tools.len() != before
    }

    /// Adds a text about how some tools are best used.
    pub fn add_case(&mut self, case: CaseDocument) {
        self.cases.push(case);
    }

    /// Adds a text about how some tools are best used; one of the same name is replaced in its
    /// place.
    pub fn set_case(&mut self, case: CaseDocument) {
        match self.cases.iter_mut().find(|known| known.name == case.name) {
            Some(known) => *known = case,
            None => self.cases.push(case),
        }
    }

    /// The texts about tools that are offered, in order, and what can be reached through such
    /// tools.
    pub fn cases(&self) -> impl Iterator<Item = &CaseDocument> {
        let cases = self
            .cases
            .iter()
            .filter(|case| case.tools.iter().any(|name| self.offers(name)));
        let reachable = self
            .offered()
            .filter_map(|tool| tool.gateway()?.reachable());
        cases.chain(reachable)
    }

    /// Adds an observer of all calls.
    pub fn add_observer(&mut self, observer: Arc<dyn CallObserver>) {
        self.observers.push(observer);
    }

    /// The tool of this name, offered or deferred.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.iter().find(|tool| tool.spec().name == name)
    }

    /// Whether the tool of this name is offered.
    pub fn offers(&self, name: &str) -> bool {
        self.offered().any(|tool| tool.spec().name == name)
    }

    /// The tools that the model has been told of: those that are offered, and those that are
    /// deferred.
    pub fn told(&self) -> ToolNames {
        self.offered()
            .chain(self.deferred())
            .map(|tool| tool.spec().name.clone())
            .collect()
    }

    /// The tool of this name, or the one that answers to it or stands for it.
    pub fn resolve(&self, name: &str) -> Option<Resolved<'_>> {
        let stands = || {
            self.iter().find(|tool| {
                tool.gateway()
                    .is_some_and(|gateway| gateway.stand_in(name, &Value::Null).is_some())
            })
        };
        self.called(name)
            .or_else(|| stands().map(|tool| Resolved { tool, alias: None }))
    }

    /// The tool of this name, or the one that answers to it: the whole of it is meant.
    pub(crate) fn called(&self, name: &str) -> Option<Resolved<'_>> {
        if let Some(tool) = self.get(name) {
            return Some(Resolved { tool, alias: None });
        }
        self.iter().find_map(|tool| {
            let alias = tool
                .manual()
                .aliases
                .iter()
                .find(|alias| alias.name == name)?;
            Some(Resolved {
                tool,
                alias: Some(alias),
            })
        })
    }

    /// All tools, in order: those that are offered and those that are deferred.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter().map(|known| &known.tool)
    }

    /// The tools that are offered, in order.
    pub fn offered(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools
            .iter()
            .filter(|known| self.is_offered(known))
            .map(|known| &known.tool)
    }

    /// The tools that may be called although they are not offered, in order.
    pub fn deferred(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools
            .iter()
            .filter(|known| self.is_deferred(known))
            .map(|known| &known.tool)
    }

    /// The specifications of the tools that are offered, in order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.offered().map(|tool| tool.spec().clone()).collect()
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

    /// Tells the tools that find and call deferred ones which these are.
    fn tell_of_deferred(&mut self) {
        let deferred: Vec<_> = self.deferred().cloned().collect();
        for known in &mut self.tools {
            known.useful = true;
            let Some(gateway) = known.tool.gateway() else {
                continue;
            };
            match gateway.with_deferred(&deferred) {
                DeferralUpdate::Same => {}
                DeferralUpdate::Replaced(tool) => known.tool = tool,
                DeferralUpdate::Useless => known.useful = false,
            }
        }
    }

    /// Keeps only the tools wanted, in the registry's own order.
    pub fn retain(&mut self, keep: impl Fn(&dyn Tool) -> bool) {
        self.tools.retain(|known| keep(known.tool.as_ref()));
    }

    /// Whether this tool can be used in this run.
    pub(crate) fn is_usable(&self, name: &str) -> bool {
        self.tools
            .iter()
            .all(|known| known.usable || known.tool.spec().name != name)
    }

    /// Puts another tool in the place of each and says where it is offered, or removes it.
    pub(crate) fn rework_offered(
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
        self.tell_of_deferred();
    }

    /// How a tool was used so far.
    pub fn statistics(&self, name: &str) -> ToolStatistics {
        self.record(name, |record| record.statistics)
    }

    /// Runs a call of a tool.
    pub async fn call(
        &self,
        tool: &dyn Tool,
        context: &ToolContext,
        arguments: Value,
    ) -> ToolOutput {
        let name = tool.spec().name.as_str();
        if let Some(rest) = self.record(name, |record| record.breaker.rest(Instant::now())) {
            return resting(name, rest);
        }
        for observer in &self.observers {
            if let Err(why) = caught(observer.before(name, context, &arguments)).await {
                return refused(name, observer.name(), "did not run", &why);
            }
        }
        let begun = Instant::now();
        let ran = AssertUnwindSafe(tool.call(context, arguments))
            .catch_unwind()
            .await;
        let mut output = ran.unwrap_or_else(|_| crashed(name));
        let took = begun.elapsed();
        self.record(name, |record| {
            record.breaker.note(output.health, Instant::now());
            let statistics = &mut record.statistics;
            statistics.calls += 1;
            statistics.errors += u64::from(output.envelope.status == ToolStatus::Error);
            statistics.broken += u64::from(output.health == ToolHealth::Broken);
            statistics.time += took;
        });
        for observer in &self.observers {
            if let Err(why) = caught(observer.after(name, context, &mut output)).await {
                // What the call did stays done, and what it changed stays reported.
                let refusal = refused(
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

    fn record<T>(&self, name: &str, look: impl FnOnce(&mut ToolRecord) -> T) -> T {
        let mut records = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        look(records.entry(name.to_owned()).or_default())
    }
}

/// Returns the answer of an observer; a panic is an error, too.
async fn caught(asked: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    AssertUnwindSafe(asked)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err("it crashed".to_owned()))
}

fn crashed(tool: &str) -> ToolOutput {
    let message = format!("`{tool}` crashed. This is a bug in the tool; try another way.");
    ToolOutput {
        health: ToolHealth::Broken,
        ..Envelope::failure("crashed", message).into()
    }
}

fn resting(tool: &str, rest: Duration) -> ToolOutput {
    let seconds = rest.as_secs().max(1);
    let message = format!(
        "`{tool}` failed three times in a row and is not called for another {seconds} s; go another way."
    );
    Envelope::failure("circuit_open", message).into()
}

fn refused(tool: &str, observer: &str, what: &str, why: &str) -> ToolOutput {
    Envelope::failure(
        "plugin",
        format!("`{tool}` {what}: the plugin `{observer}` said: {why}"),
    )
    .into()
}

#[cfg(test)]
mod tests;
