// Cases of azure_data_tables, each a test of tests/clients/rust/test_rust.py: see tests/clients/cases.py.

mod access;
mod batches;
mod entities;
mod queries;
mod support;
mod tables;
mod values;

fn main() {
    support::record_panics();
    tables::run();
    values::run();
    entities::run();
    batches::run();
    queries::run();
    access::run();
}
