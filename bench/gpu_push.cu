// How long it takes one GPU to hand bytes to another: a ping-pong of two kernels, half a round trip.
//   peer    each writes the bytes into the other's memory and then a flag there; the other spins on its own memory
//   host    bytes and flag lie in pinned memory of the host, which both read and write
//   nccl    ncclSend and ncclRecv in a graph, where a library of NCCL is named
// Build and run: nvcc -O3 -arch=sm_90 bench/gpu_push.cu -o /tmp/gpu_push -ldl && /tmp/gpu_push [libnccl.so.2]
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#define CHECK(call)                                                        \
  do {                                                                     \
    const cudaError_t status = (call);                                     \
    if (status != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status)); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (0)

constexpr int kRounds = 2000, kThreads = 256;

// One side of the ping-pong: `first` sends round 1 and waits for its echo, the other waits and sends back.
__global__ void __launch_bounds__(kThreads)
    exchange(const uint4* from, uint4* to, uint32_t* out_flag, const uint32_t* in_flag, uint4* sink,
             const uint4* received, uint32_t vectors, int rounds, bool first) {
  const auto wait_for = [&](uint32_t round) {
    if (threadIdx.x == 0) {
      uint32_t seen;
      do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(in_flag) : "memory");
      while (seen < round);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < vectors; i += kThreads) sink[i] = received[i];
  };
  const auto send = [&](uint32_t round) {
    for (uint32_t i = threadIdx.x; i < vectors; i += kThreads) to[i] = from[i];
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(out_flag), "r"(round) : "memory");
  };
  for (int round = 1; round <= rounds; ++round) {
    if (first) send(round);
    wait_for(round);
    if (!first) send(round);
  }
}

struct Side {
  uint4 *data, *inbox, *sink;
  uint32_t* flag;  // that the other side sets
  cudaStream_t stream;
};

// Half a round trip in us, the kernels launched as graphs.
double ping_pong(Side (&sides)[2], uint32_t bytes) {
  cudaGraphExec_t graphs[2];
  cudaEvent_t begin, end;
  for (int i = 0; i < 2; ++i) {
    Side &own = sides[i], &other = sides[1 - i];
    CHECK(cudaSetDevice(i));
    CHECK(cudaMemset(own.flag, 0, 4));
    CHECK(cudaDeviceSynchronize());
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(own.stream, cudaStreamCaptureModeThreadLocal));
    exchange<<<1, kThreads, 0, own.stream>>>(own.data, other.inbox, other.flag, own.flag, own.sink, own.inbox,
                                             bytes / 16, kRounds, i == 0);
    CHECK(cudaStreamEndCapture(own.stream, &graph));
    CHECK(cudaGraphInstantiate(&graphs[i], graph, 0));
  }
  CHECK(cudaSetDevice(0));
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaSetDevice(1));
  CHECK(cudaGraphLaunch(graphs[1], sides[1].stream));
  CHECK(cudaSetDevice(0));
  CHECK(cudaEventRecord(begin, sides[0].stream));
  CHECK(cudaGraphLaunch(graphs[0], sides[0].stream));
  CHECK(cudaEventRecord(end, sides[0].stream));
  CHECK(cudaEventSynchronize(end));
  CHECK(cudaSetDevice(1));
  CHECK(cudaStreamSynchronize(sides[1].stream));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, begin, end));
  return ms * 1000.0 / kRounds / 2;
}

// NCCL by its C interface, as far as this asks of it.
struct Nccl {
  using Comm = void*;
  int (*init_all)(Comm*, int, const int*);
  int (*send)(const void*, size_t, int, int, Comm, cudaStream_t);
  int (*recv)(void*, size_t, int, int, Comm, cudaStream_t);
  explicit Nccl(void* library)
      : init_all(reinterpret_cast<decltype(init_all)>(dlsym(library, "ncclCommInitAll"))),
        send(reinterpret_cast<decltype(send)>(dlsym(library, "ncclSend"))),
        recv(reinterpret_cast<decltype(recv)>(dlsym(library, "ncclRecv"))) {}
};
double nccl_ping_pong(const Nccl& nccl, Nccl::Comm (&comms)[2], Side (&sides)[2], uint32_t bytes) {
  constexpr int kOfGraph = 20, kLaunches = 50;
  double us[2] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      CHECK(cudaSetDevice(i));
      Side& own = sides[i];
      cudaGraph_t graph;
      cudaGraphExec_t executable;
      CHECK(cudaStreamBeginCapture(own.stream, cudaStreamCaptureModeThreadLocal));
      for (int round = 0; round < kOfGraph; ++round)
        for (int half = 0; half < 2; ++half) {
          if (half == i)
            nccl.send(own.data, bytes, 0, 1 - i, comms[i], own.stream);
          else
            nccl.recv(own.inbox, bytes, 0, 1 - i, comms[i], own.stream);
        }
      CHECK(cudaStreamEndCapture(own.stream, &graph));
      CHECK(cudaGraphInstantiate(&executable, graph, 0));
      cudaEvent_t begin, end;
      CHECK(cudaEventCreate(&begin));
      CHECK(cudaEventCreate(&end));
      CHECK(cudaGraphLaunch(executable, own.stream));
      CHECK(cudaStreamSynchronize(own.stream));
      CHECK(cudaEventRecord(begin, own.stream));
      for (int launch = 0; launch < kLaunches; ++launch) CHECK(cudaGraphLaunch(executable, own.stream));
      CHECK(cudaEventRecord(end, own.stream));
      CHECK(cudaEventSynchronize(end));
      float ms = 0;
      CHECK(cudaEventElapsedTime(&ms, begin, end));
      us[i] = ms * 1000.0 / kLaunches / kOfGraph / 2;
    });
  for (auto& thread : threads) thread.join();
  return std::max(us[0], us[1]);
}

int main(int n_args, char** args) {
  int n = 0, can = 0;
  CHECK(cudaGetDeviceCount(&n));
  if (n < 2) {
    std::fprintf(stderr, "two GPUs are wanted, %d found\n", n);
    return 1;
  }
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  std::printf("%s, peer access %s\n", properties.name, can != 0 ? "yes" : "no");
  constexpr uint32_t kMost = 64 * 1024;
  Side peer[2], host[2];
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaSetDevice(i));
    if (can != 0) CHECK(cudaDeviceEnablePeerAccess(1 - i, 0));
    CHECK(cudaStreamCreateWithFlags(&peer[i].stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&peer[i].data, kMost));
    CHECK(cudaMalloc(&peer[i].inbox, kMost));
    CHECK(cudaMalloc(&peer[i].sink, kMost));
    CHECK(cudaMalloc(&peer[i].flag, 4));
    host[i] = peer[i];
    CHECK(cudaHostAlloc(&host[i].inbox, kMost, cudaHostAllocPortable | cudaHostAllocMapped));
    CHECK(cudaHostAlloc(&host[i].flag, 4, cudaHostAllocPortable | cudaHostAllocMapped));
  }
  void* library = n_args > 1 ? dlopen(args[1], RTLD_NOW) : nullptr;
  if (n_args > 1 && library == nullptr) std::printf("nccl: %s\n", dlerror());
  Nccl::Comm comms[2];
  const int devices[2] = {0, 1};
  if (library != nullptr && Nccl(library).init_all(comms, 2, devices) != 0) library = nullptr;
  std::printf("| bytes | peer, us | host, us | nccl, us |\n|---|---|---|---|\n");
  for (uint32_t bytes = 1024; bytes <= kMost; bytes *= 2) {
    double best[3] = {1e9, 1e9, 1e9};
    for (int repetition = 0; repetition < 3; ++repetition) {
      if (can != 0) best[0] = std::min(best[0], ping_pong(peer, bytes));
      best[1] = std::min(best[1], ping_pong(host, bytes));
      if (library != nullptr) best[2] = std::min(best[2], nccl_ping_pong(Nccl(library), comms, peer, bytes));
    }
    std::printf("| %u |", bytes);
    for (const double us : best) us < 1e9 ? std::printf(" %.2f |", us) : std::printf(" - |");
    std::printf("\n");
  }
}
