"""Writes cpp/jinja/unicode_tables.cpp from this Python's own str methods, so that both agree by construction.

Usage: python tests_py/make_jinja_unicode.py cpp/jinja/unicode_tables.cpp
"""

import sys
import unicodedata

FLAGS = [
    "alpha",
    "decimal",
    "digit",
    "numeric",
    "lower",
    "upper",
    "title",
    "printable",
    "space",
    "case_ignorable",
    "cased",
    "ident",
]


def flags(cp: int) -> int:
    c = chr(cp)
    sigma = ("A" + c + "\u03a3").lower()[-1] == "\u03c2"
    sigma_alone = ("." + c + "\u03a3").lower()[-1] == "\u03c2"
    bits = [
        c.isalpha(),
        c.isdecimal(),
        c.isdigit(),
        c.isnumeric(),
        c.islower(),
        c.isupper(),
        unicodedata.category(c) == "Lt",
        c.isprintable(),
        c.isspace(),
        sigma and not sigma_alone,
        sigma_alone,
        ("a" + c).isidentifier(),
    ]
    return sum(1 << i for i, bit in enumerate(bits) if bit)


def case_runs(method: str) -> list[tuple[int, int, int, int]]:
    """(first, last, stride, delta) of one-to-one mappings."""
    runs: list[list[int]] = []
    for cp in range(0x110000):
        mapped = getattr(chr(cp), method)()
        if len(mapped) != 1 or mapped == chr(cp):
            continue
        delta = ord(mapped) - cp
        for run in runs[-2:]:
            stride = cp - run[1]
            if run[3] == delta and stride in (1, 2) and (run[0] == run[1] or run[2] == stride):
                run[1], run[2] = cp, stride
                break
        else:
            runs.append([cp, cp, 1, delta])
    return [tuple(run) for run in sorted(runs)]


def special(method: str) -> list[tuple[int, str]]:
    return [(cp, m) for cp in range(0x110000) if len(m := getattr(chr(cp), method)()) > 1]


def escaped(text: str) -> str:
    return "".join(f"\\x{b:02x}" for b in text.encode())


def main() -> None:
    out = [
        f"// Made by tests_py/make_jinja_unicode.py from Unicode {unicodedata.unidata_version}; do not edit.",
        '#include "jinja/unicode_tables.h"',
        "",
        "// clang-format off",
        "namespace zinc_rt::jinja::tables {",
        "",
    ]
    runs, last = [], None
    for cp in range(0x110000):
        f = 0 if 0xD800 <= cp < 0xE000 else flags(cp)
        if f != last:
            runs.append(f"{{{cp:#x},{f:#x}}}")
            last = f

    def emit(head: str, rows: list[str]) -> None:
        out.append(f"{head}[] = {{")
        line = "  "
        for row in rows:
            if len(line) + len(row) > 116:
                out.append(line)
                line = "  "
            line += row + ","
        out.extend([line, "};"])

    def count(name: str) -> None:
        out.extend([f"const std::size_t n_{name} = sizeof({name}) / sizeof({name}[0]);", ""])

    emit("const FlagRun flag_runs", runs)
    count("flag_runs")
    for name, method in (("upper", "upper"), ("lower", "lower"), ("title", "title"), ("fold", "casefold")):
        emit(f"const CaseRun {name}_runs", [f"{{{a:#x},{b:#x},{c:d},{d:d}}}" for a, b, c, d in case_runs(method)])
        count(f"{name}_runs")
        emit(f"const CaseSpecial {name}_special", [f'{{{cp:#x},"{escaped(m)}"}}' for cp, m in special(method)])
        count(f"{name}_special")
    out.append("}  // namespace zinc_rt::jinja::tables")
    with open(sys.argv[1], "w") as file:
        file.write("\n".join(out) + "\n")


main()
