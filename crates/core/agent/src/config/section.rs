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

/// A section beyond those of the core.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    name: &'static str,
    kind: SectionKind,
}

#[derive(Clone, Copy, Debug)]
enum SectionKind {
    /// The owner is part of the build.
    Typed {
        /// Fills in the section's defaults.
        complete: fn(Option<&Value>) -> Result<Value, SectionError>,
        /// Checks the section of a parsed file; the error has a position.
        check: for<'i> fn(&'static str, Spanned<DeTable<'i>>) -> Result<(), toml::de::Error>,
        /// The JSON Schema of the section.
        schema: fn() -> serde_json::Value,
    },
    /// The owner is not part of this build.
    Absent,
}

/// The reason why a section could not be parsed, or not be serialized.
enum SectionError {
    Read(toml::de::Error),
    Write(toml::ser::Error),
}

impl Section {
    /// Declares a section that is parsed as a `T`.
    pub fn of<T: DeserializeOwned + Serialize + Default>(name: &'static str) -> Self {
        Self {
            name,
            kind: SectionKind::Typed {
                complete: complete::<T>,
                check: check_as::<T>,
                schema: schema::of::<T>,
            },
        }
    }

    /// Declares a section whose owner is not part of this build. Its content is accepted and
    /// ignored.
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
    pub(super) fn check(&self, table: Spanned<DeTable<'_>>) -> Result<(), toml::de::Error> {
        match self.kind {
            SectionKind::Typed { check, .. } => check(self.name, table),
            SectionKind::Absent => Ok(()),
        }
    }

    /// Returns the JSON Schema of the section; a section without an owner accepts anything.
    pub(super) fn schema(&self) -> serde_json::Value {
        match self.kind {
            SectionKind::Typed { schema, .. } => schema(),
            SectionKind::Absent => serde_json::Value::Bool(true),
        }
    }
}

fn complete<T: DeserializeOwned + Serialize + Default>(
    value: Option<&Value>,
) -> Result<Value, SectionError> {
    let typed = match value {
        Some(value) => T::deserialize(value.clone()).map_err(SectionError::Read)?,
        None => T::default(),
    };
    Value::try_from(typed).map_err(SectionError::Write)
}

fn check_as<T: DeserializeOwned>(
    name: &'static str,
    table: Spanned<DeTable<'_>>,
) -> Result<(), toml::de::Error> {
    Only {
        name,
        owner: PhantomData::<T>,
    }
    .deserialize(toml::Deserializer::from(table))
}

/// Deserializes one section of a document and ignores the others.
struct Only<T> {
    name: &'static str,
    owner: PhantomData<T>,
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for Only<T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for Only<T> {
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

/// Returns the first key that belongs neither to the core nor to these sections, with the error
/// message.
pub(super) fn unknown_key(table: &Table, sections: &[Section]) -> Option<(String, String)> {
    let known: Vec<_> = Config::KEYS
        .into_iter()
        .chain(sections.iter().map(Section::name))
        .collect();
    let unknown = table.keys().find(|key| !known.contains(&key.as_str()))?;
    Some((unknown.clone(), problem::unknown_key(unknown, &known)))
}

/// Removes the top-level keys that belong neither to the core nor to these sections. Returns the
/// offset and the error message of each.
pub(super) fn unknown_keys(
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
        .map(|(offset, key)| (Some(offset), problem::unknown_key(&key, &known)))
        .collect()
}

/// Checks these sections of a merged table and returns them by name.
pub(super) fn read(
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
pub(super) fn whole(config: &Config, sections: &[Section]) -> Result<Table, ConfigError> {
    let mut whole = Table::try_from(config).map_err(ConfigError::NotToml)?;
    for section in sections {
        let value = config.sections.get(section.name);
        let value = match section.kind {
            SectionKind::Typed { complete, .. } => {
                Some(complete(value).map_err(|error| match error {
                    SectionError::Read(error) => {
                        ConfigError::Value(problem::in_words(error.message()))
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

    use super::super::{Sources, check, load};
    use super::*;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Colours {
        sky: String,
        depth: u32,
    }

    fn sections() -> Vec<Section> {
        vec![Section::of::<Colours>("colours"), Section::absent("sounds")]
    }

    fn problem_of(text: &str) -> String {
        check(Path::new("c.toml"), text, &sections())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn the_keys_of_the_core_are_all_its_keys() {
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
    fn what_is_wrong_in_a_section_has_its_place() {
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
    fn a_section_is_read_by_its_owner_and_shown_with_its_defaults() {
        let set = vec!["colours.sky=blue".to_owned(), "sounds.loud=true".to_owned()];
        let loaded = load(&Sources {
            set,
            sections: sections(),
            ..Sources::default()
        })
        .unwrap();
        let colours: Colours = loaded.config.section("colours").unwrap();
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
            loaded.config.section::<Colours>("other").unwrap(),
            Colours::default()
        );
    }

    #[test]
    fn a_section_that_is_not_in_the_build_takes_anything() {
        check(Path::new("c.toml"), "[sounds.a]\nany = [1]\n", &sections()).unwrap();
        assert!(check(Path::new("c.toml"), "[sounds.a]\nany = [1]\n", &[]).is_err());
    }
}
