//! Recognizes servers whose programs load code from a folder that their entry names, such as
//! `uv --directory FOLDER run server` or `node FOLDER`.
//!
//! A folder after the script or the package is an argument of the server, and therefore data:
//! `npx -y server-filesystem FOLDER` runs nothing in `FOLDER`.

use std::path::PathBuf;

use haft_sandbox::{is_code_variable, names_path_inside};

/// Programs that build or run the project in a folder, whatever the position of the folder.
const PROJECT_RUNNERS: [&str; 24] = [
    "bundle", "cargo", "dotnet", "go", "gradle", "hatch", "just", "make", "mise", "mix", "mvn",
    "nix", "pdm", "pipenv", "pixi", "poetry", "rake", "rye", "sbt", "swift", "task", "tox", "uv",
    "zig",
];

/// Programs that run a script or a package. The words before it are theirs, the words after it
/// belong to the script or the package.
const LAUNCHERS: [&str; 29] = [
    "Rscript", "bash", "bun", "bunx", "dash", "deno", "env", "java", "julia", "ksh", "lua", "node",
    "nodejs", "npm", "npx", "perl", "php", "pipx", "pnpm", "pnpx", "pypy", "python", "ruby", "sh",
    "ts-node", "tsx", "uvx", "yarn", "zsh",
];

/// Options of launchers that take no value, so that the word after them is the script or package.
const FLAGS: [&str; 12] = [
    "--isolated",
    "--no",
    "--no-cache",
    "--offline",
    "--prefer-offline",
    "--quiet",
    "--silent",
    "--verbose",
    "--yes",
    "-q",
    "-v",
    "-y",
];

/// Options of launchers whose value is the script, as in `python3 -m server`.
const SCRIPT_OPTIONS: [&str; 4] = ["-c", "-e", "-jar", "-m"];

/// Words of package managers before the package or script.
const SUBCOMMANDS: [&str; 8] = [
    "dlx",
    "exec",
    "run",
    "run-script",
    "start",
    "test",
    "tool",
    "x",
];

/// Variables that name folders from which tools run programs, besides [`is_code_variable`].
const TOOL_FOLDER_VARIABLES: [&str; 14] = [
    "CARGO_HOME",
    "CONDA_PREFIX",
    "DENO_DIR",
    "DOTNET_ROOT",
    "GOBIN",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "PATH",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "UV_PROJECT",
    "UV_PROJECT_ENVIRONMENT",
    "VIRTUAL_ENV",
];

/// True if the entry makes its program load code from one of the folders, which need not exist.
pub(super) fn loads_code_from(
    folders: &[PathBuf],
    program: &str,
    args: &[String],
    env: &[(String, String)],
) -> bool {
    let by_variable = env.iter().any(|(name, value)| {
        let names_code = is_code_variable(name) || TOOL_FOLDER_VARIABLES.contains(&name.as_str());
        names_code && names_path_inside(value, folders)
    });
    let name = program.rsplit('/').next().unwrap_or_default();
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_one_of = |names: &[&str]| names.contains(&name) || names.contains(&unversioned);
    let words = if is_one_of(&PROJECT_RUNNERS) {
        args
    } else if is_one_of(&LAUNCHERS) {
        launcher_words(args)
    } else {
        &[]
    };
    by_variable || words.iter().any(|word| names_path_inside(word, folders))
}

/// Returns the words up to and including the script or the package. The word after an option counts
/// as its value.
fn launcher_words(args: &[String]) -> &[String] {
    let mut takes_value = false;
    for (index, word) in args.iter().enumerate() {
        if SCRIPT_OPTIONS.contains(&word.as_str()) {
            return args.get(..=index + 1).unwrap_or(args);
        }
        if word.starts_with('-') {
            takes_value = !word.contains('=') && !FLAGS.contains(&word.as_str());
        } else if takes_value || SUBCOMMANDS.contains(&word.as_str()) {
            takes_value = false;
        } else {
            return &args[..=index];
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads_code(line: &str, env: &[(&str, &str)]) -> bool {
        let mut words = line.split(' ').map(str::to_owned);
        let program = words.next().unwrap();
        let args: Vec<_> = words.collect();
        let env: Vec<_> = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        loads_code_from(&["/project".into()], &program, &args, &env)
    }

    #[test]
    fn loads_code_from_folders_of_runners_launchers_and_variables() {
        for line in [
            "uv --directory /project run server",
            "uv run --project=/project server",
            "uvx --from /project server",
            "npx -y --prefix /project server",
            "npx /project",
            "npm --prefix /project run server",
            "pnpm --dir=/project start",
            "node /project/server",
            "node --import /project/hooks /opt/server.js",
            "python3.12 /project/package",
            "/usr/bin/java -cp /opt/a.jar:/project/classes Main",
            "perl -I/project/lib /opt/server.pl",
            "cargo run --manifest-path /project/Cargo.toml",
            "make -C /project serve",
            "java -jar /project/server.jar",
            "go run /project/cmd/server",
        ] {
            assert!(loads_code(line, &[]), "{line}");
        }
        for (name, value) in [
            ("PYTHONPATH", "/opt/a:/project/src"),
            ("PATH", "/project/bin:/usr/bin"),
            ("VIRTUAL_ENV", "/project/.venv"),
            ("NODE_OPTIONS", "--require /project/x.js"),
        ] {
            assert!(loads_code("server", &[(name, value)]), "{name}");
        }
    }

    #[test]
    fn folders_given_to_the_server_are_data() {
        for line in [
            "npx -y @modelcontextprotocol/server-filesystem /project",
            "npx @modelcontextprotocol/server-filesystem /project /home",
            "uvx mcp-server-git --repository /project",
            "node /opt/server.js --root /project",
            "python3 -m server --root /project",
            "java -jar /opt/server.jar /project",
            "docker run -v /project:/data image",
            "my-server --folder /project",
            "uv --directory /project-other run server",
        ] {
            assert!(!loads_code(line, &[]), "{line}");
        }
        assert!(!loads_code("server", &[("DATABASE_PATH", "/project/x.db")]));
        assert!(!loads_code("server", &[("PATH", "/usr/bin:/bin")]));
    }
}
