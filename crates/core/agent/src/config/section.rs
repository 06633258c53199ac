//! Sections of the configuration that belong to extensions and front ends.
//!
//! The registration of an extension declares its section. The section is checked by the owner's
//! type as strictly as the sections of the core, with line and column. A section whose owner is not
//! part of the build is accepted unchecked.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use toml::de::DeTable;
use toml::{Spanned, Table, Value};

use super::{Config, problem, schema};
use crate::error::ConfigError;

/// A configuration section of an extension or a front end.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    name: &'static str,
    kind: SectionKind,
}

#[derive(Clone, Copy, Debug)]
enum SectionKind {
    /// The extension or front end that owns the section is part of this build.
    Typed {
        /// Adds the default values that the section lacks.
        complete: fn(Option<&Value>) -> Result<Value, SectionError>,
        /// Checks the section of a parsed file. An error has a position in the file.
        check: for<'i> fn(&'static str, Spanned<DeTable<'i>>) -> Result<(), toml::de::Error>,
        /// The JSON Schema of the section.
        schema: fn() -> serde_json::Value,
    },
    /// The extension or front end that owns the section is not part of this build.
    Absent,
}

/// The reason why a section could not be parsed or serialized.
enum SectionError {
    Read(toml::de::Error),
    Write(toml::ser::Error),
}

impl Section {
    /// Declares a section that is parsed as a `T`.
    pub fn for_type<T: DeserializeOwned + Serialize + Default>(name: &'static str) -> Self {
        Self {
            name,
            kind: SectionKind::Typed {
                complete: fill_defaults::<T>,
                check: check_as_type::<T>,
                schema: schema::schema_of_type::<T>,
            },
        }
    }

    /// Declares a section of an extension that is not part of this build. The content of the
    /// section is accepted and ignored.
    pub fn absent(name: &'static str) -> Self {
        Self {
            name,
            kind: SectionKind::Absent,
        }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Checks this section of a parsed file.
    pub(super) fn check_table(&self, table: Spanned<DeTable<'_>>) -> Result<(), toml::de::Error> {
        match self.kind {
            SectionKind::Typed { check, .. } => check(self.name, table),
            SectionKind::Absent => Ok(()),
        }
    }

    /// Returns the JSON Schema of the section. The schema accepts anything if the section's owner
    /// is not part of this build.
    pub(super) fn schema(&self) -> serde_json::Value {
        match self.kind {
            SectionKind::Typed { schema, .. } => schema(),
            SectionKind::Absent => serde_json::Value::Bool(true),
        }
    }
}

fn fill_defaults<T: DeserializeOwned + Serialize + Default>(
    value: Option<&Value>,
) -> Result<Value, SectionError> {
    let typed = match value {
        Some(value) => T::deserialize(value.clone()).map_err(SectionError::Read)?,
        None => T::default(),
    };
    Value::try_from(typed).map_err(SectionError::Write)
}

fn check_as_type<T: DeserializeOwned>(
    name: &'static str,
    table: Spanned<DeTable<'_>>,
) -> Result<(), toml::de::Error> {
    SectionSeed {
        name,
        owner: PhantomData::<T>,
    }
    .deserialize(toml::Deserializer::from(table))
}

/// Deserializes one section of a document and ignores the others.
struct SectionSeed<T> {
    name: &'static str,
    owner: PhantomData<T>,
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for SectionSeed<T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for SectionSeed<T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == self.name {
                map.next_value::<T>()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// Returns the first top-level key that is neither a key of the core nor one of these sections,
/// with the error message.
pub(super) fn find_unknown_key(table: &Table, sections: &[Section]) -> Option<(String, String)> {
    let known: Vec<_> = Config::KEYS
        .into_iter()
        .chain(sections.iter().map(Section::name))
        .collect();
    let unknown = table.keys().find(|key| !known.contains(&key.as_str()))?;
    Some((
        unknown.clone(),
        problem::unknown_key_message(unknown, &known),
    ))
}

/// Removes the top-level keys that are neither keys of the core nor among these sections. Returns
/// the offset and the error message of each removed key.
pub(super) fn remove_unknown_keys(
    table: &mut Spanned<DeTable<'_>>,
    sections: &[Section],
) -> Vec<(Option<usize>, String)> {
    let known: Vec<_> = Config::KEYS
        .into_iter()
        .chain(sections.iter().map(Section::name))
        .collect();
    let is_unknown = |key: &&Spanned<_>| !known.contains(&AsRef::<str>::as_ref(key.get_ref()));
    let unknown: Vec<(usize, String)> = table
        .get_ref()
        .keys()
        .filter(is_unknown)
        .map(|key| (key.span().start, key.get_ref().to_string()))
        .collect();
    for (_, key) in &unknown {
        table.get_mut().remove(key.as_str());
    }
    unknown
        .into_iter()
        .map(|(offset, key)| (Some(offset), problem::unknown_key_message(&key, &known)))
        .collect()
}

/// Checks these sections of a merged table and returns them by name.
pub(super) fn read_sections(
    table: &Table,
    sections: &[Section],
) -> Result<BTreeMap<String, Value>, toml::de::Error> {
    let mut read = BTreeMap::new();
    for section in sections {
        let Some(value) = table.get(section.name) else {
            continue;
        };
        if let SectionKind::Typed { complete, .. } = section.kind
            && let Err(SectionError::Read(error)) = complete(Some(value))
        {
            return Err(error);
        }
        read.insert(section.name.to_owned(), value.clone());
    }
    Ok(read)
}

/// Returns the whole configuration as a table, with the defaults of all sections.
pub(super) fn to_complete_table(
    config: &Config,
    sections: &[Section],
) -> Result<Table, ConfigError> {
    let mut whole = Table::try_from(config).map_err(ConfigError::NotToml)?;
    for section in sections {
        let value = config.sections.get(section.name);
        let value = match section.kind {
            SectionKind::Typed { complete, .. } => {
                Some(complete(value).map_err(|error| match error {
                    SectionError::Read(error) => {
                        ConfigError::Value(problem::describe_with_suggestion(error.message()))
                    }
                    SectionError::Write(error) => ConfigError::NotToml(error),
                })?)
            }
            SectionKind::Absent => value.cloned(),
        };
        whole.extend(value.map(|value| (section.name.to_owned(), value)));
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde::Deserialize;

    use super::super::{ConfigSources, check_config_text, load_config};
    use super::*;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Colours {
        sky: String,
        depth: u32,
    }

    fn sections() -> Vec<Section> {
        vec![
            Section::for_type::<Colours>("colours"),
            Section::absent("sounds"),
        ]
    }

    fn problem_of(text: &str) -> String {
        check_config_text(Path::new("c.toml"), text, &sections())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn config_keys_are_listed_completely() {
        let config = Config {
            model: Some("a/b".into()),
            ..Config::default()
        };
        let keys: Vec<_> = Table::try_from(&config).unwrap().keys().cloned().collect();
        let mut known = Config::KEYS.map(str::to_owned);
        known.sort();
        assert_eq!(keys, known);
    }

    #[test]
    fn check_names_the_place_of_an_error_in_a_section() {
        assert_eq!(
            problem_of("model = \"a/b\"\n[colours]\ndepht = 3\n"),
            "c.toml:3:1: unknown key `depht`; did you mean `depth`?"
        );
        assert!(problem_of("\n[colours]\ndepth = \"x\"\n").starts_with("c.toml:3:9: invalid type"));
        assert_eq!(
            problem_of("\n[colour]\nx = 1\n"),
            "c.toml:2:2: unknown key `colour`; did you mean `colours`?"
        );
    }

    #[test]
    fn section_is_parsed_by_its_owner_and_shown_with_defaults() {
        let set = vec!["colours.sky=blue".to_owned(), "sounds.loud=true".to_owned()];
        let loaded = load_config(&ConfigSources {
            set,
            sections: sections(),
            ..ConfigSources::default()
        })
        .unwrap();
        let colours: Colours = loaded.config.read_section("colours").unwrap();
        assert_eq!(
            colours,
            Colours {
                sky: "blue".into(),
                depth: 0
            }
        );
        assert_eq!(loaded.values["colours.depth"], Value::Integer(0));
        assert_eq!(
            loaded.values["sounds.loud"],
            Value::Boolean(true),
            "as it was written"
        );
        assert_eq!(
            loaded.config.read_section::<Colours>("other").unwrap(),
            Colours::default()
        );
    }

    #[test]
    fn absent_section_accepts_anything() {
        check_config_text(Path::new("c.toml"), "[sounds.a]\nany = [1]\n", &sections()).unwrap();
        assert!(check_config_text(Path::new("c.toml"), "[sounds.a]\nany = [1]\n", &[]).is_err());
    }
}
