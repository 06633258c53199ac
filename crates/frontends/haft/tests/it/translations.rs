//! The Chinese pages compared with the English ones: equal headings, code blocks, commands and
//! options, and links with targets. The meaning of sentences is not tested.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The structure that a page and its translation have in common.
#[derive(Default)]
pub(crate) struct Outline {
    /// The levels of the headings, in order.
    levels: Vec<usize>,
    /// The headings as anchors within the page.
    pub(crate) anchors: Vec<String>,
    /// The code blocks with their fences, without comments.
    blocks: Vec<String>,
    /// The text outside of code blocks.
    prose: String,
}

impl Outline {
    pub(crate) fn read(page: &Path) -> Self {
        let text = std::fs::read_to_string(page)
            .unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        let mut outline = Self::default();
        let mut inside = false;
        for line in text.lines() {
            let fence = line.starts_with("```");
            if fence && !inside {
                outline.blocks.push(String::new());
            }
            if fence || inside {
                let block = outline.blocks.last_mut().unwrap();
                *block += strip_comment(line);
                block.push('\n');
                inside ^= fence;
                continue;
            }
            let title = line.trim_start_matches('#');
            if title.len() < line.len() && title.starts_with(' ') {
                outline.levels.push(line.len() - title.len());
                outline.anchors.push(heading_anchor(title.trim()));
            }
            outline.prose += line;
            outline.prose.push('\n');
        }
        outline
    }

    /// Counts the commands and options in running text.
    fn command_counts(&self) -> BTreeMap<&str, usize> {
        let mut found = BTreeMap::new();
        for line in self.prose.lines() {
            // Two backquotes hold a text with backquotes of its own, which is no command.
            let spans = line
                .split("``")
                .step_by(2)
                .flat_map(|part| part.split('`').skip(1).step_by(2));
            for span in spans.filter(|span| {
                ["haft ", "--", "/"]
                    .iter()
                    .any(|begin| span.starts_with(begin))
            }) {
                *found.entry(span).or_default() += 1;
            }
        }
        found
    }

    /// Returns the targets of links and images within the repository.
    pub(crate) fn links(&self) -> impl Iterator<Item = &str> {
        let targets = self
            .prose
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        targets.filter(|target| !target.contains("://"))
    }
}

/// Returns a line of a code block without its comment.
fn strip_comment(line: &str) -> &str {
    let comment = line
        .match_indices('#')
        .find(|(at, _)| *at == 0 || line[..*at].ends_with(' '));
    line[..comment.map_or(line.len(), |(at, _)| at)].trim_end()
}

/// Returns the anchor that GitHub gives a heading.
fn heading_anchor(title: &str) -> String {
    let kept = title
        .chars()
        .filter(|char| char.is_alphanumeric() || [' ', '-', '_'].contains(char));
    kept.flat_map(char::to_lowercase)
        .map(|char| if char == ' ' { '-' } else { char })
        .collect()
}

pub(crate) fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .canonicalize()
        .unwrap()
}

/// Returns every English page that has a translation, with the translation.
fn translated_pages() -> Vec<(PathBuf, PathBuf)> {
    let docs = repository_root().join("docs");
    let mut pages = vec![(
        repository_root().join("README.md"),
        repository_root().join("README.zh-CN.md"),
    )];
    for entry in std::fs::read_dir(docs.join("zh-CN")).unwrap() {
        let page = entry.unwrap();
        pages.push((docs.join(page.file_name()), page.path()));
    }
    assert!(pages.len() > 5, "{pages:?}");
    pages
}

#[test]
fn translations_keep_headings_blocks_and_commands() {
    for (original, translated) in translated_pages() {
        let name = translated.display();
        let english = Outline::read(&original);
        let chinese = Outline::read(&translated);
        assert_eq!(chinese.levels, english.levels, "{name}: levels of headings");
        assert_eq!(
            chinese.blocks, english.blocks,
            "{name}: code blocks without their comments"
        );
        assert_eq!(
            chinese.command_counts(),
            english.command_counts(),
            "{name}: commands and options"
        );
    }
}

#[test]
fn translations_link_to_existing_targets() {
    let pages = translated_pages();
    for (original, translated) in &pages {
        let name = translated.display();
        let outline = Outline::read(translated);
        let folder = translated.parent().unwrap();
        let mut back = false;
        for link in outline.links() {
            let (path, heading) = link
                .split_once('#')
                .map_or((link, None), |(path, heading)| (path, Some(heading)));
            let target = if path.is_empty() {
                translated.clone()
            } else {
                folder.join(path)
            };
            let target = target
                .canonicalize()
                .unwrap_or_else(|error| panic!("{name}: {link}: {error}"));
            back |= target == *original;
            let in_chinese = pages
                .iter()
                .any(|(english, _)| *english == target && english != original);
            assert!(!in_chinese, "{name}: {link} is there in Chinese");
            let known = heading.is_none_or(|heading| {
                Outline::read(&target)
                    .anchors
                    .iter()
                    .any(|known| known == heading)
            });
            assert!(known, "{name}: {link}: no such heading");
        }
        assert!(back, "{name} has no link to the original");
    }
    let readme = Outline::read(&repository_root().join("README.md"));
    assert!(
        readme.links().any(|link| link == "README.zh-CN.md"),
        "the README names its translation"
    );
}

#[test]
fn outline_detects_differences() {
    let dir = tempfile::tempdir().unwrap();
    let outline = |text: &str| {
        let page = dir.path().join("page.md");
        std::fs::write(&page, text).unwrap();
        Outline::read(&page)
    };
    let english = outline(
        "# A b\n\nSee `haft x` and ``[`--no` command]``.\n\n```\nhaft x   # do it\n# alone\n```\n",
    );
    let same = outline("# 甲 乙\n\n见 `haft x`。\n\n```\nhaft x   # 做\n# 单独\n```\n");
    assert_eq!(
        (&english.levels, &english.blocks),
        (&same.levels, &same.blocks)
    );
    assert_eq!(english.command_counts(), same.command_counts());
    assert_eq!(
        [&english.anchors[..], &same.anchors].concat(),
        ["a-b", "甲-乙"]
    );
    assert_ne!(english.levels, outline("## A b\n").levels);
    assert_ne!(
        english.blocks,
        outline("```\nhaft y   # do it\n# alone\n```\n").blocks
    );
    assert_ne!(
        english.command_counts(),
        outline("`haft x` `haft x`").command_counts()
    );
    assert_ne!(
        english.command_counts(),
        outline("`haft x` `--option`").command_counts()
    );
}
