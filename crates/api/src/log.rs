//! The transparency log: checkpoints, tiles and proofs. Hashes, and nothing of what events say.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderValue};
use countersign_canon::{Hash, Json};
use countersign_store::{Published, Reader};
use countersign_tlog::tile::{HEIGHT, Tile, TileKind, WIDTH, entries_to_bytes, hashes_to_bytes};
use countersign_tlog::{Kind as KeyKind, ProofFile};

use crate::call::Call;
use crate::problem::{Kind, Problem};
use crate::reply::Reply;

pub(crate) async fn checkpoint(call: &Call) -> Result<Reply, Problem> {
    let published = read(call, newest).await?;
    Ok(text(published.note.to_string()).tagged(call.if_none_match()))
}

pub(crate) async fn key(call: &Call) -> Result<Reply, Problem> {
    let key = read(call, |reader| {
        newest(reader)?;
        let key = reader.log_signer()?.key(KeyKind::Note);
        let keys = [key].into_iter().chain(reader.earlier_log_keys()?);
        Ok(keys.map(|key| format!("{key}\n")).collect::<String>())
    });
    Ok(text(key.await?).tagged(call.if_none_match()))
}

/// Only what the newest checkpoint covers is served, so nobody sees a tile that may change.
pub(crate) async fn tile(call: &Call) -> Result<Reply, Problem> {
    let nothing = || Problem::new(Kind::NotFound, "no such tile");
    let path = format!("tile/{}", call.parameters.path("tile"));
    let tile: Tile = path.parse().map_err(|_| nothing())?;
    let bytes = read(call, move |reader| {
        let size = newest(reader)?.checkpoint.size;
        let there = match tile.kind {
            TileKind::Entries => size,
            TileKind::Hashes(level) => size
                .checked_shr(u32::from(level) * HEIGHT)
                .unwrap_or_default(),
        };
        let end = tile.number.checked_mul(WIDTH);
        let end = end.and_then(|first| first.checked_add(tile.width));
        if end.is_none_or(|end| end > there) {
            return Err(nothing());
        }
        bytes(&tile, reader)
    });
    let mut reply = Reply::bytes(StatusCode::OK, "application/octet-stream", bytes.await?);
    let for_ever = HeaderValue::from_static("private, max-age=31536000, immutable");
    reply.headers.insert(CACHE_CONTROL, for_ever);
    Ok(reply)
}

pub(crate) async fn inclusion(call: &Call) -> Result<Reply, Problem> {
    let index = match call.parameters.query("index") {
        Some(text) => number("index", Some(text))?,
        None => {
            let Some(session) = call.parameters.query("session_id") else {
                let text = "give `index`, or `session_id` and `seq`";
                return Err(Problem::new(Kind::Parameter, text));
            };
            let tenant = call.parameters.query("tenant_id");
            let scope = call.caller.scope(tenant, session)?;
            call.api.check_owner(&call.caller, &scope).await?;
            let seq = number("seq", call.parameters.query("seq"))?;
            let event = read(call, move |reader| Ok(reader.event(&scope, seq)?)).await?;
            let event = event.ok_or_else(|| Problem::new(Kind::NoSession, "no such event"))?;
            event.id.saturating_sub(1)
        }
    };
    let proof = read(call, move |reader| prove(index, reader));
    Ok(Reply::ok(&proof.await?))
}

/// That an event is in the log of the newest checkpoint. Blocks.
pub(crate) fn prove(index: u64, reader: &Reader) -> Result<Json, Problem> {
    let published = newest(reader)?;
    let size = published.checkpoint.size;
    if index >= size {
        let text = format!("the newest checkpoint covers {size} event(s)");
        return Err(Problem::new(Kind::Unpublished, text));
    }
    let entry = reader.entries(index / WIDTH, index % WIDTH + 1)?;
    let entry = entry.last().copied();
    let entry = entry.ok_or_else(|| Problem::new(Kind::Damaged, "the event is missing"))?;
    let path = reader.prove_inclusion(index, size)?;
    Ok(proven(index, entry, path, published))
}

pub(crate) async fn consistency(call: &Call) -> Result<Reply, Problem> {
    let old = number("old", call.parameters.query("old"))?;
    let new = call.parameters.query("new");
    let new = new.map(|text| number("new", Some(text))).transpose()?;
    let proof = read(call, move |reader| {
        let covered = newest(reader)?.checkpoint.size;
        let new = new.unwrap_or(covered);
        if new > covered {
            let text = format!("the newest checkpoint covers {covered} event(s)");
            return Err(Problem::new(Kind::Unpublished, text));
        }
        if old == 0 || old > new {
            let text = "`old` is at least 1 and at most `new`";
            return Err(Problem::new(Kind::Parameter, text));
        }
        Ok(Json::object([
            ("old_size", Json::from(old)),
            ("old_root", Json::from(reader.tree_root(old)?.to_string())),
            ("new_size", Json::from(new)),
            ("new_root", Json::from(reader.tree_root(new)?.to_string())),
            ("hashes", texts(&reader.prove_consistency(old, new)?)),
        ]))
    });
    Ok(Reply::ok(&proof.await?))
}

fn proven(index: u64, entry: Hash, path: Vec<Hash>, published: Published) -> Json {
    let Published { checkpoint, note } = published;
    let hashes = texts(&path);
    let text = note.to_string();
    let file = ProofFile {
        extra: None,
        index,
        path,
        note,
    };
    Json::object([
        ("event", Json::from(entry.to_string())),
        ("index", Json::from(index)),
        ("size", Json::from(checkpoint.size)),
        ("root", Json::from(checkpoint.root.to_string())),
        ("path", hashes),
        ("checkpoint", Json::from(text)),
        ("proof", Json::from(file.to_string())),
    ])
}

fn bytes(tile: &Tile, reader: &Reader) -> Result<Vec<u8>, Problem> {
    let mut hashes = match tile.kind {
        TileKind::Hashes(level) => reader.tile(level, tile.number)?,
        TileKind::Entries => reader.entries(tile.number, tile.width)?,
    };
    hashes.truncate(usize::try_from(tile.width).unwrap_or(usize::MAX));
    if hashes.len() as u64 != tile.width {
        return Err(Problem::new(
            Kind::Damaged,
            "a tile of the log is too short",
        ));
    }
    Ok(match tile.kind {
        TileKind::Hashes(_) => hashes_to_bytes(&hashes),
        TileKind::Entries => {
            let entries = hashes.iter().map(|hash| hash.as_bytes().as_slice());
            // A hash is far shorter than the longest entry.
            entries_to_bytes(entries).unwrap_or_default()
        }
    })
}

fn newest(reader: &Reader) -> Result<Published, Problem> {
    let newest = reader.last_checkpoint()?;
    newest.ok_or_else(|| Problem::new(Kind::Unpublished, "no checkpoint was published yet"))
}

async fn read<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce(&Reader) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let engine = Arc::clone(&call.api.engine);
    let work = move || work(engine.store().reader());
    call.api.workers.run(work).await?
}

fn number(name: &str, text: Option<&str>) -> Result<u64, Problem> {
    let number = text.and_then(|text| text.parse().ok());
    number.ok_or_else(|| Problem::new(Kind::Parameter, format!("`{name}` is a number")))
}

fn text(text: String) -> Reply {
    Reply::bytes(StatusCode::OK, "text/plain; charset=utf-8", text)
}

fn texts(hashes: &[Hash]) -> Json {
    Json::Array(
        hashes
            .iter()
            .map(|hash| Json::from(hash.to_string()))
            .collect(),
    )
}
