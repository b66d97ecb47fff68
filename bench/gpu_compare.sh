#!/usr/bin/env bash
# Two programs of T-CUDA by turns on the GPU of this machine, in one call of about 4 minutes: is what is about to land
# slower than what landed? Prints a table of ratios and ends with 1 where one is below 0.98.
#   bench/gpu_compare.sh BEFORE AFTER [RESULTS [LLAMA [FILES]]]
# BEFORE and AFTER are zinc-rt programs, built with ZRT_CUDA=ON. RESULTS (default gpu-compare) gets before/ and after/, of
# which bench/gpu_report.py reads either. LLAMA, a folder with llama.cpp's llama-bench and llama-batched-bench, is measured in
# the same call, for RESULTS/peer/; it takes 2 minutes more. Needs the driver, and Python with numpy. Files of random weights
# in true shapes (25 GB) are made in a folder that goes away again, or in FILES where they are not there yet.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 2 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
before=$(realpath "$1") after=$(realpath "$2") results=${3:-gpu-compare} llama=${4:-} files=${5:-}
if [ -z "$files" ]; then
  files=$(mktemp -d)
  trap 'rm -rf "$files"' EXIT
fi
mkdir -p "$results/before" "$results/after" "$results/peer" "$files"
say() { echo "== ${SECONDS}s $*"; }

synth() { [ -f "$files/$3.gguf" ] || python3 "$root/bench/synth_gguf.py" "$1" --types "$2" -o "$files/$3.gguf" >/dev/null; }
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
peer() { # MODEL: prompts, one stream, batches; a model that it cannot load is said
  local out=$results/peer/$1
  timeout 90 "$llama/llama-bench" -m "$files/$1.gguf" -ngl 99 -fa 1 -b 2048 -ub 2048 -p 512,2048 -n 64 -r 5 -o json \
    >"$out-bench.json" 2>"$out-bench.log" || { echo "llama.cpp failed: $out-bench.log"; tail -n 2 "$out-bench.log"; }
  timeout 90 "$llama/llama-batched-bench" -m "$files/$1.gguf" -ngl 99 -fa on -c 8192 -b 2048 -ub 2048 -npp 16 -ntg 64 \
    -npl 1,2,8,16,64 --output-format jsonl >"$out-batch.jsonl" 2>"$out-batch.log" || echo "llama.cpp failed: $out-batch.log"
}
for model in smollm2-135m-q4_1 llama-3.2-1b-bf16 qwen3-8b-q4_k_m qwen3-30b-a3b-q4_k_m; do
  say "$model"
  for round in decode decode.2; do
    both $model $round --max-slots 64 --max-context 1024 --gen 64 --reps 3 --batch 1,2,8,16,64 --only batch
  done
  for prompt in 512 2048; do
    both $model prefill-$prompt --max-slots 1 --max-context 4096 --reps 5 --prompt $prompt --chunk-cap $prompt --only prefill
    bench "$after" after $model fast-prefill-$prompt --arithmetic fast --max-slots 1 --max-context 4096 --reps 5 \
      --prompt $prompt --chunk-cap $prompt --only prefill
  done
  both $model context --max-slots 1 --max-context 8192 --reps 2 --context 8000 --only context
  [ -z "$llama" ] || peer $model
done
say "Qwen3-8B behind 32,000 tokens"
both qwen3-8b-q4_k_m context.2 --max-slots 1 --max-context 32768 --reps 2 --context 32000 --only context
nvidia-smi --query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw --format=csv,noheader
say "end"
python3 "$root/bench/gpu_ratios.py" "$results"
