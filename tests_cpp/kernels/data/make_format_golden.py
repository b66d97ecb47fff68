"""Writes format_golden.bin: blocks of the formats with grids, of the ternary ones, of MXFP4 and NVFP4, with their
values as ggml and the PyPI package `gguf` see them, and exact integer sums of products with int8 activations.

Run: python make_format_golden.py formats.npz, where the archive has x i8[512] and per TYPE raw u8[rows, bytes], deq
f32[rows, 512], isum i32[rows, n] (n parts of equal length; the sub-scale is included) and d f32[rows, n], by which a
sum is multiplied. Two rows of each type are written.
Layout, little endian: 512 bytes x; per format u32 length of the name, name (as zinc_rt spells it), u32 bytes of a row,
u32 n, and per row the blocks, 512 f32 values, n i32 sums, n f32 d.
"""

import struct
import sys
from pathlib import Path

import numpy as np


def main() -> None:
    npz = np.load(sys.argv[1])
    out = npz["x"].tobytes()
    for name in sorted({key.split("/")[0] for key in npz.files} - {"x"}):
        raw, values, sums, scales = (npz[f"{name}/{field}"][:2] for field in ("raw", "deq", "isum", "d"))
        key = name.lower().encode()
        out += struct.pack("<I", len(key)) + key + struct.pack("<II", raw.shape[1], sums.shape[1])
        for row in range(len(raw)):
            out += raw[row].tobytes() + values[row].tobytes() + sums[row].tobytes() + scales[row].tobytes()
    (Path(__file__).parent / "format_golden.bin").write_bytes(out)


main()
