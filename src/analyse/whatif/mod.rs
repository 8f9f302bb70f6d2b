//! What the same workload would have written under other settings: the simulator.

pub mod blocks;
pub mod codec;
pub mod condense;
mod marks;
pub mod page;
pub mod position;
pub mod redo;
pub mod registered;
pub mod replay;
pub mod trace;
pub mod whole;
