// Signs decisions with a key that only this browser has. The daemon never sees it.
//
// What is signed is put together here, from the envelope and from the text that stands on the page: the
// hash of what was shown is the hash of what is shown.

const STORE = "countersign";
const PKCS8 = "302e020100300506032b657004220420";
const encoder = new TextEncoder();

export const hex = (bytes) => Array.from(new Uint8Array(bytes), (b) => b.toString(16).padStart(2, "0")).join("");
const bytes = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
export const sha256 = async (text) => hex(await crypto.subtle.digest("SHA-256", typeof text === "string" ? encoder.encode(text) : text));

// Sorted keys, no white space, everything beyond ASCII escaped: the form that all of our hashes are over.
// Whoever calls this has whole numbers only.
export function canonical(value) {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value)) throw new Error("a number cannot be written exactly");
    return String(value);
  }
  if (typeof value === "string") {
    const escaped = JSON.stringify(value).replace(/[\u007f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
    return escaped;
  }
  if (Array.isArray(value)) return "[" + value.map(canonical).join(",") + "]";
  const names = Object.keys(value).sort();
  return "{" + names.map((name) => canonical(name) + ":" + canonical(value[name])).join(",") + "}";
}

function database() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open(STORE, 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore("keys");
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

async function stored(mode, act) {
  const db = await database();
  try {
    return await new Promise((resolve, reject) => {
      const asked = act(db.transaction("keys", mode).objectStore("keys"));
      asked.onsuccess = () => resolve(asked.result);
      asked.onerror = () => reject(asked.error);
    });
  } finally {
    db.close();
  }
}

// The key of this browser: { secret, public, id }, or nothing.
export const loadKey = () => stored("readonly", (keys) => keys.get("approver"));
export const forgetKey = () => stored("readwrite", (keys) => keys.delete("approver"));
const keepKey = (key) => stored("readwrite", (keys) => keys.put(key, "approver"));

export async function makeKey() {
  const pair = await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
  const raw = await crypto.subtle.exportKey("raw", pair.publicKey);
  const key = { secret: pair.privateKey, public: hex(raw), id: await sha256(raw) };
  await keepKey(key);
  return key;
}

// A key file of `countersign approver init`: 64 hexadecimal digits.
export async function readKey(text) {
  const seed = text.trim();
  if (!/^[0-9a-f]{64}$/.test(seed)) throw new Error("this is no key file of an approver");
  const form = bytes(PKCS8 + seed);
  // Only to learn the public half; this one is not kept.
  const open = await crypto.subtle.importKey("pkcs8", form, "Ed25519", true, ["sign"]);
  const { x } = await crypto.subtle.exportKey("jwk", open);
  const raw = Uint8Array.from(atob(x.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  const secret = await crypto.subtle.importKey("pkcs8", form, "Ed25519", false, ["sign"]);
  form.fill(0);
  const key = { secret, public: hex(raw), id: await sha256(raw) };
  await keepKey(key);
  return key;
}

async function send(path, body, csrf) {
  const headers = { "content-type": "application/json" };
  if (csrf) headers["countersign-csrf"] = csrf;
  const answer = await fetch(path, { method: "POST", headers, body, credentials: "same-origin" });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(`${said.code ?? answer.status}: ${said.detail ?? "it was not taken"}`);
  return said;
}

// Signs one decision about every call of the request on the page, and hands it in.
export async function vote({ approval, envelope, shown, person, key, approved, reason, csrf }) {
  const stated = JSON.parse(envelope);
  // The plan stands in the envelope byte for byte; nothing before it is an object of that name.
  const from = envelope.indexOf('"plan":{') + 7;
  const to = envelope.lastIndexOf(',"plan_hash":"');
  const plan_hash = await sha256(envelope.slice(from, to));
  if (stated.envelope_id !== approval || stated.plan_hash !== plan_hash) {
    throw new Error("the page does not fit the request; nothing was signed");
  }
  const reason_hash = reason ? await sha256(reason) : null;
  const word = approved ? "approved" : "denied";
  const calls = stated.plan.tool_calls.map((call) => call.tool_call_id);
  const common = {
    approver: person,
    display_hash: await sha256(shown),
    key_id: key.id,
    nonce: stated.nonce,
    signed_at_ms: Date.now(),
  };
  const text = canonical({
    ...common,
    ctx: "countersign.approval.decision.v1",
    decide_by_ms: stated.decide_by_ms,
    decisions: calls.map((tool_call_id) => ({ decision: word, reason_hash, tool_call_id })),
    envelope_hash: await sha256(envelope),
    envelope_id: stated.envelope_id,
    execute_by_ms: stated.execute_by_ms,
    execute_within_ms: stated.execute_within_ms,
    issued_at_ms: stated.issued_at_ms,
    plan_hash,
    policy_digest: stated.plan.policy_digest,
  });
  const signature = hex(await crypto.subtle.sign("Ed25519", key.secret, encoder.encode(text)));
  const decisions = calls.map((tool_call_id) => ({ decision: word, reason: reason || null, tool_call_id }));
  const body = canonical({ ...common, decisions, signature });
  return send(`/v1/approvals/${encodeURIComponent(approval)}/votes`, body, csrf);
}

// Signs a lease that the page shows, and hands it in. Who grants it, and with which key, is filled in
// here; everything else is the text that was previewed, byte for byte.
export async function grant({ text, person, key, csrf }) {
  const filled = text
    .replace('"granted_by":"human:-"', () => `"granted_by":${canonical(person)}`)
    .replace(/"key_id":"0{64}"/, () => `"key_id":"${key.id}"`);
  if (filled === text) throw new Error("the page does not fit the lease; nothing was signed");
  const signature = hex(await crypto.subtle.sign("Ed25519", key.secret, encoder.encode(filled)));
  const at = filled.lastIndexOf(',"tenant_id":');
  const body = `${filled.slice(0, at)},"signature":"${signature}"${filled.slice(at)}`;
  return send("/v1/leases", body, csrf);
}
