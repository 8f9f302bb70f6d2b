//! How long a test may take. What a machine does beside the tests makes it slow, and no test may fail for
//! that: only what never comes to pass runs into the end of patience.

use std::time::Duration;

/// Longer than anything takes on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_secs(600);
