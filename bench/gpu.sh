#!/usr/bin/env bash
# T-CUDA on the GPU of this machine, in one call of at most 8 minutes: the same bits as T-CPU, the checks of
# compute-sanitizer, then speed. Needs the driver, Python with numpy, and programs: those of build/release, or of the
# folder that is named (zinc-rt, ring_test, executor_test; with their libraries in its lib/ where the machine lacks them).
#   bench/gpu.sh [PROGRAMS [RESULTS]]
# RESULTS (default gpu-results) gets JSON files of each model, and the logs; bench/gpu_report.py makes a table of them.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
programs=${1:-$root/build/release}
results=${2:-gpu-results}
files=$(mktemp -d)
mkdir -p "$results"
find_program() { find "$programs" -name "$1" -type f -perm -u+x | head -1; }
zinc_rt=$(find_program zinc-rt) ring_test=$(find_program ring_test) executor_test=$(find_program executor_test)
export LD_LIBRARY_PATH=$programs/lib:${LD_LIBRARY_PATH:-}
failed=0
say() { echo "== ${SECONDS}s $*"; }
check() { # NAME SECONDS COMMAND...: the command's log under results; a failure is remembered
  local name=$1 limit=$2
  shift 2
  if timeout "$limit" "$@" > "$results/$name.log" 2>&1; then
    # Models of the tests lie beside the repository; without them their tests are skipped.
    echo "ok      $name ($(grep -c '^\[       OK' "$results/$name.log") tests, $(grep -c '^\[  SKIPPED.*ms)$' "$results/$name.log") skipped)"
  else
    echo "FAILED  $name (rc $?): $results/$name.log"
    tail -3 "$results/$name.log"
    failed=1
    return 1
  fi
}

synth() { python3 "$root/bench/synth_gguf.py" "$@" > "$results/synth.log" 2>&1; }
(synth smollm2-135m --types q4_1 -o "$files/smollm2-135m-q4_1.gguf"
 synth llama-3.2-1b --types BF16 -o "$files/llama-3.2-1b-bf16.gguf"
 synth qwen3-8b --types Q4_K_M -o "$files/qwen3-8b-q4_k_m.gguf"
 synth qwen3-30b-a3b --types Q4_K_M -o "$files/qwen3-30b-a3b-q4_k_m.gguf") &
writer=$!
synth qwen3-8b --types BF16 -o "$files/qwen3-8b-bf16.gguf" &
large_writer=$!

say "$("$zinc_rt" --version 2>/dev/null)"
nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem,power.limit --format=csv | tee "$results/machine.csv"
"$zinc_rt" tiers

say "bits"
check ring 60 "$ring_test" --gtest_filter='*t_cuda*'
export GTEST_TOTAL_SHARDS=8
for GTEST_SHARD_INDEX in 0 1 2 3 4 5 6 7; do
  export GTEST_SHARD_INDEX
  check executor-$GTEST_SHARD_INDEX 240 "$executor_test" --gtest_filter='*t_cuda*' &
  shards="${shards:-} $!"
done
for shard in $shards; do wait "$shard" || failed=1; done
unset GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX
bits() { # FAMILY TYPE: every layer and the logits of a tiny random model, with rows that are no whole tiles
  local model=$files/tiny-$1-$2.gguf
  synth "tiny-$1" --types "$2" --vocab 517 -o "$model" &&
    timeout 60 "$zinc_rt" validate --model "$model" --ids "$(seq -s, 1 45)" --tiers t_cpu+threads=2,t_cuda --layers all \
      > "$results/bits-$1-$2.log" 2>&1 || echo "FAILED  $1 $2"
}
export -f bits synth
export files results zinc_rt root
different=$(for family in llama qwen3moe; do
  for type in f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 iq4_nl mxfp4 q2_k q3_k q4_k q5_k q6_k iq4_xs; do echo "$family $type"; done
done | xargs -P 6 -L 1 bash -c 'bits "$@"' _)
if [ -z "$different" ]; then echo "ok      every weight format, dense and experts"; else echo "$different"; failed=1; fi

if command -v compute-sanitizer > /dev/null; then
  say "compute-sanitizer"
  few='*Tiers.BatchesOfSlots/t_cuda_llama_k_Q4_K_M:*Tiers.BatchesOfSlots/t_cuda_qwen35moe_Q4_K_M:*Tiers.CachesOfOtherTypes/t_cuda_gemma3_f16:*Tiers.SamplingOfAllKinds/t_cuda_qwen2_f32'
  for tool in memcheck racecheck; do
    check "$tool" 90 compute-sanitizer --tool "$tool" --error-exitcode 9 "$executor_test" --gtest_filter="$few"
  done
  check memcheck-fast 60 compute-sanitizer --tool memcheck --error-exitcode 9 "$executor_test" \
    --gtest_filter='*Tiers.ALongPromptInArithmeticFast/t_cuda_llama_k_Q4_K_M:*Tiers.ALongPromptInArithmeticFast/t_cuda_llama_spm_bf16'
fi

say "speed"
measure() { # MODEL
  [ -f "$files/$1.gguf" ] || return
  timeout 60 "$zinc_rt" bench "$files/$1.gguf" --tier t_cuda --max-slots 64 --max-context 1024 --gen 64 --reps 3 \
    --batch 1,16,64 --only batch --json "$results/$1-decode.json" | grep -E "^tier|batch"
  for prompt in 128 512 2048; do
    timeout 60 "$zinc_rt" bench "$files/$1.gguf" --tier t_cuda --max-slots 1 --max-context 4096 --reps 5 --prompt $prompt \
      --chunk-cap $prompt --only prefill --json "$results/$1-prefill-$prompt.json" | grep prefill
  done
  measure_fast "$1" 512 2048
}
measure_fast() { # MODEL PROMPT...: what differs in arithmetic fast
  local model=$1
  shift
  for prompt in "$@"; do
    timeout 60 "$zinc_rt" bench "$files/$model.gguf" --tier t_cuda --arithmetic fast --max-slots 1 --max-context 4096 --reps 5 \
      --prompt $prompt --chunk-cap $prompt --only prefill --json "$results/$model-fast-prefill-$prompt.json" |
      sed -n 's/.*prefill/fast prefill/p'
  done
}
measure smollm2-135m-q4_1
wait $writer
for model in llama-3.2-1b-bf16 qwen3-8b-q4_k_m qwen3-30b-a3b-q4_k_m; do
  [ $SECONDS -lt 400 ] && measure $model
done
wait $large_writer
[ $SECONDS -lt 440 ] && measure_fast qwen3-8b-bf16 2048
nvidia-smi --query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw --format=csv,noheader
rm -rf "$files"
say "end"
exit $failed
