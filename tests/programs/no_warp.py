"""A program without Warp.

Truth: builds=0
"""

import sys

print("no kernels here")
print("none here either", file=sys.stderr)
