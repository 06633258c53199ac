//! The `[rag.NAME]` sections of the configuration.

use std::path::{Path, PathBuf};

use haft_text::NameRule;
use serde::{Deserialize, Serialize};

/// One `[rag.NAME]` section, which defines a collection: the local folders to index, or the server
/// that answers questions.
///
/// ```
/// use haft_rag::{CollectionConfig, CollectionSource};
///
/// let config: CollectionConfig = serde_json::from_value(serde_json::json!({"folders": ["~/docs"]})).unwrap();
/// let source = config.source("docs", Some(std::path::Path::new("/home/me"))).unwrap();
/// assert!(matches!(source, CollectionSource::Folders(folders) if folders == [std::path::Path::new("/home/me/docs")]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CollectionConfig {
    /// The subject of the collection, in one sentence. The model chooses a collection by this text.
    pub description: String,
    /// The folders to index. Each path is absolute or begins with `~/`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// The URL of the server that answers questions. The URL ends in `/v1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// For a server: the model name that is sent to it. Default: the name of the collection.
    ///
    /// For folders: the model, as `provider/model`, that writes the answers of `haft rag serve`.
    /// Default: passages are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The environment variable that contains the server's key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
}

/// The source of a collection's answers: local folders or a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectionSource {
    /// The local folders to index.
    Folders(Vec<PathBuf>),
    Url(url::Url),
}

/// The error for a `[rag.NAME]` section that does not define a valid collection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`[rag.{name}]`: {why}")]
pub struct CollectionConfigError {
    name: String,
    why: String,
}

impl CollectionConfig {
    /// Returns the source of the collection. A `~` in a folder is replaced with `home`.
    pub fn source(
        &self,
        name: &str,
        home: Option<&Path>,
    ) -> Result<CollectionSource, CollectionConfigError> {
        let error = |why: String| CollectionConfigError {
            name: name.to_owned(),
            why,
        };
        if name.len() > 64 || !NameRule::FileStem.allows(name) {
            return Err(error(
                "the name may hold letters, digits, `-` and `_`, at most 64".to_owned(),
            ));
        }
        match (&self.url, self.folders.as_slice()) {
            (Some(_), [_, ..]) => Err(error("give `folders` or `url`, not both".to_owned())),
            (None, []) => Err(error("it has neither `folders` nor `url`".to_owned())),
            (Some(url), []) => {
                let parsed = url::Url::parse(url)
                    .map_err(|why| error(format!("`url` is not an address: {why}")))?;
                if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
                    return Err(error(format!(
                        "`url` must begin with http:// or https://, and `{url}` does not"
                    )));
                }
                if !parsed.username().is_empty() || parsed.password().is_some() {
                    return Err(error(
                        "`url` holds a password; put the key into `api_key_env`".to_owned(),
                    ));
                }
                Ok(CollectionSource::Url(parsed))
            }
            (None, folders) => {
                if self.api_key_env.is_some() {
                    return Err(error(
                        "`api_key_env` is for a server, and this collection has `folders`"
                            .to_owned(),
                    ));
                }
                let folders = folders
                    .iter()
                    .map(|folder| resolve_folder(folder, home).map_err(&error));
                folders
                    .collect::<Result<_, _>>()
                    .map(CollectionSource::Folders)
            }
        }
    }
}

fn resolve_folder(folder: &str, home: Option<&Path>) -> Result<PathBuf, String> {
    let path = match folder.strip_prefix("~/") {
        Some(rest) => home
            .ok_or("`~` stands for a home folder, and there is none")?
            .join(rest),
        None if folder == "~" => home
            .ok_or("`~` stands for a home folder, and there is none")?
            .to_owned(),
        None => PathBuf::from(folder),
    };
    if path.is_absolute() {
        Ok(path)
    } else {
        Err(format!(
            "the folder `{folder}` must be an absolute path, or begin with `~/`"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source_error(config: &CollectionConfig, name: &str) -> String {
        config.source(name, None).unwrap_err().to_string()
    }

    #[test]
    fn source_reports_why_a_collection_is_invalid() {
        let folders = CollectionConfig {
            folders: vec!["/docs".into()],
            ..CollectionConfig::default()
        };
        let with_url = |url: &str| CollectionConfig {
            url: Some(url.into()),
            ..CollectionConfig::default()
        };
        assert!(folders.source("d", None).is_ok());
        assert!(with_url("http://127.0.0.1:1/v1").source("d", None).is_ok());
        let with_model = CollectionConfig {
            model: Some("m".into()),
            ..folders.clone()
        };
        assert!(with_model.source("d", None).is_ok());
        for (config, name, part) in [
            (
                CollectionConfig::default(),
                "d",
                "neither `folders` nor `url`",
            ),
            (
                CollectionConfig {
                    url: Some("http://h".into()),
                    ..folders.clone()
                },
                "d",
                "not both",
            ),
            (
                CollectionConfig {
                    folders: vec!["docs".into()],
                    ..folders.clone()
                },
                "d",
                "absolute",
            ),
            (
                CollectionConfig {
                    folders: vec!["~/docs".into()],
                    ..folders.clone()
                },
                "d",
                "home folder",
            ),
            (
                CollectionConfig {
                    api_key_env: Some("KEY".into()),
                    ..folders.clone()
                },
                "d",
                "`api_key_env` is for a server",
            ),
            (folders, "../d", "letters, digits"),
            (with_url("ftp://h"), "d", "http://"),
            (with_url("nonsense"), "d", "not an address"),
            (with_url("http://me:secret@h/v1"), "d", "password"),
        ] {
            let told = source_error(&config, name);
            assert!(told.contains(part) && told.contains("[rag."), "{told}");
        }
    }
}
