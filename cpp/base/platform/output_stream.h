// Does for writing to standard output and standard error what systems do in different ways.
// Thread rule: any thread; a PipeSignalBlock belongs to the thread that made it.
#pragma once

#include <cstddef>
#include <cstdio>

namespace zinc_rt {

// Blocks SIGPIPE in the calling thread while the object lives. Writing to a pipe without a reader sends this signal,
// which would end a process that does not handle it. Does nothing on systems without signals.
class PipeSignalBlock {
 public:
  PipeSignalBlock();
  ~PipeSignalBlock();
  PipeSignalBlock(const PipeSignalBlock&) = delete;
  PipeSignalBlock& operator=(const PipeSignalBlock&) = delete;

 private:
  [[maybe_unused]] bool unblocks_ = false;  // whether the signal was not blocked before
  [[maybe_unused]] bool was_pending_ = false;
};

// Returns how many bytes a pipe that is ready to be written accepts without blocking.
std::size_t pipe_bytes();

// Discards the text in the stream's buffer.
void discard_buffer(std::FILE* stream);

}  // namespace zinc_rt
