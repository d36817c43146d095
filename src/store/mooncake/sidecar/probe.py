"""What this Python has of Mooncake and of the system libraries that Mooncake needs, as one line of JSON."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import sys
from importlib.util import find_spec

# Not in the package: the system brings them. Name for the loader, and the Debian package.
LIBRARIES = {
    "libibverbs.so.1": "libibverbs1",
    "libnuma.so.1": "libnuma1",
    "libcurl.so.4": "libcurl4",
    "libstdc++.so.6": "libstdc++6",
    "libgcc_s.so.1": "libgcc-s1",
}


def library_problem(name: str) -> str:
    """Why a library can't be loaded; empty when it can."""
    try:
        ctypes.CDLL(name)
    except OSError as error:
        return str(error)
    return ""


def wheel() -> dict[str, str]:
    """The installed package, and why it can't be imported."""
    try:
        spec = find_spec("mooncake")
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        return {"name": "", "version": "", "folder": "", "problem": "there is no package mooncake"}
    folder = list(spec.submodule_search_locations)[0]
    found = {"name": "", "version": "", "folder": folder, "problem": ""}
    for entry in os.listdir(os.path.dirname(folder)):
        if entry.startswith("mooncake_transfer_engine") and entry.endswith(".dist-info"):
            name, _, found["version"] = entry[: -len(".dist-info")].partition("-")
            found["name"] = name.replace("_", "-")
    try:
        import mooncake.store  # noqa: F401
    except Exception as error:
        found["problem"] = str(error)
    return found


def cuda() -> dict[str, object]:
    """The CUDA driver and how many devices it sees."""
    problem = library_problem("libcuda.so.1")
    if problem:
        return {"devices": 0, "problem": problem}
    driver = ctypes.CDLL("libcuda.so.1")
    code = driver.cuInit(0)
    devices = ctypes.c_int(0)
    if code == 0:
        code = driver.cuDeviceGetCount(ctypes.byref(devices))
    return {"devices": devices.value, "problem": f"the driver answers {code}" if code else ""}


if __name__ == "__main__":
    # What Mooncake prints when it is imported must not get into the answer.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    facts = {
        "python": platform.python_version(),
        "executable": sys.executable,
        "libraries": [
            {"name": name, "package": package, "problem": library_problem(name)}
            for name, package in LIBRARIES.items()
        ],
        "wheel": wheel(),
        "cuda": cuda(),
    }
    answer.write(json.dumps(facts) + "\n")
    answer.flush()
