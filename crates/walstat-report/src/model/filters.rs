//! The filters that were on, by option name, as JSON and for people.

use serde::{Deserialize, Serialize};

/// The filters of the command line that were on; together they are AND.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Filters {
    /// Resource managers, any of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rmgr: Vec<String>,
    /// Record types, any of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub record: Vec<String>,
    /// The transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xid: Option<String>,
    /// The relation: tablespace/database/relfilenode, or its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relation: Option<String>,
    /// With the table's TOAST and indexes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<bool>,
    /// The block of the relation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
    /// The fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork: Option<String>,
    /// The database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<u32>,
    /// Records with an image only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fullpage: Option<bool>,
    /// Records of this time or later only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Records before this time only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

impl Filters {
    /// The options that ask for them: `--rmgr Heap --fullpage`. `None` if no filter was on.
    pub fn options(&self) -> Option<String> {
        let Filters {
            rmgr,
            record,
            xid,
            relation,
            table,
            block,
            fork,
            database,
            fullpage,
            since,
            until,
        } = self;
        let mut options: Vec<String> = Vec::new();
        options.extend(rmgr.iter().map(|name| format!("--rmgr {name}")));
        options.extend(record.iter().map(|name| format!("--record {name}")));
        options.extend(xid.iter().map(|xid| format!("--xid {xid}")));
        options.extend(relation.iter().map(|relation| format!("--relation {relation}")));
        options.extend(table.iter().map(|_| "--table".to_owned()));
        options.extend(block.iter().map(|block| format!("--block {block}")));
        options.extend(fork.iter().map(|fork| format!("--fork {fork}")));
        options.extend(database.iter().map(|database| format!("--database {database}")));
        options.extend(fullpage.iter().map(|_| "--fullpage".to_owned()));
        options.extend(since.iter().map(|time| format!("--since {time}")));
        options.extend(until.iter().map(|time| format!("--until {time}")));
        (!options.is_empty()).then(|| options.join(" "))
    }
}
