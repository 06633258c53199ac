//! `/view`: switches the layout of requests, after showing the price of the switch.

use haft_context::View;
use haft_engine::Session;
use haft_tui::{ListRequest, Operation, PickerAction, PickerList, PickerRow, UiMessage};

use super::TuiSession;
use crate::output::localize_text;

const VIEWS: [View; 2] = [View::Layered, View::Execute];

impl TuiSession<'_> {
    /// Asks whether to switch to the view with this name, and shows the price of the switch. Before
    /// the first request the switch is free, so it is made at once. Without a name, lists the views.
    pub(super) fn offer_view(&mut self, name: &str) {
        if name.is_empty() {
            let list = list_views(self.settings.config.context.view);
            self.ui.send_message(UiMessage::Pick(list));
            return;
        }
        let is_current = view_name(self.settings.config.context.view) == name;
        let is_known = VIEWS.into_iter().any(|view| view_name(view) == name);
        let quote = self
            .session
            .as_ref()
            .filter(|_| is_known && !is_current)
            .and_then(Session::quote_system_change);
        let Some(quote) = quote else {
            return self.use_view(name);
        };
        let row = |text: &str, then| PickerRow {
            text: text.to_owned(),
            about: String::new(),
            then,
        };
        let list = PickerList {
            title: text!("interactive-view-switch-title", view = name),
            notes: vec![text!(
                "interactive-view-price",
                quote = localize_text(quote)
            )],
            rows: vec![
                row(
                    text!("interactive-view-switch"),
                    PickerAction::Do(Operation::View(name.to_owned())),
                ),
                row(text!("interactive-focus-cancel"), PickerAction::Leave),
            ],
            ..PickerList::default()
        };
        self.ui.send_message(UiMessage::Pick(list));
    }

    /// Switches to the view with this name, in this session and in those that follow it.
    pub(super) fn use_view(&mut self, name: &str) {
        let Some(view) = VIEWS.into_iter().find(|view| view_name(*view) == name) else {
            self.show_text(text!("interactive-view-usage"));
            return;
        };
        self.settings.config.context.view = view;
        if let Some(session) = &mut self.session {
            session.set_view(view);
        }
        self.show_text(&text!("interactive-view-now", view = name));
    }
}

/// Returns the name of a view in the configuration.
fn view_name(view: View) -> &'static str {
    match view {
        View::Layered => "layered",
        View::Execute => "execute",
    }
}

fn list_views(current: View) -> PickerList {
    let row = |view: View| {
        let name = view_name(view).to_owned();
        let about = match view {
            View::Layered => text!("interactive-view-layered"),
            View::Execute => text!("interactive-view-execute"),
        };
        let (text, then) = if view == current {
            let text = text!("interactive-view-current", view = name);
            (text, PickerAction::Leave)
        } else {
            let then = Operation::Offer(ListRequest::View(name.clone()));
            (name, PickerAction::Do(then))
        };
        PickerRow {
            text,
            about: about.to_owned(),
            then,
        }
    };
    PickerList {
        title: text!("interactive-view-title").to_owned(),
        selected: VIEWS.iter().position(|view| *view == current).unwrap_or(0),
        rows: VIEWS.into_iter().map(row).collect(),
        ..PickerList::default()
    }
}
