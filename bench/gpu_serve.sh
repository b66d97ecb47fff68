#!/usr/bin/env bash
# A server on the GPU of this machine under the loads of docs/notes/cuda-requests.md: Qwen3-8B's shapes in Q4_K_M, random weights,
# 64 slots. Needs the driver, Python with numpy, and zinc-rt. Several programs are measured by turns.
#   bench/gpu_serve.sh RESULTS PROGRAM [PROGRAM...]
# RESULTS gets a JSON file of each load and program, with every request, and what the servers log.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
results=$1
shift
mkdir -p "$results"
scratch=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null; rm -rf "$scratch"' EXIT
model=$scratch/qwen3-8b.gguf
python3 "$root/bench/synth_gguf.py" qwen3-8b --types Q4_K_M -o "$model" > "$results/synth.log" 2>&1 || exit 1
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader

hash_of() { printf %s "$1" | sha256sum | cut -d' ' -f1; }
cat > "$scratch/zinc.toml" <<TOML
[[models]]
path = "$model"
max_slots = 64
max_context = 4096
[[tenants]]
name = "crowd"
keys = ["sha256:$(hash_of crowd)"]
max_concurrent_slots = 64
max_kv_pages = 1000000
decode_tokens_per_s = 1e9
prefill_tokens_per_s = 1e9
[[tenants]]
name = "urgent"
keys = ["sha256:$(hash_of urgent)"]
qos_class = "interactive"
decode_tokens_per_s = 1e9
TOML

serve() { # PROGRAM ARGUMENT...: sets url and server
  "$1" serve "${@:2}" --tier t_cuda --port 0 --state none > "$scratch/out" 2>> "$results/servers.log" &
  server=$!
  for _ in $(seq 600); do
    url=$(sed -n 's|^\(http://[^ ]*\) serves .*|\1|p' "$scratch/out")
    [ -n "$url" ] && return
    sleep 0.1
  done
  tail -5 "$results/servers.log"
  exit 1
}
load() { # PROGRAM NAME OPTION...
  local name=$(basename "$(dirname "$1")")-$2
  echo "-- $name"
  timeout 90 "$1" bench serve --url "$url" --ignore-eos --json "$results/$name.json" "${@:3}"
}
for program in "$@"; do
  serve "$program" "$model" --max-slots 64 --max-context 4096
  load "$program" mixed --clients 64 --prompt 32-256 --output 32-256 --duration 15
  load "$program" prompts --clients 64 --requests 64 --prompt 1000 --output 64
  kill $server; wait $server
  serve "$program" --config "$scratch/zinc.toml"
  load "$program" beside-interactive --duration 12 --tenant crowd,key=crowd,clients=63,prompt=1000,output=64 \
    --tenant urgent,key=urgent,clients=1,prompt=32,output=256
  kill $server; wait $server
done
