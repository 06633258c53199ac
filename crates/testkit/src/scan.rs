//! Reads the model and the streaming flag from the start of a body, without parsing the
//! conversation after them.

use std::cell::RefCell;
use std::fmt;

use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

/// The fields of a request body that must be known before a reply can be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) model: Option<String>,
    pub(crate) stream: Option<bool>,
}

impl Head {
    fn is_complete(&self) -> bool {
        self.model.is_some() && self.stream.is_some()
    }
}

/// Scans the body until both fields of [`Head`] are found. For a truncated or invalid body, returns
/// the fields before the error.
pub(crate) fn scan_head(body: &[u8]) -> Head {
    let found = RefCell::new(Head::default());
    // An error that stops the scan early is the normal case.
    let _ = serde_json::Deserializer::from_slice(body).deserialize_map(HeadVisitor(&found));
    found.into_inner()
}

struct HeadVisitor<'a>(&'a RefCell<Head>);

impl<'de> Visitor<'de> for HeadVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "model" => self.0.borrow_mut().model = Some(map.next_value()?),
                "stream" => self.0.borrow_mut().stream = Some(map.next_value()?),
                _ if self.0.borrow().is_complete() => return Err(A::Error::custom("enough")),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_as_soon_as_it_knows() {
        let found = scan_head(br#"{"model":"m","stream":true,"messages":[{"role":"us"#);
        assert_eq!(
            found,
            Head {
                model: Some("m".into()),
                stream: Some(true)
            }
        );
    }

    #[test]
    fn order_does_not_matter_for_a_whole_body() {
        let found = scan_head(br#"{"messages":[{"stream":false}],"stream":true,"model":"m"}"#);
        assert_eq!(
            found,
            Head {
                model: Some("m".into()),
                stream: Some(true)
            }
        );
        assert_eq!(scan_head(b"not json"), Head::default());
    }
}
