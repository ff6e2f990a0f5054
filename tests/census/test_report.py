"""The report in a real browser: whole, safe with hostile texts, searchable, readable in both schemes and on a small screen."""

import functools
import http.server
import re
import shutil
import threading
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from census_kit import made, tool
from earnest.census.dataset import write
from earnest.census.record import Failure
from earnest.census.report.site import build, shown, slug
from earnest.core.errors import EarnestError

pytestmark = pytest.mark.real

CHECKS = Path(__file__).parent / "page_checks.js"
CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
HOSTILE = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'> {{ 7 * 7 }} \u202eevil\u200b\nnext line"
LIE = {"readOnlyHint": True, "openWorldHint": True}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    tools = [tool(f"get_{n}", description=f"Returns item {n}", annotations={"readOnlyHint": True}) for n in range(12)]
    tools += [tool("send_mail", description="Send emails to one or more recipients", annotations=LIE)]
    records = [
        made("alpha", tools),
        made("<b>beta</b>", [tool("<i>x</i>", description=HOSTILE, annotations={"title": HOSTILE})], note=HOSTILE),
        made("gone", legs=(), failure=Failure("open", "E1205", f"ended with status 1; it said: {HOSTILE}")),
        made("../../etc", [tool("t")], cohort="old one"),
    ]
    write(records, folder / "new")
    write([made("alpha", tools[1:])], folder / "old")
    pages = build(folder / "new", folder / "site", earlier=folder / "old", title="A census & more")
    assert pages == 2 + 2 * 3 + 4
    return folder / "site"


@pytest.fixture(scope="module")
def address(site):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    handler.log_message = lambda *words: None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine; `make browser` installs it on Debian")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def visit(browser, address):
    """`visit(path, …)`: a page; at the end of the test nothing was complained of and nothing was asked of elsewhere."""
    contexts, complaints, asked = [], [], []

    def go(path, base=address, **more):
        context = browser.new_context(**more)
        contexts.append(context)
        page = context.new_page()
        page.add_init_script(path=CHECKS)
        page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{base}/{path}")
        return page

    yield go
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith((address, "file://"))] == []


def pages_of(site):
    return sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))


def test_every_link_of_every_page_leads_somewhere(site):
    for name in pages_of(site):
        text = (site / name).read_text()
        ids = set(re.findall(r'\sid="([^"]+)"', text))
        for target in re.findall(r'(?:href|src)="([^"]+)"', text):
            path, _, part = target.partition("#")
            there = (site / name).parent / path if path else site / name
            assert there.resolve().is_file(), (name, target)
            found = ids if not path else set(re.findall(r'\sid="([^"]+)"', there.read_text())) if part else set()
            assert not part or part in found, (name, target)
        assert not re.search(r'(?:href|src)="(?:https?:)?//', text) and " style=" not in text and "onclick" not in text


def test_texts_of_servers_are_shown_and_do_nothing(visit, site):
    name = next(name for name in pages_of(site) if "server/b-beta" in name)
    page = visit(name)
    assert page.evaluate("window.pwned") is None and page.locator("script:not([src])").count() == 0
    words = page.locator(".tool .quoted").inner_text()
    assert "<script>window.pwned = 1</script>" in words and "{{ 7 * 7 }}" in words
    assert "U+202E" in words and "U+200B" in words and "\u202e" not in page.content() and "next line" in words.split("\n")[1]
    assert page.locator("h1").inner_text() == "<b>beta</b>" and page.locator("mark.unseen").count() >= 2
    assert page.locator(".tool h3").inner_text() == "<i>x</i>"
    assert "ended with status 1" in visit(next(n for n in pages_of(site) if "server/gone" in n)).locator("main").inner_text()


def test_the_pictures_are_drawn_and_each_has_its_table(visit):
    page = visit("a/index.html")
    found = page.locator("figure.picture")
    titles = found.locator("h2").all_inner_texts()
    for wanted in (
        "Coverage by server",
        "Combinations",
        "Era adoption",
        "Lint findings",
        "Risk classes",
        "Most common contradictions",
    ):
        assert wanted in titles
    assert "Drift between two dates" in titles and titles[0] == "What is said, and what is not"
    assert found.count() == found.locator("[role=img][aria-label]").count() == found.locator("details table").count()
    boxes = page.evaluate("widths('figure svg.bar rect:not(.ground)')")
    assert len(boxes) > 20 and max(boxes) > 100
    fills = page.evaluate("fills('#hints svg.bar rect')")
    assert len(fills) >= 3, "true, absent and the ground are told apart"
    page.locator("#drift summary").click()
    assert "get_0" in page.locator("#drift table").inner_text() and "send_mail" not in page.locator("#drift table").inner_text()


def test_the_tables_are_searched_and_sorted(visit):
    page = visit("a/tools.html")
    rows = page.locator("#tools tbody tr")
    assert rows.count() == 14
    page.get_by_label("Search").fill("SEND mail")
    expect(page.locator(".count")).to_have_text("1 of 14")
    assert rows.locator("visible=true").count() == 1 and rows.locator("visible=true").first.inner_text().startswith("send_mail")
    page.get_by_label("Search").fill("")
    expect(page.locator(".count")).to_have_text("14")
    page.get_by_role("button", name="tool").first.click()
    page.get_by_role("button", name="tool").first.click()
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("tool") and rows.first.inner_text().startswith(
        "send_mail"
    )
    servers = visit("a/servers.html")
    servers.get_by_role("button", name="tools").click()
    assert servers.locator("#servers tbody tr").first.inner_text().startswith("<b>beta</b>")
    assert "no answer" in servers.locator("#servers tbody tr").last.inner_text(), "what has no number comes last"


def test_a_tool_in_the_table_leads_to_its_place_on_the_page_of_its_server(visit):
    page = visit("a/tools.html")
    page.get_by_role("link", name="send_mail").click()
    page.wait_for_url("**#t13")
    expect(page.locator("#t13")).to_contain_text("read-only-but-writes")
    expect(page.locator("#t13 .worse")).to_be_in_viewport()
    assert page.locator(".letter").inner_text().endswith(("D", "C", "E"))
    page.get_by_role("link", name="the published formula").click()
    assert "Coverage (40)" in page.locator("#grade").locator("xpath=..").inner_text()


def test_without_scripts_everything_is_there(visit):
    page = visit("a/tools.html", java_script_enabled=False)
    assert page.locator("#tools tbody tr").count() == 14 and not page.locator(".finder").is_visible()


def test_it_works_from_the_disk(visit, site):
    page = visit("a/servers.html", base=f"file://{site}")
    assert page.get_by_label("Search").is_visible(), "the script runs"
    assert page.evaluate("getComputedStyle(document.body).margin") == "0px", "the style sheet is in force"


def test_the_keyboard_reaches_everything(visit):
    page = visit("a/index.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the content"
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    summary = page.locator("#hints summary")
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#hints table")).to_be_visible()
    outline = page.evaluate("getComputedStyle(document.querySelector('#hints summary')).outlineStyle")
    assert outline == "solid", "what has the focus shows it"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_landmarks_names_and_contrast_and_fit_a_small_screen(visit, site, scheme):
    page = visit("index.html", color_scheme=scheme, viewport={"width": 375, "height": 740})
    root = page.url.removesuffix("index.html")
    for name in pages_of(site):
        page.goto(root + name)
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert page.evaluate("names()") == [], name
        assert page.evaluate("contrast()") == [], name
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 375, f"{name} is {wide} pixels wide"
    colours = {
        visit("index.html", color_scheme=one).evaluate("getComputedStyle(document.body).backgroundColor")
        for one in ("light", "dark")
    }
    assert len(colours) == 2


def test_a_folder_with_other_things_is_not_emptied(site, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(EarnestError) as caught:
        build(site.parent / "new", tmp_path, title="x")
    assert caught.value.code == "E1906" and (tmp_path / "mine.txt").exists()
    for _ in range(2):
        build(site.parent / "new", tmp_path / "again", title="x")


def test_servers_whose_names_look_alike_have_pages_of_their_own(tmp_path):
    alike = ["Notes app", "notes-app", "notes/app"]
    write([made(name, [tool(f"t{n}")], provenance="one dump") for n, name in enumerate(alike)], tmp_path / "data")
    build(tmp_path / "data", tmp_path / "site", title="x")
    pages = list((tmp_path / "site").rglob("server/*.html"))
    assert len(pages) == 3 and all(
        any(f'"t{n}"' in p.read_text() or f">t{n}<" in p.read_text() for p in pages) for n in range(3)
    )


def test_text_is_escaped_and_bounded():
    assert (
        str(shown("a\u202e<b>\r\nc\x1b")) == 'a<mark class="unseen">U+202E</mark>&lt;b&gt;\nc<mark class="unseen">U+001B</mark>'
    )
    assert len(str(shown("x" * 50_000))) < 13_000 and "38000 more characters" in shown("x" * 50_000)
    assert slug("../../etc") == "etc" and slug("…") == "unnamed" and "/" not in slug("a/b")
