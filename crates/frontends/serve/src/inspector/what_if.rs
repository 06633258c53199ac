//! Compares the cost of a conversation under other policies. No request is sent.

use std::collections::BTreeMap;

use haft_lab::{OUTCOME_HEADINGS, format_model_line, format_pricing_line};
use haft_store::Conversation;

use super::{Inspector, PageResult, build_page, conversation_path, render_navigation};
use crate::actions::{CompareQuery, PolicyTable};
use crate::localize_text;
use crate::markup::Markup;

impl Inspector {
    /// Renders the page that compares policies: the requested ones, or the default policies if none
    /// are requested.
    pub(super) async fn render_what_if(
        &self,
        conversation: Conversation,
        query: &BTreeMap<String, String>,
    ) -> PageResult<String> {
        let requested = query
            .get("policies")
            .map_or("", String::as_str)
            .trim()
            .to_owned();
        let query = CompareQuery {
            conversation: conversation.clone(),
            policies: requested
                .split(',')
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.is_empty())
                .collect(),
        };
        let compared = (self.actions.compare)(query).await;
        let policies = match &compared {
            Ok(compared) if requested.is_empty() => {
                let names = compared
                    .outcomes
                    .iter()
                    .map(|outcome| outcome.name.as_str());
                names.collect::<Vec<_>>().join(", ")
            }
            Ok(_) | Err(_) => requested,
        };
        let name = &conversation.name;
        let mut pieces = vec![
            Markup::text_element("h1", name),
            Markup::text_element("p", text!("serve-what-if-note")),
            render_policy_form(&conversation_path(&conversation.id, "/what-if"), &policies),
        ];
        match compared {
            Ok(compared) => pieces.extend(render_comparison(compared)),
            Err(error) => {
                let alert = [("class", "broken"), ("role", "alert")];
                pieces.push(Markup::element(
                    "p",
                    &alert,
                    [Markup::text(error.to_one_line())],
                ));
            }
        }
        Ok(build_page(
            name,
            render_navigation(&conversation, "/what-if"),
            pieces,
        ))
    }
}

fn render_policy_form(to: &str, policies: &str) -> Markup {
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

fn render_comparison(compared: PolicyTable) -> [Markup; 4] {
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
    let plot = Markup::inline_svg(&haft_lab::draw_plot(&title, &outcomes, &|text| {
        localize_text(text)
    }));
    [
        Markup::text_element("p", localize_text(format_model_line(&model, source))),
        Markup::text_element("p", localize_text(format_pricing_line(&model))),
        Markup::table(
            &OUTCOME_HEADINGS
                .map(localize_text)
                .each_ref()
                .map(String::as_str),
            rows,
        ),
        Markup::element("div", &[("class", "wide plot"), ("tabindex", "0")], [plot]),
    ]
}
