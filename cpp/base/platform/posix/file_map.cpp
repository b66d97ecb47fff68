#include "base/platform/file_map.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/platform/posix/bus_error.h"

namespace zinc_rt {

// MappedRange is an entry of the list of mapped files, in which the signal handler looks up an address. The list never
// gets shorter, and its entries are reused, because the handler may walk the list at any moment and on any thread.
struct MappedRange {
  std::atomic<std::uintptr_t> begin{0}, end{0};  // addresses; both are 0 if the entry describes no file
  std::atomic<bool> was_cut{false};
  MappedRange* next = nullptr;
};

namespace {

std::atomic<MappedRange*> ranges{nullptr};
std::mutex ranges_mutex;  // held while an entry is set or cleared; the signal handler reads without it
struct sigaction former_action{};
std::uintptr_t page_bytes = 4096;

MappedRange* range_at(std::uintptr_t address) {
  for (MappedRange* range = ranges; range != nullptr; range = range->next)
    if (address >= range->begin && address < range->end) return range;
  return nullptr;
}

// Handles SIGBUS. Maps a page of zeros over the page that the file has lost, so that the processor can repeat the
// instruction. A fault at any other address goes to the handler that was installed before this one.
void replace_page(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  MappedRange* range = may_be_missing_page(*info) ? range_at(address) : nullptr;
  void* const page = reinterpret_cast<void*>(address / page_bytes * page_bytes);
  if (range != nullptr && ::mmap(page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page) {
    range->was_cut = true;
  } else if ((former_action.sa_flags & SA_SIGINFO) != 0) {
    former_action.sa_sigaction(signal, info, context);
  } else if (former_action.sa_handler != SIG_DFL && former_action.sa_handler != SIG_IGN) {
    former_action.sa_handler(signal);
  } else {
    // No handler was installed before this one, so the default action is restored. The processor repeats the
    // instruction after this function returns, and the signal then ends the process.
    ::signal(signal, SIG_DFL);
  }
  errno = error;
}

MappedRange* add_range(const std::byte* data, std::size_t size) {
  const std::lock_guard lock(ranges_mutex);
  static const bool is_handled = [] {
    page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action{};
    action.sa_sigaction = replace_page;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    return ::sigaction(SIGBUS, &action, &former_action) == 0;
  }();
  if (!is_handled) return nullptr;
  MappedRange* range = ranges;
  while (range != nullptr && range->end != 0) range = range->next;
  const bool is_new = range == nullptr;
  if (is_new) range = new MappedRange;
  range->was_cut = false;
  range->begin = reinterpret_cast<std::uintptr_t>(data);
  range->end = reinterpret_cast<std::uintptr_t>(data) + size;
  if (is_new) {
    range->next = ranges;
    ranges = range;
  }
  return range;
}

void free_range(MappedRange* range) {
  if (range == nullptr) return;
  const std::lock_guard lock(ranges_mutex);
  range->end = 0;
}

}  // namespace

int FileMap::open(int fd, std::size_t size) {
  if (size == 0) return 0;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return errno;
  data_ = static_cast<const std::byte*>(data);
  size_ = size;
  range_ = add_range(data_, size_);
  return 0;
}

FileMap::~FileMap() {
  free_range(range_);
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

bool FileMap::lost_pages() const {
  return range_ != nullptr && range_->was_cut;
}

void release_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace zinc_rt
