//! The names of agents, and which of them can read files outside their project.

/// An agent whose requests the proxy recognizes.
struct KnownAgent {
    /// The name that the user writes into the configuration: that of the program.
    name: &'static str,
    /// The product in the `user-agent` header, in lower case.
    products: &'static [&'static str],
    /// True if a tool of the agent can open files in haft's state folder without asking.
    reads_everywhere: bool,
}

/// docs/proxy.md has this table with the reasons.
const AGENTS: [KnownAgent; 9] = [
    KnownAgent {
        name: "codex",
        products: &["codex_cli_rs", "codex_exec", "codex-tui", "codex"],
        reads_everywhere: true,
    },
    KnownAgent {
        name: "goose",
        products: &["goose"],
        reads_everywhere: true,
    },
    KnownAgent {
        name: "claude",
        products: &["claude-cli", "claude-code"],
        reads_everywhere: false,
    },
    KnownAgent {
        name: "gemini",
        products: &["geminicli", "gemini-cli"],
        reads_everywhere: false,
    },
    KnownAgent {
        name: "qwen",
        products: &["qwencode", "qwen-code"],
        reads_everywhere: false,
    },
    KnownAgent {
        name: "opencode",
        products: &["opencode"],
        reads_everywhere: false,
    },
    KnownAgent {
        name: "aider",
        products: &["aider", "litellm"],
        reads_everywhere: false,
    },
    KnownAgent {
        name: "kimi",
        products: &["kimicli", "kimi-cli"],
        reads_everywhere: false,
    },
    KnownAgent {
        name: "haft",
        products: &["haft"],
        reads_everywhere: false,
    },
];

/// Returns the name of the agent with this `user-agent` header: the name of its program if it is
/// known, else the product that the header names.
pub fn agent_from_header(user_agent: Option<&str>) -> String {
    let product = user_agent
        .and_then(|header| header.split(['/', ' ']).next())
        .unwrap_or_default()
        .to_ascii_lowercase();
    let known = AGENTS
        .iter()
        .find(|agent| agent.products.contains(&product.as_str()));
    match known {
        Some(agent) => agent.name.to_owned(),
        None if product.is_empty() => "unknown".to_owned(),
        None => product,
    }
}

/// True if a tool of this agent can open files in haft's state folder without asking its user.
pub fn can_read_everywhere(agent: &str) -> bool {
    AGENTS
        .iter()
        .any(|known| known.name == agent && known.reads_everywhere)
}
