//! What other policies would have made of a conversation, side by side. Nothing is sent.

use std::collections::BTreeMap;

use haft_lab::{OUTCOME_HEADINGS, model_line, pricing_line};
use haft_serve::Markup;
use haft_store::Conversation;

use super::super::replay::{self, PolicyComparison, ReplayArgs};
use super::{Inspector, address, apart, navigation, page};
use crate::exit::in_one_line;
use crate::output::localised;

impl Inspector {
    /// The policies that are asked for, or the usual ones, as a table and a picture.
    pub(super) async fn what_if(
        &self,
        conversation: Conversation,
        query: &BTreeMap<String, String>,
    ) -> anyhow::Result<String> {
        let asked = query
            .get("policies")
            .map_or("", String::as_str)
            .trim()
            .to_owned();
        let policies = if asked.is_empty() {
            replay::USUAL.join(", ")
        } else {
            asked
        };
        let args = ReplayArgs {
            policy: policies
                .split(',')
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.is_empty())
                .collect(),
            ..ReplayArgs::of(conversation.id.to_string(), self.common.clone())
        };
        let compared = apart(move || async move { replay::compared(&args).await }).await;
        let name = &conversation.name;
        let mut pieces = vec![
            Markup::plain("h1", name),
            Markup::plain("p", text!("serve-what-if-note")),
            question(&address(&conversation.id, "/what-if"), &policies),
        ];
        match compared {
            Ok(compared) => pieces.extend(shown(&compared)),
            Err(error) => {
                let alert = [("class", "broken"), ("role", "alert")];
                pieces.push(Markup::element(
                    "p",
                    &alert,
                    [Markup::text(in_one_line(&error))],
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

fn shown(compared: &PolicyComparison) -> [Markup; 4] {
    let PolicyComparison {
        title,
        outcomes,
        encoding,
        source,
        ..
    } = compared;
    let rows = replay::rows(outcomes).map(|cells| cells.into_iter().map(Markup::text).collect());
    let plot = Markup::picture(&haft_lab::draw_plot(title, outcomes, &|text| {
        localised(text)
    }));
    [
        Markup::plain("p", localised(model_line(&encoding.spec, *source))),
        Markup::plain("p", localised(pricing_line(&encoding.spec))),
        Markup::table(
            &OUTCOME_HEADINGS
                .map(localised)
                .each_ref()
                .map(String::as_str),
            rows,
        ),
        Markup::element("div", &[("class", "wide plot"), ("tabindex", "0")], [plot]),
    ]
}
