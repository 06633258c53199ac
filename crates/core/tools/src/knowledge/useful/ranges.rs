//! Merges useful ranges of lines that touch or overlap.
//!
//! Invariant: two ranges of one file never touch or overlap.

use super::{AddedRange, NewUsefulItem, UsefulItem, UsefulRanges};

impl UsefulRanges {
    /// Adds a range as the newest range, and merges the ranges that it touches into it. The merged
    /// range gets the lowest number of the original ranges, so that a number that the model has
    /// seen stays valid. Drops the oldest ranges if there are more than `max_ranges`.
    pub(super) fn add(&mut self, new: NewUsefulItem, max_ranges: usize) -> AddedRange {
        let NewUsefulItem {
            path,
            start_line,
            end_line,
            description,
        } = new;
        let touching: Vec<_> = self
            .items
            .extract_if(.., |known| {
                known.path == path
                    && known.start_line <= end_line.saturating_add(1)
                    && start_line <= known.end_line.saturating_add(1)
            })
            .collect();
        let number = touching
            .iter()
            .map(|known| known.number)
            .min()
            .unwrap_or_else(|| {
                self.last_number += 1;
                self.last_number
            });
        let descriptions = touching
            .iter()
            .map(|known| known.description.as_str())
            .chain([description.as_str()]);
        let item = UsefulItem {
            number,
            start_line: touching
                .iter()
                .map(|known| known.start_line)
                .fold(start_line, u32::min),
            end_line: touching
                .iter()
                .map(|known| known.end_line)
                .fold(end_line, u32::max),
            description: join_descriptions(descriptions),
            path,
        };
        self.items.push(item.clone());
        let surplus = self.items.len().saturating_sub(max_ranges);
        let dropped = self.items.drain(..surplus).map(|old| old.number).collect();
        AddedRange {
            item,
            merged: touching.len(),
            dropped,
        }
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<UsefulItem> {
        let at = self.items.iter().position(|item| item.number == number)?;
        Some(self.items.remove(at))
    }
}

/// Joins descriptions with semicolons, without duplicates.
fn join_descriptions<'a>(descriptions: impl Iterator<Item = &'a str>) -> String {
    let mut said: Vec<&str> = Vec::new();
    for one in descriptions
        .flat_map(|text| text.split("; "))
        .map(str::trim)
    {
        if !one.is_empty() && !said.contains(&one) {
            said.push(one);
        }
    }
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAX_RANGES: usize = 100;

    fn new(path: &str, start_line: u32, end_line: u32) -> NewUsefulItem {
        NewUsefulItem {
            path: path.into(),
            start_line,
            end_line,
            description: format!("{start_line}"),
        }
    }

    fn shown(ranges: &UsefulRanges) -> Vec<(u32, &str, u32, u32)> {
        ranges
            .items
            .iter()
            .map(|one| (one.number, one.path.as_str(), one.start_line, one.end_line))
            .collect()
    }

    #[test]
    fn touching_ranges_become_one_and_keep_the_oldest_number() {
        let mut ranges = UsefulRanges::default();
        ranges.add(new("a", 1, 3), MAX_RANGES);
        ranges.add(new("a", 8, 9), MAX_RANGES);
        ranges.add(new("b", 4, 7), MAX_RANGES);
        assert_eq!(ranges.items.len(), 3, "another file is another range");
        let added = ranges.add(new("a", 4, 7), MAX_RANGES);
        assert_eq!((added.merged, added.item.number), (2, 1));
        assert_eq!(added.item.description, "1; 8; 4");
        assert_eq!(shown(&ranges), [(3, "b", 4, 7), (1, "a", 1, 9)]);
        ranges.add(new("a", 11, 12), MAX_RANGES);
        assert_eq!(ranges.items.len(), 3, "a line lies between");
        assert_eq!(ranges.items[2].number, 4, "numbers are not used again");
    }

    #[test]
    fn the_same_again_changes_only_its_age() {
        let mut ranges = UsefulRanges::default();
        ranges.add(new("a", 1, 3), MAX_RANGES);
        ranges.add(new("b", 1, 3), MAX_RANGES);
        let added = ranges.add(new("a", 1, 3), MAX_RANGES);
        assert_eq!((added.merged, added.item.description.as_str()), (1, "1"));
        assert_eq!(shown(&ranges), [(2, "b", 1, 3), (1, "a", 1, 3)]);
    }

    #[test]
    fn only_the_newest_hundred_are_kept() {
        let mut ranges = UsefulRanges::default();
        for at in 0..100 {
            assert!(
                ranges
                    .add(new("a", at * 10 + 1, at * 10 + 2), MAX_RANGES)
                    .dropped
                    .is_empty()
            );
        }
        assert_eq!(ranges.add(new("b", 1, 1), MAX_RANGES).dropped, [1]);
        assert_eq!((ranges.items.len(), ranges.items[0].number), (100, 2));
        assert_eq!(ranges.remove(1), None);
        assert_eq!(ranges.remove(2).unwrap().start_line, 11);
    }

    #[test]
    fn add_drops_the_oldest_ranges_beyond_the_limit() {
        let mut ranges = UsefulRanges::default();
        for path in ["a", "b", "c", "d"] {
            ranges.add(new(path, 1, 1), MAX_RANGES);
        }
        assert_eq!(ranges.add(new("e", 1, 1), 2).dropped, [1, 2, 3]);
        assert_eq!(shown(&ranges), [(4, "d", 1, 1), (5, "e", 1, 1)]);
    }

    proptest! {
        #[test]
        fn every_line_added_is_covered_once(adds in prop::collection::vec((0..2_usize, 1..60_u32, 0..9_u32), 1..40)) {
            let mut ranges = UsefulRanges::default();
            for (file, start, more) in &adds {
                ranges.add(new(["a", "b"][*file], *start, start + more), MAX_RANGES);
            }
            for (at, one) in ranges.items.iter().enumerate() {
                for other in &ranges.items[at + 1..] {
                    let apart = one.end_line + 1 < other.start_line || other.end_line + 1 < one.start_line;
                    prop_assert!(one.path != other.path || apart, "{one:?} {other:?}");
                    prop_assert_ne!(one.number, other.number);
                }
            }
            for (file, path) in [(0, "a"), (1, "b")] {
                for line in 1..80 {
                    let added = adds.iter().any(|(of, start, more)| *of == file && (*start..=start + more).contains(&line));
                    let kept = ranges.items.iter().any(|one| one.path == path && (one.start_line..=one.end_line).contains(&line));
                    prop_assert_eq!(added, kept, "line {} of {}", line, path);
                }
            }
        }
    }
}
