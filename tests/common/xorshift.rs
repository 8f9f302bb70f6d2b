//! Numbers that look random and are the same in every run.

/// Marsaglia's xorshift64.
#[derive(Debug, Clone)]
pub struct Xorshift(u64);

impl Xorshift {
    /// Begins a sequence; 0 is not a seed.
    pub fn new(seed: u64) -> Xorshift {
        assert_ne!(seed, 0, "0 gives only zeros");
        Xorshift(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The next number, below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
