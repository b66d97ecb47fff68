#include "client/event_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace zinc_rt::client {
namespace {

std::vector<std::string> events_of(std::string_view text, std::size_t piece) {
  std::vector<std::string> out;
  EventStream stream;
  for (std::size_t i = 0; i < text.size(); i += piece)
    stream.push(text.substr(i, piece), [&](std::string_view data) {
      out.emplace_back(data);
      return true;
    });
  return out;
}

TEST(EventStreamTest, EventsAreTheSameInPiecesOfAnySize) {
  const std::string text =
      ": a comment\n\ndata: one\n\nevent: x\ndata:two\ndata: lines\nid: 5\n\n\n\r\ndata: three\r\n\r\ndata: \n\ndata: "
      "four\r\r"
      "data: unfinished\n";
  const std::vector<std::string> wanted{"one", "two\nlines", "three", "", "four"};
  for (std::size_t piece = 1; piece <= text.size(); ++piece) EXPECT_EQ(events_of(text, piece), wanted) << piece;
}

TEST(EventStreamTest, AReaderMayStop) {
  EventStream stream;
  int n = 0;
  EXPECT_FALSE(stream.push("data: a\n\ndata: b\n\n", [&](std::string_view) { return ++n < 1; }));
  EXPECT_EQ(n, 1);
}

}  // namespace
}  // namespace zinc_rt::client
