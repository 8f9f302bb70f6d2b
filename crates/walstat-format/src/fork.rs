//! Forks of a relation, by name.

named! {
    /// Forks, in the order of their numbers (`ForkNumber` of `src/include/common/relpath.h`).
    pub enum Fork {
        Main "main" "The data itself";
        Fsm "fsm" "Free space map";
        Vm "vm" "Visibility map";
        Init "init" "What an unlogged relation starts from";
    }
}

impl Fork {
    /// The number of a fork, as block references have it.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The fork of this number.
    pub fn of(number: u8) -> Option<Fork> {
        Fork::ALL.get(usize::from(number)).copied()
    }
}
