"""One exception class for each kind of error. A message begins with its place and gives the numbers that disagree.

A message is for people and may be reworded; programs read the class and these attributes of every exception:
- reason: what happened, where the class does not say it: "context_length_exceeded", "grammar_too_complex",
  "bad_logits", and what codes a server answers with. Empty: nothing more than the class.
- field: the parameter or member of a quota at fault, such as "max_tokens"; "output_format" for whatever says what the
  answer must look like. Empty: none.
"""


class ZincError(Exception):
    """Base of all errors that the engine raises."""

    reason = ""
    field = ""


class InvalidArgument(ZincError, ValueError):
    """The request cannot be served as written."""


class InvalidType(InvalidArgument, TypeError):
    """A parameter that does not exist, is missing or has a value of a wrong type."""


class NotFound(ZincError, FileNotFoundError):
    """A file, tensor, tier or name that does not exist."""

    def __init__(self, message: str):
        super().__init__(message)


class Exhausted(ZincError):
    """A quota or a pool is used up. retry_after: seconds, 0 where unknown."""

    def __init__(self, message: str, retry_after: float = 0.0):
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(ZincError):
    """The thing exists but cannot be used now or on this machine."""


class Corrupt(ZincError):
    """An input file breaks its own format."""


class Internal(ZincError):
    """A bug of the engine or a fault of the device."""
