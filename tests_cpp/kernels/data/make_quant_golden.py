"""Writes quant_golden.bin: blocks of every quantized format and their values as the PyPI package `gguf` sees them.

Run: pip install gguf numpy; python make_quant_golden.py
Layout, little endian: per format u32 length of the name, name (as zinc_rt spells it), u32 n_elements, u32 n_bytes,
the blocks, n_elements f32 values.
"""

import struct
from pathlib import Path

import gguf
import numpy as np

# Bytes of a block at which its f16 scales lie.
SCALES = {
    "F16": [],
    "BF16": [],
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "IQ4_NL": [0],
    "IQ4_XS": [0],
    "MXFP4": [],
}


def main() -> None:
    rng = np.random.default_rng(7)
    out = b""
    for name, scales in SCALES.items():
        qtype = gguf.GGMLQuantizationType[name]
        elems, size = gguf.GGML_QUANT_SIZES[qtype]
        n_blocks = 64 if elems == 1 else 8 if elems == 32 else 3
        blocks = rng.integers(0, 256, (n_blocks, size), dtype=np.uint8)
        for b in range(n_blocks):
            for at in scales:
                # Ordinary scales, then a subnormal one and the largest.
                value = [6e-6, 65504.0][b - n_blocks] if b >= n_blocks - 2 else rng.normal() * 0.01
                blocks[b, at : at + 2] = np.array([value], np.float16).view(np.uint8)
        if elems == 1:  # no NaN: its payload is not the same everywhere
            bits = blocks.view(np.uint16)
            bits &= np.uint16(0xBFFF)
        if name == "MXFP4":
            blocks[:, 0] = [0, 1, 2, 100, 127, 128, 200, 250]
        values = gguf.quants.dequantize(blocks.reshape(1, -1), qtype).astype(np.float32)
        assert values.size == n_blocks * elems and np.isfinite(values).all()
        key = name.lower().encode()
        out += struct.pack("<I", len(key)) + key + struct.pack("<II", values.size, blocks.size)
        out += blocks.tobytes() + values.tobytes()
    (Path(__file__).parent / "quant_golden.bin").write_bytes(out)


main()
