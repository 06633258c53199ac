use std::fs;

use super::*;

struct Place {
    _folder: tempfile::TempDir,
    knowledge: KnowledgePaths,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let root = top.join("shop");
        fs::create_dir(&root).unwrap();
        let knowledge = KnowledgePaths {
            cwd: root.clone(),
            root,
            user: top.join("user"),
            trusted: true,
            home: None,
        };
        Self {
            _folder: folder,
            knowledge,
        }
    }

    fn own(&self, name: &str, text: &str, mode: u32) {
        write(
            &self.knowledge.own(KnowledgeKind::Tools).join(name),
            text,
            mode,
        );
    }

    fn load(&self) -> (NamedItems<ExternalTool>, Vec<FileProblem>) {
        let mut problems = Vec::new();
        let found = load(&self.knowledge, &|name| name == "read_file", &mut problems);
        (found, problems)
    }

    fn tool(&self, name: &str) -> ExternalTool {
        self.load().0.get(name).unwrap().clone()
    }

    fn command(&self, name: &str) -> Option<Vec<String>> {
        let words = self.tool(name).command()?;
        Some(
            words
                .iter()
                .map(|word| self.knowledge.shown(word.as_ref()))
                .collect(),
        )
    }
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_counts_as_a_tool() {
    let place = Place::new();
    for (name, mode) in [
        ("run", 0o755),
        ("data", 0o644),
        ("lint.py", 0o644),
        ("notes.md", 0o755),
        (".hidden", 0o755),
        ("read_file", 0o755),
        ("deep/inner", 0o755),
    ] {
        place.own(name, "x", mode);
    }
    write(
        &place.knowledge.users(KnowledgeKind::Tools).join("run"),
        "y",
        0o755,
    );
    std::os::unix::fs::symlink(
        "/bin/sh",
        place.knowledge.own(KnowledgeKind::Tools).join("out"),
    )
    .unwrap();
    let (found, problems) = place.load();
    let names: Vec<_> = found.items.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["lint.py", "run"]);
    let losers: Vec<_> = found
        .shadowed
        .iter()
        .map(|one| (one.name.as_str(), one.by == ShadowedBy::BuiltIn))
        .collect();
    assert_eq!(losers, [("read_file", true), ("run", false)]);
    assert!(
        problems[0].path.ends_with("out") && problems[0].what.contains("leads out"),
        "{problems:?}"
    );
    let untrusted = KnowledgePaths {
        trusted: false,
        ..place.knowledge.clone()
    };
    let found = load(&untrusted, &|_| false, &mut Vec::new());
    assert_eq!(found.items.len(), 1, "only the user's own");
}

#[test]
fn how_a_tool_is_started() {
    let place = Place::new();
    place.own("run", "x", 0o755);
    place.own("own.py", "#!/usr/bin/env python3\n", 0o755);
    place.own("bare.py", "print(1)\n", 0o755);
    place.own("plain.rb", "#!/usr/bin/ruby\n", 0o644);
    place.own("source.rs", "fn main() {}\n", 0o644);
    assert_eq!(place.command("run").unwrap(), [".haft/tools/run"]);
    assert_eq!(place.command("own.py").unwrap(), [".haft/tools/own.py"]);
    assert_eq!(
        place.command("bare.py").unwrap(),
        ["python3", ".haft/tools/bare.py"]
    );
    assert_eq!(
        place.command("plain.rb").unwrap(),
        ["ruby", ".haft/tools/plain.rb"]
    );
    assert_eq!(place.command("source.rs"), None);
}

#[test]
fn what_was_learnt_holds_for_the_file_as_it_was() {
    let place = Place::new();
    place.own("run", "one", 0o755);
    let cache = HelpCache::at(place.knowledge.user.join("cache"));
    let tool = place.tool("run");
    assert_eq!(cache.get(&tool), None);
    let told = HelpAnswer::Told("usage: run\n\n  \"quoted\" 用法\n".to_owned());
    for asked in [HelpAnswer::Begun, HelpAnswer::Silent, told.clone()] {
        cache.put(&tool, asked.clone()).unwrap();
        assert_eq!(cache.get(&place.tool("run")), Some(asked));
    }
    place.own("run", "longer", 0o755);
    assert_eq!(cache.get(&place.tool("run")), None, "another file");
    cache.put(&place.tool("run"), told).unwrap();
    let file = fs::read_dir(place.knowledge.user.join("cache"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    fs::write(&file, "= broken").unwrap();
    assert_eq!(
        cache.get(&place.tool("run")),
        None,
        "what cannot be read is made again"
    );
}

#[test]
fn the_document_says_what_there_is_and_how_to_add_to_it() {
    let place = Place::new();
    assert_eq!(document(&place.knowledge, &[]), None);
    place.own("lint.py", "x", 0o644);
    place.own("run", "x", 0o755);
    let help = Help::Told("usage: lint\n```\nx\n```\n".to_owned());
    let tools = [
        (place.tool("lint.py"), help),
        (place.tool("run"), Help::Nothing),
    ];
    let (heading, text) = document(&place.knowledge, &tools).unwrap();
    assert_eq!(heading, "External tools of shop");
    assert!(
        text.starts_with("Tools found: 2; of 1 it could not be learnt how they are used.\n"),
        "{text}"
    );
    assert!(text.contains("looked through: `.haft/tools`.\n"), "{text}");
    let entry = "## lint.py\n\nFolder: `.haft/tools`; not executable; run it as `python3 .haft/tools/lint.py`.\n\
                 ````text\nusage: lint\n```\nx\n```\n````\n";
    assert!(text.contains(entry), "{text}");
    assert!(text.contains("`run` says nothing of its use"), "{text}");
    assert!(text.contains("`haft tools add NAME FILE`"), "{text}");
}

#[test]
fn a_tool_is_found_from_the_working_directory() {
    let mut place = Place::new();
    place.own("do it.sh", "x", 0o644);
    let run = |place: &Place| {
        let text = document(&place.knowledge, &[(place.tool("do it.sh"), Help::Nothing)])
            .unwrap()
            .1;
        let line = text
            .lines()
            .find(|line| line.starts_with("Folder: "))
            .unwrap()
            .to_owned();
        line.rsplit_once("run it as `").unwrap().1.to_owned()
    };
    assert_eq!(run(&place), "sh '.haft/tools/do it.sh'`.");
    place.knowledge.cwd = place.knowledge.root.join("src");
    assert_eq!(
        run(&place),
        format!(
            "sh '{}/.haft/tools/do it.sh'`.",
            place.knowledge.root.display()
        )
    );
}
