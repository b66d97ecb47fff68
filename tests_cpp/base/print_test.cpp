// Texts for standard output and standard error that these do not take.
#include "base/print.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "base/log.h"

namespace zinc_rt {
namespace {

using ::testing::ExitedWithCode;

enum class Lost : std::uint8_t { kClosed, kFull, kReaderGone };
constexpr Lost kLost[] = {Lost::kClosed, Lost::kFull, Lost::kReaderGone};

// Makes the descriptor one that takes nothing. A signal of a pipe without a reader would end the process.
void lose(int fd, Lost how) {
  signal(SIGPIPE, SIG_DFL);
  int ends[2];
  if (how == Lost::kClosed) {
    ::close(fd);
  } else if (how == Lost::kFull) {
    ::dup2(::open("/dev/full", O_WRONLY), fd);
  } else if (::pipe(ends) == 0) {
    ::close(ends[0]);
    ::dup2(ends[1], fd);
  }
}

// Each ends with an exit code of its own, which tells that it came so far.
[[noreturn]] void print_messages(Lost how) {
  lose(STDERR_FILENO, how);
  print_err("a message {}\n", 1);
  log().error("a line of the log");
  _exit(7);
}

[[noreturn]] void print_results(Lost how) {
  lose(STDOUT_FILENO, how);
  print_announcement("an announcement\n");
  if (!output_status()) _exit(1);  // that is no result
  print_out("a result {}\n", std::string(100'000, 'x'));
  const auto status = output_status();
  if (status || status.error().code != StatusCode::kUnavailable) _exit(2);
  if (is_reader_gone() != (how == Lost::kReaderGone)) _exit(3);
  if (print_now("more")) _exit(4);  // one that is lost stays lost
  _exit(7);
}

TEST(Print, ALostMessageEndsNothing) {
  for (const Lost how : kLost) EXPECT_EXIT(print_messages(how), ExitedWithCode(7), "");
}

TEST(Print, ALostResultIsAnError) {
  for (const Lost how : kLost) EXPECT_EXIT(print_results(how), ExitedWithCode(7), "");
}

TEST(Print, AReaderThatSleepsHoldsNothingUpWhereThatIsWanted) {
  const auto tell = [] {
    int ends[2];
    if (::pipe(ends) != 0) _exit(1);
    ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (::write(ends[1], "x", 1) == 1) {
    }
    ::fcntl(ends[1], F_SETFL, 0);
    ::dup2(ends[1], STDERR_FILENO);
    limit_waiting_of_messages();
    for (int i = 0; i < 1000; ++i) print_err("a message\n");
    _exit(7);
  };
  EXPECT_EXIT(tell(), ExitedWithCode(7), "");
}

TEST(Print, ClosedDescriptorsAreHeld) {
  const auto open_one = [] {
    for (const int fd : {0, 1, 2}) ::close(fd);
    hold_standard_descriptors();
    const int fd = ::open("/dev/null", O_RDWR);
    char byte = 0;
    const bool is_as_closed = ::write(1, "x", 1) < 0 && ::write(2, "x", 1) < 0 && ::read(0, &byte, 1) < 0;
    _exit(fd > 2 && is_as_closed ? 7 : 1);
  };
  EXPECT_EXIT(open_one(), ExitedWithCode(7), "");
}

TEST(Print, TextsAreFormatted) {
  const auto print = [] {
    print_err("{} of {}\n", 1, "two");
    _exit(7);
  };
  EXPECT_EXIT(print(), ExitedWithCode(7), "1 of two");
}

}  // namespace
}  // namespace zinc_rt
