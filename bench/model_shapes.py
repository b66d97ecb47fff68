"""What a model file of each family holds: metadata keys, tensor names and shapes; and the shapes of some known models.

SIZES has the true shapes of known models, tiny(family, width) shapes for tests, in which every matrix row has a
multiple of `width` elements. shape_metadata and shape_tensors give a file's contents; all values are random.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


@dataclasses.dataclass(frozen=True)
class Ssm:
    k_heads: int
    v_heads: int
    k_dim: int
    inner_dim: int
    conv_width: int = 4


@dataclasses.dataclass(frozen=True)
class Latent:
    """Latent attention: widths of the compressed rows, and of a head's parts."""

    q_rank: int
    kv_rank: int
    nope: int
    rotated: int
    values: int


@dataclasses.dataclass(frozen=True)
class Shape:
    """A tuple has one entry a layer."""

    arch: str
    model_dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int | tuple
    head_dim: int
    ffn_dim: int | tuple
    vocab_size: int = 320
    context: int = 512
    tied: bool = True
    rope_theta: float = 10000.0
    norm_eps: float = 1e-6
    n_experts: int = 0
    n_experts_used: int = 0
    expert_ffn_dim: int = 0
    shared_ffn_dim: int = 0
    n_dense_layers: int = 0  # the first layers, which have no experts
    latent: Latent | None = None
    ssm: Ssm | None = None
    is_recurrent: tuple = ()
    is_sliding: tuple = ()
    window: int = 0
    sliding_head_dim: int = 0
    per_layer_dim: int = 0
    n_shared_kv_layers: int = 0
    rope_divisors: bool = False
    scales: tuple = ()  # (key, value) of multipliers and other numbers that only the metadata has
    long_rope_from: int = 0  # the original context, where there are two sets of RoPE factors


class Tensor(NamedTuple):
    name: str
    shape: tuple
    values: Callable | None  # rng -> f32 array of a vector or a small table; None: a matrix, of any type


def at(per_layer, layer: int):
    return per_layer[layer] if isinstance(per_layer, tuple) else per_layer


# Families with Mamba 2, and those of them whose layers are one mixer each and whose networks have no gate.
MAMBA2 = ("granitehybrid", "nemotron_h", "nemotron_h_moe")
NEMOTRONS = ("nemotron_h", "nemotron_h_moe")
LFM2 = ("lfm2", "lfm2moe")


def has_delta_nets(s: Shape) -> bool:
    return s.ssm is not None and s.arch not in MAMBA2


# Metadata


def tokenizer_metadata(vocab_size: int) -> dict:
    """A byte-level vocabulary with few merges; all further tokens are fillers."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    alphabet = [chr(b) if b in printable else chr(next(spare)) for b in range(256)]
    merges = [("t", "h"), ("th", "e"), ("i", "n"), ("a", "n"), (alphabet[32], "the")]
    tokens = alphabet + [a + b for a, b in merges] + ["<|start|>", "<|end|>"]
    if vocab_size < len(tokens):
        raise ValueError(f"[model_shapes] a vocabulary needs {len(tokens)} tokens or more, {vocab_size} asked for")
    types = [1] * (len(tokens) - 2) + [3, 3]
    types += [1] * (vocab_size - len(tokens))
    start = len(tokens) - 2
    tokens += [f"<unused{i}>" for i in range(len(tokens), vocab_size)]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": [f"{a} {b}" for a, b in merges],
        "tokenizer.ggml.bos_token_id": start,
        "tokenizer.ggml.eos_token_id": start + 1,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": "{% for m in messages %}<|start|>{{ m.role }}: {{ m.content }}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant: {% endif %}",
    }


def shape_metadata(s: Shape, name: str) -> dict:
    keys = {
        "block_count": s.n_layers,
        "context_length": s.context,
        "embedding_length": s.model_dim,
        "attention.head_count": s.n_heads,
        "attention.head_count_kv": s.n_kv_heads,
        "attention.key_length": s.head_dim,
        "attention.value_length": s.head_dim,
        f"attention.layer_norm_{'' if s.arch in ('cohere2', *NEMOTRONS) else 'rms_'}epsilon": s.norm_eps,
        "rope.freq_base": s.rope_theta,
        **dict(s.scales),
    }
    if s.arch != "qwen35moe":
        keys["feed_forward_length"] = s.ffn_dim
    if s.n_experts:
        keys |= {
            "expert_count": s.n_experts,
            "expert_used_count": s.n_experts_used,
            "expert_feed_forward_length": s.expert_ffn_dim,
        }
    if s.shared_ffn_dim:
        keys["expert_shared_feed_forward_length"] = s.shared_ffn_dim
    if s.n_dense_layers:
        keys["leading_dense_block_count"] = s.n_dense_layers
    if s.latent:
        keys |= {
            "attention.head_count_kv": 1,
            "attention.q_lora_rank": s.latent.q_rank,
            "attention.kv_lora_rank": s.latent.kv_rank,
            "attention.key_length": s.latent.kv_rank + s.latent.rotated,
            "attention.value_length": s.latent.kv_rank,
            "attention.key_length_mla": s.latent.nope + s.latent.rotated,
            "attention.value_length_mla": s.latent.values,
            "rope.dimension_count": s.latent.rotated,
        }
    if s.ssm:
        if s.arch in MAMBA2:
            keys["rope.scaling.finetuned"] = False  # no RoPE
        else:
            keys |= {"rope.dimension_count": s.head_dim // 4, "attention.recurrent_layers": list(s.is_recurrent)}
        keys |= {
            "ssm.conv_kernel": s.ssm.conv_width,
            "ssm.state_size": s.ssm.k_dim,
            "ssm.group_count": s.ssm.k_heads,
            "ssm.time_step_rank": s.ssm.v_heads,
            "ssm.inner_size": s.ssm.inner_dim,
        }
    if s.window:
        keys["attention.sliding_window"] = s.window
        if s.arch.startswith("gemma"):
            keys["rope.freq_base_swa"] = 10000.0
        if s.is_sliding:
            keys["attention.sliding_window_pattern"] = list(s.is_sliding)
    if s.arch == "gemma4":
        keys |= {
            "attention.shared_kv_layers": s.n_shared_kv_layers,
            "attention.key_length_swa": s.sliding_head_dim,
            "attention.value_length_swa": s.sliding_head_dim,
            "embedding_length_per_layer_input": s.per_layer_dim,
            "rope.dimension_count": s.head_dim,
            "rope.dimension_count_swa": s.sliding_head_dim,
            "final_logit_softcapping": 30.0,
        }
    if s.long_rope_from:
        keys |= {"rope.scaling.original_context_length": s.long_rope_from, "rope.scaling.attn_factor": 1.19}
    return {
        "general.architecture": s.arch,
        "general.name": name,
        **{f"{s.arch}.{key}": value for key, value in keys.items()},
        **tokenizer_metadata(s.vocab_size),
    }


# Tensors


def _norm(name: str, n: int, around: float = 1.0) -> Tensor:
    return Tensor(name, (n,), lambda rng: around * (1 + 0.1 * rng.standard_normal(n)))


def _noise(name: str, shape: tuple, std: float) -> Tensor:
    return Tensor(name, shape, lambda rng: std * rng.standard_normal(shape))


def _matrix(name: str, *shape: int) -> Tensor:
    return Tensor(name, shape, None)


def _rope_tables(s: Shape) -> list[Tensor]:
    n = s.head_dim // 2
    if s.arch == "gemma4":  # a quarter of the pairs turns
        return [Tensor("rope_freqs.weight", (n,), lambda rng: np.where(np.arange(n) < max(1, n // 4), 1.0, 1e30))]
    tables = [Tensor("rope_freqs.weight", (n,), lambda rng: np.linspace(1, 32, n))] if s.rope_divisors else []
    if s.long_rope_from:
        for which, most in (("short", 0.2), ("long", 6.0)):
            tables.append(Tensor(f"rope_factors_{which}.weight", (n,), lambda rng, most=most: 1 + most * rng.random(n)))
    return tables


# families with norms of q and k heads
HEAD_NORMS = ("qwen3", "qwen3moe", "exaone4", "hunyuan-dense", "hunyuan-moe", "muse-glimmer", "glm4moe", *LFM2)
# families whose routers add a bias when they choose
CHOICE_BIASES = ("glm4moe", "ernie4_5-moe", "minimax-m2", "deepseek2", "lfm2moe", "nemotron_h_moe")


def _latent_attention(s: Shape) -> list[Tensor]:
    d, m = s.model_dim, s.latent
    return [
        _matrix("attn_q_a.weight", m.q_rank, d),
        _norm("attn_q_a_norm.weight", m.q_rank),
        _matrix("attn_q_b.weight", s.n_heads * (m.nope + m.rotated), m.q_rank),
        _matrix("attn_kv_a_mqa.weight", m.kv_rank + m.rotated, d),
        _norm("attn_kv_a_norm.weight", m.kv_rank),
        _matrix("attn_k_b.weight", s.n_heads, m.kv_rank, m.nope),
        _matrix("attn_v_b.weight", s.n_heads, m.values, m.kv_rank),
        _matrix("attn_output.weight", d, s.n_heads * m.values),
    ]


def _attention(s: Shape, layer: int) -> list[Tensor]:
    sliding = s.arch == "gemma4" and s.is_sliding[layer]
    d, head_dim = s.model_dim, s.sliding_head_dim if sliding else s.head_dim
    q, kv = s.n_heads * head_dim, at(s.n_kv_heads, layer) * head_dim
    if s.arch == "phi3":
        tensors = [_matrix("attn_qkv.weight", q + 2 * kv, d)]
    else:
        # The hybrids' rows of q are, head by head, the query and the gate of its output.
        tensors = [_matrix("attn_q.weight", 2 * q if has_delta_nets(s) else q, d)]
    own_kv = layer + s.n_shared_kv_layers < s.n_layers
    if own_kv and s.arch != "phi3":
        tensors.append(_matrix("attn_k.weight", kv, d))
        # Gemma 4's larger models make v of k's projection in global layers.
        if s.arch != "gemma4" or sliding or s.per_layer_dim:
            tensors.append(_matrix("attn_v.weight", kv, d))
    if s.arch in ("qwen2", "seed_oss", "glm4", "glm4moe", "gpt-oss"):
        tensors += [_noise(f"attn_{x}.bias", (n,), 0.1) for x, n in (("q", q), ("k", kv), ("v", kv))]
    if s.arch == "muse-glimmer":
        tensors.append(_matrix("attn_gate.weight", q, d))
    if s.arch.startswith("gemma") or has_delta_nets(s) or s.arch in HEAD_NORMS:
        # Gemma 4 has no attention scale, so these weights keep its scores in bounds.
        around = head_dim**-0.25 if s.arch == "gemma4" else 1.0
        tensors += [_norm(f"attn_{x}_norm.weight", head_dim, around) for x in ("q", "k") if x == "q" or own_kv]
    if s.arch == "gpt-oss":
        tensors += [_noise("attn_sinks.weight", (s.n_heads,), 1.0), _noise("attn_output.bias", (d,), 0.1)]
    if s.arch in ("olmo2", "minimax-m2"):  # over the whole row
        tensors += [_norm("attn_q_norm.weight", q), _norm("attn_k_norm.weight", kv)]
    return [*tensors, _matrix("attn_output.weight", d, q)]


def _delta_net(s: Shape) -> list[Tensor]:
    m, d = s.ssm, s.model_dim
    channels = 2 * m.k_heads * m.k_dim + m.inner_dim
    if s.arch == "qwen3next":
        gates = [_matrix("ssm_ba.weight", 2 * m.v_heads, d)]
    else:
        gates = [_matrix("ssm_beta.weight", m.v_heads, d), _matrix("ssm_alpha.weight", m.v_heads, d)]
    return [
        _matrix("attn_qkv.weight", channels, d),
        _matrix("attn_gate.weight", m.inner_dim, d),
        *gates,
        _noise("ssm_conv1d.weight", (channels, m.conv_width), m.conv_width**-0.5),
        Tensor("ssm_a", (m.v_heads,), lambda rng: -np.exp(0.5 * rng.standard_normal(m.v_heads))),
        _noise("ssm_dt.bias", (m.v_heads,), 0.5),
        _norm("ssm_norm.weight", m.inner_dim // m.v_heads),
        _matrix("ssm_out.weight", d, m.inner_dim),
    ]


def _mamba2(s: Shape) -> list[Tensor]:
    m, d = s.ssm, s.model_dim
    channels = m.inner_dim + 2 * m.k_heads * m.k_dim
    return [
        _matrix("ssm_in.weight", m.inner_dim + channels + m.v_heads, d),
        _noise("ssm_conv1d.weight", (channels, m.conv_width), m.conv_width**-0.5),
        _noise("ssm_conv1d.bias", (channels,), 0.1),
        Tensor("ssm_a", (m.v_heads, 1), lambda rng: -np.exp(0.5 * rng.standard_normal((m.v_heads, 1)))),
        _noise("ssm_dt.bias", (m.v_heads,), 0.5),
        _noise("ssm_d", (m.v_heads, 1), 0.5),
        Tensor(
            "ssm_norm.weight",
            (m.k_heads, m.inner_dim // m.k_heads),
            lambda rng: 1 + 0.1 * rng.standard_normal((m.k_heads, m.inner_dim // m.k_heads)),
        ),
        _matrix("ssm_out.weight", d, m.inner_dim),
    ]


def _short_convolution(s: Shape) -> list[Tensor]:
    d = s.model_dim
    return [
        _matrix("shortconv.in_proj.weight", 3 * d, d),
        _noise("shortconv.conv.weight", (d, 3), 3**-0.5),
        _matrix("shortconv.out_proj.weight", d, d),
    ]


def _mixer(s: Shape, layer: int) -> list[Tensor]:
    if has_delta_nets(s):
        return _delta_net(s) if s.is_recurrent[layer] else _attention(s, layer)
    if at(s.n_kv_heads, layer):
        return _attention(s, layer)
    return _short_convolution(s) if s.arch in LFM2 else _mamba2(s)


def _dense_ffn(s: Shape, layer: int) -> list[Tensor]:
    d, f = s.model_dim, at(s.ffn_dim, layer)
    if s.arch in ("phi3", "glm4"):
        first = [_matrix("ffn_up.weight", 2 * f, d)]
    elif s.arch in NEMOTRONS:
        first = [_matrix("ffn_up.weight", f, d)]
    else:
        first = [_matrix("ffn_gate.weight", f, d), _matrix("ffn_up.weight", f, d)]
    return [*first, _matrix("ffn_down.weight", d, f)]


def _experts(s: Shape) -> list[Tensor]:
    d, f, e = s.model_dim, s.expert_ffn_dim, s.n_experts
    tensors = [_matrix("ffn_gate_inp.weight", e, d)]
    if s.arch in CHOICE_BIASES:
        tensors.append(_noise("exp_probs_b.bias", (e,), 0.1))
    if s.arch == "gpt-oss":
        biases = (("gate_inp", (e,)), ("gate_exps", (e, f)), ("up_exps", (e, f)), ("down_exps", (e, d)))
        tensors += [_noise(f"ffn_{name}.bias", shape, 0.1) for name, shape in biases]
    if s.arch == "gemma4":
        tensors += [_norm("ffn_gate_inp.scale", d), _norm("ffn_down_exps.scale", e)]
    if s.arch in ("gemma4", "mistral4"):
        tensors.append(_matrix("ffn_gate_up_exps.weight", e, 2 * f, d))
    else:
        tensors += [] if s.arch in NEMOTRONS else [_matrix("ffn_gate_exps.weight", e, f, d)]
        tensors.append(_matrix("ffn_up_exps.weight", e, f, d))
    tensors.append(_matrix("ffn_down_exps.weight", e, d, f))
    if s.shared_ffn_dim:
        g = s.shared_ffn_dim
        tensors += [] if s.arch in NEMOTRONS else [_matrix("ffn_gate_shexp.weight", g, d)]
        tensors += [_matrix("ffn_up_shexp.weight", g, d), _matrix("ffn_down_shexp.weight", d, g)]
        if has_delta_nets(s):
            tensors.append(_noise("ffn_gate_inp_shexp.weight", (1, d), d**-0.5))
    return tensors


NORM_BEHIND = ("olmo2", "exaone4")  # families with no norm before attention and feed-forward


def _layer(s: Shape, layer: int) -> list[Tensor]:
    d, gemma4_moe = s.model_dim, s.arch == "gemma4" and s.n_experts > 0
    tensors = [] if s.arch in NORM_BEHIND else [_norm("attn_norm.weight", d)]
    is_network = s.arch in NEMOTRONS and at(s.ffn_dim, layer) > 0
    if s.latent:
        tensors += _latent_attention(s)
    elif not is_network:
        tensors += _mixer(s, layer)
    is_behind = has_delta_nets(s) or s.arch in ("seed_oss", "gpt-oss", "glm4moe")
    norms = ["post_attention_norm"] if is_behind else ["ffn_norm"]
    if s.arch == "cohere2" or s.arch in NEMOTRONS:
        norms = []  # feed-forward reads attn_norm
    if s.arch in NORM_BEHIND:
        norms = ["post_attention_norm", "post_ffw_norm"]
    if s.arch.startswith("gemma") or s.arch in ("glm4", "muse-glimmer"):
        norms += ["post_attention_norm", "post_ffw_norm"]
    if gemma4_moe:
        norms += ["post_ffw_norm_1", "post_ffw_norm_2", "pre_ffw_norm_2"]
    tensors += [_norm(f"{name}.weight", d) for name in norms]
    if s.arch not in NEMOTRONS or is_network:
        has_experts = s.n_experts > 0 and layer >= s.n_dense_layers
        if has_experts:
            tensors += _experts(s)
        if not has_experts or gemma4_moe:
            tensors += _dense_ffn(s, layer)
    if s.per_layer_dim:
        n = s.per_layer_dim
        tensors += [_matrix("inp_gate.weight", n, d), _matrix("proj.weight", d, n), _norm("post_norm.weight", d)]
    if s.arch == "gemma4":
        tensors.append(_norm("layer_output_scale.weight", 1))
    return [t._replace(name=f"blk.{layer}.{t.name}") for t in tensors]


def shape_tensors(s: Shape) -> list[Tensor]:
    final_norm = "token_embd_norm.weight" if s.arch in LFM2 else "output_norm.weight"
    tensors = [_matrix("token_embd.weight", s.vocab_size, s.model_dim), _norm(final_norm, s.model_dim)]
    if not s.tied:
        tensors.append(_matrix("output.weight", s.vocab_size, s.model_dim))
    tensors += _rope_tables(s)
    if s.per_layer_dim:
        all_layers = s.n_layers * s.per_layer_dim
        tensors += [
            _matrix("per_layer_token_embd.weight", s.vocab_size, all_layers),
            _matrix("per_layer_model_proj.weight", all_layers, s.model_dim),
            _norm("per_layer_proj_norm.weight", s.per_layer_dim),
        ]
    for layer in range(s.n_layers):
        tensors += _layer(s, layer)
    return tensors


# Shapes


def _mistral3(original_context: int, log_multiplier: float = 1.0) -> tuple:
    return (
        ("rope.scaling.type", "yarn"),
        ("rope.scaling.factor", 16.0),
        ("rope.scaling.original_context_length", original_context),
        ("rope.scaling.yarn_log_multiplier", log_multiplier),
        ("attention.temperature_scale", 0.1),
    )


def tiny(family: str, width: int = 256, vocab_size: int = 320) -> Shape:
    """A model of a family that runs in milliseconds. Every matrix row has `width` elements or a multiple of them."""
    if family not in TINY:
        raise ValueError(f"[model_shapes] no family {family!r}; there are {', '.join(TINY)}")
    head_dim = 64 if width % 256 == 0 else 32
    if width % head_dim or (width // head_dim) % (2 if head_dim == 64 else 3):
        raise ValueError(f"[model_shapes] the width needs to be a multiple of 256 or of 96, {width} asked for")
    heads = width // head_dim
    kv_heads = heads // (2 if head_dim == 64 else 3)
    base = Shape(family, width, 2, heads, kv_heads, head_dim, 2 * width, vocab_size)
    experts = dict(n_experts=4, n_experts_used=2, expert_ffn_dim=2 * width)
    ssm = dict(
        ssm=Ssm(kv_heads, heads, head_dim, width), is_recurrent=(True, False), shared_ffn_dim=width, rope_theta=1e7
    )
    hybrid_moe = ssm | experts
    latent = Latent(width, width, width, head_dim // 2, head_dim)
    mamba2 = dict(n_kv_heads=(0, kv_heads), ssm=Ssm(1, heads, head_dim, width))
    # Mamba 2, a network, attention: each a layer.
    nemotron = dict(
        n_layers=3,
        n_kv_heads=(0, 0, kv_heads),
        ffn_dim=(0, 2 * width, 0),
        ssm=Ssm(kv_heads, heads, head_dim, width),
        tied=False,
    )
    lfm2 = dict(n_kv_heads=(0, kv_heads), rope_theta=1e6, scales=(("shortconv.l_cache", 3),))
    # Global layers have heads twice as large and half the key-value heads.
    gemma4 = dict(arch="gemma4", head_dim=2 * head_dim, sliding_head_dim=head_dim, window=8, rope_theta=1e6)
    change = {
        "llama": dict(tied=False, rope_divisors=True),
        "smollm3": dict(n_layers=4),
        "qwen2": dict(rope_theta=1e6),
        "qwen3": dict(rope_theta=1e6),
        "qwen3moe": dict(tied=False, rope_theta=1e6, **experts),
        "qwen35": {**ssm, "shared_ffn_dim": 0},
        "qwen35moe": hybrid_moe,
        "qwen3next": dict(tied=False, **hybrid_moe),
        "gemma3": dict(n_layers=6, window=8, rope_theta=1e6),
        "gemma4": dict(n_layers=3, n_kv_heads=(kv_heads, kv_heads, 1), is_sliding=(True, True, False), **gemma4),
        "gemma4_e2b": dict(
            n_layers=4,
            n_kv_heads=1,
            is_sliding=(True, False, True, False),
            ffn_dim=(width, width, 2 * width, 2 * width),
            per_layer_dim=width,
            n_shared_kv_layers=2,
            **gemma4,
        ),
        "gemma4_moe": dict(n_kv_heads=(kv_heads, 1), is_sliding=(True, False), **gemma4, **experts),
        "granite": dict(
            scales=(
                ("embedding_scale", 4.0),
                ("residual_scale", 0.5),
                ("attention.scale", 0.1),
                ("logit_scale", 2.0),
            )
        ),
        "phi3": dict(tied=False),
        "phi3_longrope": dict(arch="phi3", long_rope_from=16),
        "seed_oss": dict(tied=False, rope_theta=1e7),
        "ernie4_5": dict(rope_theta=500000.0),
        "olmo2": dict(tied=False, rope_theta=500000.0),
        "hunyuan_dense": dict(arch="hunyuan-dense"),
        "mistral3": dict(rope_theta=1e6, scales=_mistral3(4)),
        "muse_glimmer": dict(
            arch="muse-glimmer",
            tied=False,
            window=8,
            is_sliding=(True, False),
            scales=(("logit_scale", 0.5), ("final_logit_softcapping", 20.0)),
        ),
        "cohere2": dict(n_layers=4, window=8, norm_eps=1e-5, scales=(("logit_scale", 0.25),)),
        "exaone4": dict(rope_theta=1e6, rope_divisors=True),
        "exaone4_swa": dict(
            arch="exaone4", tied=False, rope_theta=1e6, rope_divisors=True, window=8, is_sliding=(True, False)
        ),
        "olmo3": dict(arch="olmo2", tied=False, rope_theta=500000.0, window=8, is_sliding=(True, False)),
        "gpt_oss": dict(
            arch="gpt-oss",
            tied=False,
            window=8,
            scales=(
                ("rope.scaling.type", "yarn"),
                ("rope.scaling.factor", 4.0),
                ("rope.scaling.original_context_length", 128),
            ),
            **experts,
        ),
        "glm4moe": dict(
            tied=False,
            n_dense_layers=1,
            shared_ffn_dim=width,
            scales=(
                ("rope.dimension_count", head_dim // 2),
                ("expert_gating_func", 2),
                ("expert_weights_norm", True),
                ("expert_weights_scale", 2.5),
            ),
            **experts,
        ),
        "ernie4_5_moe": dict(arch="ernie4_5-moe", n_dense_layers=1, shared_ffn_dim=width, **experts),
        "hunyuan_moe": dict(arch="hunyuan-moe", shared_ffn_dim=width, **experts),
        "minimax_m2": dict(arch="minimax-m2", tied=False, scales=(("expert_gating_func", 2),), **experts),
        "deepseek2": dict(
            tied=False,
            n_dense_layers=1,
            shared_ffn_dim=width,
            latent=latent,
            scales=(
                ("expert_gating_func", 2),
                ("expert_weights_norm", True),
                ("expert_group_count", 2),
                ("expert_group_used_count", 1),
            ),
            **experts,
        ),
        "mistral4": dict(
            shared_ffn_dim=width,
            latent=latent,
            scales=(("expert_weights_norm", True), *_mistral3(4, 0.1)),
            **experts,
        ),
        "lfm2": lfm2,
        "lfm2moe": lfm2 | experts,
        "granitehybrid": dict(
            shared_ffn_dim=width,
            scales=(
                ("embedding_scale", 4.0),
                ("residual_scale", 0.5),
                ("attention.scale", 0.1),
                ("logit_scale", 2.0),
            ),
            **mamba2,
            **experts,
        ),
        "nemotron_h": nemotron,
        "nemotron_h_moe": dict(shared_ffn_dim=width, **nemotron, **experts),
        "glm4": dict(tied=False, scales=(("rope.dimension_count", head_dim // 2),)),
    }[family]
    return dataclasses.replace(base, **change)


TINY = (
    "llama",
    "smollm3",
    "qwen2",
    "qwen3",
    "qwen3moe",
    "qwen35",
    "qwen35moe",
    "qwen3next",
    "gemma3",
    "gemma4",
    "gemma4_e2b",
    "gemma4_moe",
    "granite",
    "phi3",
    "phi3_longrope",
    "seed_oss",
    "ernie4_5",
    "glm4",
    "olmo2",
    "olmo3",
    "exaone4",
    "exaone4_swa",
    "hunyuan_dense",
    "mistral3",
    "cohere2",
    "muse_glimmer",
    "gpt_oss",
    "glm4moe",
    "ernie4_5_moe",
    "hunyuan_moe",
    "minimax_m2",
    "deepseek2",
    "mistral4",
    "lfm2",
    "lfm2moe",
    "granitehybrid",
    "nemotron_h",
    "nemotron_h_moe",
)


def _qwen3(model_dim: int, n_layers: int, n_heads: int, ffn_dim: int, tied: bool) -> Shape:
    known = dict(vocab_size=151936, context=40960, tied=tied, rope_theta=1e6)
    return Shape("qwen3", model_dim, n_layers, n_heads, 8, 128, ffn_dim, **known)


def _granite4(model_dim: int, n_heads: int, n_kv_heads: int, ssm_heads: int, scales: dict, **known) -> Shape:
    """The hybrids of 40 layers, of which every tenth has attention."""
    is_attention = [layer % 10 == 5 for layer in range(40)]
    return Shape(
        "granitehybrid",
        model_dim,
        40,
        n_heads,
        tuple(n_kv_heads if attention else 0 for attention in is_attention),
        model_dim // n_heads,
        vocab_size=100352,
        context=131072,
        norm_eps=1e-5,
        ssm=Ssm(1, ssm_heads, 128, 64 * ssm_heads),
        scales=(
            ("rope.dimension_count", model_dim // n_heads),
            ("embedding_scale", 12.0),
            ("residual_scale", 0.22),
            *scales.items(),
        ),
        **known,
    )


# M is Mamba 2, - a network, * attention.
NEMOTRON_3_NANO_4B = "M-M-M-MM-M-M*-M-M*-M-M-M*-M-M-MM*-MMM-M-M-"
LFM2_1_2B_ATTENTION = (2, 5, 8, 10, 12, 14)

SIZES = {
    "qwen3-0.6b": _qwen3(1024, 28, 16, 3072, True),
    "qwen3-1.7b": _qwen3(2048, 28, 16, 6144, True),
    "qwen3-4b": _qwen3(2560, 36, 32, 9728, True),
    "qwen3-8b": _qwen3(4096, 36, 32, 12288, False),
    "qwen3-30b-a3b": dataclasses.replace(
        _qwen3(2048, 48, 32, 6144, False),
        arch="qwen3moe",
        n_kv_heads=4,
        n_experts=128,
        n_experts_used=8,
        expert_ffn_dim=768,
    ),
    "qwen3.5-35b-a3b": Shape(
        "qwen35moe",
        2048,
        40,
        16,
        2,
        256,
        0,
        vocab_size=248320,
        context=262144,
        tied=False,
        rope_theta=1e7,
        n_experts=256,
        n_experts_used=8,
        expert_ffn_dim=512,
        shared_ffn_dim=512,
        ssm=Ssm(16, 32, 128, 4096),
        is_recurrent=tuple(layer % 4 != 3 for layer in range(40)),
    ),
    "llama-3.2-1b": Shape(
        "llama",
        2048,
        16,
        32,
        8,
        64,
        8192,
        vocab_size=128256,
        context=131072,
        rope_theta=500000.0,
        norm_eps=1e-5,
        rope_divisors=True,
    ),
    "smollm2-135m": Shape(
        "llama", 576, 30, 9, 3, 64, 1536, vocab_size=49152, context=8192, rope_theta=100000.0, norm_eps=1e-5
    ),
    "command-r7b": Shape(
        "cohere2",
        4096,
        32,
        32,
        8,
        128,
        14336,
        vocab_size=256000,
        context=8192,
        rope_theta=50000.0,
        norm_eps=1e-5,
        window=4096,
        scales=(("logit_scale", 0.25),),
    ),
    "ministral-3-3b": Shape(
        "mistral3",
        3072,
        26,
        32,
        8,
        128,
        9216,
        vocab_size=131072,
        context=262144,
        rope_theta=1e6,
        norm_eps=1e-5,
        scales=_mistral3(16384),
    ),
    "hunyuan-0.5b": Shape(
        "hunyuan-dense",
        1024,
        24,
        16,
        8,
        128,
        3584,
        vocab_size=120818,
        context=262144,
        rope_theta=11158839.9,
        norm_eps=1e-5,
    ),
    "exaone-4.0-1.2b": Shape(
        "exaone4",
        2048,
        30,
        32,
        8,
        64,
        4096,
        vocab_size=102400,
        context=65536,
        rope_theta=1e6,
        norm_eps=1e-5,
        rope_divisors=True,
    ),
    "olmo-2-1b": Shape(
        "olmo2", 2048, 16, 16, 16, 128, 8192, vocab_size=100352, context=4096, tied=False, rope_theta=500000.0
    ),
    "olmo-3-7b": Shape(
        "olmo2",
        4096,
        32,
        32,
        32,
        128,
        11008,
        vocab_size=100278,
        context=65536,
        tied=False,
        rope_theta=500000.0,
        window=4096,
        is_sliding=tuple(layer % 4 != 3 for layer in range(32)),
        scales=(
            ("rope.scaling.type", "yarn"),
            ("rope.scaling.factor", 8.0),
            ("rope.scaling.original_context_length", 8192),
        ),
    ),
    "glm-4-9b": Shape(
        "glm4",
        4096,
        40,
        32,
        2,
        128,
        13696,
        vocab_size=151552,
        context=32768,
        tied=False,
        norm_eps=1e-5,
        scales=(("rope.dimension_count", 64),),
    ),
    "ernie-4.5-0.3b": Shape(
        "ernie4_5", 1024, 18, 16, 2, 128, 3072, vocab_size=103424, context=131072, rope_theta=500000.0, norm_eps=1e-5
    ),
    "seed-oss-36b": Shape(
        "seed_oss", 5120, 64, 80, 8, 128, 27648, vocab_size=155136, context=524288, tied=False, rope_theta=1e7
    ),
    "gpt-oss-20b": Shape(
        "gpt-oss",
        2880,
        24,
        64,
        8,
        64,
        2880,
        vocab_size=201088,
        context=131072,
        tied=False,
        rope_theta=150000.0,
        norm_eps=1e-5,
        n_experts=32,
        n_experts_used=4,
        expert_ffn_dim=2880,
        window=128,
        scales=(
            ("rope.scaling.type", "yarn"),
            ("rope.scaling.factor", 32.0),
            ("rope.scaling.original_context_length", 4096),
        ),
    ),
    "granite-4.0-h-micro": _granite4(2048, 32, 8, 64, {"attention.scale": 0.015625, "logit_scale": 8.0}, ffn_dim=8192),
    "granite-4.0-h-tiny": _granite4(
        1536,
        12,
        4,
        48,
        {"attention.scale": 0.0078125, "logit_scale": 6.0},
        ffn_dim=512,
        n_experts=64,
        n_experts_used=6,
        expert_ffn_dim=512,
        shared_ffn_dim=1024,
    ),
    "nemotron-3-nano-4b": Shape(
        "nemotron_h",
        3136,
        42,
        40,
        tuple(8 if mixer == "*" else 0 for mixer in NEMOTRON_3_NANO_4B),
        128,
        tuple(12544 if mixer == "-" else 0 for mixer in NEMOTRON_3_NANO_4B),
        vocab_size=131072,
        context=262144,
        tied=False,
        norm_eps=1e-5,
        ssm=Ssm(8, 96, 128, 7680),
        scales=(("rope.dimension_count", 78),),
    ),
    "lfm2-1.2b": Shape(
        "lfm2",
        2048,
        16,
        32,
        tuple(8 if layer in LFM2_1_2B_ATTENTION else 0 for layer in range(16)),
        64,
        8192,
        vocab_size=65536,
        context=128000,
        rope_theta=1e6,
        norm_eps=1e-5,
        scales=(("shortconv.l_cache", 3),),
    ),
}
