#!/usr/bin/env bash
# The Vulkan backend on the GPU of this machine, in one call of some 5 minutes: what is proven of the device, the bits of
# models and products against T-CPU, then where the time of steps goes. Needs the driver, Vulkan's loader, Python with
# numpy, and programs: those of build/release, or of the folder that is named (zinc-rt, vulkan_slow,
# bench_vulkan_kernels; with their libraries in its lib/ where the machine lacks them).
#   bench/vulkan_gpu.sh [PROGRAMS [RESULTS]]
# RESULTS (default vulkan-results) gets the logs.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
programs=${1:-$root/build/release}
results=${2:-vulkan-results}
files=$(mktemp -d)
mkdir -p "$results"
find_program() { find "$programs" -name "$1" -type f -perm -u+x | head -1; }
zinc_rt=$(find_program zinc-rt) slow=$(find_program vulkan_slow) kernels=$(find_program bench_vulkan_kernels)
export LD_LIBRARY_PATH=$programs/lib:${LD_LIBRARY_PATH:-} ZRT_OWN_MODELS=$root/tests_data/models
failed=0
say() { echo "== ${SECONDS}s $*"; }
check() { # NAME SECONDS FILTER
  if timeout "$2" "$slow" --gtest_filter="$3" > "$results/$1.log" 2>&1 && grep -q '^\[       OK' "$results/$1.log"; then
    echo "ok      $1 ($(grep -c '^\[       OK' "$results/$1.log") tests)"
  else
    echo "FAILED  $1"
    grep 'Running 0 tests' "$results/$1.log"
    grep -E '^\[  FAILED|Failure|differ|refused' "$results/$1.log" | head -20
    failed=1
  fi
}
python3 "$root/bench/synth_gguf.py" qwen3-8b --types Q4_K_M -o "$files/qwen3-8b.gguf" > "$results/synth.log" 2>&1 &
writer=$!
say "devices"
"$zinc_rt" tiers 2>&1 | grep -A3 -i vulkan
say "matrices and products"
check matrices 60 'VulkanForms.MatricesOfIntegers'
check products 120 'Products.*'
say "models"
check batches 90 '*EveryFamily.BatchesOfSlots*:*EveryFamily.CheckpointsOfState*'
check prompts 90 '*EveryModel.APromptInChunks*'
wait "$writer"
say "time by kernel"
timeout 120 "$kernels" "$files/qwen3-8b.gguf" 2>&1 | tee "$results/kernels.log"
if [ "${PIPESTATUS[0]}" != 0 ]; then
  echo "FAILED  kernels; once more without matrices"
  failed=1
  timeout 120 "$kernels" "$files/qwen3-8b.gguf" 4096 no-matrices 2>&1 | tee "$results/kernels-no-matrices.log"
fi
say "done"
rm -rf "$files"
exit $failed
