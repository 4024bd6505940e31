"""Fails before it launches anything, with a few lines on standard error and exit code 3.

Truth: builds=0
"""

import sys

print("looking for a device")
for number in range(30):
    print("no device", number, file=sys.stderr)
print("giving up", file=sys.stderr)
sys.exit(3)
