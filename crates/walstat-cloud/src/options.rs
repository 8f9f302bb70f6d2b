//! What the user says of all stores.

use std::num::NonZeroUsize;
use std::sync::OnceLock;

/// How stores are reached.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server to ask instead of the provider's own, or of the one that the environment names.
    pub endpoint: Option<String>,
    /// So many requests are under way at once, at most.
    pub connections: NonZeroUsize,
}

/// So many requests, where nothing is said.
pub const CONNECTIONS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(7);

impl Default for Options {
    fn default() -> Options {
        Options { endpoint: None, connections: CONNECTIONS }
    }
}

static OPTIONS: OnceLock<Options> = OnceLock::new();

/// Says how stores are reached, for the whole process: what is said before the first one is, counts.
pub fn configure(options: Options) {
    let _ = OPTIONS.set(options);
}

pub(crate) fn options() -> &'static Options {
    OPTIONS.get_or_init(Options::default)
}
