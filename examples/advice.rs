//! Writes docs/advice.md to standard output, from the rules themselves:
//! `cargo run --example advice > docs/advice.md`.

fn main() {
    print!("{}", walstat_report::advice::paper());
}
