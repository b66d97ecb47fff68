"""Writes cpp/tokenizer/wordpiece_tables.cpp: what BERT's uncased normalizer does to each character.

Usage: python tests_py/make_wordpiece_tables.py cpp/tokenizer/wordpiece_tables.cpp
"""

import sys
import unicodedata

KEEP, SPACE, DROP, PUNCTUATION, IDEOGRAPH = "kKeep", "kSpace", "kDrop", "kPunctuation", "kIdeograph"
IDEOGRAPHS = [
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
]
SURROGATES, HANGUL = (0xD800, 0xDFFF), (0xAC00, 0xD7A3)


def among(cp: int, ranges) -> bool:
    return any(first <= cp <= last for first, last in ranges)


def kind(cp: int) -> str:
    c, category = chr(cp), unicodedata.category(chr(cp))
    if c in "\t\n\r" or (c.isspace() and category != "Cc"):
        return SPACE
    if cp == 0xFFFD or category in ("Cc", "Cf", "Co", "Cs") or category == "Mn":
        return DROP
    if among(cp, IDEOGRAPHS):
        return IDEOGRAPH
    if category.startswith("P") or 33 <= cp < 127 and not c.isalnum():
        return PUNCTUATION
    return KEEP


def fold(cp: int) -> list[int]:
    """Decomposed, without marks, in lower case. Hangul is left to code."""
    plain = [c for c in unicodedata.normalize("NFD", chr(cp)) if unicodedata.category(c) != "Mn"]
    return [ord(each) for c in plain for each in c.lower() if unicodedata.category(each) != "Mn"]


def wrapped(items: list[str]) -> list[str]:
    lines = [""]
    for item in items:
        if len(lines[-1]) + len(item) > 118:
            lines.append("")
        lines[-1] += item
    return ["  " + line for line in lines]


def main(path: str) -> None:
    runs: list[tuple[int, str]] = []
    folds: list[tuple[int, list[int]]] = []
    for cp in range(0x110000):
        of = kind(cp)
        if not runs or runs[-1][1] != of:
            runs.append((cp, of))
        if of in (SPACE, DROP) or among(cp, [SURROGATES, HANGUL]):
            continue
        if (to := fold(cp)) != [cp]:
            assert 1 <= len(to) <= 3, hex(cp)
            folds.append((cp, to))
    lines = [
        f"// Made by tests_py/make_wordpiece_tables.py from Unicode {unicodedata.unidata_version}; do not edit.",
        '#include "tokenizer/wordpiece_tables.h"',
        "",
        "// clang-format off",
        "namespace zinc_rt::wordpiece_tables {",
        "",
        "const KindRun kind_runs[] = {",
        *wrapped([f"{{0x{cp:x},{of}}}," for cp, of in runs]),
        "};",
        "const std::size_t n_kind_runs = std::size(kind_runs);",
        "const Fold folds[] = {",
        *wrapped([f"{{0x{cp:x},{{{','.join(f'0x{c:x}' for c in to)}}}}}," for cp, to in folds]),
        "};",
        "const std::size_t n_folds = std::size(folds);",
        "",
        "}  // namespace zinc_rt::wordpiece_tables",
    ]
    with open(path, "w") as out:
        out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
