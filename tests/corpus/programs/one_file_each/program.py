"""Three stable kernels of one feature, each in a Python file of its own: whether they belong together is not certain.

Expect: CS-4 hint module=- at=one_file_each_move.py:first
Run: together
"""

import one_file_each_bounce
import one_file_each_drag
import one_file_each_move
import warp as wp

x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(one_file_each_move.move, dim=4, inputs=[x], device="cpu")
wp.launch(one_file_each_drag.drag, dim=4, inputs=[x], device="cpu")
wp.launch(one_file_each_bounce.bounce, dim=4, inputs=[x], device="cpu")
