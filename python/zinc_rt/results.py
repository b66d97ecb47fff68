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
    logprob: float  # nan: a prompt's first token
    top: list[tuple[int, float]]  # most likely first


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a request, all choices together."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int  # of prompt_tokens, those that came from the prefix cache
    reasoning_tokens: int = 0  # of completion_tokens, where the output is parsed
    accepted_prediction_tokens: int = 0  # with a prediction: Timings.accepted_draft_tokens
    rejected_prediction_tokens: int = 0  # with a prediction: the rest of Timings.draft_tokens


@dataclass(frozen=True, slots=True)
class Timings:
    """Where a request's time went."""

    queue_ms: float  # until it got a slot, and waiting again when preempted
    prefill_ms: float  # from the call until the first token was picked
    decode_ms: float  # all later tokens
    prefill_tokens_per_s: float
    decode_tokens_per_s: float
    draft_tokens: int  # tokens that steps guessed
    accepted_draft_tokens: int  # those of them that were picked
    clamps: list[str]  # what was shortened; empty unless something was


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model made of one of the tools."""

    id: str
    name: str  # as the model wrote it: it need not be one of the tools
    arguments: str  # a JSON object, if the model wrote one to its end


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """A part of an answer, or of a part: text, reasoning, or what a call is made of."""

    kind: Literal["text", "reasoning", "call_begin", "call_arguments", "call_end"]
    text: str  # of call_begin: the tool's name
    call: int  # which call, from 0
    id: str  # of call_begin: ToolCall.id


@dataclass(frozen=True, slots=True)
class Completion:
    """What a generation gave. With n > 1: the first choice, usage of all."""

    text: str  # where the output is parsed: the answer alone
    reasoning: str  # where the output is parsed
    tool_calls: list[ToolCall]  # where the output is parsed
    token_ids: list[int]  # all that were picked, the end token too
    finish_reason: str  # stop, length, cancelled, deadline, client_too_slow, sink_failed; empty while it runs
    logprobs: list[TokenLogprob]  # one a token when asked for
    prompt_logprobs: list[TokenLogprob]
    logits_hashes: list[int]  # one a token when asked for
    seed: int
    usage: Usage
    timings: Timings
    choices: list[Completion] = field(default_factory=list)  # with n > 1 all n

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
    preempted: bool  # the request gave way to another and will go on
    index: int  # which of n completions
    logprob: TokenLogprob | None  # when logprobs are asked for
    pieces: list[OutputPiece] = field(default_factory=list)  # where the output is parsed; text has those of the answer
    logits_hash: int | None = None  # of tokens, when hashes are asked for
