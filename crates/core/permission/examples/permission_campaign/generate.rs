//! Command lines as a model, or somebody who feeds one, might write them: mostly of programs that
//! rules cover, with payloads (`evil`), quoting, wrappers, redirects and expansions around them,
//! and some with letters changed at random.

use crate::random::Random;

/// A command that no rule covers.
const PAYLOADS: [&str; 14] = [
    "evil",
    "evil x",
    "./evil",
    "rm f",
    "./ls",
    "../evil",
    "sh -c evil",
    "evil > g",
    "touch2 x",
    "/tmp/evil",
    "'evil'",
    "ev\\il",
    "\"$HOME/evil\"",
    "python3 evil",
];
const JOINTS: [&str; 14] = [
    "; ", " ; ", ";", " && ", "&&", " || ", "||", " | ", "|", " |& ", " & ", "\n", "\n\n", " # c\n",
];
const FILES: [&str; 42] = [
    "f",
    "src/a",
    "sub/b",
    "out/o",
    "nothing",
    "*.txt",
    "src/*",
    "$x",
    "\"$x\"",
    "${x:-f}",
    "~",
    "..",
    ".",
    "{f,g}",
    "[fg]",
    "$(echo f)", // What may become a file that may not be read, or a protected one.
    ".e?v",
    ".en*",
    "{.env,f}",
    "${x}.env",
    "src/.e*",
    "*/.env",
    "\"$PWD/.env\"",
    "~+/.env",
    ".*",
    "s*/.e*",
    ".{env,x}",
    "$(echo .env)",
    "{src,sub}/.env",
    ".[e]nv",
    "src/../.en?",
    ".?/.env",
    "sub/up/.e*",
    "{project,src}/*",
    ".gi?/config",
    ".g*/x",
    "{.git,out}/x",
    "out/${x}y",
    "\"$PWD\"/.git/x",
    "src/{a,b}",
    "*",
    "?",
];
/// Options of programs that have verbs, with and without a value.
const BEFORE: [&str; 22] = [
    "--no-pager",
    "--namespace x",
    "--namespace=x",
    "--attr-source HEAD",
    "--attr-source=HEAD",
    "--literal-pathspecs",
    "--git-dir .git",
    "--git-dir=.git",
    "-P",
    "-p",
    "-C .",
    "-c a.b=c",
    "-c alias.e=!evil",
    "--exec-path=.",
    "--unknown",
    "-n x",
    "--context x",
    "-s x",
    "--log-level info",
    "-l info",
    "--host=x",
    "--bare",
];
const TARGETS: [&str; 18] = [
    "/dev/null",
    "/dev/null",
    "out/o",
    "out/p",
    "./out/q",
    "out/../g",
    "g",
    "src/g",
    "../g",
    "$x",
    "out/$x",
    "\"out/r\"",
    "'g'",
    "out/.git/c",
    "$(echo g)",
    "out/{a,b}",
    "~/g",
    "sub/up/out/s",
];
const SPECIAL: [&str; 48] = [
    "'", "\"", "`", "$", "(", ")", "{", "}", "[", "]", "<", ">", "|", "&", ";", "#", "!", "~", "*",
    "?", "=", " ", "\n", "\t", "\\", "\\\n", "$(", "${", "$((", "))", "<(", ">(", "<<", "<<<",
    "&&", "||", ";;", "$IFS", "${IFS}", " evil ", ";evil;", "\nevil\n", "`evil`", "$(evil)",
    "<<E\n", "\nE\n", "2>", "&>",
];

/// One line.
pub(crate) fn line(random: &mut Random) -> String {
    let mut line = script(random, 2);
    if random.percent(45) {
        for _ in 0..=random.below(3) {
            mutate(random, &mut line);
        }
    }
    line
}

/// Changes the line in one place.
fn mutate(random: &mut Random, line: &mut String) {
    let places: Vec<usize> = line
        .char_indices()
        .map(|(place, _)| place)
        .chain([line.len()])
        .collect();
    let at = places[random.below(places.len())];
    let next = line[at..].chars().next().map_or(0, char::len_utf8);
    match random.below(5) {
        0 => line.replace_range(at..at + next, ""),
        1 => line.replace_range(at..at + next, random.of(&SPECIAL)),
        2 => {
            let piece = line[at..]
                .chars()
                .take(1 + random.below(6))
                .collect::<String>();
            line.insert_str(at, &piece);
        }
        _ => line.insert_str(at, random.of(&SPECIAL)),
    }
}

fn script(random: &mut Random, depth: usize) -> String {
    let mut script = command(random, depth);
    for _ in 0..random.below(3) {
        script.push_str(random.of(&JOINTS));
        script.push_str(&command(random, depth));
    }
    script
}

fn command(random: &mut Random, depth: usize) -> String {
    let text = if depth > 0 && random.percent(22) {
        compound(random, depth - 1)
    } else {
        simple(random, depth)
    };
    if random.percent(4) {
        format!("{}{text}", random.of(&["! ", "time ", "time -p "]))
    } else {
        text
    }
}

fn compound(random: &mut Random, depth: usize) -> String {
    let one = script(random, depth);
    let two = script(random, depth);
    let three = script(random, depth);
    let text = match random.below(14) {
        0 => format!("( {one} )"),
        1 => format!("{{ {one}; }}"),
        2 => format!("if {one}; then {two}; else {three}; fi"),
        3 => format!("if {one}\nthen {two}\nelif {three}\nthen pwd\nfi"),
        4 => format!("for f in a b; do {one}; done"),
        5 => format!("for f in {}; do cat \"$f\"; {one}; done", random.of(&FILES)),
        6 => format!("while test -f nothing; do {one}; done"),
        7 => format!("until true; do {one}; done"),
        8 => format!(
            "case {} in a) {one};; *) {two};; esac",
            random.of(&["a", "$x", "\"b\"", "$(pwd)"])
        ),
        9 => format!(
            "[[ -f {} ]] && {{ {one}; }}",
            random.of(&["f", "$x", "\"$(pwd)\""])
        ),
        10 => format!("f() {{ {one}; }}; f"),
        11 => format!("{one} <<E\n{}\nE\n{two}", body(random, depth)),
        12 => format!("cat <<'E'\n{}\nE\n{two}", body(random, depth)),
        _ => format!("cat <<-E && {one}\n\t{}\n\tE\n", body(random, depth)),
    };
    redirected(random, text, 10)
}

fn body(random: &mut Random, depth: usize) -> String {
    match random.below(6) {
        0 => "plain".to_owned(),
        1 => format!("a $({})", script(random, depth.saturating_sub(1))),
        2 => "E x\n E".to_owned(),
        3 => format!("`{}`", random.of(&PAYLOADS)),
        4 => "\\$(evil) \\\\".to_owned(),
        _ => "$x ${y:-z} \"quoted\" it's".to_owned(),
    }
}

fn simple(random: &mut Random, depth: usize) -> String {
    if random.percent(5) {
        return random.of(&PAYLOADS).to_owned();
    }
    let words = if random.percent(15) {
        verbs(random)
    } else {
        words(random, depth)
    };
    let mut text = quoted(random, &words);
    if random.percent(18) {
        text = wrapped(random, &text);
    }
    if random.percent(3) {
        text = format!(
            "{} {text}",
            random.of(&[
                "X=1",
                "PATH=.",
                "PATH=.:$PATH",
                "x=$(evil)",
                "IFS=x",
                "x=-delete",
                "BASH_ENV=./evil"
            ])
        );
    }
    redirected(random, text, 22)
}

/// The words of a command that a rule may cover.
fn words(random: &mut Random, depth: usize) -> Vec<String> {
    const PROGRAMS: [(&str, &[&str]); 26] = [
        ("ls", &["-l", "-a", "-d", "--", "--color=never"]),
        ("cat", &["-n", "-", "--"]),
        (
            "cp",
            &[
                "-r", "f", "src", "out/c", "out", "-a", ".", ".git/x", "-t", "-t.git",
            ],
        ),
        (
            "tar",
            &[
                "c",
                "cf",
                "out/t",
                "tf",
                ".",
                "src",
                "sub",
                "-C",
                "--create",
                "-cf",
                "--to-command=evil",
            ],
        ),
        ("echo", &["hi", "-n", "evil", "a;b", "'x'", ">", "#", "a#b"]),
        ("pwd", &[]),
        ("true", &[]),
        ("grep", &["-n", "-r", "x", "-e", "evil", "-q", "a|b", "-f"]),
        ("head", &["-n", "1", "-c", "3"]),
        ("wc", &["-l", "-c"]),
        (
            "find",
            &[
                ".",
                "-name",
                "x",
                "-type",
                "f",
                "-maxdepth",
                "1",
                "-print",
                "-delete",
                "-exec",
                "evil",
                "{}",
                ";",
                "+",
                "-fprint",
                "-ok",
                "-newer",
            ],
        ),
        (
            "sed",
            &[
                "-n",
                "p",
                "s/a/b/",
                "1,2p",
                "$d",
                "w g",
                "1w g",
                "s/a/b/w g",
                "1e evil",
                "s/a/evil/e",
                "-e",
                "-i",
                "-E",
                "--in-place",
                "/a/d",
                "-f",
                "-s",
                "s/[a]/b/g",
                "r secret",
            ],
        ),
        (
            "awk",
            &[
                "{ print $1 }",
                "-F:",
                "-v",
                "x=1",
                "BEGIN{system(\"evil\")}",
                "{print > \"g\"}",
                "-f",
                "{ print | \"evil\" }",
                "NR==1",
                "END { print NR }",
            ],
        ),
        (
            "sort",
            &[
                "-u",
                "-n",
                "-o",
                "g",
                "-k2",
                "--output=g",
                "--compress-program=./evil",
                "-ro",
            ],
        ),
        ("uniq", &["-c", "f", "g"]),
        ("tee", &["-a", "g"]),
        ("dd", &["if=f", "of=g", "bs=1", "count=1"]),
        ("printf", &["%s", "x", "-v", "a[$(evil)]", "--"]),
        ("test", &["-f", "-v", "a[$(evil)]", "=", "x", "!", "-n"]),
        ("[", &["-d", "f", "]", "-v"]),
        ("touch", &["f", "out/t"]),
        (
            "xargs",
            &[
                "-0", "-n", "1", "cat", "evil", "echo", "-I", "{}", "find", "sh",
            ],
        ),
        (
            "env",
            &["-i", "ls", "evil", "X=1", "-u", "cat", "-S", "A=b"],
        ),
        (
            "bash",
            &[
                "-c",
                "ls",
                "evil",
                "-x",
                "ls; cat f",
                "ls > out/z",
                "evil",
                "-ec",
            ],
        ),
        ("eval", &["ls", "evil", ";", "cat", "f"]),
        (
            "cd",
            &["src", "sub", "..", "out", "sub/up", "-", "/", ".", "away"],
        ),
    ];
    let (program, flags) = PROGRAMS[random.below(PROGRAMS.len())];
    let mut words = vec![program.to_owned()];
    for _ in 0..random.below(4) {
        words.push(match random.below(10) {
            0 => substitution(random, depth),
            1 | 2 => random.of(&FILES).to_owned(),
            _ if flags.is_empty() => "x".to_owned(),
            _ => single_quoted(random.of(flags)),
        });
    }
    words
}

/// A program with a verb, and options before it.
fn verbs(random: &mut Random) -> Vec<String> {
    const GIT: [&str; 26] = [
        "status",
        "log -1",
        "log --output=g",
        "diff HEAD~1",
        "diff --output g",
        "diff HEAD~1 --ext-diff",
        "show HEAD",
        "branch",
        "ls-files",
        "rev-parse HEAD",
        "difftool -y -x evil HEAD~1",
        "difftool --no-prompt --extcmd=evil HEAD~1",
        "bisect run evil",
        "bisect log",
        "e",
        "evil",
        "grep -Oevil a",
        "grep --open-files-in-pager=evil a",
        "grep a",
        "submodule foreach evil",
        "archive -o g HEAD",
        "archive HEAD",
        "config a.b c",
        "hook run x",
        "worktree add ../w",
        "rebase -x evil HEAD~1",
    ];
    const CLUSTER: [&str; 10] = [
        "get pods",
        "exec evil",
        "run evil",
        "logs x",
        "ps",
        "exec -it evil",
        "config view",
        "describe x",
        "run ls",
        "version",
    ];
    let git = random.percent(60);
    let mut words = vec![
        if git {
            "git"
        } else {
            random.of(&["kubectl", "docker"])
        }
        .to_owned(),
    ];
    for _ in 0..random.below(3) {
        words.extend(random.of(&BEFORE).split(' ').map(single_quoted));
    }
    let verb = if git {
        random.of(&GIT)
    } else {
        random.of(&CLUSTER)
    };
    words.extend(verb.split(' ').map(single_quoted));
    if random.percent(25) {
        words.push(random.of(&FILES).to_owned());
    }
    words
}

fn substitution(random: &mut Random, depth: usize) -> String {
    let inner = if depth == 0 || random.percent(15) {
        random.of(&PAYLOADS).to_owned()
    } else {
        script(random, depth - 1)
    };
    match random.below(7) {
        0 => format!("$({inner})"),
        1 => format!("\"$({inner})\""),
        2 => format!("`{inner}`"),
        3 => format!("<({inner})"),
        4 => format!("${{x:-$({inner})}}"),
        5 => format!("\"`{inner}`\""),
        _ => format!("$(( 1 + $({inner}) ))"),
    }
}

fn single_quoted(text: &str) -> String {
    let plain = text
        .chars()
        .all(|one| one.is_ascii_alphanumeric() || "-_./=:,+%]".contains(one))
        || text == "[";
    if plain {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Joins words, some of them spelled in another way.
fn quoted(random: &mut Random, words: &[String]) -> String {
    let mut text = String::new();
    for (place, word) in words.iter().enumerate() {
        if place > 0 {
            text.push_str(random.of(&[" ", " ", " ", "  ", "\t", " \\\n"]));
        }
        let plain = word
            .chars()
            .all(|one| one.is_ascii_alphanumeric() || "-_./".contains(one))
            && !word.is_empty();
        text.push_str(&if plain && random.percent(15) {
            respelled(random, word)
        } else {
            word.clone()
        });
    }
    text
}

fn respelled(random: &mut Random, word: &str) -> String {
    let middle = random.below(word.len());
    let (front, back) = word.split_at(middle);
    match random.below(9) {
        0 => format!("'{word}'"),
        1 => format!("\"{word}\""),
        2 => format!("{front}''{back}"),
        3 => format!("{front}\"\"{back}"),
        4 => format!("{front}\\{back}"),
        5 => format!("$'{word}'"),
        6 => format!("{front}$'\\x{:02x}'{}", back.as_bytes()[0], &back[1..]),
        7 => format!("{front}\\\n{back}"),
        _ => format!("$\"{word}\""),
    }
}

fn wrapped(random: &mut Random, text: &str) -> String {
    let inline = text.replace('\'', r"'\''");
    match random.below(16) {
        0 => format!("timeout 5 {text}"),
        1 => format!("nice -n 3 {text}"),
        2 => format!("nohup {text}"),
        3 => format!("stdbuf -oL {text}"),
        4 => format!("command {text}"),
        5 => format!("builtin {text}"),
        6 => format!("env {text}"),
        7 => format!("bash -c '{inline}'"),
        8 => format!("eval '{inline}'"),
        9 => format!("eval {text}"),
        10 => format!("echo x | xargs {text}"),
        11 => format!("./timeout 5 {text}"),
        12 => format!("timeout -k 1 --signal=KILL 5 nice {text}"),
        13 => format!("exec {text}"),
        14 => format!("find . -maxdepth 0 -exec {text} \\;"),
        _ => format!(
            "bash -c \"{}\"",
            text.replace('\\', "\\\\").replace('"', "\\\"")
        ),
    }
}

fn redirected(random: &mut Random, text: String, share: usize) -> String {
    if !random.percent(share) {
        return text;
    }
    let target = random.of(&TARGETS);
    match random.below(14) {
        0 => format!("{text} > {target}"),
        1 => format!("{text} >{target}"),
        2 => format!("{text} >> {target}"),
        3 => format!("{text} 2>{target}"),
        4 => format!("{text} &> {target}"),
        5 => format!("{text} >| {target}"),
        6 => format!("{text} 2>&1"),
        7 => format!(
            "{text} < {}",
            random.of(&[
                "f",
                "src/a",
                "../secret",
                "secret",
                "/dev/null",
                "$x",
                "away/secret",
                "sub/up/f"
            ])
        ),
        8 => format!("{text} <> {target}"),
        9 => format!("{text} <<< {}", random.of(&["x", "\"$(evil)\"", "$(pwd)"])),
        10 => format!("{text} >& {target}"),
        11 => format!("{text} 3> {target} >&3"),
        12 => format!("> {target} {text}"),
        _ => format!("{text} > >({})", random.of(&["cat", "evil", "tee g"])),
    }
}
