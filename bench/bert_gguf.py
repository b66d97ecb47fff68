"""Makes a GGUF file of a BERT or nomic-bert encoder: a folder as sentence-transformers has it (config.json,
model.safetensors, vocab.txt or tokenizer.json, 1_Pooling/config.json).

Example: python bench/bert_gguf.py all-MiniLM-L6-v2 -o minilm.gguf --type f16

Matrices are stored as they are or as f16, norms and biases as f32. The head that BERT was trained with (pooler) is left
out, since sentence embeddings do not use it. A cross-encoder (BertForSequenceClassification with one label, as
ms-marco-MiniLM) keeps it: pooler and classifier become cls and cls.output, and the pooling is rank.
"""

import argparse
import json
import math
import pathlib
import re
import struct

import numpy as np

import gguf_file

DTYPES = {"F32": np.float32, "F16": np.float16}
WHOLE = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
    "emb_ln": "token_embd_norm",
}
LAYER = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
    # Of nomic-bert. fc12 goes through SiLU.
    "attn.Wqkv": "attn_qkv",
    "attn.out_proj": "attn_output",
    "norm1": "attn_output_norm",
    "mlp.fc11": "ffn_up",
    "mlp.fc12": "ffn_gate",
    "mlp.fc2": "ffn_down",
    "norm2": "layer_output_norm",
}
CLASSIFIER = {"pooler.dense": "cls", "classifier": "cls.output"}
LEFT_OUT = ("embeddings.position_ids", "bert.embeddings.position_ids")
POOLING = {"pooling_mode_mean_tokens": 1, "pooling_mode_cls_token": 2, "pooling_mode_lasttoken": 3}
RANK = 4
NORMAL, CONTROL, UNUSED = 1, 3, 5
# GGUF has the key of [SEP] in this spelling.
SPECIAL = {"padding": "[PAD]", "unknown": "[UNK]", "cls": "[CLS]", "seperator": "[SEP]", "mask": "[MASK]"}


def read_safetensors(path) -> dict[str, np.ndarray]:
    """The tensors of a file, as arrays over its bytes."""
    raw = np.memmap(path, np.uint8, "r")
    (n,) = struct.unpack("<Q", raw[:8].tobytes())
    if n > len(raw) - 8:
        raise ValueError(f"[bert_gguf] {path}: its header has {n} bytes, {len(raw) - 8} are there")
    tensors = {}
    for name, entry in json.loads(raw[8 : 8 + n].tobytes()).items():
        if name == "__metadata__" or name.startswith(LEFT_OUT):
            continue
        if entry["dtype"] not in DTYPES:
            raise ValueError(f"[bert_gguf] tensor {name} of type {entry['dtype']}: one of {', '.join(DTYPES)} wanted")
        first, last = (8 + n + offset for offset in entry["data_offsets"])
        wanted = math.prod(entry["shape"]) * np.dtype(DTYPES[entry["dtype"]]).itemsize
        if last - first != wanted or last > len(raw):
            raise ValueError(f"[bert_gguf] tensor {name}: {last - first} bytes there, {wanted} wanted")
        tensors[name] = raw[first:last].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def gguf_name(name: str) -> str:
    """embeddings.LayerNorm.bias -> token_embd_norm.bias; encoder.layer.3.output.dense.bias -> blk.3.ffn_down.bias"""
    stem, part = name.removeprefix("bert.").rsplit(".", 1)
    if stem in WHOLE | CLASSIFIER:
        return f"{(WHOLE | CLASSIFIER)[stem]}.{part}"
    if match := re.fullmatch(r"encoder\.layers?\.(\d+)\.(.*)", stem):
        layer, rest = match.groups()
        if rest in LAYER:
            return f"blk.{layer}.{LAYER[rest]}.{part}"
    raise ValueError(f"[bert_gguf] tensor {name} is not one that BERT or nomic-bert has")


def gguf_token(token: str) -> str:
    """BERT writes "##" before what goes on a word; GGUF a mark before what begins one."""
    if token in SPECIAL.values():
        return token
    return token[2:] if token.startswith("##") else "\u2581" + token


def vocabulary(folder: pathlib.Path) -> list[str]:
    if (folder / "vocab.txt").exists():
        return (folder / "vocab.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    model = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    if model.get("type") != "WordPiece":
        raise ValueError(f"[bert_gguf] tokenizer.json has a model of type {model.get('type')}, WordPiece wanted")
    tokens = {i: token for token, i in model["vocab"].items()}
    if set(tokens) != set(range(len(tokens))):
        raise ValueError(f"[bert_gguf] tokenizer.json has {len(tokens)} tokens, the last with the id {max(tokens)}")
    return [tokens[i] for i in range(len(tokens))]


def tokenizer_metadata(tokens: list[str], n_rows: int) -> dict:
    """`n_rows`: of the table, which may have more than there are tokens, so that it is a multiple of 64."""
    missing = [token for token in SPECIAL.values() if token not in tokens]
    if missing:
        raise ValueError(f"[bert_gguf] the vocabulary of {len(tokens)} tokens has no {', '.join(missing)}")
    rest = range(len(tokens), n_rows)
    return {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.tokens": [gguf_token(token) for token in tokens] + [f"[PAD{i}]" for i in rest],
        "tokenizer.ggml.token_type": [CONTROL if token in SPECIAL.values() else NORMAL for token in tokens]
        + [UNUSED for _ in rest],
        **{f"tokenizer.ggml.{role}_token_id": tokens.index(token) for role, token in SPECIAL.items()},
    }


def pooling_of(folder: pathlib.Path) -> int:
    path = folder / "1_Pooling" / "config.json"
    modes = json.loads(path.read_text()) if path.exists() else {"pooling_mode_mean_tokens": True}
    wanted = [name for name, is_on in modes.items() if name.startswith("pooling_mode_") and is_on]
    if len(wanted) != 1 or wanted[0] not in POOLING:
        raise ValueError(f"[bert_gguf] {path} asks for {', '.join(wanted)}: one of {', '.join(POOLING)} wanted")
    return POOLING[wanted[0]]


def want(config: dict, wanted: dict, absent: dict) -> None:
    """What the engine computes; `absent`: what a key means where it is not there."""
    for key, value in wanted.items():
        there = config.get(key, absent.get(key))
        if there != value:
            raise ValueError(f"[bert_gguf] config.json: {key} {there!r}, {value!r} wanted")


def bert_metadata(config: dict) -> dict:
    want(config, {"hidden_act": "gelu", "position_embedding_type": "absolute"}, {"position_embedding_type": "absolute"})
    return {
        "block_count": config["num_hidden_layers"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.layer_norm_epsilon": float(config["layer_norm_eps"]),
    }


def nomic_metadata(config: dict) -> dict:
    wanted = {"activation_function": "swiglu", "rotary_emb_fraction": 1.0, "causal": False, "prenorm": False}
    wanted |= dict.fromkeys(["qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "rotary_emb_interleaved"], False)
    wanted |= {"use_rms_norm": False, "rotary_emb_scale_base": None}
    want(config, wanted, {"causal": False, "prenorm": False, "use_rms_norm": False, "rotary_emb_interleaved": False})
    return {
        "block_count": config["n_layer"],
        # Beyond these the angles are to be scaled, which is an option of whoever runs it.
        "context_length": config.get("max_trained_positions", config["n_positions"]),
        "embedding_length": config["n_embd"],
        "feed_forward_length": config["n_inner"],
        "attention.head_count": config["n_head"],
        "attention.layer_norm_epsilon": float(config["layer_norm_epsilon"]),
        "rope.freq_base": float(config["rotary_emb_base"]),
    }


# model_type -> architecture, its keys.
KINDS = {"bert": ("bert", bert_metadata), "nomic_bert": ("nomic-bert", nomic_metadata)}


def metadata_of(folder: pathlib.Path, config: dict, is_cross_encoder: bool = False) -> dict:
    if config.get("model_type") not in KINDS:
        raise ValueError(f"[bert_gguf] model_type {config.get('model_type')!r}, one of {', '.join(KINDS)} wanted")
    architecture, metadata = KINDS[config["model_type"]]
    return {
        "general.architecture": architecture,
        "general.name": folder.resolve().name,
        **{f"{architecture}.{key}": value for key, value in metadata(config).items()},
        f"{architecture}.attention.causal": False,
        f"{architecture}.pooling_type": RANK if is_cross_encoder else pooling_of(folder),
        "tokenizer.ggml.token_type_count": config["type_vocab_size"],
        **tokenizer_metadata(vocabulary(folder), config.get("vocab_size", 0)),
    }


def read_config(folder: pathlib.Path) -> dict:
    return json.loads((folder / "config.json").read_text())


def convert(folder, out, kind: str = "f32") -> None:
    folder = pathlib.Path(folder)
    config = read_config(folder)
    number = gguf_file.TYPES[kind].number
    as_type = {"f32": np.float32, "f16": np.float16}[kind]
    tensors, there = {}, read_safetensors(folder / "model.safetensors")
    is_cross_encoder = "classifier.weight" in there
    if is_cross_encoder and len(there["classifier.weight"]) != 1:
        raise ValueError(f"[bert_gguf] classifier.weight has {len(there['classifier.weight'])} labels, 1 wanted")
    for name, values in there.items():
        if not is_cross_encoder and name.removeprefix("bert.").startswith("pooler."):
            continue
        is_matrix = values.ndim > 1
        data = values.astype(as_type if is_matrix else np.float32)
        tensors[gguf_name(name)] = (data.shape, number if is_matrix else gguf_file.F32, data.tobytes())
    gguf_file.write(out, metadata_of(folder, config, is_cross_encoder), tensors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("-o", "--out", required=True)
    parser.add_argument("--type", choices=["f32", "f16"], default="f32", help="of matrices")
    arguments = parser.parse_args()
    convert(arguments.folder, arguments.out, arguments.type)


if __name__ == "__main__":
    main()
