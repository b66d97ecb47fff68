"""Writes cpp/tokenizer/nfc_tables.cpp: what Unicode's normalization form C needs to know of each character.

Usage: python tests_py/make_nfc_tables.py cpp/tokenizer/nfc_tables.cpp
"""

import sys
import unicodedata

from make_wordpiece_tables import HANGUL, SURROGATES, among, wrapped


def class_runs() -> list[tuple[int, int, int]]:
    """(first, last, combining class) of neighbours with the same class other than 0."""
    runs: list[tuple[int, int, int]] = []
    for cp in range(0x110000):
        of = unicodedata.combining(chr(cp))
        if of == 0:
            continue
        if runs and runs[-1][1:] == (cp - 1, of):
            runs[-1] = (runs[-1][0], cp, of)
        else:
            runs.append((cp, cp, of))
    return runs


def decompositions() -> list[tuple[int, list[int]]]:
    """All that are canonical, carried through to the end. Hangul is left to code."""
    found = []
    for cp in range(0x110000):
        if among(cp, [SURROGATES, HANGUL]):
            continue
        to = [ord(c) for c in unicodedata.normalize("NFD", chr(cp))]
        if to != [cp]:
            assert 1 <= len(to) <= 4, hex(cp)
            found.append((cp, to))
    return found


def pairs() -> list[tuple[int, int, int]]:
    """(first, second, what they compose), ascending; exclusions are not there."""
    found = []
    for cp in range(0x110000):
        c, mapping = chr(cp), unicodedata.decomposition(chr(cp))
        if not mapping or mapping.startswith("<") or unicodedata.normalize("NFC", c) != c:
            continue
        first, second = (int(each, 16) for each in mapping.split())
        found.append((first, second, cp))
    return sorted(found)


def main(path: str) -> None:
    lines = [
        f"// Made by tests_py/make_nfc_tables.py from Unicode {unicodedata.unidata_version}; do not edit.",
        '#include "tokenizer/nfc_tables.h"',
        "",
        "// clang-format off",
        "namespace zinc_rt::nfc_tables {",
        "",
        "const ClassRun class_runs[] = {",
        *wrapped([f"{{0x{first:x},0x{last:x},{of}}}," for first, last, of in class_runs()]),
        "};",
        "const std::size_t n_class_runs = std::size(class_runs);",
        "const Decomposition decompositions[] = {",
        *wrapped([f"{{0x{cp:x},{{{','.join(f'0x{c:x}' for c in to)}}}}}," for cp, to in decompositions()]),
        "};",
        "const std::size_t n_decompositions = std::size(decompositions);",
        "const Pair pairs[] = {",
        *wrapped([f"{{0x{first:x},0x{second:x},0x{to:x}}}," for first, second, to in pairs()]),
        "};",
        "const std::size_t n_pairs = std::size(pairs);",
        "",
        "}  // namespace zinc_rt::nfc_tables",
    ]
    with open(path, "w") as out:
        out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
