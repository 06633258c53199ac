//! Collects the servers that the user, a trusted project, and a command line declare.
//!
//! Invariant: a declaration that cannot be used becomes a [`ServerProblem`] with its file and key,
//! and doesn't affect the other servers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft_text::NameRule;

use crate::config::{ServerConfig, ServerNetwork, ServerReach, ServerSandbox};
use crate::mcp_json;
use crate::server::{
    Oauth, ServerConfinement, ServerDefinition, ServerEndpoint, ServerLink, ServerOrigin,
    ServerProblem,
};

/// The `.mcp.json` of a trusted project, or JSON in its format.
#[derive(Clone, Copy, Debug)]
pub struct ProjectFile<'a> {
    /// The path of the file, for messages.
    pub path: &'a Path,
    /// The content of the file.
    pub text: &'a str,
}

/// The usable and the disabled servers among those declared, and the problems of the remaining
/// declarations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    /// The servers that can be used, ordered by name.
    pub servers: Vec<ServerDefinition>,
    /// The names of the servers that are declared but disabled, in alphabetical order.
    pub disabled: Vec<String>,
    /// The server declarations that cannot be used, each with the reason.
    pub problems: Vec<ServerProblem>,
    /// Warnings about ignored settings in otherwise valid declarations.
    pub warnings: Vec<String>,
}

/// Collects the servers that the user's configuration and the project's file declare. If both
/// declare a server of one name, the user's declaration wins.
///
/// `root` is the folder for relative paths, and the working directory of programs without a `cwd`.
/// `variable` looks up an environment variable.
pub fn gather_declared(
    user: &BTreeMap<String, ServerConfig>,
    user_file: &Path,
    project: Option<ProjectFile<'_>>,
    root: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Gathered {
    let mut gathered = Gathered::default();
    for (name, config) in user {
        let place = DeclarationPlace {
            file: user_file,
            section: format!("mcp_servers.{name}"),
        };
        gathered.add_server(name, config, ServerOrigin::User, &place, root, variable);
    }
    let Some(ProjectFile { path, text }) = project else {
        return gathered;
    };
    let entries = match mcp_json::parse_entries(text, variable) {
        Ok(entries) => entries,
        Err((key, reason)) => {
            let place = DeclarationPlace {
                file: path,
                section: String::new(),
            };
            gathered.problems.push(ServerProblem {
                server: "*".into(),
                place: place.describe_key(&key),
                reason,
            });
            return gathered;
        }
    };
    let taken: BTreeSet<String> = user.keys().cloned().collect();
    for (name, entry) in entries
        .into_iter()
        .filter(|(name, _)| !taken.contains(name))
    {
        let place = DeclarationPlace {
            file: path,
            section: format!("mcpServers.{name}"),
        };
        match entry {
            Ok(config) => gathered.add_server(
                &name,
                &config,
                ServerOrigin::Project,
                &place,
                root,
                variable,
            ),
            Err((key, reason)) => {
                gathered.problems.push(ServerProblem {
                    server: name,
                    place: place.describe_key(&key),
                    reason,
                });
            }
        }
    }
    gathered
        .servers
        .sort_by(|one, other| one.name.cmp(&other.name));
    gathered.disabled.sort();
    gathered
}

/// Adds the servers that a command line declares in the format of `.mcp.json`. An added server
/// replaces an earlier server of that name. `link` connects to servers of the type `sdk`; without
/// `link`, servers of this type become problems.
pub fn gather_given_servers(
    gathered: &mut Gathered,
    given: ProjectFile<'_>,
    link: Option<&Arc<dyn ServerLink>>,
    root: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) {
    let place = |section: String| DeclarationPlace {
        file: given.path,
        section,
    };
    let (ours, linked) = match mcp_json::parse_given_entries(given.text, variable) {
        Ok(read) => read,
        Err((key, reason)) => {
            let place = place(String::new()).describe_key(&key);
            gathered.problems.push(ServerProblem {
                server: "*".into(),
                place,
                reason,
            });
            return;
        }
    };
    for name in linked {
        gathered.servers.retain(|server| server.name != name);
        match link {
            Some(link) if NameRule::Server.allows(&name) => {
                gathered
                    .servers
                    .push(ServerDefinition::new_linked(&name, Arc::clone(link)));
            }
            _ => gathered.problems.push(ServerProblem {
                place: place(format!("mcpServers.{name}")).describe_key("type"),
                server: name,
                reason: "nobody speaks with it, or its name cannot be used".to_owned(),
            }),
        }
    }
    for (name, entry) in ours {
        gathered.servers.retain(|server| server.name != name);
        let place = place(format!("mcpServers.{name}"));
        match entry {
            Ok(config) => {
                gathered.add_server(&name, &config, ServerOrigin::User, &place, root, variable);
            }
            Err((key, reason)) => {
                gathered.problems.push(ServerProblem {
                    server: name,
                    place: place.describe_key(&key),
                    reason,
                });
            }
        }
    }
    gathered
        .servers
        .sort_by(|one, other| one.name.cmp(&other.name));
}

/// The file and the section of a declaration, for messages.
struct DeclarationPlace<'a> {
    file: &'a Path,
    section: String,
}

impl DeclarationPlace<'_> {
    fn describe_key(&self, key: &str) -> String {
        let dotted: Vec<_> = [self.section.as_str(), key]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        match dotted.as_slice() {
            [] => format!("`{}`", self.file.display()),
            parts => format!("`{}`, key `{}`", self.file.display(), parts.join(".")),
        }
    }
}

impl Gathered {
    fn add_server(
        &mut self,
        name: &str,
        config: &ServerConfig,
        origin: ServerOrigin,
        place: &DeclarationPlace<'_>,
        root: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) {
        if !config.enabled {
            self.disabled.push(name.to_owned());
            return;
        }
        let made = if NameRule::Server.allows(name) {
            resolve_endpoint(config, origin, root, variable)
                .and_then(|reach| Ok((reach, resolve_oauth(config, variable)?)))
        } else {
            let reason =
                "a name has at most 64 letters, digits, `-`, `.` and single `_`; choose another";
            Err((String::new(), reason.to_owned()))
        };
        let (confinement, asks) = resolve_confinement(config, origin, root);
        if config.sandbox == Some(ServerSandbox::Switch(false))
            && confinement != ServerConfinement::Never
        {
            let place = place.describe_key("sandbox");
            self.warnings.push(format!(
                "{place}: only your own configuration can say `false`; `{name}` runs confined"
            ));
        }
        match made {
            Ok((reach, oauth)) => self.servers.push(ServerDefinition {
                name: name.to_owned(),
                origin,
                endpoint: reach,
                confinement,
                requested_reach: asks,
                timeout: Duration::from_secs(config.timeout.max(1)),
                startup_timeout: Duration::from_secs(config.startup_timeout.max(1)),
                protocol: config.protocol,
                filter: config.tools.clone(),
                permission: config.permission,
                oauth,
            }),
            Err((key, reason)) => {
                self.problems.push(ServerProblem {
                    server: name.to_owned(),
                    place: place.describe_key(&key),
                    reason,
                });
            }
        }
    }
}

/// Returns the confinement of a server and the additional access that its `sandbox` setting
/// requests. A project's declaration cannot turn the sandbox off.
fn resolve_confinement(
    config: &ServerConfig,
    origin: ServerOrigin,
    root: &Path,
) -> (ServerConfinement, ServerReach) {
    let configured = config.sandbox.as_ref();
    let mut asks = match configured {
        Some(ServerSandbox::With(reach)) => reach.clone(),
        Some(ServerSandbox::Switch(_)) | None => ServerReach::default(),
    };
    asks.uses_default_network = configured.is_none() && config.network.is_none();
    asks.network
        .extend(config.network.iter().flat_map(ServerNetwork::hosts));
    asks.writable.extend(config.writable.iter().cloned());
    for folder in &mut asks.writable {
        if folder.as_path() == Path::new(PROJECT_FOLDER) {
            root.clone_into(folder);
        }
    }
    let confinement = match (origin, configured) {
        (ServerOrigin::Project, _) | (ServerOrigin::User, None) => ServerConfinement::Default,
        (ServerOrigin::User, Some(ServerSandbox::Switch(false))) => ServerConfinement::Never,
        (ServerOrigin::User, Some(ServerSandbox::Switch(true) | ServerSandbox::With(_))) => {
            ServerConfinement::Always
        }
    };
    (confinement, asks)
}

/// The value of `cwd` and `writable` that stands for the project's root.
const PROJECT_FOLDER: &str = "project";

/// True if the program, an argument, or a variable is the relative path of an existing file or
/// folder in the project, so that the server has to run in the project.
fn refers_to_project_file(program: &str, config: &ServerConfig, root: &Path) -> bool {
    let is_entry = |word: &str| {
        let path = Path::new(word);
        !word.is_empty() && !word.starts_with('-') && path.is_relative() && root.join(path).exists()
    };
    let values = config.env.values();
    let words = config.args.iter().chain(values).flat_map(|word| {
        let value = word.split_once('=').map(|(_, value)| value);
        std::iter::once(word.as_str()).chain(value)
    });
    program.contains('/') && is_entry(program) || words.into_iter().any(is_entry)
}

fn resolve_oauth(
    config: &ServerConfig,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Oauth, (String, String)> {
    let given = &config.oauth;
    let client_secret = match &given.client_secret_env {
        None => None,
        Some(name) => {
            let unset = || {
                (
                    "oauth.client_secret_env".to_owned(),
                    format!("the variable `{name}` is not set; set it"),
                )
            };
            Some(
                variable(name)
                    .filter(|secret| !secret.is_empty())
                    .ok_or_else(unset)?,
            )
        }
    };
    Ok(Oauth {
        client_id: given.client_id.clone(),
        client_secret,
        metadata_url: given.client_metadata_url.clone(),
        scopes: given.scopes.clone(),
    })
}

fn resolve_endpoint(
    config: &ServerConfig,
    origin: ServerOrigin,
    root: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<ServerEndpoint, (String, String)> {
    let error = |key: &str, reason: &str| Err((key.to_owned(), reason.to_owned()));
    let non_blank = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    match (non_blank(&config.command), non_blank(&config.url)) {
        (None, None) => error("", "it has neither `command` nor `url`; give one of them"),
        (Some(_), Some(_)) => error("url", "it has both `command` and `url`; give one of them"),
        (Some(program), None) => {
            if !config.headers.is_empty() || config.bearer_token_env.is_some() {
                return error(
                    "headers",
                    "headers and tokens are for servers with a `url`; use `env`",
                );
            }
            if let Some(name) = config
                .env
                .keys()
                .find(|name| name.is_empty() || name.contains(['=', '\0']))
            {
                return error("env", &format!("`{name}` is not the name of a variable"));
            }
            let home = || variable("HOME").map(PathBuf::from);
            let cwd = match config.cwd.as_deref() {
                None | Some(PROJECT_FOLDER) => root.to_owned(),
                Some(cwd) => match (cwd.strip_prefix("~/"), home()) {
                    (Some(below), Some(home)) => home.join(below),
                    (Some(_) | None, _) => root.join(cwd),
                },
            };
            let env = config
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            let starts_apart = origin == ServerOrigin::User
                && config.cwd.is_none()
                && !refers_to_project_file(&program, config, root);
            Ok(ServerEndpoint::Command {
                program,
                args: config.args.clone(),
                env,
                cwd,
                starts_apart,
            })
        }
        (None, Some(url)) => {
            let has_reach = config.network.is_some() || !config.writable.is_empty();
            if has_reach || !matches!(config.sandbox, None | Some(ServerSandbox::Switch(false))) {
                return error(
                    "sandbox",
                    "a sandbox is for servers with a `command`; take it out",
                );
            }
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return error("url", "it must begin with `http://` or `https://`");
            }
            let bearer = match &config.bearer_token_env {
                None => None,
                Some(name) => match variable(name).filter(|token| !token.trim().is_empty()) {
                    Some(token) => Some(token.trim().to_owned()),
                    None => {
                        return error(
                            "bearer_token_env",
                            &format!("the variable `{name}` is not set; set it"),
                        );
                    }
                },
            };
            let headers = config
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            Ok(ServerEndpoint::Http {
                url,
                headers,
                bearer,
            })
        }
    }
}

#[cfg(test)]
mod tests;
