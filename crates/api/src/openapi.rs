//! The description of the API (OpenAPI 3.1), made from the table of routes.

use countersign_canon::{Json, Object};

use crate::records::PROBLEM;
use crate::route::{Endpoint, ROUTES, Route};
use crate::shape::{Record, Shape};

/// The description, as JSON.
pub fn openapi() -> Json {
    let mut seen: Vec<&'static Record> = Vec::new();
    let mut paths: Vec<(String, Json)> = Vec::new();
    let mut order: Vec<&'static str> = described().map(|route| route.path).collect();
    order.dedup();
    for path in order {
        let here = described().filter(|route| route.path == path);
        let operations = here.map(|route| {
            let verb = route.method.as_str().to_ascii_lowercase();
            (verb, operation(route, &mut seen))
        });
        paths.push((path.to_owned(), Json::Object(operations.collect())));
    }
    let problem = PROBLEM.schema(&mut seen);
    Json::object([
        ("openapi", Json::from("3.1.0")),
        (
            "info",
            Json::object([
                ("title", Json::from("Countersign")),
                ("version", Json::from(env!("CARGO_PKG_VERSION"))),
                ("description", Json::from(ABOUT)),
                (
                    "license",
                    Json::object([("name", "Apache-2.0"), ("identifier", "Apache-2.0")].map(text)),
                ),
            ]),
        ),
        ("paths", Json::Object(paths.into_iter().collect::<Object>())),
        (
            "components",
            Json::object([
                ("schemas", schemas(seen)),
                (
                    "responses",
                    Json::object([(
                        "Problem",
                        Json::object([
                            ("description", Json::from("What went wrong, with its code")),
                            (
                                "content",
                                Json::object([(
                                    "application/problem+json",
                                    Json::object([("schema", problem)]),
                                )]),
                            ),
                        ]),
                    )]),
                ),
                (
                    "securitySchemes",
                    Json::object([(
                        "bearer",
                        Json::object([("type", "http"), ("scheme", "bearer")].map(text)),
                    )]),
                ),
            ]),
        ),
        (
            "security",
            Json::Array(vec![Json::object([("bearer", Json::Array(Vec::new()))])]),
        ),
    ])
}

/// Pages are for people, and described nowhere but on themselves.
fn described() -> impl Iterator<Item = &'static Route> {
    let is_page = |route: &&Route| matches!(route.endpoint, Endpoint::Page(_));
    ROUTES.iter().filter(move |route| !is_page(route))
}

fn operation(route: &'static Route, seen: &mut Vec<&'static Record>) -> Json {
    let mut parameters: Vec<Json> = names(route.path)
        .map(|name| parameter(name, "path", "", true))
        .collect();
    let query = route.query.iter();
    parameters.extend(query.map(|known| parameter(known.name, "query", known.about, false)));
    let (status, shape) = route.answer;
    let mut answer = vec![("description", Json::from(route.summary))];
    if let Some(shape) = shape {
        answer.push(("content", content("application/json", &shape, seen)));
    }
    let responses = [
        (status.to_string(), Json::object(answer)),
        (
            "default".to_owned(),
            Json::object([("$ref", Json::from("#/components/responses/Problem"))]),
        ),
    ];
    let mut members = vec![
        ("operationId", Json::from(operation_id(route.endpoint))),
        ("summary", Json::from(route.summary)),
        ("x-permission", Json::from(route.permission.as_str())),
        ("responses", Json::object(responses)),
    ];
    if !parameters.is_empty() {
        members.push(("parameters", Json::Array(parameters)));
    }
    if let Some(shape) = &route.body {
        members.push((
            "requestBody",
            Json::object([
                ("required", Json::from(true)),
                ("content", content("application/json", shape, seen)),
            ]),
        ));
    }
    if route.permission.is_open() {
        members.push(("security", Json::Array(Vec::new())));
    }
    Json::object(members)
}

/// `AppendEvent` is `appendEvent`.
fn operation_id(endpoint: Endpoint) -> String {
    let name = format!("{endpoint:?}");
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

fn parameter(name: &str, place: &str, about: &str, required: bool) -> Json {
    let schema = match (place, name) {
        ("query", "limit") => Json::object([
            ("type", Json::from("integer")),
            ("minimum", Json::from(1_u64)),
            ("maximum", Json::from(1000_u64)),
        ]),
        ("query", name) if name.ends_with("_unix_ms") => Json::object([
            ("type", Json::from("integer")),
            ("minimum", Json::from(0_u64)),
        ]),
        _ => Json::object([("type", Json::from("string"))]),
    };
    Json::object([
        ("name", Json::from(name)),
        ("in", Json::from(place)),
        ("description", Json::from(about)),
        ("required", Json::from(required)),
        ("schema", schema),
    ])
}

fn content(kind: &str, shape: &Shape, seen: &mut Vec<&'static Record>) -> Json {
    Json::object([(kind, Json::object([("schema", shape.schema(seen))]))])
}

/// Each object, and those that it names in turn.
fn schemas(mut seen: Vec<&'static Record>) -> Json {
    let mut schemas: Vec<(String, Json)> = Vec::new();
    let mut next = 0;
    while let Some(record) = seen.get(next).copied() {
        schemas.push((record.name.to_owned(), record.schema(&mut seen)));
        next += 1;
    }
    Json::Object(schemas.into_iter().collect())
}

/// What varies in a path.
pub(crate) fn names(path: &'static str) -> impl Iterator<Item = &'static str> {
    let parts = path.split('/');
    parts.filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn text((name, value): (&'static str, &'static str)) -> (&'static str, Json) {
    (name, Json::from(value))
}

const ABOUT: &str = "Decides what agents may do, holds what people must decide, and keeps evidence. \
Errors are problem details (RFC 9457) with a `code` that `countersign explain` explains. Lists are \
read page by page with `cursor`. `Idempotency-Key` makes a request that changes something safe to \
repeat. `ETag` and `If-None-Match` spare what is known.";
