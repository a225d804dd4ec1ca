// Holds `countersign evidence export --format cloudevents` against the SDK of CloudEvents for JavaScript.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { strictEqual } from "node:assert";
import { createRequire } from "node:module";

const [, , binary, modules] = process.argv;
const { CloudEvent, HTTP } = createRequire(join(modules, "package.json"))("cloudevents");
const run = (...words) => execFileSync(binary, words, { encoding: "utf8" });
const data = mkdtempSync(join(tmpdir(), "countersign-"));
try {
  run("demo", "--yes-demo", "--data", data);
  const { sessions } = JSON.parse(run("session", "list", "--data", data, "--format", "json"));
  const text = run("evidence", "export", "--session", sessions[0].session_id, "--data", data, "--format", "cloudevents");
  const lines = text.trimEnd().split("\n");
  for (const [seq, line] of lines.entries()) {
    const headers = { "content-type": "application/cloudevents+json" };
    const event = HTTP.toEvent({ headers, body: line });
    strictEqual(event instanceof CloudEvent && event.validate(), true);
    strictEqual(event.id, `${event.assayrunid}:${seq}`);
    strictEqual(event.assayseq, seq);
    // What it writes again says the same.
    const again = JSON.parse(HTTP.structured(event).body);
    const sent = JSON.parse(line);
    for (const name of Object.keys(sent)) {
      const same = name === "time" ? new Date(again.time).getTime() === new Date(sent.time).getTime()
        : JSON.stringify(again[name]) === JSON.stringify(sent[name]);
      strictEqual(same, true, `${name} of ${event.id}`);
    }
  }
  console.log(`${lines.length} events pass the SDK of CloudEvents for JavaScript`);
} finally {
  rmSync(data, { recursive: true });
}
