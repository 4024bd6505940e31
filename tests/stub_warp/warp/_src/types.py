"""Launch bounds in a class for each number of dimensions, and codes of types."""

import ctypes


def _bounds_class(ndim):
    fields = (("shape", ctypes.c_uint32 * ndim), ("size", ctypes.c_size_t), ("coord_mult", ctypes.c_size_t))
    return type(f"launch_bounds_{ndim}d_t", (ctypes.Structure,), {"_fields_": fields})


_classes = {ndim: _bounds_class(ndim) for ndim in range(1, 5)}


def launch_bounds_t(dim):
    bounds = _classes[len(dim)]()
    bounds.size = 1
    bounds.coord_mult = 1
    for axis, extent in enumerate(dim):
        bounds.shape[axis] = extent
        bounds.size *= extent
    return bounds


def type_repr(kind):
    return getattr(kind, "__name__", str(kind))


def get_type_code(kind):
    return type_repr(kind)[:2]
