//! Pseudo-random numbers that depend only on the seed, on every machine.

/// A `SplitMix64` random generator, which is good enough to vary test cases, and short.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to `limit - 1`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        if limit == 0 {
            0
        } else {
            (self.next_u64() % limit as u64) as usize
        }
    }

    /// Returns a random item; `None` if the list is empty.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// Returns a random text of at most `max_chars` characters. Some of them take several bytes in
    /// UTF-8 or have a meaning in JSON.
    pub fn text(&mut self, max_chars: usize) -> String {
        const LETTERS: [char; 16] = [
            'a', 'b', 'z', ' ', '\n', '"', '\\', '{', '}', ':', 'é', '漢', '😀', '\u{0}',
            '\u{2028}', '\t',
        ];
        let length = self.below(max_chars + 1);
        (0..length)
            .map(|_| LETTERS[self.below(LETTERS.len())])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_sequence() {
        let mut one = Random::new(7);
        let mut two = Random::new(7);
        assert!((0..100).all(|_| one.next_u64() == two.next_u64()));
        assert_ne!(Random::new(7).next_u64(), Random::new(8).next_u64());
        assert!((0..100).all(|_| one.below(3) < 3));
        assert!(one.text(20).chars().count() <= 20);
    }
}
