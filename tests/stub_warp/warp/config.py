"""The stand-in's configuration; Warp 1.19 has its module class replaced too."""

import sys
import types

version = "1.19.0"
kernel_cache_dir = None
log_level = 20
cache_kernels = True
verbose = False
enable_backward = True


class _ConfigModule(types.ModuleType):
    def __setattr__(self, name, value):
        if name == "log_level" and not isinstance(value, int):
            raise ValueError(f"log_level must be a number, got {value!r}")
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _ConfigModule
