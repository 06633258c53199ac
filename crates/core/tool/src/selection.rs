//! The selection of tools by name, alias, group and profile.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::registry::Offer;
use crate::{Access, Availability, Group, Registry, Tool};

/// The tools that are offered to a model with a small window: those that do most of the work.
const MINIMAL_TOOLS: [&str; 8] = [
    "read_file",
    "write_to_file",
    "edit_file",
    "replace_in_file",
    "list_files",
    "search_files",
    "execute_command",
    "attempt_completion",
];

/// The tool that reports the end of a task. This tool is offered to every model with a small
/// window, because an explicit report ends a task more reliably than a reply without calls.
const COMPLETION_TOOL: &str = "attempt_completion";

/// Returns the condition under which the default set of tools offers a tool with this availability.
fn default_offer(set: Availability) -> Offer {
    match set {
        Availability::Default => Offer::Always,
        Availability::Native => Offer::Native,
        Availability::Text => Offer::Text,
        Availability::Extension => Offer::Deferred,
    }
}

/// The names of the built-in profiles.
pub const BUILT_IN_PROFILES: [&str; 4] = ["default", "minimal", "small", "read-only"];

/// Tools that a session has only under a condition: the name, the aliases, and the setting or file
/// that enables the tool.
const CONDITIONAL_TOOLS: [(&str, &[&str], &str); 9] = [
    ("web_crawl", &["WebFetch"], "`web.crawl = true`"),
    (
        "web_search",
        &["WebSearch"],
        "`web.search = \"searxng\"`, `\"brave\"` or `\"tavily\"`",
    ),
    ("use_mcp_tool", &[], "a server, `[mcp_servers.NAME]`"),
    ("use_rag_tool", &[], "a collection, `[rag.NAME]`"),
    (
        "use_skill",
        &["Skill"],
        "a skill, such as `.haft/skills/NAME/SKILL.md`",
    ),
    (
        "plan_mode_respond",
        &["ExitPlanMode"],
        "plan mode, `--permission-mode plan`",
    ),
    (
        "run_named_subagents",
        &["Task"],
        "an agent, such as `.haft/agents/NAME.md`",
    ),
    ("talk_to", &[], "other agents that run beside this one"),
    ("talk_to_group", &[], "a group of agents, `[groups.NAME]`"),
];

/// Finds a conditional tool by name or alias. Returns its name and the setting or file that enables
/// it.
pub fn find_tool_requirement(name: &str) -> Option<(&'static str, &'static str)> {
    let found = CONDITIONAL_TOOLS
        .iter()
        .find(|(tool, aliases, _)| *tool == name || aliases.contains(&name));
    found.map(|(tool, _, need)| (*tool, *need))
}

/// The error for a selection of tools that cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownChoice {
    /// The selection names a tool that the current settings or files do not enable.
    #[error("the tool `{name}` is not available here; it needs {need}")]
    Needs {
        name: &'static str,
        /// The setting or file that enables the tool.
        need: &'static str,
    },
    /// The selection contains a name that is not a tool, a group or a profile.
    #[error(
        "`{name}` is not a tool, a group or a profile; there are the tools {tools}, the groups {groups}, and the profiles {profiles}"
    )]
    Unknown {
        /// The name that is not a tool, a group or a profile.
        name: String,
        /// The names of the existing tools.
        tools: String,
        /// The names of the existing groups.
        groups: String,
        /// The names of the existing profiles.
        profiles: String,
    },
}

/// The extent to which each tool is selected, by the tool's name.
#[derive(Default)]
struct ToolSelection(BTreeMap<String, Extent>);

/// The extent to which a tool is selected.
enum Extent {
    /// The whole tool is selected, with the condition under which it is offered.
    Whole(Offer),
    /// The parts with these names are selected.
    Parts(Vec<String>),
}

impl ToolSelection {
    /// Selects a whole tool. If a tool is selected twice, as offered and as deferred, it is
    /// offered.
    fn add_whole(&mut self, tool: &dyn Tool, offer: Offer) {
        let known = self
            .0
            .insert(tool.spec().name.clone(), Extent::Whole(offer));
        if let Some(Extent::Whole(before @ (Offer::Always | Offer::Native | Offer::Text))) = known
            && offer != Offer::Always
        {
            self.0
                .insert(tool.spec().name.clone(), Extent::Whole(before));
        }
    }

    fn add_part(&mut self, tool: &dyn Tool, part: &str) {
        let name = tool.spec().name.clone();
        match self
            .0
            .entry(name)
            .or_insert_with(|| Extent::Parts(Vec::new()))
        {
            Extent::Whole(_) => {}
            Extent::Parts(parts) => parts.push(part.to_owned()),
        }
    }

    /// Returns the tool, limited to its selected extent, and its offer. Returns `None` if the tool
    /// is not selected.
    fn apply_to(&self, tool: &Arc<dyn Tool>) -> Option<(Arc<dyn Tool>, Offer)> {
        let own = tool.spec().name.as_str();
        // A tool that describes calls of another tool must not reveal more than the other one's
        // limits allow, even if it is itself selected whole.
        let gateway = tool.gateway();
        let narrowed_with = gateway.and_then(|gateway| gateway.narrowed_with());
        if let Some(Extent::Parts(parts)) = self.0.get(narrowed_with.unwrap_or(own)) {
            return Some((gateway?.narrowed(parts)?, Offer::Always));
        }
        let offer = match self.0.get(own)? {
            Extent::Whole(offer) => *offer,
            Extent::Parts(_) => Offer::Always,
        };
        Some((Arc::clone(tool), offer))
    }
}

impl Registry {
    /// Keeps only the selected tools, which are offered. An entry is the name or alias of a tool, a
    /// group, a profile, `*` for everything, or `none` for nothing. An entry that stands for a part
    /// of a tool keeps only that part; several such entries keep all their parts, unless the whole
    /// tool is selected as well. An empty list selects the default set, which defers the tools that
    /// do not belong to it.
    pub fn select_tools(
        &mut self,
        wanted: &[String],
        profiles: &BTreeMap<String, Vec<String>>,
    ) -> Result<(), UnknownChoice> {
        let default = ["default".to_owned()];
        let wanted = if wanted.is_empty() { &default } else { wanted };
        let mut chosen = ToolSelection::default();
        for choice in wanted {
            self.apply_choice(choice, profiles, &mut chosen)?;
        }
        self.filter_map_tools(|tool, _| chosen.apply_to(tool));
        Ok(())
    }

    /// Keeps only the tools that `wanted` selects, and does not change how they are offered.
    /// Unknown names are ignored. No tool is ever added.
    pub fn restrict_tools(&mut self, wanted: &[String], profiles: &BTreeMap<String, Vec<String>>) {
        let mut chosen = ToolSelection::default();
        for choice in wanted {
            // An unknown name selects nothing.
            drop(self.apply_choice(choice, profiles, &mut chosen));
        }
        self.filter_map_tools(|tool, offer| Some((chosen.apply_to(tool)?.0, offer)));
    }

    fn apply_choice(
        &self,
        choice: &str,
        profiles: &BTreeMap<String, Vec<String>>,
        chosen: &mut ToolSelection,
    ) -> Result<(), UnknownChoice> {
        // The user's profiles contain tools, groups and built-in profiles, but not each other, so
        // there are no cycles.
        if let Some(profile) = profiles.get(choice) {
            return profile
                .iter()
                .try_for_each(|choice| self.apply_choice(choice, &BTreeMap::new(), chosen));
        }
        let mut all = |offer: &dyn Fn(&dyn Tool) -> Option<Offer>| {
            for tool in self.iter() {
                let usable = self.is_usable(&tool.spec().name);
                if let Some(offer) = offer(tool.as_ref()) {
                    chosen.add_whole(
                        tool.as_ref(),
                        if usable { offer } else { Offer::Unmentioned },
                    );
                }
            }
        };
        let always = |wanted: bool| wanted.then_some(Offer::Always);
        if let Some(found) = self.find_by_name_or_alias(choice) {
            chosen.add_whole(found.tool.as_ref(), Offer::Always);
        } else if let Some(group) = Group::ALL.into_iter().find(|group| group.name() == choice) {
            all(&|tool| always(tool.manual().group == group));
        } else {
            match choice {
                "*" => all(&|_| Some(Offer::Always)),
                "none" => {}
                "default" => all(&|tool| Some(default_offer(tool.manual().availability))),
                "minimal" => all(&|tool| {
                    let offer = if tool.spec().name == COMPLETION_TOOL {
                        Offer::Always
                    } else {
                        default_offer(tool.manual().availability)
                    };
                    MINIMAL_TOOLS
                        .contains(&tool.spec().name.as_str())
                        .then_some(offer)
                }),
                // The other tools can be called by name, and cost no tokens.
                "small" => all(&|tool| {
                    let offered = MINIMAL_TOOLS.contains(&tool.spec().name.as_str());
                    Some(if offered {
                        default_offer(tool.manual().availability)
                    } else {
                        Offer::Unmentioned
                    })
                }),
                "read-only" => {
                    all(&|tool| always(matches!(tool.access(), Access::Read | Access::State)));
                }
                part => {
                    return self
                        .select_part(part, chosen)
                        .ok_or_else(|| self.unknown_choice(choice, profiles));
                }
            }
        }
        Ok(())
    }

    /// In every tool that has a part with this name, selects that part. Returns `None` if no tool
    /// has such a part.
    fn select_part(&self, part: &str, chosen: &mut ToolSelection) -> Option<()> {
        let name = [part.to_owned()];
        let has_it = |tool: &&Arc<dyn Tool>| {
            tool.gateway().is_some_and(|gateway| {
                gateway.narrowed_with().is_none() && gateway.narrowed(&name).is_some()
            })
        };
        let mut found = None;
        for tool in self.iter().filter(has_it) {
            chosen.add_part(tool.as_ref(), part);
            found = Some(());
        }
        found
    }

    fn unknown_choice(
        &self,
        name: &str,
        profiles: &BTreeMap<String, Vec<String>>,
    ) -> UnknownChoice {
        if let Some((name, need)) = find_tool_requirement(name) {
            return UnknownChoice::Needs { name, need };
        }
        let profiles: Vec<_> = BUILT_IN_PROFILES
            .into_iter()
            .chain(profiles.keys().map(String::as_str))
            .collect();
        UnknownChoice::Unknown {
            name: name.to_owned(),
            tools: self
                .iter()
                .map(|tool| tool.spec().name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
            groups: Group::ALL.map(Group::name).join(", "),
            profiles: profiles.join(", "),
        }
    }
}
