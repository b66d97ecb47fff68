"""Types of arguments. Integers are named by the width that the engine keeps them in; _check.py knows their ranges."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

UInt32 = int
UInt64 = int
Int32 = int
TokenId = int

# A logits processor is called with the token ids so far, prompt first (int32), and the logits for the next token
# (float32). It changes the logits in place or returns other logits.
LogitsProcessor = Callable[["npt.NDArray[np.int32]", "npt.NDArray[np.float32]"], Any]
