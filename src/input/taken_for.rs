//! What the input is taken for, which decides what a segment's name promises: in a server's own
//! directory the newest one may be open, in an archive nothing may.

named! {
    /// What the input is taken for.
    pub enum TakenFor {
        Archive "archive" "An archive: every full name promises a whole segment";
        PgWal "pg_wal" "A server's pg_wal: its newest segment may be open";
        Copy "copy" "A copy of either: raw segments do not tell";
    }
}
