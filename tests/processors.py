"""Other processors that numba compiles for, where this one can run what it makes."""

from __future__ import annotations

import platform

import pytest

_FEATURES = {
    "generic": "",
    "haswell": "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+avx,+avx2,+fma,+bmi,+bmi2,+f16c,+popcnt,+lzcnt,+cx16,+movbe",
}


def compiled_for(processor: str) -> dict[str, str]:
    """The environment of a process whose kernels are those of this processor; skips where they cannot run."""
    if processor != "generic":
        binding = pytest.importorskip("llvmlite.binding")
        here = binding.get_host_cpu_features() if platform.machine() in ("x86_64", "AMD64") else {}
        if not all(here.get(name[1:]) for name in _FEATURES[processor].split(",")):
            pytest.skip(f"this processor runs no code for {processor}")
    return {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": _FEATURES[processor]}
