"""Two threads of the program launch their first kernels at the same time.

Expect: CS-8 hint module=- at=launch
Expect: builds-overlapped hint module=- at=-
Expect (>=1.13): CS-12 hint module=- at=-

Warp 1.19 may name the binary of one of them wrongly in the cache, and the next start then builds it again:

May (>=1.19): second-run-build hint module=- at=launch
"""

import threading

import warp as wp


@wp.kernel(module="parallel_launches.a")
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


@wp.kernel(module="parallel_launches.b")
def second(x: wp.array(dtype=float)):
    x[wp.tid()] = 2.0


wp.init()
arrays = [wp.zeros(4, dtype=float, device="cpu") for _ in range(2)]
barrier = threading.Barrier(2)


def work(kernel, x):
    barrier.wait()
    wp.launch(kernel, dim=4, inputs=[x], device="cpu")  # here: launch


threads = [threading.Thread(target=work, args=pair) for pair in zip((first, second), arrays, strict=True)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
