#!/usr/bin/env bash
# What only a machine with a CUDA device can check, in under five minutes: cold and warm measurements on the device, the
# offline prediction of its architecture against what the device built, graphs, streams, an isolated driver cache.
#
#     tests/gpu_checks.sh [PYTHON]    PYTHON has warp-lang and numpy (default: python3); prints one line a check
#
# Exit code 0 if all checks passed, 1 if one failed, 2 if there is nothing to check on.
set -u

here=$(cd "$(dirname "$0")" && pwd)
python=${1:-python3}
probe=("$python" "$here/../scripts/warp_compile_probe.py")
work=$(mktemp -d "${TMPDIR:-/tmp}/wcp-gpu-XXXXXX")
trap 'rm -rf "$work"' EXIT
failed=0

check() { # check NAME COMMAND...: runs it; its output is shown where it fails
    local name=$1 from=$SECONDS
    shift
    if "$@" >"$work/output" 2>&1; then
        echo "ok      $name ($((SECONDS - from)) s)"
        sed -n 's/^NOTE /        /p' "$work/output"
    else
        failed=1
        echo "FAILED  $name ($((SECONDS - from)) s)"
        tail -n 40 "$work/output"
    fi
}

architecture=$("$python" - <<'PY' 2>/dev/null
import warp as wp
wp.config.quiet = True
wp.init()
print(wp.get_cuda_devices()[0].arch if wp.get_cuda_devices() else "")
PY
)
architecture=$(printf '%s\n' "$architecture" | tail -n 1)
if [[ ! $architecture =~ ^[0-9]+$ ]]; then
    echo "no CUDA device, or no Warp in $python: nothing to check" >&2
    exit 2
fi
echo "sm_$architecture, $("$python" -c 'import importlib.metadata as m; print("warp-lang", m.version("warp-lang"))')," \
    "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1), $(date -u +%Y-%m-%dT%H:%MZ)"

# Programs that run on the default device: the CUDA device, or the CPU where the probe hides it in an offline run.
cat >"$work/variants.py" <<'PY'
"""Two kernels of one module at a block_dim each, and one that is defined late."""
import warp as wp

@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] += 1.0

@wp.kernel
def second(x: wp.array(dtype=float)):
    x[wp.tid()] *= 2.0

x = wp.ones(1024, dtype=float)
wp.launch(first, 1024, inputs=[x], block_dim=64)
wp.launch(second, 1024, inputs=[x])

@wp.kernel
def third(x: wp.array(dtype=float)):
    x[wp.tid()] -= 3.0

wp.launch(third, 1024, inputs=[x], block_dim=64)
print(x.numpy()[:4])
PY
cat >"$work/tiles.py" <<'PY'
"""A small product of tiles, linked by MathDx, forward only."""
import warp as wp

wp.set_module_options({"enable_backward": False})

@wp.kernel
def product(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float)):
    i, j = wp.tid()
    total = wp.tile_zeros(shape=(16, 16), dtype=float)
    x = wp.tile_load(a, shape=(16, 16), offset=(i * 16, 0))
    y = wp.tile_load(b, shape=(16, 16), offset=(0, j * 16))
    wp.tile_matmul(x, y, total)
    wp.tile_store(c, total, offset=(i * 16, j * 16))

a, b, c = (wp.ones((16, 16), dtype=float) for _ in range(3))
wp.launch_tiled(product, dim=[1, 1], inputs=[a, b, c], block_dim=64)
print(c.numpy()[0, :4])
PY
cat >"$work/graph.py" <<'PY'
"""Three launches in a graph, replayed five times, and one launch on each of two streams."""
import warp as wp

@wp.kernel
def step(x: wp.array(dtype=float)):
    x[wp.tid()] += 1.0

x, y = (wp.zeros(1024, dtype=float, device="cuda:0") for _ in range(2))
wp.load_module(device="cuda:0")
with wp.ScopedCapture(device="cuda:0") as capture:
    for _ in range(3):
        wp.launch(step, 1024, inputs=[x], device="cuda:0")
for _ in range(5):
    wp.capture_launch(capture.graph)
for array in (x, y):
    stream = wp.Stream("cuda:0")
    wp.launch(step, 1024, inputs=[array], stream=stream)
    wp.synchronize_stream(stream)
wp.synchronize()
assert x.numpy()[0] == 16.0, x.numpy()[0]
assert y.numpy()[0] == 1.0, y.numpy()[0]
PY

# What the reports must say.
cat >"$work/judge.py" <<'PY'
import json
import sys

def identities(block, device):
    """{(name, hash, block_dim): artifacts linked} of the builds of the first cold run on a device."""
    found = {}
    for process in block["samples"][0]["cold"]["processes"]:
        for load in process["loads"]:
            if load["device"].startswith(device):
                found[load["name"], load["hash"], load["block_dim"]] = len(load["lto"])
    return found

def same_identities(path, architecture):
    report = json.load(open(path))
    block = report["offline"][f"sm_{architecture}"]
    real, predicted = identities(report, "cuda"), identities(block, "sm_")
    for line in sorted(set(real.items()) ^ set(predicted.items())):
        print("only", "on the device:" if line in real.items() else "offline:", line)
    assert real, "nothing was built on the device"
    assert real == predicted
    on_device = sum(load["phases"]["native_ms"] for load in loads(report, "cuda"))
    offline = sum(load["phases"]["native_ms"] for load in loads(block, "sm_"))
    print(f"NOTE {len(real)} identities, {sum(real.values())} LTO artifacts; native compile {on_device:.0f} ms on the"
          f" device's run, {offline:.0f} ms offline, ratio {on_device / offline:.2f}")

def loads(block, device):
    return [load for process in block["samples"][0]["cold"]["processes"] for load in process["loads"]
            if load["device"].startswith(device)]

def cold_and_warm(path):
    summary = json.load(open(path))["summary"]
    assert summary["builds"] >= 1, summary
    assert summary["warm_builds"] == 0, summary
    cold, warm = summary["cold_module_ms"]["median"], summary["warm_module_ms"]["median"]
    assert warm < cold, summary
    print(f"NOTE {summary['builds']} builds, {cold:.0f} ms cold, {warm:.1f} ms warm, {summary['launches']} launches")

def graph(path):
    report = json.load(open(path))
    summary = report["summary"]
    assert summary["launches"] == 3 * 5 + 2, summary["launches"]
    assert summary["graph_replays_unknown"] == 0, summary
    assert not report["coverage"]["gaps"], report["coverage"]
    for process in report["samples"][0]["cold"]["processes"]:
        for kernel in process["launches"]["kernels"]:
            assert kernel["device"] == "cuda:0", kernel
            assert kernel["block_dim"] == 256, kernel

globals()[sys.argv[1]](*sys.argv[2:])
PY

judge() { "$python" "$work/judge.py" "$@"; }
measure() { "${probe[@]}" measure --samples 1 --json "$work/$1.json" "${@:2}"; }

demo() { measure demo --demo && cold_and_warm_of demo; }
cold_and_warm_of() { judge cold_and_warm "$work/$1.json"; }
program() { measure "$1" --cuda-arch "$architecture" -- "$python" "$work/$1.py" && cold_and_warm_of "$1"; }
graphs() { measure graph -- "$python" "$work/graph.py" && judge graph "$work/graph.json"; }

# PTX goes through the driver's own compiler, whose cache must be private too.
driver_cache() {
    local cache=$work/home/.nv/ComputeCache
    mkdir -p "$cache"
    printf 'import warp as wp\nwp.config.cuda_output = "ptx"\n' | cat - "$work/variants.py" >"$work/ptx.py"
    HOME=$work/home measure ptx -- "$python" "$work/ptx.py" || return 1
    if [[ -n $(find "$cache" -type f) ]]; then
        echo "the user's driver cache was written to:"
        find "$cache" -type f
        return 1
    fi
}

check "demo, cold and warm" demo
check "variants on the device, cold and warm" program variants
check "variants: the same identities as offline" judge same_identities "$work/variants.json" "$architecture"
check "tiles on the device, cold and warm" program tiles
check "tiles: the same identities and LTO artifacts as offline" judge same_identities "$work/tiles.json" "$architecture"
check "graph capture, replays and streams are counted" graphs
check "the driver's cache of the user stays as it is" driver_cache
exit $failed
