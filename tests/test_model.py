"""Reports as JSON and back: nothing is lost, and whatever is not as it should be is named by its path."""

import dataclasses
import json
import typing

import pytest
import warp_compile_probe as probe
from builders import full_report, report, run, sample


def as_json(made):
    return json.loads(json.dumps(probe.to_json(made)))


def nodes(value, path=(), name="report"):
    """Every value in the JSON of a report: its keys and indices, its path in words, and the value."""
    yield path, name, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from nodes(item, (*path, key), f"{name}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from nodes(item, (*path, index), f"{name}[{index}]")


FULL = as_json(full_report())


def typed_owner(path):
    """The dataclass that holds the value at a path, or the type of the container."""
    kind = probe.Report
    for key in path[:-1]:
        kind = typing.get_type_hints(kind)[key] if dataclasses.is_dataclass(kind) else inner_of(kind)
        if type(None) in typing.get_args(kind):
            (kind,) = (option for option in typing.get_args(kind) if option is not type(None))
    return kind


def inner_of(kind):
    return typing.get_args(kind)[1 if typing.get_origin(kind) is dict else 0]


def one_of_each():
    """One filled value for each field of the data model and each kind of list item."""
    found = {}
    for path, name, value in nodes(FULL):
        if path and value is not None:
            owner = typed_owner(path)
            found.setdefault((owner, path[-1] if dataclasses.is_dataclass(owner) else None), (path, name, value))
    return found


FIELDS = one_of_each()
FIXED = {(probe.Report, "schema"), (probe.Report, "schema_version")}


def changed(path, new, value=FULL):
    """The JSON of the full report with one value replaced."""
    if not path:
        return new
    made = dict(value) if isinstance(value, dict) else list(value)
    made[path[0]] = changed(path[1:], new, made[path[0]])
    return made


def refusal(value):
    with pytest.raises(probe.InputError) as caught:
        probe.Report.from_json(value)
    return str(caught.value)


@pytest.mark.parametrize(
    "made",
    [full_report(), report(), report(sample(run())), report(sample(None, complete=False))],
    ids=["full", "empty", "one sample without a process", "nothing reached"],
)
def test_a_report_survives_the_way_through_json(made):
    assert probe.Report.from_json(as_json(made)) == made
    assert as_json(probe.Report.from_json(as_json(made))) == as_json(made)


def test_the_full_report_has_every_field_filled():
    model = {
        (kind, field.name)
        for kind in vars(probe).values()
        if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind in {owner for owner, _ in FIELDS}
        for field in dataclasses.fields(kind)
    }
    assert len(model) > 190
    assert model == {key for key in FIELDS if key[1]}


def wrong_values(value):
    """Values that can stand for no value of the same type."""
    if isinstance(value, bool):
        return [1, "true"]
    if isinstance(value, int):
        return [True, 1.5, "1"]
    if isinstance(value, float):
        return [True, "1.0", float("nan"), float("inf"), 10**400]
    if isinstance(value, str):
        return [1, ["a"]]
    if isinstance(value, list):
        return [{}, "a", 1]
    if isinstance(value, dict):
        return [[], "a", 1]
    raise AssertionError(value)


def test_every_wrong_value_is_named_by_its_path():
    for key, (path, name, value) in FIELDS.items():
        for wrong in wrong_values(value) if key not in FIXED else ():
            message = refusal(changed(path, wrong))
            assert message.startswith(f"{name}: expected "), (name, wrong, message)


def test_null_is_accepted_where_the_model_says_so_and_nowhere_else():
    for (owner, field), (path, name, _) in FIELDS.items():
        made = changed(path, None)
        if field and type(None) in typing.get_args(typing.get_type_hints(owner)[field]):
            assert as_json(probe.Report.from_json(made)) == made
        elif (owner, field) not in FIXED:
            assert refusal(made).startswith(f"{name}: expected "), name


def test_every_missing_and_every_unknown_key_is_refused():
    objects = {owner: path[:-1] for (owner, field), (path, _, _) in FIELDS.items() if field}
    assert probe.Load in objects
    for owner, path in objects.items():
        (name, value) = next((name, value) for found, name, value in nodes(FULL) if found == path)
        for key in value:
            if (owner, key) not in FIXED:
                rest = {other: item for other, item in value.items() if other != key}
                assert refusal(changed(path, rest)) == f"{name}: {key!r} is missing"
        assert refusal(changed(path, {**value, "colour": 1})) == f"{name}: unknown key 'colour'"


@pytest.mark.parametrize(
    ("path", "wrong", "expected"),
    [
        (
            ("samples", 0, "cold", "kind"),
            "hot",
            "report.samples[0].cold.kind: expected one of cold, warm, settle, offline, offline-warm;",
        ),
        (("findings", 0, "kind"), [], "report.findings[0].kind: expected one of redundant, hint; found []"),
        (("summary", "builds"), 1.0, "report.summary.builds: expected int, found float"),
        (("options", "env"), {"A": 1}, "report.options.env.A: expected str, found int"),
        (("identities", 0, "cold"), {"compiled": "1"}, "report.identities[0].cold.compiled: expected int, found str"),
    ],
)
def test_what_was_expected_is_said(path, wrong, expected):
    assert refusal(changed(path, wrong)).startswith(expected)


@pytest.mark.parametrize("value", [None, [], "text", 1, {}, {"schema": "other/report"}])
def test_what_is_no_report_is_called_so(value):
    assert refusal(value) == 'not a probe report: expected "schema": "warp-compile-probe/report" at the top level'


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_schema_version_says_what_to_do(version):
    message = refusal(changed(("schema_version",), version))
    assert message.startswith(f"report of schema version {version!r}: this probe reads version 1")
    assert "measure again" in message


def test_whole_numbers_are_read_as_times():
    made = probe.Report.from_json(changed(("samples", 0, "cold", "wall_ms"), 12))
    assert made.samples[0].cold.wall_ms == 12.0
    assert isinstance(made.samples[0].cold.wall_ms, float)
