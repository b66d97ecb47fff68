#!/usr/bin/env python3
"""Encode speed of the tokenizers: 10 MB of mixed text (English, code, Cyrillic, CJK, emoji) on one core.

usage: .venv/bin/python bench/tokenizer.py BPE.gguf SPM.gguf

BPE.gguf: a byte-level vocabulary with merges, SPM.gguf: a SentencePiece one. The first is also measured under the
pre-tokenizers of other families, and in the forms of Gemma 3 (SentencePiece, score = -id, 152k tokens for qwen2's) and
Gemma 4 (merges over characters), so that large vocabularies of these kinds are measured where no such file is at hand.
Prints processor time, the best of three runs, the result as a Python list included. English and code are the standard
library's own texts, so the ids differ a little from one Python version to another; the other scripts are random words
with Zipf frequencies.
"""

import bisect
import itertools
import pathlib
import pydoc_data.topics
import random
import struct
import sys
import sysconfig
import tempfile
import time

import zinc_rt

PART_BYTES = 2_000_000
FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
PRE_TOKENIZERS = ["qwen2", "llama-bpe", "gpt-4o", "tekken", "smollm", "refact", "default", "deepseek-v3"]


def cut(text):
    """The first PART_BYTES bytes of a text, without half a character."""
    return text.encode()[:PART_BYTES].decode(errors="ignore")


def english():
    paragraphs = [p for topic in pydoc_data.topics.topics.values() for p in topic.split("\n\n")]
    draw = random.Random(1)
    text = []
    while sum(map(len, text)) < PART_BYTES:
        draw.shuffle(paragraphs)
        text.append("\n\n".join(paragraphs))
    return cut("".join(text))


def code():
    text, size = [], 0
    for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text.append(path.read_text(errors="ignore"))
        size += len(text[-1])
        if size > PART_BYTES:
            break
    return cut("".join(text))


def zipf(units, n, draw):
    """n picks, the k-th unit with a frequency of 1/k."""
    sums = list(itertools.accumulate(1 / k for k in range(1, len(units) + 1)))
    return (units[bisect.bisect_left(sums, draw.random() * sums[-1])] for _ in range(n))


def cyrillic():
    draw = random.Random(2)
    letters = "оооооеееееааааиииинннтттссрррввлллккммддппууяяыьгзбчйхжшюцщэфё"
    lexicon = ["".join(draw.choices(letters, k=draw.randint(1, 12))) for _ in range(50_000)]
    marks = [" "] * 16 + [", ", ". ", " — ", ".\n"]
    return cut("".join(w + draw.choice(marks) for w in zipf(lexicon, PART_BYTES // 10, draw)))


def cjk():
    draw = random.Random(3)
    characters = [chr(c) for c in range(0x4E00, 0x9FA0)]
    draw.shuffle(characters)
    common = characters[:4000]
    kana = [chr(c) for c in range(0x3042, 0x3094)] + [chr(c) for c in range(0x30A2, 0x30F7)]
    hangul = [chr(c) for c in range(0xAC00, 0xD7A4, 7)]
    words = ["".join(draw.choices(common, k=draw.randint(1, 3))) for _ in range(30_000)]
    words += ["".join(draw.choices(kana, k=draw.randint(2, 6))) for _ in range(8_000)]
    words += ["".join(draw.choices(hangul, k=draw.randint(1, 4))) + " " for _ in range(8_000)]
    draw.shuffle(words)
    marks = [""] * 8 + ["，", "。", "、", "。\n"]
    return cut("".join(w + draw.choice(marks) for w in zipf(words, PART_BYTES // 4, draw)))


def emoji():
    draw = random.Random(4)
    faces = [chr(c) for c in range(0x1F300, 0x1FAFF)]
    units = [" ", "!", "so ", "lol ", "great ", "\n", "\ufe0f", "\u200d", *faces]
    return cut("".join(draw.choices(units, weights=[200] * 8 + [1] * len(faces), k=PART_BYTES // 2)))


def metadata(path):
    """The keys and values of a GGUF file."""
    data = pathlib.Path(path).read_bytes()

    def string(at):
        (size,) = struct.unpack_from("<Q", data, at)
        return data[at + 8 : at + 8 + size], at + 8 + size

    def value(kind, at):
        if kind == 8:
            return string(at)
        if kind != 9:
            return struct.unpack_from("<" + FORMATS[kind], data, at)[0], at + struct.calcsize(FORMATS[kind])
        inner, n = struct.unpack_from("<IQ", data, at)
        at += 12
        if inner != 8:
            return list(struct.unpack_from(f"<{n}{FORMATS[inner]}", data, at)), at + n * struct.calcsize(FORMATS[inner])
        out = []
        for _ in range(n):
            text, at = string(at)
            out.append(text)
        return out, at

    out, at = {}, 24
    for _ in range(struct.unpack_from("<Q", data, 16)[0]):
        key, at = string(at)
        (kind,) = struct.unpack_from("<I", data, at)
        out[key.decode()], at = value(kind, at + 4)
    return out


def write(path, keys):
    """A GGUF file of these keys and no tensors."""

    def string(raw):
        return struct.pack("<Q", len(raw)) + raw

    def value(v):
        if isinstance(v, bytes):
            return struct.pack("<I", 8) + string(v)
        if isinstance(v, bool):
            return struct.pack("<I?", 7, v)
        if isinstance(v, int):
            return struct.pack("<II", 4, v)
        if isinstance(v[0], bytes):
            return struct.pack("<IIQ", 9, 8, len(v)) + b"".join(map(string, v))
        kind, code = (6, "f") if isinstance(v[0], float) else (5, "i")
        return struct.pack("<IIQ", 9, kind, len(v)) + struct.pack(f"<{len(v)}{code}", *v)

    body = b"".join(string(k.encode()) + value(v) for k, v in keys.items())
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + body)


def from_byte_alphabet(text):
    """What a token of a byte-level vocabulary stands for; None where that is no UTF-8 text."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    table = {(b if b in printable else next(spare)): b for b in range(256)}

    def convert(token):
        try:
            return bytes(table[ord(c)] for c in token.decode()).decode().replace(" ", "\u2581").encode()
        except (KeyError, UnicodeDecodeError):
            return None

    return [convert(token) for token in text]


def gemma_forms(keys):
    """The vocabulary of a byte-level file in the forms of Gemma 3 and Gemma 4."""
    texts = from_byte_alphabet(keys["tokenizer.ggml.tokens"])
    tokens, types = [b"<unk>", b"<bos>", b"<eos>"], [2, 3, 3]
    tokens += [b"<0x%02X>" % b for b in range(256)]
    types += [6] * 256
    seen = set(tokens)
    for text in texts:
        if text and text not in seen and not (len(text) == 1 and text in b"\n"):
            seen.add(text)
            tokens.append(text)
            types.append(1)
    # Characters that are no token of their own, as vocabularies of these kinds have them.
    singles = sorted({c.encode() for t in tokens[259:] for c in t.decode()} - seen)
    tokens += singles
    types += [1] * len(singles)
    roles = {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0}
    base = {f"tokenizer.ggml.{k}": v for k, v in roles.items()}
    base |= {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types}
    spm = base | {"tokenizer.ggml.model": b"llama", "tokenizer.ggml.add_space_prefix": False}
    spm["tokenizer.ggml.scores"] = [float(-i) for i in range(len(tokens))]
    merges = []
    for line in keys["tokenizer.ggml.merges"]:
        left, right = from_byte_alphabet(line.split(b" ", 1))
        if left and right and b"\n" not in left + right:
            merges.append(left + b" " + right)
    bpe = base | {"tokenizer.ggml.model": b"gemma4", "tokenizer.ggml.merges": merges}
    return {"gemma 3 form": spm, "gemma 4 form": bpe}


def variants(bpe_path, spm_path, folder):
    keys = metadata(bpe_path)
    for pre in PRE_TOKENIZERS:
        path = folder / f"{pre}.gguf"
        write(
            path, {k: v for k, v in keys.items() if k.startswith("tokenizer.")} | {"tokenizer.ggml.pre": pre.encode()}
        )
        yield f"{pathlib.Path(bpe_path).stem} as {pre}", path
    yield pathlib.Path(spm_path).stem, spm_path
    for name, form in gemma_forms(keys).items():
        path = folder / f"{name}.gguf"
        write(path, form)
        yield f"{pathlib.Path(bpe_path).stem} as {name}", path


def best_seconds(tokenizer, text):
    times = []
    for _ in range(3):
        begin = time.process_time()
        ids = tokenizer.encode(text, False, False)
        times.append(time.process_time() - begin)
    if tokenizer.decode(ids) != text:
        print("  the text did not come back")
    return min(times), len(ids)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    parts = {"english": english(), "code": code(), "cyrillic": cyrillic(), "cjk": cjk(), "emoji": emoji()}
    whole = "".join(parts.values())
    print(f"{'':42} {'10 MB':>8} {'ids':>9}   MB/s of each part: {', '.join(parts)}")
    with tempfile.TemporaryDirectory() as folder:
        for name, path in variants(sys.argv[1], sys.argv[2], pathlib.Path(folder)):
            tokenizer = zinc_rt.Tokenizer(str(path))
            seconds, n_ids = best_seconds(tokenizer, whole)
            speeds = [len(t.encode()) / 1e6 / best_seconds(tokenizer, t)[0] for t in parts.values()]
            print(f"{name:42} {seconds:7.3f}s {n_ids:9}   {' '.join(f'{s:5.1f}' for s in speeds)}", flush=True)


if __name__ == "__main__":
    main()
