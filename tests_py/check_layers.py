#!/usr/bin/env python3
"""The architecture as a check: which folder may include which. Prints the breaches and exits 1 if there are any.

ALLOWED is the whole table, lowest module first. A tier is a folder of ring/, an executor one of executor/: each may
know its own folder, never another one of its kind. A tier may also know its kernels.
"""

import pathlib
import re
import sys

ALLOWED = {
    "base": [],
    "model": ["base"],
    "jinja": ["base"],
    "tokenizer": ["base", "model"],
    "output": ["base"],
    "grammar": ["base", "tokenizer"],
    "ir": ["base"],
    "kernel": ["base", "ir"],
    "mem": ["base"],
    "spec": ["base"],
    "arch": ["base", "model", "ir"],
    "ring": ["base", "ir", "kernel"],
    "lower": ["base", "ir", "kernel", "mem", "ring"],
    "sched": ["base", "mem"],
    "executor": ["base", "model", "arch", "mem"],
    "vulkan": ["base", "model", "mem", "executor"],
    "engine": ["base", "model", "jinja", "tokenizer", "output", "grammar", "mem", "spec", "sched", "executor"],
    "client": ["base"],
    "hub": ["base", "client"],
    "server": ["base"],
    "browser": ["base", "server"],
    "tools": [
        *("base", "model", "tokenizer", "arch", "ir", "kernel", "lower", "ring", "sched", "executor"),
        *("server", "client", "hub"),
    ],
}
ONLY = {
    # A page has no sockets, tenants or files.
    ("browser", "server"): {"server/http", "server/api", "server/answers"},
    ("engine", "executor"): {"executor/executor.h", "executor/step.h"},
    # The peer backend shares the interface and the limits of steps, and nothing that makes or runs a graph.
    ("vulkan", "executor"): {f"executor/{name}.h" for name in ("executor", "kind", "sizes", "step", "step_check")},
}
# What a folder of a module may include besides.
FOLDER_ALSO = {("executor", "ring"): {"ir", "kernel", "ring", "lower"}}
# Modules whose folders are of one kind, and what these are called.
FOLDERS_OF = {"ring": "tier", "executor": "executor"}
# Folders that those of their kind share, and which of these each of them may itself include.
SHARED_FOLDERS = {("ring", "gpu"): set(), ("ring", "amd"): {"gpu"}}
# The folders of the server, lowest first, and which others each may include; "" is what lies in cpp/server itself.
INSIDE = {
    "server": {
        "http": set(),
        "transport": {"http"},
        "state": set(),
        "api": {"http"},
        "answers": {"http", "api"},
        "tenants": {"http", "state", "api"},
        "models": {"http", "api", "answers", "tenants"},
        # A batch asks the server as a client does, so it knows the router and what all endpoints share.
        "batches": {"http", "state", "api", "tenants", "models", ""},
        "": {"http", "transport", "state", "api", "answers", "tenants", "models", "batches"},
        "endpoints": {"http", "state", "api", "answers", "tenants", "models", "batches", ""},
    }
}
# A folder inside a module that is a library of its own: what it may include besides itself, and libraries that it may
# not. Its tests, in the folder of that name in tests_cpp, are held to the same.
LIBRARIES = {
    "server/http": ({"base", "zinc_rt/status.h"}, {"nlohmann"}),
    "server/transport": ({"base", "server/http", "zinc_rt/status.h"}, {"nlohmann"}),
    "vulkan/device": ({"base", "zinc_rt/status.h", "vulkan/vulkan_core.h"}, set()),
}
# kernels/common: constants, structs and names of operands that host and device share; modules that fill or read them
# may include it.
MAY_SEE_KERNELS_COMMON = {"model", "mem", "arch", "executor", "ring", "ir", "lower", "vulkan"}
# The table of weight formats, which converting needs and no module of the runtime may see (docs/design/model.md).
MAY_SEE_QUANT = {"tools"}
QUANT = "kernels/cpu/quant/quant.h"
# What the peer backend shares with its kernels.
VULKAN_PUSH = "kernels/vulkan/push.h"
# Which kernels a tier's folder may include.
TIER_KERNELS = {"cpu": {"common", "cpu", "cpu_simd"}, "amd": {"common", "rdna"}, "gpu": {"common"}}
# A test may include its module and all below it; these need more: to run a graph, or to compare with reference kernels.
TESTS_ALSO = {
    "model": {"kernels"},
    "ir": {"executor"},
    "arch": {"executor"},
    "lower": {"executor"},
    "engine": {"kernels"},
    "executor": {"kernels", *FOLDER_ALSO["executor", "ring"]},
    "peer": {"base", "model", "arch", "mem", "executor"},
    # A comparison with T-CPU has both sides.
    "vulkan": {"arch", "ir", "ring", "kernel", "lower", "kernels", "engine"},
    "kernels": {"base", "ir", "lower", "ring"},
    "amx_sim": {"kernels"},
    "amd_sim": {"base", "kernels", "ring"},
    "cuda_sim": {"ring"},
    "platforms": {"base", "executor", "kernels"},
    "fuzz": {"base", "model", "jinja", "tokenizer", "output", "grammar", "ir", "kernel", "ring", "executor", "server"},
}
# The Python extension: the public headers, the text tools that need no engine, and the program.
BINDINGS_MAY_SEE = {"base", "model", "jinja", "sched", "tokenizer", "tools"}
PUBLIC = "zinc_rt"
# What prints, and may throw or end the process where a text cannot be written; base/print.h does neither.
PRINTS = re.compile(
    r"\b(?:fmt|std)::(?:print|println)\s*\(|\bstd::(?:cout|cerr|clog|wcout|wcerr)\b"
    r"|\b(?:std::)?(?:printf|puts|putchar|perror|vprintf)\s*\(|\b(?:stdout|stderr)_(?:color_)?sink|\bstd(?:out|err)\s*[,)]"
)
PRINT_FILES = {
    "base/print.cpp",  # the one place
    "tools/line_editor.cpp",  # editline takes the three streams
    "ring/cuda/pack/zrt_pack.cpp",  # a tool of the build
}
# Headers that not all systems have; the folders of PLATFORM have the sources of one system or of some.
PLATFORM = "base/platform/"
OF_SOME_SYSTEMS = re.compile(
    r"(?:linux|mach|os|wasi)/.*|(?:sched|malloc|stdio_ext|execinfo)\.h"
    r"|sys/(?:auxv|epoll|event|eventfd|inotify|mman|prctl|syscall|sysctl|sysinfo)\.h"
)
# These map the memory of devices that only Linux has, and are built there alone.
MAPS_DEVICES = {"ring/kfd/kfd_device.cpp", "ring/amd/drm_device.cpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
SYSTEM_INCLUDE = re.compile(r"^\s*#\s*include\s+<([^>]+)>")
OURS = {*ALLOWED, PUBLIC, "kernels", "tests_cpp"}
SOURCES = {".h", ".cpp", ".cu"}
PRINTING_FOLDERS = {"cpp", "kernels", "python/zinc_rt/_core"}


def includes(path, pattern=INCLUDE):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := pattern.match(line):
            yield number, match[1]


def library_breach(parts, target):
    """Why a file of the library in <parts> may not include the target; None if it may, or is of no such library."""
    for library, (allowed, not_from) in LIBRARIES.items():
        if parts[:-1] != tuple(library.split("/")):
            continue
        top, folder = target.split("/")[0], target.rpartition("/")[0]
        if folder == library or {target, top, folder} & allowed:
            return None
        if top in OURS or top in not_from:
            return f"{library} may not include {target}"
    return None


def folder_breach(parts, target):
    """Why a file of cpp/<parts> may not include the target of another folder of its module; None if it may."""
    to = target.split("/")
    if parts[0] not in INSIDE or to[0] != parts[0]:
        return None
    folder, other = (path[1] if len(path) > 2 else "" for path in (parts, to))
    rows = INSIDE[parts[0]]
    if folder not in rows:
        return f"folder {parts[0]}/{folder} is not in the table"
    where = f"{parts[0]}/{folder}".rstrip("/")
    return None if other in rows[folder] | {folder} else f"{where} may not include {target}"


def module_breach(parts, target):
    """Why a file of cpp/<parts> may not include the target; None if it may."""
    if why := library_breach(parts, target) or folder_breach(parts, target):
        return why
    module, to = parts[0], target.split("/")
    if module == "include":
        return None if to[0] == PUBLIC else "public headers include only public headers and the standard library"
    if (target == QUANT and module in MAY_SEE_QUANT) or (target == VULKAN_PUSH and module == "vulkan"):
        return None
    if to[0] == "kernels":
        if module == "ring" and len(parts) > 2:
            allowed = TIER_KERNELS.get(parts[1], {"common", parts[1]})
            return None if to[1] in allowed else f"tier {parts[1]} may not include kernels/{to[1]}"
        return (
            None
            if to[1] == "common" and module in MAY_SEE_KERNELS_COMMON
            else f"{module} may not include kernels/{to[1]}"
        )
    if to[0] in (PUBLIC, module):
        what = FOLDERS_OF.get(module) if to[0] == module and len(to) > 2 else None
        shared = {folder for of, folder in SHARED_FOLDERS if of == module}
        may_see = {parts[1], *SHARED_FOLDERS.get((module, parts[1]), shared)}
        if what and len(parts) > 2 and to[1] not in may_see:
            return f"{what} {parts[1]} may not include {what} {to[1]}"
        if list(parts[2:3]) == ["plan"] and to[:2] == ["ring", parts[1]] and to[2] != "plan":
            return f"the plans of tier {parts[1]} need no device: they may not include what does"
        if what and len(parts) == 2:
            return f"what all folders of {module} share may not include one of them"
        return None
    if to[0] not in OURS:
        return None  # a library's header
    if to[0] in FOLDER_ALSO.get(tuple(parts[:2]), ()):
        return None
    if to[0] not in ALLOWED.get(module, []):
        return f"{module} may not include {to[0]}"
    only = ONLY.get((module, to[0]))
    if only and not {target, target.rpartition("/")[0]} & only:
        return f"{module} may include only {', '.join(sorted(only))} of {to[0]}"
    return None


def prints(path):
    """The lines that print: what is in a comment or a text is passed over."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if PRINTS.search(re.sub(r'"(?:\\.|[^"\\])*"|//.*', "", line)):
            yield number


def kernel_breach(parts, target):
    """kernels/common knows itself alone; a target also common and base, cpu_simd the cpu that it speeds up."""
    to = target.split("/")
    if to[0] == "kernels":
        also = {"cpu"} if parts[0] == "cpu_simd" else set()
        return None if to[1] in {"common", parts[0]} | also else f"kernels/{parts[0]} may not include kernels/{to[1]}"
    if to[0] in OURS and not (to[0] == "base" and parts[0] != "common"):
        return f"kernels/{parts[0]} may not include {to[0]}"
    return None


def tests_breach(parts, target):
    if why := library_breach(parts, target):
        return why
    module, to = parts[0], target.split("/")
    if to[0] == "tests_cpp":
        # Helpers of the tests below.
        allowed = {module, "base", *ALLOWED.get(module, []), *TESTS_ALSO.get(module, ())}
        return None if to[1] in allowed else f"tests of {module} may not include tests of {to[1]}"
    allowed = {PUBLIC, module, *ALLOWED.get(module, []), *TESTS_ALSO.get(module, ())}
    return f"tests of {module} may not include {to[0]}" if to[0] in OURS - allowed else None


def binding_breach(parts, target):
    to = target.split("/")[0]
    return f"the Python extension may not include {to}" if to in OURS - BINDINGS_MAY_SEE - {PUBLIC} else None


CHECKS = {
    "cpp": module_breach,
    "kernels": kernel_breach,
    "tests_cpp": tests_breach,
    "python/zinc_rt/_core": binding_breach,
}


def breaches(root):
    for folder, check in CHECKS.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            parts = path.relative_to(root / folder).parts
            if folder == "cpp" and parts[0] not in ALLOWED and parts[0] != "include":
                yield f"{path.relative_to(root)}: module {parts[0]} is not in the table"
            for number, target in includes(path):
                why = (
                    "includes name a path from the include root" if ".." in target.split("/") else check(parts, target)
                )
                if why:
                    yield f"{path.relative_to(root)}:{number}: {why}"
            if folder in PRINTING_FOLDERS and "/".join(parts) not in PRINT_FILES:
                for number in prints(path):
                    yield f"{path.relative_to(root)}:{number}: base/print.h prints, so that no message ends a process"
            for number, target in includes(path, SYSTEM_INCLUDE):
                why = library_breach(parts, target)
                if (
                    folder in PRINTING_FOLDERS
                    and OF_SOME_SYSTEMS.fullmatch(target)
                    and "/".join(parts[:-2]) + "/" != PLATFORM
                    and not (target == "sys/mman.h" and "/".join(parts) in MAPS_DEVICES)
                ):
                    why = f"not all systems have <{target}>: only a folder of cpp/{PLATFORM} may include it"
                if why:
                    yield f"{path.relative_to(root)}:{number}: {why}"


if __name__ == "__main__":
    found = list(breaches(pathlib.Path(__file__).resolve().parent.parent))
    print("\n".join(found) or "layers: ok")
    sys.exit(bool(found))
