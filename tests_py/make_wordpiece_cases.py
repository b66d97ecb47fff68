"""Writes tests_cpp/tokenizer/data/wordpiece.json: texts and their ids by the package `tokenizers`, with a small vocabulary.

Run by hand, with that package installed: python tests_py/make_wordpiece_cases.py tests_cpp/tokenizer/data/wordpiece.json

Characters whose properties Unicode changed after the tables of that package are left out: Python's own tables, from which
ours are made, are newer.
"""

import json
import pathlib
import random
import sys

import tokenizers

import bert_oracle
import tiny_bert

BY_HAND = [
    "",
    " ",
    "the cat sat on the mat",
    "The CAT's mat, on-mat!",
    "Hello, world! hello-world",
    "unable thesing cats",
    "Café ÉLAN naïve Zürich Åland Øre ß ẞ",
    "中国 in the中cat 한국 ハロー",
    "x" * 100,
    "x" * 101,
    "the\u0301 ﬁ ǅ ς Σ İ ı Å K",
    "tabs\tand\nlines\r\nand\u00a0wide\u3000spaces\u2003here",
    "zero\u200bwidth\u200djoin\ufeffbom\u00adsoft",
    "control\x01\x02\x7f\x9fand\ufffdnone",
    "a\u0000b",
    "😀 the 🎉cat",
    "1234567890 3.14 $5 €5 50%",
    "[unused0] [MASKED] ##s ## #the",
    "¿qué? «oui» „ja“ – — … ‘’",
    "α Α ά Ά",
    "ᄒ ᅡ ᆫ 하 한",
    "≠ ≮ ; · `",
]


def texts() -> list[str]:
    rng = random.Random(7)
    blocks = [
        *range(32, 0x250),
        *range(0x370, 0x400),
        *range(0x410, 0x450),
        *range(0x5D0, 0x5EB),
        *range(0xAC00, 0xAC40),
    ]
    alphabet = [chr(c) for c in [*blocks, *range(0x2010, 0x2040), *range(0x4E00, 0x4E20), 0x3042, 0x30CF, 0x1F600]]
    words = tiny_bert.vocabulary()
    made = ["".join(rng.choices(alphabet, k=rng.randrange(1, 40))) for _ in range(200)]
    plain = [word.removeprefix("##") for word in words if not word.startswith("[")]
    made += ["".join(rng.choices([*plain, " ", " "], k=rng.randrange(1, 30))) for _ in range(100)]
    return BY_HAND + made


def main(path: str) -> None:
    vocabulary = {token: i for i, token in enumerate(tiny_bert.vocabulary())}
    tokenizer = tokenizers.BertWordPieceTokenizer(vocabulary)
    cases = []
    for text in texts():
        ids = tokenizer.encode(text).ids
        if ids == bert_oracle.tokens(text, vocabulary):
            cases.append([text, ids])
        else:
            print(f"differs from Python's tables: {text!r}", file=sys.stderr)
    lines = ",\n".join(json.dumps(case) for case in cases)
    out = f'{{"vocabulary": {json.dumps(list(vocabulary))},\n"cases": [\n{lines}\n]}}\n'
    pathlib.Path(path).parent.mkdir(exist_ok=True)
    pathlib.Path(path).write_text(out)


if __name__ == "__main__":
    main(sys.argv[1])
