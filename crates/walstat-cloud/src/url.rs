//! `s3://BUCKET/KEY`, `gs://BUCKET/KEY`, `az://CONTAINER/KEY`, taken apart. The key is taken as it stands, as
//! the stores' own tools do: nothing in it is decoded.

use std::path::Path;

/// Whose store it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scheme {
    S3,
    Google,
    Azure,
}

const SCHEMES: [(&str, Scheme); 3] =
    [("s3", Scheme::S3), ("gs", Scheme::Google), ("az", Scheme::Azure)];

/// Where an object is, or the prefix of some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) scheme: Scheme,
    /// Bucket or container.
    pub(crate) bucket: String,
    /// Key or prefix, without a slash at its end.
    pub(crate) key: String,
}

fn split(path: &Path) -> Option<(Scheme, &str)> {
    let (scheme, rest) = path.to_str()?.split_once("://")?;
    SCHEMES.iter().find(|(name, _)| *name == scheme).map(|(_, scheme)| (*scheme, rest))
}

impl Url {
    /// Takes a URL apart; in one line, why it is none that can be read.
    pub(crate) fn parse(path: &Path) -> Result<Url, String> {
        let expected = "expected s3://, gs:// or az://, a bucket and a prefix";
        let (scheme, rest) = split(path).ok_or(expected)?;
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err("no bucket in the URL".to_owned());
        }
        // More than any of the stores allows, and nothing that a client's URL cannot have.
        let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "-._$".contains(letter);
        if !bucket.chars().all(is_of_name) {
            return Err(
                "no bucket can be called so: expected letters, digits, '-', '.', '_'".to_owned()
            );
        }
        let key = key.trim_matches('/');
        Ok(Url { scheme, bucket: bucket.to_owned(), key: key.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_bucket_and_a_key_taken_as_it_stands() {
        let parse = |text: &str| Url::parse(Path::new(text)).map(|url| (url.bucket, url.key));
        let is = |bucket: &str, key: &str| Ok((bucket.to_owned(), key.to_owned()));
        assert_eq!(parse("s3://wal"), is("wal", ""));
        assert_eq!(parse("gs://wal/"), is("wal", ""));
        assert_eq!(parse("az://wal/a b/%20/c/"), is("wal", "a b/%20/c"));
        assert!(parse("s3:///a").is_err());
        assert!(parse("s3://back ups/a").is_err());
    }

    #[test]
    fn a_path_on_disk_is_no_url() {
        for path in ["wal", "/s3/x", "s3:/x", "file:///x", "http://x/y"] {
            assert!(Url::parse(Path::new(path)).is_err(), "{path}");
        }
    }
}
