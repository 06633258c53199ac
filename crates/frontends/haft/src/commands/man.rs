//! `haft man`: man pages, generated from the command tree.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::{Args, Command};
use clap_mangen::Man;
use haft_sandbox::ProgramPath;

use crate::cli::Cli;
use crate::cli::options::is_at_terminal;
use crate::exit::{ProcessExit, usage_error};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The command, such as `conversations fork`; haft itself when absent.
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands to this folder, such as `~/.local/share/man/man1`.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

pub(crate) fn show_or_write_pages(args: &ManArgs) -> anyhow::Result<ProcessExit> {
    let pages = build_pages()?;
    if let Some(folder) = &args.dir {
        write_pages(folder, &pages)?;
        output::print_text_line(&text!(
            "man-written",
            count = pages.len(),
            folder = folder.display()
        ))?;
        return Ok(ProcessExit::Completed);
    }
    let haft = build_command_tree();
    let mut name = "haft".to_owned();
    let mut command = &haft;
    for part in &args.command {
        command = command
            .find_subcommand(part)
            .ok_or_else(|| usage_error(text!("man-unknown", command = args.command.join(" "))))?;
        name = format!("{name}-{}", command.get_name());
    }
    let page = pages
        .iter()
        .find(|page| page.name == name)
        .map(|page| page.text.as_str())
        .unwrap_or_default();
    if is_at_terminal() && show_with_man(page) {
        return Ok(ProcessExit::Completed);
    }
    output::print_exact(page)?;
    Ok(ProcessExit::Completed)
}

/// The date of this version's command line. Every page contains the date, because a man page
/// without a date is not well-formed.
const DATE: &str = "2026-11-16";

/// A man page of one command, in roff format.
pub(crate) struct ManPage {
    /// The name without the section, such as `haft-conversations-fork`.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Returns the whole command tree, without the help command.
fn build_command_tree() -> Command {
    let mut haft = Cli::definition().disable_help_subcommand(true);
    haft.build();
    haft
}

/// Returns a man page for every visible command.
pub(crate) fn build_pages() -> anyhow::Result<Vec<ManPage>> {
    fn add_page(command: &Command, name: &str, pages: &mut Vec<ManPage>) -> anyhow::Result<()> {
        let shown = command.clone().display_name(name.to_owned());
        let mut text = Vec::new();
        let source = concat!("haft ", env!("CARGO_PKG_VERSION"));
        Man::new(shown)
            .section("1")
            .date(DATE)
            .source(source)
            .render(&mut text)?;
        // An empty line starts a paragraph, so line breaks around it have no effect.
        let text = String::from_utf8(text)?.replace(".br\n\n.br\n", "\n");
        pages.push(ManPage {
            name: name.to_owned(),
            text,
        });
        for inner in command
            .get_subcommands()
            .filter(|inner| !inner.is_hide_set())
        {
            add_page(inner, &format!("{name}-{}", inner.get_name()), pages)?;
        }
        Ok(())
    }
    let mut pages = Vec::new();
    add_page(&build_command_tree(), "haft", &mut pages)?;
    Ok(pages)
}

fn write_pages(folder: &Path, pages: &[ManPage]) -> anyhow::Result<()> {
    let failed = |error: std::io::Error| usage_error(format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    for page in pages {
        std::fs::write(folder.join(format!("{}.1", page.name)), &page.text).map_err(failed)?;
    }
    Ok(())
}

/// Shows a page with the program `man`. Returns false if that fails.
fn show_with_man(page: &str) -> bool {
    // `haft_files` is not used, because it would create a missing temporary folder.
    let Ok(file) = tempfile::Builder::new()
        .prefix("haft-")
        .suffix(".1")
        .tempfile()
    else {
        return false;
    };
    if std::fs::write(file.path(), page).is_err() {
        return false;
    }
    let man = ProgramPath::for_system("/usr/bin/man")
        .command()
        .arg("-l")
        .arg(file.path())
        .stderr(Stdio::null())
        .status();
    man.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::disallowed_methods,
        reason = "tests start programs of their own"
    )]

    use std::process::Command as Process;

    use super::*;

    /// Returns the names of the pages of all visible commands.
    fn page_names(command: &Command, name: &str) -> Vec<String> {
        let inner = command
            .get_subcommands()
            .filter(|inner| !inner.is_hide_set());
        let below =
            inner.flat_map(|inner| page_names(inner, &format!("{name}-{}", inner.get_name())));
        std::iter::once(name.to_owned()).chain(below).collect()
    }

    #[test]
    fn pages_cover_every_command_and_option() {
        let pages = build_pages().unwrap();
        let all = page_names(&build_command_tree(), "haft");
        assert!(all.len() > 100, "{}", all.len());
        assert_eq!(
            pages
                .iter()
                .map(|page| page.name.clone())
                .collect::<Vec<_>>(),
            all
        );
        for page in &pages {
            let path = page
                .name
                .split('-')
                .skip(1)
                .fold(build_command_tree(), |command, part| {
                    command.find_subcommand(part).cloned().unwrap_or(command)
                });
            assert!(
                page.text.contains(".SH NAME") && page.text.contains(".SH SYNOPSIS"),
                "{}",
                page.name
            );
            for option in path
                .get_arguments()
                .filter(|arg| !arg.is_hide_set())
                .filter_map(clap::Arg::get_long)
            {
                let roff = format!("\\-\\-{}", option.replace('-', "\\-"));
                assert!(page.text.contains(&roff), "{}: {option}", page.name);
            }
        }
    }

    #[test]
    fn pages_pass_the_lints_of_mandoc_and_groff() {
        let folder = tempfile::tempdir().unwrap();
        write_pages(folder.path(), &build_pages().unwrap()).unwrap();
        let files: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        let lint = |program: &str, arguments: &[&str]| {
            Process::new(program)
                .args(arguments)
                .args(&files)
                .output()
                .ok()
                .map(|output| {
                    let text = [output.stdout, output.stderr].concat();
                    String::from_utf8_lossy(&text).into_owned()
                })
        };
        let mandoc = lint("mandoc", &["-T", "lint", "-W", "warning"]);
        // groff formats the pages but prints only its warnings, on stderr.
        let groff = Process::new("groff")
            .args(["-man", "-ww", "-z", "-Tutf8", "-K", "utf8"])
            .args(&files)
            .output()
            .ok();
        let groff = groff.map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
        if mandoc.is_none() && groff.is_none() {
            eprintln!("skipped: there is neither mandoc nor groff here");
        }
        for said in [mandoc, groff].into_iter().flatten() {
            assert_eq!(said, "");
        }
    }
}
