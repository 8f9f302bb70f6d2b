//! What the same workload would have written under other settings: the simulator.

pub mod base;
pub mod blocks;
pub mod codec;
pub mod condense;
pub mod lane;
pub mod level;
mod marks;
pub mod observe;
pub mod outcome;
pub mod outline;
pub mod pace;
pub mod page;
pub mod plan;
pub mod position;
pub mod predict;
pub mod recode;
pub mod redo;
pub mod registered;
pub mod replay;
pub mod roller;
mod running;
pub mod scenario;
pub mod sequence;
pub mod settings;
pub mod trace;
mod unfinished;
pub mod whole;
