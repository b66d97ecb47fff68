// The functions that a page calls, as exports of a WebAssembly module: LocalServer, for one model at a time.
// The page writes texts into the memory that zrt_input() returns, and reads texts from the place that a function
// returns: the address, and the size in the upper 32 bits. Both are valid until the next call. Texts are UTF-8.
// js/engine.mjs is the other side.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "browser/local_server.h"

namespace {

using zinc_rt::browser::AnswerPiece;
using zinc_rt::browser::LocalServer;

std::unique_ptr<LocalServer>& server() {
  static std::unique_ptr<LocalServer> one;
  return one;
}

std::string& output() {
  static std::string text;
  return text;
}

std::vector<char>& input() {
  static std::vector<char> bytes;
  return bytes;
}

std::uint64_t give(std::string text) {
  output() = std::move(text);
  return std::uint64_t{output().size()} << 32 | reinterpret_cast<std::uintptr_t>(output().data());
}

std::string_view given(std::uint32_t begin, std::uint32_t size) {
  return std::string_view(input().data(), input().size()).substr(begin, size);
}

}  // namespace

#define ZRT_EXPORT(name) extern "C" [[clang::export_name(#name)]]

// Returns the address of at least `size` bytes.
ZRT_EXPORT(zrt_input) std::uint32_t zrt_input(std::uint32_t size) {
  input().resize(size);
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(input().data()));
}

// The input is the body of POST /v1/models/load. Returns an empty text, or {"error": ...} as the server does.
ZRT_EXPORT(zrt_open) std::uint64_t zrt_open(std::uint32_t size) {
  server() = nullptr;
  auto opened = LocalServer::open(given(0, size));
  if (!opened) return give(error_json(opened.error()));
  server() = std::move(*opened);
  return give({});
}

// The input is the method, the path and the body, one after the other, with these sizes. Returns the request's number,
// or 0 if no model is open.
ZRT_EXPORT(zrt_submit) std::uint32_t zrt_submit(std::uint32_t method, std::uint32_t path, std::uint32_t body) {
  if (server() == nullptr) return 0;
  return server()->submit(std::string(given(0, method)), std::string(given(method, path)), given(method + path, body));
}

// Runs a step. Returns after how many ms the next call is due: 0 if there was something to do; infinity if nothing will
// be there before a submit or a cancel.
ZRT_EXPORT(zrt_pump) double zrt_pump() {
  if (server() == nullptr) return std::numeric_limits<double>::infinity();
  const auto pumped = server()->pump();
  return pumped.ran ? 0 : std::max(pumped.wait_ms, 1.0);
}

// Returns the next part of an answer: its kind in the first byte (0: none yet, 1: head, 2: body, 3: end), then its text.
ZRT_EXPORT(zrt_next) std::uint64_t zrt_next(std::uint32_t number) {
  auto piece = server() != nullptr ? server()->next(number) : AnswerPiece{AnswerPiece::Kind::kEnd, {}};
  piece.text.insert(piece.text.begin(), static_cast<char>(piece.kind));
  return give(std::move(piece.text));
}

ZRT_EXPORT(zrt_cancel) void zrt_cancel(std::uint32_t number) {
  if (server() != nullptr) server()->cancel(number);
}

// Returns LocalServer::info(), or an empty text if no model is open.
ZRT_EXPORT(zrt_info) std::uint64_t zrt_info() {
  return give(server() != nullptr ? server()->info() : std::string());
}
