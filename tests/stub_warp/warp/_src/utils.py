"""The timer around every load."""

import time

import warp


class ScopedTimer:
    def __init__(self, name, active=True):
        self.name = name
        self.active = active
        self.extra_msg = ""

    def __enter__(self):
        self.start = time.perf_counter()
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        self.elapsed = (time.perf_counter() - self.start) * 1000.0
        if self.active and warp.config.log_level <= 20:
            print(f"{self.name} took {self.elapsed:.2f} ms {self.extra_msg}")
