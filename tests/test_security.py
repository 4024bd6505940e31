"""What SECURITY.md promises: private directories, no links followed, no shell, and files that nobody trusts."""

from __future__ import annotations

import ast
import json
import os
import re
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
import warp_compile_probe as probe
from conftest import SCRIPT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import STUB_WARP
from report_builder import make_report
from stubbed import cold, gaps

ROOT = SCRIPT.parent.parent

# ---------------------------------------------------------------------------------------------------------------------
# The script itself
# ---------------------------------------------------------------------------------------------------------------------


def calls(tree):
    """Every call in a syntax tree: its dotted name and its node."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def test_no_shell_and_nothing_evaluated():
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    refused = re.compile(
        r"os\.(system|popen|exec\w*|spawn\w*|posix_spawn\w*)|pty\.\w+|subprocess\.get(status)?output|eval"
        r"|(pickle|shelve|dill)\.\w+|asyncio\.create_subprocess_shell|tempfile\.mktemp"
    )
    assert [(name, node.lineno) for name, node in calls(tree) if refused.fullmatch(name)] == []
    for name, node in calls(tree):
        if name.startswith("subprocess."):
            assert "shell" not in {keyword.arg for keyword in node.keywords}, node.lineno
    # The recorder is run from its own source only.
    assert [node.lineno for name, node in calls(tree) if name == "exec"] == []
    assert probe.SITECUSTOMIZE.count("exec(code, namespace)") == 1


def test_no_network():
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    imported = {
        alias.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    } | {(node.module or "").partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported.isdisjoint({"socket", "ssl", "urllib", "http", "ftplib", "smtplib", "asyncio", "xmlrpc"})


# ---------------------------------------------------------------------------------------------------------------------
# Private directories and planted links
# ---------------------------------------------------------------------------------------------------------------------


def test_private_directories_are_unpredictable_and_the_users_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = os.umask(0)
    try:
        workspaces = [probe.Workspace() for _ in range(20)]
        for workspace in workspaces:
            workspace.prepare()
            probe.SampleFolder(workspace, "1")
        for folder, names, _ in os.walk(tmp_path):
            for name in names:
                assert stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) == 0o700
    finally:
        os.umask(before)
        for workspace in workspaces:
            workspace.remove()
    names = {os.path.basename(workspace.root) for workspace in workspaces}
    assert len(names) == 20
    assert all(re.fullmatch(r"wcp-[0-9a-f]{10}", name) for name in names)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("planted", ["link", "folder", "file"])
def test_a_name_that_is_taken_is_not_used(planted, monkeypatch, tmp_path):
    """As if somebody had guessed the name: nothing there is followed, filled or removed."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    workspace = probe.Workspace()
    victim = tmp_path / "victim"
    victim.mkdir()
    root = Path(workspace.root)
    if planted == "link":
        root.symlink_to(victim)
    elif planted == "folder":
        root.mkdir(0o777)
    else:
        root.touch()
    with pytest.raises(probe.InputError, match="File exists"):
        workspace.prepare()
    assert list(victim.iterdir()) == []
    assert os.path.lexists(root)


def test_a_private_directory_that_was_never_made_is_not_removed(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    workspace = probe.Workspace()
    Path(workspace.root).mkdir()
    (Path(workspace.root) / "mine").touch()
    with pytest.raises(probe.InputError):
        workspace.prepare()
    workspace.remove()
    assert (Path(workspace.root) / "mine").exists()


def test_links_in_a_folder_that_is_removed_are_not_followed(tmp_path):
    victim = tmp_path / "victim"
    (victim / "sub").mkdir(parents=True)
    (victim / "sub" / "file").touch()
    victim.chmod(0o755)
    tree = tmp_path / "tree"
    (tree / "a").mkdir(parents=True)
    (tree / "link").symlink_to(victim)
    (tree / "a" / "link").symlink_to(victim / "sub" / "file")
    probe.remove_tree(str(tree))
    assert not tree.exists()
    tree.symlink_to(victim)  # the program put a link where its folder was
    probe.remove_tree(str(tree))
    assert not os.path.lexists(tree)
    assert (victim / "sub" / "file").exists()
    assert stat.S_IMODE(victim.stat().st_mode) == 0o755


PLANTED_IN_RECORDS = """
wp.launch(add, dim=8, inputs=[1.0])
import glob
sample = os.path.dirname(os.environ["WARP_CACHE_PATH"])
(records,) = glob.glob(sample + "/*/records") if not glob.glob(sample + "/warm") else [sample + "/warm/records"]
os.symlink("/dev/zero", records + "/1-1.rec")
os.symlink("/dev/zero", records + "/2.failed")
os.mkfifo(records + "/3-1.rec")
os.mkfifo(records + "/4.failed")
(own,) = [name for name in os.listdir(records) if name.endswith(".rec") and name.startswith(str(os.getpid()))]
os.mkfifo(records + "/" + own[:-4] + ".9.ids")
os.mkdir(records + "/5-1.rec")
open(records + "/x.failed", "w").close()
os.makedirs(sample + "/twins", exist_ok=True)
os.mkfifo(sample + "/twins/a.identity")
os.symlink("/dev/zero", sample + "/twins/b.identity")
if not os.path.exists(sample + "/pipe"):
    os.mkfifo(sample + "/pipe")
with open(sample + "/twins/c.identity", "w") as file:
    file.write(sample + "/pipe 1 1")
"""


def test_links_and_pipes_among_the_records_are_neither_followed_nor_waited_for(stub):
    measured = stub(PLANTED_IN_RECORDS)
    assert {reason for reason, _ in gaps(measured)} == {"record-truncated"}
    (process,) = cold(measured).processes
    assert process.launches.count == 1


def test_json_replaces_no_file_beside_it_and_keeps_a_link_of_the_user(tmp_path):
    target = tmp_path / "elsewhere" / "report.json"
    target.parent.mkdir()
    link = tmp_path / "report.json"
    link.symlink_to(target)
    probe.write_document(str(link), "{}")
    assert link.is_symlink()
    assert target.read_text() == "{}"
    assert [path.name for path in target.parent.iterdir()] == ["report.json"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can plant a link that another user owns")
def test_json_through_a_link_that_another_user_planted_is_refused(tmp_path, measure):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    link = shared / "report.json"
    link.symlink_to(victim)
    os.chown(link, 65534, 65534, follow_symlinks=False)
    measured = measure.command(["true"], options=["--samples", "1", "--json", str(link)], expect=2)
    assert "is a link that another user left in a shared folder" in measured.stderr
    assert victim.read_text() == "precious"
    os.chown(link, 0, 0, follow_symlinks=False)
    measure.command(["true"], options=["--samples", "1", "--json", str(link)])
    assert json.loads(victim.read_text())["schema"] == probe.REPORT_SCHEMA


def test_kept_logs_do_not_go_through_links(tmp_path, measure):
    logs = tmp_path / "logs"
    logs.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (logs / "1-cold.stdout").symlink_to(victim)
    measured = measure.command(["true"], options=["--samples", "1", "--keep-logs", str(logs)], expect=2)
    assert "cannot write 1-cold.stdout" in measured.stderr
    assert victim.read_text() == "precious"


# ---------------------------------------------------------------------------------------------------------------------
# What a report may hold
# ---------------------------------------------------------------------------------------------------------------------


def test_of_the_environment_only_the_allow_list_is_in_the_report(stub, tmp_path):
    secrets = {f"SECRET_{number}": f"hunter2-{number}" for number in range(5)} | {"WARP_TOKEN": "hunter2-w"}
    measured = stub(
        """
        import subprocess
        wp.launch(add, dim=8, inputs=[1.0])
        os.environ["SECRET_9"] = "hunter2-9"
        subprocess.run([sys.executable, "-c", "import os; os.environ['SECRET_0']"], check=True)
        """,
        env={**secrets, "CUDA_VISIBLE_DEVICES": "7", "CUDA_MODULE_LOADING": "LAZY"},
    )
    text = json.dumps(measured.document) + measured.stdout + measured.stderr
    assert "hunter2" not in text
    assert "SECRET_9" not in text
    assert measured.report.environment.variables == {"CUDA_VISIBLE_DEVICES": "7", "CUDA_MODULE_LOADING": "LAZY"}
    assert set(measured.report.environment.variables) <= set(probe.REPORTED_VARIABLES)


def test_the_allow_list_is_documented():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"these variables only.+?\. A secret", text, re.DOTALL)
    assert tuple(re.findall(r"`(\w+)`", listed)) == probe.REPORTED_VARIABLES


def test_a_working_tree_cannot_have_the_probe_run_something(tmp_path, measure):
    """`git status` would run what `core.fsmonitor` names."""
    ran = tmp_path / "ran"
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    tree = tmp_path / "tree"
    for words in (["init", "-q", tree], ["-C", tree, "commit", "-q", "--allow-empty", "-m", "x"]):
        git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *words]
        subprocess.run(git, check=True, capture_output=True)
    subprocess.run(["git", "-C", tree, "config", "core.fsmonitor", str(hook)], check=True)
    measured = measure.command(["true"], cwd=tree)
    assert len(measured.report.environment.git_commit) == 40
    assert not ran.exists()


def test_names_that_a_program_chose_never_act_on_the_terminal(stub):
    stub.change(
        "_src/context.py",
        ('name = f"Module {self.name} ', 'self.name = "evil\\x1b]0;title\\x07\\n"; name = f"Module {self.name} '),
    )
    measured = stub("wp.launch(add, dim=8, inputs=[1.0])", expect=None)
    assert (measured.stdout + measured.stderr).replace("\n", "").isprintable()


def test_error_messages_are_printable(capsys):
    probe.complain("a\x1b[2Jb\rc\nnext \u202e line")
    assert capsys.readouterr().err == "warp-compile-probe: a\\x1b[2Jb\\rc\nnext \\u202e line\n"


# ---------------------------------------------------------------------------------------------------------------------
# Record files that nobody trusts
# ---------------------------------------------------------------------------------------------------------------------

WHOLE_RUN = """
import subprocess
import warp as wp

@wp.func
def twice(x: float):
    return x

@wp.kernel
def add(x: float):
    twice

wp.launch(add, dim=8, inputs=[1.0])
wp.capture_begin()
wp.launch(add, dim=4, inputs=[1.0])
graph = wp.capture_end()
wp.capture_launch(graph)
wp.config.enable_backward = False
wp.force_load(max_workers=2)
if not os.fork():
    wp.launch(add, dim=2, inputs=[1.0])
    os._exit(3)
os.wait()
with wp.Tape():
    pass
subprocess.run([sys.executable, "-c", ""])
"""


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """The record files of a real run, by name."""
    from recorded import Recording

    with pytest.MonkeyPatch.context() as monkeypatch:
        recording = Recording(monkeypatch, tmp_path_factory.mktemp("records"))
        program = recording.workspace.root + "/program.py"
        Path(program).write_text("import os, sys\n" + WHOLE_RUN, encoding="utf-8")
        recorded = recording.run([os.sys.executable, program], STUB_WARP)
    assert recorded.exit_code == 0, recorded.stderr
    assert len(recorded.processes) == 3
    assert recorded.gaps == []
    return {path.name: path.read_bytes() for path in recorded.folder.iterdir()}


def read_damaged(files):
    """What the probe makes of record files: processes that a report can hold, and gaps. Never an exception."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            (Path(folder) / name).write_bytes(data)
        read = probe.read_records(folder, 0, ["/tmp/private"])
    for process in read.processes:
        document = json.loads(json.dumps(probe.to_json(process)))
        assert probe.from_json(probe.Process, document, "process") == process
    return read


DAMAGE = st.lists(
    st.tuples(
        st.integers(0, 10),
        st.integers(0, 1 << 20),
        st.sampled_from(["cut", "flip", "insert", "drop", "repeat", "swap"]),
        st.binary(min_size=1, max_size=12),
    ),
    min_size=1,
    max_size=6,
)


def damaged(data, place, how, extra):
    at = place % (len(data) + 1)
    if how == "cut":
        return data[:at]
    if how == "flip":
        return data[:at] + bytes([data[at] ^ extra[0]]) + data[at + 1 :] if at < len(data) else data
    if how == "insert":
        return data[:at] + extra + data[at:]
    if how == "drop":
        return data[:at] + data[at + len(extra) :]
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    line = place % len(lines)
    if how == "repeat":
        return data + lines[line]
    other = extra[0] % len(lines)
    lines[line], lines[other] = lines[other], lines[line]
    return b"".join(lines)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=DAMAGE)
def test_records_that_were_damaged_anywhere(records, damage):
    files = dict(records)
    names = sorted(files)
    for which, place, how, extra in damage:
        name = names[which % len(names)]
        files[name] = damaged(files[name], place, how, extra)
    read_damaged(files)


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.sampled_from([0, 1, 2, 3, 10**4000, 2**63, -1, 1e308, float("nan"), float("inf")]),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.sampled_from([probe.pack(b"\1\0\0\0" * 3), "AAAA", "eJwDAAAAAAE=", "\ud800", "../../x", "\0", "exit", "graph"]),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_records_with_any_value_in_any_place(records, data):
    """Lines that are JSON and have the right keys, with values that no recorder writes."""
    files = dict(records)
    name = data.draw(st.sampled_from([name for name in sorted(files) if name.endswith(".rec")]))
    lines = [json.loads(line) for line in files[name].splitlines()]
    for _ in range(data.draw(st.integers(1, 4))):
        line = data.draw(st.sampled_from(lines))
        key = data.draw(st.sampled_from(sorted(line)))
        inner = line[key]
        if isinstance(inner, dict) and inner and data.draw(st.booleans()):
            inner[data.draw(st.sampled_from(sorted(inner)))] = data.draw(ODD)
        elif isinstance(inner, list) and inner and data.draw(st.booleans()):
            inner[data.draw(st.integers(0, len(inner) - 1))] = data.draw(ODD)
        else:
            line[key] = data.draw(ODD)
    files[name] = "".join(json.dumps(line) + "\n" for line in lines).encode()
    read_damaged(files)


def start(pid, at, parent=None, how="exec"):
    line = {
        "t": "start",
        "at": at,
        "pid": pid,
        "parent": parent,
        "how": how,
        "argv": [],
        "executable": "",
        "python": "",
    }
    return json.dumps(line).encode() + b"\n"


def test_parents_that_go_in_a_circle():
    read = read_damaged({"1-5.rec": start(1, 5, "2-5", "fork"), "2-5.rec": start(2, 5, "1-5", "fork")})
    assert sorted(process.path for process in read.processes) == ["0", "1"]
    assert [process.path for process in read_damaged({"1-5.rec": start(1, 5, "1-5", "fork")}).processes] == ["0"]


def launch_lines(*lines):
    return start(1, 5) + b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_graphs_that_hold_themselves_or_graphs():
    """2**60 launches, were each graph taken apart."""
    graphs = [
        {"t": "launch", "number": number, "graph": probe.pack(probe.array("I", [number - 1] * 2)), "unknown": False}
        for number in range(1, 61)
    ]
    own = {"t": "launch", "number": 99, "graph": probe.pack(probe.array("I", [99])), "unknown": False}
    ids = {"t": "ids", "thread": 0, "sequence": 1, "z": probe.pack(probe.array("I", [60, 99]))}
    read = read_damaged({"1-5.rec": launch_lines(*graphs, own, ids)})
    assert [gap.reason.value for gap in read.gaps] == ["launches-not-recorded"]
    assert read.processes[0].launches.count == 0


def test_launches_that_unpack_to_gigabytes(monkeypatch):
    monkeypatch.setattr(probe, "MAX_PACKED_LAUNCHES", 1000)
    ids = [
        {"t": "ids", "thread": 0, "sequence": sequence, "z": probe.pack(probe.array("I", [7] * count))}
        for sequence, count in ((1, 1000), (2, 1001))
    ]
    read = read_damaged({"1-5.rec": launch_lines(*ids)})
    assert ("launches-not-recorded", "1 piece of the launches of thread 0 lost") in [
        (gap.reason.value, gap.detail) for gap in read.gaps
    ]


def test_lines_and_files_of_any_length_are_read_in_bounds(monkeypatch):
    monkeypatch.setattr(probe, "MAX_RECORD_LINE_BYTES", 2_000)
    monkeypatch.setattr(probe, "MAX_RECORD_BYTES", 100_000)
    tape = b'{"t": "tape"}\n'
    long = read_damaged({"1-5.rec": start(1, 5) + b'{"t": "error", "text": "' + b"x" * 50_000 + b'"}\n' + tape})
    assert (long.processes[0].tapes, [gap.reason.value for gap in long.gaps]) == (1, ["record-truncated"])
    large = read_damaged({"1-5.rec": start(1, 5) + tape * 10_000})
    assert (large.processes[0].tapes < 10_000, [gap.reason.value for gap in large.gaps]) == (True, ["record-truncated"])


def test_lines_that_are_nested_deeply():
    read = read_damaged({"1-5.rec": start(1, 5) + b"[" * 100_000 + b"\n" + b'{"t": "tape"}\n'})
    assert (read.processes[0].tapes, [gap.reason.value for gap in read.gaps]) == (1, ["record-truncated"])


def test_expressions_that_are_too_deep_for_a_syntax_tree():
    source = "def k():\n    x = " + " + ".join(["1"] * 50_000) + "\n"
    assert probe.normal_source(source) == probe.normal_source(source.replace("def k", "def other"))


def test_directories_that_a_damaged_record_says_were_made(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    workspace = probe.Workspace()
    workspace.prepare()
    sample = probe.SampleFolder(workspace, "1")
    _, records = sample.inject(probe.RunKind.COLD, {})
    kept, empty = tmp_path / "kept", tmp_path / "empty"
    kept.mkdir()
    (kept / "file").touch()
    empty.mkdir()
    good = {"t": "made", "paths": [str(kept), str(empty), "\0", "x" * 5000]}
    lines = [b'{"t":"made",', b'{"t":"made","paths":7}', b'{"t":"made","paths":[7]}', b'{"t":"made","x":1}']
    lines.append(json.dumps(good, separators=(",", ":")).encode())
    Path(records, "1-1.rec").write_bytes(b"\n".join(lines) + b"\n")
    sample.close()
    assert (kept / "file").exists()
    assert not empty.exists()
    workspace.remove()


# ---------------------------------------------------------------------------------------------------------------------
# Reports that nobody trusts
# ---------------------------------------------------------------------------------------------------------------------

REPORT = probe.to_json(make_report())


def places(value, path=()):
    """The path of every value in a document."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))


PLACES = [path for path in places(REPORT) if path]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), ODD, st.booleans()), max_size=4))
def test_two_arbitrary_reports_are_refused_or_compared(tmp_path_factory, changes):
    """Each value of either report may be anything: the answer is a verdict or one sentence."""
    folder = tmp_path_factory.getbasetemp()
    documents = [json.loads(json.dumps(REPORT)) for _ in range(2)]
    for path, value, second in changes:
        holder = documents[second]
        try:
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change has taken this place away
    paths = [folder / f"arbitrary-{number}.json" for number in range(2)]
    for path, document in zip(paths, documents, strict=True):
        path.write_text(json.dumps(document), encoding="utf-8")
    try:
        baseline, candidate = (probe.load_report(str(path)) for path in paths)
        comparison = probe.compare_reports(baseline, candidate)
        text = "".join([probe.render_comparison(comparison, probe.TextFormat.TEXT), probe.render_report(candidate)])
    except probe.InputError as error:
        text = str(error)
    assert text.replace("\n", "").isprintable()
