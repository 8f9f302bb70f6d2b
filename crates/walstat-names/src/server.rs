//! A running server as a source of names: every database of the cluster is asked the query of
//! `walstat names --sql`. Nothing is written, and what cannot be reached is left out with a warning.

use super::names_file::{QUERY, parse};
use crate::catalog::listing::Listing;
use crate::catalog::row::Source;
use postgres::{Client, Config, NoTls};
use std::io::Read;
use std::time::Duration;

/// How long is waited for a server that does not answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Asks the server of a connection string, one list a database; none if it cannot be reached. Warnings
/// begin with `name`.
pub fn read(dsn: &str, name: &str, warnings: &mut Vec<String>) -> Vec<Listing> {
    let Ok(config) = dsn.parse::<Config>() else {
        // Why it is none is not said: that would quote a part of it, and there may be a password in it.
        warnings.push(format!(
            "{name}: found no connection string, expected one like host=/run/postgresql"
        ));
        return Vec::new();
    };
    ask(config, name, warnings).unwrap_or_else(|error| {
        warnings.push(format!("{name}: {}", with_cause(&error)));
        Vec::new()
    })
}

fn ask(
    mut config: Config,
    name: &str,
    warnings: &mut Vec<String>,
) -> Result<Vec<Listing>, postgres::Error> {
    config.application_name("walstat");
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    let mut client = config.connect(NoTls)?;
    let cluster = system_identifier(&mut client, name, warnings);
    let databases =
        "SELECT datname::text FROM pg_catalog.pg_database WHERE datallowconn ORDER BY oid";
    let mut listings = Vec::new();
    for row in client.query(databases, &[])? {
        let database: String = row.try_get(0)?;
        match names_of(config.clone().dbname(&database)) {
            Ok(bytes) => {
                let place = format!("{name}, database {database}");
                let listing = parse(&bytes, Source::Server, &place, warnings);
                listings.push(Listing { system_identifier: cluster, ..listing });
            }
            Err(what) => warnings.push(format!("{name}, database {database}: {what}")),
        }
    }
    Ok(listings)
}

/// The names of one database, as a names file.
fn names_of(config: &Config) -> Result<Vec<u8>, String> {
    let mut client = config.connect(NoTls).map_err(|error| with_cause(&error))?;
    let mut answer = client.copy_out(QUERY.trim_end()).map_err(|error| with_cause(&error))?;
    let mut bytes = Vec::new();
    answer.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Which cluster it is, as 9.6 and later say.
fn system_identifier(client: &mut Client, name: &str, warnings: &mut Vec<String>) -> Option<u64> {
    let query = "SELECT system_identifier FROM pg_catalog.pg_control_system()";
    let asked = client.query_one(query, &[]).and_then(|row| row.try_get::<_, i64>(0));
    match asked {
        Ok(number) => Some(number.cast_unsigned()),
        Err(error) => {
            warnings.push(format!("{name}: its cluster is not known: {}", with_cause(&error)));
            None
        }
    }
}

/// An error with what caused it.
fn with_cause(error: &postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_connection_string_is_told() {
        for dsn in [
            "host=127.0.0.1 password=hunter2 hunter2b=1",
            "password='hunter2",
            "postgres://user:hunter2@127.0.0.1:hunter2/shop",
            "postgres://user:hunter2@127.0.0.1:1/shop?hunter2=1",
            "host=127.0.0.1 port=1 user=walstat password=hunter2",
        ] {
            let mut warnings = Vec::new();
            assert!(read(dsn, "--dsn", &mut warnings).is_empty());
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(!warnings[0].contains("hunter2"), "{warnings:?}");
        }
    }
}
