//! What a server writes to its log about checkpoints.

/// The causes that the log tells, in order: several where one checkpoint serves several.
pub fn logged_causes(log: &str) -> Vec<Vec<&'static str>> {
    const CAUSES: [(&str, &str); 7] = [
        ("shutdown", "shutdown"),
        ("end-of-recovery", "end_of_recovery"),
        ("force", "requested"),
        ("wait", "requested"),
        ("time", "time"),
        ("wal", "wal"),
        ("xlog", "wal"),
    ];
    let flags = log.lines().filter_map(|line| line.split_once("checkpoint starting:"));
    let causes = |(_, flags): (&str, &str)| {
        let has = |word: &str| flags.split_whitespace().any(|flag| flag == word);
        let found = CAUSES.iter().filter(|(word, _)| has(word)).map(|(_, cause)| *cause);
        // A shutdown and the end of recovery are forced too.
        let found: Vec<&str> = found.collect();
        let first = found.first().copied().filter(|first| *first != "requested");
        match first {
            Some(first @ ("shutdown" | "end_of_recovery")) => vec![first],
            _ => found,
        }
    };
    flags.map(causes).collect()
}
