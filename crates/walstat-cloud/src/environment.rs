//! What the environment says of a store, as far as it can be meant so: the clients end in a panic where a
//! variable goes into the header of a request and cannot.

use crate::url::Scheme;
use std::ffi::OsString;

/// JSON, in which line ends are meant.
const JSON: &str = "GOOGLE_SERVICE_ACCOUNT_KEY";

/// The variables of a store that say something.
pub(crate) fn variables(scheme: Scheme) -> impl Iterator<Item = (String, String)> {
    let prefix = match scheme {
        Scheme::S3 => "AWS_",
        Scheme::Google => "GOOGLE_",
        Scheme::Azure => "AZURE_",
    };
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let all = std::env::vars_os().filter_map(text);
    all.filter(move |(name, value)| name.starts_with(prefix) && !value.is_empty())
}

/// In one line, without the value, why a variable cannot be meant so.
pub(crate) fn check(mut variables: impl Iterator<Item = (String, String)>) -> Result<(), String> {
    let is_odd = |value: &str| value.trim() != value || value.contains(char::is_control);
    match variables.find(|(name, value)| name != JSON && is_odd(value)) {
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
        check([(name.to_owned(), value.to_owned())].into_iter())
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
}
