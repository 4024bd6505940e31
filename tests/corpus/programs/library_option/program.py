"""An option of a library's module is set by its user after the library's first launch.

Expect: CS-3 redundant module=library_option_solver at=launch
Run: together
"""

import library_option_solver as solver
import warp as wp

x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(solver.relax, dim=4, inputs=[x], device="cpu")
module = wp.get_module("library_option_solver")
module.options["enable_backward"] = False
module.mark_modified()
wp.launch(solver.relax, dim=4, inputs=[x], device="cpu")  # here: launch
