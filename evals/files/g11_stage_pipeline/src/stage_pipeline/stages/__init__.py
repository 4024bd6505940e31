"""The stages, a module each: `run(signal)` takes and returns a 1-D Warp array of float32."""
