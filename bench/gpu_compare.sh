#!/usr/bin/env bash
# Two programs of T-CUDA by turns on the GPU of this machine, in one call of about 4 minutes: is what is about to land
# slower than what landed? Prints a table of ratios and ends with 1 where one is below 0.98.
#   bench/gpu_compare.sh BEFORE AFTER [RESULTS]
# BEFORE and AFTER are zinc-rt programs, built with ZRT_CUDA=ON. RESULTS (default gpu-compare) gets before/ and after/, of
# which bench/gpu_report.py reads either. Needs the driver, and Python with numpy. Files of random weights in true shapes are
# made in a folder that goes away again (25 GB).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
before=$(realpath "$1") after=$(realpath "$2") results=${3:-gpu-compare}
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
mkdir -p "$results/before" "$results/after"
say() { echo "== ${SECONDS}s $*"; }

synth() { python3 "$root/bench/synth_gguf.py" "$1" --types "$2" -o "$files/$3.gguf" >/dev/null; }
say "models"
synth smollm2-135m q4_1 smollm2-135m-q4_1
(synth qwen3-30b-a3b Q4_K_M qwen3-30b-a3b-q4_k_m) &
large=$!
synth llama-3.2-1b BF16 llama-3.2-1b-bf16
synth qwen3-8b Q4_K_M qwen3-8b-q4_k_m
# Nothing else may run while speed is measured.
wait $large
nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem,power.limit --format=csv | tee "$results/machine.csv"
cp "$results/machine.csv" "$results/after/"
echo "bench/gpu_compare.sh" >"$results/after/command"

bench() { # PROGRAM WHO MODEL NAME OPTIONS...
  timeout 90 "$1" bench "$files/$3.gguf" --tier t_cuda --json "$results/$2/$3-$4.json" "${@:5}" >"$results/$2/$3-$4.log" 2>&1 ||
    { echo "failed: $results/$2/$3-$4.log" >&2; tail -n 3 "$results/$2/$3-$4.log" >&2; exit 1; }
}
both() { bench "$before" before "$@" && bench "$after" after "$@"; }
for model in smollm2-135m-q4_1 llama-3.2-1b-bf16 qwen3-8b-q4_k_m qwen3-30b-a3b-q4_k_m; do
  say "$model"
  for round in decode decode.2; do
    both $model $round --max-slots 64 --max-context 1024 --gen 64 --reps 3 --batch 1,2,8,16,64 --only batch
  done
  for prompt in 512 2048; do
    both $model prefill-$prompt --max-slots 1 --max-context 4096 --reps 5 --prompt $prompt --chunk-cap $prompt --only prefill
  done
  both $model context --max-slots 1 --max-context 16384 --reps 2 --context 8000 --only context
done
nvidia-smi --query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw --format=csv,noheader
say "end"
python3 "$root/bench/gpu_ratios.py" "$results"
