//! Detects that a command failed because of the sandbox, and says how it could succeed.
//!
//! The proxy reports the hosts that it refused. Other refusals are recognized by the messages of the
//! operating system and of common programs.

use haft_sandbox::{ConfinementSpec, Network};

/// The messages of programs that find no network.
const NO_NETWORK_MESSAGES: [&str; 11] = [
    "could not resolve host",
    "temporary failure in name resolution",
    "name or service not known",
    "no address associated with hostname",
    "network is unreachable",
    "failed to lookup address",
    "dns error",
    "getaddrinfo",
    "no such host",
    "could not resolve proxy",
    "unable to resolve host",
];
/// The messages of programs that may not write.
const READ_ONLY_MESSAGES: [&str; 3] = ["read-only file system", "erofs", "os error 30"];

/// The sandbox of a command, after the command has ended.
#[derive(Clone, Debug)]
pub(super) struct CommandSandbox {
    network: Network,
    /// The hosts that the proxy refused while the command ran, as `HOST:PORT`.
    refused_hosts: Vec<String>,
}

/// The part of the sandbox that made a command fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SandboxRefusal {
    /// The proxy refused these hosts.
    Hosts(Vec<String>),
    /// There is no network.
    NoNetwork,
    /// The network is reached only through the proxy.
    OnlyProxy,
    /// A file may not be written.
    ReadOnly,
}

impl CommandSandbox {
    pub(super) fn new(confined: &ConfinementSpec, refused_hosts: Vec<String>) -> Self {
        Self {
            network: confined.policy.network.clone(),
            refused_hosts,
        }
    }

    /// Returns the refusal that explains the failure of a command with this output, if there is
    /// one.
    pub(super) fn find_refusal(&self, output: &str) -> Option<SandboxRefusal> {
        if !self.refused_hosts.is_empty() {
            return Some(SandboxRefusal::Hosts(self.refused_hosts.clone()));
        }
        let output = output.to_lowercase();
        let mentions = |messages: &[&str]| messages.iter().any(|message| output.contains(message));
        match self.network {
            Network::None if mentions(&NO_NETWORK_MESSAGES) => Some(SandboxRefusal::NoNetwork),
            Network::Through(_) if mentions(&NO_NETWORK_MESSAGES) => {
                Some(SandboxRefusal::OnlyProxy)
            }
            Network::None | Network::Through(_) | Network::All => {
                mentions(&READ_ONLY_MESSAGES).then_some(SandboxRefusal::ReadOnly)
            }
        }
    }
}

impl SandboxRefusal {
    /// Returns a stable name for programs.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Hosts(_) => "hosts",
            Self::NoNetwork | Self::OnlyProxy => "network",
            Self::ReadOnly => "write",
        }
    }

    /// Returns the explanation for the user and the model, with the way out.
    pub(super) fn hint(&self) -> String {
        let outside = "If the task needs it, send the call again with `sandbox` set to `outside`, which asks the user.";
        match self {
            Self::Hosts(hosts) => {
                let named: Vec<_> = hosts.iter().map(|host| format!("`{host}`")).collect();
                let hosts = named.join(", ");
                format!(
                    "The sandbox refused the network access to {hosts}. {outside} The user can add hosts to `[sandbox] network`."
                )
            }
            Self::NoNetwork => format!(
                "The sandbox has no network. {outside} The user can add hosts to `[sandbox] network`."
            ),
            Self::OnlyProxy => format!(
                "The sandbox reaches the network only through the proxy in `http_proxy` and `https_proxy`. {outside} The user can add hosts to `[sandbox] network`."
            ),
            Self::ReadOnly => format!(
                "The sandbox keeps commands from writing there. {outside} The user can add folders to `[sandbox] writable`."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox(network: Network, refused: &[&str]) -> CommandSandbox {
        CommandSandbox {
            network,
            refused_hosts: refused.iter().map(|host| (*host).to_owned()).collect(),
        }
    }

    #[test]
    fn find_refusal_recognizes_messages_of_programs() {
        let closed = sandbox(Network::None, &[]);
        let proxied = sandbox(Network::Through("/x".into()), &[]);
        let open = sandbox(Network::All, &[]);
        for output in [
            "curl: (6) Could not resolve host: example.com",
            "ping: example.com: Temporary failure in name resolution",
            "socket.gaierror: [Errno -3] Temporary failure in name resolution",
            "dial tcp: lookup proxy.golang.org: no such host",
            "npm error code EAI_AGAIN\nnpm error errno EAI_AGAIN getaddrinfo EAI_AGAIN",
            "connect: Network is unreachable",
        ] {
            assert_eq!(
                closed.find_refusal(output),
                Some(SandboxRefusal::NoNetwork),
                "{output}"
            );
            assert_eq!(
                proxied.find_refusal(output),
                Some(SandboxRefusal::OnlyProxy),
                "{output}"
            );
            assert_eq!(open.find_refusal(output), None, "{output}");
        }
        for output in [
            "fatal: Unable to create '/p/.git/index.lock': Read-only file system",
            "OSError: [Errno 30] Read-only file system: '/usr/x'",
            "Error: EROFS: read-only file system, open '/x'",
        ] {
            for sandbox in [&closed, &proxied, &open] {
                assert_eq!(
                    sandbox.find_refusal(output),
                    Some(SandboxRefusal::ReadOnly),
                    "{output}"
                );
            }
        }
        assert_eq!(closed.find_refusal("2 tests failed"), None);
        let refused = sandbox(Network::Through("/x".into()), &["a.example:443"]);
        assert_eq!(
            refused.find_refusal("curl: (56) CONNECT tunnel failed, response 403"),
            Some(SandboxRefusal::Hosts(vec!["a.example:443".to_owned()]))
        );
    }
}
