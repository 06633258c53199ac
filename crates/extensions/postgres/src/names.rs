//! Converts between local and shared names of a project. Its path is unique only on one machine.

use haft_store::ConversationScope;
use haft_store::backend::OwnedScope;

/// The two names of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectName {
    /// The local name, which is the path of the project's folder. Code above the store uses this
    /// name.
    pub here: String,
    /// The name on the server, which all hosts use.
    pub shared: String,
}

impl ProjectName {
    /// Returns the name of `namespace` on the server.
    pub(crate) fn stored(&self, namespace: &str) -> String {
        replaced(namespace, &self.here, &self.shared)
    }

    /// Returns the local name of a namespace on the server.
    pub(crate) fn shown(&self, namespace: &str) -> String {
        replaced(namespace, &self.shared, &self.here)
    }
}

/// Returns the scopes to search for `scope`. Conversations from before projects had a shared name
/// are still under the project's folder.
pub(crate) fn places(name: Option<&ProjectName>, scope: ConversationScope<'_>) -> Vec<OwnedScope> {
    let own = OwnedScope::from(scope);
    match (name, own.namespace()) {
        (Some(name), Some(namespace)) if name.stored(namespace) != namespace => {
            vec![OwnedScope::Namespace(name.stored(namespace)), own]
        }
        _ => vec![own],
    }
}

/// Replaces the project's name in a namespace. The namespaces of sub-agents and workflows have a
/// suffix that begins with `#`.
fn replaced(namespace: &str, from: &str, to: &str) -> String {
    match namespace.strip_prefix(from) {
        Some(rest) if rest.is_empty() || rest.starts_with('#') => format!("{to}{rest}"),
        _ => namespace.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_its_shared_name_and_others_are_what_they_are() {
        let name = ProjectName {
            here: "/home/a/x".into(),
            shared: "example.com/x".into(),
        };
        for (here, shared) in [
            ("/home/a/x", "example.com/x"),
            ("/home/a/x#agents", "example.com/x#agents"),
            ("/home/a/xy", "/home/a/xy"),
            ("/home/a/x/y", "/home/a/x/y"),
            ("proxy", "proxy"),
        ] {
            assert_eq!(name.stored(here), shared);
            assert_eq!(name.shown(shared), here);
        }
    }

    #[test]
    fn what_was_kept_under_the_folder_is_looked_for_too() {
        let name = ProjectName {
            here: "/x".into(),
            shared: "example.com/x".into(),
        };
        let of = |scope| {
            places(Some(&name), scope)
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
