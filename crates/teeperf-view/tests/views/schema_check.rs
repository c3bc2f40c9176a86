//! Checks JSON against a schema, of the few words of JSON Schema (draft 2020-12) that those in `docs` use. Any
//! other word in it is an error, so that nothing is passed over.

use serde_json::Value;
use std::collections::BTreeSet;

/// A schema, and which of its properties were seen.
pub(crate) struct Schema {
    root: Value,
    pub(crate) seen: BTreeSet<String>,
}

impl Schema {
    /// Of reports.
    #[allow(dead_code, reason = "not each test asks")]
    pub(crate) fn of_reports() -> Self {
        Self::of(include_str!("../../../../docs/report.schema.json"))
    }

    /// Of this text.
    pub(crate) fn of(text: &str) -> Self {
        Self { root: serde_json::from_str(text).unwrap(), seen: BTreeSet::new() }
    }

    /// What is wrong with it, and where; nothing when it fits.
    pub(crate) fn errors(&mut self, value: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        let root = self.root.clone();
        self.check(&root, value, "", "", &mut errors);
        errors
    }

    /// All properties that it has, as they are written in `seen`.
    #[allow(dead_code, reason = "not each test asks")]
    pub(crate) fn properties(&self) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        properties(&self.root, "", &mut out);
        out
    }

    fn check(
        &mut self,
        schema: &Value,
        value: &Value,
        at: &str,
        place: &str,
        errors: &mut Vec<String>,
    ) {
        for (word, told) in schema.as_object().unwrap() {
            let is_right = match word.as_str() {
                "$schema" | "$defs" | "title" | "description" | "required" => true,
                "$ref" => {
                    if told == "#" {
                        let root = self.root.clone();
                        self.check(&root, value, at, "", errors);
                        continue;
                    }
                    let name = told.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                    let schema = self.root["$defs"][name].clone();
                    self.check(&schema, value, at, &format!("/$defs/{name}"), errors);
                    true
                }
                "const" => value == told,
                "enum" => told.as_array().unwrap().contains(value),
                "type" => match told {
                    Value::Array(types) => types.iter().any(|one| is_of(one, value)),
                    one => is_of(one, value),
                },
                "minimum" => value.as_f64().is_none_or(|number| number >= told.as_f64().unwrap()),
                "minItems" => {
                    value.as_array().is_none_or(|list| list.len() as u64 >= told.as_u64().unwrap())
                }
                "maxItems" => {
                    value.as_array().is_none_or(|list| list.len() as u64 <= told.as_u64().unwrap())
                }
                "items" => {
                    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(
                            told,
                            item,
                            &format!("{at}[{n}]"),
                            &format!("{place}/items"),
                            errors,
                        );
                    }
                    true
                }
                "properties" => {
                    self.object(schema, value, at, place, errors);
                    true
                }
                "additionalProperties" => *told == false,
                other => panic!("the schema has a word that is not checked: {other}"),
            };
            if !is_right {
                errors.push(format!("{at}: {value} is not right by {word} {told}"));
            }
        }
    }

    fn object(
        &mut self,
        schema: &Value,
        value: &Value,
        at: &str,
        place: &str,
        errors: &mut Vec<String>,
    ) {
        assert_eq!(schema["additionalProperties"], false, "{place}");
        let Some(object) = value.as_object() else { return };
        for (name, value) in object {
            match schema["properties"].get(name) {
                Some(property) => {
                    let place = format!("{place}/{name}");
                    self.seen.insert(place.clone());
                    self.check(property, value, &format!("{at}.{name}"), &place, errors);
                }
                None => errors.push(format!("{at}.{name} is not in the schema")),
            }
        }
        for name in schema["required"].as_array().unwrap() {
            if !object.contains_key(name.as_str().unwrap()) {
                errors.push(format!("{at}.{name} is missing"));
            }
        }
    }
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        other => panic!("no type: {other}"),
    }
}

fn properties(schema: &Value, place: &str, out: &mut BTreeSet<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{place}/{name}");
        properties(property, &place, out);
        out.insert(place);
    }
    if let Some(items) = schema.get("items") {
        properties(items, &format!("{place}/items"), out);
    }
    for (name, schema) in schema["$defs"].as_object().into_iter().flatten() {
        properties(schema, &format!("/$defs/{name}"), out);
    }
}
