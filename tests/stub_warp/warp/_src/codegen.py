"""What the hasher reads of a function."""

import inspect


class Var:
    def __init__(self, label, kind):
        self.label = label
        self.type = kind


class Adjoint:
    def __init__(self, function):
        self.function = function
        self.source = inspect.getsource(function)
        self.filename = function.__code__.co_filename
        self.fun_lineno = function.__code__.co_firstlineno
        self.fun_name = function.__name__
        self.arg_types = dict(function.__annotations__)
        self.args = [Var(label, kind) for label, kind in self.arg_types.items()]
        self.resolved_static_expressions = {}
        self.deferred_static_expressions = []
        self.kernel_dim = 1

    def get_references(self):
        from warp._src.context import Function

        names = inspect.getclosurevars(self.function)
        known = {**names.globals, **names.nonlocals}
        constants = {name: value for name, value in known.items() if isinstance(value, (int, float))}
        functions = {value: None for value in known.values() if isinstance(value, Function)}
        return constants, {}, functions
