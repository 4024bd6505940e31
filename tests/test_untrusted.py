"""Reports from strangers: whatever `from_json` accepts is rendered, bounded, and does nothing to who reads it."""

from __future__ import annotations

import dataclasses
import enum
import json
import re
import types
import typing
from html.parser import HTMLParser

import pytest
import warp_compile_probe as probe
from builders import full_report
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_builder import make_report
from test_page import checked_page
from test_trace import checked_trace

HOSTILE = (
    "\x1b[31mred\x1b]0;title\x07",
    "</script></style></title><script>alert(1)</script><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "line\n::error::owned\r\n| cell | `code` [link](javascript:alert(1)) @team <b>",
    "\u202etxet\u2066 \u200b\x00\x9b31m\ud800",
    "&lt;already&gt; %0A::error::",
    "x" * 5_000,
    "",
)
TEXT = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=20))
FLOATS = st.one_of(
    st.sampled_from([0.0, -1.0, 1.0, 1e-320, 1e15, -1e15, 999.5]),
    st.floats(-probe.MAX_NUMBER, probe.MAX_NUMBER, allow_nan=False),
)
INTEGERS = st.one_of(st.integers(-3, 3), st.integers(1 - 10**18, 10**18 - 1))


def values_of(kind):
    """JSON values that `from_json` takes for an annotation of the data model."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        (inner,) = (option for option in arguments if option is not type(None))
        return st.none() | values_of(inner)
    if origin is tuple:
        return st.lists(values_of(arguments[0]), max_size=2)
    if origin is dict:
        return st.dictionaries(TEXT, values_of(arguments[1]), max_size=2)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return st.fixed_dictionaries({field.name: values_of(hints[field.name]) for field in dataclasses.fields(kind)})
    if issubclass(kind, enum.Enum):
        return st.sampled_from([member.value for member in kind])
    return {float: FLOATS, int: INTEGERS, bool: st.booleans(), str: TEXT}[kind]


REAL = probe.to_json(full_report())
CLOSED = {member.value for kind in vars(probe).values() if isinstance(kind, enum.EnumMeta) for member in kind}


@st.composite
def documents(draw):
    """A real document in which some parts are made up."""
    made = draw(st.fixed_dictionaries({key: values_of(HINTS[key]) | st.just(REAL[key]) for key in REAL}))
    return made | {"schema": probe.REPORT_SCHEMA, "schema_version": probe.SCHEMA_VERSION}


HINTS = typing.get_type_hints(probe.Report)


def paths_of(value, path=()):
    """Every place in a document."""
    if path and path[0] not in ("schema", "schema_version"):
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths_of(item, (*path, key))


@st.composite
def damaged(draw, real):
    """A document in which single values are others of their kind, and lists are longer, shorter or empty."""
    made = json.loads(json.dumps(real))
    for path in draw(st.lists(st.sampled_from(list(paths_of(real))), min_size=1, max_size=12)):
        holder = made
        try:
            for key in path[:-1]:
                holder = holder[key]
            value = holder[path[-1]]
        except (IndexError, KeyError, TypeError):
            continue  # an earlier change took it away
        if isinstance(value, list):
            holder[path[-1]] = draw(st.sampled_from([[], value[:1], value * 2, value * 40]))
        elif isinstance(value, str) and value not in CLOSED:
            holder[path[-1]] = draw(TEXT)
        elif isinstance(value, float):
            holder[path[-1]] = draw(FLOATS)
        elif isinstance(value, int) and not isinstance(value, bool):
            holder[path[-1]] = draw(INTEGERS)
    return made


def hostile_copy(value, text):
    """A document with every text in it replaced, but for those of closed sets and what the reader checks."""
    if isinstance(value, dict):
        return {key: hostile_copy(item, text) if key != "schema" else item for key, item in value.items()}
    if isinstance(value, list):
        return [hostile_copy(item, text) for item in value]
    return text if isinstance(value, str) and value not in CLOSED else value


def check_everything(report):
    """Renders a report in every form, and holds each against what it promises."""
    for text in (probe.render_report(report), probe.render_markdown(report)):
        check_terminal(text)
        assert len(text) <= 10_000
        assert len(text.splitlines()) <= 120
    annotations = probe.render_annotations(probe.report_annotations(report, ()), ["::error::from the program"], "/")
    check_terminal(annotations)
    for line in annotations.splitlines():
        if line.startswith("::"):
            assert re.fullmatch(r"::(error|warning|notice) [^\n]*?::[^\n]*", line)
    page = probe.render_html(report)
    check_terminal(page)
    checked_page(page)
    trace = probe.render_trace(report)
    check_terminal(trace)
    checked_trace(json.loads(trace))
    document = json.loads(probe.json_document(report))
    assert probe.Report.from_json(document) == report


def check_terminal(text):
    """Nothing in a text moves a cursor, changes a colour, or reorders what is read."""
    acting = {one for one in text if not one.isprintable()} - {"\n"}
    assert not acting, acting
    text.encode("utf-8")


HEAVY = settings(deadline=None, suppress_health_check=list(HealthCheck))


@settings(HEAVY, max_examples=25)
@given(documents())
def test_whatever_is_read_is_rendered(document):
    check_everything(probe.Report.from_json(document))


@settings(HEAVY, max_examples=100)
@given(damaged(REAL))
def test_a_damaged_report_is_rendered(document):
    check_everything(probe.Report.from_json(document))


@settings(HEAVY, max_examples=100)
@given(damaged(probe.to_json(make_report())))
def test_a_damaged_report_is_compared_or_refused(document):
    try:
        comparison = probe.compare_reports(
            make_report(), probe.Report.from_json(document), frozenset(probe.ComparableField)
        )
    except probe.InputError:
        return
    for style in probe.TextFormat:
        check_terminal(probe.render_comparison(comparison, style))


# What takes a time that grows with the square of a text would not end within the time limit of a test.
LONG = ("/" * 300_000, "a/site-packages/" * 20_000, " x" * 200_000, "\x1b" * 30_000, "f" * 300_000)


@pytest.mark.parametrize("text", [*HOSTILE, *LONG], ids=range(len(HOSTILE) + len(LONG)))
def test_no_text_of_a_report_does_anything(text):
    check_everything(probe.Report.from_json(hostile_copy(REAL, text)))


class Texts(HTMLParser):
    """The texts of a page."""

    def __init__(self):
        super().__init__()
        self.texts = []

    def handle_data(self, data):
        self.texts.append(data)


def test_what_a_page_shows_is_what_the_report_says():
    name = '<b title="x">&amp; `name`'
    report = dataclasses.replace(full_report(), command=(name,), label=name)
    shown = Texts()
    shown.feed(probe.render_html(report))
    assert any(name in text for text in shown.texts)


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_markdown_text_holds_no_markup(text):
    escaped = probe.markdown_text(text)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_{}\[\]#|~$]", escaped.replace("&#64;", ""))
    assert "<" not in escaped
    assert "@" not in escaped


# -- what cannot be read ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"schema":' * 100_000,
        '{"schema": "warp-compile-probe/report", "schema_version": 1, "samples": ' + "[" * 50_000 + "]" * 50_000 + "}",
        '{"schema": "warp-compile-probe/report", "schema_version": 1, "\x1b[31m": 1}',
        '{"schema": "warp-compile-probe/report", "schema_version": "\\u001b[31m"}',
        '{"schema": "\\u001b]0;owned\\u0007"}',
        "9" * 100_000,
        '{"schema": 1e999}',
        "\x1b[31m",
    ],
)
def test_a_hostile_file_is_one_sentence_on_standard_error(tmp_path, capsys, text):
    path = tmp_path / "\x1b[31mreport.json"
    path.write_text(text, encoding="utf-8")
    for command in (["report", str(path)], ["compare", str(path), str(path)]):
        assert probe.main(command) == probe.ExitCode.USAGE
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith("warp-compile-probe: ")
        assert len(shown.err.splitlines()) == 1
        assert len(shown.err) < 1_000
        check_terminal(shown.err)


@pytest.mark.parametrize("number", [1e16, -1e300, 1.7e308])
def test_a_time_that_no_report_holds_is_refused(number):
    options = {**REAL["options"], "timeout_s": number}
    with pytest.raises(probe.InputError, match=r"^report\.options\.timeout_s: expected a number of at most 1e\+15$"):
        probe.Report.from_json({**REAL, "options": options})


@pytest.mark.parametrize("number", [10**18, -(10**5_000)], ids=["too long", "far too long"])
def test_a_count_that_no_report_holds_is_refused(number):
    options = {**REAL["options"], "samples": number}
    with pytest.raises(probe.InputError, match=r"^report\.options\.samples: expected a whole number"):
        probe.Report.from_json({**REAL, "options": options})
