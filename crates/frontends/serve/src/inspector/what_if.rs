//! Compares the cost of a conversation under other policies. No request is sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_lab::{OUTCOME_HEADINGS, PolicyOutcome, format_model_line, format_pricing_line};
use haft_store::Conversation;

use super::glance::BreakList;
use super::page_frame::ConversationTab;
use super::{Inspector, PageResult, conversation_path, to_sentence_case};
use crate::actions::{CompareQuery, PolicyTable};
use crate::computation::Computed;
use crate::localize_text;
use crate::markup::{Column, Markup};

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
        let names: Vec<_> = requested
            .split(',')
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect();
        let key = format!("{}\n{}", conversation.id, names.join(","));
        let version = self.log_version(&conversation).await?;
        let compare = Arc::clone(&self.actions.compare);
        let compared = {
            let conversation = conversation.clone();
            self.computations
                .comparisons
                .get(&key, &version, move |watch| {
                    compare(CompareQuery {
                        conversation,
                        policies: names,
                        watch,
                    })
                })
                .await
        };
        let policies = match &compared {
            Ok(Computed::Ready(compared)) if requested.is_empty() => {
                let names = compared
                    .outcomes
                    .iter()
                    .map(|outcome| outcome.name.as_str());
                names.collect::<Vec<_>>().join(", ")
            }
            Ok(_) | Err(_) => requested,
        };
        let mut pieces = vec![
            self.render_glance(&conversation, BreakList::Closed).await,
            Markup::text_element("p", text!("serve-what-if-note")),
            render_policy_form(&conversation_path(&conversation.id, "/what-if"), &policies),
        ];
        match compared {
            Ok(Computed::Ready(compared)) => pieces.extend(render_comparison(&compared)),
            Ok(Computed::Running(running)) => {
                return Ok(self.build_progress_page(
                    &conversation,
                    ConversationTab::WhatIf,
                    running.progress,
                ));
            }
            Err(error) => pieces.push(self.render_alert(&error.to_one_line())),
        }
        Ok(self.build_conversation_page(&conversation, ConversationTab::WhatIf, None, pieces))
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

fn render_comparison(compared: &PolicyTable) -> Vec<Markup> {
    let PolicyTable {
        title,
        outcomes,
        rows,
        model,
        source,
    } = compared;
    let rows = rows
        .iter()
        .map(|cells| cells.iter().map(Markup::text).collect());
    let (distinct, equal) = group_equal_outcomes(outcomes);
    let mut pieces = vec![
        Markup::text_element("p", localize_text(format_model_line(model, *source))),
        Markup::text_element("p", localize_text(format_pricing_line(model))),
    ];
    pieces.extend(equal.iter().map(|names| {
        let names = names.join(text!("serve-what-if-between"));
        let sentence = text!("serve-what-if-equal", names);
        Markup::element("p", &[("class", "notice")], [Markup::text(sentence)])
    }));
    let headings = OUTCOME_HEADINGS.map(|heading| to_sentence_case(localize_text(heading)));
    let meanings = outcome_meanings();
    let columns: Vec<_> = headings
        .iter()
        .zip(meanings)
        .enumerate()
        .map(|(index, (heading, meaning))| {
            let column = if index == 0 {
                Column::text(heading)
            } else {
                Column::figure(heading)
            };
            match meaning {
                Some(meaning) => column.explained(meaning),
                None => column,
            }
        })
        .collect();
    pieces.push(Markup::table(&columns, rows));
    // Equal charts beside each other would look like a comparison.
    if distinct.len() > 1 || outcomes.len() == 1 {
        let plot = haft_lab::draw_plot(title, &distinct, &|text| localize_text(text));
        pieces.push(Markup::scroller("wide plot", Markup::inline_svg(&plot)));
    }
    pieces
}

/// Returns the first outcome of each group of equal outcomes, and the names of each group with
/// several.
fn group_equal_outcomes(outcomes: &[PolicyOutcome]) -> (Vec<PolicyOutcome>, Vec<Vec<String>>) {
    let mut groups: Vec<(PolicyOutcome, Vec<String>)> = Vec::new();
    for outcome in outcomes {
        let name = format!("`{}`", outcome.name);
        match groups
            .iter_mut()
            .find(|(first, _)| first.requests == outcome.requests)
        {
            Some((_, names)) => names.push(name),
            None => groups.push((outcome.clone(), vec![name])),
        }
    }
    let equal = groups.iter().map(|(_, names)| names.clone());
    let equal = equal.filter(|names| names.len() > 1).collect();
    (groups.into_iter().map(|(first, _)| first).collect(), equal)
}

/// Returns the explanations of [`OUTCOME_HEADINGS`], in the same order.
fn outcome_meanings() -> [Option<&'static str>; OUTCOME_HEADINGS.len()] {
    [
        None,
        None,
        Some(text!("serve-what-if-tokens")),
        Some(text!("serve-what-if-read")),
        Some(text!("serve-what-if-written")),
        Some(text!("serve-what-if-fresh")),
        Some(text!("serve-what-if-cost")),
        Some(text!("serve-what-if-against")),
        Some(text!("serve-what-if-rereads")),
        Some(text!("serve-what-if-peak")),
        Some(text!("serve-what-if-breaks")),
        Some(text!("serve-what-if-archives")),
        Some(text!("serve-what-if-regret")),
        Some(text!("serve-what-if-blind")),
        Some(text!("serve-what-if-unseen")),
        Some(text!("serve-what-if-must-keep")),
    ]
}

#[cfg(test)]
mod tests {
    use haft_lab::RequestOutcome;
    use haft_types::Usage;

    use super::*;

    #[test]
    fn equal_outcomes_are_one_group() {
        let outcome = |name: &str, inputs: &[u64]| {
            let mut outcome = PolicyOutcome::new(name);
            for input in inputs {
                outcome.requests.push(RequestOutcome {
                    usage: Usage {
                        input: *input,
                        ..Usage::default()
                    },
                    cost: None,
                });
            }
            outcome
        };
        let outcomes = [
            outcome("default", &[1, 2]),
            outcome("none", &[1, 3]),
            outcome("tail", &[1, 2]),
        ];
        let (distinct, equal) = group_equal_outcomes(&outcomes);
        let names: Vec<_> = distinct.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["default", "none"]);
        assert_eq!(equal, [["`default`", "`tail`"]]);
    }
}
