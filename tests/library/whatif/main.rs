//! Prints what the WAL at the paths given would have come to without full page images, and with checkpoints
//! twice as far apart.

use walstat::Scan;
use walstat::whatif::{Change, Checkpoints, Scenario, WhatIf, WhatIfError};

fn main() -> Result<(), WhatIfError> {
    let scan = Scan::paths(std::env::args_os().skip(1)).threads(0);
    let twice = Change::Checkpoints(Checkpoints::Factor(2.0));
    let asked = [Change::FullPageWrites(false), twice].map(|change| Scenario::of([change]));
    for (scenario, prediction) in WhatIf::new(scan).run(asked.to_vec())?.scenarios {
        println!("{}: {} bytes", scenario.id(), prediction.outcome.bytes);
    }
    Ok(())
}
