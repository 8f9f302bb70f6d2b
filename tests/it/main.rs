//! All tests that need nothing but this repository: no server, no network, no other program but the
//! codecs' tools that `matrix` compares with. A module is a subject: `cargo test --test it books::`.

#[path = "../common/mod.rs"]
mod common;
#[path = "../support/mod.rs"]
mod support;

mod advice;
mod archives;
mod books;
#[cfg(feature = "cloud")]
mod bucket;
mod catalog_stories;
mod catalogs;
mod check;
mod checkpoints;
mod chen_2017;
mod cli;
mod codecs;
mod corners;
mod damage;
mod diff;
mod docs;
mod endings;
mod events;
mod face;
mod fast_paths;
mod follow;
mod fuzz_findings;
mod html;
mod mapped;
mod matrix;
mod moved;
mod mutations;
mod naive_twin;
mod names;
mod names_learned;
mod nightly;
mod odd_names;
mod oracle;
mod partial;
mod partial_layout;
mod partial_untrusted;
mod payloads;
mod places;
mod records;
mod same_answer;
mod schema;
mod split_merge;
mod tidy;
mod verdicts;
mod ways;
mod whatif;
mod when;
mod who;
mod whole_records;
mod window;
