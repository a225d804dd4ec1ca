"""Pictures of the five pages, with a working day in a shop on them. Run by `tests/console/run --screenshots`."""

import pathlib
import sys

from playwright.sync_api import sync_playwright

from scene import Daemon, fill

PAGES = [
    ("inbox", "/inbox"),
    ("session", "/sessions/orders-1?tenant_id=default&view=timeline"),
    ("log", "/log"),
    ("policy", "/policy"),
    ("health", "/health"),
]


TRIAL = """package trial

import rego.v1

verdict := {"decision": "deny", "reason": "NO_READS"} if input.action.tool == "read_file"

else := {"decision": "allow"}
"""


def main(binary, chromium, folder):
    daemon = Daemon(binary)
    try:
        fill(daemon)
        daemon.run("checkpoint", "publish")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_context(viewport={"width": 1100, "height": 760}).new_page()
            page.goto(daemon.link)
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            for name, path in PAGES:
                page.goto(daemon.place + path)
                if name == "inbox":
                    page.set_input_files("#key-file", str(daemon.keys["dana"]))
                if name == "policy":
                    page.click("#backtests summary")
                    page.fill("#trial-name", "no-reads.rego")
                    page.fill("#trial-text", TRIAL)
                    page.click("text=Try it; nothing changes")
                    page.wait_for_selector("#backtests .run")
                page.wait_for_timeout(800)
                page.screenshot(path=f"{folder}/{name}.png")
            browser.close()
    finally:
        daemon.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
