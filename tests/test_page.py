"""The page: well-formed, complete without anything from outside, bounded, and readable in a browser."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from html.parser import HTMLParser

import pytest
import warp_compile_probe as probe
from builders import SITE, cached, failed, full_report, load, log_line, phases, process, report, run, sample

VOID = {"meta"}
TAGS = """html head meta title style body main header section h1 h2 h3 p strong span code dl div dt dd ul ol li figure
    figcaption details summary svg rect line text table caption thead tbody tr th td"""
ATTRIBUTES = """lang charset http-equiv content name class title scope tabindex role aria-label aria-hidden data-label
    open x y x1 x2 y1 y2 width height text-anchor"""


class Page(HTMLParser):
    """Reads a page and fails on what does not close, is not known, or would load or run something."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.tags = []
        self.texts = []
        self.policy = ""
        self.style = ""

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS.split(), f"<{tag}>"
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names))
        assert set(names) <= set(ATTRIBUTES.split()), f"<{tag} {names}>"
        self.tags.append((tag, dict(attrs)))
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attrs)["content"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((tuple(self.open), data))
        if self.open and self.open[-1] == "style":
            self.style += data

    def handle_comment(self, data):
        raise AssertionError(f"comment: {data}")

    def handle_pi(self, data):
        raise AssertionError(f"processing instruction: {data}")


def checked_page(text):
    """Holds a page against what it promises; returns what was read."""
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert text.startswith("<!DOCTYPE html>\n<html")
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert page.policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert not re.search(r"url\(|@import|http", page.style)
    assert len(text) < 1_000_000
    classes = {name for _, attributes in page.tags for name in attributes.get("class", "").split()}
    assert classes - {"hint", "load"} <= set(re.findall(r"\.([a-z][\w-]*)", page.style)), "a class without a style"
    return page


def page_of(made):
    return checked_page(probe.render_html(made))


def texts(page, tag):
    return [data.strip() for around, data in page.texts if around and around[-1] == tag and data.strip()]


def test_a_full_report_has_every_section():
    page = page_of(full_report())
    assert texts(page, "h2") == [
        "Where the time goes",
        "Findings: 3 redundant, 2 hints",
        "Module loads over time",
        "Modules by cost",
        "Times",
        "Offline for sm_90",
        "Warnings",
        "What the program did to its caches",
        "Measured",
    ]
    assert texts(page, "h3") == ["Findings: 0 redundant, 0 hints", "Modules by cost"]
    assert any("fast_math" in text for text in texts(page, "span"))
    assert any("not everything was seen" in text.lower() for text in texts(page, "p"))


def test_the_bar_of_one_process_is_what_the_process_did():
    started = probe.ProcessPhases(20.0, 30.0, 40.0, 50.0, 100.0, 660.0)
    page = page_of(report(sample(run(process([load(start=300.0)], start_ms=20.0, phases=started), wall=1000.0))))
    assert [text for text in texts(page, "li") if "%" in text][:6] == [
        "interpreter 20.0 ms, 2.0%",
        "imports before Warp 30.0 ms, 3.0%",
        "import warp 40.0 ms, 4.0%",
        "wp.init 50.0 ms, 5.0%",
        "loads 100 ms, 10.0%",
        "everything else 760 ms, 76.0%",
    ]


def test_the_bar_of_several_processes_counts_each_moment_once():
    started = probe.ProcessPhases(100.0, 0.0, 100.0, 0.0, 0.0, 0.0)
    parent = process(start_ms=100.0, phases=started)
    children = [
        process([load(start=start, ms=200.0)], path=f"0.{number}", start_ms=200.0, phases=started)
        for number, start in enumerate((300.0, 400.0))
    ]
    page = page_of(report(sample(run(parent, *children, wall=1000.0))))
    assert [text for text in texts(page, "li") if "%" in text][:4] == [
        "loads 300 ms, 30.0%",
        "import warp 200 ms, 20.0%",
        "interpreter 100 ms, 10.0%",
        "everything else 400 ms, 40.0%",
    ]


def test_a_row_of_the_timeline_tells_phases_and_cause():
    change = probe.Change(probe.CauseReason.OPTION_CHANGED, "fast_math", "False", "True", SITE)
    parts = phases(80.0, header_ms=60.0, codegen_ms=20.0)
    built = load(start=100.0, phases=parts, cause=probe.Cause(probe.CauseReason.OPTION_CHANGED, (change,), None))
    page = page_of(report(sample(run(process([built, failed("b", start=300.0), cached("c", start=400.0)])))))
    told = texts(page, "title")
    assert any(
        text.endswith(
            ", from 100 ms to 200 ms, code generation 20.0 ms, precompiled header 60.0 ms, native compile 20.0 ms;"
            f" {probe.change_text(change)}"
        )
        for text in told
    )
    drawn = {attributes["class"] for tag, attributes in page.tags if tag == "rect"}
    assert {"c-codegen", "c-header", "c-native", "c-bad", "c-cached", "c-life", "c-busy"} <= drawn
    assert any("error" in text for text in texts(page, "code"))
    assert "no load in progress: 100 ms" in told


def test_every_drawing_is_named_or_hidden():
    page = page_of(full_report())
    hidden = False
    for number, (tag, attributes) in enumerate(page.tags):
        if tag in ("li", "svg"):
            hidden = "aria-hidden" in attributes if tag == "li" else hidden
        if tag == "svg":
            named = attributes.get("role") == "img" and page.tags[number + 1][0] == "title"
            assert named or "aria-hidden" in attributes or hidden


def test_tables_name_their_rows_and_columns():
    page = page_of(full_report())
    heads = [attributes.get("scope") for tag, attributes in page.tags if tag == "th"]
    assert heads
    assert set(heads) == {"row", "col"}
    assert len(texts(page, "caption")) == sum(tag == "table" for tag, _ in page.tags)
    assert all(attributes["data-label"] for tag, attributes in page.tags if tag == "td")


def test_many_loads_share_rows_and_are_counted(monkeypatch):
    monkeypatch.setattr(probe, "TIMELINE_LOADS", 2)
    monkeypatch.setattr(probe, "TIMELINE_PROCESSES", 1)
    loads = [load(f"m{number}", start=100.0 * number, ms=10.0 + number) for number in range(5)]
    page = page_of(report(sample(run(process(loads), process(path="0.1"), process([log_line()], path="0.2")))))
    words = texts(page, "code")
    assert "3 shorter loads of process 0" in words
    assert [text.split()[0] for text in words if text.startswith("m")] == ["m3", "m4"]
    assert any(
        "2 more processes not drawn. 1 load known from the output only" in text for text in texts(page, "figcaption")
    )


def test_a_large_report_is_a_bounded_page():
    loads = [load(f"module{number}", seed=str(number), start=3.0 * number, ms=2.0) for number in range(3_000)]
    made = report(sample(run(*(process(loads[index::30], path=f"0.{index}") for index in range(30)), wall=9_000.0)))
    many = tuple(dataclasses.replace(full_report().findings[0], evidence=("line",) * 200) for _ in range(500))
    notices = tuple(probe.Notice("noisy", str(number)) for number in range(500))
    text = probe.render_html(dataclasses.replace(made, findings=many, warnings=notices))
    assert len(text) < 600_000
    shown = texts(checked_page(text), "p")
    assert "and 460 more findings" in shown
    assert "and 2,900 more rows" in shown


def test_hidden_gaps_and_cache_events_are_counted():
    gaps = tuple(probe.Gap(probe.GapReason.NOT_RECORDED, None, f"gap {number} -") for number in range(100))
    events = tuple(probe.CacheEvent(probe.CacheEventKind.CLEAR_KERNEL_CACHE, 1.0, f"/c{n}", None) for n in range(50))
    made = report(sample(run(process([load()], cache_events=events))), gaps=gaps)
    page = page_of(made)
    words = [data for _, data in page.texts]
    assert "not-recorded: gap 0 -" in words
    for hidden in ["96 more", "and 80 more", "46 more", "and 30 more"]:
        assert hidden in words, hidden


def test_a_report_without_a_complete_sample_is_a_page():
    made = report(dataclasses.replace(sample(run(process([load()]), code=1)), complete=False, warm=None))
    page = page_of(made)
    assert any(text.startswith("FAILED: the cold run") for text in texts(page, "p"))
    assert "Module loads over time" in texts(page, "h2")


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (1000.0, [0, 200, 400, 600, 800, 1000]),
        (4662.0, [0, 1000, 2000, 3000, 4000]),
        (0.001, [0, 0.0002, 0.0004, 0.0006, 0.0008, 0.001]),
    ],
)
def test_ticks_are_round(span, expected):
    assert probe.round_ticks(span) == pytest.approx(expected)


# -- in a browser -----------------------------------------------------------------------------------------------------

# Texts that stick out of the page or of what is around them, and contrasts below 4.5 (WCAG AA).
LOOK = """() => {
  const luminance = rgb => rgb.map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const behind = node => {
    for (; node; node = node.parentElement) {
      const colour = numbers(getComputedStyle(node).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour.slice(0, 3);
    }
  };
  const faint = [], out = [];
  for (const node of document.querySelectorAll('main *:not(svg):not(svg *)')) {
    if (![...node.childNodes].some(one => one.nodeType === 3 && one.data.trim())) continue;
    const box = node.getBoundingClientRect();
    if (box.width && box.height > 1 && box.right > innerWidth + 1 && !node.closest('.scroll, ol.timeline p'))
      out.push(node.textContent.slice(0, 60));
    const [a, b] = [numbers(getComputedStyle(node).color), behind(node)].map(luminance).sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) faint.push(node.textContent.slice(0, 60));
  }
  return {faint, out, width: document.documentElement.scrollWidth, rects: document.querySelectorAll('rect').length};
}"""


@pytest.mark.parametrize("width", [400, 800, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_in_a_browser(browser, tmp_path, scheme, width):
    caches = probe.CacheEvent(probe.CacheEventKind.DIRECTORY_SET, 3.0, f"/tmp/{'cache' * 40}", SITE)
    long_name = "a_module_with_a_long_name_" * 8
    more = [load(f"{long_name}{number}", start=40.0 * number, ms=30.0, phases=phases(30.0)) for number in range(40)]
    gap = probe.Gap(probe.GapReason.HOOK_FAILED, 100, "launch")
    notice = probe.Notice("loaded-machine", "the load average is 9")
    cold = run(process([failed(start=1_800.0), *more], cache_events=(caches,)), process(path="0.1"), wall=2_000.0)
    made = report(sample(cold), gaps=(gap,), warnings=(notice,))
    path = tmp_path / "page.html"
    path.write_text(probe.render_html(made), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    seen = page.evaluate(LOOK)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.close()
    assert said == [], "the browser complained"
    assert asked == [path.as_uri()], "something was loaded"
    assert seen["out"] == []
    assert seen["faint"] == []
    assert seen["width"] <= width
    assert seen["rects"] > 40
    assert (background == "rgb(255, 255, 255)") is (scheme == "light")


def test_hostile_text_runs_nothing_in_a_browser(browser, tmp_path):
    attack = "</style></title><script>document.title=1</script><img src=x onerror=document.title=1>"
    made = dataclasses.replace(full_report(), command=(attack,), label=attack)
    path = tmp_path / "page.html"
    path.write_text(probe.render_html(made), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.title().startswith("Cold start of ")
    assert page.locator("script, img").count() == 0
    assert attack in page.locator("h1").text_content()
    page.close()
