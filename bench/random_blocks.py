"""Random weights in the formats of model files.

All bits of a block but those of its scale are drawn evenly, so that each code, sub-block scale and minimum occurs;
the scale is then set so that the weights have the wanted standard deviation. Their mean is zero: the minimum sees to
it, and where a format has none, scales of either sign do, as in files of real models.
"""

import math
from typing import NamedTuple

import numpy as np

from gguf_file import TYPES

_CHUNK_BYTES = 1 << 22


class Scale(NamedTuple):
    at: int  # byte of the block's f16 scale d
    unit: float  # standard deviation of the block's values where d = 1
    min_at: int | None = None  # byte of its f16 minimum
    min_ratio: float = 0.0  # minimum / d that makes the mean zero


def _rms(values) -> float:
    return math.sqrt(np.mean(np.square(np.asarray(values, dtype=np.float64))))


def _unit_with_minimum(n_scales: int, n_codes: int) -> float:
    """Of sc * q - mean(q) * m with sc and m drawn evenly from n_scales values, q from n_codes."""
    sc, q = np.arange(n_scales), np.arange(n_codes)
    products = (sc[:, None] * q).ravel()
    return _rms((products[:, None] - q.mean() * sc).ravel())


_IQ4 = _rms([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])
_SIX_BITS = _rms(range(-32, 32))
_FP4 = _rms([0, 1, 2, 3, 4, 6, 8, 12])
_ODD_4 = _rms(range(1, 33, 2))  # scales of IQ2 and IQ3: 2 s + 1 of four bits
_ODD_3 = _rms(range(1, 17, 2))  # of IQ1: of three bits
# Of the values of a grid, all points drawn evenly.
_IQ2_XXS, _IQ2_XS, _IQ2_S, _IQ3_XXS, _IQ3_S, _IQ1 = 23.12, 24.22, 24.43, 30.85, 7.594, 6.247

SCALES = {
    "q4_0": Scale(0, _rms(range(-8, 8))),
    "q4_1": Scale(0, _rms(np.arange(16) - 7.5), 2, -7.5),
    "q5_0": Scale(0, _rms(range(-16, 16))),
    "q5_1": Scale(0, _rms(np.arange(32) - 15.5), 2, -15.5),
    "q8_0": Scale(0, _rms(range(-128, 128))),
    "iq4_nl": Scale(0, _IQ4),
    "q2_k": Scale(80, _unit_with_minimum(16, 4), 82, 1.5),
    "q3_k": Scale(108, _SIX_BITS * _rms(range(-4, 4))),
    "q4_k": Scale(0, _unit_with_minimum(64, 16), 2, 7.5),
    "q5_k": Scale(0, _unit_with_minimum(64, 32), 2, 15.5),
    "q6_k": Scale(208, _rms(range(-128, 128)) * _SIX_BITS),
    "iq4_xs": Scale(0, _SIX_BITS * _IQ4),
    "iq3_s": Scale(0, _ODD_4 * _IQ3_S),
    "iq3_xxs": Scale(0, _ODD_4 * _IQ3_XXS / 4),
    "iq2_s": Scale(0, _ODD_4 * _IQ2_S / 8),
    "iq2_xs": Scale(0, _ODD_4 * _IQ2_XS / 8),
    "iq2_xxs": Scale(0, _ODD_4 * _IQ2_XXS / 8),
    "iq1_s": Scale(0, _ODD_3 * _IQ1 / 8),
    "iq1_m": Scale(48, _ODD_3 * _IQ1 / 8),  # d is in the highest bits of four words
    "tq2_0": Scale(64, math.sqrt(0.75)),  # codes 0, 0, 1 and 2
    "tq1_0": Scale(52, 0.8173),  # of all bytes, though files do not have all
}


def _mxfp4_exponents(n: int, std: float, rng) -> np.ndarray:
    """Powers of two 2^k and 2^(k+1), mixed so that the mean square is that of std."""
    wanted = std / _FP4
    k = math.floor(math.log2(wanted))
    upper = ((wanted / 2.0**k) ** 2 - 1) / 3
    return (k + 128 + (rng.random(n) < upper)).astype(np.uint8)


def _nvfp4_scales(shape, std: float, rng) -> np.ndarray:
    """Neighbours among the 8-bit floats, mixed so that the mean square is that of std."""
    bits = np.arange(0x7F)
    values = np.where(bits < 8, np.ldexp(1.0 * bits, -10), np.ldexp(8.0 + bits % 8, bits // 8 - 11))
    upper = int(np.searchsorted(values, std / _FP4))
    low, high = np.square(values[upper - 1 : upper + 1])
    is_high = rng.random(shape) < ((std / _FP4) ** 2 - low) / (high - low)
    return (bits[upper - 1] + is_high).astype(np.uint8)


def random_blocks(kind: str, n: int, std: float, rng) -> np.ndarray:
    """n blocks of a format (of a float format: n values) as bytes, [n, bytes a block]."""
    n_bytes = TYPES[kind].block_bytes
    if TYPES[kind].block_elems == 1:
        values = rng.standard_normal(n, dtype=np.float32) * np.float32(std)
        if kind == "bf16":
            values = (values.view(np.uint32) >> 16).astype(np.uint16)
        return np.ascontiguousarray(values.astype("<f2") if kind == "f16" else values).view(np.uint8).reshape(n, -1)
    words = rng.integers(0, 1 << 64, -(-n * n_bytes // 8), dtype=np.uint64)
    raw = words.view(np.uint8)[: n * n_bytes].reshape(n, n_bytes)
    if kind == "mxfp4":
        raw[:, 0] = _mxfp4_exponents(n, std, rng)
        return raw
    if kind == "nvfp4":
        raw[:, :4] = _nvfp4_scales((n, 4), std, rng)
        return raw
    scale = SCALES[kind]
    d = std / scale.unit * (0.75 + 0.5 * rng.random(n))
    if scale.min_at is None:
        d *= rng.choice([-1.0, 1.0], n)
    d = d.astype("<f2")
    if kind == "iq1_m":
        nibbles = d.view("<u2")[:, None] >> np.array([0, 4, 8, 12], np.uint16) & 15
        words = raw[:, scale.at :].view("<u2")
        words[:] = words & 0x0FFF | nibbles << 12
        return raw
    if kind == "tq2_0":  # no weight is 2
        code_3 = raw[:, :64] & raw[:, :64] >> 1 & 0x55
        raw[:, :64] &= ~(code_3 * np.uint8(3))
    raw[:, scale.at : scale.at + 2] = d.view(np.uint8).reshape(n, 2)
    if scale.min_at is not None:
        minimum = (d.astype(np.float64) * scale.min_ratio).astype("<f2")
        raw[:, scale.min_at : scale.min_at + 2] = minimum.view(np.uint8).reshape(n, 2)
    return raw


def stream(kind: str, n_elems: int, std: float, rng):
    """Chunks of bytes of n_elems random weights. REQUIRES: whole blocks."""
    left = n_elems // TYPES[kind].block_elems
    most = max(1, _CHUNK_BYTES // TYPES[kind].block_bytes)
    while left:
        n = min(left, most)
        yield random_blocks(kind, n, std, rng).tobytes()
        left -= n
