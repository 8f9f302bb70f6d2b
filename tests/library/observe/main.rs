//! Prints how many commits are in the WAL at the paths given, and where the last one is.

use walstat::{Lsn, Observe, Record, Scan};

#[derive(Clone, Default)]
struct Commits {
    count: u64,
    last: Lsn,
}

impl Observe for Commits {
    fn observe(&mut self, record: &Record<'_>) {
        if record.header.is_commit() {
            self.count += 1;
            self.last = record.lsn;
        }
    }

    fn merge(&mut self, later: Commits) {
        self.count += later.count;
        self.last = self.last.max(later.last);
    }
}

fn main() -> Result<(), walstat::Error> {
    let commits = Scan::paths(std::env::args_os().skip(1)).observe(Commits::default())?;
    println!("{} commits, the last at {}", commits.count, commits.last);
    Ok(())
}
