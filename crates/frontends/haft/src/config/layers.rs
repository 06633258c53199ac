//! Merges the layers, remembering where every value came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use haft_model::BuiltIn;
use haft_permission::Rules;
use serde::Deserialize;
use toml::{Table, Value};

use super::{Config, problem};
use crate::exit::mistake;

/// What the configuration is made from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// The user's file; it need not exist.
    pub(crate) user_file: PathBuf,
    /// The environment.
    pub(crate) environment: Vec<(String, String)>,
    /// `--set KEY=VALUE`, in order.
    pub(crate) set: Vec<String>,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    BuiltIn,
    File(PathBuf),
    Variable(String),
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::File(path) => path.display().fmt(f),
            Self::Variable(name) => write!(f, "environment {name}"),
            Self::Flag => f.write_str("flag --set"),
        }
    }
}

/// The configuration, and where each of its values came from.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    /// The configuration.
    pub(crate) config: Config,
    /// Its values by dotted key, in order.
    pub(crate) values: BTreeMap<String, Value>,
    origins: BTreeMap<String, Origin>,
}

impl Loaded {
    /// Where a value came from.
    pub(crate) fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::BuiltIn)
    }
}

/// Merges all layers. The first value that does not fit is an error that names its place.
pub(crate) fn load(sources: &Sources) -> anyhow::Result<Loaded> {
    let mut merge = Merge::default();
    if let Some(text) = read_file(&sources.user_file)? {
        let table = check(&sources.user_file, &text)?;
        merge.add(table, &Origin::File(sources.user_file.clone()));
    }
    for (name, value) in &sources.environment {
        if let Some(key) = key_of_variable(name) {
            merge.add(assignment(&key, value)?, &Origin::Variable(name.clone()));
            merge.check().map_err(|error| {
                mistake(format!("environment variable `{name}`: {}", problem::in_words(error.message())))
            })?;
        }
    }
    for set in &sources.set {
        let (key, value) = split(set)?;
        merge.add(assignment(key, value)?, &Origin::Flag);
        merge.check().map_err(|error| mistake(format!("`--set {set}`: {}", problem::in_words(error.message()))))?;
    }
    let mut config = merge.check()?;
    // A model chosen for this run is the one that works, whatever the file gives the coding agent.
    if matches!(merge.origins.get("model"), Some(Origin::Variable(_) | Origin::Flag)) {
        config.model_roles.clear_code();
    }
    let home = sources.environment.iter().find(|(name, _)| name == "HOME").map(|(_, home)| Path::new(home));
    Rules::load(&config.permissions, home).map_err(|error| mistake(error.to_string()))?;
    let whole = Table::try_from(&config)?;
    let mut values = BTreeMap::new();
    flatten(&whole, &mut Vec::new(), &mut |key, value| {
        values.insert(key, value.clone());
    });
    Ok(Loaded { config, values, origins: merge.origins })
}

#[derive(Default)]
struct Merge {
    table: Table,
    origins: BTreeMap<String, Origin>,
}

impl Merge {
    fn add(&mut self, layer: Table, origin: &Origin) {
        flatten(&layer, &mut Vec::new(), &mut |key, _| {
            self.origins.insert(key, origin.clone());
        });
        merge(&mut self.table, layer);
    }

    fn check(&self) -> Result<Config, toml::de::Error> {
        Config::deserialize(over_built_in(self.table.clone()))
    }
}

fn merge(into: &mut Table, layer: Table) {
    for (key, value) in layer {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// The same with what is built in below each provider and model it names: a key that is not written keeps its built-in value.
fn over_built_in(mut table: Table) -> Table {
    let empty = Table::new();
    let section = |name: &str| table.get(name).and_then(Value::as_table).unwrap_or(&empty);
    let (providers, models) = BuiltIn::get().below(section("providers"), section("models"));
    for (name, mut below) in [("providers", providers), ("models", models)] {
        if let Some(Value::Table(above)) = table.get_mut(name) {
            merge(&mut below, std::mem::take(above));
            *above = below;
        }
    }
    table
}

/// Calls `visit` with the dotted key of every value that is not a table.
pub(crate) fn flatten(table: &Table, path: &mut Vec<String>, visit: &mut dyn FnMut(String, &Value)) {
    for (key, value) in table {
        path.push(if key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            key.clone()
        } else {
            Value::String(key.clone()).to_string()
        });
        match value {
            Value::Table(inner) => flatten(inner, path, visit),
            value => visit(path.join("."), value),
        }
        path.pop();
    }
}

fn read_file(path: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(mistake(format!("cannot read the configuration `{}`: {error}", path.display()))),
    }
}

/// Checks the text of a configuration file, and gives it as a table.
pub(crate) fn check(path: &Path, text: &str) -> anyhow::Result<Table> {
    let table: Table = toml::from_str(text).map_err(|error| mistake(problem::in_file(path, text, &error)))?;
    if let Err(merged) = Config::deserialize(over_built_in(table.clone())) {
        // Read once more on its own: that error has a line and a column. It may be none at all where the merged table has one.
        let error = toml::from_str::<Config>(text).err().unwrap_or(merged);
        return Err(mistake(problem::in_file(path, text, &error)));
    }
    Ok(table)
}

/// The configuration that this table alone makes.
pub(crate) fn lower(table: Table) -> anyhow::Result<Config> {
    Config::deserialize(over_built_in(table)).map_err(|error| mistake(problem::in_words(error.message())))
}

/// `HAFT_MODEL` and `HAFT_SECTION__KEY`; any other name is none of ours.
fn key_of_variable(name: &str) -> Option<String> {
    let rest = name.strip_prefix("HAFT_")?;
    if rest == "MODEL" {
        return Some("model".into());
    }
    rest.contains("__").then(|| rest.to_ascii_lowercase().replace("__", "."))
}

fn split(set: &str) -> anyhow::Result<(&str, &str)> {
    // A quoted part of the key may hold an equals sign.
    let mut quoted = false;
    let equals = set.char_indices().find(|(_, c)| {
        quoted ^= *c == '"';
        *c == '=' && !quoted
    });
    let (at, _) = equals.ok_or_else(|| mistake(format!("`--set {set}`: expected KEY=VALUE")))?;
    Ok((set[..at].trim(), set[at + 1..].trim()))
}

/// A table of one value. The value is TOML; what is not TOML is a string, so that quotes are rarely needed.
fn assignment(key: &str, value: &str) -> anyhow::Result<Table> {
    let as_string = || format!("{key} = {}", Value::String(value.to_owned()));
    toml::from_str::<Table>(&format!("{key} = {value}"))
        .or_else(|_| toml::from_str::<Table>(&as_string()))
        .map_err(|_| mistake(format!("`{key}` is not a configuration key")))
}

#[cfg(test)]
mod tests;
