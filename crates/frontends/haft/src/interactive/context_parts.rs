//! `/context`: shows the parts of the next request, and the fill levels at which messages are
//! pruned and archived.

use haft_context::ShareOf;
use haft_text::format_thousands;
use haft_tui::{ContextPart, ContextParts};
use haft_types::{Layer, Segment, ToolSpec};

use super::TuiSession;

impl TuiSession<'_> {
    /// Returns the parts of the next request, or `None` before there is a conversation.
    pub(super) fn context_parts(&self) -> Option<ContextParts> {
        let session = self.session.as_ref()?;
        let next = session.preview_next_request()?;
        let request = &next.request;
        let budget = &next.account.budget;
        let part = |layer, name: &str, about: String, tokens: u64| {
            let name = name.to_owned();
            ContextPart {
                layer,
                name,
                about,
                tokens,
            }
        };
        let segments_of = |layer| {
            request
                .segments
                .iter()
                .filter(move |segment| segment.layer == layer)
                .collect::<Vec<_>>()
        };
        let tokens = |segments: &[&Segment]| {
            segments
                .iter()
                .map(|one| u64::from(one.entry.tokens))
                .sum::<u64>()
        };
        let (servers, own): (Vec<_>, Vec<_>) = request
            .tools
            .specs
            .iter()
            .partition(|spec| is_mcp_tool(spec));
        let all = u64::from(request.tools.tokens);
        let of_servers = byte_share(&servers, &request.tools.specs);
        let of_servers = (all as f64 * of_servers).round() as u64;
        let documents: Vec<_> = session
            .documents()
            .map(|(heading, ..)| heading.to_owned())
            .collect();
        let system = segments_of(Layer::System);
        let rules = segments_of(Layer::Documents);
        let reminders = segments_of(Layer::Reminders);
        let messages = [segments_of(Layer::History), segments_of(Layer::Current)].concat();
        let mut parts = vec![
            part(
                Layer::System,
                text!("interactive-context-prompt"),
                String::new(),
                tokens(&system),
            ),
            part(
                Layer::System,
                text!("interactive-context-tools"),
                text!("interactive-context-tool-count", count = own.len()),
                all - of_servers,
            ),
            part(
                Layer::System,
                text!("interactive-context-mcp"),
                text!("interactive-context-tool-count", count = servers.len()),
                of_servers,
            ),
            part(
                Layer::Documents,
                text!("interactive-context-rules"),
                documents.join(", "),
                tokens(&rules),
            ),
            part(
                Layer::History,
                text!("interactive-context-messages"),
                text!("interactive-context-message-count", count = messages.len()),
                tokens(&messages),
            ),
            part(
                Layer::Reminders,
                text!("interactive-context-reminders"),
                String::new(),
                tokens(&reminders),
            ),
        ];
        // The tokens are scaled to the model's own count, which the status line shows and pruning
        // uses.
        let used = budget.used_tokens() as f64;
        let counted = parts.iter().map(|part| part.tokens).sum::<u64>();
        for part in &mut parts {
            part.tokens = (part.tokens as f64 * used / counted.max(1) as f64).round() as u64;
        }
        // Empty parts are shown, except reminders.
        parts.retain(|part| part.tokens > 0 || part.layer != Layer::Reminders);
        let notes = self.describe_fill_levels(budget.window);
        Some(ContextParts {
            parts,
            reserve: budget.output_reserve,
            window: budget.window,
            notes,
        })
    }

    /// Describes how full the window is when messages are pruned, and when they are archived.
    fn describe_fill_levels(&self, window: u64) -> Vec<String> {
        let Some(session) = &self.session else {
            return Vec::new();
        };
        let policy = &self.settings.config.context;
        let model = session.model();
        let usable = f64::from(policy.usable_window(model));
        let whole = match policy.compact_of {
            ShareOf::Usable => usable,
            ShareOf::Window => window as f64,
        };
        let at = |tokens: f64| {
            (
                format!("{:.0}%", tokens * 100.0 / window.max(1) as f64),
                format_thousands(tokens as u64),
            )
        };
        let (pruned, zone) = at(policy
            .safe_zone_tokens(model)
            .map_or(usable, |tokens| tokens as f64));
        let (archived, archive) = at(policy.compact_at * whole);
        vec![
            text!(
                "interactive-context-pruned",
                percent = pruned,
                tokens = zone
            ),
            text!(
                "interactive-context-archived",
                percent = archived,
                tokens = archive
            ),
        ]
    }
}

/// Returns true if a tool belongs to an MCP server, or calls MCP servers, such as `use_mcp_tool`.
fn is_mcp_tool(spec: &ToolSpec) -> bool {
    spec.name.starts_with("mcp__") || spec.name.contains("_mcp_")
}

/// Returns the share that the tools in `some` have in the bytes of all tools, from 0 to 1.
fn byte_share(some: &[&ToolSpec], all: &[ToolSpec]) -> f64 {
    let bytes = |spec: &ToolSpec| {
        spec.name.len() + spec.description.len() + spec.parameters.to_string().len()
    };
    let whole: usize = all.iter().map(bytes).sum();
    some.iter().map(|spec| bytes(spec)).sum::<usize>() as f64 / whole.max(1) as f64
}
