"""Two threads of the program launch their first kernels at the same time.

Expect: CS-8 hint module=- at=launch
Expect: builds-overlapped hint module=- at=-
Expect (>=1.13): CS-12 hint module=- at=-
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
