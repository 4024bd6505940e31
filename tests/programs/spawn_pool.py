"""A pool of spawned workers, one after the other, each for one task: each builds its own instance of a generic kernel.

Truth: builds=2 launches=2
"""

import multiprocessing
from typing import Any

import warp as wp


@wp.kernel
def twice(x: wp.array(dtype=Any)):
    i = wp.tid()
    x[i] = x[i] + x[i]


def work(dtype):
    x = wp.full(4, 3, dtype=dtype, device="cpu")
    wp.launch(twice, dim=4, inputs=[x], device="cpu")  # site: build
    return x.numpy().tolist()


def main():
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, maxtasksperchild=1) as pool:
        print(pool.map(work, [float, int], chunksize=1))
        pool.close()
        pool.join()


if __name__ == "__main__":
    main()
