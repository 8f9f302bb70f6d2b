//! Writes the JSON Schema of the report to standard output:
//! `cargo run --features schema --example report_schema > docs/report.schema.json`.

fn main() {
    println!("{:#}", walstat_report::schema::json_schema());
}
