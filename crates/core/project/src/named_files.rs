//! Which files of a project a command line names: what would run with it.
//!
//! The line is never given to a shell. Every piece of it that could be a path counts where the project has such a file: one file
//! too many costs a question, one too few would run what nobody has looked at.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Programs that run the files they are given, whatever their ending: of those even a module or a pattern is a file.
const INTERPRETERS: &[&str] = &[
    "bash", "bun", "dash", "deno", "exec", "fish", "for", "ksh", "lua", "node", "nodejs", "osascript", "perl", "php",
    "pwsh", "pypy", "python", "ruby", "run-parts", "sh", "source", "ts-node", "tsx", "uv", "xargs", "zsh",
];

/// What interpreters put behind the name of a module, and find in a folder.
const ENDINGS: &[&str] = &[
    ".js", ".mjs", ".cjs", ".ts", ".py", ".sh", "/__main__.py", "/index.js", "/index.mjs", "/index.cjs", "/index.ts",
    "/package.json",
];

/// The variables that stand for the project in hooks, and the folder worked in.
const PROJECT: &[&str] = &[
    "${HAFT_PROJECT_DIR}", "$HAFT_PROJECT_DIR", "${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR", "${PWD}", "$PWD",
    "$(pwd)", "`pwd`",
];

/// More pieces than a line has that somebody has read; what names more is not looked through.
const MOST_WORDS: usize = 1_000;
const MOST_FOLDERS: usize = 16;

/// The files in the project `root`, by their path in it, that these lines name when they are run in `cwd`. None where there is
/// too much to look through.
pub(crate) fn named_files(root: &Path, cwd: &Path, lines: &[&str]) -> Option<BTreeSet<String>> {
    let words: BTreeSet<String> = lines.iter().flat_map(|line| words(line)).collect();
    let interpreted = words.iter().any(|word| is_interpreter(word));
    let mut folders = BTreeSet::from([root.to_owned(), cwd.to_owned()]);
    folders.extend(words.iter().map(|word| root.join(relative(root, word))).filter(|folder| folder.is_dir()));
    if words.len() > MOST_WORDS || folders.len() > MOST_FOLDERS {
        return None;
    }
    let mut paths = Vec::new();
    for word in &words {
        let is_command = lines.iter().any(|line| line.trim_start().starts_with(word.as_str()));
        let word = relative(root, word);
        for folder in &folders {
            paths.push(folder.join(word));
            if is_pattern(word) && word.contains('/') && (interpreted || is_command) {
                expand(folder.clone(), &word.split('/').collect::<Vec<_>>(), &mut paths);
            }
            if interpreted {
                let names = [word.to_owned(), word.replace('.', "/").trim_start_matches('/').to_owned()];
                let endings = |name: String| ENDINGS.iter().map(move |ending| format!("{name}{ending}"));
                paths.extend(names.into_iter().flat_map(endings).map(|name| folder.join(name)));
            }
        }
    }
    Some(paths.iter().filter_map(|path| inside(root, path)).collect())
}

/// Everything in a line that could be a path: its words as a shell takes them, and their pieces.
fn words(line: &str) -> Vec<String> {
    let line = PROJECT.iter().fold(line.to_owned(), |line, variable| line.replace(variable, "."));
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match (c, quote) {
            ('\\', None) => word.extend(characters.next()),
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (c, None) if c.is_whitespace() || ";|&()<>".contains(c) => words.push(std::mem::take(&mut word)),
            (c, _) => word.push(c),
        }
    }
    words.push(word);
    let is_end = |c: char| c.is_whitespace() || ";|&()<>\"'`=:,{}$\\".contains(c);
    let pieces: Vec<_> = words.iter().flat_map(|word| word.split(is_end)).map(str::to_owned).collect();
    // An option may have its value in the same word.
    let values: Vec<_> = pieces.iter().filter(|word| word.starts_with('-')).filter_map(|word| word.get(2..)).collect();
    let values: Vec<_> = values.into_iter().map(str::to_owned).collect();
    words.extend(pieces.into_iter().chain(values));
    words.retain(|word| !word.is_empty() && !word.contains('\0'));
    words
}

fn is_interpreter(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    INTERPRETERS.contains(&name)
        || INTERPRETERS.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

/// A word below a folder, whatever it begins with.
fn relative<'a>(root: &Path, word: &'a str) -> &'a str {
    let below = root.to_str().and_then(|root| word.strip_prefix(root)).unwrap_or(word);
    below.trim_start_matches('/')
}

fn is_pattern(part: &str) -> bool {
    part.contains(['*', '?', '[', '{', '$', '`'])
}

/// What a path with patterns in it may stand for. What a variable holds is not known: it is anything.
fn expand(at: PathBuf, parts: &[&str], paths: &mut Vec<PathBuf>) {
    let [part, rest @ ..] = parts else {
        paths.push(at);
        return;
    };
    if !is_pattern(part) {
        return expand(at.join(part), rest, paths);
    }
    let pattern = if part.contains(['$', '`']) { "*" } else { part };
    let Ok(glob) = globset::Glob::new(pattern) else { return };
    let glob = glob.compile_matcher();
    for entry in std::fs::read_dir(at).into_iter().flatten().flatten() {
        if glob.is_match(entry.file_name()) {
            expand(entry.path(), rest, paths);
        }
    }
}

/// The path in the project of a file that is in it, a link as the link it is.
fn inside(root: &Path, path: &Path) -> Option<String> {
    if !path.is_file() {
        return None;
    }
    let linked = path.parent()?.canonicalize().ok()?.join(path.file_name()?);
    let real = path.canonicalize().ok()?;
    let name = linked.strip_prefix(root).or_else(|_| real.strip_prefix(root)).ok()?;
    name.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line, and the files of the project that it names.
    const LINES: &[(&str, &[&str])] = &[
        ("./scripts/fmt.sh", &["scripts/fmt.sh"]),
        ("scripts/../scripts//fmt.sh --all", &["scripts/fmt.sh"]),
        ("\"$CLAUDE_PROJECT_DIR\"/scripts/fmt.sh", &["scripts/fmt.sh"]),
        ("${HAFT_PROJECT_DIR}/scripts/fmt.sh | tee /dev/null", &["scripts/fmt.sh"]),
        ("$(git rev-parse --show-toplevel)/scripts/fmt.sh", &["scripts/fmt.sh"]),
        ("bash -c 'exec ./scripts/fmt.sh \"$@\"'", &["scripts/fmt.sh"]),
        ("sh -c \"cd scripts && sh fmt.sh\"", &["scripts/fmt.sh"]),
        ("./scripts/f\\mt.sh", &["scripts/fmt.sh"]),
        ("./scripts/f''mt.sh", &["scripts/fmt.sh"]),
        ("./scr?pts/fmt.*", &["scripts/fmt.sh"]),
        ("X=${Y:-./scripts/fmt.sh}; $X", &["scripts/fmt.sh"]),
        ("'my tools/a b.sh'", &["my tools/a b.sh"]),
        ("python3 tools/server.py --port 1", &["tools/server.py"]),
        ("python3.12 -m tools.server", &["tools/server.py"]),
        ("python tools", &["tools/__main__.py"]),
        ("node tools/x", &["tools/x.js"]),
        ("node --require=./tools/x.js -e 1", &["tools/x.js"]),
        ("node -r./tools/x.js -e 1", &["tools/x.js"]),
        ("for f in ./tools/*.py; do python $f; done", &["tools/__main__.py", "tools/server.py"]),
        // Nothing of the project is run by name.
        ("cargo fmt --check", &[]),
        ("prettier --check src 'src/*.ts' lib/", &[]),
        ("jq -r .tool_input.file_path | xargs -r cat >/dev/null; echo $HOME", &[]),
        ("cat /etc/passwd", &[]),
    ];

    #[test]
    fn every_spelling_of_a_file_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in [
            "scripts/fmt.sh", "my tools/a b.sh", "tools/server.py", "tools/__main__.py", "tools/x.js", "src/index.ts",
            "lib/a.ts", "README.md",
        ] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), "x").unwrap();
        }
        for (line, wanted) in LINES {
            let found: Vec<_> = named_files(&root, &root, &[line]).unwrap().into_iter().collect();
            assert_eq!(found, *wanted, "{line}");
        }
        let absolute = format!("{}/scripts/fmt.sh", root.display());
        assert_eq!(named_files(&root, &root, &[&absolute]).unwrap().len(), 1);
        let parts = named_files(&root, &root, &["python", "server.py", "tools"]).unwrap();
        assert!(parts.contains("tools/server.py"), "{parts:?}");
        assert_eq!(
            named_files(&root, &root.join("tools"), &["./server.py"]).unwrap().len(),
            1,
            "in the folder worked in"
        );
        let many: Vec<String> = (0..2 * MOST_WORDS).map(|number| format!("w{number}")).collect();
        assert_eq!(named_files(&root, &root, &[&many.join(" ")]), None);
    }

    #[test]
    fn a_link_is_named_as_the_link_and_what_lies_outside_is_not() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = folder.path().canonicalize().unwrap();
        std::fs::write(root.join("real.sh"), "x").unwrap();
        std::fs::write(other.path().join("out.sh"), "x").unwrap();
        std::os::unix::fs::symlink("real.sh", root.join("link.sh")).unwrap();
        std::os::unix::fs::symlink(other.path(), root.join("away")).unwrap();
        assert_eq!(named_files(&root, &root, &["./link.sh"]).unwrap(), BTreeSet::from(["link.sh".to_owned()]));
        assert!(named_files(&root, &root, &["away/out.sh"]).unwrap().is_empty());
    }
}
