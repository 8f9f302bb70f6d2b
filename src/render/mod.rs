//! Floor 6, model → text; one file a format. Computes nothing: it formats what the model says.

pub mod check_table;
pub mod checkpoints;
pub mod closing;
pub mod csv;
pub mod diff;
pub mod github;
pub mod gitlab;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod nagios;
pub mod names;
pub mod ndjson;
pub mod number;
pub mod openmetrics;
pub mod pg_waldump;
pub mod rows;
pub mod sarif;
pub mod screen;
pub mod style;
pub mod table;
pub mod visible;
pub mod whatif;
pub mod when;
pub mod when_tables;
pub mod who;
