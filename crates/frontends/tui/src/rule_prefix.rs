//! Proposes a rule that is wider than the exact rule of an approval. The user can edit the proposal
//! before it is saved.
//!
//! Invariant: rules for commands that run other programs, destroy or publish are never widened.

/// Programs whose rules are not widened, because the programs run other programs or because their
/// arguments decide what is lost.
const EXACT_PROGRAMS: &[&str] = &[
    "awk", "bash", "chmod", "chown", "cp", "curl", "dash", "dd", "doas", "env", "eval", "exec",
    "find", "fish", "ksh", "ln", "mv", "nice", "node", "nohup", "perl", "php", "pkexec", "python",
    "python3", "rm", "rmdir", "rsync", "ruby", "scp", "sed", "sh", "ssh", "su", "sudo", "tar",
    "tee", "time", "timeout", "unlink", "wget", "xargs", "zsh", "kill", "killall", "pkill",
];
/// Modules of Python whose rules are not widened, because their arguments are code or name code.
const CODE_MODULES: &[&str] = &[
    "cProfile", "code", "pdb", "profile", "runpy", "timeit", "trace",
];
/// Programs whose first argument is a subcommand.
const PROGRAMS_WITH_SUBCOMMANDS: &[&str] = &[
    "aws",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "conda",
    "deno",
    "docker",
    "dotnet",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "just",
    "kubectl",
    "mvn",
    "npm",
    "npx",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "rustup",
    "terraform",
    "uv",
    "uvx",
    "yarn",
];
/// Subcommands that have subcommands of their own.
const SUBCOMMAND_GROUPS: &[&str] = &["run", "compose", "exec", "tool", "workspace"];
/// Subcommands whose rules are not widened, because they change or publish something.
const EXACT_SUBCOMMANDS: &[&str] = &[
    "apply",
    "clean",
    "delete",
    "deploy",
    "destroy",
    "exec",
    "login",
    "prune",
    "publish",
    "push",
    "release",
    "reset",
    "rm",
    "rmi",
    "uninstall",
    "upload",
];

/// Widens the rule `exact` to any arguments after the subcommand, or to any file of the folder.
/// Returns `exact` itself if the wider rule would allow too much.
pub(crate) fn propose_rule(exact: &str) -> String {
    let widened = exact
        .strip_suffix(')')
        .and_then(|rule| rule.split_once('('))
        .and_then(|(tool, inside)| {
            let wide = match tool {
                "execute_command" | "background_task" | "session_start" => {
                    derive_command_prefix(inside)?
                }
                _ if crate::proposed_files::has_editable_files(tool) => {
                    let (folder, _) = inside.rsplit_once('/')?;
                    (!folder.is_empty() && !folder.contains(['*', '[', '{', '?']))
                        .then(|| format!("{folder}/**"))?
                }
                _ => return None,
            };
            Some(format!("{tool}({wide})"))
        });
    widened.unwrap_or_else(|| exact.to_owned())
}

/// Returns the program and its subcommand, followed by a wildcard for the arguments. Returns `None`
/// if the rule must not be widened.
fn derive_command_prefix(line: &str) -> Option<String> {
    let words: Vec<_> = line.split(' ').collect();
    let program = words.first()?;
    let name = program.rsplit('/').next().unwrap_or(program);
    if let [interpreter, "-m", module, ..] = words[..]
        && (name.starts_with("python") || name.starts_with("pypy"))
    {
        // The rule covers this module and no other.
        let is_plain = module
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_plain || CODE_MODULES.contains(&module) {
            return None;
        }
        let inner = derive_command_prefix(line.split_once(" -m ")?.1)?;
        return Some(format!("{interpreter} -m {inner}"));
    }
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c))
    };
    if EXACT_PROGRAMS.contains(&name)
        || words.iter().any(|word| EXACT_SUBCOMMANDS.contains(word))
        || program.contains(['\'', '"'])
    {
        return None;
    }
    let mut kept = 1;
    if PROGRAMS_WITH_SUBCOMMANDS.contains(&name) {
        let verb = words.get(1).filter(|word| is_word(word))?;
        kept = 2;
        if SUBCOMMAND_GROUPS.contains(verb) {
            words.get(2).filter(|word| is_word(word))?;
            kept = 3;
        }
    }
    (words.len() > kept).then(|| format!("{}:*", words[..kept].join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn propose_rule_widens_arguments_and_files() {
        for (exact, wide) in [
            (
                "execute_command(cargo test -p x)",
                "execute_command(cargo test:*)",
            ),
            (
                "execute_command(npm run build --watch)",
                "execute_command(npm run build:*)",
            ),
            ("execute_command(make check)", "execute_command(make:*)"),
            ("execute_command(git log -3)", "execute_command(git log:*)"),
            ("execute_command(pytest 'a b')", "execute_command(pytest:*)"),
            (
                "execute_command(python3 -m pytest -q)",
                "execute_command(python3 -m pytest:*)",
            ),
            (
                "execute_command(python -m pip install x)",
                "execute_command(python -m pip install:*)",
            ),
            ("write_to_file(src/a.rs)", "write_to_file(src/**)"),
        ] {
            assert_eq!(propose_rule(exact), wide);
        }
    }

    #[test]
    fn propose_rule_keeps_dangerous_commands_exact() {
        for exact in [
            "execute_command(make)",
            "execute_command(rm -r target)",
            "execute_command(/bin/bash build.sh)",
            "execute_command(sudo make install)",
            "execute_command(git push origin main)",
            "execute_command(git -C x status)",
            "execute_command(npm run 'a b')",
            "execute_command(docker compose exec db psql)",
            "execute_command(python3 x.py -q)",
            "execute_command(python3 -m timeit x)",
            "execute_command(python3 -m http.server 80)",
            "execute_command('my tool' x)",
            "write_to_file(a.txt)",
            "write_to_file(/a.txt)",
            "web_crawl(domain:docs.rs)",
            "mcp__github__create_issue",
        ] {
            assert_eq!(propose_rule(exact), exact);
        }
    }
}
