"""Kernels, modules, loading and launching, in the order of 1.19."""

import hashlib
import os
import shutil
import threading
import weakref

import warp
from warp._src import build, codegen, types

runtime = None
user_modules = {}


class Function:
    def __init__(self, function):
        self.key = function.__qualname__
        self.module = get_module(function.__module__)
        self.adj = codegen.Adjoint(function)
        self.user_overloads = {"": self}
        self.user_templates = {}
        self.generic_parent = None
        self.native_snippet = None

    def __call__(self, *values):
        return self.adj.function(*values)


class Kernel:
    def __init__(self, function, options=None):
        self.func = function
        self.key = function.__qualname__
        self.module = get_module(function.__module__)
        self.options = options or {}
        self.adj = codegen.Adjoint(function)
        self.hash = None
        self.is_generic = False
        self.generic_parent = None
        self.module.register(self)


def func(function):
    return Function(function)


def kernel(function):
    return Kernel(function)


def get_module(name):
    if name not in user_modules:
        user_modules[name] = Module(name)
    return user_modules[name]


class ModuleHasher:
    def __init__(self, kernels, options):
        self.function_hashes = {}
        self.unique_kernels = {}
        for kernel in kernels:
            kernel.hash = self.hash_kernel(kernel, False)
        digest = hashlib.sha256(b"".join(sorted(self.unique_kernels)))
        for name in sorted(options):
            digest.update(f"{name}:{options[name]}".encode())
        self.hash = digest.digest()

    def hash_kernel(self, kernel, default_grid_stride):
        digest = hashlib.sha256(kernel.key.encode() + self.hash_adjoint(kernel.adj)).digest()
        self.unique_kernels[digest] = kernel
        return digest

    def hash_function(self, function):
        if function not in self.function_hashes:
            digest = hashlib.sha256(function.key.encode() + self.hash_adjoint(function.adj)).digest()
            self.function_hashes[function] = digest
        return self.function_hashes[function]

    def hash_adjoint(self, adj):
        digest = hashlib.sha256(adj.source.encode())
        constants, _, functions = adj.get_references()
        digest.update(repr(constants).encode())
        for function in functions:
            digest.update(self.hash_function(function))
        return digest.digest()


class ModuleBuilder:
    def __init__(self, module, options, hasher):
        self.module = module
        self.kernels = list(hasher.unique_kernels.values())

    def codegen(self, device):
        return "\n".join(kernel.adj.source for kernel in self.kernels)

    def build_meta(self):
        return {}


class KernelHooks:
    def __init__(self, forward, backward):
        self.forward = forward
        self.backward = backward


class ModuleExec:
    def __init__(self, handle, module_hash, device, meta, block_dim):
        self.handle = handle
        self.module_hash = module_hash
        self.device = device
        self.meta = meta
        self.block_dim = block_dim
        self.kernel_hooks = {}

    def get_kernel_hooks(self, kernel):
        hooks = self.kernel_hooks.get(kernel.hash)
        if hooks is None:
            function = kernel.func
            hooks = KernelHooks(lambda values: function(*values), lambda _: None)
            self.kernel_hooks[kernel.hash] = hooks
        return hooks


class Module:
    def __init__(self, name):
        self.name = name
        self.options = {"block_dim": 256, "enable_backward": warp.config.enable_backward}
        self.live_kernels = weakref.WeakSet()
        self.hashers = {}
        self.execs = {}
        self.lock = threading.RLock()

    def register(self, kernel):
        self.live_kernels.add(kernel)
        self.mark_modified()

    def mark_modified(self):
        self.hashers = {}

    def get_module_hash(self, block_dim):
        if block_dim not in self.hashers:
            kernels = sorted(self.live_kernels, key=lambda kernel: kernel.key)
            self.hashers[block_dim] = ModuleHasher(kernels, {**self.options, "block_dim": block_dim})
        return self.hashers[block_dim].hash

    def load(self, device, block_dim=None, binary_path=None, output_arch=None, meta_path=None):
        device = runtime.cpu_device
        active_block_dim = block_dim if block_dim is not None else self.options["block_dim"]
        with self.lock:
            loaded = self.execs.get((device.context, active_block_dim))
            if loaded is not None and loaded.module_hash == self.get_module_hash(active_block_dim):
                return loaded
            module_hash = self.get_module_hash(active_block_dim)
            name = f"Module {self.name} {module_hash.hex()[:7]} load on device '{device}'"
            with warp.ScopedTimer(name) as timer:
                folder = os.path.join(warp.config.kernel_cache_dir, f"wp_{self.name}_{module_hash.hex()[:7]}")
                try:
                    compiled = self._compile(device, folder, hasher=self.hashers[active_block_dim])
                except Exception:
                    timer.extra_msg = " (error)"
                    raise
                timer.extra_msg = " (compiled)" if compiled else " (cached)"
                runtime.llvm.wp_load_obj(folder.encode(), self.name.encode(), False)
                loaded = ModuleExec(self.name, module_hash, device, {}, active_block_dim)
                self.execs[device.context, active_block_dim] = loaded
            return loaded

    def _compile(self, device, folder, output_name=None, output_arch=None, use_ptx=None, options=None, hasher=None):
        if warp.config.cache_kernels and os.path.exists(os.path.join(folder, "module.o")):
            return False
        builder = ModuleBuilder(self, self.options, hasher)
        temporary = f"{folder}_p{os.getpid()}_t{threading.get_ident()}"
        os.makedirs(temporary)
        source = os.path.join(temporary, "module.cpp")
        with open(source, "w") as file:
            file.write(builder.codegen("cpu"))
        build.build_cpu(os.path.join(temporary, "module.o"), source)
        builder.build_meta()
        if not os.path.exists(folder):
            build.safe_rename(temporary, folder)
        shutil.rmtree(temporary, ignore_errors=True)
        return True


class Device:
    def __init__(self, alias):
        self.alias = alias
        self.name = "stub"
        self.context = None

    def __str__(self):
        return self.alias


class Library:
    def wp_load_obj(self, path, handle, legacy):
        return 0


class Runtime:
    def __init__(self):
        self.llvm = Library()
        self.core = Library()
        self.cpu_device = Device("cpu")
        self.cuda_devices = []
        self.toolkit_version = (13, 4)
        self.driver_version = None
        self.captures = {}
        self._apic_capture = None
        build.init_kernel_cache(warp.config.kernel_cache_dir)


def init():
    global runtime
    if runtime is None:
        runtime = Runtime()


class Tape:
    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        pass


def invoke(kernel, hooks, params, adjoint):
    (hooks.backward if adjoint else hooks.forward)(params[1:])


class Launch:
    def __init__(self, kernel, hooks, params, adjoint):
        self.kernel = kernel
        self.hooks = hooks
        self.params = params
        self.adjoint = adjoint

    def launch(self):
        invoke(self.kernel, self.hooks, self.params, self.adjoint)


def launch(kernel, dim, inputs=(), adjoint=False, record_cmd=False, block_dim=1):
    init()
    loaded = kernel.module.load(runtime.cpu_device, block_dim)
    hooks = loaded.get_kernel_hooks(kernel)
    dim = (dim,) if isinstance(dim, int) else tuple(dim)
    kept = kernel.adj.kernel_dim
    bounds = types.launch_bounds_t(dim[:kept])
    for extent in dim[kept:]:
        bounds.coord_mult *= extent
    bounds.size *= bounds.coord_mult
    params = [bounds, *inputs]
    if record_cmd:
        return Launch(kernel, hooks, params, adjoint)
    if runtime._apic_capture is not None:
        runtime._apic_capture.build_launch_info(kernel, loaded, hooks, params, inputs, adjoint)
    elif params[0].size:
        invoke(kernel, hooks, params, adjoint)
    return None


def force_load(device=None, modules=None, block_dim=None, max_workers=0):
    init()
    modules = list(user_modules.values()) if modules is None else modules
    if not max_workers:
        for module in modules:
            module.load(runtime.cpu_device, block_dim)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers) as executor:
        for future in [executor.submit(module.load, runtime.cpu_device, block_dim) for module in modules]:
            future.result()


class Graph:
    def __init__(self, capture):
        self.device = runtime.cpu_device
        self._apic_capture = capture
        self._native_graph = None


def capture_begin():
    init()
    from warp._src.apic.capture import APICapture

    runtime._apic_capture = APICapture()


def capture_end():
    graph = Graph(runtime._apic_capture)
    runtime._apic_capture = None
    return graph


def capture_launch(graph):
    for _, hooks, params, adjoint in graph._apic_capture.launches:
        (hooks.backward if adjoint else hooks.forward)(params[1:])


def capture_if(condition, on_true):
    on_true()


def capture_while(condition, while_body):
    while_body()
