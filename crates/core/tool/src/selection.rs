//! Which tools are offered: names, other names, groups, profiles.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Access, Group, Registry, Set, Tool};

/// The tools that do most of the work, for models with a small window.
const MINIMAL: [&str; 7] = [
    "read_file", "write_to_file", "replace_in_file", "list_files", "search_files", "execute_command",
    "attempt_completion",
];

/// Profiles that are built in.
pub const PROFILES: [&str; 3] = ["default", "minimal", "read-only"];

/// Not the name of a tool, a group or a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` is not a tool, a group or a profile; there are the tools {tools}, the groups {groups}, and the profiles {profiles}"
)]
pub struct UnknownChoice {
    /// What was given.
    pub name: String,
    tools: String,
    groups: String,
    profiles: String,
}

/// What is wanted of each tool, by its name.
#[derive(Default)]
struct ToolSelection(BTreeMap<String, Extent>);

/// How much of a tool is wanted.
enum Extent {
    Whole,
    /// What these names stand for.
    Parts(Vec<String>),
}

impl ToolSelection {
    fn whole(&mut self, tool: &dyn Tool) {
        self.0.insert(tool.spec().name.clone(), Extent::Whole);
    }

    fn part(&mut self, tool: &dyn Tool, part: &str) {
        let name = tool.spec().name.clone();
        match self.0.entry(name).or_insert_with(|| Extent::Parts(Vec::new())) {
            Extent::Whole => {}
            Extent::Parts(parts) => parts.push(part.to_owned()),
        }
    }

    /// As much of a tool as is wanted.
    fn of(&self, tool: &Arc<dyn Tool>) -> Option<Arc<dyn Tool>> {
        let own = tool.spec().name.as_str();
        // What tells of another tool must not tell more than that one may do, even where it is chosen whole itself.
        match self.0.get(tool.narrowed_with().unwrap_or(own)) {
            Some(Extent::Parts(parts)) => tool.narrowed(parts),
            Some(Extent::Whole) | None => self.0.contains_key(own).then(|| Arc::clone(tool)),
        }
    }
}

impl Registry {
    /// Keeps only what is wanted: tools by name or alias, groups, profiles, `*` for everything, `none` for nothing. A name that
    /// stands for a part of a tool keeps that part; several keep all they stand for, unless the whole tool is wanted as well. An
    /// empty list is the default set.
    pub fn select(&mut self, wanted: &[String], profiles: &BTreeMap<String, Vec<String>>) -> Result<(), UnknownChoice> {
        let default = ["default".to_owned()];
        let wanted = if wanted.is_empty() { &default } else { wanted };
        let mut chosen = ToolSelection::default();
        for choice in wanted {
            self.choose(choice, profiles, &mut chosen)?;
        }
        self.rework(|tool| chosen.of(tool));
        Ok(())
    }

    fn choose(
        &self,
        choice: &str,
        profiles: &BTreeMap<String, Vec<String>>,
        chosen: &mut ToolSelection,
    ) -> Result<(), UnknownChoice> {
        // The user's profiles hold tools, groups and built-in profiles, not each other: nothing can go in circles.
        if let Some(profile) = profiles.get(choice) {
            return profile.iter().try_for_each(|choice| self.choose(choice, &BTreeMap::new(), chosen));
        }
        let mut all = |wanted: &dyn Fn(&dyn Tool) -> bool| {
            self.iter().filter(|tool| wanted(tool.as_ref())).for_each(|tool| chosen.whole(tool.as_ref()));
        };
        if let Some(found) = self.called(choice) {
            chosen.whole(found.tool.as_ref());
        } else if let Some(group) = Group::ALL.into_iter().find(|group| group.name() == choice) {
            all(&|tool| tool.manual().group == group);
        } else {
            match choice {
                "*" => all(&|_| true),
                "none" => {}
                "default" => all(&|tool| tool.manual().set == Set::Default),
                "minimal" => all(&|tool| MINIMAL.contains(&tool.spec().name.as_str())),
                "read-only" => all(&|tool| matches!(tool.access(), Access::Read | Access::State)),
                part => return self.choose_part(part, chosen).ok_or_else(|| self.unknown(choice, profiles)),
            }
        }
        Ok(())
    }

    /// Chooses what a name stands for, of every tool it stands for a part of; none where there is no such tool.
    fn choose_part(&self, part: &str, chosen: &mut ToolSelection) -> Option<()> {
        let name = [part.to_owned()];
        let has_it = |tool: &&Arc<dyn Tool>| tool.narrowed_with().is_none() && tool.narrowed(&name).is_some();
        let mut found = None;
        for tool in self.iter().filter(has_it) {
            chosen.part(tool.as_ref(), part);
            found = Some(());
        }
        found
    }

    fn unknown(&self, name: &str, profiles: &BTreeMap<String, Vec<String>>) -> UnknownChoice {
        let profiles: Vec<_> = PROFILES.into_iter().chain(profiles.keys().map(String::as_str)).collect();
        UnknownChoice {
            name: name.to_owned(),
            tools: self.iter().map(|tool| tool.spec().name.as_str()).collect::<Vec<_>>().join(", "),
            groups: Group::ALL.map(Group::name).join(", "),
            profiles: profiles.join(", "),
        }
    }
}
