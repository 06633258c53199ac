//! Recognizes prompts that ask for a change of files. A turn of a small model after such a prompt
//! is marked if nothing changed.
//!
//! A prompt asks for a change if it names a file (which exists or is to be created) or all files,
//! and one of its sentences contains a listed verb and is not a question. The words are in
//! `change_words.txt`, in English and Chinese.

#[cfg(test)]
mod tests;

const WORDS: &str = include_str!("change_words.txt");

/// Returns true if `prompt` asks for a change of files. `is_file` returns true for a
/// project-relative path of an existing file.
pub(crate) fn asks_for_change(prompt: &str, is_file: &dyn Fn(&str) -> bool) -> bool {
    names_files(prompt, is_file) && split_sentences(prompt).any(requests_change)
}

/// Returns true if `prompt` contains a word that asks to run something.
pub(crate) fn asks_to_run(prompt: &str) -> bool {
    let lowercase = prompt.to_lowercase();
    split_words(&lowercase).any(|word| is_listed("runs", word))
        || section_words("runs zh").any(|word| lowercase.contains(word))
}

/// Returns true if `prompt` names all files.
pub(crate) fn names_all_files(prompt: &str) -> bool {
    let lowercase = prompt.to_lowercase();
    section_lines("all files").any(|phrase| lowercase.contains(phrase))
}

/// Returns the lines of a section of the word list.
fn section_lines(name: &str) -> impl Iterator<Item = &'static str> {
    WORDS
        .lines()
        .skip_while(move |line| {
            let heading = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            heading.is_none_or(|(heading, _)| heading != name)
        })
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn section_words(name: &str) -> impl Iterator<Item = &'static str> {
    section_lines(name).flat_map(str::split_whitespace)
}

fn is_listed(name: &str, word: &str) -> bool {
    section_words(name).any(|listed| listed == word)
}

/// Splits a prompt into sentences, which include their final punctuation. A period inside a word,
/// such as a file name, ends no sentence.
fn split_sentences(prompt: &str) -> impl Iterator<Item = &str> {
    let mut rest = prompt;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest
            .char_indices()
            .find(|(at, c)| match c {
                '\n' | '。' | '！' | '？' => true,
                '.' | '!' | '?' => rest[at + 1..]
                    .chars()
                    .next()
                    .is_none_or(|next| next.is_whitespace() || "\"')”’`".contains(next)),
                _ => false,
            })
            .map_or(rest.len(), |(at, c)| at + c.len_utf8());
        let (sentence, later) = rest.split_at(end);
        rest = later;
        Some(sentence)
    })
}

/// Returns true if a sentence contains a listed verb and is not a question.
fn requests_change(sentence: &str) -> bool {
    let sentence = sentence
        .trim_start_matches(|c: char| !c.is_alphanumeric())
        .trim_end()
        .to_lowercase();
    let (request, is_polite) = strip_polite_opening(&sentence);
    let asks = request.ends_with(['?', '？']) && !is_polite;
    !asks && (requests_change_in_english(request) || requests_change_in_chinese(request))
}

/// Removes phrases such as "could you please" from the start of a lowercase sentence. Returns true
/// as the second value if there were any.
fn strip_polite_opening(sentence: &str) -> (&str, bool) {
    let mut rest = sentence;
    while let Some(stripped) = section_lines("requests")
        .chain(section_lines("requests zh"))
        .find_map(|phrase| {
            let after = rest.strip_prefix(phrase)?;
            let is_whole = !phrase.is_ascii() || !after.starts_with(|c: char| c.is_alphanumeric());
            is_whole.then(|| after.trim_start_matches([' ', ',', '，']))
        })
    {
        rest = stripped;
    }
    (rest, rest.len() < sentence.len())
}

fn requests_change_in_english(sentence: &str) -> bool {
    let words: Vec<&str> = split_words(sentence).collect();
    let asks_for_words = words
        .first()
        .is_some_and(|first| is_listed("questions", first));
    (0..words.len()).any(|at| {
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        let is_verb = is_listed("verbs", words[at])
            && before.is_none_or(|before| !is_listed("not verbs after", before))
            && words.get(at + 1) != Some(&"nothing");
        let is_joined = before.is_some_and(|before| is_listed("joins", before));
        is_verb && (!asks_for_words || is_joined)
    })
}

/// Returns the words of a lowercase sentence. File names are one word each. Calls such as `add(1)`
/// and quoted words are left out.
fn split_words(sentence: &str) -> impl Iterator<Item = &str> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "_-'./\\".contains(c);
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let start = from + sentence[from..].find(is_inner)?;
            let end = sentence[start..]
                .find(|c| !is_inner(c))
                .map_or(sentence.len(), |len| start + len);
            from = end;
            let is_quoted = sentence[..start].ends_with(['`', '"', '“', '「'])
                && sentence[end..].starts_with(['`', '"', '”', '」']);
            if !is_quoted && !sentence[end..].starts_with('(') {
                return Some(sentence[start..end].trim_matches(['.', '\'']));
            }
        }
    })
}

fn requests_change_in_chinese(sentence: &str) -> bool {
    let opens_with_verb = sentence.starts_with(['把', '将'])
        || section_words("verbs zh").any(|verb| sentence.starts_with(verb));
    let is_question = section_words("questions zh").any(|word| sentence.contains(word));
    let has_verb = section_words("verbs zh").any(|verb| {
        sentence.match_indices(verb).any(|(at, _)| {
            !section_words("not verbs after zh").any(|word| sentence[..at].ends_with(word))
        })
    });
    has_verb && (opens_with_verb || !is_question)
}

/// Returns true if a prompt names a file or all files.
fn names_files(prompt: &str, is_file: &dyn Fn(&str) -> bool) -> bool {
    names_all_files(prompt)
        || split_paths(prompt).any(|path| has_file_extension(path) || is_named_file(path, is_file))
}

/// Returns the parts of a prompt that may be paths. Addresses of web pages are left out.
fn split_paths(prompt: &str) -> impl Iterator<Item = &str> {
    prompt
        .split(|c: char| {
            c.is_whitespace() || "\"'`()[]{}<>,;，。；、：（）《》“”‘’「」".contains(c)
        })
        .filter(|word| !word.contains("://"))
        .map(|word| word.trim_end_matches(['.', ':', '!', '?', '！', '？']))
}

/// Returns true if `path` contains a file name with a listed extension. Chinese text may follow the
/// name without a blank.
fn has_file_extension(path: &str) -> bool {
    path.match_indices('.').any(|(at, _)| {
        let after = &path[at + 1..];
        let len = after
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(after.len());
        let has_stem = path[..at].ends_with(|c: char| c.is_alphanumeric() || "_-".contains(c));
        has_stem && is_listed("extensions", &after[..len].to_ascii_lowercase())
    })
}

/// Returns true if `path` contains a listed file name, or the path of an existing file. Chinese
/// text may surround the path.
fn is_named_file(path: &str, is_file: &dyn Fn(&str) -> bool) -> bool {
    path.split(|c: char| !c.is_ascii_alphanumeric() && !"_-./".contains(c))
        .chain([path])
        .map(|name| name.trim_end_matches('.'))
        .filter(|name| !name.is_empty() && !name.starts_with('/') && !name.contains(".."))
        .any(|name| is_listed("file names", &name.to_ascii_lowercase()) || is_file(name))
}
