"""references/report.schema.json says of every field what the data model says, and each report fits it."""

import copy
import dataclasses
import enum
import json
import types
import typing
from pathlib import Path

import jsonschema
import pytest
import warp_compile_probe as probe
from builders import full_report, load, log_line, process, report, run, sample

SCHEMA = json.loads((Path(__file__).parent.parent / "references" / "report.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
PRIMITIVES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def expected_schema(kind):
    """What the schema must say of a value of this annotation, apart from descriptions."""
    origin = typing.get_origin(kind)
    if origin is types.UnionType:
        (inner,) = [option for option in typing.get_args(kind) if option is not types.NoneType]
        shape = expected_schema(inner)
        if "$ref" in shape:
            return {"anyOf": [shape, {"type": "null"}]}
        return {**shape, "type": [shape["type"], "null"]}
    if origin is tuple:
        return {"type": "array", "items": expected_schema(typing.get_args(kind)[0])}
    if origin is dict:
        inner = typing.get_args(kind)[1]
        return {"type": "object", "additionalProperties": True if inner is typing.Any else expected_schema(inner)}
    if kind in PRIMITIVES:
        return {"type": PRIMITIVES[kind]}
    return {"$ref": f"#/$defs/{kind.__name__}"}


def reachable(kind, found):
    """Every dataclass and enum that a report can hold."""
    for inner in typing.get_args(kind):
        reachable(inner, found)
    if isinstance(kind, type) and kind not in found and (dataclasses.is_dataclass(kind) or issubclass(kind, enum.Enum)):
        found.append(kind)
        if dataclasses.is_dataclass(kind):
            for hint in typing.get_type_hints(kind).values():
                reachable(hint, found)
    return found


KINDS = reachable(probe.Report, [])
# What the schema says beyond types: of these fields which strings or keys, and how many values.
NARROWER = {
    ("Report", "schema"): {"const": probe.REPORT_SCHEMA},
    ("Report", "schema_version"): {"const": probe.SCHEMA_VERSION},
    ("Finding", "mechanism"): {"type": "string", "pattern": "^(CS-[0-9]+|[a-z]+(-[a-z]+)*)$"},
    ("Timed", "values"): {"type": "array", "items": {"type": "number"}, "minItems": 1},
    **{
        ("IdentityRecord", name): {
            "type": "object",
            "additionalProperties": {"type": "integer"},
            "propertyNames": {"$ref": "#/$defs/Status"},
        }
        for name in ("cold", "warm")
    },
}


def node_of(kind):
    return SCHEMA if kind is probe.Report else SCHEMA["$defs"][kind.__name__]


def test_the_schema_is_a_schema_and_defines_what_a_report_can_hold():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["$defs"]) == {kind.__name__ for kind in KINDS if kind is not probe.Report} | {"Mechanism"}


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if dataclasses.is_dataclass(kind)], ids=lambda kind: kind.__name__
)
def test_every_object_has_the_fields_of_its_dataclass(kind):
    node = node_of(kind)
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    assert (node["type"], node["additionalProperties"]) == ("object", False)
    assert node["required"] == names
    assert list(node["properties"]) == names
    for name in names:
        shape = {key: value for key, value in node["properties"][name].items() if key != "description"}
        assert shape == NARROWER.get((kind.__name__, name), expected_schema(hints[name])), name


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if issubclass(kind, enum.Enum)], ids=lambda kind: kind.__name__
)
def test_every_enum_has_the_members_of_the_data_model(kind):
    node = node_of(kind)
    assert set(node) == {"description", "enum"}
    assert node["enum"] == [member.value for member in kind]


def test_everything_is_described_in_a_sentence():
    described = []
    for kind in KINDS:
        node = node_of(kind)
        described += [node["description"], *(each["description"] for each in node.get("properties", {}).values())]
    assert len(described) > 200
    assert all(text.endswith(".") and len(text) > 8 for text in described)


def test_every_mechanism_is_explained_and_a_valid_name():
    listed = {entry["const"]: entry["description"] for entry in SCHEMA["$defs"]["Mechanism"]["oneOf"]}
    assert set(listed) == {mechanism.value for mechanism in probe.Mechanism}
    assert all(text.endswith(".") for text in listed.values())
    assert len(set(listed.values())) == len(listed)
    pattern = SCHEMA["$defs"]["Finding"]["properties"]["mechanism"]
    for name in (*listed, "CS-1", "CS-13"):
        jsonschema.validate(name, pattern)


def twice_built():
    return run(process([load(), load(seed="b", start=300.0), log_line("other")]))


@pytest.mark.parametrize(
    "made",
    [
        full_report(),
        report(),
        report(sample(None, complete=False)),
        report(
            sample(twice_built()),
            sample(twice_built(), index=1),
            gaps=[probe.Gap(probe.GapReason.NOT_RECORDED, None, "x")],
        ),
    ],
    ids=["full", "empty", "nothing reached", "two samples"],
)
def test_reports_fit_the_schema(made):
    assert list(VALIDATOR.iter_errors(json.loads(json.dumps(probe.to_json(made))))) == []


def test_the_schema_refuses_what_the_reader_refuses():
    good = json.loads(json.dumps(probe.to_json(full_report())))
    for path, wrong in [
        (("summary", "builds"), "5"),
        (("samples", 0, "cold", "kind"), "hot"),
        (("samples", 0, "cold", "processes", 0, "loads", 0, "colour"), 1),
        (("identities", 0, "cold"), {"burnt": 1}),
        (("coverage", "gaps", 0, "reason"), "weather"),
        (("schema_version",), 2),
    ]:
        bad = copy.deepcopy(good)
        inner = bad
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = wrong
        assert not VALIDATOR.is_valid(bad), path
