//! What went wrong, in one line: the store's own code and message, and nothing else of its answer. An answer
//! may repeat the request that it is to, and with it a token.

use object_store::client::HttpError;
use std::error::Error;
use std::sync::OnceLock;

/// Why something could not be had.
#[derive(Debug, Clone)]
pub(crate) struct Reason {
    /// In one line.
    pub(crate) text: String,
    /// What to do about it.
    pub(crate) then: Then,
    /// Whether a store has said it.
    pub(crate) is_answer: bool,
}

/// What to do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// It may pass: try again.
    Again,
    /// What came is not the part that was asked for: the whole object may be had all the same.
    AskForAll,
    /// The object or the bucket is not there.
    Absent,
    /// The object is there and has fewer bytes than were asked for.
    Shorter,
    /// It will not pass.
    GiveUp,
}

impl Reason {
    /// Of what the crate of the stores says.
    pub(crate) fn of(error: &object_store::Error) -> Reason {
        let chain = chain(error);
        if let Some(reason) = no_credentials(&chain) {
            return reason;
        }
        if let Some(status) = status_in(&chain) {
            let then = match status {
                404 => Then::Absent,
                416 => Then::Shorter,
                408 | 429 | 500.. => Then::Again,
                _ => Then::GiveUp,
            };
            return Reason { text: scrubbed(&answer_in(&chain, status)), then, is_answer: true };
        }
        let is_silence = causes(error).any(|error| error.is::<HttpError>());
        let then = if is_silence {
            Then::Again
        } else if matches!(error, object_store::Error::NotFound { .. }) {
            Then::Absent
        } else {
            give_up_unless_garbled(&chain)
        };
        let last = chain.last().map(String::as_str).unwrap_or_default();
        Reason { text: scrubbed(&one_line(last)), then, is_answer: !is_silence }
    }

    /// Something that may pass.
    pub(crate) fn passing(text: String) -> Reason {
        Reason { text, then: Then::Again, is_answer: false }
    }

    /// Nobody has said anything.
    pub(crate) fn no_answer() -> Reason {
        Reason::passing(SILENCE.to_owned())
    }

    /// Whether it is that.
    pub(crate) fn is_silence(&self) -> bool {
        self.text == SILENCE
    }

    /// Whether all of the object came in the place of a part.
    pub(crate) fn says_that_all_came(&self) -> bool {
        self.text.contains(ALL_CAME)
    }

    /// Whether it will not pass.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self.then, Then::Again | Then::AskForAll)
    }

    /// Something that will not.
    pub(crate) fn lasting(text: &str) -> Reason {
        Reason { text: scrubbed(&one_line(text)), then: Then::GiveUp, is_answer: false }
    }
}

/// An error and what caused it, the outermost first.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

/// What each of them says.
fn chain(error: &object_store::Error) -> Vec<String> {
    causes(error).map(ToString::to_string).collect()
}

const SILENCE: &str = "no answer for ten seconds";

/// What object_store says of an answer with everything where a part was asked for; it has no kind of its own.
const ALL_CAME: &str = "non-partial response";

/// An answer that was cut short or garbled on its way is no XML, or another range than was asked for.
fn give_up_unless_garbled(chain: &[String]) -> Then {
    const NOT_THE_PART: [&str; 4] = ["Requested ", "Content-Range", "CONTENT_RANGE", ALL_CAME];
    const GARBLED: [&str; 2] = ["ist response", "response body"];
    let has =
        |signs: &[&str]| chain.iter().any(|text| signs.iter().any(|sign| text.contains(sign)));
    if has(&NOT_THE_PART) {
        Then::AskForAll
    } else if has(&GARBLED) {
        Then::Again
    } else {
        Then::GiveUp
    }
}

/// Where the crate has no key it asks the machine it runs on for one; elsewhere than in the cloud nobody
/// answers.
fn no_credentials(chain: &[String]) -> Option<Reason> {
    const ASKED: [(&str, &str); 4] = [
        ("metadata/identity", "AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY"),
        ("metadata.google", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("computeMetadata", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("169.254.169.254", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    ];
    let is_asked = |(place, _): &&(&str, &str)| chain.iter().any(|text| text.contains(place));
    let (_, variables) = ASKED.iter().find(is_asked)?;
    let text = format!("no credentials: set {variables} (this machine has none of its own either)");
    Some(Reason { text, then: Then::GiveUp, is_answer: false })
}

/// The status of the store's answer, which the crate tells in words alone.
fn status_in(chain: &[String]) -> Option<u16> {
    const SAID: &str = "non-2xx status code: ";
    let after = chain.iter().find_map(|text| text.split_once(SAID))?.1;
    after.get(..3)?.parse().ok()
}

/// Status, code and message of an answer.
fn answer_in(chain: &[String], status: u16) -> String {
    let said = |tag: &str| chain.iter().find_map(|text| element(text, tag));
    let code = said("Code").or_else(|| json_text(chain, "reason"));
    let message = said("Message").or_else(|| json_text(chain, "message"));
    let name = status_name(status);
    match (code, message) {
        (Some(code), Some(message)) => format!("{code}: {message} ({name})"),
        (Some(one), None) | (None, Some(one)) => format!("{one} ({name})"),
        (None, None) if status == 301 => format!("{name}: is the bucket in another region?"),
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

fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(TEXT_MAX).collect()
}

/// A text without what the environment keeps secret, and without the query of any URL in it.
pub(crate) fn scrubbed(text: &str) -> String {
    let mut text = text.to_owned();
    for secret in secrets() {
        text = text.replace(secret.as_str(), "***");
    }
    let words = text.split(' ').map(|word| match word.split_once('?') {
        Some((before, after)) if before.contains("://") && !after.is_empty() => {
            format!("{before}?***")
        }
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
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
        let Reason { text, then, .. } = Reason::of(&error);
        assert_eq!(text, "SignatureDoesNotMatch: Wrong key. (HTTP 403 Forbidden)");
        assert_eq!(then, Then::GiveUp);
    }

    #[test]
    fn what_may_pass_is_tried_again() {
        let then = |text: &str| Reason::of(&generic(text)).then;
        assert_eq!(then("Server returned non-2xx status code: 503 Slow: "), Then::Again);
        assert_eq!(then("Server returned non-2xx status code: 404 Not Found: "), Then::Absent);
        assert_eq!(then("Requested 0..10, got 0..5"), Then::AskForAll);
        assert_eq!(then("Error getting list response body"), Then::Again);
        assert_eq!(then("no region"), Then::GiveUp);
    }

    #[test]
    fn the_query_of_a_url_is_not_shown() {
        assert_eq!(scrubbed("to https://h/x?sig=1 and why?"), "to https://h/x?*** and why?");
    }
}
