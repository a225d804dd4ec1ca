// Keeps a page new, and lets it be used by keys. Every page also works without.

import { forgetKey, grant, loadKey, makeKey, readKey, vote } from "/assets/sign.js";

const $ = (id) => document.getElementById(id);
const csrf = document.body.dataset.csrf;
const offset = Number(document.body.dataset.now) - Date.now();
const now = () => Date.now() + offset;
const kept = {
  get: (name) => { try { return localStorage.getItem(name); } catch { return null; } },
  set: (name, value) => { try { localStorage.setItem(name, value); } catch { /* private windows keep nothing */ } },
};

// ---- words

let quiet;
function say(text) {
  const said = $("said");
  if (!said) return;
  said.textContent = text;
  clearTimeout(quiet);
  quiet = setTimeout(() => { said.textContent = ""; }, 8000);
}

function length(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

function tick() {
  for (const one of document.querySelectorAll("[data-ago]")) one.textContent = `${length(now() - Number(one.dataset.ago))} ago`;
  for (const one of document.querySelectorAll("[data-until]")) {
    const left = Number(one.dataset.until) - now();
    one.textContent = left > 0 ? `${length(left)} left` : "over";
  }
  for (const one of document.querySelectorAll("time[data-ms]")) one.title = `${length(now() - Number(one.dataset.ms))} ago`;
}

// ---- theme

const themes = ["", "dark", "light"];
function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  const button = $("theme");
  if (button) button.textContent = name ? `Theme: ${name}` : "Theme: system";
}
theme(kept.get("theme") ?? "");
if ($("theme")) {
  $("theme").hidden = false;
  $("theme").addEventListener("click", () => {
    const next = themes[(themes.indexOf(kept.get("theme") ?? "") + 1) % themes.length];
    kept.set("theme", next);
    theme(next);
  });
}

// ---- copying

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    say("Copied.");
  } catch {
    say(button.dataset.copy);
  }
});

// ---- live

const regions = new Map();
for (const one of document.querySelectorAll("[data-live]")) regions.set(one.id, one.outerHTML);
let shifted = 0;
let asking = false;
let again = false;

// The card is left alone while it stands as it did: nobody's typing is lost, and no button moves.
function swap(old, fresh) {
  if (old.id === "card" && fresh.dataset.standing === old.dataset.standing && fresh.dataset.approval === old.dataset.approval) return;
  const had = old.contains(document.activeElement) ? document.activeElement : null;
  const key = had?.id || had?.getAttribute("href");
  old.replaceWith(fresh);
  if (had && key) (document.getElementById(key) ?? fresh.querySelector(`[href="${CSS.escape(key)}"]`))?.focus({ preventScroll: true });
  shifted = Date.now();
  if (old.id === "card") {
    say(fresh.querySelector(".top")?.textContent.trim() ?? "It was decided.");
    wire();
  }
}

async function renew() {
  if (asking) { again = true; return; }
  asking = true;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin", headers: { accept: "text/html" } });
    if (answer.status === 401) { location.reload(); return; }
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const before = document.querySelectorAll("#waiting li").length;
    for (const fresh of page.querySelectorAll("[data-live]")) {
      const html = fresh.outerHTML;
      if (regions.get(fresh.id) === html) continue;
      regions.set(fresh.id, html);
      const old = $(fresh.id);
      const put = document.importNode(fresh, true);
      if (old) swap(old, put);
      else if (fresh.id === "card" || fresh.id === "decided") (fresh.id === "card" ? document.querySelector(".two") : document.querySelector(".list"))?.append(put);
      if (!old && fresh.id === "card") wire();
    }
    document.title = page.title;
    if (document.querySelectorAll("#waiting li").length > before) ring();
    tick();
  } catch { /* the line says whether the daemon is there */ } finally {
    asking = false;
    if (again) { again = false; setTimeout(renew, 150); }
  }
}

let soon;
const renewSoon = () => { clearTimeout(soon); soon = setTimeout(renew, 100); };

function ring() {
  say("Something new waits for a decision.");
  if (kept.get("sound") !== "on") return;
  try {
    const audio = new AudioContext();
    const tone = audio.createOscillator();
    const volume = audio.createGain();
    volume.gain.value = 0.05;
    tone.connect(volume).connect(audio.destination);
    tone.frequency.value = 660;
    tone.start();
    tone.stop(audio.currentTime + 0.15);
  } catch { /* browsers may want a click first */ }
}

let stream;
let poll;
function line(state) {
  const shown = $("line");
  if (!shown) return;
  shown.hidden = false;
  shown.textContent = state;
  shown.classList.toggle("down", state !== "live");
}

function listen() {
  const query = document.body.dataset.follows;
  if (query === undefined || stream) return;
  stream = new EventSource(`/v1/stream${query ? `?${query}` : ""}`);
  stream.addEventListener("open", () => { line("live"); renewSoon(); });
  stream.addEventListener("event", renewSoon);
  stream.addEventListener("gap", renewSoon);
  stream.addEventListener("error", () => line("not connected"));
}

// A tab that nobody looks at keeps no connection open; browsers have few of them.
function look() {
  clearInterval(poll);
  if (document.hidden) {
    stream?.close();
    stream = undefined;
    if (document.body.dataset.follows !== undefined) poll = setInterval(renew, 15000);
  } else {
    listen();
    if (document.body.dataset.follows !== undefined) renewSoon();
  }
}
document.addEventListener("visibilitychange", look);
addEventListener("pagehide", () => { stream?.close(); stream = undefined; });
addEventListener("pageshow", (event) => { if (event.persisted) look(); });

// ---- deciding

let key;
const people = () => { try { return JSON.parse($("card")?.dataset.people ?? "[]"); } catch { return []; } };
const me = () => key && people().find((one) => one.key_id === key.id);

function showKey() {
  const state = $("key-state");
  if (!state) return;
  const mine = me();
  if (!window.isSecureContext || !crypto?.subtle) {
    state.textContent = "This browser signs only over TLS or on this machine: open the console by https, or decide in a terminal.";
  } else if (!key) {
    state.textContent = "Decisions are signed in this browser with your own key, which the daemon never gets. Give it once:";
  } else if (!mine) {
    state.textContent = `The key of this browser is not registered. Whoever runs the daemon does so with: countersign approver add --name NAME --public-key ${key.public}`;
  } else {
    state.textContent = `You decide as ${mine.person}, with key ${key.id.slice(0, 8)}…`;
  }
  if ($("key-tools")) {
    $("key-tools").hidden = !crypto?.subtle;
    $("key-new").hidden = Boolean(key);
    $("key-file").closest("label").hidden = Boolean(key);
    $("key-forget").hidden = !key;
  }
  ready();
}

function ready() {
  const mine = Boolean(me());
  const approve = $("approve");
  if (approve) {
    const code = approve.dataset.code;
    approve.disabled = !mine || (code !== "" && $("typed")?.value.trim() !== code);
  }
  if ($("deny")) $("deny").disabled = !mine;
  if ($("grant")) $("grant").disabled = !mine;
}

let busy = false;
async function decide(approved) {
  const card = $("card");
  const mine = me();
  if (!card || !mine || busy) return;
  if (approved && $("approve").disabled) return;
  // What has just moved was perhaps not what was meant.
  if (Date.now() - shifted < 500) { say("The page has just changed: look again."); return; }
  busy = true;
  try {
    const said = await vote({
      approval: card.dataset.approval,
      envelope: $("envelope").textContent,
      shown: $("plan").textContent,
      person: mine.person,
      key,
      approved,
      reason: approved ? "" : $("reason").value.trim(),
      csrf,
    });
    say(`${said.state}: ${said.approvals} of ${said.required}`);
  } catch (error) {
    say(String(error.message ?? error));
  } finally {
    busy = false;
    renewSoon();
  }
}

function wire() {
  $("approve")?.addEventListener("click", () => decide(true));
  // Enter never approves, whatever has the focus.
  $("approve")?.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); say("Enter approves nothing: press Space."); } });
  $("typed")?.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  $("typed")?.addEventListener("input", ready);
  $("denial")?.addEventListener("submit", (event) => { event.preventDefault(); decide(false); });
  $("key-new")?.addEventListener("click", async () => {
    try { key = await makeKey(); } catch (error) { say(String(error.message ?? error)); }
    showKey();
  });
  $("key-file")?.addEventListener("change", async (event) => {
    try { key = await readKey(await event.target.files[0].text()); } catch (error) { say(String(error.message ?? error)); }
    event.target.value = "";
    showKey();
  });
  $("key-forget")?.addEventListener("click", async () => { await forgetKey(); key = undefined; showKey(); });
  $("grant")?.addEventListener("click", async () => {
    try {
      const said = await grant({ text: $("lease-text").textContent, person: me().person, key, csrf });
      say(`Granted: ${said.lease_id}`);
      $("grant").disabled = true;
      $("grant").textContent = `Granted: ${said.lease_id}`;
    } catch (error) { say(String(error.message ?? error)); }
  });
  $("grant")?.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  showKey();
}

// ---- keys

function step(by) {
  const links = Array.from(document.querySelectorAll("#waiting .rows a"));
  if (links.length === 0) return;
  const at = links.findIndex((one) => one.getAttribute("aria-current"));
  const next = links[Math.min(links.length - 1, Math.max(0, at + by))];
  if (next && !next.getAttribute("aria-current")) location.assign(next.getAttribute("href"));
}

function unfold(id, field) {
  const details = $(id);
  if (!details) return;
  details.open = true;
  $(field)?.focus();
}

const keys = {
  j: () => step(1),
  k: () => step(-1),
  a: () => {
    const target = $("typed") ?? $("approve");
    if (!target) return;
    if ($("approve").disabled && !$("typed")) { say("Give your key first."); $("key-file")?.focus(); return; }
    $("approve").classList.add("armed");
    target.focus();
    say($("typed") ? "Type the code, then press the button with Space." : "Space approves this, once.");
  },
  d: () => $("reason")?.focus(),
  e: () => unfold("edit", "args"),
  l: () => unfold("lease", "lease-uses"),
  "?": () => $("help")?.showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest?.("input, textarea, select, dialog, [contenteditable]")) return;
  if (kept.get("keys") === "off" && event.key !== "?") return;
  const act = keys[event.key];
  if (!act || !$("help")) return;
  event.preventDefault();
  act();
});

if ($("keys-on")) {
  $("keys-on").checked = kept.get("keys") !== "off";
  $("keys-on").addEventListener("change", (event) => kept.set("keys", event.target.checked ? "on" : "off"));
  $("sound-on").checked = kept.get("sound") === "on";
  $("sound-on").addEventListener("change", (event) => kept.set("sound", event.target.checked ? "on" : "off"));
}

try { key = window.isSecureContext ? await loadKey() : undefined; } catch { key = undefined; }
wire();
tick();
setInterval(tick, 1000);
look();
