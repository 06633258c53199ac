//! Merges the layers of the configuration and records the origin of every value.

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

/// The inputs of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The user's file, which need not exist.
    pub user_file: PathBuf,
    pub environment: Vec<(String, String)>,
    /// The arguments `--set KEY=VALUE`, in order.
    pub set: Vec<String>,
    /// The sections beyond those of the core.
    pub sections: Vec<Section>,
}

/// The layer that set a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueOrigin {
    /// The built-in default.
    BuiltIn,
    File(PathBuf),
    Variable(String),
    /// A `--set` argument.
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

/// The configuration with the origin of each value.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    pub config: Config,
    /// The values by dotted key, sorted.
    pub values: BTreeMap<String, Value>,
    origins: BTreeMap<String, ValueOrigin>,
}

impl LoadedConfig {
    /// Returns the origin of a value.
    pub fn origin(&self, key: &str) -> ValueOrigin {
        self.origins
            .get(key)
            .cloned()
            .unwrap_or(ValueOrigin::BuiltIn)
    }
}

/// Merges all layers. Invalid values are errors that name their place; for the file, all of them
/// are reported.
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
    // A model chosen for this run takes precedence over the file's model of the coding agent.
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

    /// Builds the configuration from the layers merged so far.
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

/// Adds the built-in values of each provider and model that the table names: keys that are not set
/// keep their built-in values.
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

/// Returns the built-in values of the providers and models that the table names, in the table's
/// structure.
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

/// Checks the text of a configuration file and returns it as a table. The error lists every invalid
/// value.
pub fn check(path: &Path, text: &str, sections: &[Section]) -> Result<Table, ConfigError> {
    broken::check(path, text, sections)
}

/// Builds a configuration from a single table.
pub fn lower(table: Table, sections: &[Section]) -> Result<Config, ConfigError> {
    read(table, sections).map_err(ConfigError::Value)
}

/// Builds a configuration from a merged table. The error describes the first problem.
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
    // A quoted part of the key may contain an equals sign.
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

/// Parses an assignment as a table with one value. A value that is not TOML is taken as a string,
/// so that quotes are rarely needed.
fn assignment(key: &str, value: &str) -> Result<Table, ConfigError> {
    let as_string = || format!("{key} = {}", Value::String(value.to_owned()));
    toml::from_str::<Table>(&format!("{key} = {value}"))
        .or_else(|_| toml::from_str::<Table>(&as_string()))
        .map_err(|_| ConfigError::NotAKey(key.to_owned()))
}

#[cfg(test)]
mod tests;
