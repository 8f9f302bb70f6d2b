//! `--relation`: a file by its numbers, or a relation by its name as SQL writes it.

use std::fmt;
use walstat_format::block::RelFileLocator;

/// What `--relation` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelationArg {
    /// One file.
    File(RelFileLocator),
    /// All files of the relations of this name.
    Name(Identifiers),
}

/// `name`, `schema.name` or `database.schema.name`; and how it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identifiers {
    /// The identifiers, without quotes.
    pub parts: Vec<String>,
    /// As typed.
    pub text: String,
}

impl fmt::Display for RelationArg {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RelationArg::File(file) => write!(out, "{file}"),
            RelationArg::Name(name) => out.write_str(&name.text),
        }
    }
}

const EXPECTED: &str = "expected tablespace/database/relfilenode, like 1663/5/16390, or a name as \
                        SQL writes it, like public.orders";

/// Reads what `--relation` asks for.
pub fn parse(text: &str) -> Result<RelationArg, String> {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'/');
    let asked = if is_number(text) {
        file(text).map(RelationArg::File)
    } else {
        identifiers(text)
            .map(|parts| RelationArg::Name(Identifiers { parts, text: text.to_owned() }))
    };
    asked.ok_or_else(|| EXPECTED.to_owned())
}

/// The same, or a name with `"` in it as a list prints it, which is none of SQL.
pub fn parse_printed(text: &str) -> Result<RelationArg, String> {
    parse(text).or_else(|error| {
        if !text.contains('"') {
            return Err(error);
        }
        let text = text.to_owned();
        Ok(RelationArg::Name(Identifiers { parts: vec![text.clone()], text }))
    })
}

fn file(text: &str) -> Option<RelFileLocator> {
    let numbers: Vec<u32> = text.split('/').map(str::parse).collect::<Result<_, _>>().ok()?;
    match numbers.as_slice() {
        &[tablespace, database, relfilenode] if tablespace > 0 && relfilenode > 0 => {
            Some(RelFileLocator { tablespace, database, relfilenode })
        }
        _ => None,
    }
}

/// One to three identifiers with dots between them, in quotes or folded to small letters.
fn identifiers(text: &str) -> Option<Vec<String>> {
    let (mut parts, mut rest) = (Vec::new(), text);
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => plain(rest),
        };
        parts.push(Some(part).filter(|part| !part.is_empty())?);
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => break,
            None => return None,
        }
    }
    (parts.len() <= 3).then_some(parts)
}

/// An identifier up to the quote that ends it, and what is after that.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let (mut part, mut rest) = (String::new(), text);
    loop {
        let (before, after) = rest.split_once('"')?;
        part.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                part.push('"');
                rest = more;
            }
            None => return Some((part, after)),
        }
    }
}

fn plain(text: &str) -> (String, &str) {
    let end = text.find(['.', '"', '/']).unwrap_or(text.len());
    let (part, rest) = text.split_at(end);
    (part.to_ascii_lowercase(), rest)
}

/// An identifier as SQL writes it.
pub fn quoted(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if begins_plain && name.bytes().all(is_plain) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_sql_wants_them() {
        let shown = ["orders", "Orders", "a b", "1a", "a\"b"].map(quoted);
        assert_eq!(shown, ["orders", "\"Orders\"", "\"a b\"", "\"1a\"", "\"a\"\"b\""]);
    }

    #[test]
    fn names_are_read_as_sql_does() {
        let parts = |text: &str| match parse(text) {
            Ok(RelationArg::Name(name)) => name.parts,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(parts("Orders"), ["orders"]);
        assert_eq!(parts("shop.Public.orders"), ["shop", "public", "orders"]);
        assert_eq!(parts("\"Sales dept\".\"a \"\"b\"\".c/1\""), ["Sales dept", "a \"b\".c/1"]);
        for text in
            ["", ".", "a.", "a..b", "\"a", "\"\"", "a\"b\"", "a.b.c.d", "1/2", "0/5/1", "a/b"]
        {
            assert_eq!(parse(text), Err(EXPECTED.to_owned()), "{text}");
        }
        let file = RelFileLocator { tablespace: 1663, database: 5, relfilenode: 16390 };
        assert_eq!(parse("1663/5/16390"), Ok(RelationArg::File(file)));
    }
}
