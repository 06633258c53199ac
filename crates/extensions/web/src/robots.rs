//! Parses and applies the rules of a site for robots (RFC 9309).

/// The name by which the rules in a site's `robots.txt` refer to haft.
pub(crate) const ROBOTS_AGENT: &str = "haft";

/// The rules in a site's `robots.txt` that apply to haft.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Robots {
    rules: Vec<(RobotsDirective, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RobotsDirective {
    Disallow,
    Allow,
}

impl Robots {
    /// Returns rules that disallow every page, for a site that failed to deliver its `robots.txt`.
    pub(crate) fn disallow_all() -> Self {
        Self {
            rules: vec![(RobotsDirective::Disallow, "/".to_owned())],
        }
    }

    /// Parses a `robots.txt`. The result contains the rules of the group that names haft, else the
    /// rules of the group for all robots.
    pub(crate) fn parse(text: &str) -> Self {
        let mut own = Vec::new();
        let mut everybodys = Vec::new();
        let mut names_own = false;
        let mut names_all = false;
        let mut found_own = false;
        let mut naming = false;
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let key = key.trim().to_ascii_lowercase();
            let value = value.trim();
            let word = match key.as_str() {
                "user-agent" => {
                    if !naming {
                        (names_own, names_all) = (false, false);
                    }
                    naming = true;
                    names_own |= value.eq_ignore_ascii_case(ROBOTS_AGENT);
                    names_all |= value == "*";
                    found_own |= names_own;
                    continue;
                }
                "allow" => RobotsDirective::Allow,
                "disallow" => RobotsDirective::Disallow,
                _ => continue,
            };
            naming = false;
            if value.is_empty() {
                continue;
            }
            if names_own {
                own.push((word, value.to_owned()));
            }
            if names_all {
                everybodys.push((word, value.to_owned()));
            }
        }
        Self {
            rules: if found_own { own } else { everybodys },
        }
    }

    /// True if the rules allow reading `path`, which may have a query. The rule with the longest
    /// matching pattern decides; if two patterns are equally long, `allow` takes precedence over
    /// `disallow`.
    pub(crate) fn allows(&self, path: &str) -> bool {
        let fitting = self
            .rules
            .iter()
            .filter(|(_, pattern)| matches_pattern(pattern, path));
        fitting
            .map(|(word, pattern)| (pattern.len(), *word))
            .max()
            .is_none_or(|(_, word)| word == RobotsDirective::Allow)
    }
}

/// True if the pattern matches the beginning of the path. In a pattern, `*` matches any text, and
/// `$` matches the end of the path.
fn matches_pattern(pattern: &str, path: &str) -> bool {
    let (pattern, whole) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut pieces = pattern.split('*');
    let Some(mut rest) = path.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let pieces: Vec<&str> = pieces.collect();
    for (index, piece) in pieces.iter().enumerate() {
        if whole && index + 1 == pieces.len() {
            return rest.ends_with(piece);
        }
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = rest.get(at + piece.len()..).unwrap_or_default();
    }
    !whole || rest.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn allows_follows_the_longest_matching_pattern() {
        let robots = Robots::parse(
            "User-agent: *\nDisallow: /private\nAllow: /private/open\nDisallow: /*.pdf$ # papers\n",
        );
        for (path, allowed) in [
            ("/", true),
            ("/private", false),
            ("/private/x", false),
            ("/private/open/x", true),
            ("/a/b.pdf", false),
            ("/a/b.pdf?x", true),
            ("/public", true),
        ] {
            assert_eq!(robots.allows(path), allowed, "{path}");
        }
    }

    #[test]
    fn parse_prefers_the_own_group() {
        let text =
            "user-agent: *\ndisallow: /\n\nuser-agent: other\nuser-agent: Haft\ndisallow: /only\n";
        assert!(Robots::parse(text).allows("/x") && !Robots::parse(text).allows("/only/x"));
        assert!(!Robots::parse("User-agent: *\nDisallow: /\n").allows("/x"));
        assert!(Robots::parse("User-agent: *\nDisallow:\n").allows("/x"));
        assert!(Robots::parse("<html>not found</html>").allows("/x"));
        assert!(!Robots::disallow_all().allows("/"));
    }

    proptest! {
        #[test]
        fn parse_accepts_any_text(text in "([a-zA-Z:*$/ #-]{0,30}\n){0,20}", path in "/[a-z*$/]{0,20}") {
            Robots::parse(&text).allows(&path);
        }
    }
}
