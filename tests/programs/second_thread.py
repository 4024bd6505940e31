"""The main thread launches 5 times, then a second thread launches 300 times: every third launch is over 8, not 4.

Truth: builds=1 launches=305
"""

import threading

import warp as wp


@wp.kernel
def add(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


def work():
    for step in range(300):
        wp.launch(add, dim=8 if step % 3 == 0 else 4, inputs=[x], device="cpu")


x = wp.zeros(8, dtype=float, device="cpu")
for _ in range(5):
    wp.launch(add, dim=8, inputs=[x], device="cpu")  # site: build
thread = threading.Thread(target=work)
thread.start()
thread.join()
print(x.numpy().tolist())
