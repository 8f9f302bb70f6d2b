//! How object stores are reached, for every command that takes their URLs.

use clap::Args;
use std::num::NonZeroUsize;
use walstat_read::input::storage::Options;

/// Where PATH is `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Object storage (PATH is s3://, gs:// or az://)")]
pub struct StorageArgs {
    /// Endpoint URL of the object store; http:// is allowed [default: from the environment, else the
    /// provider's]
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// Maximum concurrent requests [default: 8]
    #[arg(long, value_name = "N")]
    pub connections: Option<NonZeroUsize>,
}

impl StorageArgs {
    /// The same for who reads.
    pub fn options(&self) -> Options {
        Options { endpoint: self.endpoint.clone(), connections: self.connections }
    }
}
