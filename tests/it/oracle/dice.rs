//! Chance that comes the same again: everything a run does is made of one seed.

/// A generator (`SplitMix64`). Its only state is a number, so that a run is repeated by its seed.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below that one.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        let most = u64::try_from(most.max(1)).unwrap();
        usize::try_from(self.next() % most).unwrap()
    }

    /// An index, for whoever takes it modulo what is there.
    pub(crate) fn index(&mut self) -> usize {
        self.below(1_000_000)
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// One of those, each as often as its weight says.
    pub(crate) fn weighted<T: Clone>(&mut self, all: &[(usize, T)]) -> T {
        let sum = all.iter().map(|(weight, _)| weight).sum();
        let mut left = self.below(sum);
        let chosen = all.iter().find(|(weight, _)| match left.checked_sub(*weight) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
        chosen.expect("the weights add up").1.clone()
    }
}
