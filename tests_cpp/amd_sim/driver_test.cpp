// The drivers' interfaces as the tests' drivers take them (libamd_sim.so is linked): each way of running packets, and
// requests that are broken on purpose, each named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "ring/amd/packet_checks.h"
#include "ring/amd/submit_paths.h"
#include "ring/kfd/cs_device.h"
#include "ring/kfd/kfd_device.h"
#include "ring/umq/umq_device.h"

namespace zinc_rt::ring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr SubmitPath kAll[] = {{"pm4", "PM4", [] { return KfdDevice::make(kfd::kQueuePm4); }},
                               {"aql", "AQL", [] { return KfdDevice::make(kfd::kQueueAql); }},
                               {"cs", "CS", CsDevice::make},
                               {"userq", "USERQ", UmqDevice::make}};

// What the drivers and the card say while `run` runs; the rest of the program says nothing.
template <class Run>
std::string said(const Run& run) {
  ::testing::internal::CaptureStderr();
  run();
  return ::testing::internal::GetCapturedStderr();
}

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST(AmdDrivers, EachWayRunsEveryPacket) {
  for (const SubmitPath& path : kAll) {
    auto proven = first_proven(std::span(&path, 1), std::chrono::seconds(10));
    EXPECT_TRUE(proven) << path.name << ": " << proven.error().message;
  }
}

TEST(AmdDrivers, TheNextWayIsTakenWhereOneRunsNothing) {
  const Variable dead("ZRT_AMD_SIM_DEAD", "pm4,aql");
  const auto proven = first_proven(kAll, std::chrono::seconds(10));
  ASSERT_TRUE(proven) << proven.error().message;
  EXPECT_THAT(proven->device().describe(), HasSubstr("AMDGPU_CS"));
  EXPECT_THAT(describe_proofs(kAll),
              AllOf(HasSubstr("PM4 (pm4): [amd] the device is lost: no end of work after 1000 ms, fence 0 of 1"),
                    HasSubstr("CS (cs): runs fences and all packets")));
}

TEST(AmdDrivers, WhatEachWayLacksIsSaid) {
  const Variable dead("ZRT_AMD_SIM_DEAD", "pm4,aql");
  const auto proven = first_proven(std::span(kAll, 2), std::chrono::seconds(10));
  ASSERT_FALSE(proven);
  EXPECT_THAT(proven.error().message, AllOf(HasSubstr("no way of running packets works here"),
                                            HasSubstr("AQL: [amd] the device is lost: no end of work")));
}

TEST(AmdDrivers, AnUnknownWayIsNamed) {
  const Variable wanted("ZINC_RT_AMD_PATH", "dma");
  EXPECT_THAT(wanted_paths(kAll).error().message, HasSubstr("ZINC_RT_AMD_PATH is \"dma\", of: pm4, aql, cs, userq"));
}

TEST(AmdDrivers, WhyThereAreNoUserQueues) {
  {
    const Variable off("ZRT_AMD_SIM_USERQ", "off");
    EXPECT_THAT(UmqDevice::make().error().message, HasSubstr("amdgpu.user_queue is -1, 1 is wanted"));
  }
  {
    const Variable untold("ZRT_AMD_SIM_USERQ", "untold");
    EXPECT_TRUE(UmqDevice::make());
  }
  const Variable old("ZRT_AMD_SIM_USERQ", "old");
  EXPECT_THAT(UmqDevice::make().error().message,
              AllOf(HasSubstr("MEC has version 2800, at least 3050"), HasSubstr("MES has version 122, at least 123")));
}

// Requests of /dev/kfd, one by one.
class Kfd : public ::testing::Test {
 protected:
  void SetUp() override {
    auto connection = KfdConnection::open();
    ASSERT_TRUE(connection) << connection.error().message;
    kfd_ = *connection;
  }
  // Memory with these flags; the address.
  std::uint64_t alloc(std::uint64_t bytes, std::uint32_t flags) {
    void* va = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    kfd::AllocMemory request{};
    request.va = reinterpret_cast<std::uint64_t>(va), request.size = bytes;
    request.gpu_id = kfd_->node().gpu_id, request.flags = flags | kfd::kWritable | kfd::kExecutable;
    EXPECT_TRUE(kfd_->control(kfd::kAllocMemory, &request, "ALLOC"));
    ::mmap(va, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, kfd_->drm_fd(),
           static_cast<off_t>(request.mmap_offset));
    std::uint32_t gpu = kfd_->node().gpu_id;
    kfd::MapMemory map{request.handle, reinterpret_cast<std::uint64_t>(&gpu), 1, 0};
    EXPECT_TRUE(kfd_->control(kfd::kMapMemory, &map, "MAP"));
    return request.va;
  }
  // A queue that is right, but for what `change` does.
  template <class Change>
  std::string create(const Change& change, std::uint32_t ring_flags = kOfTheHost) {
    const auto area = kfd::save_area_of(kfd_->node().n_cus);
    const std::uint64_t words = alloc(kfd::kPageBytes, kOfTheHost);
    std::memset(reinterpret_cast<void*>(words), 0, kfd::kPageBytes);
    kfd::CreateQueue request{};
    request.ring = alloc(kRingBytes, ring_flags), request.ring_bytes = kRingBytes;
    request.wptr = words, request.rptr = words + 8;
    request.gpu_id = kfd_->node().gpu_id, request.percentage = 100, request.priority = 7;
    request.eop = alloc(kfd::kEopBytes, kfd::kVram), request.eop_bytes = kfd::kEopBytes;
    request.ctx_save = alloc(area.buffer_bytes, kfd::kVram);
    request.ctx_save_bytes = static_cast<std::uint32_t>(area.ctx_save_bytes);
    request.ctl_stack_bytes = static_cast<std::uint32_t>(area.ctl_stack_bytes);
    change(request);
    std::string error;
    const auto text = said([&] {
      if (const auto status = kfd_->control(kfd::kCreateQueue, &request, "CREATE_QUEUE"); !status)
        error = status.error().message;
    });
    kfd::DestroyQueue destroy{request.queue_id, 0};
    if (error.empty()) static_cast<void>(kfd_->control(kfd::kDestroyQueue, &destroy, "DESTROY_QUEUE"));
    return error + text;
  }
  static constexpr std::uint32_t kOfTheHost = kfd::kGtt | kfd::kCoherent | kfd::kUncached, kRingBytes = 4096;
  KfdConnection* kfd_ = nullptr;
};

TEST_F(Kfd, AQueueThatIsRight) {
  EXPECT_EQ(create([](auto&) {}), "");
}
TEST_F(Kfd, MemoryOfTheHostWithoutItsFlags) {
  EXPECT_THAT(create([](auto&) {}, kfd::kGtt), HasSubstr("the ring has memory without the flags 06000000"));
  EXPECT_THAT(create([](auto&) {}, kfd::kGtt | kfd::kCoherent), HasSubstr("without the flags 02000000"));
  EXPECT_THAT(create([&](auto& a) { a.wptr = alloc(kfd::kPageBytes, kfd::kGtt); }), HasSubstr("wptr has memory"));
}
TEST_F(Kfd, SizesThatTheKernelRefuses) {
  EXPECT_THAT(create([](auto& a) { a.ring_bytes = 3000; }), HasSubstr("CREATE_QUEUE: Invalid argument"));
  EXPECT_THAT(create([](auto& a) { a.eop_bytes = 8192; }), HasSubstr("Invalid argument"));
  EXPECT_THAT(create([](auto& a) { a.ctx_save_bytes += 4096; }), HasSubstr("Invalid argument"));
  EXPECT_THAT(create([](auto& a) { a.ring = 0x1000; }), HasSubstr("the ring is in no memory"));
  EXPECT_THAT(create([](auto& a) { a.type = kfd::kQueueAql; }), HasSubstr("the words of an AQL queue"));
}

// Requests of the render node, one by one.
class Drm : public ::testing::Test {
 protected:
  void SetUp() override {
    auto connection = DrmConnection::open("test");
    ASSERT_TRUE(connection) << connection.error().message;
    drm_ = std::move(*connection);
    drm::Context context{};
    context.in.op = drm::kContextAlloc;
    ASSERT_TRUE(drm_->control(drm::kContext, &context, "CTX"));
    context_ = context.id;
  }
  // An object that the host sees, at an address of the device.
  struct Object {
    std::uint32_t handle;
    std::uint64_t va;
    std::uint32_t* words;
  };
  Object alloc(std::uint32_t domain, std::uint32_t flags) {
    drm::GemCreate create{};
    create.in = {drm::kPageBytes, drm::kPageBytes, domain, flags};
    EXPECT_TRUE(drm_->control(drm::kGemCreate, &create, "GEM_CREATE"));
    Object object{create.handle, next_va_, nullptr};
    next_va_ += drm::kPageBytes;
    drm::GemMmap window{};
    window.handle = object.handle;
    EXPECT_TRUE(drm_->control(drm::kGemMmap, &window, "GEM_MMAP"));
    object.words = static_cast<std::uint32_t*>(::mmap(nullptr, drm::kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                                                      drm_->fd(), static_cast<off_t>(window.offset)));
    std::memset(object.words, 0, drm::kPageBytes);
    if (domain != drm::kDoorbell) change_mapping(object, drm::kMap);
    return object;
  }
  void change_mapping(const Object& object, drm::VaOperation operation) {
    drm::GemVa map{};
    map.handle = object.handle, map.operation = operation, map.va = object.va, map.bytes = drm::kPageBytes;
    map.flags = drm::kReadable | drm::kWritable | drm::kExecutable;
    EXPECT_TRUE(drm_->control(drm::kGemVa, &map, "GEM_VA"));
  }
  // Packets that write 1 to the first word of `to`.
  static std::uint32_t write_packets(const Object& packets, const Object& to) {
    PacketBuilder builder;
    builder.release(to.va, 1);
    builder.pad(pm4::kBufferDwords);
    const auto bytes = std::as_bytes(builder.dwords());
    std::memcpy(packets.words, bytes.data(), bytes.size());
    return static_cast<std::uint32_t>(bytes.size());
  }
  // Runs them by AMDGPU_CS; what is said of it.
  std::string submit(std::uint64_t va, std::uint32_t bytes, std::vector<drm::BoListEntry> listed) {
    drm::CsIb ib{0, drm::kIbSynchronizes, va, bytes, drm::kCompute, 0, 0};
    drm::BoList list{~0u, ~0u, static_cast<std::uint32_t>(listed.size()), sizeof(drm::BoListEntry),
                     reinterpret_cast<std::uint64_t>(listed.data())};
    const drm::CsChunk chunks[] = {{drm::kChunkIb, sizeof(ib) / 4, reinterpret_cast<std::uint64_t>(&ib)},
                                   {drm::kChunkBos, sizeof(list) / 4, reinterpret_cast<std::uint64_t>(&list)}};
    const std::uint64_t pointers[] = {reinterpret_cast<std::uint64_t>(&chunks[0]),
                                      reinterpret_cast<std::uint64_t>(&chunks[1])};
    drm::Cs cs{};
    cs.in = {context_, 0, 2, 0, reinterpret_cast<std::uint64_t>(pointers)};
    std::string error;
    const auto text = said([&] {
      if (const auto status = drm_->control(drm::kCs, &cs, "CS"); !status) {
        error = status.error().message;
        return;
      }
      drm::WaitCs wait{};
      wait.in = {cs.handle, ~0ull, drm::kCompute, 0, 0, context_};
      EXPECT_TRUE(drm_->control(drm::kWaitCs, &wait, "WAIT_CS"));
    });
    return error + text;
  }
  static constexpr std::uint32_t kOfTheHost = drm::kCoherent | drm::kUncached;
  std::unique_ptr<DrmConnection> drm_;
  std::uint32_t context_ = 0;
  std::uint64_t next_va_ = 0x100000000;
};

TEST_F(Drm, ASubmissionThatIsRight) {
  const auto packets = alloc(drm::kGtt, kOfTheHost), data = alloc(drm::kGtt, kOfTheHost);
  const auto bytes = write_packets(packets, data);
  EXPECT_EQ(submit(packets.va, bytes, {{packets.handle, 0}, {data.handle, 0}}), "");
  EXPECT_EQ(data.words[0], 1u);
}
TEST_F(Drm, MemoryOfTheHostWithoutItsFlags) {
  const auto packets = alloc(drm::kGtt, drm::kCoherent), data = alloc(drm::kGtt, kOfTheHost);
  const auto bytes = write_packets(packets, data);
  EXPECT_THAT(submit(packets.va, bytes, {{packets.handle, 0}, {data.handle, 0}}),
              HasSubstr("the buffer of packets has memory of the host without the flags 00004000"));
}
TEST_F(Drm, AnObjectThatIsNotInTheList) {
  const auto packets = alloc(drm::kGtt, kOfTheHost), data = alloc(drm::kGtt, kOfTheHost);
  const auto bytes = write_packets(packets, data);
  EXPECT_THAT(submit(packets.va, bytes, {{packets.handle, 0}}), HasSubstr("is in no region"));
  EXPECT_THAT(drm_->check_faults().error().message, HasSubstr("a memory fault at 0x100001000"));
  EXPECT_THAT(submit(packets.va, bytes, {}), HasSubstr("Operation canceled"));  // the context is lost
}
TEST_F(Drm, ABufferOfAnOddSize) {
  const auto packets = alloc(drm::kGtt, kOfTheHost);
  EXPECT_THAT(submit(packets.va, 20, {{packets.handle, 0}}), HasSubstr("a multiple of 32 is wanted"));
}

// A user queue whose words are these objects; what is said until it has run a buffer, or does not.
TEST_F(Drm, UserQueuesWantMappingsThatWereWaitedFor) {
  const auto ring = alloc(drm::kGtt, kOfTheHost), words = alloc(drm::kGtt, kOfTheHost),
             rptr = alloc(drm::kVram, drm::kCpuAccess), eop = alloc(drm::kVram, drm::kCpuAccess);
  const auto doorbell = alloc(drm::kDoorbell, 0);
  drm::UserqMqd mqd{eop.va};
  drm::Userq create{};
  create.in.op = drm::kUserqCreate, create.in.engine = drm::kCompute, create.in.doorbell = ring.handle;
  create.in.ring = ring.va, create.in.ring_bytes = drm::kPageBytes;
  create.in.rptr = rptr.va, create.in.wptr = words.va;
  create.in.mqd = reinterpret_cast<std::uint64_t>(&mqd), create.in.mqd_bytes = sizeof(mqd);
  auto wrong = create;
  EXPECT_THAT(said([&] { EXPECT_FALSE(drm_->control(drm::kUserq, &wrong, "USERQ")); }),
              HasSubstr("the doorbell is no object of the domain DOORBELL"));
  create.in.doorbell = doorbell.handle;
  ASSERT_TRUE(drm_->control(drm::kUserq, &create, "USERQ"));
  EXPECT_THAT(said([&] {
                reinterpret_cast<std::atomic<std::uint64_t>*>(doorbell.words)->store(1);
                for (int i = 0; i < 1000 && drm_->check_faults(); ++i) ::usleep(1000);
                EXPECT_THAT(drm_->check_faults().error().message, HasSubstr("a memory fault"));
              }),
              HasSubstr("a mapping was not waited for"));
}

}  // namespace
}  // namespace zinc_rt::ring
