//! Merges the layers, remembering where every value came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use haft_model::BuiltIn;
use haft_permission::PermissionRules;
use serde::Deserialize;
use toml::{Table, Value};

use super::section::{self, Section};
use super::variables;
use super::{Config, broken, problem};
use crate::error::ConfigError;

/// What the configuration is made from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The user's file; it need not exist.
    pub user_file: PathBuf,
    /// The environment.
    pub environment: Vec<(String, String)>,
    /// `--set KEY=VALUE`, in order.
    pub set: Vec<String>,
    /// The sections there are beside those of the core.
    pub sections: Vec<Section>,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueOrigin {
    /// Nobody set it.
    BuiltIn,
    /// A configuration file.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
    /// `--set`.
    Flag,
}

impl fmt::Display for ValueOrigin {
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
pub struct LoadedConfig {
    /// The configuration.
    pub config: Config,
    /// Its values by dotted key, in order.
    pub values: BTreeMap<String, Value>,
    origins: BTreeMap<String, ValueOrigin>,
}

impl LoadedConfig {
    /// Where a value came from.
    pub fn origin(&self, key: &str) -> ValueOrigin {
        self.origins
            .get(key)
            .cloned()
            .unwrap_or(ValueOrigin::BuiltIn)
    }
}

/// Merges all layers. What does not fit is an error that names its place; of the file it names
/// every place.
pub fn load(sources: &Sources) -> Result<LoadedConfig, ConfigError> {
    let sections = &sources.sections;
    let mut merge = Merge {
        sections,
        table: Table::new(),
        origins: BTreeMap::new(),
    };
    if let Some(text) = read_file(&sources.user_file)? {
        let table = check(&sources.user_file, &text, sections)?;
        merge.add(table, &ValueOrigin::File(sources.user_file.clone()));
    }
    for (name, value) in &sources.environment {
        if let Some(key) = variables::key_of(name, sections) {
            let bad = |problem: String| ConfigError::InVariable {
                name: name.clone(),
                problem,
            };
            let layer = assignment(&key, value).map_err(|error| bad(error.to_string()))?;
            merge.add(layer, &ValueOrigin::Variable(name.clone()));
            merge.check().map_err(bad)?;
        }
    }
    for set in &sources.set {
        let (key, value) = split(set)?;
        merge.add(assignment(key, value)?, &ValueOrigin::Flag);
        merge.check().map_err(|problem| ConfigError::InSet {
            set: set.clone(),
            problem,
        })?;
    }
    let mut config = merge.check().map_err(ConfigError::Value)?;
    // A model chosen for this run is the one that works, whatever the file gives the coding agent.
    if matches!(
        merge.origins.get("model"),
        Some(ValueOrigin::Variable(_) | ValueOrigin::Flag)
    ) {
        config.model_roles.code.clear();
    }
    let home = sources
        .environment
        .iter()
        .find(|(name, _)| name == "HOME")
        .map(|(_, home)| Path::new(home));
    PermissionRules::load(&config.permissions, home).map_err(ConfigError::Rules)?;
    let whole = section::whole(&config, sections)?;
    let mut values = BTreeMap::new();
    flatten(&whole, &mut Vec::new(), &mut |key, value| {
        values.insert(key, value.clone());
    });
    config.unknown_variables = variables::unknown(&sources.environment, &values, sections);
    Ok(LoadedConfig {
        config,
        values,
        origins: merge.origins,
    })
}

struct Merge<'a> {
    sections: &'a [Section],
    table: Table,
    origins: BTreeMap<String, ValueOrigin>,
}

impl Merge<'_> {
    fn add(&mut self, layer: Table, origin: &ValueOrigin) {
        flatten(&layer, &mut Vec::new(), &mut |key, _| {
            self.origins.insert(key, origin.clone());
        });
        merge(&mut self.table, layer);
    }

    /// The configuration so far, or what is wrong with it.
    fn check(&self) -> Result<Config, String> {
        read(self.table.clone(), self.sections)
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

/// The table with the built-in values below each provider and model it names: a key that is not
/// written keeps its built-in value.
fn over_built_in(mut table: Table) -> Table {
    for (name, below) in built_in_below(&table) {
        if let (Some(Value::Table(above)), Value::Table(mut below)) = (table.get_mut(&name), below)
        {
            merge(&mut below, std::mem::take(above));
            *above = below;
        }
    }
    table
}

/// Returns what is built in of the providers and models that the table names, in the same tables.
pub(super) fn built_in_below(table: &Table) -> Table {
    let empty = Table::new();
    let section = |name: &str| table.get(name).and_then(Value::as_table).unwrap_or(&empty);
    let (providers, models) = BuiltIn::get().below(section("providers"), section("models"));
    let named = [("providers", providers), ("models", models)]
        .into_iter()
        .filter(|(name, _)| table.contains_key(*name));
    named
        .map(|(name, below)| (name.to_owned(), Value::Table(below)))
        .collect()
}

/// Calls `visit` with the dotted key of every value that is not a table.
pub fn flatten(table: &Table, path: &mut Vec<String>, visit: &mut dyn FnMut(String, &Value)) {
    for (key, value) in table {
        path.push(
            if key
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
            {
                key.clone()
            } else {
                Value::String(key.clone()).to_string()
            },
        );
        match value {
            Value::Table(inner) => flatten(inner, path, visit),
            value => visit(path.join("."), value),
        }
        path.pop();
    }
}

fn read_file(path: &Path) -> Result<Option<String>, ConfigError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ConfigError::Unreadable {
            file: path.to_owned(),
            error,
        }),
    }
}

/// Checks the text of a configuration file, and gives it as a table. The error lists every broken
/// place.
pub fn check(path: &Path, text: &str, sections: &[Section]) -> Result<Table, ConfigError> {
    broken::check(path, text, sections)
}

/// The configuration that this table alone makes.
pub fn lower(table: Table, sections: &[Section]) -> Result<Config, ConfigError> {
    read(table, sections).map_err(ConfigError::Value)
}

/// The configuration of a merged table, or what is wrong with it.
fn read(table: Table, sections: &[Section]) -> Result<Config, String> {
    if let Some((_, problem)) = section::unknown_key(&table, sections) {
        return Err(problem);
    }
    let of_sections =
        section::read(&table, sections).map_err(|error| problem::in_words(error.message()))?;
    let core = Config::deserialize(over_built_in(table))
        .map_err(|error| problem::in_words(error.message()))?;
    Ok(Config {
        sections: of_sections,
        ..core
    })
}

fn split(set: &str) -> Result<(&str, &str), ConfigError> {
    // A quoted part of the key may hold an equals sign.
    let mut quoted = false;
    let equals = set.char_indices().find(|(_, c)| {
        quoted ^= *c == '"';
        *c == '=' && !quoted
    });
    let (at, _) = equals.ok_or_else(|| ConfigError::InSet {
        set: set.to_owned(),
        problem: "expected KEY=VALUE".to_owned(),
    })?;
    Ok((set[..at].trim(), set[at + 1..].trim()))
}

/// A table of one value. The value is TOML; what is not TOML is a string, so that quotes are rarely
/// needed.
fn assignment(key: &str, value: &str) -> Result<Table, ConfigError> {
    let as_string = || format!("{key} = {}", Value::String(value.to_owned()));
    toml::from_str::<Table>(&format!("{key} = {value}"))
        .or_else(|_| toml::from_str::<Table>(&as_string()))
        .map_err(|_| ConfigError::NotAKey(key.to_owned()))
}

#[cfg(test)]
mod tests;
