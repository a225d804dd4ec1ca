"""What must hold in a real browser. Run by `tests/console/run`."""

import json
import signal
import sys
import time

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from issuer import Issuer
from scene import Agent, Daemon, fill

HOSTILE = [
    "<script>window.pwned = 1</script>",
    "\"><img src=x onerror=\"window.pwned = 1\">",
    "javascript:window.pwned=1//",
    "a\u202eb\u2066c\u200bd\ufeff",
    "\u001b[31mred\u001b[0m\u0007\r",
    "</pre></textarea></title><script>window.pwned = 1</script>",
]


class Visit:
    """Somebody with a browser of their own. Whatever the browser complains about fails the check."""

    def __init__(self, browser, daemon, **more):
        self.daemon = daemon
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **more})
        self.context.set_default_timeout(15_000)
        self.page = self.context.new_page()
        self.complaints = []
        self.expected = []
        self.places = []
        self.page.on("console", lambda message: self.complain(message.type, message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", lambda request: self.outside(request.url))
        self.context.add_init_script(
            "addEventListener('securitypolicyviolation', (e) => console.error('CSP ' + e.violatedDirective));")

    def complain(self, kind, text):
        if kind in ("error", "warning") and not any(known in text for known in self.expected):
            self.complaints.append(f"{kind}: {text}")

    def outside(self, url):
        if not url.startswith((self.daemon.place, "data:", "blob:", *self.places)):
            self.complaints.append(f"asked elsewhere: {url}")

    def go(self, path):
        self.page.goto(self.daemon.place + path)

    def enter(self, token):
        self.go("/login")
        self.page.fill("#token", token)
        self.page.click("button:has-text('Come in')")
        self.page.wait_for_selector("header.bar")

    def key(self, name):
        self.page.set_input_files("#key-file", str(self.daemon.keys[name]))
        self.until("document.getElementById('key-state').textContent.startsWith('You decide as')")

    def until(self, what, seconds=10):
        """Waits for something. The page itself may evaluate nothing, so the browser is asked from outside."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(what):
            assert time.monotonic() < end, f"never: {what}"
            self.page.wait_for_timeout(25)

    def settled(self):
        """The page is live, and has not just changed."""
        self.until("document.getElementById('line')?.textContent === 'live'")
        self.page.wait_for_timeout(700)

    def done(self):
        assert self.page.evaluate("window.pwned") is None
        assert self.complaints == [], self.complaints
        self.context.close()


def check_one_time_link(scene):
    visit = Visit(scene.browser, scene.daemon)
    visit.page.goto(scene.daemon.link)
    visit.page.wait_for_selector("header.bar")
    assert visit.page.url.endswith("/inbox"), visit.page.url
    cookies = visit.context.cookies()
    assert len(cookies) == 1 and cookies[0]["httpOnly"] and cookies[0]["sameSite"] == "Strict", cookies
    again = Visit(scene.browser, scene.daemon)
    again.expected = ["401"]
    again.page.goto(scene.daemon.link)
    assert "used already" in again.page.inner_text("[role=alert]")
    again.done()
    visit.page.click("text=Leave")
    visit.page.wait_for_selector("#token")
    visit.expected = ["401"]
    visit.go("/inbox")
    visit.page.wait_for_selector("#token")
    visit.done()


def check_sign_in(scene):
    """At the issuer, which is another site: the browser comes back and is in."""
    asked = scene.agent.propose("flow", "deploy", {"to": "who signs in"})
    path = f"/inbox/{asked['approval_id']}"
    visit = Visit(scene.browser, scene.daemon)
    visit.places, visit.expected = [scene.issuer.place], ["401", "404"]
    visit.go(path)
    visit.page.click("#sign-in")
    visit.page.wait_for_selector("#yes")
    link = visit.page.get_attribute("#yes", "href")
    visit.page.click("#yes")
    visit.page.wait_for_selector("header.bar")
    assert visit.page.url == scene.daemon.place + path, visit.page.url
    assert "dana" in visit.page.inner_text("header") and "approver" in visit.page.inner_text("header")
    cookies = [one for one in visit.context.cookies() if one["domain"] == "127.0.0.1"]
    assert len(cookies) == 1 and cookies[0]["httpOnly"] and cookies[0]["sameSite"] == "Strict", cookies
    visit.key("dana")
    visit.settled()
    visit.page.click("#approve")
    visit.page.wait_for_selector("#card .state:has-text('APPROVED')")
    # The same answer of the issuer lets nobody in again, here or elsewhere.
    visit.page.goto(link)
    assert "begin again" in visit.page.inner_text("[role=alert]")
    visit.done()
    other = Visit(scene.browser, scene.daemon)
    other.expected = ["401"]
    other.page.goto(link)
    assert "begin again" in other.page.inner_text("[role=alert]")
    other.go("/inbox")
    other.page.wait_for_selector("#token")
    other.done()


def check_two_daemons(scene):
    """Two daemons on one host: coming in at one of them ends no visit at the other."""
    visit = Visit(scene.browser, scene.daemon)
    visit.enter(scene.tokens["dana"])
    second = Daemon(scene.daemon.binary)
    try:
        visit.places = [second.place]
        visit.page.goto(second.link)
        visit.page.wait_for_selector("header.bar")
        assert len(visit.context.cookies()) == 2
        visit.go("/inbox")
        visit.page.wait_for_selector("header.bar")
        assert "dana" in visit.page.inner_text("header")
        visit.page.goto(second.place + "/health")
        assert "Health" in visit.page.inner_text("h1")
        visit.done()
    finally:
        second.end()


def check_views_are_noted(scene):
    """Who was shown what is held is in the audit, once, however often the page is made anew."""
    asked = scene.agent.propose("views", "deploy", {"to": "be seen"})
    visit = Visit(scene.browser, scene.daemon)
    visit.enter(scene.tokens["dana"])
    for _ in range(2):
        visit.go(f"/inbox/{asked['approval_id']}")
        visit.settled()
    # Something new makes the page refresh itself.
    before = visit.page.locator("#waiting li").count()
    scene.agent.propose("views", "deploy", {"to": "refresh"})
    visit.until(f"document.querySelectorAll('#waiting li').length === {before + 1}")
    lines = [json.loads(line) for line in (scene.daemon.folder / "data" / "audit" / "approvals.jsonl").read_text().splitlines()]
    seen = [one for one in lines if one["outcome"] == "viewed" and one["envelope_id"] == asked["approval_id"]]
    assert len(seen) == 1 and seen[0]["actor"] == "human:dana", seen
    visit.done()


def check_policy_page(scene):
    """Tests and coverage, the shadow, a backtest with its charts, and a tool that is another one now."""
    visit = Visit(scene.browser, scene.daemon)
    visit.enter(scene.operator)
    visit.go("/policy")
    tests = visit.page.inner_text("#tests")
    for part in ["2 passed", "0 failed", "test_dear", "limits.rego", "1 of 3 lines"]:
        assert part in tests, (part, tests)
    shadow = visit.page.inner_text("#shadow")
    assert "shop.reads" in shadow and "ALLOW" in shadow and "DENY" in shadow, shadow
    # What a policy would have decided.
    visit.page.click("#backtests summary")
    visit.page.fill("#trial-name", "no-reads.rego")
    visit.page.fill("#trial-text", "package trial\nimport rego.v1\n"
                    "verdict := {\"decision\": \"deny\", \"reason\": \"NO\"} if input.action.tool == \"read_file\"\n"
                    "else := {\"decision\": \"allow\"}\n")
    visit.page.click("text=Try it; nothing changes")
    visit.page.wait_for_selector("#backtests .run")
    run = visit.page.inner_text("#backtests .run")
    for part in ["no-reads.rego", "stricter 4", "read_file", "ALLOW", "DENY"]:
        assert part in run, (part, run)
    for selector in ["svg.shares rect.stricter", "svg.onebar rect"]:
        box = visit.page.locator("#backtests .run " + selector).first.bounding_box()
        assert box["width"] > 2 and box["height"] > 5, (selector, box)
    visit.expected = ["422"]
    visit.page.click("#backtests summary")
    visit.page.fill("#trial-text", "no policy at all")
    visit.page.click("text=Try it; nothing changes")
    visit.page.wait_for_selector("[role=alert]")
    # A recorded session, decided again.
    visit.go("/policy")
    visit.page.click("#replays summary")
    visit.page.fill("#replay-session", "orders-1")
    visit.page.click("text=Decide it again")
    visit.page.wait_for_selector("#replays tbody tr")
    end = time.monotonic() + 10
    while "RUNNING" in visit.page.inner_text("#replays"):
        assert time.monotonic() < end
        visit.go("/policy")
    assert "IDENTICAL" in visit.page.inner_text("#replays tbody tr"), visit.page.inner_text("#replays")
    # The definition that somebody accepted is not the one that the server has now.
    waiting = visit.page.locator("#tools tbody tr:has-text('CHANGED')")
    assert waiting.count() == 1
    text = waiting.inner_text()
    for part in ["shelf", "look", "/description", "- \"Looks at a shelf\"", "+ \"Looks at a shelf, and mails"]:
        assert part in text, (part, text)
    waiting.locator("text=Accept this definition").click()
    visit.page.wait_for_selector("#tools tr:has-text('look'):has-text('accepted')")
    assert visit.page.locator("#tools tbody tr:has-text('CHANGED')").count() == 0
    assert "accepted" in scene.daemon.run("tools", "list")
    visit.done()


def check_doors(scene):
    """How far doors reach is what they do: the same server, observed and then not."""
    visit = Visit(scene.browser, scene.daemon)
    visit.enter(scene.operator)
    for mode, reach in [("observe", "observe only"), ("enforce", "enforcing")]:
        scene.daemon.call_tool("shelf", "sweep", "Looks at a shelf", mode=mode)
        visit.go("/health")
        row = visit.page.inner_text("#health tr:has-text('MCP server shelf')")
        assert reach in row, (mode, row)
    assert "best effort" in visit.page.inner_text("#health tr:has-text('/v1/actions')")
    visit.done()


def check_approval_flow(scene):
    """From the link to the signed decision, and the action runs."""
    asked = scene.agent.propose("flow", "deploy", {"to": "prod", "version": "2.0.0"})
    visit = Visit(scene.browser, scene.daemon)
    visit.enter(scene.tokens["dana"])
    visit.go(f"/inbox/{asked['approval_id']}")
    card = visit.page.inner_text("#card")
    for part in ["shop-bot", "deploy", "APPROVAL_REQUIRED", "mutate-external", asked["short_code"], "0 of 1", "2.0.0", "Decide by", "Execute by", "Nothing untrusted"]:
        assert part in card, (part, card)
    # What is asked for is there without scrolling.
    arguments = visit.page.locator("#card .arguments pre")
    assert "version: «2.0.0»" in arguments.inner_text(), arguments.inner_text()
    box = arguments.bounding_box()
    assert box["y"] + box["height"] < 500, box
    assert visit.page.is_disabled("#approve")
    visit.key("dana")
    visit.settled()
    visit.page.click("#approve")
    visit.page.wait_for_selector("#card .state:has-text('APPROVED')")
    assert "human:dana" in visit.page.inner_text("#card .top")
    assert visit.page.query_selector("#approve") is None
    permit = scene.daemon.ask(f"/v1/actions/{asked['action_id']}/permit", scene.agent.token, "")
    scene.agent.settle({**asked, **permit})
    visit.page.wait_for_selector("#card .state:has-text('EXECUTED')")
    visit.done()


def check_deny_with_reason(scene):
    asked = scene.agent.propose("flow", "pay", {"amount": 5})
    visit = Visit(scene.browser, scene.daemon)
    visit.enter(scene.tokens["dana"])
    visit.go(f"/inbox/{asked['approval_id']}")
    visit.key("dana")
    visit.settled()
    visit.page.fill("#reason", "not on a Sunday: ünïcode & <b>")
    visit.page.click("#deny")
    visit.page.wait_for_selector("#card .state:has-text('DENIED')")
    card = scene.daemon.ask(f"/v1/approvals/{asked['approval_id']}", scene.operator)
    assert card["votes"][0]["reason"] == "not on a Sunday: ünïcode & <b>", card
    state = scene.daemon.ask(f"/v1/actions/{asked['action_id']}", scene.agent.token)
    assert state["state"] == "denied", state
    visit.done()


def check_edit(scene):
    """An edit is a new request, which is decided from the start. It needs no script."""
    asked = scene.agent.propose("flow", "pay", {"amount": 9000})
    visit = Visit(scene.browser, scene.daemon, java_script_enabled=False)
    visit.enter(scene.tokens["dana"])
    visit.go(f"/inbox/{asked['approval_id']}")
    assert "in a terminal" in visit.page.inner_text("#choices")
    visit.page.click("#edit summary")
    visit.page.fill("#args", "{\"amount\":90")
    visit.expected = ["400"]
    visit.page.click("text=Ask for this instead")
    visit.page.wait_for_selector("[role=alert]")
    visit.page.click("#edit summary")
    visit.page.fill("#args", "{\"amount\":90}")
    visit.page.click("text=Ask for this instead")
    visit.page.wait_for_selector("text=Edited from")
    assert asked["approval_id"] not in visit.page.url
    assert "amount: 90" in visit.page.inner_text("#plan")
    visit.go(f"/inbox/{asked['approval_id']}")
    assert "SUPERSEDED" in visit.page.inner_text("#card .top")
    visit.context.close()


def check_lease(scene):
    """What a lease would cover is shown first; then it is signed here, and answers."""
    asked = scene.agent.propose("lease", "pay", {"amount": 20, "to": "acme"})
    visit = Visit(scene.browser, scene.daemon)
    visit.enter(scene.tokens["dana"])
    visit.go(f"/inbox/{asked['approval_id']}")
    visit.key("dana")
    visit.page.keyboard.press("l")
    visit.page.fill("#lease-arguments", "amount=range:1..50")
    visit.page.fill("#lease-uses", "2")
    visit.page.click("text=Show what it would cover")
    visit.page.wait_for_selector("text=would have answered 1 of 1")
    visit.page.wait_for_selector("#grant:not([disabled])")
    visit.page.click("#grant")
    visit.page.wait_for_selector("#grant:has-text('Granted')")
    allowed = scene.agent.propose("lease", "pay", {"amount": 50, "to": "acme"})
    assert allowed["state"] == "running", allowed
    scene.agent.settle(allowed)
    held = scene.agent.propose("lease", "pay", {"amount": 51, "to": "acme"})
    assert held["state"] == "held", held
    visit.done()


def check_keyboard_only(scene):
    """Nothing but keys. Enter approves nothing, and what cannot be undone needs its code."""
    asked = scene.agent.propose("keys", "wipe", {"disk": "/dev/sdb"})
    visit = Visit(scene.browser, scene.daemon)
    visit.enter(scene.tokens["lee"])
    visit.go("/inbox")
    visit.key("lee")
    page = visit.page
    page.keyboard.press("?")
    page.wait_for_selector("#help[open]")
    page.keyboard.press("Escape")
    visit.until("!document.getElementById('help').open")
    first = page.url
    page.keyboard.press("j")
    page.wait_for_url(lambda url: url != first)
    page.wait_for_selector("#choices")
    page.keyboard.press("k")
    page.wait_for_selector("#card[data-approval]")
    visit.go(f"/inbox/{asked['approval_id']}")
    visit.until("document.getElementById('key-state').textContent.startsWith('You decide as')")
    visit.settled()
    page.keyboard.press("d")
    assert page.evaluate("document.activeElement.id") == "reason"
    page.keyboard.press("Tab")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("e")
    assert page.evaluate("document.activeElement.id") == "args"
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("a")
    assert page.evaluate("document.activeElement.id") == "typed"
    code = page.inner_text(".code")
    assert len(code) == 16, code
    page.keyboard.type(code[:8])
    assert page.is_disabled("#approve")
    page.keyboard.type(code[8:])
    page.keyboard.press("Enter")
    page.wait_for_timeout(300)
    assert "HOLD" in page.inner_text("#card .top")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "approve"
    page.keyboard.press("Enter")
    page.wait_for_timeout(300)
    assert "HOLD" in page.inner_text("#card .top")
    page.keyboard.press("Space")
    page.wait_for_selector("#card .state:has-text('APPROVED')")
    visit.done()


def check_two_approvers(scene):
    """The second one sees who decided, within a second, and can decide nothing any more."""
    asked = scene.agent.propose("race", "deploy", {"to": "race"})
    first, second = Visit(scene.browser, scene.daemon), Visit(scene.browser, scene.daemon)
    for visit, name in [(first, "dana"), (second, "lee")]:
        visit.enter(scene.tokens[name])
        visit.go(f"/inbox/{asked['approval_id']}")
        visit.key(name)
        visit.settled()
    # Somebody who is typing loses nothing while the request stands.
    second.page.fill("#reason", "let me think")
    first.page.click("#approve")
    first.page.wait_for_selector("#card .state:has-text('APPROVED')")
    began = time.monotonic()
    second.page.wait_for_selector("#card .state:has-text('APPROVED')")
    took = time.monotonic() - began
    # On an idle machine it is a few hundredths; a busy one is not a fault of the page.
    print(f"      the second saw it after {took:.2f} s more")
    assert took < 5, took
    assert "human:dana" in second.page.inner_text("#card .top")
    assert second.page.query_selector("#deny") is None
    first.done()
    second.done()
    # Both press at once: one counts, the other is told.
    asked = scene.agent.propose("race", "deploy", {"to": "race again"})
    first, second = Visit(scene.browser, scene.daemon), Visit(scene.browser, scene.daemon)
    for visit, name in [(first, "dana"), (second, "lee")]:
        visit.expected = ["409"]
        visit.enter(scene.tokens[name])
        visit.go(f"/inbox/{asked['approval_id']}")
        visit.key(name)
        visit.settled()
    first.page.evaluate("document.getElementById('approve').click()")
    second.page.evaluate("document.getElementById('denial').requestSubmit()")
    for visit in (first, second):
        visit.page.wait_for_selector("#card .top .vote")
        assert visit.page.locator("#card .top .vote").count() == 1
    assert first.page.inner_text("#card .top .vote b") == second.page.inner_text("#card .top .vote b")
    first.done()
    second.done()


def check_live(scene):
    """New requests and events appear by themselves; the title counts what waits."""
    visit = Visit(scene.browser, scene.daemon)
    visit.enter(scene.tokens["dana"])
    visit.go("/inbox")
    visit.settled()
    before = visit.page.locator("#waiting li").count()
    title = visit.page.title()
    scene.agent.propose("live", "deploy", {"to": "live"})
    visit.until(f"document.querySelectorAll('#waiting li').length === {before + 1}")
    visit.until(f"document.title !== {title!r}")
    visit.go("/log")
    visit.settled()
    newest = visit.page.inner_text("#events tbody tr >> nth=0")
    scene.agent.record("live", "MEMORY_WRITE", {"memory_key": "fresh-key"})
    visit.page.wait_for_selector("#events tbody tr:has-text('fresh-key')", timeout=3000)
    assert visit.page.inner_text("#events tbody tr >> nth=0") != newest
    visit.done()


def check_roles(scene):
    """An auditor looks, and decides nothing; an approver has no policy to see."""
    visit = Visit(scene.browser, scene.daemon)
    visit.enter(scene.tokens["auditor"])
    visit.go("/inbox")
    assert visit.page.query_selector("#approve, #deny, #edit, #lease") is None
    assert "may look at this" in visit.page.inner_text("#card")
    visit.go("/policy")
    assert visit.page.query_selector("form[action='/policy/tools'], form[action='/policy/backtest']") is None
    visit.done()
    visit = Visit(scene.browser, scene.daemon)
    visit.enter(scene.tokens["dana"])
    assert "Policy" not in visit.page.inner_text("header")
    visit.expected = ["403"]
    visit.go("/policy")
    assert "may not" in visit.page.inner_text("[role=alert]")
    visit.done()


def check_browser_key(scene):
    """A key that the browser makes decides once it is registered, and cannot be taken out."""
    asked = scene.agent.propose("flow", "deploy", {"to": "browser key"})
    visit = Visit(scene.browser, scene.daemon)
    visit.enter(scene.tokens["dana"])
    visit.go(f"/inbox/{asked['approval_id']}")
    visit.page.click("#key-new")
    visit.until("document.getElementById('key-state').textContent.includes('not registered')")
    public = visit.page.inner_text("#key-state").split("--public-key ")[1].strip()
    taken = visit.page.evaluate("""async () => {
        const { loadKey } = await import('/assets/sign.js');
        try { await crypto.subtle.exportKey('pkcs8', (await loadKey()).secret); return 'taken'; } catch { return 'kept'; }
    }""")
    assert taken == "kept", taken
    scene.daemon.run("approver", "add", "--name", "kim", "--public-key", public)
    # Who may decide was fixed when the request was made; the next one knows kim.
    asked = scene.agent.propose("flow", "deploy", {"to": "kim"})
    visit.go(f"/inbox/{asked['approval_id']}")
    visit.until("document.getElementById('key-state').textContent.startsWith('You decide as human:kim')")
    visit.settled()
    visit.page.click("#approve")
    visit.page.wait_for_selector("#card .state:has-text('APPROVED')")
    visit.done()


def check_hostile(scene):
    """Whatever is in a field is shown, never run, and moves nothing."""
    visit = Visit(scene.browser, scene.daemon)
    visit.enter(scene.operator)
    ids = []
    for text in HOSTILE:
        asked = scene.agent.propose("hostile", "pay", {text: text, "list": [text]})
        ids.append(asked["approval_id"])
        scene.agent.record(text, "MEMORY_WRITE", {"memory_key": text})
        scene.agent.record(text, "MODEL_CALL_STARTED", {"call_id": text, "model_id": text})
        scene.agent.propose(text, text, {"a": 1})
    big = scene.agent.propose("hostile", "pay", {"big": "x" * 1_000_000})
    lines = scene.agent.propose("hostile", "pay", {"lines": "line\n" * 10_000})
    def intact(path):
        visit.go(path)
        visit.page.wait_for_timeout(50)
        assert visit.page.evaluate("window.pwned") is None, path
        over = visit.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0, (path, over)
        assert visit.page.locator("script").count() == 2, path
    for id in ids:
        intact(f"/inbox/{id}")
    for asked, most in [(big, 15), (lines, 15)]:
        began = time.monotonic()
        intact(f"/inbox/{asked['approval_id']}")
        took = time.monotonic() - began
        print(f"      a plan of {'1 MB' if asked is big else '10 000 lines'} is there after {took:.2f} s")
        assert took < most
        assert "bytes, in the plan below" in visit.page.inner_text("#card .arguments")
        shown = visit.page.evaluate("""async () => {
            const text = new TextEncoder().encode(document.getElementById('plan').textContent);
            const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', text));
            return Array.from(hash, (b) => b.toString(16).padStart(2, '0')).join('') === document.getElementById('card').dataset.display;
        }""")
        assert shown
    for path in ["/inbox", "/sessions", "/log", "/sessions/hostile?tenant_id=default", "/sessions/hostile?tenant_id=default&view=raw",
                 "/sessions/hostile?tenant_id=default&view=timeline", "/log?q=%3Cscript%3E", "/sessions?q=tool:%22%3Cb%3E%22"]:
        intact(path)
    visit.go("/sessions")
    for link in visit.page.eval_on_selector_all("#sessions tbody a", "all => all.map((one) => one.getAttribute('href'))"):
        intact(link)
    visit.done()


def check_many_events(scene):
    """Ten thousand events open in less than a second."""
    visit = Visit(scene.browser, scene.daemon)
    visit.enter(scene.operator)
    # The first look at a session that nobody works in puts its state together; later ones have it.
    began = time.monotonic()
    visit.go("/sessions/long?tenant_id=default")
    print(f"      the first look: {time.monotonic() - began:.2f} s")
    for view in ["compact", "timeline", "raw"]:
        visit.go(f"/sessions/long?tenant_id=default&view={view}")
        took = visit.page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
        rows = visit.page.locator("#history tr, #history article, #history a").count()
        print(f"      {view}: {took:.0f} ms, {rows} things")
        assert rows > 100
        assert took < 5000, took
    # Scrolling through all of it keeps up with the screen.
    visit.go("/sessions/long?tenant_id=default&view=raw")
    frames = visit.page.evaluate("""() => new Promise((resolve) => {
        const times = []; let at = 0; let last;
        function step(now) { if (last) times.push(now - last); last = now; at += 400; scrollTo(0, at);
            if (at < 12000) requestAnimationFrame(step); else resolve(times.sort((a, b) => a - b)[Math.floor(times.length / 2)]); }
        requestAnimationFrame(step);
    })""")
    print(f"      median frame while scrolling: {frames:.0f} ms")
    assert frames < 100, frames
    visit.done()


def check_pages_everywhere(scene):
    """Every page in light and dark, at 360 and at 1600 pixels, and for those who do not see them."""
    session = "/sessions/orders-1?tenant_id=default"
    paths = ["/inbox", "/sessions", session, session + "&view=timeline", session + "&view=raw", session + "&verify=now",
             session + "&seq=2", "/log", "/policy", "/health"]
    axe = Axe()
    for width, scheme in [(360, "light"), (360, "dark"), (1600, "light"), (1600, "dark")]:
        visit = Visit(scene.browser, scene.daemon, viewport={"width": width, "height": 900}, color_scheme=scheme)
        visit.enter(scene.operator)
        for path in paths:
            visit.go(path)
            visit.page.wait_for_timeout(50)
            over = visit.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert over <= 0, (path, width, over)
            if scheme == "dark":
                back = visit.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
                assert back == "rgb(20, 23, 27)", back
            # Colours once each, and both layouts.
            if (width, scheme) not in ((360, "dark"), (1600, "light")):
                continue
            found = axe.run(visit.page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
            serious = [one for one in found.response["violations"] if one["impact"] in ("serious", "critical")]
            assert not serious, (path, width, scheme, [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in serious])
        visit.done()


def check_session_page(scene):
    visit = Visit(scene.browser, scene.daemon)
    visit.enter(scene.operator)
    visit.go("/sessions/orders-1?tenant_id=default")
    text = visit.page.inner_text("main")
    for part in ["Budgets", "Untrusted content", "catalog_list", "HOLD", "DENY"]:
        assert part in text, part
    visit.page.click("text=Verify now")
    visit.page.wait_for_selector("#verified:has-text('VERIFIED')")
    assert "Not checked" in visit.page.inner_text("#verified")
    with visit.page.expect_download() as download:
        visit.page.click("text=Export pack")
    pack = scene.daemon.folder / "pack.tar"
    download.value.save_as(pack)
    assert "VERIFIED" in scene.daemon.verify(pack)
    visit.go("/sessions/orders-1?tenant_id=default&seq=1")
    assert "The signed checkpoint" in visit.page.inner_text("main")
    hash = visit.page.get_attribute("dd button.copy", "data-copy")
    visit.go(f"/log?q={hash[:10]}")
    assert visit.page.locator("#events tbody tr").count() == 1
    visit.go("/log?q=catalog_list")
    assert visit.page.locator("#events tbody tr").count() >= 1
    visit.done()


CHECKS = [check_one_time_link, check_sign_in, check_two_daemons, check_views_are_noted, check_policy_page, check_doors, check_approval_flow, check_deny_with_reason, check_edit, check_lease, check_keyboard_only,
          check_two_approvers, check_live, check_roles, check_browser_key, check_session_page, check_many_events,
          check_pages_everywhere, check_hostile]


class Scene:
    pass


def main(binary, chromium, *wanted):
    scene = Scene()
    scene.issuer = Issuer()
    scene.daemon = Daemon(binary, config=scene.issuer.config())
    try:
        scene.agent = fill(scene.daemon)
        scene.operator = scene.daemon.operator
        scene.tokens = {"dana": scene.daemon.token("approver", "dana"), "lee": scene.daemon.token("approver", "lee"),
                        "auditor": scene.daemon.token("auditor", "auditor")}
        many(scene.daemon)
        scene.daemon.run("checkpoint", "publish")
        failed = 0
        with sync_playwright() as playwright:
            scene.browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            for check in CHECKS:
                name = check.__name__.removeprefix("check_")
                if wanted and name not in wanted:
                    continue
                began = time.monotonic()
                try:
                    check(scene)
                    print(f"  ok  {name} ({time.monotonic() - began:.1f} s)", flush=True)
                except Exception as error:
                    failed += 1
                    print(f"  NO  {name}: {type(error).__name__}: {error}", flush=True)
            scene.browser.close()
        return failed
    finally:
        scene.daemon.end()
        scene.issuer.end()


def many(daemon):
    """Ten thousand events in one session, recorded from a file."""
    lines = []
    for number in range(1667):
        call = {"call_id": f"c{number}"}
        outcome = ["allow", "allow", "deny", "require_approval"][number % 4]
        lines += [
            ("MODEL_CALL_STARTED", {"call_id": f"m{number}", "model_id": "small-1"}),
            ("MODEL_CALL_FINISHED", {"call_id": f"m{number}", "model_id": "small-1"}),
            ("TOOL_CALL_PROPOSED", {**call, "tool_name": f"tool-{number % 7}", "args": {"n": number}}),
            ("POLICY_DECISION", {**call, "outcome": outcome, "reason": "EXAMPLE", "side_effect": "mutate-external"}),
            ("MEMORY_READ", {"memory_key": f"key-{number % 5}", "content": "text"}),
            ("MEMORY_WRITE", {"memory_key": f"key-{number % 5}", "content": "text"}),
        ]
    file = daemon.folder / "many.jsonl"
    start = 1_794_000_000_000
    file.write_text("".join(
        json.dumps({"type": kind, "payload": payload, "ts_unix_ms": start + place * 50}) + "\n"
        for place, (kind, payload) in enumerate(lines)))
    daemon.run("log", "append", "--session", "long", "--batch", str(file))


if __name__ == "__main__":
    # Whoever is told to end ends the daemon too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(1 if main(*sys.argv[1:]) else 0)
