//! What the same workload would have written under other settings: the simulator.

pub mod page;
pub mod position;
pub mod registered;
pub mod whole;
