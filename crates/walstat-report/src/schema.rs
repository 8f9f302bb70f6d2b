//! The JSON Schema of everything that `--format json` writes, from the types of the model. What
//! it says is in `docs/report.schema.json`.

use super::model::{CommandName, Report, Unreadable};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// Keys that a command's report has and others may not have.
const OF_COMMANDS: &[(CommandName, &[&str])] = &[
    (CommandName::Report, &["why", "rmgrs", "records", "tables", "names", "when", "findings"]),
    (CommandName::Check, &["checks", "segment_groups"]),
    (CommandName::WhatIf, &["whatif"]),
];

/// Keys of a check that reads all of the WAL. A round with a state counts less.
const OF_WHOLE_CHECKS: [&str; 2] = ["when", "findings"];

/// The schema.
pub fn json_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let meta_schema = settings.meta_schema.clone();
    let mut generator = settings.into_generator();
    let report = generator.subschema_for::<Report>();
    let unreadable = generator.subschema_for::<Unreadable>();
    let of_command = |(command, keys): &(CommandName, &[&str])| {
        json!({
            "if": {"properties": {"command": {"const": command.name()}}},
            "then": {"required": keys},
        })
    };
    let of_whole_check = json!({
        "if": {
            "properties": {"command": {"const": CommandName::Check.name()}},
            "not": {"required": ["state"]},
        },
        "then": {"required": OF_WHOLE_CHECKS},
    });
    let of_commands = OF_COMMANDS.iter().map(of_command).chain([of_whole_check]);
    let report: Vec<Value> = std::iter::once(report.to_value()).chain(of_commands).collect();
    let mut definitions = generator.take_definitions(true);
    definitions.values_mut().for_each(absent_is_not_null);
    json!({
        "$schema": meta_schema,
        "title": "walstat --format json",
        "description": "The output of walstat, walstat --stats, walstat check and \
                        walstat whatif. Sizes are bytes; \
                        LSNs, xids and system identifiers are texts; what is not known is null.",
        "anyOf": [
            {"allOf": report},
            unreadable,
        ],
        "$defs": definitions,
    })
}

/// A key that may be absent is never `null`.
fn absent_is_not_null(object: &mut Value) {
    let required = object["required"].clone();
    let is_required =
        |key: &String| required.as_array().is_some_and(|keys| keys.iter().any(|k| k == key));
    let properties = object.get_mut("properties").and_then(Value::as_object_mut);
    for (_, property) in properties.into_iter().flatten().filter(|(key, _)| !is_required(key)) {
        if let Some(types) = property.get_mut("type").and_then(Value::as_array_mut) {
            types.retain(|kind| kind != "null");
        }
        if let Some(kinds) = property.get_mut("anyOf").and_then(Value::as_array_mut) {
            kinds.retain(|kind| kind["type"] != "null");
        }
    }
}
