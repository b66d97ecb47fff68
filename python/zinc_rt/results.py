"""What generations give: plain values, which compare, copy and pickle.

The extension passes all fields by name, so a field that one side lacks is an error in every call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """How likely a token was, in natural logarithms, and which ones were likelier."""

    token_id: int
    logprob: float  # nan for a prompt's first token
    top: list[tuple[int, float]]  # (token id, logprob), the most likely token first


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a request, all choices together."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int  # tokens of prompt_tokens that the prefix cache supplied
    reasoning_tokens: int = 0  # tokens of completion_tokens, if the output is parsed
    accepted_prediction_tokens: int = 0  # with a prediction: Timings.accepted_draft_tokens
    rejected_prediction_tokens: int = 0  # with a prediction: the rest of Timings.draft_tokens


@dataclass(frozen=True, slots=True)
class Timings:
    """Where a request's time went."""

    queue_ms: float  # time without a slot, before the first one and after preemptions
    prefill_ms: float  # from the call until the first token was picked
    decode_ms: float  # all later tokens
    prefill_tokens_per_s: float
    decode_tokens_per_s: float
    draft_tokens: int  # tokens that steps guessed
    accepted_draft_tokens: int  # guessed tokens that were picked
    clamps: list[str]  # which limits were lowered, and why; empty if none was


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model made of one of the tools."""

    id: str
    name: str  # as the model wrote it, so it may be none of the tools
    arguments: str  # a JSON object, if the model wrote one to its end


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """A part of an answer, or of a part: text, reasoning, or what a call is made of."""

    kind: Literal["text", "reasoning", "call_begin", "call_arguments", "call_end"]
    text: str  # for call_begin: the tool's name
    call: int  # which call, from 0
    id: str  # for call_begin: ToolCall.id


@dataclass(frozen=True, slots=True)
class Completion:
    """What a generation gave. With n > 1: the first choice, usage of all."""

    text: str  # if the output is parsed: only the answer
    reasoning: str  # if the output is parsed
    tool_calls: list[ToolCall]  # if the output is parsed
    token_ids: list[int]  # all picked tokens, including the end token
    finish_reason: str  # stop, length, cancelled, deadline, client_too_slow, sink_failed; empty while it runs
    logprobs: list[TokenLogprob]  # one per token, if the request asked for them
    prompt_logprobs: list[TokenLogprob]
    logits_hashes: list[int]  # one per token, if the request asked for them
    seed: int
    usage: Usage
    timings: Timings
    choices: list[Completion] = field(default_factory=list)  # all n choices, if n > 1

    def __repr__(self) -> str:
        choices = f", choices={len(self.choices)}" if self.choices else ""
        if self.tool_calls:
            choices = f", tool_calls={self.tool_calls!r}{choices}"
        return (
            f"Completion(text={self.text!r}, finish_reason={self.finish_reason!r}, "
            f"prompt_tokens={self.usage.prompt_tokens}, completion_tokens={self.usage.completion_tokens}{choices})"
        )


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """A token, text that became sure, or a preemption."""

    token_id: int | None  # None: text that was held back, or a preemption
    text: str  # never half a character
    preempted: bool  # another request took its slot; it will continue later
    index: int  # which of the n choices
    logprob: TokenLogprob | None  # if the request asked for logprobs
    pieces: list[OutputPiece] = field(default_factory=list)  # if the output is parsed; `text` is only the answer
    logits_hash: int | None = None  # for tokens, if the request asked for hashes
