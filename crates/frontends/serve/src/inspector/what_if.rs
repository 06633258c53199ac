//! Compares what a conversation would cost under other policies. No request is sent.

use std::collections::BTreeMap;

use haft_lab::{OUTCOME_HEADINGS, USUAL_POLICIES, model_line, pricing_line};
use haft_store::Conversation;

use super::{Inspector, PageResult, address, navigation, page};
use crate::actions::{CompareQuery, PolicyTable};
use crate::localized;
use crate::markup::Markup;

impl Inspector {
    /// Renders the page that compares the requested policies, or the default ones.
    pub(super) async fn what_if(
        &self,
        conversation: Conversation,
        query: &BTreeMap<String, String>,
    ) -> PageResult<String> {
        let asked = query
            .get("policies")
            .map_or("", String::as_str)
            .trim()
            .to_owned();
        let policies = if asked.is_empty() {
            USUAL_POLICIES.join(", ")
        } else {
            asked
        };
        let query = CompareQuery {
            conversation: conversation.clone(),
            policies: policies
                .split(',')
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.is_empty())
                .collect(),
        };
        let compared = (self.actions.compare)(query).await;
        let name = &conversation.name;
        let mut pieces = vec![
            Markup::plain("h1", name),
            Markup::plain("p", text!("serve-what-if-note")),
            question(&address(&conversation.id, "/what-if"), &policies),
        ];
        match compared {
            Ok(compared) => pieces.extend(shown(compared)),
            Err(error) => {
                let alert = [("class", "broken"), ("role", "alert")];
                pieces.push(Markup::element(
                    "p",
                    &alert,
                    [Markup::text(error.on_one_line())],
                ));
            }
        }
        Ok(page(name, navigation(&conversation, "/what-if"), pieces))
    }
}

fn question(to: &str, policies: &str) -> Markup {
    let field = [
        ("id", "policies"),
        ("name", "policies"),
        ("value", policies),
    ];
    Markup::element(
        "form",
        &[("action", to)],
        [
            Markup::element(
                "label",
                &[("for", "policies")],
                [Markup::text(text!("serve-what-if-policies"))],
            ),
            Markup::element("input", &field, []),
            Markup::element(
                "button",
                &[],
                [Markup::text(text!("serve-what-if-compare"))],
            ),
        ],
    )
}

fn shown(compared: PolicyTable) -> [Markup; 4] {
    let PolicyTable {
        title,
        outcomes,
        rows,
        model,
        source,
    } = compared;
    let rows = rows
        .into_iter()
        .map(|cells| cells.into_iter().map(Markup::text).collect());
    let plot = Markup::picture(&haft_lab::draw_plot(&title, &outcomes, &|text| {
        localized(text)
    }));
    [
        Markup::plain("p", localized(model_line(&model, source))),
        Markup::plain("p", localized(pricing_line(&model))),
        Markup::table(
            &OUTCOME_HEADINGS
                .map(localized)
                .each_ref()
                .map(String::as_str),
            rows,
        ),
        Markup::element("div", &[("class", "wide plot"), ("tabindex", "0")], [plot]),
    ]
}
