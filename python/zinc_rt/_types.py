"""Integers by the width that the engine keeps them in. Type checkers see int; _check.py knows their ranges."""

UInt32 = int
UInt64 = int
Int32 = int
TokenId = int
