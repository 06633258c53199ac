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
use super::{Config, file_check, problem};
use crate::error::ConfigError;

/// The sources from which the configuration is merged. Later sources take precedence: the user's
/// file, the environment, and the `--set` arguments.
#[derive(Clone, Debug, Default)]
pub struct ConfigSources {
    /// The user's file, which need not exist.
    pub user_file: PathBuf,
    pub environment: Vec<(String, String)>,
    /// The arguments `--set KEY=VALUE`, in order.
    pub set: Vec<String>,
    /// The configuration sections of extensions and front ends.
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
    pub fn value_origin(&self, key: &str) -> ValueOrigin {
        self.origins
            .get(key)
            .cloned()
            .unwrap_or(ValueOrigin::BuiltIn)
    }
}

/// Merges all layers. An invalid value is an error with the value's place. All errors of the file
/// are reported together.
pub fn load_config(sources: &ConfigSources) -> Result<LoadedConfig, ConfigError> {
    let sections = &sources.sections;
    let mut merge = LayerMerge {
        sections,
        table: Table::new(),
        origins: BTreeMap::new(),
    };
    if let Some(text) = read_file(&sources.user_file)? {
        let table = check_config_text(&sources.user_file, &text, sections)?;
        merge.add_layer(table, &ValueOrigin::File(sources.user_file.clone()));
    }
    let assignments = read_assignments(sources)?;
    let below = merge.table.clone();
    for assignment in &assignments {
        merge.add_layer(assignment.layer.clone(), &assignment.source.origin());
    }
    let mut config = match merge.build_config() {
        Ok(config) => config,
        Err(problem) => return Err(blame_assignment(below, sections, assignments, problem)),
    };
    // A model chosen for this run takes precedence over the file's models of the coding agent.
    if matches!(
        merge.origins.get("model"),
        Some(ValueOrigin::Variable(_) | ValueOrigin::Flag)
    ) {
        config.model_roles.code.clear();
        config.model_roles.planner.clear();
    }
    let home = sources
        .environment
        .iter()
        .find(|(name, _)| name == "HOME")
        .map(|(_, home)| Path::new(home));
    PermissionRules::load(&config.permissions, home).map_err(ConfigError::Rules)?;
    let whole = section::to_complete_table(&config, sections)?;
    let mut values = BTreeMap::new();
    visit_values(&whole, &mut Vec::new(), &mut |key, value| {
        values.insert(key, value.clone());
    });
    config.unknown_variables =
        variables::find_unknown_variables(&sources.environment, &values, sections);
    Ok(LoadedConfig {
        config,
        values,
        origins: merge.origins,
    })
}

/// A value that a variable or a flag sets, as a table with this value.
struct Assignment {
    layer: Table,
    source: AssignmentSource,
}

enum AssignmentSource {
    /// The environment variable with this name.
    Variable(String),
    /// The argument of `--set`.
    Set(String),
}

impl AssignmentSource {
    fn origin(&self) -> ValueOrigin {
        match self {
            Self::Variable(name) => ValueOrigin::Variable(name.clone()),
            Self::Set(_) => ValueOrigin::Flag,
        }
    }

    fn into_error(self, problem: String) -> ConfigError {
        match self {
            Self::Variable(name) => ConfigError::InVariable { name, problem },
            Self::Set(set) => ConfigError::InSet { set, problem },
        }
    }
}

/// Reads the values that environment variables and `--set` set, lowest precedence first.
fn read_assignments(sources: &ConfigSources) -> Result<Vec<Assignment>, ConfigError> {
    let mut assignments = Vec::new();
    for (name, value) in &sources.environment {
        if let Some(key) = variables::key_for_variable(name, &sources.sections) {
            let source = AssignmentSource::Variable(name.clone());
            match parse_assignment(&key, value) {
                Ok(layer) => assignments.push(Assignment { layer, source }),
                Err(error) => return Err(source.into_error(error.to_string())),
            }
        }
    }
    for set in &sources.set {
        let (key, value) = split_assignment(set)?;
        assignments.push(Assignment {
            layer: parse_assignment(key, value)?,
            source: AssignmentSource::Set(set.clone()),
        });
    }
    Ok(assignments)
}

/// Returns the error for assignments that make the configuration invalid: that of the first one
/// after which it stays invalid. A table that several assignments fill may be incomplete in between.
fn blame_assignment(
    mut table: Table,
    sections: &[Section],
    assignments: Vec<Assignment>,
    problem: String,
) -> ConfigError {
    let mut blamed = None;
    for Assignment { layer, source } in assignments {
        merge_tables(&mut table, layer);
        blamed = match build_from_table(table.clone(), sections) {
            Ok(_) => None,
            Err(problem) => blamed.or_else(|| Some(source.into_error(problem))),
        };
    }
    blamed.unwrap_or(ConfigError::Value(problem))
}

struct LayerMerge<'a> {
    sections: &'a [Section],
    table: Table,
    origins: BTreeMap<String, ValueOrigin>,
}

impl LayerMerge<'_> {
    fn add_layer(&mut self, layer: Table, origin: &ValueOrigin) {
        visit_values(&layer, &mut Vec::new(), &mut |key, _| {
            self.origins.insert(key, origin.clone());
        });
        merge_tables(&mut self.table, layer);
    }

    /// Builds the configuration from the layers merged so far.
    fn build_config(&self) -> Result<Config, String> {
        build_from_table(self.table.clone(), self.sections)
    }
}

fn merge_tables(into: &mut Table, layer: Table) {
    for (key, value) in layer {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge_tables(below, above),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// Adds the built-in values of each provider and model in the table. Values in the table take
/// precedence.
fn add_built_in_values(mut table: Table) -> Table {
    for (name, below) in built_in_values_for(&table) {
        if let (Some(Value::Table(above)), Value::Table(mut below)) = (table.get_mut(&name), below)
        {
            merge_tables(&mut below, std::mem::take(above));
            *above = below;
        }
    }
    table
}

/// Returns the built-in values of the providers and models in `table`, in the structure of `table`.
pub(super) fn built_in_values_for(table: &Table) -> Table {
    let empty = Table::new();
    let section = |name: &str| table.get(name).and_then(Value::as_table).unwrap_or(&empty);
    let (providers, models) = BuiltIn::get().matching_keys(section("providers"), section("models"));
    let named = [("providers", providers), ("models", models)]
        .into_iter()
        .filter(|(name, _)| table.contains_key(*name));
    named
        .map(|(name, below)| (name.to_owned(), Value::Table(below)))
        .collect()
}

/// Calls `visit` with the dotted key of every value that is not a table.
pub fn visit_values(table: &Table, path: &mut Vec<String>, visit: &mut dyn FnMut(String, &Value)) {
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
            Value::Table(inner) => visit_values(inner, path, visit),
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
pub fn check_config_text(
    path: &Path,
    text: &str,
    sections: &[Section],
) -> Result<Table, ConfigError> {
    file_check::check_file(path, text, sections)
}

/// Builds a configuration from a single table.
pub fn config_from_table(table: Table, sections: &[Section]) -> Result<Config, ConfigError> {
    build_from_table(table, sections).map_err(ConfigError::Value)
}

/// Builds a configuration from a merged table. The error describes the first problem.
fn build_from_table(table: Table, sections: &[Section]) -> Result<Config, String> {
    if let Some((_, problem)) = section::find_unknown_key(&table, sections) {
        return Err(problem);
    }
    let of_sections = section::read_sections(&table, sections)
        .map_err(|error| problem::describe_with_suggestion(error.message()))?;
    let core = Config::deserialize(add_built_in_values(table))
        .map_err(|error| problem::describe_with_suggestion(error.message()))?;
    Ok(Config {
        sections: of_sections,
        ..core
    })
}

fn split_assignment(set: &str) -> Result<(&str, &str), ConfigError> {
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
fn parse_assignment(key: &str, value: &str) -> Result<Table, ConfigError> {
    toml::from_str::<Table>(&format!("{key} = {value}"))
        .or_else(|_| {
            toml::from_str::<Table>(&format!("{key} = {}", Value::String(value.to_owned())))
        })
        .map_err(|_| ConfigError::NotAKey(key.to_owned()))
}

#[cfg(test)]
mod tests;
