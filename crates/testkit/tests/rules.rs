//! Checks every strictness rule against its fixture folder, `fixtures/rules/<api>/<rule>/`:
//!
//! - `accepted.json`: a request that all rules of the API accept;
//! - `refused.json`: the accepted request with one difference; without this file `accepted.json` is
//!   refused because of its `refused-info.json`;
//! - `error.json`: the whole error body;
//! - `info.json`, `refused-info.json` (both optional): status, headers and the model of the path.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use haft_testkit::rules::{self, RequestInfo};
use haft_types::Api;
use serde_json::Value;

fn fixtures_folder(api: Api) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/rules")
        .join(api.name())
}

fn read_optional(path: &Path) -> Option<Value> {
    let text = fs::read_to_string(path).ok()?;
    Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn read_required(path: &Path) -> Value {
    read_optional(path).unwrap_or_else(|| panic!("{} is missing", path.display()))
}

/// Returns the request information of a proper client of the API, changed by the fixture.
fn request_info(api: Api, body: &Value, given: Option<&Value>) -> RequestInfo {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let default_headers = match api {
        Api::Anthropic => vec![header("anthropic-version", "2023-06-01")],
        Api::OpenaiChat | Api::OpenaiResponses | Api::Gemini => Vec::new(),
    };
    let headers = given
        .and_then(|given| given.get("headers"))
        .and_then(Value::as_object);
    let path_model = given
        .and_then(|given| given.get("model_from_path"))
        .and_then(Value::as_str);
    RequestInfo {
        model_from_path: (api == Api::Gemini)
            .then(|| path_model.unwrap_or("gemini-2.5-flash").to_owned()),
        stream: body.get("stream") == Some(&Value::Bool(true)),
        headers: headers.map_or(default_headers, |headers| {
            headers
                .iter()
                .map(|(name, value)| header(name, value.as_str().unwrap_or_default()))
                .collect()
        }),
    }
}

fn check_fixture(api: Api, rule: &str) {
    let at = fixtures_folder(api).join(rule);
    let common = read_optional(&at.join("info.json"));
    let special = read_optional(&at.join("refused-info.json"));
    let accepted = read_required(&at.join("accepted.json"));
    let refused = read_optional(&at.join("refused.json")).unwrap_or_else(|| {
        assert!(
            special.is_some(),
            "{}: neither refused.json nor refused-info.json",
            at.display()
        );
        accepted.clone()
    });
    if let Err(refusal) = rules::check_request(
        api,
        &accepted,
        &request_info(api, &accepted, common.as_ref()),
    ) {
        panic!(
            "{}: accepted.json is refused by `{}`: {}",
            at.display(),
            refusal.rule,
            refusal.body
        );
    }
    let special = special.or(common);
    let info = request_info(api, &refused, special.as_ref());
    let Err(refusal) = rules::check_request(api, &refused, &info) else {
        panic!("{}: refused.json is accepted", at.display());
    };
    assert_eq!(
        refusal.rule,
        rule,
        "{}: refused by another rule: {}",
        at.display(),
        refusal.body
    );
    let status = special
        .as_ref()
        .and_then(|info| info.get("status"))
        .and_then(Value::as_u64)
        .unwrap_or(400);
    assert_eq!(u64::from(refusal.status), status, "{}", at.display());
    assert_eq!(
        refusal.body,
        read_required(&at.join("error.json")),
        "{}",
        at.display()
    );
    // A fixture that breaks two rules would still pass if one of them were removed.
    let broken: Vec<&str> = rules::all_rules()
        .filter(|other| other.api == api && other.check(&refused, &info).is_err())
        .map(|other| other.id)
        .collect();
    assert_eq!(
        broken,
        [rule],
        "{}: refused.json breaks more than its rule",
        at.display()
    );
}

fn check_api(api: Api) {
    let ids: Vec<&str> = rules::all_rules()
        .filter(|rule| rule.api == api)
        .map(|rule| rule.id)
        .collect();
    let named: BTreeSet<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    assert_eq!(named.len(), ids.len(), "two rules of one name");
    assert!(ids.len() >= 15, "{} has {} rules", api.name(), ids.len());
    let entries = fs::read_dir(fixtures_folder(api))
        .unwrap_or_else(|error| panic!("{}: {error}", fixtures_folder(api).display()));
    let folders: BTreeSet<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(folders, named, "rules and fixture folders differ");
    for id in ids {
        check_fixture(api, id);
    }
}

#[test]
fn openai_chat_rules_match_their_fixtures() {
    check_api(Api::OpenaiChat);
}

#[test]
fn openai_responses_rules_match_their_fixtures() {
    check_api(Api::OpenaiResponses);
}

#[test]
fn anthropic_rules_match_their_fixtures() {
    check_api(Api::Anthropic);
}

#[test]
fn gemini_rules_match_their_fixtures() {
    check_api(Api::Gemini);
}

/// A body of any type is refused, and never causes a panic.
#[test]
fn check_request_refuses_bodies_of_another_type() {
    for api in Api::ALL {
        for text in ["null", "[]", "\"text\"", "7", "{}"] {
            let body: Value = serde_json::from_str(text).expect("valid JSON");
            assert!(
                rules::check_request(api, &body, &request_info(api, &body, None)).is_err(),
                "{} took {text}",
                api.name()
            );
        }
    }
}

/// Replaces every value of every accepted request in turn; each request gets an answer and none a
/// panic.
#[test]
fn check_request_never_panics_on_values_of_another_type() {
    for api in Api::ALL {
        for rule in rules::all_rules().filter(|rule| rule.api == api) {
            let body = read_required(&fixtures_folder(api).join(rule.id).join("accepted.json"));
            let mut pointers = Vec::new();
            collect_pointers(&body, &mut String::new(), &mut pointers);
            for pointer in pointers {
                for text in ["null", "[[]]", "{}", "\"\"", "-1"] {
                    let mut changed = body.clone();
                    *changed
                        .pointer_mut(&pointer)
                        .expect("the pointer was taken from the body") =
                        serde_json::from_str(text).expect("valid JSON");
                    let _ = rules::check_request(api, &changed, &request_info(api, &changed, None));
                }
            }
        }
    }
}

fn collect_pointers(value: &Value, path: &mut String, pointers: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, inner)| (key.replace('~', "~0").replace('/', "~1"), inner))
            .collect(),
        Value::Array(elements) => elements
            .iter()
            .enumerate()
            .take(3)
            .map(|(at, inner)| (at.to_string(), inner))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
    };
    for (key, inner) in children {
        let length = path.len();
        path.push('/');
        path.push_str(&key);
        pointers.push(path.clone());
        collect_pointers(inner, path, pointers);
        path.truncate(length);
    }
}

#[test]
fn strict_rules_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/strict-rules.md");
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == rules::render_markdown(),
        "docs/strict-rules.md is out of date: run `cargo run -p haft-testkit --example strict-rules > \
         docs/strict-rules.md`"
    );
}
