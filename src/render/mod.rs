//! Floor 6, model → text; one file a format. Computes nothing: it formats what the model says.

pub mod csv;
pub mod json;
pub mod number;
pub mod pg_waldump;
pub mod screen;
pub mod table;
