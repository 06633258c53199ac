//! `haft rag list`: prints the configured collections.

use haft_rag::{Collection, CollectionKind, CollectionStatus, ConfiguredCollections};
use serde_json::{Value, json};

use crate::cli::options::JsonArgs;
use crate::haft::Haft;
use crate::output::{self, TextTable};

pub(super) fn run(haft: &Haft, args: &JsonArgs) -> anyhow::Result<()> {
    let settings = haft.load(&args.common)?;
    let rag = ConfiguredCollections::load(&settings.places, &settings.config);
    for problem in &rag.problems {
        output::print_to_stderr(&format!("warning: {}", output::localize_text(problem)));
    }
    if args.json {
        return output::print_json(
            &rag.collections
                .iter()
                .map(collection_to_json)
                .collect::<Vec<_>>()
                .into(),
        );
    }
    if rag.collections.is_empty() {
        return output::print_text_line(text!("rag-none"));
    }
    let mut table = TextTable::new(&[
        text!("table-name"),
        text!("table-description"),
        text!("table-from"),
        text!("table-files"),
        text!("table-index"),
    ]);
    for collection in &rag.collections {
        let (from, files, index) = match &collection.kind {
            CollectionKind::Local(local) => {
                let from: Vec<_> = local
                    .folders()
                    .iter()
                    .map(|folder| folder.display().to_string())
                    .collect();
                let status = local.status().unwrap_or_default();
                (
                    from.join(", "),
                    status.files.to_string(),
                    output::format_bytes(status.bytes),
                )
            }
            CollectionKind::Remote(remote) => {
                (remote.url().to_string(), "-".to_owned(), "-".to_owned())
            }
        };
        table.add_row(vec![
            collection.name.clone(),
            collection.description.clone(),
            from,
            files,
            index,
        ]);
    }
    output::print_text(&table.to_string())
}

fn collection_to_json(collection: &Collection) -> Value {
    let mut value = json!({ "name": collection.name, "description": collection.description });
    match &collection.kind {
        CollectionKind::Local(local) => {
            let CollectionStatus {
                files,
                passages,
                bytes,
            } = local.status().unwrap_or_default();
            value["folders"] = json!(local.folders());
            value["files"] = files.into();
            value["passages"] = passages.into();
            value["index_bytes"] = bytes.into();
            if let Some(model) = &collection.model {
                value["model"] = model.as_str().into();
            }
        }
        CollectionKind::Remote(remote) => value["url"] = remote.url().as_str().into(),
    }
    value
}
