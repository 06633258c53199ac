//! Whether what happened was covered by the rules, decided from the events alone.

use crate::jail::Jail;
use crate::trace::Event;

/// The rules the lines are classified by.
pub(crate) const RULES: &[&str] = &[
    "execute_command(ls:*)",
    "execute_command(cat:*)",
    "execute_command(echo:*)",
    "execute_command(pwd)",
    "execute_command(true)",
    "execute_command(grep:*)",
    "execute_command(head:*)",
    "execute_command(wc:*)",
    "execute_command(find:*)",
    "execute_command(sed:*)",
    "execute_command(awk:*)",
    "execute_command(sort:*)",
    "execute_command(uniq:*)",
    "execute_command(tee:*)",
    "execute_command(dd:*)",
    "execute_command(printf:*)",
    "execute_command(test:*)",
    "execute_command([:*)",
    "execute_command(touch:*)",
    "execute_command(xargs:*)",
    "execute_command(env:*)",
    "execute_command(bash:*)",
    "execute_command(eval:*)",
    "execute_command(exec:*)",
    "execute_command(cd:*)",
    "execute_command(f:*)",
    "execute_command(cp:*)",
    "execute_command(tar:*)",
    "execute_command(git:*)",
    "execute_command(kubectl:*)",
    "execute_command(docker:*)",
    "write_to_file(out/**)",
];

/// What no line may read.
pub(crate) const DENIED: &str = "read_file(**/.env)";

/// Programs of the jail that act like others.
const STAND_INS: [&str; 2] = ["/bin/kubectl", "/bin/docker"];

/// Programs that need no rule of their own.
const CARRIERS: [&str; 5] = ["nice", "nohup", "stdbuf", "time", "timeout"];

/// Lines that no rule covers: if nothing of them is seen, nothing of others would be either.
pub(crate) const CONTROLS: [&str; 14] = [
    "evil",
    "ls; evil",
    "cat f > g",
    "find . -maxdepth 0 -exec evil {} +",
    "sed -n 'w ../written' f",
    "cat < ../secret",
    "rm -f g",
    "./ls",
    "cat .e?v",
    "grep -r KEY .",
    "git --namespace x difftool -y -x evil HEAD~1",
    "git --attr-source HEAD bisect run evil",
    "kubectl -n x exec evil",
    // The last: it breaks the repository.
    "cp f .gi?/config",
];

/// What happened without being covered.
pub(crate) fn uncovered<'a>(
    line: &'a str,
    events: &'a [Event],
    jail: &'a Jail,
) -> impl Iterator<Item = String> + 'a {
    let is_shell = move |words: &[String]| matches!(words, [shell, flag, given] if shell == "/bin/bash" && flag == "-c" && given == line);
    events.iter().filter_map(move |event| match event {
        // The shell that was given the line.
        Event::Program { words, .. } if is_shell(words) => None,
        Event::Program { path, words } => {
            (!is_covered(path, words)).then(|| format!("ran {path} as {words:?}"))
        }
        Event::Opened {
            by,
            path,
            writes: true,
        } => (!may_write(by, path, jail)).then(|| format!("{by} wrote {path}")),
        Event::Opened { by, path, .. } if path.ends_with("/.env") => {
            Some(format!("{by} opened {path}"))
        }
        Event::Opened {
            by,
            path,
            writes: false,
        } => {
            // Programs may read what their rule does not forbid; the shell itself reads only in the
            // project.
            let outside =
                path.ends_with("/secret") && !path.starts_with(&*jail.project().to_string_lossy());
            (by == "bash" && outside).then(|| format!("the shell read {path}"))
        }
        Event::Changed { by, call } => {
            let own = match by.as_str() {
                "cp" => !call.contains(".git"),
                // Its index is its own.
                "git" => call.contains(".git"),
                _ => call.contains("/sh-thd"),
            };
            (!own).then(|| format!("{by} did {call}"))
        }
    })
}

fn is_covered(path: &str, words: &[String]) -> bool {
    const FOLDERS: [&str; 5] = [
        "/usr/bin/",
        "/bin/",
        "/usr/local/bin/",
        "/usr/lib/git-core/",
        "/usr/local/libexec/git-core/",
    ];
    let system = FOLDERS.iter().any(|folder| path.starts_with(folder))
        || STAND_INS.iter().any(|name| path.ends_with(name));
    let Some(name) = words.first() else {
        return false;
    };
    let ruled = RULES
        .iter()
        .filter_map(|rule| rule.strip_prefix("execute_command(")?.strip_suffix(')'))
        .any(|rule| match rule.strip_suffix(":*") {
            Some(prefix) => prefix.split(' ').eq(words
                .iter()
                .take(prefix.split(' ').count())
                .map(String::as_str)),
            None => rule.split(' ').eq(words.iter().map(String::as_str)),
        });
    system && (ruled || CARRIERS.contains(&name.as_str()))
}

fn may_write(by: &str, path: &str, jail: &Jail) -> bool {
    let out = jail.project().join("out");
    let path_of = std::path::Path::new(path);
    let protected = path_of
        .components()
        .any(|part| part.as_os_str().eq_ignore_ascii_case(".git"));
    let inside = path_of.starts_with(&out) && !protected;
    let own = match by {
        "touch" | "cp" | "tar" => !protected,
        "git" => path_of.starts_with(jail.project().join(".git")),
        _ => false,
    };
    // Long here-documents go through a file of the shell's own.
    path.starts_with("/dev/")
        || path.starts_with("pipe:")
        || path.contains("/sh-thd")
        || inside
        || own
}
