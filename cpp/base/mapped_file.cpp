#include "base/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/error.h"

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
  MappedRange* range = info->si_code == BUS_ADRERR ? range_at(address) : nullptr;
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

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK is set because opening a fifo would otherwise wait until somebody writes to it. It changes nothing for
  // files.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const auto code = errno == ENOENT ? StatusCode::kNotFound : StatusCode::kUnavailable;
    return fail(code, "[mapped_file] cannot open {}: {}", path, std::strerror(errno));
  }
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return fail(StatusCode::kInvalidArgument, "[mapped_file] {} is not a regular file", path);
  }
  MappedFile file;
  file.fd_ = fd;
  file.path_ = path;
  file.size_ = static_cast<std::size_t>(info.st_size);
  if (file.size_ > 0) {
    void* data = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      const int error = errno;
      file.size_ = 0;
      return fail(StatusCode::kUnavailable, "[mapped_file] cannot map {}: {}", path, std::strerror(error));
    }
    file.data_ = static_cast<const std::byte*>(data);
    file.range_ = add_range(file.data_, file.size_);
  }
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(fd_, other.fd_);
  std::swap(range_, other.range_);
  return *this;
}

Status MappedFile::is_whole() const {
  if (fd_ < 0) return {};
  struct stat info{};
  const bool is_known = ::fstat(fd_, &info) == 0;
  const auto there = is_known ? static_cast<std::size_t>(info.st_size) : size_;
  if (there >= size_ && (range_ == nullptr || !range_->was_cut)) return {};
  return fail(StatusCode::kCorrupt, "[mapped_file] {} was cut while it was in use: {} bytes were there, {} are now",
              path_, size_, there);
}

MappedFile::~MappedFile() {
  free_range(range_);
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  if (fd_ >= 0) ::close(fd_);
}

void release_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace zinc_rt
