//! What the real services refuse, as a list of rules.
//!
//! The scripted server runs [`check`] before it answers, so that a request a real service would
//! refuse is refused here too, with the service's own status, error shape and wording. Each
//! [`Rule`] has a fixture folder `fixtures/rules/<api>/<rule id>/` with the nearest valid request,
//! a request that differs in the one thing, and the whole error body.
//!
//! Invariants: a rule passes over what another rule is responsible for (a value of the wrong type
//! is not its business unless it says so); no rule refuses a request the public reference allows;
//! every rule is linear in the size of the body; the first rule of the list that refuses decides.

use haft_types::Api;
use serde_json::Value;

mod anthropic;
mod common;
mod gemini;
mod openai;
mod openai_chat;
mod openai_responses;

use common::Problem;

/// What a rule may look at beside the body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// The model named in the path (Gemini); the other APIs name it in the body.
    pub model_from_path: Option<String>,
    /// Whether the path or the body asks for a streamed answer.
    pub stream: bool,
    /// Header names and values as received; names are compared without regard to case.
    pub headers: Vec<(String, String)>,
}

impl RequestInfo {
    /// The first value of a header, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(have, _)| have.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// An answer that refuses a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The rule that was broken.
    pub rule: &'static str,
    /// The HTTP status of the answer.
    pub status: u16,
    /// The body of the answer, in the service's own error shape.
    pub body: Value,
}

/// One thing a service refuses.
#[derive(Debug)]
pub struct Rule {
    /// The rule's name, unique within its API, and the name of its fixture folder.
    pub id: &'static str,
    /// The service that has the rule.
    pub api: Api,
    /// What the public reference demands, in our own words.
    pub statement: &'static str,
    /// The public page that says so.
    pub source: &'static str,
    check: fn(&Value, &RequestInfo) -> Result<(), Problem>,
}

impl Rule {
    /// The refusal this rule gives, if the request breaks it.
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

/// Every rule of every API, in the order they are checked.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    Api::ALL.into_iter().flat_map(of)
}

/// Whether the service behind `api` would take this request; the first broken rule decides.
pub fn check(api: Api, body: &Value, info: &RequestInfo) -> Result<(), Refusal> {
    of(api).iter().try_for_each(|rule| rule.check(body, info))
}

/// All rules as a page of Markdown, one table for each API: `docs/strict-rules.md`.
pub fn page() -> String {
    let mut page = String::from(PAGE_HEAD);
    for api in Api::ALL {
        page += "\n## ";
        page += api.name();
        page += "\n\n| rule | what the service demands | source |\n| --- | --- | --- |\n";
        page.extend(
            of(api)
                .iter()
                .map(|rule| format!("| `{}` | {} | {} |\n", rule.id, rule.statement, rule.source)),
        );
    }
    page
}

const PAGE_HEAD: &str = "\
# What the scripted model server refuses

Made from the rules in `crates/testkit/src/rules`; do not edit. To renew it:
`cargo run -p haft-testkit --example strict-rules > docs/strict-rules.md`.

A request that breaks a rule gets the real service's status, error shape and wording. Each rule has a fixture folder
`crates/testkit/fixtures/rules/<api>/<rule>/` with a refused request, the nearest accepted one and the error.
";

fn of(api: Api) -> &'static [Rule] {
    match api {
        Api::OpenaiChat => openai_chat::RULES,
        Api::OpenaiResponses => openai_responses::RULES,
        Api::Anthropic => anthropic::RULES,
        Api::Gemini => gemini::RULES,
    }
}
