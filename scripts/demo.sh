#!/usr/bin/env bash
# From nothing to a streamed answer: see --help.
set -euo pipefail
if [ "${1:-}" = --help ] || [ "${1:-}" = -h ]; then
  cat <<'HELP'
usage: bash scripts/demo.sh [QUESTION]

Installs the system packages that are missing (apt, with sudo when needed; without it the line for root is printed), makes .venv,
builds zinc-rt into build/release (ten minutes on two cores), fetches a 98 MB model into .cache, and streams an answer to QUESTION.
May be run again: what is there is kept.
Where a GPU of AMD, Intel or another maker is, the Vulkan backend is built for it (docs/vulkan.md).
Kernels for NVIDIA GPUs are compiled where nvcc and a GPU or its driver are; ZRT_CUDA=ON in the environment compiles them without a GPU.
HELP
  exit 0
fi
source "$(dirname "$0")/lib.sh"

need_packages "${BUILD_PACKAGES[@]}"
if maker=$(other_gpu); then
  say "a GPU of $maker is here: the Vulkan backend is built for it; zinc-rt takes it with --backend vulkan"
  want_packages "${VULKAN_PACKAGES[@]}"
fi
need_model || die "the model could not be fetched"
build_program
ZINC=$ROOT/build/release/bin/zinc-rt
QUESTION=${1:-What is the capital of France, and what is it known for?}
say "asking: $QUESTION"
"$ZINC" run "$MODEL" --progress --chat "$QUESTION" -n 96
say "next: ${ZINC#"$ROOT"/} chat ${MODEL#"$ROOT"/}"
