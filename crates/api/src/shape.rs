//! The shapes of bodies: what a request must look like is checked by the same table that the
//! description of the API is made from.

use countersign_canon::{Json, Object};

use crate::problem::{Kind, Problem};

/// What a value looks like.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// Any JSON value.
    Any,
    /// Text.
    Text,
    /// A whole number that is not negative.
    Count,
    /// True or false.
    Flag,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A list.
    List(&'static Shape),
    /// An object with any members.
    Map,
    /// An object with these members.
    Object(&'static Record),
    /// That, or null.
    Maybe(&'static Shape),
}

/// An object, by its name in the description.
#[derive(Debug)]
pub(crate) struct Record {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) about: &'static str,
    /// Its members.
    pub(crate) fields: &'static [Field],
}

/// A member of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it looks like.
    pub(crate) shape: Shape,
    /// Whether it must be there.
    pub(crate) required: bool,
    /// What it is.
    pub(crate) about: &'static str,
}

/// A member that must be there.
pub(crate) const fn must(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field {
        name,
        shape,
        required: true,
        about,
    }
}

/// A member that may be there.
pub(crate) const fn may(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field {
        name,
        shape,
        required: false,
        about,
    }
}

impl Shape {
    /// Whether a value has this shape; if not, where it has not.
    pub(crate) fn check(&self, json: &Json) -> Result<(), Problem> {
        self.misfit(json, "")
    }

    fn misfit(&self, json: &Json, pointer: &str) -> Result<(), Problem> {
        let fits = match self {
            Self::Any => true,
            Self::Text => json.as_str().is_some(),
            Self::Count => json.as_u64().is_some(),
            Self::Flag => json.as_bool().is_some(),
            Self::OneOf(texts) => json.as_str().is_some_and(|text| texts.contains(&text)),
            Self::Map => json.as_object().is_some(),
            Self::Maybe(shape) => match json {
                Json::Null => true,
                json => return shape.misfit(json, pointer),
            },
            Self::List(shape) => match json.as_array() {
                None => false,
                Some(elements) => {
                    for (index, element) in elements.iter().enumerate() {
                        shape.misfit(element, &format!("{pointer}/{index}"))?;
                    }
                    true
                }
            },
            Self::Object(record) => match json.as_object() {
                None => false,
                Some(members) => return record.misfit(members, pointer),
            },
        };
        match fits {
            true => Ok(()),
            false => {
                let text = format!("expected {} at `{pointer}`", self.words());
                Err(Problem::new(Kind::Member, text).at(pointer))
            }
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Any => "any value".to_owned(),
            Self::Text => "a string".to_owned(),
            Self::Count => "a whole number that is not negative".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::OneOf(texts) => format!("one of {}", texts.join(", ")),
            Self::List(_) => "an array".to_owned(),
            Self::Map | Self::Object(_) => "an object".to_owned(),
            Self::Maybe(shape) => format!("{} or null", shape.words()),
        }
    }

    /// The JSON schema; `seen` takes the objects that it names.
    pub(crate) fn schema(&self, seen: &mut Vec<&'static Record>) -> Json {
        let kind = |name: &str| Json::object([("type", Json::from(name))]);
        match self {
            Self::Any => Json::Object(Object::new()),
            Self::Text => kind("string"),
            Self::Flag => kind("boolean"),
            Self::Map => kind("object"),
            Self::Count => Json::object([
                ("type", Json::from("integer")),
                ("minimum", Json::from(0_u64)),
                ("maximum", Json::from(countersign_event::MAX_EXACT)),
            ]),
            Self::OneOf(texts) => Json::object([
                ("type", Json::from("string")),
                (
                    "enum",
                    texts
                        .iter()
                        .map(|text| Json::from(*text))
                        .collect::<Vec<_>>()
                        .into(),
                ),
            ]),
            Self::List(shape) => {
                Json::object([("type", Json::from("array")), ("items", shape.schema(seen))])
            }
            Self::Maybe(shape) => {
                Json::object([("anyOf", Json::Array(vec![shape.schema(seen), kind("null")]))])
            }
            Self::Object(record) => {
                if !seen.iter().any(|known| known.name == record.name) {
                    seen.push(record);
                }
                let place = format!("#/components/schemas/{}", record.name);
                Json::object([("$ref", Json::from(place))])
            }
        }
    }
}

impl Record {
    fn misfit(&self, members: &Object, pointer: &str) -> Result<(), Problem> {
        for (name, value) in members.iter() {
            let place = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            match self.fields.iter().find(|field| field.name == name) {
                Some(field) => field.shape.misfit(value, &place)?,
                None => {
                    let known: Vec<&str> = self.fields.iter().map(|field| field.name).collect();
                    let text = format!("unknown member `{name}`; there are: {}", known.join(", "));
                    return Err(Problem::new(Kind::Member, text).at(place));
                }
            }
        }
        let missing = |field: &&Field| field.required && !members.contains_key(field.name);
        match self.fields.iter().find(missing) {
            None => Ok(()),
            Some(field) => {
                let text = format!("`{}` is missing", field.name);
                Err(Problem::new(Kind::Member, text).at(format!("{pointer}/{}", field.name)))
            }
        }
    }

    pub(crate) fn schema(&self, seen: &mut Vec<&'static Record>) -> Json {
        let properties = self.fields.iter().map(|field| {
            let mut schema = field.shape.schema(seen);
            if let Some(members) = schema.as_object_mut() {
                members.insert("description".to_owned(), Json::from(field.about));
            }
            (field.name.to_owned(), schema)
        });
        let properties: Object = properties.collect();
        let required = self.fields.iter().filter(|field| field.required);
        let required: Vec<Json> = required.map(|field| Json::from(field.name)).collect();
        let mut schema = vec![
            ("type", Json::from("object")),
            ("description", Json::from(self.about)),
            ("properties", Json::Object(properties)),
            ("additionalProperties", Json::from(false)),
        ];
        if !required.is_empty() {
            schema.push(("required", Json::Array(required)));
        }
        Json::object(schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_canon::Limits;

    const INNER: Record = Record {
        name: "Inner",
        about: "",
        fields: &[must("a/b", Shape::Count, "")],
    };
    const OUTER: Shape = Shape::Object(&Record {
        name: "Outer",
        about: "",
        fields: &[
            must("list", Shape::List(&Shape::Object(&INNER)), ""),
            may("mode", Shape::OneOf(&["on", "off"]), ""),
            may("note", Shape::Maybe(&Shape::Text), ""),
        ],
    });

    #[test]
    fn misfits_are_named_by_their_place() {
        let check = |text: &str, expect: Option<&str>| {
            let json = Json::admit(text.as_bytes(), &Limits::event()).unwrap();
            let found = OUTER
                .check(&json)
                .err()
                .map(|problem| problem.detail().to_owned());
            assert_eq!(found.as_deref(), expect, "{text}");
        };
        check(r#"{"list":[{"a/b":1}],"mode":"on","note":null}"#, None);
        check(
            r#"{"list":[{"a/b":-1}]}"#,
            Some("expected a whole number that is not negative at `/list/0/a~1b`"),
        );
        check("{}", Some("`list` is missing"));
        check(
            r#"{"list":[],"mode":"maybe"}"#,
            Some("expected one of on, off at `/mode`"),
        );
        check(
            r#"{"list":[],"x":1}"#,
            Some("unknown member `x`; there are: list, mode, note"),
        );
        check("[]", Some("expected an object at ``"));
    }
}
