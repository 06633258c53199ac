//! Converts between local and shared names of a project. The local name is a path, which is unique
//! only on one machine.

use haft_store::ConversationScope;
use haft_store::backend::OwnedScope;

/// The local name of a project and its name on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectName {
    /// The local name, which is the path of the project's folder. Code above the store uses this
    /// name.
    pub local: String,
    /// The name on the server, which all hosts use.
    pub shared: String,
}

impl ProjectName {
    /// Returns the server's name for the local `namespace`.
    pub(crate) fn to_shared(&self, namespace: &str) -> String {
        replace_project(namespace, &self.local, &self.shared)
    }

    /// Returns the local name for the server's `namespace`.
    pub(crate) fn to_local(&self, namespace: &str) -> String {
        replace_project(namespace, &self.shared, &self.local)
    }
}

/// Returns the scopes on the server that have to be searched for the local `scope`. The project's
/// folder is among them, because conversations that were stored before projects had shared names
/// are still listed under it.
pub(crate) fn scopes_to_search(
    name: Option<&ProjectName>,
    scope: ConversationScope<'_>,
) -> Vec<OwnedScope> {
    let own = OwnedScope::from(scope);
    match (name, own.namespace()) {
        (Some(name), Some(namespace)) if name.to_shared(namespace) != namespace => {
            vec![OwnedScope::Namespace(name.to_shared(namespace)), own]
        }
        _ => vec![own],
    }
}

/// Replaces the project's name in a namespace, and keeps the suffix that the namespaces of
/// sub-agents and workflows have. The suffix begins with `#`.
fn replace_project(namespace: &str, from: &str, to: &str) -> String {
    match namespace.strip_prefix(from) {
        Some(rest) if rest.is_empty() || rest.starts_with('#') => format!("{to}{rest}"),
        _ => namespace.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_maps_the_projects_folder_to_its_shared_name() {
        let name = ProjectName {
            local: "/home/a/x".into(),
            shared: "example.com/x".into(),
        };
        for (here, shared) in [
            ("/home/a/x", "example.com/x"),
            ("/home/a/x#agents", "example.com/x#agents"),
            ("/home/a/xy", "/home/a/xy"),
            ("/home/a/x/y", "/home/a/x/y"),
            ("proxy", "proxy"),
        ] {
            assert_eq!(name.to_shared(here), shared);
            assert_eq!(name.to_local(shared), here);
        }
    }

    #[test]
    fn places_include_the_folder_used_before_the_shared_name() {
        let name = ProjectName {
            local: "/x".into(),
            shared: "example.com/x".into(),
        };
        let of = |scope| {
            scopes_to_search(Some(&name), scope)
                .iter()
                .map(|one| one.namespace().map(str::to_owned))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of(ConversationScope::Namespace("/x")),
            [Some("example.com/x".into()), Some("/x".into())]
        );
        assert_eq!(of(ConversationScope::Namespace("/y")), [Some("/y".into())]);
        assert_eq!(of(ConversationScope::Everywhere), [None]);
    }
}
