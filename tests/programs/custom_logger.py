"""Warp's messages go to a logger of the program, which keeps them to itself. Needs Warp 1.14.

Truth: builds=1 launches=1
"""

import warp as wp


class Collector:
    def __init__(self):
        self.messages = []

    def debug(self, message):
        self.messages.append(message)

    def info(self, message):
        self.messages.append(message)

    def warning(self, message, category=None, stacklevel=1):
        self.messages.append(message)

    def error(self, message):
        self.messages.append(message)


@wp.kernel
def add(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


collector = Collector()
wp.set_logger(collector)
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(add, dim=4, inputs=[x], device="cpu")  # site: build
print(x.numpy().tolist(), sum(message.startswith("Module ") for message in collector.messages))
