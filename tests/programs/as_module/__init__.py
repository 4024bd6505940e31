"""A package that runs with `python -m as_module` from the folder of the programs.

Truth: builds=1 launches=1
"""
