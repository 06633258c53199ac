//! `haft rag add` and `haft rag remove`: change config.toml, and keep its comments and order.

use std::path::Path;

use haft_agent::config;
use haft_rag::{
    CollectionConfig, CollectionKind, CollectionSource, ConfiguredCollections,
    create_local_collection,
};
use toml_edit::{Array, Item, Table, value};

use crate::cli::options::Common;
use crate::commands::config::file as config_file;
use crate::commands::rag::RagAddArgs;
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::{output, wiring};

const SECTION: &str = "rag";

pub(super) fn add_collection(haft: &Haft, args: &RagAddArgs) -> anyhow::Result<()> {
    let places = haft.places()?;
    let file = places.config_file();
    let section = config_from_args(args)?;
    let source = section
        .source(&args.name, places.environment.home().as_deref())
        .map_err(|error| usage_error(error.to_string()))?;
    config::edit_file(&file, |before| {
        insert_declaration(&file, before, &args.name, &section)
    })?;
    output::print_text_line(&text!(
        "rag-declared",
        name = args.name,
        file = file.display()
    ))?;
    if let CollectionSource::Folders(folders) = source {
        // The collection stays declared even if indexing fails: the next question indexes again.
        let local = create_local_collection(&places, &args.name, folders);
        let (update, notes) = local.update()?;
        for note in notes {
            output::print_to_stderr(&format!("note: {note}"));
        }
        let status = local.status()?;
        output::print_text_line(&text!(
            "rag-indexed",
            read = update.indexed,
            files = status.files,
            passages = status.passages,
            size = output::format_bytes(status.bytes)
        ))?;
        if status.files == 0 {
            output::print_to_stderr(text!("rag-no-text"));
        }
    }
    Ok(())
}

pub(super) fn remove_collection(haft: &Haft, name: &str, common: &Common) -> anyhow::Result<()> {
    let settings = haft.load(common)?;
    let file = settings.places.config_file();
    let rag = ConfiguredCollections::load(&settings.places, &settings.config);
    config::edit_file(&file, |before| remove_declaration(&file, before, name))?;
    match rag
        .collections
        .iter()
        .find(|one| one.name == name)
        .map(|one| &one.kind)
    {
        Some(CollectionKind::Local(local)) => local.remove_index()?,
        Some(CollectionKind::Remote(_)) | None => {}
    }
    output::print_text_line(&text!("rag-removed", name, file = file.display()))
}

fn config_from_args(args: &RagAddArgs) -> anyhow::Result<CollectionConfig> {
    let folders = args.folders.iter().map(|folder| {
        let whole = folder
            .canonicalize()
            .map_err(|error| usage_error(format!("`{}`: {error}", folder.display())))?;
        if !whole.is_dir() {
            return Err(usage_error(text!(
                "rag-not-a-folder",
                folder = folder.display()
            )));
        }
        let text = whole.into_os_string().into_string();
        text.map_err(|_| usage_error(text!("rag-bad-path", folder = folder.display())))
    });
    Ok(CollectionConfig {
        description: args.description.clone().unwrap_or_default(),
        folders: folders.collect::<anyhow::Result<_>>()?,
        url: args.url.clone(),
        model: args.model.clone(),
        api_key_env: args.api_key_env.clone(),
    })
}

/// Returns the text of the file with the collection added. Everything else stays unchanged.
fn insert_declaration(
    file: &Path,
    before: &str,
    name: &str,
    section: &CollectionConfig,
) -> anyhow::Result<String> {
    let mut document = config_file::parse_valid_config(file, before)?;
    let inline = || {
        usage_error(text!(
            "rag-not-a-table",
            section = SECTION,
            file = file.display()
        ))
    };
    let collections =
        config_file::get_or_insert_section(&mut document, SECTION).ok_or_else(inline)?;
    if collections.contains_key(name) {
        return Err(usage_error(text!(
            "rag-already-declared",
            name,
            file = file.display()
        )));
    }
    let mut table = Table::new();
    if !section.description.is_empty() {
        table.insert("description", value(&section.description));
    }
    if !section.folders.is_empty() {
        table.insert("folders", value(section.folders.iter().collect::<Array>()));
    }
    for (key, text) in [
        ("url", &section.url),
        ("model", &section.model),
        ("api_key_env", &section.api_key_env),
    ] {
        if let Some(text) = text {
            table.insert(key, value(text));
        }
    }
    collections.insert(name, Item::Table(table));
    let after = document.to_string();
    wiring::check_config(file, &after)?;
    Ok(after)
}

fn remove_declaration(file: &Path, before: &str, name: &str) -> anyhow::Result<String> {
    let missing = || usage_error(text!("rag-not-declared", file = file.display(), name));
    config_file::remove_entry(file, before, SECTION, name)?.ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insert_declaration_keeps_the_rest_and_can_be_reverted() {
        let file = Path::new("config.toml");
        let before = "# mine\nmodel = \"a/b\" # for now\n\n[retry]\nattempts = 2\n";
        let section = CollectionConfig {
            folders: vec!["/docs".into()],
            description: "Docs.".into(),
            ..Default::default()
        };
        let after = insert_declaration(file, before, "docs", &section).unwrap();
        assert_eq!(
            after,
            format!("{before}\n[rag.docs]\ndescription = \"Docs.\"\nfolders = [\"/docs\"]\n")
        );
        let again = insert_declaration(file, &after, "docs", &section)
            .unwrap_err()
            .to_string();
        assert!(again.contains("already"), "{again}");
        assert_eq!(remove_declaration(file, &after, "docs").unwrap(), before);
        assert!(
            remove_declaration(file, before, "docs")
                .unwrap_err()
                .to_string()
                .contains("no collection `docs`")
        );
    }
}
