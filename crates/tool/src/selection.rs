//! Which tools are offered: names, other names, groups, profiles.

use std::collections::BTreeMap;

use crate::{Access, Group, Registry, Set, Tool};

/// The tools that do most of the work, for models with a small window.
const MINIMAL: [&str; 7] = [
    "read_file",
    "write_to_file",
    "replace_in_file",
    "list_files",
    "search_files",
    "execute_command",
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

impl Registry {
    /// Keeps only what is wanted: tools by name or alias, groups, profiles, `*` for everything, `none` for nothing. An empty
    /// list is the default set.
    pub fn select(&mut self, wanted: &[String], profiles: &BTreeMap<String, Vec<String>>) -> Result<(), UnknownChoice> {
        let default = ["default".to_owned()];
        let wanted = if wanted.is_empty() { &default } else { wanted };
        let mut names = Vec::new();
        for choice in wanted {
            self.choose(choice, profiles, &mut names)?;
        }
        self.retain(|tool| names.iter().any(|name| *name == tool.spec().name));
        Ok(())
    }

    fn choose(
        &self,
        choice: &str,
        profiles: &BTreeMap<String, Vec<String>>,
        names: &mut Vec<String>,
    ) -> Result<(), UnknownChoice> {
        // The user's profiles hold tools, groups and built-in profiles, not each other: nothing can go in circles.
        if let Some(profile) = profiles.get(choice) {
            return profile.iter().try_for_each(|choice| self.choose(choice, &BTreeMap::new(), names));
        }
        let mut all = |wanted: &dyn Fn(&dyn Tool) -> bool| {
            let found = self.iter().filter(|tool| wanted(tool.as_ref()));
            names.extend(found.map(|tool| tool.spec().name.clone()));
        };
        if let Some(found) = self.resolve(choice) {
            names.push(found.tool.spec().name.clone());
        } else if let Some(group) = Group::ALL.into_iter().find(|group| group.name() == choice) {
            all(&|tool| tool.manual().group == group);
        } else {
            match choice {
                "*" => all(&|_| true),
                "none" => {}
                "default" => all(&|tool| tool.manual().set == Set::Default),
                "minimal" => all(&|tool| MINIMAL.contains(&tool.spec().name.as_str())),
                "read-only" => all(&|tool| matches!(tool.access(), Access::Read | Access::State)),
                _ => return Err(self.unknown(choice, profiles)),
            }
        }
        Ok(())
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
