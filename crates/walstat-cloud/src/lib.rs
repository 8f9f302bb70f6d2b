//! Objects in S3, Google Cloud Storage and Azure Blob Storage, read as files are: a prefix is listed as a
//! directory is, an object is opened and read from any byte on. Knows nothing of WAL.
//!
//! All of it blocks. The asynchronous runtime that the `object_store` crate needs runs on one thread of its
//! own (`runtime.rs`) and is seen nowhere else.
//!
//! | module | holds |
//! | --- | --- |
//! | `url` | `s3://BUCKET/KEY` taken apart |
//! | `options` | what the user says: endpoint, connections |
//! | `environment` | what the environment says: credentials, regions, accounts |
//! | `bucket` | the client of each bucket, made of the environment once a process; what was listed in it |
//! | `list` | what lies under a prefix |
//! | `fetch` | a part of an object, tried again for up to a minute |
//! | `whole` | an object of a store that gives no parts, read on as it comes |
//! | `body` | the bytes of an object in order, parts of it fetched ahead |
//! | `patience` | how long and how often something is tried again |
//! | `contact` | whether a store has ever answered, and when it is given up as a whole |
//! | `region` | in which region a bucket is, where another one was asked |
//! | `reason` | what went wrong, in one line and without secrets |

#![warn(unreachable_pub)]
#![forbid(unsafe_code)]

mod body;
mod bucket;
mod contact;
mod environment;
mod fetch;
mod list;
mod options;
mod patience;
mod reason;
mod region;
mod runtime;
mod url;
mod whole;

pub use body::{Body, Share, open};
pub use bucket::{begin, given_up};
pub use list::{Entry, Kind, entries, look, modified};
pub use options::{CONNECTIONS, Options, configure};
