//! What went wrong, in one line: the store's own code and message, and nothing else of its answer. An answer
//! may repeat the request that it is to, and with it a token.

use crate::region::{OtherRegion, is_name};
use object_store::client::HttpError;
use std::error::Error;
use std::sync::OnceLock;
use std::time::Duration;

/// Why something could not be had.
#[derive(Debug, Clone)]
pub(crate) struct Reason {
    /// In one line.
    pub(crate) text: String,
    /// What kind of failure it is, which decides what to do about it.
    pub(crate) cause: Cause,
}

/// Kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Nobody answered in time.
    Silence,
    /// The connection failed, or ended before all had come.
    Broken,
    /// The store says that it cannot just now.
    Busy,
    /// What came was no answer that can be read.
    Garbled,
    /// The store refuses the credentials, or the machine that should have some gives none.
    Credentials,
    /// All of the object came, where a part of it was asked for.
    AllCame,
    /// Another part came than was asked for.
    OtherPart,
    /// The object or the bucket is not there.
    Absent,
    /// The object is there and has fewer bytes than were asked for.
    Shorter,
    /// Anything else that will not pass.
    Refused,
}

impl Cause {
    /// Of an answer's status.
    fn of_status(status: u16) -> Cause {
        match status {
            401 => Cause::Credentials,
            404 => Cause::Absent,
            416 => Cause::Shorter,
            408 | 429 | 500.. => Cause::Busy,
            _ => Cause::Refused,
        }
    }

    /// Whether the same is answered however often it is asked.
    pub(crate) fn is_final(self) -> bool {
        self.is_not_the_part() || matches!(self, Cause::Absent | Cause::Shorter | Cause::Refused)
    }

    /// Whether something came, but not the part that was asked for.
    pub(crate) fn is_not_the_part(self) -> bool {
        matches!(self, Cause::AllCame | Cause::OtherPart)
    }

    /// Whether the store has answered, whatever it said.
    pub(crate) fn is_answer(self) -> bool {
        self.is_final() || matches!(self, Cause::Busy | Cause::Garbled)
    }
}

impl Reason {
    /// Of what the crate of the stores says.
    pub(crate) fn of(error: &object_store::Error) -> Reason {
        let chain = chain(error);
        if let Some(variables) = own_credentials_in(&chain) {
            return Reason::no_credentials(&chain, variables);
        }
        if let Some(other) = causes(error).find_map(|error| error.downcast_ref::<OtherRegion>()) {
            return Reason::lasting(&other.to_string());
        }
        if let Some(status) = status_in(&chain) {
            let is_expired = code_in(&chain).is_some_and(|code| EXPIRED.contains(&code.as_str()));
            let cause = if is_expired { Cause::Credentials } else { Cause::of_status(status) };
            return Reason { text: one_line(&answer_in(&chain, status)), cause };
        }
        if chain.iter().any(|text| text.contains(REDIRECTED)) {
            return Reason::lasting(REGION_UNTOLD);
        }
        let cause = if causes(error).any(|error| error.is::<HttpError>()) {
            Cause::Broken
        } else if matches!(error, object_store::Error::NotFound { .. }) {
            Cause::Absent
        } else {
            garbled_or_refused(&chain)
        };
        Reason { text: last_line(&chain), cause }
    }

    /// Where the environment has no credentials, the crate asks the machine that it runs on for some.
    fn no_credentials(chain: &[String], variables: &str) -> Reason {
        let why = match status_in(chain) {
            Some(status) => answer_in(chain, status),
            None => last_line(chain),
        };
        let text =
            format!("no credentials: set {variables} (this machine gives none either: {why})");
        Reason { text: one_line(&text), cause: Cause::Credentials }
    }

    /// A connection that failed.
    pub(crate) fn broken(text: String) -> Reason {
        Reason { text, cause: Cause::Broken }
    }

    /// Nobody has said anything for so long.
    pub(crate) fn silence(limit: Duration) -> Reason {
        let text = format!("no answer for {} seconds", limit.as_secs());
        Reason { text, cause: Cause::Silence }
    }

    /// Something that will not pass.
    pub(crate) fn lasting(text: &str) -> Reason {
        Reason { text: scrubbed(text), cause: Cause::Refused }
    }
}

/// An error and what caused it, the outermost first.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

/// What each of them says, without secrets: of what follows here some is cut.
fn chain(error: &object_store::Error) -> Vec<String> {
    causes(error).map(|error| without(&error.to_string(), secrets())).collect()
}

/// What the innermost says.
fn last_line(chain: &[String]) -> String {
    one_line(chain.last().map(String::as_str).unwrap_or_default())
}

/// Codes of refusals that say nothing of the object: the same credentials were good before, or others are.
const EXPIRED: [&str; 5] = [
    "ExpiredToken",
    "TokenRefreshRequired",
    "InvalidToken",
    "InvalidAccessKeyId",
    // Azure's, of a signature that has expired too.
    "AuthenticationFailed",
];

/// An answer that was cut short or garbled on its way is no XML, or another range than was asked for. The
/// crate has no kinds of their own for these.
fn garbled_or_refused(chain: &[String]) -> Cause {
    const ALL_CAME: [&str; 1] = ["non-partial response"];
    const OTHER_PART: [&str; 3] = ["Requested ", "Content-Range", "CONTENT_RANGE"];
    const GARBLED: [&str; 2] = ["ist response", "response body"];
    let has =
        |signs: &[&str]| chain.iter().any(|text| signs.iter().any(|sign| text.contains(sign)));
    if has(&ALL_CAME) {
        Cause::AllCame
    } else if has(&OTHER_PART) {
        Cause::OtherPart
    } else if has(&GARBLED) {
        Cause::Garbled
    } else {
        Cause::Refused
    }
}

/// Whether it is about a service that a machine in the cloud has its credentials from: what to set where
/// there is none.
fn own_credentials_in(chain: &[String]) -> Option<&'static str> {
    const AWS: &str = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
    const GOOGLE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
    const ASKED: [(&str, &str); 7] = [
        ("/metadata/identity", "AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY"),
        ("//metadata.google", GOOGLE),
        ("/computeMetadata/", GOOGLE),
        ("/latest/api/token", AWS),
        ("/latest/meta-data/iam", AWS),
        ("//169.254.169.254", AWS),
        ("//169.254.170.2", AWS),
    ];
    let is_asked = |(place, _): &&(&str, &str)| chain.iter().any(|text| text.contains(place));
    ASKED.iter().find(is_asked).map(|(_, variables)| *variables)
}

/// The status of the store's answer, which the crate tells in words alone.
fn status_in(chain: &[String]) -> Option<u16> {
    const SAID: &str = "non-2xx status code: ";
    let after = chain.iter().find_map(|text| text.split_once(SAID))?.1;
    after.get(..3)?.parse().ok()
}

/// What the crate says of a redirection to nowhere.
const REDIRECTED: &str = "redirect without LOCATION";
/// What is said of one that does not name the region.
const REGION_UNTOLD: &str = "is the bucket in another region? AWS_REGION says in which";

/// The code of an answer.
fn code_in(chain: &[String]) -> Option<String> {
    element_in(chain, "Code").or_else(|| json_text(chain, "reason"))
}

/// Status, code and message of an answer.
fn answer_in(chain: &[String], status: u16) -> String {
    let message = element_in(chain, "Message").or_else(|| json_text(chain, "message"));
    let name = status_name(status);
    let code = code_in(chain);
    let is_other = code.as_deref() == Some("AuthorizationHeaderMalformed");
    let region = element_in(chain, "Region").filter(|region| is_other && is_name(region));
    let hint = region.map(|region| format!(": set AWS_REGION={region}")).unwrap_or_default();
    match (code, message) {
        (Some(code), Some(message)) => format!("{code}: {message} ({name}){hint}"),
        (Some(one), None) | (None, Some(one)) => format!("{one} ({name})"),
        (None, None) if status == 301 => format!("{name}: {REGION_UNTOLD}"),
        (None, None) => name,
    }
}

fn status_name(status: u16) -> String {
    let name = match status {
        301 => " Moved Permanently",
        400 => " Bad Request",
        401 => " Unauthorized",
        403 => " Forbidden",
        404 => " Not Found",
        416 => " Range Not Satisfiable",
        429 => " Too Many Requests",
        500 => " Internal Server Error",
        502 => " Bad Gateway",
        503 => " Service Unavailable",
        504 => " Gateway Timeout",
        _ => "",
    };
    format!("HTTP {status}{name}")
}

fn element_in(chain: &[String], tag: &str) -> Option<String> {
    chain.iter().find_map(|text| element(text, tag))
}

/// The text of an element of XML without others in it.
fn element(text: &str, tag: &str) -> Option<String> {
    let after = text.split_once(&format!("<{tag}>"))?.1;
    let inner = after.split_once(&format!("</{tag}>"))?.0;
    let first = inner.lines().next().unwrap_or_default();
    Some(one_line(first)).filter(|text| !text.is_empty())
}

/// The same in the JSON that Google answers in.
fn json_text(chain: &[String], key: &str) -> Option<String> {
    let after = chain.iter().find_map(|text| text.split_once(&format!("\"{key}\"")))?.1;
    let inner = after.split_once('"')?.1.split_once('"')?.0;
    Some(one_line(inner)).filter(|text| !text.is_empty())
}

const TEXT_MAX: usize = 300;

/// A text in one line, without the query of any URL in it.
fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words = text.split_whitespace().map(|word| match word.split_once('?') {
        Some((before, after)) if before.contains("://") && !after.is_empty() => {
            format!("{before}?***")
        }
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ").chars().take(TEXT_MAX).collect()
}

/// A text in one line, without what the environment keeps secret.
pub(crate) fn scrubbed(text: &str) -> String {
    // In this order: of a secret that a cut goes through, a part would be left.
    one_line(&without(text, secrets()))
}

fn without(text: &str, secrets: &[String]) -> String {
    secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "***"))
}

/// Shorter ones would blot out words.
const SECRET_MIN: usize = 6;

fn secrets() -> &'static [String] {
    static SECRETS: OnceLock<Vec<String>> = OnceLock::new();
    SECRETS.get_or_init(|| {
        const OF: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];
        const SECRET: [&str; 6] =
            ["KEY", "SECRET", "TOKEN", "PASSWORD", "SAS", "CONNECTION_STRING"];
        let is_secret = |name: &str| {
            OF.iter().any(|of| name.starts_with(of))
                && SECRET.iter().any(|secret| name.contains(secret))
        };
        let all = std::env::vars_os().filter_map(|(name, value)| {
            let is_secret = name.to_str().is_some_and(is_secret);
            value.into_string().ok().filter(|value| is_secret && value.len() >= SECRET_MIN)
        });
        let mut all: Vec<String> = all.collect();
        // Longest first: one secret may be the beginning of another.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> object_store::Error {
        let source = std::io::Error::other(text.to_owned()).into();
        object_store::Error::Generic { store: "S3", source }
    }

    #[test]
    fn of_an_answer_only_code_and_message_are_told() {
        let error = generic(
            "Error performing GET http://h/b?X-Amz-Signature=abc in 1ms - Server returned non-2xx status \
             code: 403 Forbidden: <Error><Code>SignatureDoesNotMatch</Code><Message>Wrong key.</Message>\
             <StringToSign>x-amz-security-token:hidden</StringToSign></Error>",
        );
        let Reason { text, cause } = Reason::of(&error);
        assert_eq!(text, "SignatureDoesNotMatch: Wrong key. (HTTP 403 Forbidden)");
        assert_eq!(cause, Cause::Refused);
    }

    #[test]
    fn a_failure_is_told_by_its_status_or_by_what_the_crate_says() {
        let cause = |text: &str| Reason::of(&generic(text)).cause;
        let answered = |text: &str| cause(&format!("Server returned non-2xx status code: {text}"));
        assert_eq!(answered("503 Slow: "), Cause::Busy);
        assert_eq!(answered("404 Not Found: "), Cause::Absent);
        assert_eq!(answered("403 Forbidden: <Code>AccessDenied</Code>"), Cause::Refused);
        assert_eq!(answered("403 Forbidden: <Code>ExpiredToken</Code>"), Cause::Credentials);
        assert_eq!(answered("401 Unauthorized: "), Cause::Credentials);
        assert_eq!(cause("Requested 0..10, got 0..5"), Cause::OtherPart);
        assert_eq!(cause("Received non-partial response when range requested"), Cause::AllCame);
        assert_eq!(cause("Error getting list response body"), Cause::Garbled);
        assert_eq!(cause("no region"), Cause::Refused);
    }

    #[test]
    fn of_credentials_that_the_machine_does_not_give_it_is_told_what_to_set() {
        let of = |text: &str| Reason::of(&generic(text));
        let Reason { text, cause } = of(
            "Error performing PUT http://169.254.169.254/latest/api/token in 1ms - Server returned non-2xx \
             status code: 503 Service Unavailable: ",
        );
        let told = "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (this machine gives none \
                    either: HTTP 503 Service Unavailable)";
        assert_eq!((text.as_str(), cause), (told, Cause::Credentials));
        // An object may be called like the service.
        let other = of("Error performing GET http://h/b/metadata.google in 1ms - no region");
        assert_eq!(other.cause, Cause::Refused);
    }

    #[test]
    fn a_region_that_was_not_asked_is_told_as_what_to_set() {
        let text = |text: &str| Reason::of(&generic(text)).text;
        let said = text(
            "Server returned non-2xx status code: 400 Bad Request: <Error>\
             <Code>AuthorizationHeaderMalformed</Code><Message>The region 'us-east-1' is wrong.</Message>\
             <Region>eu-west-1</Region></Error>",
        );
        assert!(
            said.ends_with("is wrong. (HTTP 400 Bad Request): set AWS_REGION=eu-west-1"),
            "{said}"
        );
        let said = text("Received redirect without LOCATION, this normally indicates an error");
        assert_eq!(said, REGION_UNTOLD);
        let moved = text("Server returned non-2xx status code: 301 Moved Permanently: ");
        assert_eq!(moved, format!("HTTP 301 Moved Permanently: {REGION_UNTOLD}"));
    }

    #[test]
    fn the_query_of_a_url_is_not_shown() {
        assert_eq!(scrubbed("to https://h/x?sig=1 and why?"), "to https://h/x?*** and why?");
    }
}
