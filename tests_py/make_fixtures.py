"""Makes tests_data/models and tests_data/ref: a tiny random model a family, with the logits that Hugging Face transformers
gives for it. Run by hand, with torch and transformers installed; the tests need neither:

PYTHONPATH=bench:tests_py python tests_py/make_fixtures.py [NAME ...]

ref/NAME.npz has, for each prompt P: P/prompt and P/greedy (token ids), P/pos (positions in prompt + greedy) and the logits
after the tokens there: P/hf_logits of float files, P/exact_logits of quantized ones, whose weights are widened for it.
"""

import pathlib
import sys
import types

import numpy as np
import torch
import transformers

import gguf_file
import quant_formats
import random_blocks
import tiny_model

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests_data"
# Tokens of a prompt -> positions whose logits are kept, the last ones. Past LongRoPE's original context: one run of the
# model rotates all its positions alike, so those before it are not what the text alone gives.
PROMPTS = {"p7": (7, 19), "p40": (40, 10)}
# For the models of SMALL and for the draft blocks, so that all files together stay small.
FEWER_KEPT = {"p7": (7, 8), "p40": (40, 6)}
N_GREEDY = 12
# Between the two best tokens of a greedy step, so that no rounding chooses another one.
SMALLEST_GAP = 0.02
SHAPE = dict(
    vocab_size=tiny_model.VOCAB,
    hidden_size=48,
    intermediate_size=64,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=1024,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)
SMALL = SHAPE | dict(vocab_size=304, hidden_size=32, intermediate_size=32, num_attention_heads=2, num_key_value_heads=1)
SMALL_EXPERTS = SMALL | dict(intermediate_size=16)
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)
RECURRENT = dict(
    num_hidden_layers=2,
    layer_types=["linear_attention", "full_attention"],
    linear_num_key_heads=2,
    linear_num_value_heads=4,
    linear_key_head_dim=16,
    linear_value_head_dim=16,
    linear_conv_kernel_dim=4,
    head_dim=32,
)
WINDOW = 24

# Names of parameters within a layer, theirs and ours; {} is the layer's own name.
NAMES = {
    "input_layernorm.weight": "attn_norm.weight",
    **{f"self_attn.{x}_proj.{kind}": f"attn_{x}.{kind}" for x in ("q", "k", "v", "qkv") for kind in ("weight", "bias")},
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.gate_up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
    "mlp.gate.weight": "ffn_gate_inp.weight",
    "mlp.experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "mlp.experts.down_proj": "ffn_down_exps.weight",
    "mlp.shared_expert.gate_proj.weight": "ffn_gate_shexp.weight",
    "mlp.shared_expert.up_proj.weight": "ffn_up_shexp.weight",
    "mlp.shared_expert.down_proj.weight": "ffn_down_shexp.weight",
    "mlp.shared_expert_gate.weight": "ffn_gate_inp_shexp.weight",
    "linear_attn.A_log": "ssm_a",
    "linear_attn.dt_bias": "ssm_dt.bias",
    "linear_attn.conv1d.weight": "ssm_conv1d.weight",
    "linear_attn.norm.weight": "ssm_norm.weight",
    "linear_attn.out_proj.weight": "ssm_out.weight",
    "linear_attn.in_proj_qkvz.weight": "qkvz",
    "linear_attn.in_proj_ba.weight": "ssm_ba.weight",
    "linear_attn.in_proj_qkv.weight": "attn_qkv.weight",
    "linear_attn.in_proj_z.weight": "attn_gate.weight",
    "linear_attn.in_proj_b.weight": "ssm_beta.weight",
    "linear_attn.in_proj_a.weight": "ssm_alpha.weight",
}
# Gemma has a norm before and behind each half of a layer.
GEMMA_NAMES = {
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "pre_feedforward_layernorm.weight": "ffn_norm.weight",
    "post_feedforward_layernorm.weight": "post_ffw_norm.weight",
    "post_feedforward_layernorm_1.weight": "post_ffw_norm_1.weight",
    "post_feedforward_layernorm_2.weight": "post_ffw_norm_2.weight",
    "pre_feedforward_layernorm_2.weight": "pre_ffw_norm_2.weight",
    "layer_scalar": "layer_output_scale.weight",
    "per_layer_input_gate.weight": "inp_gate.weight",
    "per_layer_projection.weight": "proj.weight",
    "post_per_layer_input_norm.weight": "post_norm.weight",
    "router.proj.weight": "ffn_gate_inp.weight",
    "router.scale": "ffn_gate_inp.scale",
    "router.per_expert_scale": "ffn_down_exps.scale",
    "experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "experts.down_proj": "ffn_down_exps.weight",
}
OF_MODEL = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "model.embeddings.weight": "token_embd.weight",
    "model.norm_f.weight": "output_norm.weight",
    "model.embedding_norm.weight": "token_embd_norm.weight",
    "lm_head.weight": "output.weight",
    "model.embed_tokens_per_layer.weight": "per_layer_token_embd.weight",
    "model.per_layer_model_projection.weight": "per_layer_model_proj.weight",
    "model.per_layer_projection_norm.weight": "per_layer_proj_norm.weight",
}
# What layers of Mamba 2 have, behind a name that differs by family.
MAMBA2_NAMES = {
    "in_proj.weight": "ssm_in.weight",
    "conv1d.weight": "ssm_conv1d.weight",
    "conv1d.bias": "ssm_conv1d.bias",
    "dt_bias": "ssm_dt.bias",
    "A_log": "ssm_a",
    "D": "ssm_d",
    "norm.weight": "ssm_norm.weight",
    "out_proj.weight": "ssm_out.weight",
}
# Stored as F32 although they have two dimensions.
FLOATS = (
    *("ffn_gate_inp.weight", "ffn_gate_inp_shexp.weight", "ssm_conv1d.weight", "shortconv.conv.weight"),
    *("exp_probs_b.bias", "ffn_gate_up_exps.bias", "ffn_down_exps.bias"),
)
# By which names configs say the epsilon of their norms, and files.
EPSILONS = {
    "rms_norm_eps": "layer_norm_rms_epsilon",
    "norm_eps": "layer_norm_rms_epsilon",
    "layer_norm_eps": "layer_norm_epsilon",
    "layer_norm_epsilon": "layer_norm_epsilon",
}


def permuted(weight, n_heads):
    """Rows of q or k as files of the llama kind have them: the two halves of a head interleaved."""
    rows, width = weight.shape
    return weight.reshape(n_heads, 2, rows // n_heads // 2, width).swapaxes(1, 2).reshape(rows, width)


def keys(arch, config, **more):
    heads = config.num_attention_heads
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    rope = getattr(config, "rope_parameters", {"rope_theta": 10000.0})
    epsilon = next(name for name in EPSILONS if hasattr(config, name))
    metadata = {
        "block_count": config.num_hidden_layers,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.key_length": head_dim,
        "attention.value_length": head_dim,
        f"attention.{EPSILONS[epsilon]}": float(getattr(config, epsilon)),
        "rope.freq_base": float(rope.get("full_attention", rope)["rope_theta"]),
        "rope.dimension_count": int(head_dim * rope.get("partial_rotary_factor", 1)),
        **more,
    }
    tokenizer = tiny_model.tokenizer_metadata()
    for name in ("tokens", "token_type"):
        tokenizer[f"tokenizer.ggml.{name}"] = tokenizer[f"tokenizer.ggml.{name}"][: config.vocab_size]
    return {
        "general.architecture": arch,
        "general.name": f"{arch} fixture",
        **{f"{arch}.{key}": value for key, value in metadata.items()},
        **tokenizer,
    }


def expert_keys(config):
    names = {
        "expert_count": "num_experts",
        "expert_used_count": "num_experts_per_tok",
        "expert_feed_forward_length": "moe_intermediate_size",
        "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    }
    return {ours: getattr(config, theirs) for ours, theirs in names.items() if hasattr(config, theirs)}


def recurrent_keys(config):
    return {
        "ssm.conv_kernel": config.linear_conv_kernel_dim,
        "ssm.state_size": config.linear_key_head_dim,
        "ssm.group_count": config.linear_num_key_heads,
        "ssm.time_step_rank": config.linear_num_value_heads,
        "ssm.inner_size": config.linear_num_value_heads * config.linear_value_head_dim,
        "attention.recurrent_layers": [kind == "linear_attention" for kind in config.layer_types],
    }


def decoder_tensors(model, permute=False, names=NAMES, split_experts=True, norms_from_zero=False):
    config = model.config
    tensors = {}
    for full_name, parameter in model.state_dict().items():
        value = parameter.detach().float().numpy()
        prefix, name = "", OF_MODEL.get(full_name)
        if name is None:
            layer, theirs = full_name.removeprefix("model.layers.").split(".", 1)
            prefix, name = f"blk.{layer}.", names[theirs]
        elif name == "output.weight" and config.tie_word_embeddings:
            continue
        if norms_from_zero and name.endswith("norm.weight") and name != "ssm_norm.weight":
            value = value + 1
        if permute and name in ("attn_q.weight", "attn_k.weight"):
            value = permuted(value, config.num_attention_heads if "q" in name else config.num_key_value_heads)
        if name == "ffn_gate_up_exps.weight" and split_experts:
            n = value.shape[1] // 2
            tensors[prefix + "ffn_gate_exps.weight"], value = value[:, :n], value[:, n:]
            name = "ffn_up_exps.weight"
        if name == "ssm_a":
            value = -np.exp(value)
        if name in ("ssm_conv1d.weight", "shortconv.conv.weight"):
            value = value[:, 0]
        if name == "ffn_gate_inp_shexp.weight":
            value = value[0]
        if name in FLOATS and value.ndim > 1:
            value = (value.shape, gguf_file.F32, np.ascontiguousarray(value, np.float32).tobytes())
        tensors[prefix + name] = value
    return tensors


def llama():
    config = transformers.LlamaConfig(num_hidden_layers=2, tie_word_embeddings=False, **SHAPE)
    model = transformers.LlamaForCausalLM(config)
    return model, keys("llama", config), lambda: decoder_tensors(model, permute=True)


def smollm3():
    config = transformers.SmolLM3Config(num_hidden_layers=4, tie_word_embeddings=True, **SHAPE)
    model = transformers.SmolLM3ForCausalLM(config)
    return model, keys("smollm3", config), lambda: decoder_tensors(model, permute=True)


def qwen2():
    """With YaRN."""
    rope = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 32}
    config = transformers.Qwen2Config(num_hidden_layers=2, tie_word_embeddings=True, rope_parameters=rope, **SHAPE)
    model = transformers.Qwen2ForCausalLM(config)
    scaling = {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 32,
    }
    return model, keys("qwen2", config, **scaling), lambda: decoder_tensors(model)


def qwen3():
    config = transformers.Qwen3Config(num_hidden_layers=2, tie_word_embeddings=True, head_dim=32, **SHAPE)
    model = transformers.Qwen3ForCausalLM(config)
    return model, keys("qwen3", config), lambda: decoder_tensors(model)


def qwen3moe(hidden_size=48):
    config = transformers.Qwen3MoeConfig(
        num_hidden_layers=2,
        tie_word_embeddings=True,
        head_dim=32,
        norm_topk_prob=True,
        **EXPERTS,
        **(SHAPE | {"hidden_size": hidden_size}),
    )
    model = transformers.Qwen3MoeForCausalLM(config)
    return model, keys("qwen3moe", config, **expert_keys(config)), lambda: decoder_tensors(model)


# Some files name the norm before the feed-forward network after what it stands behind.
POST_ATTENTION_NAMES = NAMES | {"post_attention_layernorm.weight": "post_attention_norm.weight"}


def qwen3next():
    config = transformers.Qwen3NextConfig(
        tie_word_embeddings=True, shared_expert_intermediate_size=32, **RECURRENT, **EXPERTS, **SHAPE
    )
    model = transformers.Qwen3NextForCausalLM(config)

    def tensors():
        found = decoder_tensors(model, names=POST_ATTENTION_NAMES, norms_from_zero=True)
        n_heads, key, ratio = config.linear_num_key_heads, config.linear_key_head_dim, 2
        # Of each key head: its rows of q and k, then those of v and z of its value heads.
        grouped = found.pop("blk.0.qkvz").reshape(n_heads, -1, config.hidden_size)
        ends = np.cumsum([key, key, ratio * config.linear_value_head_dim])
        q, k, v, z = (part.reshape(-1, config.hidden_size) for part in np.split(grouped, ends, axis=1))
        return found | {"blk.0.attn_qkv.weight": np.concatenate([q, k, v]), "blk.0.attn_gate.weight": z}

    return model, keys("qwen3next", config, **expert_keys(config), **recurrent_keys(config)), tensors


def with_tiled_value_heads(tensors, config):
    """Files of Qwen3.5 have the first value head of every key head, then the second ones."""
    n_keys, n_values = config.linear_num_key_heads, config.linear_num_value_heads
    order = np.arange(n_values).reshape(n_keys, -1).T.reshape(-1)
    width = config.linear_value_head_dim
    rows = (order[:, None] * width + np.arange(width)).reshape(-1)
    n_before = 2 * n_keys * config.linear_key_head_dim
    behind = np.concatenate([np.arange(n_before), n_before + rows])
    for name in ("ssm_a", "ssm_dt.bias", "ssm_beta.weight", "ssm_alpha.weight"):
        tensors[f"blk.0.{name}"] = tensors[f"blk.0.{name}"][order]
    tensors["blk.0.attn_qkv.weight"] = tensors["blk.0.attn_qkv.weight"][behind]
    tensors["blk.0.attn_gate.weight"] = tensors["blk.0.attn_gate.weight"][rows]
    tensors["blk.0.ssm_out.weight"] = tensors["blk.0.ssm_out.weight"][:, rows]
    shape, kind, data = tensors["blk.0.ssm_conv1d.weight"]
    taps = np.frombuffer(data, np.float32).reshape(shape)[behind]
    tensors["blk.0.ssm_conv1d.weight"] = (shape, kind, taps.tobytes())
    return tensors


def qwen35():
    config = transformers.Qwen3_5TextConfig(tie_word_embeddings=True, **RECURRENT, **SHAPE)
    model = transformers.Qwen3_5ForCausalLM(config)
    return (
        model,
        keys("qwen35", config, **recurrent_keys(config)),
        lambda: with_tiled_value_heads(
            decoder_tensors(model, names=POST_ATTENTION_NAMES, norms_from_zero=True), config
        ),
    )


def qwen35moe():
    config = transformers.Qwen3_5MoeTextConfig(
        tie_word_embeddings=True, shared_expert_intermediate_size=32, **RECURRENT, **EXPERTS, **SHAPE
    )
    model = transformers.Qwen3_5MoeForCausalLM(config)
    return (
        model,
        keys("qwen35moe", config, **expert_keys(config), **recurrent_keys(config)),
        lambda: with_tiled_value_heads(
            decoder_tensors(model, names=POST_ATTENTION_NAMES, norms_from_zero=True), config
        ),
    )


def gemma3():
    """A layer of each kind: files of this family name no pattern, every sixth layer is global."""
    kinds = ["sliding_attention"] * 5 + ["full_attention"]
    config = transformers.Gemma3TextConfig(
        num_hidden_layers=6,
        head_dim=16,
        query_pre_attn_scalar=16,
        sliding_window=WINDOW,
        layer_types=kinds,
        **(SHAPE | {"hidden_size": 32}),
    )
    model = transformers.Gemma3ForCausalLM(config)
    more = {"attention.sliding_window": WINDOW, "rope.freq_base_swa": 10000.0}
    return (
        model,
        keys("gemma3", config, **more),
        lambda: decoder_tensors(model, names=NAMES | GEMMA_NAMES, norms_from_zero=True),
    )


def gemma4_config(kinds, **more):
    return transformers.Gemma4TextConfig(
        num_hidden_layers=len(kinds),
        layer_types=kinds,
        head_dim=32,
        sliding_window=WINDOW,
        final_logit_softcapping=30.0,
        vocab_size_per_layer_input=tiny_model.VOCAB,
        **(SHAPE | more),
    )


def gemma4_keys(config, global_dim, **more):
    # Reads what all layers have, not one of them; the model is made already.
    config.allow_global_per_layer_attribute_access = True
    return keys(
        "gemma4",
        config,
        **{
            "attention.key_length": global_dim,
            "attention.value_length": global_dim,
            "attention.key_length_swa": config.head_dim,
            "attention.value_length_swa": config.head_dim,
            "attention.sliding_window": WINDOW,
            "attention.sliding_window_pattern": [kind == "sliding_attention" for kind in config.layer_types],
            "attention.shared_kv_layers": config.num_kv_shared_layers,
            "embedding_length_per_layer_input": config.hidden_size_per_layer_input,
            "final_logit_softcapping": config.final_logit_softcapping,
            "rope.freq_base_swa": 10000.0,
            "rope.dimension_count": global_dim,
            "rope.dimension_count_swa": config.head_dim,
            **more,
        },
    )


def gemma4_tensors(model, global_dim):
    # A quarter of the pairs of global layers is rotated; the others' frequency is divided by what makes it nothing.
    n_pairs = global_dim // 2
    factors = np.where(np.arange(n_pairs) < n_pairs // 4, 1, 1e30).astype(np.float32)
    tensors = decoder_tensors(model, names=NAMES | GEMMA_NAMES, split_experts=False)
    return {"rope_freqs.weight": factors} | tensors


def gemma4():
    """Inputs a layer, and a global and a local layer that read the cache of others."""
    kinds = ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]
    config = gemma4_config(
        kinds,
        num_key_value_heads=1,
        hidden_size=32,
        hidden_size_per_layer_input=16,
        num_kv_shared_layers=2,
        use_double_wide_mlp=True,
        per_layer_config={"1": {"head_dim": 64}, "3": {"head_dim": 64}},
    )
    model = transformers.Gemma4ForCausalLM(config)
    widths = {"feed_forward_length": [64, 64, 128, 128]}
    return model, gemma4_keys(config, 64, **widths), lambda: gemma4_tensors(model, 64)


def gemma4_moe():
    """Experts beside a dense block; global layers that take their keys as values."""
    config = gemma4_config(
        ["sliding_attention", "full_attention"],
        hidden_size_per_layer_input=0,
        num_kv_shared_layers=0,
        attention_k_eq_v=True,
        enable_moe_block=True,
        num_experts=4,
        top_k_experts=2,
        moe_intermediate_size=32,
        per_layer_config={"1": {"head_dim": 64, "num_key_value_heads": 1}},
    )
    model = transformers.Gemma4ForCausalLM(config)
    more = {
        "attention.head_count_kv": [2, 1],
        "expert_count": 4,
        "expert_used_count": 2,
        "expert_feed_forward_length": 32,
    }
    return model, gemma4_keys(config, 64, **more), lambda: gemma4_tensors(model, 64)


def phi3():
    """Fused matrices, rotation of three quarters of a head, LongRoPE past its original context."""
    original, n_rot = 32, 12
    rng = np.random.default_rng(4)
    factors = {"short": 1 + rng.random(n_rot // 2) * 0.2, "long": 1 + rng.random(n_rot // 2) * 6}
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": factors["short"].tolist(),
        "long_factor": factors["long"].tolist(),
        "original_max_position_embeddings": original,
        "partial_rotary_factor": 0.75,
    }
    config = transformers.Phi3Config(
        num_hidden_layers=2,
        tie_word_embeddings=True,
        rope_parameters=rope,
        original_max_position_embeddings=original,
        **(SHAPE | {"hidden_size": 64}),
    )
    model = transformers.Phi3ForCausalLM(config)
    more = {"rope.scaling.original_context_length": original, "rope.scaling.type": "longrope"}

    def tensors():
        extra = {f"rope_factors_{name}.weight": value.astype(np.float32) for name, value in factors.items()}
        return extra | decoder_tensors(model)

    return model, keys("phi3", config, **more), tensors


def granite():
    scales = {
        "embedding_multiplier": 3.0,
        "residual_multiplier": 0.4,
        "attention_multiplier": 0.2,
        "logits_scaling": 1.5,
    }
    config = transformers.GraniteConfig(num_hidden_layers=2, tie_word_embeddings=True, **scales, **SHAPE)
    model = transformers.GraniteForCausalLM(config)
    more = {
        "embedding_scale": 3.0,
        "residual_scale": 0.4,
        "attention.scale": 0.2,
        "logit_scale": 1.5,
    }
    return model, keys("granite", config, **more), lambda: decoder_tensors(model, permute=True)


def seed_oss():
    config = transformers.SeedOssConfig(
        num_hidden_layers=1, tie_word_embeddings=True, attention_bias=True, head_dim=32, **SMALL
    )
    model = transformers.SeedOssForCausalLM(config)
    return model, keys("seed_oss", config), lambda: decoder_tensors(model, names=POST_ATTENTION_NAMES)


def ernie4_5():
    config = transformers.Ernie4_5Config(num_hidden_layers=1, tie_word_embeddings=True, head_dim=32, **SMALL)
    model = transformers.Ernie4_5ForCausalLM(config)
    return model, keys("ernie4_5", config), lambda: decoder_tensors(model)


# Models with a norm before and behind each half of a layer, whose files name both.
SANDWICH_NAMES = NAMES | {
    "post_self_attn_layernorm.weight": "post_attention_norm.weight",
    "post_mlp_layernorm.weight": "post_ffw_norm.weight",
}


def glm4():
    config = transformers.Glm4Config(
        num_hidden_layers=1,
        tie_word_embeddings=True,
        attention_bias=True,
        head_dim=32,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
        **SMALL,
    )
    model = transformers.Glm4ForCausalLM(config)
    return model, keys("glm4", config), lambda: decoder_tensors(model, names=SANDWICH_NAMES)


# Models whose norms all stand behind what they belong to.
BEHIND_NAMES = NAMES | {
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "post_feedforward_layernorm.weight": "post_ffw_norm.weight",
}


def olmo2():
    """OLMo 3: a window in the first layer, YaRN in the second."""
    rope = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16}
    config = transformers.Olmo3Config(
        num_hidden_layers=2,
        layer_types=["sliding_attention", "full_attention"],
        sliding_window=WINDOW,
        tie_word_embeddings=False,
        rope_parameters={
            "full_attention": rope,
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        },
        **SMALL,
    )
    model = transformers.Olmo3ForCausalLM(config)
    more = {
        "attention.sliding_window": WINDOW,
        "attention.sliding_window_pattern": [True, False],
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 16,
    }
    return model, keys("olmo2", config, **more), lambda: decoder_tensors(model, names=BEHIND_NAMES)


def exaone4():
    """With a window in the first layer; the second encodes no positions."""
    config = transformers.Exaone4Config(
        num_hidden_layers=2,
        layer_types=["sliding_attention", "full_attention"],
        sliding_window=WINDOW,
        tie_word_embeddings=True,
        **SMALL,
    )
    model = transformers.Exaone4ForCausalLM(config)
    more = {"attention.sliding_window": WINDOW, "attention.sliding_window_pattern": [True, False]}
    return model, keys("exaone4", config, **more), lambda: decoder_tensors(model, names=BEHIND_NAMES)


def hunyuan_dense():
    names = NAMES | {
        "self_attn.query_layernorm.weight": "attn_q_norm.weight",
        "self_attn.key_layernorm.weight": "attn_k_norm.weight",
    }
    config = transformers.HunYuanDenseV1Config(num_hidden_layers=1, tie_word_embeddings=True, head_dim=32, **SMALL)
    model = transformers.HunYuanDenseV1ForCausalLM(config)
    return model, keys("hunyuan-dense", config), lambda: decoder_tensors(model, names=names)


def mistral3():
    rope = {
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": 16.0,
        "original_max_position_embeddings": 16,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "llama_4_scaling_beta": 0.3,
    }
    config = transformers.Ministral3Config(
        num_hidden_layers=1, tie_word_embeddings=True, head_dim=32, sliding_window=None, rope_parameters=rope, **SMALL
    )
    model = transformers.Ministral3ForCausalLM(config)
    more = {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 16.0,
        "rope.scaling.original_context_length": 16,
        "rope.scaling.yarn_log_multiplier": 1.0,
        "attention.temperature_scale": 0.3,
    }
    return model, keys("mistral3", config, **more), lambda: decoder_tensors(model, permute=True)


def cohere2():
    """The last layer sees the whole context, without RoPE. Rotated rows are pairs already, in the model as in the file."""
    config = transformers.Cohere2Config(
        num_hidden_layers=4, sliding_window=WINDOW, tie_word_embeddings=True, logit_scale=0.25, **SMALL
    )
    model = transformers.Cohere2ForCausalLM(config)
    more = {"attention.sliding_window": WINDOW, "logit_scale": 0.25}
    return model, keys("cohere2", config, **more), lambda: decoder_tensors(model)


class MuseGlimmer(torch.nn.Module):
    """The text model with its head, which transformers has only beside a vision model."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.model = transformers.MuseGlimmerTextModel(config)
        self.lm_head = torch.nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, ids, use_cache):
        logits = self.lm_head(self.model(input_ids=ids, use_cache=use_cache).last_hidden_state)
        cap = self.config.final_logit_softcapping
        return types.SimpleNamespace(logits=cap * torch.tanh(logits * self.config.output_multiplier / cap))


def muse_glimmer():
    config = transformers.MuseGlimmerTextConfig(
        num_hidden_layers=2,
        layer_types=["sliding_attention", "full_attention"],
        sliding_window=WINDOW,
        head_dim=32,
        qk_scale_factor=2.0,
        output_multiplier=0.5,
        final_logit_softcapping=5.0,
        **SMALL,
    )
    model = MuseGlimmer(config)
    more = {
        "attention.sliding_window": WINDOW,
        "attention.sliding_window_pattern": [True, False],
        "logit_scale": 0.5,
        "final_logit_softcapping": 5.0,
    }
    names = (
        GEMMA_NAMES
        | NAMES
        | {
            "post_attention_layernorm.weight": "post_attention_norm.weight",
            "self_attn.gate_proj.weight": "attn_gate.weight",
        }
    )

    def tensors():
        found = decoder_tensors(model, permute=True, names=names)
        for layer in range(config.num_hidden_layers):
            for name in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
                found[f"blk.{layer}.{name}.weight"] = found[f"blk.{layer}.{name}.weight"] + 1
            found[f"blk.{layer}.attn_q_norm.weight"] = np.full(32, config.qk_scale_factor, np.float32)
            found[f"blk.{layer}.attn_k_norm.weight"] = np.ones(32, np.float32)
        return found

    return model, keys("muse-glimmer", config, **more), tensors


# Names of routers and of the experts that every token uses, in the models with both.
ROUTED_NAMES = NAMES | {
    "mlp.gate.e_score_correction_bias": "exp_probs_b.bias",
    "mlp.e_score_correction_bias": "exp_probs_b.bias",
    "mlp.gate.moe_statics.e_score_correction_bias": "exp_probs_b.bias",
    "mlp.gate.wg.weight": "ffn_gate_inp.weight",
    **{
        f"mlp.{shared}.{kind}_proj.weight": f"ffn_{kind}_shexp.weight"
        for shared in ("shared_experts", "shared_mlp")
        for kind in ("gate", "up", "down")
    },
    "self_attn.query_layernorm.weight": "attn_q_norm.weight",
    "self_attn.key_layernorm.weight": "attn_k_norm.weight",
    "self_attn.sinks": "attn_sinks.weight",
    "self_attn.o_proj.bias": "attn_output.bias",
    "mlp.router.weight": "ffn_gate_inp.weight",
    "mlp.router.bias": "ffn_gate_inp.bias",
    "mlp.experts.gate_up_proj_bias": "ffn_gate_up_exps.bias",
    "mlp.experts.down_proj_bias": "ffn_down_exps.bias",
    "self_attn.q_a_proj.weight": "attn_q_a.weight",
    "self_attn.q_a_layernorm.weight": "attn_q_a_norm.weight",
    "self_attn.q_b_proj.weight": "attn_q_b.weight",
    "self_attn.kv_a_proj_with_mqa.weight": "attn_kv_a_mqa.weight",
    "self_attn.kv_a_layernorm.weight": "attn_kv_a_norm.weight",
    "self_attn.kv_b_proj.weight": "kv_b",
}


def routed_keys(n_experts, n_used, ffn_dim, **more):
    return {
        "expert_count": n_experts,
        "expert_used_count": n_used,
        "expert_feed_forward_length": ffn_dim,
        **more,
    }


def gpt_oss():
    rope = {
        "rope_type": "yarn",
        "rope_theta": 150000.0,
        "factor": 4.0,
        "original_max_position_embeddings": 64,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": False,
    }
    config = transformers.GptOssConfig(
        num_hidden_layers=2,
        head_dim=32,
        num_local_experts=4,
        num_experts_per_tok=2,
        sliding_window=WINDOW,
        tie_word_embeddings=True,
        rope_parameters=rope,
        **SMALL_EXPERTS,
    )
    model = transformers.GptOssForCausalLM(config)
    more = routed_keys(4, 2, config.intermediate_size) | {
        "attention.sliding_window": WINDOW,
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 64,
        "rope.scaling.yarn_beta_fast": 32.0,
        "rope.scaling.yarn_beta_slow": 1.0,
    }

    def tensors():
        names = ROUTED_NAMES | {"post_attention_layernorm.weight": "post_attention_norm.weight"}
        found = decoder_tensors(model, names=names, split_experts=False)
        for layer in range(config.num_hidden_layers):
            at = f"blk.{layer}.ffn_"
            # Columns of the matrices here are outputs; gate and up take turns.
            both = found.pop(f"{at}gate_up_exps.weight").swapaxes(1, 2)
            shape, kind, data = found.pop(f"{at}gate_up_exps.bias")
            bias = np.frombuffer(data, np.float32).reshape(shape)
            for i, name in enumerate(("gate", "up")):
                found[f"{at}{name}_exps.weight"] = np.ascontiguousarray(both[:, i::2])
                half = np.ascontiguousarray(bias[:, i::2])
                found[f"{at}{name}_exps.bias"] = (half.shape, kind, half.tobytes())
            found[f"{at}down_exps.weight"] = np.ascontiguousarray(found[f"{at}down_exps.weight"].swapaxes(1, 2))
        return found

    return model, keys("gpt-oss", config, **more), tensors


def glm4moe():
    """The first layer is dense."""
    config = transformers.Glm4MoeConfig(
        num_hidden_layers=2,
        head_dim=16,
        n_routed_experts=4,
        num_experts_per_tok=2,
        first_k_dense_replace=1,
        moe_intermediate_size=16,
        use_qk_norm=True,
        attention_bias=True,
        routed_scaling_factor=2.5,
        tie_word_embeddings=True,
        **SMALL,
    )
    model = transformers.Glm4MoeForCausalLM(config)
    more = routed_keys(
        4,
        2,
        16,
        expert_gating_func=2,
        expert_weights_scale=2.5,
        expert_weights_norm=True,
        leading_dense_block_count=1,
    )
    names = ROUTED_NAMES | {"post_attention_layernorm.weight": "post_attention_norm.weight"}
    return model, keys("glm4moe", config, **more), lambda: decoder_tensors(model, names=names)


def ernie4_5_moe():
    """The first layer is dense."""
    config = transformers.Ernie4_5_MoeConfig(
        num_hidden_layers=2,
        moe_num_experts=4,
        moe_k=2,
        moe_num_shared_experts=1,
        moe_layer_start_index=1,
        moe_layer_end_index=1,
        moe_layer_interval=1,
        moe_intermediate_size=16,
        tie_word_embeddings=True,
        **SMALL,
    )
    model = transformers.Ernie4_5_MoeForCausalLM(config)
    more = routed_keys(4, 2, 16, leading_dense_block_count=1, interleave_moe_layer_step=1)
    return model, keys("ernie4_5-moe", config, **more), lambda: decoder_tensors(model, names=ROUTED_NAMES)


def hunyuan_moe():
    config = transformers.HunYuanMoEV1Config(
        num_hidden_layers=2, num_experts=4, moe_topk=2, head_dim=16, tie_word_embeddings=True, **SMALL_EXPERTS
    )
    model = transformers.HunYuanMoEV1ForCausalLM(config)
    more = routed_keys(4, 2, config.intermediate_size)
    return model, keys("hunyuan-moe", config, **more), lambda: decoder_tensors(model, names=ROUTED_NAMES)


def minimax_m2():
    config = transformers.MiniMaxM2Config(
        num_hidden_layers=2,
        num_local_experts=4,
        num_experts_per_tok=2,
        head_dim=32,
        tie_word_embeddings=True,
        **SMALL_EXPERTS,
    )
    model = transformers.MiniMaxM2ForCausalLM(config)
    more = routed_keys(4, 2, config.intermediate_size, expert_gating_func=2)
    return model, keys("minimax-m2", config, **more), lambda: decoder_tensors(model, names=ROUTED_NAMES)


LATENT = dict(
    n_routed_experts=8,
    num_experts_per_tok=2,
    n_shared_experts=1,
    moe_intermediate_size=16,
    q_lora_rank=24,
    kv_lora_rank=32,
    qk_rope_head_dim=16,
    qk_nope_head_dim=16,
    v_head_dim=16,
)


def latent_keys(config):
    width = config.kv_lora_rank + config.qk_rope_head_dim
    return {
        "attention.head_count_kv": 1,
        "attention.key_length": width,
        "attention.value_length": config.kv_lora_rank,
        "attention.key_length_mla": config.qk_nope_head_dim + config.qk_rope_head_dim,
        "attention.value_length_mla": config.v_head_dim,
        "attention.q_lora_rank": config.q_lora_rank,
        "attention.kv_lora_rank": config.kv_lora_rank,
        "rope.dimension_count": config.qk_rope_head_dim,
    }


def latent_tensors(model, split_experts=True):
    """Keys and values of all heads come from one matrix; files have one for each, and that of the keys is transposed."""
    config = model.config
    found = decoder_tensors(model, names=ROUTED_NAMES, split_experts=split_experts)
    for layer in range(config.num_hidden_layers):
        both = found.pop(f"blk.{layer}.kv_b").reshape(config.num_attention_heads, -1, config.kv_lora_rank)
        k, v = np.split(both, [config.qk_nope_head_dim], axis=1)
        found[f"blk.{layer}.attn_k_b.weight"] = np.ascontiguousarray(k.swapaxes(1, 2))
        found[f"blk.{layer}.attn_v_b.weight"] = np.ascontiguousarray(v)
    return found


def deepseek2():
    """The router chooses by groups. The first layer is dense."""
    config = transformers.DeepseekV3Config(
        num_hidden_layers=2,
        first_k_dense_replace=1,
        n_group=4,
        topk_group=2,
        routed_scaling_factor=2.5,
        tie_word_embeddings=True,
        **LATENT,
        **(SMALL | {"num_key_value_heads": 2}),
    )
    model = transformers.DeepseekV3ForCausalLM(config)
    more = routed_keys(
        8,
        2,
        16,
        expert_gating_func=2,
        expert_weights_scale=2.5,
        expert_weights_norm=True,
        expert_group_count=4,
        expert_group_used_count=2,
        leading_dense_block_count=1,
    )
    return model, keys("deepseek2", config, **more, **latent_keys(config)), lambda: latent_tensors(model)


def mistral4():
    rope = {
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": 16.0,
        "original_max_position_embeddings": 16,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "llama_4_scaling_beta": 0.3,
        "partial_rotary_factor": 0.5,
    }
    config = transformers.Mistral4Config(
        num_hidden_layers=1,
        tie_word_embeddings=True,
        rope_parameters=rope,
        **LATENT,
        **(SMALL | {"num_key_value_heads": 2}),
    )
    model = transformers.Mistral4ForCausalLM(config)
    more = routed_keys(8, 2, 16, expert_weights_norm=True) | {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 16.0,
        "rope.scaling.original_context_length": 16,
        "rope.scaling.yarn_log_multiplier": 0.1,
        "attention.temperature_scale": 0.3,
        "attention.temperature_length": 16,
    }
    return model, keys("mistral4", config, **more, **latent_keys(config)), lambda: latent_tensors(model, False)


def lfm2_of(config, model, arch, **more):
    names = NAMES | {
        "operator_norm.weight": "attn_norm.weight",
        "ffn_norm.weight": "ffn_norm.weight",
        "conv.conv.weight": "shortconv.conv.weight",
        "conv.in_proj.weight": "shortconv.in_proj.weight",
        "conv.out_proj.weight": "shortconv.out_proj.weight",
        "self_attn.out_proj.weight": "attn_output.weight",
        "self_attn.q_layernorm.weight": "attn_q_norm.weight",
        "self_attn.k_layernorm.weight": "attn_k_norm.weight",
        "feed_forward.w1.weight": "ffn_gate.weight",
        "feed_forward.w2.weight": "ffn_down.weight",
        "feed_forward.w3.weight": "ffn_up.weight",
        "feed_forward.gate.weight": "ffn_gate_inp.weight",
        "feed_forward.expert_bias": "exp_probs_b.bias",
        "feed_forward.experts.gate_up_proj": "ffn_gate_up_exps.weight",
        "feed_forward.experts.down_proj": "ffn_down_exps.weight",
    }
    more |= {
        "attention.head_count_kv": [0, config.num_key_value_heads],
        "shortconv.l_cache": config.conv_L_cache,
    }
    return model, keys(arch, config, **more), lambda: decoder_tensors(model, names=names)


LFM2 = {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"], "tie_word_embeddings": True}


def lfm2():
    config = transformers.Lfm2Config(block_auto_adjust_ff_dim=False, **LFM2, **SMALL)
    return lfm2_of(config, transformers.Lfm2ForCausalLM(config), "lfm2")


def lfm2moe():
    """With experts in the second layer, which has attention."""
    config = transformers.Lfm2MoeConfig(
        num_dense_layers=1,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=32,
        use_expert_bias=True,
        **LFM2,
        **SMALL,
    )
    more = {"leading_dense_block_count": 1, "expert_gating_func": 2}
    return lfm2_of(config, transformers.Lfm2MoeForCausalLM(config), "lfm2moe", **expert_keys(config), **more)


def with_mamba2(tensors, n_groups):
    """Files have a column of numbers a head, and a row of the norm's weights a group."""
    for name, value in tensors.items():
        if name.endswith((".ssm_a", ".ssm_d", ".ssm_norm.weight")):
            value = value.reshape(n_groups if name.endswith("weight") else len(value), -1)
            tensors[name] = (value.shape, gguf_file.F32, np.ascontiguousarray(value, np.float32).tobytes())
    return tensors


MAMBA2_KEYS = {
    "ssm.conv_kernel": 4,
    "ssm.state_size": 16,
    "ssm.time_step_rank": 4,
    "ssm.inner_size": 64,
    "rope.scaling.finetuned": False,
}


def granitehybrid():
    scales = {
        "embedding_multiplier": 3.0,
        "residual_multiplier": 0.4,
        "attention_multiplier": 0.2,
        "logits_scaling": 1.5,
    }
    config = transformers.GraniteMoeHybridConfig(
        num_hidden_layers=2,
        layer_types=["mamba", "attention"],
        mamba_n_heads=4,
        mamba_d_head=16,
        mamba_d_state=16,
        mamba_n_groups=1,
        mamba_d_conv=4,
        num_local_experts=4,
        num_experts_per_tok=2,
        shared_intermediate_size=32,
        position_embedding_type="nope",
        tie_word_embeddings=True,
        **scales,
        **SMALL,
    )
    model = transformers.GraniteMoeHybridForCausalLM(config)
    names = NAMES | {f"mamba.{theirs}": ours for theirs, ours in MAMBA2_NAMES.items()}
    names |= {
        "block_sparse_moe.router.weight": "ffn_gate_inp.weight",
        "block_sparse_moe.experts.gate_up_proj": "ffn_gate_up_exps.weight",
        "block_sparse_moe.experts.down_proj": "ffn_down_exps.weight",
        "shared_mlp.input_linear.weight": "shared",
        "shared_mlp.output_linear.weight": "ffn_down_shexp.weight",
    }
    more = {
        "attention.head_count_kv": [0, config.num_key_value_heads],
        "embedding_scale": 3.0,
        "residual_scale": 0.4,
        "attention.scale": 0.2,
        "logit_scale": 1.5,
        "ssm.group_count": 1,
        "expert_count": 4,
        "expert_used_count": 2,
        "expert_shared_feed_forward_length": 32,
    }

    def tensors():
        found = with_mamba2(decoder_tensors(model, names=names), 1)
        for layer in range(config.num_hidden_layers):
            gate, up = np.split(found.pop(f"blk.{layer}.shared"), 2)
            found |= {f"blk.{layer}.ffn_gate_shexp.weight": gate, f"blk.{layer}.ffn_up_shexp.weight": up}
        return found

    return model, keys("granitehybrid", config, **MAMBA2_KEYS, **more), tensors


def nemotron_h_of(arch, feed_forward, names, more, **config):
    """Mamba 2, a feed-forward network, attention: each a layer."""
    config = transformers.NemotronHConfig(
        num_hidden_layers=3,
        layers_block_type=["mamba", feed_forward, "attention"],
        head_dim=32,
        mamba_num_heads=4,
        mamba_head_dim=16,
        ssm_state_size=16,
        n_groups=2,
        conv_kernel=4,
        mlp_hidden_act="relu2",
        tie_word_embeddings=False,
        **config,
        **SMALL,
    )
    model = transformers.NemotronHForCausalLM(config)
    names = {"norm.weight": "attn_norm.weight"} | {f"mixer.{x}": ours for x, ours in (MAMBA2_NAMES | names).items()}
    names |= {f"mixer.{x}_proj.weight": f"attn_{x}.weight" for x in "qkv"} | {
        "mixer.o_proj.weight": "attn_output.weight"
    }
    more |= {
        "attention.head_count_kv": [0, 0, config.num_key_value_heads],
        "feed_forward_length": [0, 32, 0],
        "ssm.group_count": 2,
    }
    return model, keys(arch, config, **MAMBA2_KEYS, **more), lambda: with_mamba2(decoder_tensors(model, names=names), 2)


def nemotron_h():
    names = {"up_proj.weight": "ffn_up.weight", "down_proj.weight": "ffn_down.weight"}
    return nemotron_h_of("nemotron_h", "mlp", names, {})


def nemotron_h_moe():
    names = {
        "gate.weight": "ffn_gate_inp.weight",
        "gate.e_score_correction_bias": "exp_probs_b.bias",
        "experts.up_proj": "ffn_up_exps.weight",
        "experts.down_proj": "ffn_down_exps.weight",
        "shared_experts.up_proj.weight": "ffn_up_shexp.weight",
        "shared_experts.down_proj.weight": "ffn_down_shexp.weight",
    }
    more = {
        "expert_count": 4,
        "expert_used_count": 2,
        "expert_feed_forward_length": 32,
        "expert_shared_feed_forward_length": 32,
        "expert_weights_norm": True,
        "expert_weights_scale": 2.5,
    }
    return nemotron_h_of(
        "nemotron_h_moe",
        "moe",
        names,
        more,
        n_routed_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=32,
        moe_shared_expert_intermediate_size=32,
        routed_scaling_factor=2.5,
        n_group=1,
        topk_group=1,
    )


def llama_k():
    """Rows of whole K blocks."""
    shape = SHAPE | {"hidden_size": 256, "intermediate_size": 256, "num_key_value_heads": 1}
    config = transformers.LlamaConfig(num_hidden_layers=1, tie_word_embeddings=True, **shape)
    model = transformers.LlamaForCausalLM(config)
    return model, keys("llama", config), lambda: decoder_tensors(model, permute=True)


FAMILIES = (
    *(llama, smollm3, qwen2, qwen3, qwen3moe, qwen3next, qwen35, qwen35moe),
    *(gemma3, gemma4, gemma4_moe, phi3, granite),
    *(seed_oss, ernie4_5, glm4, olmo2, exaone4, hunyuan_dense, mistral3, cohere2, muse_glimmer),
    *(gpt_oss, glm4moe, ernie4_5_moe, hunyuan_moe, minimax_m2, deepseek2, mistral4),
    *(lfm2, lfm2moe, granitehybrid, nemotron_h, nemotron_h_moe),
)
# Name -> (function, type of the file, the format of a matrix by its name).
MODELS = {f"tiny_{f.__name__}-{'f32' if f is llama else 'f16'}": (f, None) for f in FAMILIES} | {
    "tiny_llama_k-Q4_K_M": (llama_k, lambda name: "q6_k" if "down" in name or "_v" in name else "q4_k"),
    "tiny_qwen3moe-Q8_0": (lambda: qwen3moe(hidden_size=64), lambda name: "q8_0"),
}


# Buffers that have values of the model, as parameters have.
BUFFERS = ("layer_scalar", "expert_bias", "e_score_correction_bias")


def fill(model, format_of, rng):
    """Random parameters. Returns the blocks of those that have a format: what the file has in the place of values."""
    blocks = {}
    zero_based = model.config.model_type.startswith(("qwen3_next", "qwen3_5", "gemma3"))
    for name, value in [*model.named_parameters(), *((n, b) for n, b in model.named_buffers() if n.endswith(BUFFERS))]:
        is_gain = "norm" in name or name.endswith(("scale", "layer_scalar"))
        if format_of and value.ndim > 1 and not name.endswith("mlp.gate.weight"):
            kind = format_of(name)
            n_blocks = value.numel() // gguf_file.TYPES[kind].block_elems
            raw = random_blocks.random_blocks(kind, n_blocks, 1.2 / value.shape[-1] ** 0.5, rng).tobytes()
            value.copy_(torch.from_numpy(quant_formats.dequantize(kind, raw, tuple(value.shape)).copy()))
            blocks[name] = (kind, raw)
            continue
        noise = torch.randn_like(value) * (0.1 if value.ndim == 1 or is_gain else 1.2 / value.shape[-1] ** 0.5)
        if is_gain and not (zero_based and "linear_attn.norm" not in name):
            noise = noise + 1
        if name.endswith("A_log"):
            noise = noise - 1.5
        # Values that F16 holds, so that the file has just these weights.
        value.copy_(noise.half().float() if value.ndim > 1 else noise)
    return blocks


def greedy_run(model, n_prompt):
    """(ids, logits of all positions, smallest gap between the two best tokens of the greedy steps)."""
    ids = torch.randint(0, 256, (1, n_prompt))
    for _ in range(N_GREEDY):
        logits = model(ids, use_cache=False).logits
        ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
    logits = model(ids, use_cache=False).logits[0]
    top = logits[n_prompt - 1 : -1].topk(2, dim=-1).values
    return ids[0].numpy().astype(np.int32), logits.numpy().astype(np.float32), float((top[:, 0] - top[:, 1]).min())


def quantized(tensors, model, blocks, permute):
    """The tensors with blocks in the place of values; rows of q and k are moved as blocks are, which are whole rows'."""
    heads = {"attn_q": model.config.num_attention_heads, "attn_k": model.config.num_key_value_heads}
    for theirs, (kind, raw) in blocks.items():
        ours = OF_MODEL.get(theirs)
        data, shape = np.frombuffer(raw, np.uint8), tuple(model.state_dict()[theirs].shape)
        if ours is None:
            layer, name = theirs.removeprefix("model.layers.").split(".", 1)
            ours = f"blk.{layer}.{NAMES[name]}"
        number = gguf_file.TYPES[kind].number
        if ours.endswith("ffn_gate_up_exps.weight"):
            halves = data.reshape(shape[0], 2, -1)
            for i, part in enumerate(("gate", "up")):
                half = (shape[0], shape[1] // 2, shape[2])
                tensors[ours.replace("gate_up", part)] = (half, number, halves[:, i].tobytes())
            continue
        n_heads = heads.get(ours.split(".")[-2])
        if permute and n_heads:
            data = permuted(data.reshape(shape[0], -1), n_heads)
        tensors[ours] = (shape, number, data.tobytes())
    return tensors


def random_model(name):
    """(model, metadata, function of its tensors, blocks, reference) with the first seed whose greedy steps are clear."""
    function, format_of = MODELS[name]
    for seed in range(len(name), len(name) + 50):
        torch.manual_seed(seed)
        model, metadata, tensors = function()
        model.config._attn_implementation = "eager"
        model = model.float().eval()
        ref, gaps = {}, []
        with torch.no_grad():
            blocks = fill(model, format_of, np.random.default_rng(seed))
            for prompt, (n, n_kept) in (PROMPTS if model.config.vocab_size == tiny_model.VOCAB else FEWER_KEPT).items():
                ids, logits, gap = greedy_run(model, n)
                gaps.append(gap)
                kept = np.arange(n if format_of else len(ids), dtype=np.int32)[-n_kept:]
                ref[f"{prompt}/prompt"], ref[f"{prompt}/greedy"] = ids[:n], ids[n:]
                ref[f"{prompt}/pos"] = kept
                ref[f"{prompt}/{'exact' if format_of else 'hf'}_logits"] = logits[kept]
        if min(gaps) >= SMALLEST_GAP:
            break
    print(f"{name}: seed {seed}, logits std {logits.std():.2f}, smallest gap of the greedy steps {min(gaps):.3f}")
    return model, metadata, tensors, blocks, ref


def make(name):
    model, metadata, tensors, blocks, ref = random_model(name)
    for folder in ("models", "ref"):
        (FOLDER / folder).mkdir(parents=True, exist_ok=True)
    stored = tensors()
    if name.endswith("-f32"):
        stored = {k: (v.shape, gguf_file.F32, v.astype(np.float32).tobytes()) for k, v in stored.items()}
    if blocks:
        stored = quantized(stored, model, blocks, permute=metadata["general.architecture"] == "llama")
    gguf_file.write(FOLDER / "models" / f"{name}.gguf", metadata, stored)
    np.savez_compressed(FOLDER / "ref" / f"{name if blocks else name.rsplit('-', 1)[0]}.npz", **ref)


if __name__ == "__main__":
    for wanted in sys.argv[1:] or MODELS:
        make(wanted)
