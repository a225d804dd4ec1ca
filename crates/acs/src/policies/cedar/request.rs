//! Who does what to what, and in which context.

use cedar_policy::{Context, EntityId, EntityTypeName, EntityUid, Request, Schema};
use countersign_canon::{Json, Object};
use countersign_policy::path::Path;

use super::context;
use crate::Input;

/// How a policy input becomes a request.
pub(super) struct Mapping {
    principal: Option<Entity>,
    action: Option<Entity>,
    resource: Option<Entity>,
    context: Option<Vec<(String, Path)>>,
}

/// An entity that the manifest describes.
struct Entity {
    kind: EntityTypeName,
    id: Id,
}

enum Id {
    Fixed(String),
    At(Path),
}

impl Mapping {
    /// Reads `{principal, action, resource, context}`, each of which may be absent. An entity is
    /// `{type, id}` or `{type, id_from: path}`; the context is an object of paths.
    pub(super) fn read(query: Option<&Object>) -> Result<Self, String> {
        let empty = Object::new();
        let query = query.unwrap_or(&empty);
        let known = ["principal", "action", "resource", "context"];
        if let Some((name, _)) = query.iter().find(|(name, _)| !known.contains(name)) {
            return Err(format!("query: unknown field `{name}`"));
        }
        let entity = |name: &str| {
            let described = query.get(name).map(Entity::read);
            described
                .transpose()
                .map_err(|problem| format!("query.{name}: {problem}"))
        };
        Ok(Self {
            principal: entity("principal")?,
            action: entity("action")?,
            resource: entity("resource")?,
            context: query
                .get("context")
                .map(read_context)
                .transpose()
                .map_err(|problem| format!("query.context: {problem}"))?,
        })
    }

    pub(super) fn request(
        &self,
        input: &Input<'_>,
        schema: Option<&Schema>,
    ) -> Result<Request, String> {
        let principal = match &self.principal {
            Some(entity) => entity.uid(input)?,
            None => uid("Agent", agent(input)?)?,
        };
        let action = match &self.action {
            Some(entity) => entity.uid(input)?,
            None => uid("Action", input.point().as_str())?,
        };
        let resource = match &self.resource {
            Some(entity) => entity.uid(input)?,
            None => resource(input)?,
        };
        let fields = match &self.context {
            Some(paths) => chosen(paths, input)?,
            None => whole(input)?,
        };
        let context = Context::from_pairs(fields).map_err(|error| error.to_string())?;
        Request::new(principal, action, resource, context, schema)
            .map_err(|error| super::described(&error))
    }
}

impl Entity {
    fn read(json: &Json) -> Result<Self, String> {
        let text = |name: &str| json.get(name).and_then(Json::as_str);
        let kind = text("type").ok_or("`type` must be a string")?;
        let kind = kind
            .parse()
            .map_err(|_| format!("`{kind}` is not the name of an entity type"))?;
        let id = match (text("id"), text("id_from")) {
            (Some(id), None) => Id::Fixed(id.to_owned()),
            (None, Some(path)) => Id::At(read_path(path)?),
            _ => return Err("expected one of `id` and `id_from`".to_owned()),
        };
        Ok(Self { kind, id })
    }

    fn uid(&self, input: &Input<'_>) -> Result<EntityUid, String> {
        let id = match &self.id {
            Id::Fixed(id) => EntityId::new(id),
            Id::At(path) => {
                let found = input
                    .resolve(path)
                    .map_err(|lost| format!("`{path}`: {lost}"))?;
                let id = found.as_str();
                EntityId::new(id.ok_or_else(|| format!("`{path}` is not a string"))?)
            }
        };
        Ok(EntityUid::from_type_name_and_id(self.kind.clone(), id))
    }
}

/// Who the agent is, as its host says.
fn agent<'a>(input: &'a Input<'_>) -> Result<&'a str, String> {
    let envelope = input.snapshot().get("envelope");
    envelope
        .and_then(|envelope| envelope.get("agent")?.get("id")?.as_str())
        .ok_or_else(|| "the snapshot has no `envelope.agent.id`".to_owned())
}

fn resource(input: &Input<'_>) -> Result<EntityUid, String> {
    match input.tool().get("name").and_then(Json::as_str) {
        Some(tool) => uid("Tool", tool),
        None => uid("PolicyTarget", input.target_kind().unwrap_or("unspecified")),
    }
}

fn uid(kind: &str, id: &str) -> Result<EntityUid, String> {
    let kind: EntityTypeName = kind
        .parse()
        .map_err(|_| format!("`{kind}` is not the name of an entity type"))?;
    Ok(EntityUid::from_type_name_and_id(kind, EntityId::new(id)))
}

/// The snapshot without its envelope, and what annotators said.
fn whole(input: &Input<'_>) -> Result<Vec<(String, cedar_policy::RestrictedExpression)>, String> {
    let mut fields = match input.snapshot() {
        Json::Object(members) => context::fields(members)?,
        _ => Vec::new(),
    };
    // SECURITY: a snapshot must not speak in the name of annotators.
    fields.retain(|(name, _)| name != "envelope" && name != ANNOTATIONS);
    let said = context::record(context::fields(input.annotations())?)?;
    fields.push((ANNOTATIONS.to_owned(), said));
    Ok(fields)
}

fn chosen(
    paths: &[(String, Path)],
    input: &Input<'_>,
) -> Result<Vec<(String, cedar_policy::RestrictedExpression)>, String> {
    let mut fields = Vec::new();
    for (name, path) in paths {
        let found = input
            .resolve(path)
            .map_err(|lost| format!("context: `{path}`: {lost}"))?;
        fields.extend(context::value(&found)?.map(|value| (name.clone(), value)));
    }
    Ok(fields)
}

fn read_context(json: &Json) -> Result<Vec<(String, Path)>, String> {
    let members = json.as_object().ok_or("expected an object of paths")?;
    members
        .iter()
        .map(|(name, path)| {
            let path = path
                .as_str()
                .ok_or_else(|| format!("`{name}` must be a path"))?;
            Ok((name.to_owned(), read_path(path)?))
        })
        .collect()
}

fn read_path(text: &str) -> Result<Path, String> {
    text.parse()
        .map_err(|error: countersign_policy::path::PathError| format!("`{text}`: {error}"))
}

const ANNOTATIONS: &str = "annotations";
