//! Policies by name, for what-if replays: a placement of the reminders, and further changes.
//!
//! ```text
//! cache-aware+prune:64k:0.5+compress:when-free
//! └ reminders └ pruning     └ compression
//! ```

use std::fmt;

use haft_context::{Compress, Policy, View};
use haft_types::ModelSpec;

/// A policy that can be replayed, with its name and the replay's own settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// The name of the policy as the user wrote it.
    pub name: String,
    /// The settings with which requests are built.
    pub policy: Policy,
    /// True if reminders are sent with requests.
    pub reminders: bool,
    /// True if older rounds and steps are archived when the window fills.
    pub archives: bool,
}

/// The policies that a replay compares if the user names none.
pub const DEFAULT_POLICIES: [&str; 5] = ["default", NO_REMINDERS, "front", "tail", "cache-aware"];

/// The name of the policy that sends no reminders. [`Variant::parse`] also accepts the former name,
/// `none`, which reads like a policy that changes nothing.
const NO_REMINDERS: &str = "no-reminders";

/// The syntax of policy names, for help and error messages.
pub const VARIANTS: &str = "\
default, no-reminders (also: none), front, tail, after-tool-result:N, before-assistant:N, from-end:N or cache-aware; \
then any of +prune:off, +prune:ZONE[:TO[:KEEP]], +compress:round-end|when-free|never, +archive:off|SHARE, \
+view:layered|execute";

/// The error for a text that is not the name of a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a policy: {problem}. A policy is {VARIANTS}")]
pub struct UnknownVariant {
    name: String,
    problem: String,
}

impl Variant {
    /// Parses the name of a policy. Settings that the name does not mention are taken from `base`,
    /// adjusted to `model`.
    pub fn parse(name: &str, base: &Policy, model: &ModelSpec) -> Result<Self, UnknownVariant> {
        let name = name.trim();
        let wrong = |problem: String| UnknownVariant {
            name: name.to_owned(),
            problem,
        };
        let mut parts = name.split('+');
        let place = parts.next().unwrap_or_default();
        let mut policy = base.resolve_for_model(model);
        let mut archives = true;
        let reminders = place != "none" && place != NO_REMINDERS;
        if reminders && place != "default" {
            policy.reminders = place
                .parse()
                .map_err(|_| wrong(format!("`{place}` is no place of reminders")))?;
        }
        for part in parts {
            let (key, value) = part
                .split_once(':')
                .ok_or_else(|| wrong(format!("`+{part}` has no value")))?;
            match key {
                "prune" => parse_pruning(&mut policy, value).map_err(wrong)?,
                "compress" => {
                    policy.compress = Some(match value {
                        "round-end" => Compress::RoundEnd,
                        "when-free" => Compress::WhenFree,
                        "never" => Compress::Never,
                        _ => return Err(wrong(format!("`{value}` is no time to compress"))),
                    });
                }
                "archive" if value == "off" => archives = false,
                "archive" => {
                    policy.compact_at = value
                        .parse()
                        .map_err(|_| wrong(format!("`{value}` is no share of the window")))?;
                }
                "view" => {
                    policy.view = match value {
                        "layered" => View::Layered,
                        "execute" => View::Execute,
                        _ => return Err(wrong(format!("`{value}` is no view"))),
                    };
                }
                _ => return Err(wrong(format!("`+{key}` is not known"))),
            }
        }
        policy
            .validate()
            .map_err(|error| wrong(error.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            policy,
            reminders,
            archives,
        })
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Parses the pruning settings: `off`, or the size of the safe zone, the share of the zone at which
/// pruning stops, and the number of newest messages that pruning leaves alone.
fn parse_pruning(policy: &mut Policy, text: &str) -> Result<(), String> {
    if text == "off" {
        // With this value, pruning clears nothing. Whole rounds are left out if a request is too
        // large.
        policy.prune_keep = Some(u32::MAX);
        return Ok(());
    }
    let mut values = text.split(':');
    let zone = values.next().unwrap_or_default();
    policy.safe_zone = Some(zone.parse().map_err(|error| format!("{error}"))?);
    if let Some(to) = values.next() {
        policy.prune_to = Some(
            to.parse()
                .map_err(|_| format!("`{to}` is no share of the safe zone"))?,
        );
    }
    if let Some(keep) = values.next() {
        policy.prune_keep = Some(
            keep.parse()
                .map_err(|_| format!("`{keep}` is no number of messages"))?,
        );
    }
    match values.next() {
        Some(more) => Err(format!("`:{more}` is one value too many")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use haft_context::{Placement, SafeZone};

    use super::*;
    use crate::{PRICE_TABLES, assumed_model};

    fn parse_variant(name: &str) -> Result<Variant, UnknownVariant> {
        Variant::parse(
            name,
            &Policy {
                prune_keep: Some(3),
                ..Policy::default()
            },
            &assumed_model(PRICE_TABLES[0]),
        )
    }

    #[test]
    fn parse_reads_changes_from_the_name() {
        let plain = Policy {
            prune_keep: Some(3),
            ..Policy::default()
        }
        .resolve_for_model(&assumed_model(PRICE_TABLES[0]));
        assert_eq!(parse_variant("default").unwrap().policy, plain);
        let none = parse_variant("none").unwrap();
        assert!(!none.reminders && none.policy.prune_keep == Some(3));
        let renamed = parse_variant("no-reminders").unwrap();
        assert_eq!(
            (renamed.policy, renamed.reminders),
            (none.policy.clone(), false)
        );
        let much = parse_variant(" cache-aware+prune:64k:0.5:9+compress:when-free ").unwrap();
        assert_eq!(
            (much.name.as_str(), much.reminders),
            ("cache-aware+prune:64k:0.5:9+compress:when-free", true)
        );
        let expected = Policy {
            reminders: Placement::CacheAware,
            safe_zone: Some(SafeZone::Tokens(65_536)),
            prune_to: Some(0.5),
            prune_keep: Some(9),
            compress: Some(Compress::WhenFree),
            ..Policy::default()
        };
        assert_eq!(much.policy, expected);
        assert_eq!(
            parse_variant("tail+prune:off").unwrap().policy.prune_keep,
            Some(u32::MAX)
        );
        assert_eq!(
            parse_variant("none+view:execute").unwrap().policy.view,
            View::Execute
        );
        assert!(none.archives && !parse_variant("none+archive:off").unwrap().archives);
        assert!((parse_variant("none+archive:0.5").unwrap().policy.compact_at - 0.5).abs() < 1e-9);
    }

    #[test]
    fn parse_reports_what_is_wrong() {
        for (name, problem) in [
            ("", "`` is no place"),
            ("nowhere", "`nowhere` is no place"),
            ("tail+prune", "`+prune` has no value"),
            ("tail+prune:much", "safe zone `much`"),
            ("tail+prune:64k:2", "prune_to"),
            ("tail+prune:64k:0.5:x", "`x` is no number"),
            ("tail+prune:64k:0.5:1:2", "`:2` is one value"),
            ("tail+compress:now", "`now` is no time"),
            ("tail+archive:late", "`late` is no share"),
            ("tail+archive:2", "compact_at"),
            ("tail+colour:red", "`+colour` is not known"),
            ("none+view:wide", "`wide` is no view"),
        ] {
            let error = parse_variant(name).unwrap_err().to_string();
            assert!(
                error.contains(problem) && error.contains("cache-aware"),
                "{error}"
            );
        }
    }
}
