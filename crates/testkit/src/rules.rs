//! The requests that the real services reject, as a list of rules.
//!
//! The scripted server runs [`check_request`] before it replies, so that a request a real service
//! would reject is rejected here too, with the service's own status, error shape and wording. Each
//! [`Rule`] has a fixture folder `fixtures/rules/<api>/<rule id>/` with the nearest valid request,
//! a request that differs in one thing, and the whole error body.
//!
//! Invariants: a rule ignores what another rule is responsible for (a value of the wrong type,
//! unless the rule is about types); no rule rejects a request that the public reference allows;
//! every rule is linear in the size of the body; the first rule in the list that rejects decides.

use haft_types::Api;
use serde_json::Value;

mod anthropic;
mod common;
mod gemini;
mod openai;
mod openai_chat;
mod openai_responses;

use common::Problem;

/// The parts of a request that rules examine in addition to the body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// The model that is named in the path of a Gemini request; `None` for the other APIs, which
    /// name it in the body.
    pub model_from_path: Option<String>,
    /// True if the path or the body asks for a streamed reply.
    pub stream: bool,
    /// The names and values of the headers as received. Names are compared case-insensitively.
    pub headers: Vec<(String, String)>,
}

impl RequestInfo {
    /// Returns the first value of the header `name`. Names are case-insensitive.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(have, _)| have.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// An error response to a request that broke a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The id of the broken rule.
    pub rule: &'static str,
    pub status: u16,
    /// The body of the response, in the form in which the real service reports errors.
    pub body: Value,
}

/// A rule by which a service rejects some requests.
#[derive(Debug)]
pub struct Rule {
    /// The name of the rule, unique within its API, which is also the name of the folder with its
    /// fixtures.
    pub id: &'static str,
    /// The service that enforces the rule.
    pub api: Api,
    /// The requirement, taken from the public reference but in our own words.
    pub statement: &'static str,
    /// The public page that documents the rule.
    pub source: &'static str,
    check: fn(&Value, &RequestInfo) -> Result<(), Problem>,
}

impl Rule {
    /// Checks a request against this rule. If the request breaks the rule, returns the error that
    /// the real service would return.
    pub fn check(&self, body: &Value, info: &RequestInfo) -> Result<(), Refusal> {
        (self.check)(body, info).map_err(|problem| Refusal {
            rule: self.id,
            status: problem.status,
            body: match self.api {
                Api::OpenaiChat | Api::OpenaiResponses => openai::error_body(&problem),
                Api::Anthropic => anthropic::error_body(&problem),
                Api::Gemini => gemini::error_body(&problem),
            },
        })
    }
}

/// Iterates over the rules of all APIs, each API's rules in the order in which they are checked.
pub fn all_rules() -> impl Iterator<Item = &'static Rule> {
    Api::ALL.into_iter().flat_map(rules_for)
}

/// Checks the request against all rules of `api`, and returns the error of the first broken rule.
pub fn check_request(api: Api, body: &Value, info: &RequestInfo) -> Result<(), Refusal> {
    rules_for(api)
        .iter()
        .try_for_each(|rule| rule.check(body, info))
}

/// Renders all rules as the Markdown page `docs/strict-rules.md`, with one table per API.
pub fn render_markdown() -> String {
    let mut page = String::from(PAGE_HEAD);
    for api in Api::ALL {
        page += "\n## ";
        page += api.name();
        page += "\n\n| rule | requirement | source |\n| --- | --- | --- |\n";
        page.extend(
            rules_for(api)
                .iter()
                .map(|rule| format!("| `{}` | {} | {} |\n", rule.id, rule.statement, rule.source)),
        );
    }
    page
}

const PAGE_HEAD: &str = "\
# What the scripted model server refuses

Generated from the rules in `crates/testkit/src/rules`; do not edit. To update it:
`cargo run -p haft-testkit --example strict-rules > docs/strict-rules.md`.

A request that breaks a rule gets the real service's status, error shape and wording. Each rule has a fixture folder
`crates/testkit/fixtures/rules/<api>/<rule>/` with a refused request, the nearest accepted one and the error.
";

fn rules_for(api: Api) -> &'static [Rule] {
    match api {
        Api::OpenaiChat => openai_chat::RULES,
        Api::OpenaiResponses => openai_responses::RULES,
        Api::Anthropic => anthropic::RULES,
        Api::Gemini => gemini::RULES,
    }
}
