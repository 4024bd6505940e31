"""A process that the fork server of multiprocessing makes builds and launches; the program itself does not.

Truth: builds=1 launches=1
"""

import multiprocessing

import warp as wp


@wp.kernel
def add(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


def work():
    x = wp.zeros(4, dtype=float, device="cpu")
    wp.launch(add, dim=4, inputs=[x], device="cpu")  # site: build
    print(x.numpy().tolist(), flush=True)


def main():
    process = multiprocessing.get_context("forkserver").Process(target=work)
    process.start()
    process.join()
    print("child ended with", process.exitcode)


if __name__ == "__main__":
    main()
