# Sourced by the scripts beside this file: sets zig to the program that ZRT_ZIG names, else to that of the checkout's .venv,
# else to the one in the path.
zig=${ZRT_ZIG:-}
if [ -z "$zig" ]; then
  for zig in "${0%/*}"/../../.venv/lib/python3*/site-packages/ziglang/zig zig; do
    [ -x "$zig" ] && break
  done
fi
