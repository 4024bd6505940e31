"""A kernel is called by JAX, from compiled code, through a callback: no `wp.launch` anywhere.

Truth: builds=1 launches=2
"""

import jax
import jax.numpy as jnp
import warp as wp
from warp import jax_kernel


@wp.kernel
def triple(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 3.0 * x[i]


call = jax.jit(jax_kernel(triple))
for number in range(2):
    print(call(jnp.full(8, number, dtype=jnp.float32))[0].tolist())
