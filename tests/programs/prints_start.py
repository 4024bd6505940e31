"""Prints, as JSON, how the interpreter looks to a program that has just started.

Truth: builds=0
"""

import sys

modules = sorted(sys.modules)
customized = sys.modules.get("sitecustomize")

import json

print(
    json.dumps(
        {
            "argv": sys.argv[1:],
            "flags": str(sys.flags),
            "modules": modules,
            "path": sys.path,
            "sitecustomize": customized and customized.__file__,
        }
    )
)
