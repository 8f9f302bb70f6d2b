//! What the environment says of a store, as far as it can be meant so: the clients end in a panic where a
//! variable goes into the header of a request and cannot.

use crate::url::Scheme;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::str::FromStr;

/// JSON, in which line ends are meant.
const JSON: &str = "GOOGLE_SERVICE_ACCOUNT_KEY";

/// What the names of a store's variables begin with, and those that are called otherwise.
fn names(scheme: Scheme) -> (&'static str, &'static [&'static str]) {
    match scheme {
        Scheme::S3 => ("AWS_", &[]),
        Scheme::Google => ("GOOGLE_", &["SERVICE_ACCOUNT", "STORAGE_EMULATOR_HOST"]),
        Scheme::Azure => ("AZURE_", &["IDENTITY_ENDPOINT"]),
    }
}

/// The variables of a store that say something: one that is empty is not set. By name.
pub(crate) fn variables(scheme: Scheme) -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    told(scheme, std::env::vars_os().filter_map(text))
}

fn told(scheme: Scheme, all: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let (prefix, others) = names(scheme);
    let is_its = |name: &str| name.starts_with(prefix) || others.contains(&name);
    all.filter(|(name, value)| is_its(name) && !value.is_empty()).collect()
}

/// A client's builder with those variables in it that it knows. Backwards by name: what begins with the
/// store's own prefix is set after `SERVICE_ACCOUNT` and `IDENTITY_ENDPOINT`, and holds.
pub(crate) fn configured<B, K: FromStr>(
    variables: &BTreeMap<String, String>,
    builder: B,
    set: impl Fn(B, K, String) -> B,
) -> B {
    let known = variables
        .iter()
        .rev()
        .filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value.clone())));
    known.fold(builder, |builder, (key, value)| set(builder, key, value))
}

/// In one line, without the value, why a variable cannot be meant so.
pub(crate) fn check(variables: &BTreeMap<String, String>) -> Result<(), String> {
    let is_odd = |value: &str| value.trim() != value || value.contains(char::is_control);
    match variables.iter().find(|(name, value)| *name != JSON && is_odd(value)) {
        None => Ok(()),
        Some((name, _)) => Err(format!(
            "the environment variable {name} has a control character, or a blank at one of its ends"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(name: &str, value: &str) -> Result<(), String> {
        check(&[(name.to_owned(), value.to_owned())].into())
    }

    #[test]
    fn a_variable_that_no_header_takes_is_named_and_not_shown() {
        for value in ["secret\n", " secret", "sec\x7fret"] {
            let error = checked("AWS_SESSION_TOKEN", value).expect_err(value);
            assert!(error.contains("AWS_SESSION_TOKEN") && !error.contains("secret"), "{error}");
        }
        assert_eq!(checked("AWS_SESSION_TOKEN", "a+b/c=="), Ok(()));
        assert_eq!(checked(JSON, "{\n}\n"), Ok(()));
    }

    #[test]
    fn a_variable_that_is_empty_is_not_set_whatever_store_it_is_of() {
        for (scheme, name) in [
            (Scheme::S3, "AWS_ENDPOINT_URL"),
            (Scheme::Google, "GOOGLE_APPLICATION_CREDENTIALS"),
            (Scheme::Google, "STORAGE_EMULATOR_HOST"),
            (Scheme::Azure, "AZURE_STORAGE_ACCOUNT_NAME"),
        ] {
            let with =
                |value: &str| told(scheme, [(name.to_owned(), value.to_owned())].into_iter());
            assert!(with("").is_empty(), "{name}");
            assert_eq!(with("x").get(name).map(String::as_str), Some("x"));
        }
        let others = [("AWS_REGION".to_owned(), "x".to_owned())];
        assert!(told(Scheme::Azure, others.into_iter()).is_empty());
    }
}
