//! English sentences by their form, and what they are in Chinese: for what others word (the parser of the command line, errors of
//! libraries), which has no key.
//!
//! Of two lines one is English and the other, indented, Chinese. `{}` stands for anything; `{1}` is the first of these as it is,
//! `{1?}` translated where that is possible, `{1!}` translated. A period at the end may be there or not.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::{Language, spoken};

/// Sentences and their translations.
#[derive(Debug)]
pub struct Phrases {
    whole: HashMap<&'static str, &'static str>,
    /// Those with something in them, the most particular first.
    forms: Vec<(&'static str, &'static str)>,
}

impl Phrases {
    /// Reads such files.
    pub fn of(files: &[&'static str]) -> Self {
        let lines =
            files.iter().flat_map(|file| file.lines()).filter(|line| !line.starts_with('#') && !line.is_empty());
        let lines: Vec<_> = lines.collect();
        let pairs = lines.chunks_exact(2).filter_map(|pair| Some((*pair.first()?, pair.last()?.trim())));
        let (mut forms, whole): (Vec<_>, Vec<_>) = pairs.partition(|(english, _)| english.contains("{}"));
        forms.sort_by_key(|(form, _)| std::cmp::Reverse(form.replace("{}", "").len()));
        Self { whole: whole.into_iter().collect(), forms }
    }

    /// Every sentence with its translation.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.whole.iter().map(|(english, chinese)| (*english, *chinese)).chain(self.forms.iter().copied())
    }

    /// A text in Chinese: as a whole, or by the form it has.
    pub fn said(&self, english: &str) -> Option<String> {
        let stem = english.strip_suffix('.').unwrap_or(english);
        let whole = self.whole.get(stem).map(|text| (*text).to_owned());
        let by_form = || self.forms.iter().find_map(|(form, text)| self.filled(text, &values(form, stem)?));
        let end = if stem == english { "" } else { "。" };
        if english.is_empty() { Some(String::new()) } else { Some(whole.or_else(by_form)? + end) }
    }

    /// The translation of a form with its values; nothing where one of them must be translated, and is not.
    fn filled(&self, template: &str, values: &[&str]) -> Option<String> {
        let mut parts = template.split('{');
        let mut text = parts.next()?.to_owned();
        for part in parts {
            let (slot, behind) = part.split_once('}')?;
            let number: usize = slot.trim_end_matches(['!', '?']).parse().ok()?;
            let value = values.get(number.checked_sub(1)?)?;
            let own = self.said(value.trim_start()).filter(|_| slot.ends_with(['!', '?']));
            text += &own.or_else(|| (!slot.ends_with('!')).then(|| (*value).to_owned()))?;
            text += behind;
        }
        Some(text)
    }
}

/// What stands in a text for each `{}` of a form; nothing where it has another form.
fn values<'a>(form: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let mut parts = form.split("{}");
    let mut rest = text.strip_prefix(parts.next()?)?;
    let mut values = Vec::new();
    let parts: Vec<_> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        let is_last = at + 1 == parts.len();
        let (value, behind) = if is_last { (rest.strip_suffix(part)?, "") } else { rest.split_once(part)? };
        values.push(value);
        rest = behind;
    }
    Some(values)
}

/// What libraries say when something fails.
static ERRORS: LazyLock<Phrases> = LazyLock::new(|| Phrases::of(&[include_str!("../errors.zh-CN.txt")]));

/// An error of a library in the language of this process; as it is where it has no translation.
pub fn error_text(english: &str) -> Cow<'_, str> {
    match spoken() {
        Language::English => english.into(),
        Language::Chinese => ERRORS.said(english).map_or_else(|| english.into(), Cow::Owned),
    }
}
