"""BERT, nomic-bert in numpy, in float64, and uncased WordPiece by Python's unicodedata: what encoders are held to."""

import math
import unicodedata

import numpy as np

IDEOGRAPHS = [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F)]
IDEOGRAPHS += [(0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)]


def _is_punctuation(c: str) -> bool:
    return unicodedata.category(c).startswith("P") or (33 <= ord(c) < 127 and not c.isalnum())


def words(text: str) -> list[str]:
    """Cleaned, ideographs apart, decomposed without marks, in lower case; cut at white space and punctuation."""
    clean = ""
    for c in text:
        if c in "\t\n\r" or (c.isspace() and unicodedata.category(c) != "Cc"):
            clean += " "
        elif ord(c) != 0xFFFD and unicodedata.category(c) not in ("Cc", "Cf", "Co", "Cs"):
            is_ideograph = any(first <= ord(c) <= last for first, last in IDEOGRAPHS)
            clean += f" {c} " if is_ideograph else c
    plain = "".join(c for c in unicodedata.normalize("NFD", clean) if unicodedata.category(c) != "Mn")
    lower = "".join(c.lower() for c in plain)
    return "".join(f" {c} " if _is_punctuation(c) else c for c in lower).split()


def tokens(text: str, vocabulary: dict[str, int]) -> list[int]:
    """With [CLS] and [SEP]; the vocabulary is as vocab.txt has it."""
    ids = [vocabulary["[CLS]"]]
    for word in words(text):
        found: list[int] = []
        start = 0
        while start < len(word) and len(word) <= 100:
            prefix = "##" if start else ""
            ends = (end for end in range(len(word), start, -1) if prefix + word[start:end] in vocabulary)
            end = next(ends, None)
            if end is None:
                break
            found.append(vocabulary[prefix + word[start:end]])
            start = end
        ids += found if start == len(word) else [vocabulary["[UNK]"]]
    return [*ids, vocabulary["[SEP]"]]


def _norm(x, w, b, eps):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) * w + b


_erf = np.vectorize(math.erf)


def rows(ids: list[int], tensors: dict, config: dict, types: list[int] | None = None) -> np.ndarray:
    """The last layer's rows, [n, hidden_size]. tensors: by the names that the model's file has. types: of tokens."""

    def get(name):
        return tensors[name].astype(np.float64)

    def linear(x, name):
        return x @ get(f"{name}.weight").T + get(f"{name}.bias")

    def norm(x, name):
        return _norm(x, get(f"{name}.weight"), get(f"{name}.bias"), config["layer_norm_eps"])

    n, n_heads = len(ids), config["num_attention_heads"]
    x = get("embeddings.word_embeddings.weight")[ids]
    x = x + get("embeddings.position_embeddings.weight")[:n]
    x = x + get("embeddings.token_type_embeddings.weight")[types or [0] * n]
    x = norm(x, "embeddings.LayerNorm")
    for layer in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{layer}"
        q, k, v = (
            linear(x, f"{at}.attention.self.{part}").reshape(n, n_heads, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (weights / weights.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(n, -1)
        x = norm(x + linear(mixed, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm")
        up = linear(x, f"{at}.intermediate.dense")
        up = up * 0.5 * (1 + _erf(up / math.sqrt(2)))
        x = norm(x + linear(up, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    return x


def _rotated(x, base):
    """x: [heads, n, head_dim], token i turned by i * base^(-2j / head_dim) in the pair (j, j + head_dim / 2)."""
    n, half = x.shape[1], x.shape[2] // 2
    angles = np.arange(n)[:, None] * base ** (-np.arange(half) / half)
    first, second = x[..., :half], x[..., half:]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], -1)


def nomic_rows(ids: list[int], tensors: dict, config: dict) -> np.ndarray:
    """The same of nomic-bert."""

    def get(name):
        return tensors[f"{name}.weight"].astype(np.float64)

    def norm(x, name):
        return _norm(x, get(name), tensors[f"{name}.bias"].astype(np.float64), config["layer_norm_epsilon"])

    n, n_heads = len(ids), config["n_head"]
    x = norm(get("embeddings.word_embeddings")[ids] + get("embeddings.token_type_embeddings")[0], "emb_ln")
    for layer in range(config["n_layer"]):
        at = f"encoder.layers.{layer}"
        q, k, v = (x @ get(f"{at}.attn.Wqkv").T).reshape(n, 3, n_heads, -1).transpose(1, 2, 0, 3)
        q, k = _rotated(q, config["rotary_emb_base"]), _rotated(k, config["rotary_emb_base"])
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (weights / weights.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(n, -1)
        x = norm(x + mixed @ get(f"{at}.attn.out_proj").T, f"{at}.norm1")
        gate = x @ get(f"{at}.mlp.fc12").T
        up = x @ get(f"{at}.mlp.fc11").T * gate / (1 + np.exp(-gate))
        x = norm(x + up @ get(f"{at}.mlp.fc2").T, f"{at}.norm2")
    return x


def embedding(ids: list[int], tensors: dict, config: dict, pooling: str) -> np.ndarray:
    x = (nomic_rows if config["model_type"] == "nomic_bert" else rows)(ids, tensors, config)
    pooled = {"mean": x.mean(0), "cls": x[0], "last": x[-1]}[pooling]
    return pooled / np.linalg.norm(pooled)


def score(first: list[int], second: list[int], tensors: dict, config: dict) -> float:
    """Of a pair by a cross-encoder: both with [CLS] and [SEP], of which the second's [CLS] is left out."""
    named = {name.removeprefix("bert."): values.astype(np.float64) for name, values in tensors.items()}
    ids, types = first + second[1:], [0] * len(first) + [1] * (len(second) - 1)
    x = rows(ids, named, config, types)[0]
    if "pooler.dense.weight" in named:
        x = np.tanh(named["pooler.dense.weight"] @ x + named["pooler.dense.bias"])
    logit = named["classifier.weight"][0] @ x + named["classifier.bias"][0]
    return float(1 / (1 + np.exp(-logit)))
