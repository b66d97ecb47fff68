"""The classes that ray.serve.llm takes from SGLang, by name alone: they hold what they are given and check nothing.

With it ray.serve.llm can be imported where neither vLLM nor SGLang is installed. Its folders need no __init__.py.
"""

from pydantic import BaseModel, ConfigDict


class _Fields(BaseModel):
    model_config = ConfigDict(extra="allow")


class _Request(_Fields):
    model: str | None = None
    stream: bool = False


class ChatCompletionRequest(_Request):
    messages: list


class CompletionRequest(_Request):
    prompt: object


class EmbeddingRequest(_Request):
    input: object


class ScoringRequest(_Request):
    pass


class TokenizeRequest(_Request):
    pass


class DetokenizeRequest(_Request):
    pass


class ChatCompletionResponse(_Fields):
    pass


class ChatCompletionStreamResponse(_Fields):
    pass


class CompletionResponse(_Fields):
    pass


class CompletionStreamResponse(_Fields):
    pass


class EmbeddingResponse(_Fields):
    pass


class ScoringResponse(_Fields):
    pass


class TokenizeResponse(_Fields):
    pass


class DetokenizeResponse(_Fields):
    pass
