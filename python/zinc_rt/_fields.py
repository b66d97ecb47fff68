"""Fields of the server's requests, for type checkers: docs/server.md says what each means, the server checks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict


class ServerFields(TypedDict, total=False):
    model: str
    max_tokens: int
    max_completion_tokens: int
    min_tokens: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    logit_bias: dict[str, float]
    seed: int
    n: int
    best_of: int
    stop: str | Sequence[str]
    stop_token_ids: Sequence[int]
    include_stop_str_in_output: bool
    skip_special_tokens: bool
    ignore_eos: bool
    logprobs: bool | int
    top_logprobs: int
    prompt_logprobs: int
    echo: bool
    tools: Sequence[dict[str, Any]]
    tool_choice: Literal["auto", "none", "required"] | dict[str, Any]
    parallel_tool_calls: bool
    chat_template_kwargs: dict[str, Any]
    add_generation_prompt: bool
    continue_final_message: bool
    reasoning_effort: str
    reasoning: dict[str, Any]
    include_reasoning: bool
    service_tier: str
    cache_salt: str
    deadline_ms: float
    return_token_ids: bool
    speculate: str
    prediction: dict[str, Any]
    return_logits_hash: bool
    timings: bool
    user: str
    safety_identifier: str
    prompt_cache_key: str
    response_format: dict[str, Any]
    structured_outputs: dict[str, Any]
    guided_json: dict[str, Any] | bool | str
    json_schema: dict[str, Any] | bool | str
    guided_regex: str
    regex: str
    guided_choice: Sequence[str]
    choice: Sequence[str]
    guided_grammar: str
    grammar: str
    metadata: dict[str, Any]
