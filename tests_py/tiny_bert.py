"""Writes a folder with a BERT or nomic-bert encoder of random weights, as sentence-transformers has such folders."""

import json
import pathlib
import struct

import numpy as np

DIM, FFN, HEADS, LAYERS, CONTEXT = 64, 96, 4, 2, 128
WORDS = ["the", "cat", "sat", "on", "mat", "hello", "world", "un", "cafe", "中", "国"]
PIECES = ["##ing", "##able", "##the", "##ᅡ", "##ᆫ"]
CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": DIM,
    "intermediate_size": FFN,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "max_position_embeddings": CONTEXT,
    "layer_norm_eps": 1e-12,
    "type_vocab_size": 2,
}


NOMIC_CONFIG = {
    "model_type": "nomic_bert",
    "activation_function": "swiglu",
    "n_embd": DIM,
    "n_inner": FFN,
    "n_head": HEADS,
    "n_layer": LAYERS,
    "n_positions": 2 * CONTEXT,
    "max_trained_positions": CONTEXT,
    "layer_norm_epsilon": 1e-12,
    "rotary_emb_base": 1000,
    "rotary_emb_fraction": 1.0,
    "rotary_emb_interleaved": False,
    "rotary_emb_scale_base": None,
    "qkv_proj_bias": False,
    "mlp_fc1_bias": False,
    "mlp_fc2_bias": False,
    "causal": False,
    "prenorm": False,
    "use_rms_norm": False,
    "type_vocab_size": 2,
    "vocab_size": 192,
}


def vocabulary() -> list[str]:
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)] + list("0123456789")
    marks = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]"]
    return special + letters + [f"##{c}" for c in letters] + marks + WORDS + PIECES + ["ᄒ", "ß", "##ß", "α", "##α"]


def tensors(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)

    def normal(*shape, scale=1.0):
        return rng.normal(0, scale, shape).astype(np.float32)

    def norm(name):
        return {f"{name}.weight": 1 + normal(DIM, scale=0.1), f"{name}.bias": normal(DIM, scale=0.1)}

    def linear(name, n_out, n_in):
        return {f"{name}.weight": normal(n_out, n_in, scale=n_in**-0.5), f"{name}.bias": normal(n_out, scale=0.1)}

    made = {
        "embeddings.word_embeddings.weight": normal(len(vocabulary()), DIM),
        "embeddings.position_embeddings.weight": normal(CONTEXT, DIM, scale=0.3),
        "embeddings.token_type_embeddings.weight": normal(2, DIM, scale=0.3),
        "embeddings.position_ids": np.arange(CONTEXT, dtype=np.int64)[None],
        "pooler.dense.weight": normal(DIM, DIM),
        **norm("embeddings.LayerNorm"),
    }
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            made |= linear(f"{at}.attention.self.{part}", DIM, DIM)
        made |= linear(f"{at}.attention.output.dense", DIM, DIM) | norm(f"{at}.attention.output.LayerNorm")
        made |= linear(f"{at}.intermediate.dense", FFN, DIM) | linear(f"{at}.output.dense", DIM, FFN)
        made |= norm(f"{at}.output.LayerNorm")
    return made


def nomic_tensors(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)

    def normal(*shape, scale=1.0):
        return rng.normal(0, scale, shape).astype(np.float32)

    def norm(name):
        return {f"{name}.weight": 1 + normal(DIM, scale=0.1), f"{name}.bias": normal(DIM, scale=0.1)}

    made = {
        "embeddings.word_embeddings.weight": normal(NOMIC_CONFIG["vocab_size"], DIM),
        "embeddings.token_type_embeddings.weight": normal(2, DIM, scale=0.3),
        **norm("emb_ln"),
    }
    shapes = {"attn.Wqkv": (3 * DIM, DIM), "attn.out_proj": (DIM, DIM)}
    shapes |= {"mlp.fc11": (FFN, DIM), "mlp.fc12": (FFN, DIM), "mlp.fc2": (DIM, FFN)}
    for layer in range(LAYERS):
        at = f"encoder.layers.{layer}"
        for name, shape in shapes.items():
            made[f"{at}.{name}.weight"] = normal(*shape, scale=shape[1] ** -0.5)
        made |= norm(f"{at}.norm1") | norm(f"{at}.norm2")
    return made


def cross_encoder_tensors(seed: int = 0) -> dict[str, np.ndarray]:
    """As BertForSequenceClassification with one label has them."""
    rng = np.random.default_rng(seed + 1000)
    made = {f"bert.{name}": values for name, values in tensors(seed).items()}
    for name, n_out in (("bert.pooler.dense", DIM), ("classifier", 1)):
        made[f"{name}.weight"] = rng.normal(0, DIM**-0.5, (n_out, DIM)).astype(np.float32)
        made[f"{name}.bias"] = rng.normal(0, 0.1, n_out).astype(np.float32)
    return made


def write_safetensors(path, values: dict[str, np.ndarray]) -> None:
    names = {np.dtype(np.float32): "F32", np.dtype(np.float16): "F16", np.dtype(np.int64): "I64"}
    header, data = {}, b""
    for name, array in values.items():
        raw = array.tobytes()
        header[name] = {
            "dtype": names[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write(folder: pathlib.Path, pooling: str = "mean", seed: int = 0, **config) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "1_Pooling").mkdir(exist_ok=True)
    modes = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token", "max": "pooling_mode_max_tokens"}
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({mode: mode == modes[pooling] for mode in modes.values()})
    )
    (folder / "config.json").write_text(json.dumps(CONFIG | config))
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in vocabulary()), encoding="utf-8")
    write_safetensors(folder / "model.safetensors", tensors(seed))


def write_nomic(folder: pathlib.Path, pooling: str = "mean", seed: int = 0, **config) -> None:
    write(folder, pooling, seed)
    (folder / "config.json").write_text(json.dumps(NOMIC_CONFIG | config))
    write_safetensors(folder / "model.safetensors", nomic_tensors(seed))


def write_cross_encoder(folder: pathlib.Path, seed: int = 0, **config) -> None:
    write(folder, "cls", seed, **config)
    write_safetensors(folder / "model.safetensors", cross_encoder_tensors(seed))
