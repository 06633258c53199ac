//! The JSON Schema of the configuration, traced from the types that parse it.
//!
//! Each type is deserialized from a source that only records the requests it gets. A sample value
//! that a type rejects is skipped in the next pass, so that a type with custom validation does not
//! hide the fields after it.

use std::collections::BTreeSet;

use serde::de::value::{Error, StrDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer,
    MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde_json::{Value, json};

use super::Config;
use super::section::Section;

/// Returns the schema of the whole configuration with these sections.
pub fn config_schema(sections: &[Section]) -> Value {
    let mut whole = schema_of_type::<Config>();
    for section in sections {
        whole["properties"][section.name()] = section.schema();
    }
    whole
}

/// Returns the schema of a type.
pub(super) fn schema_of_type<T: DeserializeOwned>() -> Value {
    let mut trace = SchemaTrace::default();
    loop {
        trace.path.clear();
        trace.failed = None;
        let read = T::deserialize(&mut trace);
        match trace.failed.take() {
            Some(path) if read.is_err() && trace.skipped.insert(path.clone()) => {}
            _ => return trace.schema,
        }
    }
}

#[derive(Default)]
struct SchemaTrace {
    schema: Value,
    /// The path of the value that is being deserialized, as its steps from the root of the schema.
    path: Vec<String>,
    /// Paths of values to skip in the next pass: the schema of each is recorded already, and its
    /// type rejects the sample value.
    skipped: BTreeSet<Vec<String>>,
    /// The innermost value that was rejected in this pass.
    failed: Option<Vec<String>>,
}

impl SchemaTrace {
    fn record_fragment(&mut self, fragment: Value) {
        let mut node = &mut self.schema;
        for step in &self.path {
            node = &mut node[step.as_str()];
        }
        match (node.as_object_mut(), fragment) {
            // Fields recorded below it in an earlier pass are kept.
            (Some(node), Value::Object(fragment)) => {
                for (key, value) in fragment {
                    node.entry(key).or_insert(value);
                }
            }
            (_, fragment) => *node = fragment,
        }
    }

    /// Enters a value below the current one. Returns false if the value must be skipped.
    fn enter_value(&mut self, steps: &[&str]) -> bool {
        let depth = self.path.len();
        self.path
            .extend(steps.iter().map(|step| (*step).to_owned()));
        if self.skipped.contains(&self.path) {
            // An alias of a field is recorded as a key as well.
            self.record_fragment(json!({}));
            self.path.truncate(depth);
            return false;
        }
        // Cleared once the value is read: a type may reject the key itself.
        self.failed = Some(self.path.clone());
        true
    }

    fn read_value<'de, S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
        steps: usize,
    ) -> Result<S::Value, Error> {
        let here = self.path.clone();
        self.failed = None;
        let read = seed.deserialize(&mut *self);
        match &read {
            Ok(_) => self.failed = None,
            Err(_) => {
                self.failed.get_or_insert_with(|| here.clone());
            }
        }
        self.path = here;
        self.path.truncate(self.path.len() - steps);
        read
    }
}

/// Defines methods of a deserializer. Each method records the schema of one kind of value and
/// passes a sample value to the visitor.
macro_rules! traced {
    ($($method:ident => $schema:tt, $visit:ident($($sample:expr)?);)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.record_fragment(json!($schema));
            visitor.$visit($($sample)?)
        })+
    };
}

impl<'de> Deserializer<'de> for &mut SchemaTrace {
    type Error = Error;

    traced! {
        deserialize_any => {}, visit_str("x");
        deserialize_ignored_any => {}, visit_str("x");
        deserialize_bool => {"type": "boolean"}, visit_bool(false);
        deserialize_i8 => {"type": "integer"}, visit_i8(1);
        deserialize_i16 => {"type": "integer"}, visit_i16(1);
        deserialize_i32 => {"type": "integer"}, visit_i32(1);
        deserialize_i64 => {"type": "integer"}, visit_i64(1);
        deserialize_u8 => {"type": "integer", "minimum": 0}, visit_u8(1);
        deserialize_u16 => {"type": "integer", "minimum": 0}, visit_u16(1);
        deserialize_u32 => {"type": "integer", "minimum": 0}, visit_u32(1);
        deserialize_u64 => {"type": "integer", "minimum": 0}, visit_u64(1);
        deserialize_f32 => {"type": "number"}, visit_f32(1.0);
        deserialize_f64 => {"type": "number"}, visit_f64(1.0);
        deserialize_char => {"type": "string"}, visit_char('x');
        deserialize_str => {"type": "string"}, visit_str("x");
        deserialize_string => {"type": "string"}, visit_str("x");
        deserialize_identifier => {"type": "string"}, visit_str("x");
        deserialize_bytes => {}, visit_bytes(b"x");
        deserialize_byte_buf => {}, visit_bytes(b"x");
        deserialize_unit => {}, visit_unit();
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.record_fragment(json!({"type": "array"}));
        visitor.visit_seq(OneItem {
            trace: self,
            is_given: false,
        })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.record_fragment(json!({"type": "object"}));
        visitor.visit_map(Entries {
            trace: self,
            names: &["x"],
            of_struct: false,
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.record_fragment(
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
        );
        visitor.visit_map(Entries {
            trace: self,
            names: fields,
            of_struct: true,
        })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.record_fragment(json!({"type": "string", "enum": variants}));
        visitor.visit_enum(FirstVariant(variants.first().copied().unwrap_or_default()))
    }
}

/// Provides the single item of a sample list.
struct OneItem<'a> {
    trace: &'a mut SchemaTrace,
    is_given: bool,
}

impl<'de> SeqAccess<'de> for OneItem<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        if std::mem::replace(&mut self.is_given, true) || !self.trace.enter_value(&["items"]) {
            return Ok(None);
        }
        self.trace.read_value(seed, 1).map(Some)
    }
}

/// Provides the fields of a sample struct, or one entry of a sample map.
struct Entries<'a> {
    trace: &'a mut SchemaTrace,
    names: &'static [&'static str],
    of_struct: bool,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        while let Some((name, rest)) = self.names.split_first() {
            self.names = rest;
            let steps: &[&str] = if self.of_struct {
                &["properties", name]
            } else {
                &["additionalProperties"]
            };
            if self.trace.enter_value(steps) {
                return seed.deserialize((*name).into_deserializer()).map(Some);
            }
            self.trace.failed = None;
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        self.trace
            .read_value(seed, if self.of_struct { 2 } else { 1 })
    }
}

/// Provides the first variant of a sample enum, without data.
struct FirstVariant(&'static str);

impl<'de> EnumAccess<'de> for FirstVariant {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        let name: StrDeserializer<'_, Error> = self.0.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for FirstVariant {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, Error> {
        Err(Error::custom("a variant with a value"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("a variant with values"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        Err(Error::custom("a variant with fields"))
    }
}
