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

    fn write_project_tool(&self, name: &str, text: &str, mode: u32) {
        write(
            &self
                .knowledge
                .project_folder(KnowledgeKind::Tools)
                .join(name),
            text,
            mode,
        );
    }

    fn load_tools(&self) -> (NamedItems<ExternalTool>, Vec<FileProblem>) {
        let mut problems = Vec::new();
        let found = load_tools(&self.knowledge, &|name| name == "read_file", &mut problems);
        (found, problems)
    }

    fn get_tool(&self, name: &str) -> ExternalTool {
        self.load_tools().0.get(name).unwrap().clone()
    }

    fn command_words(&self, name: &str) -> Option<Vec<String>> {
        let words = self.get_tool(name).command_to_start()?;
        Some(
            words
                .iter()
                .map(|word| self.knowledge.display_path(word.as_ref()))
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
fn load_takes_executables_and_known_scripts_as_tools() {
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
        place.write_project_tool(name, "x", mode);
    }
    write(
        &place
            .knowledge
            .user_folder(KnowledgeKind::Tools)
            .join("run"),
        "y",
        0o755,
    );
    std::os::unix::fs::symlink(
        "/bin/sh",
        place
            .knowledge
            .project_folder(KnowledgeKind::Tools)
            .join("out"),
    )
    .unwrap();
    let (found, problems) = place.load_tools();
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
    let found = load_tools(&untrusted, &|_| false, &mut Vec::new());
    assert_eq!(found.items.len(), 1, "only the user's own");
}

#[test]
fn command_uses_the_shebang_or_the_extension() {
    let place = Place::new();
    place.write_project_tool("run", "x", 0o755);
    place.write_project_tool("own.py", "#!/usr/bin/env python3\n", 0o755);
    place.write_project_tool("bare.py", "print(1)\n", 0o755);
    place.write_project_tool("plain.rb", "#!/usr/bin/ruby\n", 0o644);
    place.write_project_tool("source.rs", "fn main() {}\n", 0o644);
    assert_eq!(place.command_words("run").unwrap(), [".haft/tools/run"]);
    assert_eq!(
        place.command_words("own.py").unwrap(),
        [".haft/tools/own.py"]
    );
    assert_eq!(
        place.command_words("bare.py").unwrap(),
        ["python3", ".haft/tools/bare.py"]
    );
    assert_eq!(
        place.command_words("plain.rb").unwrap(),
        ["ruby", ".haft/tools/plain.rb"]
    );
    assert_eq!(place.command_words("source.rs"), None);
}

#[test]
fn help_cache_entry_is_valid_for_the_unchanged_file() {
    let place = Place::new();
    place.write_project_tool("run", "one", 0o755);
    let cache = HelpCache::in_folder(place.knowledge.user.join("cache"));
    let tool = place.get_tool("run");
    assert_eq!(cache.get(&tool), None);
    let told = HelpAnswer::Told("usage: run\n\n  \"quoted\" 用法\n".to_owned());
    for asked in [HelpAnswer::Begun, HelpAnswer::Silent, told.clone()] {
        cache.put(&tool, asked.clone()).unwrap();
        assert_eq!(cache.get(&place.get_tool("run")), Some(asked));
    }
    place.write_project_tool("run", "longer", 0o755);
    assert_eq!(cache.get(&place.get_tool("run")), None, "another file");
    cache.put(&place.get_tool("run"), told).unwrap();
    let file = fs::read_dir(place.knowledge.user.join("cache"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    fs::write(&file, "= broken").unwrap();
    assert_eq!(
        cache.get(&place.get_tool("run")),
        None,
        "what cannot be read is made again"
    );
}

#[test]
fn document_lists_tools_and_how_to_add_one() {
    let place = Place::new();
    assert_eq!(render_document(&place.knowledge, &[]), None);
    place.write_project_tool("lint.py", "x", 0o644);
    place.write_project_tool("run", "x", 0o755);
    let help = Help::Output("usage: lint\n```\nx\n```\n".to_owned());
    let tools = [
        (place.get_tool("lint.py"), help),
        (place.get_tool("run"), Help::Missing),
    ];
    let (heading, text) = render_document(&place.knowledge, &tools).unwrap();
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
fn document_shows_paths_relative_to_the_working_directory() {
    let mut place = Place::new();
    place.write_project_tool("do it.sh", "x", 0o644);
    let run = |place: &Place| {
        let text = render_document(
            &place.knowledge,
            &[(place.get_tool("do it.sh"), Help::Missing)],
        )
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
