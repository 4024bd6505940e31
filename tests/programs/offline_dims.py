"""Kernels of one module at two block_dims, and one that only the CUDA compiler refuses.

On a CUDA device: `__main__` at block_dim 64 and 256, and the module of `broken` fails at 256. Launches at 64: two of
`scale` and its adjoint, three of `shift` by a recorded launch; at 256 one of `scale` and one of `broken`. With the
argument `hashes` it only prints the hashes that Warp gives `__main__` before anything is loaded.
"""

import sys

import warp as wp


@wp.func_native("""
#ifdef __CUDA_ARCH__
this is not C++;
#endif
""")
def refused_by_cuda(): ...


@wp.kernel
def scale(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def shift(x: wp.array(dtype=float)):
    x[wp.tid()] += 1.0


@wp.kernel(module="unique")
def broken(x: wp.array(dtype=float)):
    refused_by_cuda()
    x[wp.tid()] += 1.0


def main():
    x = wp.ones(32, dtype=float, device="cpu", requires_grad=True)
    y = wp.zeros(32, dtype=float, device="cpu", requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(scale, 32, inputs=[x, y], device="cpu", block_dim=64)
    tape.backward(grads={y: wp.ones(32, dtype=float, device="cpu")})
    wp.launch(scale, 32, inputs=[x, y], device="cpu", block_dim=64)
    wp.launch(scale, 32, inputs=[x, y], device="cpu")
    wp.launch(broken, 32, inputs=[x], device="cpu", block_dim=0)
    command = wp.launch(shift, 32, inputs=[x], device="cpu", block_dim=64, record_cmd=True)
    for _ in range(3):
        command.launch()
    print(x.numpy().tolist(), x.grad.numpy().tolist(), y.numpy().tolist())


def print_hashes():
    wp.init()
    for block_dim in (64, 256):
        module = scale.module
        module.mark_modified()
        module.options["block_dim"] = block_dim
        print(block_dim, module.get_module_hash(block_dim).hex())


if sys.argv[1:] == ["hashes"]:
    print_hashes()
else:
    main()
